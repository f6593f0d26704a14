//! The page of a few verdicts.

use std::time::Duration;

use agent_cache::{Audit, Request, Row, RuleBook, Simulator};

use super::*;
use crate::cmd::cache::scenario::Scenario;

fn body(system: &str, exchanges: usize) -> String {
    let long = "Read before you write. ".repeat(200);
    let more: String = (0..exchanges)
        .map(|at| format!(r#",{{"role":"assistant","content":"so far {at}"}},{{"role":"user","content":[{{"type":"text","text":"on"}}]}}"#))
        .collect();
    format!(
        r#"{{"model":"claude-opus-5-5","cache_control":{{"type":"ephemeral"}},"tools":[{{"name":"look","input_schema":{{}}}}],"system":"{system}{long}","messages":[{{"role":"user","content":"Go."}}{more}]}}"#
    )
}

/// A verdict on these bodies, of a scenario with hostile words.
fn verdict(name: &str, bodies: &[String]) -> Verdict {
    let scenario = r#"{"about":"<script>alert('x')</script> & more","model":"anthropic/claude-opus-5-5",
        "turns":[{"user":"Go.","steps":[{"say":"Done."}]}],"budget":{"min_hit_rate":0.5,"max_cost_ratio":1.01}}"#;
    let scenario = Scenario::read(scenario).unwrap();
    let simulator = Simulator::new(RuleBook::builtin(), "anthropic");
    let requests: Vec<Request> =
        bodies.iter().map(|it| Request::read(it.as_bytes(), None).unwrap()).collect();
    let prices = simulator.rules(&requests[0]).prices(4.0, 20.0, "2026-11-30");
    let mut audit = Audit::new(simulator, Some(prices.clone()));
    let rows: Vec<Row> =
        requests.iter().map(|request| audit.step(request, Some(Duration::ZERO), None)).collect();
    let judged = scenario.budget.judge(&rows, &prices);
    let findings = judged.breaches.iter().cloned().map(Finding::Breach).collect();
    Verdict { name: name.into(), scenario, rows, judged, findings }
}

#[test]
fn the_page_stands_alone_and_nothing_in_it_is_markup_by_accident() {
    let good: Vec<String> = (0..4).map(|at| body("", at)).collect();
    let bad: Vec<String> = (0..4).map(|at| body(&format!("It is <b>12:00:0{at}</b>. "), at)).collect();
    let page = page(&[verdict("good", &good), verdict("bad", &bad)]);
    for absent in ["<script", "http://", "https://", "src=", "url(", "@import", "<b>", "onclick"] {
        assert!(!page.contains(absent), "{absent}");
    }
    for present in [
        "<meta name=\"viewport\"",
        "prefers-color-scheme: dark",
        "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; more",
        "<title>Cache audit: 1 of 2 failed</title>",
        "system_changed at system",
        "read 0; written",
        "Paid more than once: tools[0]",
        "aria-label=\"4 requests",
    ] {
        assert!(page.contains(present), "{present}");
    }
    assert_eq!(page.matches("<g><title>").count(), 8, "a bar for each request");
    well_formed(&page);
}

/// Every element that is opened is closed, in order.
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let inner = tag.split('>').next().unwrap();
        let name = inner.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if inner.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{inner}");
        } else if !inner.ends_with('/') && !["!DOCTYPE", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn numbers_are_grouped() {
    let told: Vec<String> = [0, 12, 999, 1_000, 1_234_567].map(grouped).into();
    assert_eq!(told, ["0", "12", "999", "1,000", "1,234,567"]);
}
