//! What each provider is sent of a schema.

use agent_core::{ModelProfile, RawJson};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::names::ToolNames;

const ALL: [Rules; 4] = [Rules::Anthropic, Rules::OpenAi, Rules::Gemini, Rules::Ollama];

fn card(schema: &Value) -> ToolCard {
    ToolCard::new("f", "", &RawJson::of(schema).unwrap()).unwrap()
}

/// The schema in a provider's form, with its notes, or why there is none.
fn sent(schema: &Value, rules: Rules) -> String {
    match fitted(&card(schema), rules) {
        Ok(Fitted { schema, notes }) => [vec![schema.into_owned()], notes].concat().join("\n"),
        Err(why) => format!("! {why}"),
    }
}

#[track_caller]
fn check(schema: &Value, rules: Rules, expect: &str) {
    assert_eq!(sent(schema, rules), expect, "{rules:?}");
}

#[test]
fn a_plain_schema_keeps_its_bytes() {
    let plain = json!({"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]});
    for rules in ALL {
        let card = card(&plain);
        assert!(matches!(fitted(&card, rules).unwrap().schema, Cow::Borrowed(_)), "{rules:?}");
    }
}

#[test]
fn no_union_stands_at_the_root() {
    let beside = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"], "anyOf": [{"required": ["b"]}, {"required": ["c"]}]});
    let merged = format!(
        r#"{{"properties":{{"a":{{"type":"string"}},"b":{{"type":"string"}}}},"required":["a"],"type":"object"}}{}{MERGED}"#,
        "\n"
    );
    ALL.into_iter().for_each(|rules| check(&beside, rules, &merged));
    let pure = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
        {"type": "object", "properties": {"kind": {"const": "y"}}, "required": ["kind"]},
        {"type": "string"}]});
    let merged = format!(
        r#"{{"properties":{{"kind":{{"anyOf":[{{"const":"x"}},{{"const":"y"}}]}},"n":{{"type":"integer"}}}},"required":["kind"],"type":"object"}}{}{MERGED}"#,
        "\n"
    );
    [Rules::Anthropic, Rules::OpenAi, Rules::Ollama]
        .into_iter()
        .for_each(|rules| check(&pure, rules, &merged));
    let all = json!({"allOf": [{"properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"], "additionalProperties": false},
        {"properties": {"a": {"type": "number"}, "b": true}, "required": ["b"]}]});
    check(
        &all,
        Rules::Anthropic,
        r#"{"properties":{"a":{"type":"integer"},"b":true},"required":["a","b"],"type":"object"}"#,
    );
    check(
        &json!({"anyOf": [{"type": "string"}]}),
        Rules::Anthropic,
        "! its schema takes no object; describe the input as an object with properties",
    );
    check(
        &json!({"type": "array"}),
        Rules::OpenAi,
        "! its schema takes no object; describe the input as an object with properties",
    );
}

#[test]
fn references_stay_where_they_are_followed_and_go_where_they_are_not() {
    let order = json!({"type": "object", "properties": {"order": {"$ref": "#/$defs/Order", "description": "the order"}},
        "$defs": {"Order": {"type": "object", "description": "any", "properties": {"by": {"$ref": "#/$defs/Buyer"}}},
            "Buyer": {"type": "string"}}});
    assert_eq!(sent(&order, Rules::Anthropic), card(&order).input_schema().get());
    assert_eq!(sent(&order, Rules::OpenAi), card(&order).input_schema().get());
    let inlined = r#"{"properties":{"order":{"description":"the order","properties":{"by":{"type":"string"}},"type":"object"}},"type":"object"}"#;
    check(&order, Rules::Gemini, inlined);
    check(&order, Rules::Ollama, inlined);
    let inside = json!({"type": "object", "properties": {"t": {"type": "object", "$defs": {"X Y": {"type": "string"}},
        "properties": {"x": {"$ref": "#/properties/t/$defs/X%20Y"}}}}});
    check(
        &inside,
        Rules::Gemini,
        r#"{"properties":{"t":{"properties":{"x":{"type":"string"}},"type":"object"}},"type":"object"}"#,
    );
    let root = json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "A": {"type": "string"}}});
    check(
        &root,
        Rules::Anthropic,
        r##"{"$defs":{"A":{"type":"string"},"In":{"properties":{"a":{"$ref":"#/$defs/A"}},"type":"object"}},"properties":{"a":{"$ref":"#/$defs/A"}},"type":"object"}"##,
    );
    let merged_away = json!({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"$ref": "#/anyOf/0/properties/a"}}}]});
    check(
        &merged_away,
        Rules::Anthropic,
        &format!(
            r#"{{"properties":{{"a":{{"type":"string"}},"b":{{"type":"string"}}}},"type":"object"}}{}{MERGED}"#,
            "\n"
        ),
    );
}

