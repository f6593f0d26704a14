//! What the clients of two languages decoded, held against each other.

use serde::Deserialize;
use serde_json::Value;

/// One thing a client saw.
#[derive(Debug, PartialEq, Deserialize)]
struct Fact {
    what: String,
    got: Value,
}

/// What a comparison gave.
#[derive(Debug, PartialEq)]
pub(super) struct Differences {
    pub(super) compared: usize,
    /// One a line.
    pub(super) told: Vec<String>,
}

/// Compares two files of facts, one JSON object a line: the same facts in the same order.
pub(super) fn compare(python: &str, node: &str) -> Differences {
    let mut told = Vec::new();
    let mut facts = |text: &str, language: &str| {
        let read: Result<Vec<Fact>, _> = text.lines().map(serde_json::from_str).collect();
        read.unwrap_or_else(|error| {
            told.push(format!("the facts of the {language} clients cannot be read: {error}"));
            Vec::new()
        })
    };
    let (theirs, others) = (facts(python, "Python"), facts(node, "TypeScript"));
    for (one, other) in theirs.iter().zip(&others) {
        if one.what != other.what {
            told.push(format!(
                "{:?} in Python stands where {:?} does in TypeScript: let both scripts compare the same",
                one.what, other.what
            ));
            // All that follows is shifted.
            break;
        }
        if one.got != other.got {
            told.push(format!("{}: Python has {}, TypeScript has {}", one.what, one.got, other.got));
        }
    }
    if theirs.len() != others.len() || theirs.is_empty() {
        told.push(format!("{} facts in Python, {} in TypeScript", theirs.len(), others.len()));
    }
    Differences { compared: theirs.len().min(others.len()), told }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told() {
        let check = |python: &str, node: &str, expect: &[&str]| {
            let told = compare(python, node).told;
            assert_eq!(told.len(), expect.len(), "{told:?}");
            assert!(told.iter().zip(expect).all(|(told, word)| told.contains(word)), "{told:?}");
        };
        let one = r#"{"what":"a","got":{"x":1,"y":[2]}}"#;
        check(one, r#"{"got":{"y":[2],"x":1},"what":"a"}"#, &[]);
        check(one, r#"{"what":"a","got":{"x":1,"y":[3]}}"#, &["a: Python has"]);
        check(one, r#"{"what":"b","got":1}"#, &["the same"]);
        check(one, "", &["1 facts in Python, 0 in TypeScript"]);
        check("", "", &["0 facts"]);
        check("nope", one, &["cannot be read", "0 facts in Python"]);
        assert_eq!(compare(one, one).compared, 1);
    }
}
