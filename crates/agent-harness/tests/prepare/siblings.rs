//! A model of the same provider takes a step over: it is not told what the other one sealed (requirement P3).

use std::sync::Arc;

use agent_core::{Entry, LanguageModel, ModelProfile};
use agent_prepare::Overrides;
use agent_testkit::{Reply, ScriptedModel};

use super::{agent, changing, is_done, say};
use crate::support::{Keeping, block};

/// A script whose steps think, under a name of its own.
fn named(model: &str) -> Keeping {
    let thinks = || Reply::tool("look", r#"{"what":"y"}"#).thinking("Let me see.");
    let script = ScriptedModel::new(vec![thinks(), thinks(), thinks(), Reply::text("ok")]).by_history();
    Keeping::new(script.with_profile(ModelProfile::conservative("acme", model)))
}

/// The steps whose thinking each request of a model held.
fn sealed(model: &Keeping) -> Vec<Vec<usize>> {
    let bodies = model.bodies().into_iter().map(|body| String::from_utf8(body.to_vec()).unwrap());
    let held =
        |body: String| (0..4).filter(|at| body.contains(&format!("scripted-signature-{at:04}"))).collect();
    bodies.map(held).collect()
}

#[test]
fn each_model_gets_back_what_it_sealed_itself() {
    block(async {
        let (one, two) = (named("pilot-1"), named("pilot-2"));
        let (own, switched) = (one.clone(), two.clone());
        let agent = agent(ScriptedModel::new(vec![]), |config| {
            config.model = Arc::new(own);
            config.pipeline = changing(move |cx| {
                let is_odd = cx.of.step.number() % 2 == 1;
                let model = is_odd.then(|| Arc::new(switched.clone()) as Arc<dyn LanguageModel>);
                Overrides { model, ..Overrides::default() }
            });
        });
        is_done(&say(&agent, "go").await.1);
        assert_eq!(sealed(&one), [vec![], vec![0]]);
        assert_eq!(sealed(&two), [vec![], vec![1]]);
        let history = agent.history().await;
        let asked = history.entries().iter().filter_map(|entry| match entry {
            Entry::Step(step) => step.origin().asked.as_deref(),
            Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), ["pilot-1", "pilot-2", "pilot-1", "pilot-2"]);
    });
}
