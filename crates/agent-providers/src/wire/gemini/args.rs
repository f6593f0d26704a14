//! The arguments of a call that arrive value by value, each with its place, put together into JSON text.
//!
//! Text that was given out never changes: what is told piece by piece is, joined, the final input.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Joiner, Loose, object, quoted, received, text_or_raw};

/// JSON text that grows as values arrive in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Args {
    text: String,
    /// The containers that are open, outermost first.
    open: Vec<Container>,
    /// The text value that is being written, whose quote is still open.
    in_text: bool,
    joiner: Joiner,
    /// A value came that has no place in text already given out: the pieces are kept as they came, which is no
    /// JSON, so that nobody runs the call.
    broken: bool,
}

/// An open object or list, and where in it the last value stands.
#[derive(Debug, PartialEq, Eq)]
enum Container {
    Object { key: String },
    List { index: usize },
}

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

#[derive(Deserialize)]
struct WireArg<'a> {
    #[serde(borrow, default, rename = "jsonPath", alias = "json_path")]
    path: Loose<'a>,
    #[serde(borrow, default, rename = "stringValue", alias = "string_value")]
    text: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "numberValue", alias = "number_value")]
    number: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "boolValue", alias = "bool_value")]
    boolean: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "willContinue", alias = "will_continue")]
    more: Option<&'a RawValue>,
}

impl Args {
    /// Takes the next values and gives the text they add.
    pub(super) fn take(&mut self, list: &RawValue, lone: bool) -> String {
        let before = self.text.len();
        match serde_json::from_str::<Vec<&RawValue>>(list.get()) {
            Ok(values) => values.into_iter().for_each(|raw| self.value(raw, lone)),
            Err(_) => self.give_up(list, lone),
        }
        self.text[before..].to_owned()
    }

    /// Ends the call and gives the text that closes what is open.
    pub(super) fn end(&mut self) -> String {
        let before = self.text.len();
        if !self.broken {
            self.close_to(0);
        }
        self.text[before..].to_owned()
    }

    /// Whether no value arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// All the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn value(&mut self, raw: &RawValue, lone: bool) {
        let arg = object::<WireArg<'_>>(raw.get()).ok();
        let arg = arg.and_then(|arg| Some((steps(arg.path.as_str())?, arg)));
        let done = match arg.filter(|_| !self.broken) {
            Some((path, arg)) => self.write(&path, &arg, raw, lone),
            None => None,
        };
        if done.is_none() {
            self.give_up(raw, lone);
        }
    }

    /// Writes a value where it belongs; `None` when that is behind us.
    fn write(&mut self, path: &[Step], arg: &WireArg<'_>, raw: &RawValue, lone: bool) -> Option<()> {
        let goes_on = self.in_text && self.is_at(path);
        if !goes_on {
            self.go_to(path)?;
        } else if arg.text.is_none() {
            return None;
        }
        let Some(text) = arg.text else {
            let plain = arg.number.or(arg.boolean).map_or("null", RawValue::get);
            // A value of a kind we do not know must not become null.
            let known = arg.number.is_some() || arg.boolean.is_some() || is_null(raw);
            self.text.push_str(Some(plain).filter(|_| known)?);
            return Some(());
        };
        if !goes_on {
            self.text.push('"');
            self.in_text = true;
        }
        let words = self.joiner.join(text_or_raw(text), lone);
        self.text.push_str(inside(&quoted(&words)));
        if arg.more.is_none_or(|raw| raw.get() != "true") {
            self.end_text();
        }
        Some(())
    }

    /// Opens and closes containers until the next value stands at `path`.
    fn go_to(&mut self, path: &[Step]) -> Option<()> {
        if path.is_empty() {
            return None;
        }
        let shared =
            self.open.iter().zip(path).take_while(|(container, step)| container.stands_at(step)).count();
        if shared == path.len() || (shared == self.open.len() && shared > 0) {
            // The place is taken by a value, or by a container.
            return None;
        }
        if !self.open.is_empty() {
            self.close_to(shared + 1);
            let (container, step) = (self.open.get_mut(shared)?, path.get(shared)?);
            let lead = container.advance(step)?;
            self.text.push_str(&lead);
        }
        let from = if self.open.is_empty() { 0 } else { shared + 1 };
        for step in path.get(from..).unwrap_or_default() {
            let (container, lead) = Container::open(step)?;
            self.open.push(container);
            self.text.push_str(&lead);
        }
        Some(())
    }

    fn is_at(&self, path: &[Step]) -> bool {
        self.open.len() == path.len()
            && self.open.iter().zip(path).all(|(container, step)| container.stands_at(step))
    }

    fn close_to(&mut self, depth: usize) {
        self.end_text();
        while self.open.len() > depth {
            match self.open.pop() {
                Some(Container::Object { .. }) => self.text.push('}'),
                Some(Container::List { .. }) => self.text.push(']'),
                None => return,
            }
        }
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.in_text) {
            self.text.push_str(self.joiner.end());
            self.text.push('"');
        }
    }

    fn give_up(&mut self, raw: &RawValue, lone: bool) {
        self.end_text();
        self.broken = true;
        // A brace that is never closed, even where nothing was written before.
        self.text.push_str(if self.text.is_empty() { "{" } else { "," });
        self.text.push_str(&received(raw.get(), lone));
    }
}