#[test]
fn what_refers_to_itself_or_to_nothing_ends() {
    let node = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": {"type": "object",
        "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}}});
    assert_eq!(sent(&node, Rules::Anthropic), card(&node).input_schema().get());
    check(
        &node,
        Rules::Gemini,
        concat!(
            r#"{"properties":{"root":{"properties":{"kids":{"items":{"type":"object"},"type":"array"},"v":{"type":"string"}},"type":"object"}},"type":"object"}"#,
            "\nits schema holds itself: the model is told of one level of it"
        ),
    );
    for rules in ALL {
        check(
            &json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/Nope"}}}),
            rules,
            "! its schema refers to \"#/$defs/Nope\", which is not in it; define it there",
        );
        check(
            &json!({"type": "object", "properties": {"x": {"$ref": "https://a/b.json"}}}),
            rules,
            "! its schema refers to \"https://a/b.json\", which is not in it; define it there",
        );
    }
    check(
        &json!({"$ref": "#"}),
        Rules::Anthropic,
        "! its schema is nothing but references to itself; describe an object with properties",
    );
    let mut wide = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {"d24": {"type": "string"}}});
    for at in 0..24 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        wide["$defs"][format!("d{at}")] = json!({"properties": {"l": next.clone(), "r": next}});
    }
    check(
        &wide,
        Rules::Gemini,
        "! its schema is too large once its references are followed; make it flatter",
    );
}

#[test]
fn booleans_and_null_have_a_form_everywhere() {
    let odd = json!({"type": "object", "properties": {"any": true, "none": false,
        "opt": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        "list": {"type": ["array", "null"]}}, "required": ["none"], "additionalProperties": false});
    assert_eq!(sent(&odd, Rules::Anthropic), card(&odd).input_schema().get());
    let objects = r#"{"additionalProperties":false,"properties":{"any":{},"list":{"type":["array","null"]},"none":{"not":{}},"opt":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}},"required":["none"],"type":"object"}"#;
    check(&odd, Rules::OpenAi, objects);
    check(&odd, Rules::Ollama, objects);
    insta::assert_snapshot!(sent(&odd, Rules::Gemini), @r#"{"properties":{"any":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"items":{"type":"string"},"type":"array"}]},"list":{"items":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"items":{"type":"string"},"type":"array"}]},"nullable":true,"type":"array"},"opt":{"default":null,"nullable":true,"type":"string"}},"type":"object"}"#);
    let bare = json!({"properties": {"l": {"type": "array"}}, "enum": [1], "not": {}});
    check(
        &bare,
        Rules::OpenAi,
        "{\"properties\":{\"l\":{\"items\":{},\"type\":\"array\"}},\"type\":\"object\"}\nthe model is not told enum, not, which this provider has no word for",
    );
    check(&json!({}), Rules::Gemini, r#"{"properties":{},"type":"object"}"#);
    check(
        &json!({"properties": {"a b": {}}}),
        Rules::Anthropic,
        "! its property \"a b\" has a name that the provider refuses; use 1 to 64 of A-Z a-z 0-9 _ . -",
    );
}

#[test]
fn gemini_has_its_own_words() {
    let many = json!({"$schema": "x", "type": "object", "properties": {
        "kind": {"const": "a"}, "level": {"enum": [1, 2], "description": "How much"}, "mode": {"enum": ["x", null]},
        "id": {"type": ["string", "integer"], "description": "Which"}, "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"}, "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        "n": {"type": "integer", "exclusiveMinimum": 0, "minimum": 1}, "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "all": {"allOf": [{"type": "object", "properties": {"p": {"type": "string"}}}, {"required": ["p", "q"]}]}}});
    insta::assert_snapshot!(sent(&many, Rules::Gemini).replace("},\"", "},\n\""), @r#"
    {"properties":{"all":{"properties":{"p":{"type":"string"}},
    "required":["p"],"type":"object"},
    "at":{"format":"date-time","type":"string"},
    "day":{"type":"string"},
    "id":{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"Which"},
    "kind":{"enum":["a"],"type":"string"},
    "level":{"description":"How much (one of: 1, 2)","type":"integer"},
    "map":{"type":"object"},
    "mode":{"enum":["x"],"nullable":true,"type":"string"},
    "n":{"minimum":1,"type":"integer"},
    "pair":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]},
    "type":"array"}},
    "type":"object"}
    the model is not told additionalProperties, exclusiveMinimum, prefixItems, which this provider has no word for
    "#);
}

