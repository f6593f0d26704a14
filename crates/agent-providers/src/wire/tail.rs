//! The end of a body: small fields that change without touching what comes before, and the user's own laid over them.

use agent_core::{RawJson, RequestSettings};
use serde::Serialize;

use super::form::Cx;
use super::json::{Fields, others, quoted, write};

/// Fields behind the messages, in the order they were set.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    fields: Vec<(String, Value)>,
}

#[derive(Debug)]
enum Value {
    Raw(String),
    Object(Tail),
}

impl Tail {
    /// Sets a field to a text, a number or a list of them.
    pub(crate) fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let mut raw = Vec::new();
        write(&mut raw, value);
        self.raw(key, String::from_utf8_lossy(&raw).into_owned());
    }

    /// Sets a field to JSON.
    pub(crate) fn raw(&mut self, key: &str, json: impl Into<String>) {
        self.put(key, Value::Raw(json.into()));
    }

    /// The object of a field, which begins empty.
    pub(crate) fn object(&mut self, key: &str) -> &mut Self {
        let at = match self.fields.iter().position(|(known, _)| known == key) {
            Some(at) => at,
            None => {
                self.fields.push((key.to_owned(), Value::Object(Self::default())));
                self.fields.len() - 1
            }
        };
        self.fields[at].1.object()
    }

    /// Lays the user's own fields for this provider over ours, object into object.
    pub(crate) fn lay_over(&mut self, settings: &RequestSettings, cx: &mut Cx<'_>) {
        for data in &settings.extra {
            if data.provider != cx.profile.provider {
                let why = format!(
                    "fields for {:?} mean nothing to {:?}; left out",
                    data.provider, cx.profile.provider
                );
                cx.note("settings.extra", why);
                continue;
            }
            match Fields::read(data.json.get()) {
                Some(fields) => self.lay_fields(&fields, cx),
                None => cx.note("settings.extra", "it is no object of fields; left out"),
            }
        }
    }

    /// `,"a":1,"b":{…}`.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut out = String::new();
        for (key, value) in self.fields {
            out.push_str(&format!(",{}:{}", quoted(&key), value.into_json()));
        }
        out.into_bytes()
    }

    fn lay_fields(&mut self, fields: &Fields<'_>, cx: &mut Cx<'_>) {
        for (key, raw) in &fields.0 {
            if RESERVED.contains(&key.as_ref()) {
                cx.note("settings.extra", format!("{key:?} is made of the request itself; left out"));
            } else {
                self.lay(key, raw.get());
            }
        }
    }

    fn lay(&mut self, key: &str, raw: &str) {
        let is_ours = self.fields.iter().any(|(known, value)| known == key && value.is_object());
        match Fields::read(raw).filter(|_| is_ours) {
            Some(fields) => {
                let object = self.object(key);
                fields.0.iter().for_each(|(key, raw)| object.lay(key, raw.get()));
            }
            None => self.raw(key, raw),
        }
    }

    fn put(&mut self, key: &str, value: Value) {
        match self.fields.iter_mut().find(|(known, _)| known == key) {
            Some((_, slot)) => *slot = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    fn read(raw: &str) -> Self {
        let fields = Fields::read(raw).unwrap_or_default().0.into_iter();
        Self {
            fields: fields.map(|(key, raw)| (key.into_owned(), Value::Raw(raw.get().to_owned()))).collect(),
        }
    }
}

impl Value {
    /// The object it is; anything else is replaced by an empty one.
    fn object(&mut self) -> &mut Tail {
        let read = match self {
            Self::Object(object) => return object,
            Self::Raw(raw) => Tail::read(raw),
        };
        *self = Self::Object(read);
        self.object()
    }

    fn is_object(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.starts_with('{'),
            Self::Object(_) => true,
        }
    }

    fn into_json(self) -> String {
        match self {
            Self::Raw(raw) => raw,
            Self::Object(object) => {
                let bytes = object.into_bytes();
                format!("{{{}}}", String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()))
            }
        }
    }
}

/// An object out of the fields of a body that our types have no place for; `None` without any.
pub(crate) fn extra(fields: &Fields<'_>, known: &[&str]) -> Option<RawJson> {
    let known: Vec<&str> = known.iter().chain(RESERVED).copied().collect();
    RawJson::parse(others(fields, &known)?).ok()
}

/// Fields that every format makes of the request itself.
const RESERVED: &[&str] = &[
    "model",
    "messages",
    "input",
    "instructions",
    "contents",
    "system",
    "systemInstruction",
    "system_instruction",
    "tools",
    "stream",
    "stream_options",
];

#[cfg(test)]
mod tests {
    use agent_core::{ModelProfile, ProviderData};

    use super::*;
    use crate::names::ToolNames;

    #[test]
    fn own_fields_are_laid_over_ours() {
        let mut tail = Tail::default();
        tail.set("max_tokens", &9);
        tail.object("reasoning").set("effort", "low");
        let data = |provider: &str, json: &str| ProviderData {
            provider: provider.into(),
            json: RawJson::parse(json).unwrap(),
        };
        let extra = vec![
            data(
                "p",
                r#"{"reasoning":{"summary":"auto","effort":"high"},"seed":12345678901234567890,"stream":true}"#,
            ),
            data("other", r#"{"a":1}"#),
            data("p", "[1]"),
        ];
        let (names, profile) = (ToolNames::default(), ModelProfile::conservative("p", "m"));
        let mut diagnostics = Vec::new();
        let mut cx = Cx { names: &names, profile: &profile, diagnostics: &mut diagnostics, tools: &[] };
        tail.lay_over(&RequestSettings { extra, ..RequestSettings::default() }, &mut cx);
        let text = String::from_utf8(tail.into_bytes()).unwrap();
        assert_eq!(
            text,
            r#","max_tokens":9,"reasoning":{"effort":"high","summary":"auto"},"seed":12345678901234567890"#
        );
        assert_eq!(
            diagnostics.len(),
            3,
            "what is reserved, for others or no object is told: {diagnostics:?}"
        );
    }
}
