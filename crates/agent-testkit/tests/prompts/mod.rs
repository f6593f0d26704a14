//! Snapshots of prompts and steps, and what cannot be shown.

use agent_core::{Mark, MarkPoint, RawJson, ToolCard, Ttl};
use agent_prompt::{Beside, Fragment, Layer, Notes, Prompt, Session, Source, Static, Step, Value};
use agent_testkit::{Redactions, render_prefixes, render_prompt};

#[test]
fn a_prompt_shows_what_stays_how_long() {
    let mut prompt = Prompt::default();
    prompt.add(Fragment::<Static>::new(Layer::Session, "role", "You mend clocks.\nSlowly.").unwrap());
    let tone = |layer, text| Fragment::<Session>::new(layer, "tone", Value::session(text)).unwrap();
    prompt.add(tone(Layer::User, "Be dry.").with_source(Source::Config("agent.toml".into())));
    prompt.add(tone(Layer::Managed, "Be kind in 1.2.3."));
    prompt.add(
        Fragment::<Session>::new(Layer::Session, "place", Value::session("You are in /srv/run-7.")).unwrap(),
    );
    prompt.suppress(Layer::Auto, "learned", Source::Code).unwrap();
    let assembled = prompt.assemble();
    let left = Fragment::<Step>::new(Layer::Session, "left", "3 steps are left.").unwrap();
    let notes = assembled.step_notes(&Notes::default(), &[left]);
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tools = [ToolCard::new("wind", "Winds.", &schema).unwrap()];
    let marks = [Mark { at: MarkPoint::Tools, ttl: Ttl::OneHour }];
    let explanation = assembled.explain(Beside { tools: &tools, notes: &[&notes], marks: &marks });
    let redactions = Redactions::default().hashes().versions().path("/srv/run-7", "[dir]");
    insta::assert_snapshot!(render_prompt(&explanation, &redactions), @"
    tools · 1 tools · [hash 1]
    [tool] wind · 7 tokens · [hash 1] · breakpoint 1h
    system · 3 texts, 1 static · 31 tokens · [hash]
    [static] role · session · code · 6 tokens · [hash 2]
        You mend clocks.
        Slowly.
    [session] place · session · code · 5 tokens · [hash]
        You are in [dir].
    [session] tone · managed · code · 20 tokens · [hash 3]
      (over: session · user · config agent.toml)
        Managed instructions. They override every other instruction:

        Be kind in [version].
    notes · 1 texts
    [step] left · session · code · 5 tokens · [hash 4]
        3 steps are left.
    [not said] learned · auto · code
    ");
}

#[test]
fn a_step_that_breaks_its_prefix_is_seen_at_once_and_a_bad_body_is_told() {
    let body = |rules: &str, more: &str| {
        let rules = format!("Today is {rules}. {}", "Wind every clock once. ".repeat(120));
        format!(
            r#"{{"model":"claude-opus-5-5","max_tokens":9,"system":[{{"type":"text","text":"{rules}","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hi"}}{more}]}}"#
        )
    };
    let more = r#",{"role":"assistant","content":"Yes?"},{"role":"user","content":"Go on."}"#;
    let steps = [body("2026-11-30", ""), body("2026-11-30", more), body("2026-12-01", more)];
    // The date is replaced in what is shown, and is a break all the same.
    insta::assert_snapshot!(render_prefixes(&steps, &Redactions::default().hashes()).unwrap(), @"
    1 · 0 of 2833 bytes, 0 tokens shared · tools [hash 1] · system [hash 2] · marks system[0] 5m · read 0, written 702, new 10
    2 · 2833 of 2893 bytes, 709 tokens shared · tools [hash 1] · system [hash 2] · marks system[0] 5m · read 702, written 0, new 26
    3 · 0 of 2893 bytes, 0 tokens shared · tools [hash 1] · system [hash 3] · marks system[0] 5m · read 0, written 702, new 26
        broke at system[0]: system_changed, 702 tokens lost
          before: [date].
          after: [date].
    ");

    let bad = render_prefixes(&[steps[0].as_str(), "{}"], &Redactions::none()).unwrap_err();
    insta::assert_snapshot!(bad, @"request 2: the request body has neither `messages` nor `input`; give a body of Anthropic Messages, OpenAI Chat or OpenAI Responses");
}