#[test]
fn a_tool_without_a_form_is_left_out_and_named() {
    let (names, profile) = (ToolNames::default(), ModelProfile::conservative("p", "m"));
    let mut diagnostics = Vec::new();
    let mut cx = Cx { names: &names, profile: &profile, diagnostics: &mut diagnostics, tools: &[] };
    assert!(sendable(&card(&json!({"$ref": "#/x"})), Rules::Gemini, &mut cx).is_none());
    assert!(sendable(&card(&json!({"properties": {}, "not": {}})), Rules::OpenAi, &mut cx).is_some());
    let told: Vec<&str> = diagnostics.iter().map(|note| note.why.as_str()).collect();
    assert_eq!(
        told,
        [
            "the tool \"f\" was left out: its schema refers to \"#/x\", which is not in it; define it there",
            "\"f\": the model is not told not, which this provider has no word for",
        ]
    );
}

/// Schemas as people write them and as they do not, with references that may lead anywhere.
fn schemas() -> impl Strategy<Value = Value> {
    let reference = prop::sample::select(vec![
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#/properties/a/items",
        "#/anyOf/0",
        "#/nowhere",
    ]);
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        Just(json!({"type": "string", "enum": ["x", ""]})),
        Just(json!({"type": ["integer", "null"], "minimum": 1})),
        Just(json!({"const": {"$ref": "#/data"}})),
        reference.prop_map(|reference| json!({"$ref": reference, "title": "t"})),
    ];
    let inner = leaf.prop_recursive(4, 24, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        let word = prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]);
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(
                |(a, b)| json!({"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]})
            ),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
            (word, some).prop_map(|(word, some)| json!({word: some})),
        ]
    });
    (inner.clone(), inner.clone(), inner.clone(), inner, any::<bool>()).prop_map(
        |(a, b, first, second, union)| {
            let mut root =
                json!({"type": "object", "properties": {"a": a}, "$defs": {"a": first, "b": second}});
            if union {
                root["anyOf"] = json!([b, {"required": ["a"]}]);
            }
            root
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_schema_ends_as_an_object_or_with_a_reason(schema in schemas()) {
        for rules in ALL {
            let card = card(&schema);
            match (fitted(&card, rules), fitted(&card, rules)) {
                (Ok(one), Ok(two)) => {
                    prop_assert_eq!(&one.schema, &two.schema, "the same twice");
                    let value: Value = serde_json::from_str(&one.schema).unwrap();
                    prop_assert_eq!(&value["type"], "object");
                    prop_assert!(["anyOf", "oneOf", "allOf", "$ref"].iter().all(|word| value.get(word).is_none()));
                    prop_assert!(check_refs(&value), "{}", one.schema);
                    let (all, data) = (one.schema.matches("$ref").count(), one.schema.matches("#/data").count());
                    prop_assert!(rules.follows_references() || all == data, "{}", one.schema);
                    let again = ToolCard::new("f", "", &RawJson::parse(one.schema.clone()).unwrap()).unwrap();
                    prop_assert_eq!(fitted(&again, rules).unwrap().schema, one.schema, "what fits stays");
                }
                (Err(one), Err(two)) => prop_assert_eq!(one, two),
                (one, two) => prop_assert!(false, "{:?} and {:?}", one, two),
            }
        }
    }
}

fn check_refs(value: &Value) -> bool {
    super::check(value, value).is_ok()
}
