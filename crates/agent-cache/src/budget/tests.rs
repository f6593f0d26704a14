//! Budgets over small sequences of bodies.

use super::*;

/// A body with this system text, these tools and so many exchanges behind the first message.
fn body(system: &str, tools: &[&str], exchanges: usize) -> String {
    let tools: Vec<String> =
        tools.iter().map(|name| format!(r#"{{"name":"{name}","input_schema":{{}}}}"#)).collect();
    let long = "Read before you write. ".repeat(200);
    let more: String = (0..exchanges)
        .map(|at| {
            let words = "so far ".repeat(100);
            format!(r#",{{"role":"assistant","content":"{words}{at}"}},{{"role":"user","content":[{{"type":"text","text":"on {at}"}}]}}"#)
        })
        .collect();
    format!(
        r#"{{"model":"claude-opus-5-5","cache_control":{{"type":"ephemeral"}},"tools":[{}],"system":"{system}{long}","messages":[{{"role":"user","content":"Go."}}{more}]}}"#,
        tools.join(",")
    )
}

fn check(budget: &Budget, bodies: &[String], expect: &[&str]) {
    let said = match budget.hold(bodies) {
        Ok(rows) => {
            assert_eq!(rows.len(), bodies.len());
            Vec::new()
        }
        Err(BudgetError::Breached { breaches }) => breaches.iter().map(Breach::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    let first: Vec<&str> = said.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(first.len(), expect.len(), "{said:#?}");
    for (got, expect) in first.iter().zip(expect) {
        assert!(got.starts_with(expect), "{got:?} is not {expect:?}");
    }
}

#[test]
fn a_budget_is_kept_or_each_breach_is_told() {
    let loops: Vec<String> = (0..8).map(|at| body("", &["edit", "read"], at)).collect();
    let strict = Budget { min_hit_rate: Some(0.8), max_cost_ratio: Some(1.001), ..Budget::default() };
    check(&strict, &loops, &[]);
    check(&Budget { min_hit_rate: Some(0.99), ..strict.clone() }, &loops, &["hit rate: "]);

    let mut clock = loops.clone();
    clock[4] = body("It is 12:00:01. ", &["edit", "read"], 4);
    let told = ["request 5: system_changed at system", "request 6: system_changed", "hit rate: ", "cost: "];
    check(&strict, &clock, &told);
    let declared = |step, cause| Rewrite { step, cause, why: "for the test".into() };
    let rewrites = vec![declared(Some(5), Cause::SystemChanged), declared(None, Cause::SystemChanged)];
    check(&Budget { rewrites, min_hit_rate: None, ..strict.clone() }, &clock, &[]);
    let rewrites = vec![declared(Some(2), Cause::Expired)];
    check(
        &Budget { rewrites, ..strict.clone() },
        &loops,
        &["the declared rewrite expired at request 2 did not"],
    );

    let taken_back = [loops[1].clone(), loops[3].clone(), loops[1].clone()];
    check(&Budget::default(), &taken_back, &["request 3: the prefix shrank: "]);
    check(&Budget::default(), &[], &["no request was seen"]);
    check(&Budget::default(), &["nope".to_owned()], &["request 1: the request body is not JSON"]);
}

#[test]
fn the_ideal_writes_each_token_once_and_reads_it_ever_after() {
    let requests: Vec<Request> =
        (0..5).map(|at| Request::read(body("", &["read"], at).as_bytes(), None).unwrap()).collect();
    let simulator = Simulator::new(RuleBook::builtin(), "anthropic");
    let prices = simulator.rules(&requests[0]).prices(4.0, 20.0, "2026-11-30");
    let mut audit = Audit::new(simulator, Some(prices.clone()));
    let rows: Vec<Row> = requests.iter().map(|request| audit.step(request, None, None)).collect();
    let judged = Budget::default().judge(&rows, &prices);
    let ratio = judged.cost_ratio.unwrap();
    assert!((0.98..=1.001).contains(&ratio), "{ratio}");
    // Read from nowhere, the same rows cost what they would without a cache.
    let mut uncached = rows;
    for row in &mut uncached {
        let input = row.usage.total_input();
        row.usage = Usage { input, ..Usage::default() };
    }
    let ratio = Budget::default().judge(&uncached, &prices).cost_ratio.unwrap();
    assert!(ratio > 2.0, "{ratio}");
}

/// An audit and a budget say the same of the same requests, also of those that are written for an hour.
#[test]
fn there_is_one_ideal() {
    let check = |ttl: &str, systems: &[&str]| {
        let marked = |(at, system): (usize, &&str)| {
            let kind = format!(r#"{{"type":"ephemeral","ttl":"{ttl}"}}"#);
            body(system, &["read"], at).replacen(r#"{"type":"ephemeral"}"#, &kind, 1)
        };
        let bodies = systems.iter().enumerate().map(marked);
        let requests: Vec<Request> =
            bodies.map(|body| Request::read(body.as_bytes(), None).unwrap()).collect();
        let simulator = Simulator::new(RuleBook::builtin(), "anthropic");
        let prices = simulator.rules(&requests[0]).prices(4.0, 20.0, "2026-11-30");
        let mut audit = Audit::new(simulator, Some(prices.clone()));
        let rows: Vec<Row> = requests.iter().map(|request| audit.step(request, None, None)).collect();
        let judged = Budget::default().judge(&rows, &prices);
        let (audited, judged) = (audit.summary().cost_ratio.unwrap(), judged.cost_ratio.unwrap());
        assert!((audited - judged).abs() < 1e-9, "{ttl} {systems:?}: {audited} is not {judged}");
        judged
    };
    for ttl in ["5m", "1h"] {
        let kept = check(ttl, &["", "", "", ""]);
        assert!((0.98..=1.001).contains(&kept), "{ttl}: {kept}");
        assert!(check(ttl, &["", "It is 12:00. ", "It is 12:01. ", "It is 12:02. "]) > 2.0);
    }
}

#[test]
fn budgets_are_read_strictly() {
    let check = |json: &str, expect: &str| {
        let error = serde_json::from_str::<Budget>(json).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    check(r#"{"min_hitrate":0.9}"#, "min_hit_rate");
    check(r#"{"rewrites":[{"step":2,"cause":"expire","why":"w"}]}"#, "expired");
    check(r#"{"rewrites":[{"step":2,"cause":"expired"}]}"#, "why");
    // The name in reports is the one that budgets use.
    let rewrite: Rewrite = serde_json::from_str(r#"{"cause":"tools_reordered","why":"w"}"#).unwrap();
    assert_eq!(rewrite.cause.name(), "tools_reordered");
    // The reader's own list names every cause: one that is called otherwise would be missed here.
    let known = serde_json::from_str::<Cause>("\"?\"").unwrap_err().to_string();
    let names: Vec<&str> = known.split('`').skip(3).step_by(2).collect();
    assert!(names.len() > 20, "{known}");
    for name in names {
        let cause: Cause = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!(cause.name(), name);
    }
}

#[test]
fn a_bound_that_is_no_number_is_not_kept_and_no_count_is_no_read() {
    let request = Request::read(body("", &["read"], 0).as_bytes(), None).unwrap();
    let simulator = || Simulator::new(RuleBook::builtin(), "anthropic");
    let prices = simulator().rules(&request).prices(4.0, 20.0, "2026-11-30");
    let check = |budget: Budget, usage: Option<Usage>, breaches: usize| {
        let mut audit = Audit::new(simulator(), None);
        let rows = [audit.step(&request, None, usage.as_ref())];
        let judged = budget.judge(&rows, &prices);
        assert_eq!(judged.breaches.len(), breaches, "{budget:?}: {judged:?}");
    };
    let nan = Some(f64::NAN);
    check(Budget { min_hit_rate: nan, max_cost_ratio: nan, ..Budget::default() }, None, 2);
    let half = Budget { min_hit_rate: Some(0.5), ..Budget::default() };
    check(half, Some(Usage::default()), 1);
    check(Budget { min_hit_rate: Some(0.0), ..Budget::default() }, Some(Usage::default()), 0);
}
