//! What a session's prompt is made of, and what is told when an agent would say something else now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_core::{Diagnostic, EventBody, SystemBlock};
use agent_harness::{Harness, HarnessConfig, PromptSource, SourceError};
use agent_prompt::{Caps, Fragment, Layer, Prompt, Session, Static, Value};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use async_trait::async_trait;

use crate::support::{Points, block, id, system_of, watch};

/// A source that counts how often it is asked.
#[derive(Clone, Debug, Default)]
struct Place(Arc<AtomicUsize>);

#[async_trait]
impl PromptSource for Place {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        let place = Value::session(format!("You are in room {number}."));
        prompt.add(
            Fragment::<Session>::new(Layer::Project, "place", place)
                .map_err(|error| SourceError::new("place", error))?,
        );
        prompt.add(Fragment::<Static>::new(Layer::Auto, "taste", "You like tea.").unwrap());
        prompt.report(Diagnostic { what: "prompt.place".into(), why: "The door was closed.".into() });
        Ok(())
    }
}

fn managed(prompt: &mut Prompt, key: &str, text: &'static str) {
    prompt.add(Fragment::<Static>::new(Layer::Managed, key, text).unwrap());
}

/// Begins a session with one prompt and goes on with another one; the stored blocks and what was told.
async fn resumed(
    first: (Prompt, Option<Place>),
    second: (Prompt, Option<Place>),
) -> (Vec<String>, Vec<String>) {
    let store = Points::default();
    let model = ScriptedModel::new(vec![Reply::text("one"), Reply::text("two")]).by_history();
    let mut told = Vec::new();
    for (words, (prompt, source)) in [("a", first), ("b", second)] {
        let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
        config.prompt = prompt;
        config.sources = source.into_iter().map(|source| Arc::new(source) as _).collect();
        let (events, _) = watch(Harness::new(config).session(id()).send(words).await.unwrap()).await;
        told.extend(events.into_iter().filter_map(|event| {
            let EventBody::RequestDiagnostic(told) = event.body else { return None };
            Some(format!("{words} {}: {}", told.what, told.why))
        }));
    }
    let meta = store.load(&id()).await.unwrap().unwrap().meta;
    (meta.system.iter().map(SystemBlock::text).map(str::to_owned).collect(), told)
}

#[test]
fn sources_are_asked_once_in_the_life_of_a_session() {
    block(async {
        let place = Place::default();
        let begin = || (system_of(&["Be brief."]), Some(place.clone()));
        let (system, told) = resumed(begin(), begin()).await;
        assert_eq!(system, ["You like tea.", "Be brief.", "You are in room 0."]);
        assert_eq!(told, ["a prompt.place: The door was closed."], "what is told is told at the beginning");
        assert_eq!(place.0.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn what_the_agent_would_say_now_is_told_by_its_key() {
    let check = |first: Prompt, second: Prompt, expect: &[&str]| {
        block(async {
            let (_, told) = resumed((first, None), (second, None)).await;
            let told: Vec<_> = told.iter().map(|line| line.split("; begin").next().unwrap()).collect();
            assert_eq!(told, expect);
        });
    };
    let with_policy = |text| {
        let mut prompt = system_of(&["Be brief."]);
        managed(&mut prompt, "policy", text);
        prompt
    };
    let brief = || system_of(&["Be brief."]);
    check(brief(), brief(), &[]);
    check(with_policy("Push."), with_policy("Push."), &[]);
    let lacks = "b system: the session keeps the system prompt it began with, which does not have what the agent says now under `block 1`";
    check(brief(), system_of(&["Be brief.", "Be kind."]), &[lacks]);
    let more = "b system: the session keeps the system prompt it began with, which has a block that the agent has no more";
    check(system_of(&["Be brief.", "Be kind."]), brief(), &[more]);
    let policy = "b system: the managed instructions `policy` are not in force in this session, which keeps the system prompt it began with";
    check(brief(), with_policy("Push."), &[policy]);
    // The old policy is a static block that the agent has no more.
    check(with_policy("Push."), with_policy("Never push."), &[more, policy]);
    let mut both = Prompt::new(Caps::default());
    both.add(Fragment::<Session>::new(Layer::Session, "user", Value::session("Ada")).unwrap());
    check(Prompt::default(), both, &[]);
}
