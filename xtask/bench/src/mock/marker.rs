//! The marker in the first message: which run and session a request belongs to, and how long the run is.

/// `[[bench run=NAME n=STEPS s=SESSION v=0|1]]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) run: String,
    pub(super) steps: usize,
    pub(super) session: usize,
    /// Whether the body is to be checked, which takes time.
    pub(super) verify: bool,
}

/// The first marker of a body.
pub(super) fn find(body: &[u8]) -> Option<Marker> {
    let start = memchr::memmem::find(body, OPEN)? + OPEN.len();
    let rest = body.get(start..)?;
    let inside = rest.get(..memchr::memmem::find(rest, b"]]")?)?;
    let mut found = Marker { run: String::new(), steps: 0, session: 0, verify: false };
    for word in std::str::from_utf8(inside).ok()?.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        match key {
            "run" => value.clone_into(&mut found.run),
            "n" => found.steps = value.parse().ok()?,
            "s" => found.session = value.parse().ok()?,
            "v" => found.verify = value == "1",
            _ => {}
        }
    }
    (found.steps > 0).then_some(found)
}

const OPEN: &[u8] = b"[[bench ";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: Option<(&str, usize, usize, bool)>) {
        let found = find(body.as_bytes());
        let got = found.as_ref().map(|found| (found.run.as_str(), found.steps, found.session, found.verify));
        assert_eq!(got, expect, "for {body}");
    }

    #[test]
    fn markers() {
        check("", None);
        check("[[bench run=a n=3", None);
        check("[[bench run=a n=0 s=0 v=0]]", None);
        check("[[bench run=a n=many s=0]]", None);
        check(r#"{"x":"[[bench run=a n=3 s=2 v=1 t=0]] Go"}"#, Some(("a", 3, 2, true)));
        check("[[bench n=7]] [[bench n=8]]", Some(("", 7, 0, false)));
    }
}
