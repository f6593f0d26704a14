//! Failures of a service, before a wire gives them their shape.

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// The service's word for the class of the failure.
    pub(crate) kind: String,
    pub(crate) message: String,
    /// The part of the request at fault, where the service says so.
    pub(crate) param: Option<String>,
    /// A second, finer word, where the service has one.
    pub(crate) code: Option<&'static str>,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What a service usually says with a status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usual {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    words: &'static str,
}

impl ApiError {
    /// The request breaks a rule; sending it again will not help.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            kind: INVALID.into(),
            message: message.into(),
            param: None,
            code: None,
            headers: Vec::new(),
        }
    }

    /// An error of a status, in the words of the service where none are given.
    pub(crate) fn of_status(usual: &[Usual], status: u16, message: Option<&str>) -> Self {
        let known = usual.iter().find(|known| known.status == status);
        // Statuses without a row of their own are told as the nearest general failure.
        let by_class = || usual.iter().find(|known| known.status == if status < 500 { 400 } else { 500 });
        let (kind, code) = known.or_else(by_class).map_or((INVALID, None), |row| (row.kind, row.code));
        let words = known.map_or("Internal server error", |row| row.words);
        Self { status, kind: kind.into(), code, ..Self::invalid(message.unwrap_or(words)) }
    }

    /// An error of a kind, with the status that kind has.
    pub(crate) fn of_kind(usual: &[Usual], kind: &str, message: &str) -> Self {
        let known = usual.iter().find(|known| known.kind == kind || known.code == Some(kind));
        let (status, code) = known.map_or((500, None), |row| (row.status, row.code));
        Self { status, kind: kind.into(), code, ..Self::invalid(message) }
    }

    /// Names the part of the request at fault.
    pub(crate) fn at(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(crate) fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Says a header with it.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Usual {
    pub(crate) const fn new(status: u16, kind: &'static str, words: &'static str) -> Self {
        Self { status, kind, code: None, words }
    }

    pub(crate) const fn coded(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }
}

const INVALID: &str = "invalid_request_error";