impl Container {
    /// The container whose first value stands at `step`, and the text that opens it.
    fn open(step: &Step) -> Option<(Self, String)> {
        match step {
            Step::Key(key) => Some((Self::Object { key: key.clone() }, format!("{{{}:", quoted(key)))),
            Step::Index(0) => Some((Self::List { index: 0 }, "[".to_owned())),
            Step::Index(_) => None,
        }
    }

    fn stands_at(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::Object { key }, Step::Key(next)) => key == next,
            (Self::List { index }, Step::Index(next)) => index == next,
            (Self::Object { .. }, Step::Index(_)) | (Self::List { .. }, Step::Key(_)) => false,
        }
    }

    /// Goes on to the value at `step` and gives the text between the two; `None` when it stands elsewhere.
    fn advance(&mut self, step: &Step) -> Option<String> {
        match (self, step) {
            (Self::Object { key }, Step::Key(next)) => {
                key.clone_from(next);
                Some(format!(",{}:", quoted(next)))
            }
            (Self::List { index }, Step::Index(next)) if *next == *index + 1 => {
                *index = *next;
                Some(",".to_owned())
            }
            (Self::Object { .. }, Step::Index(_)) | (Self::List { .. }, Step::Key(_) | Step::Index(_)) => {
                None
            }
        }
    }
}

/// The steps of `$.a[0]["b c"]`; `None` for any other text.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('.') {
            Some(name) => {
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (key, after) = name.split_at(end);
                (Some(key).filter(|key| !key.is_empty()).map(|key| Step::Key(key.to_owned())), after)
            }
            None => bracket(rest.strip_prefix('[')?)?,
        };
        steps.push(step?);
        rest = after;
    }
    Some(steps)
}

/// The step in brackets, and what follows them.
fn bracket(inside: &str) -> Option<(Option<Step>, &str)> {
    let quote = inside.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let (index, after) = inside.split_once(']')?;
        return Some((index.parse().ok().map(Step::Index), after));
    };
    let mut key = String::new();
    let mut chars = inside.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            let after = inside.get(at + 1..)?.strip_prefix(']')?;
            return Some((Some(Step::Key(key)), after));
        }
        key.push(if c == '\\' { chars.next()?.1 } else { c });
    }
    None
}

fn is_null(raw: &RawValue) -> bool {
    raw.get().contains("\"nullValue\"") || raw.get().contains("\"null_value\"")
}

/// What stands between the quotes.
fn inside(quoted: &str) -> &str {
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of values, one list an event, give this text, which is what was told piece by piece.
    #[track_caller]
    fn check(lists: &[&str], expect: &str) {
        let mut args = Args::default();
        let mut told = String::new();
        for list in lists {
            told.push_str(&args.take(&RawValue::from_string((*list).to_owned()).unwrap(), false));
        }
        told.push_str(&args.end());
        assert_eq!(told, expect);
        assert_eq!(args.into_text(), expect);
    }

    #[test]
    fn values_become_json() {
        check(&[], "");
        check(&[r#"[{"jsonPath":"$.a","stringValue":"x"}]"#], r#"{"a":"x"}"#);
        check(
            &[
                r#"[{"jsonPath":"$.n","numberValue":12345678901234567890},{"jsonPath":"$.f","numberValue":1.0}]"#,
                r#"[{"jsonPath":"$.b","boolValue":false},{"jsonPath":"$.z","nullValue":"NULL_VALUE"}]"#,
            ],
            r#"{"n":12345678901234567890,"f":1.0,"b":false,"z":null}"#,
        );
        check(
            &[
                r#"[{"jsonPath":"$.l[0].a[0]","stringValue":"x","willContinue":true}]"#,
                r#"[{"jsonPath":"$.l[0].a[0]","stringValue":"\"y\n"}]"#,
                r#"[{"jsonPath":"$.l[0].a[1]","numberValue":2}]"#,
                r#"[{"jsonPath":"$.l[1]","stringValue":"","willContinue":true},{"jsonPath":"$['k k'][\"q\\\"\"]","stringValue":"e"}]"#,
            ],
            r#"{"l":[{"a":["x\"y\n",2]},""],"k k":{"q\"":"e"}}"#,
        );
    }

    #[test]
    fn text_goes_on_until_it_is_said_to_end() {
        check(
            &[
                r#"[{"jsonPath":"$.a","stringValue":"one","willContinue":true}]"#,
                r#"[{"jsonPath":"$.a","stringValue":"","willContinue":true}]"#,
                r#"[{"jsonPath":"$.a","stringValue":" two"}]"#,
            ],
            r#"{"a":"one two"}"#,
        );
    }

    #[test]
    fn what_has_no_place_is_kept_and_is_no_json() {
        for lists in [
            &[r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}]"#][..],
            &[r#"[{"jsonPath":"$.a.b","numberValue":1},{"jsonPath":"$.a","numberValue":2}]"#],
            &[r#"[{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a.b","numberValue":2}]"#],
            &[r#"[{"jsonPath":"$.a[0]","numberValue":1},{"jsonPath":"$.a[2]","numberValue":2}]"#],
            &[r#"[{"jsonPath":"$.a[0]","numberValue":1},{"jsonPath":"$.a.b","numberValue":2}]"#],
            &[r#"[{"jsonPath":"$.a[1]","numberValue":1}]"#],
            &[r#"[{"jsonPath":"$","numberValue":1}]"#],
            &[r#"[{"jsonPath":"a","numberValue":1}]"#],
            &[r#"[{"jsonPath":"$.a","dateValue":"1994"}]"#],
            &[
                r#"[{"jsonPath":"$.a","stringValue":"x","willContinue":true},{"jsonPath":"$.a","numberValue":2}]"#,
            ],
            &["[7]"],
            &["{}"],
        ] {
            let mut args = Args::default();
            let mut told = String::new();
            for list in lists {
                told.push_str(&args.take(&RawValue::from_string((*list).to_owned()).unwrap(), false));
            }
            told.push_str(&args.end());
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&told).is_err(), "{told}");
            assert_eq!(args.into_text(), told);
        }
    }

    #[test]
    fn paths() {
        let key = |text: &str| Step::Key(text.to_owned());
        assert_eq!(steps("$.a[10].b"), Some(vec![key("a"), Step::Index(10), key("b")]));
        assert_eq!(steps("$['a.b']"), Some(vec![key("a.b")]));
        assert_eq!(steps("$"), Some(vec![]));
        for bad in ["", "a", "$a", "$.", "$..a", "$[", "$[x]", "$['a", "$['a'"] {
            assert_eq!(steps(bad), None, "{bad}");
        }
    }
}
