//! The order of events of a parent and its children, with their coordinates (requirement L9).

use agent_store::Store;
use agent_testkit::Reply;

use super::{family, kind, masked, of_children, put, tasks};
use crate::support::{Effects, Points, block, id, log};

#[test]
fn each_session_tells_its_own() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let kinds = vec![kind("one", vec![put("a"), Reply::text("A is put.")])];
        let agent = family(vec![tasks(&["one"]), Reply::text("All done.")], kinds, &store, &effects);
        let (_, end) = agent.say("go").await;
        assert!(end.reason.is_success());
        let parent = store.events(&id(), 0).await.unwrap();
        insta::assert_snapshot!(log(&parent), @"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received go
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        6 [turn_1/0] actions.requested
        7 [turn_1/0] subagent.started one
        8 [turn_1/0] subagent.completed done
        9 [turn_1/0] action.result completed
        10 [turn_1/0] step.completed
        11 [turn_1/1] step.started
        12 [turn_1/1] cache.system_hash
        13 [turn_1/1] step.completed
        14 [turn_1] turn.completed done
        15 [] session.waiting
        ");
        let child = of_children(&parent)[0].0.clone();
        let of_child = store.events(&child, 0).await.unwrap();
        assert!(of_child.iter().all(|event| event.session == child));
        insta::assert_snapshot!(log(&of_child), @"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received Do the one work.
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        6 [turn_1/0] actions.requested
        7 [turn_1/0] action.result completed
        8 [turn_1/0] step.completed
        9 [turn_1/1] step.started
        10 [turn_1/1] cache.system_hash
        11 [turn_1/1] step.completed
        12 [turn_1] turn.completed done
        13 [] session.waiting
        ");
        assert_eq!(masked(child.as_str()), "s.sub-…");
    });
}

/// All that the model of the parent has of a child is one result for its call: the last words, shortened as any output is.
#[test]
fn only_the_last_words_come_back_and_are_shortened() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let kinds = vec![kind("long", vec![put("secret"), Reply::text(long)])];
        let agent = family(vec![tasks(&["long"]), Reply::text("ok")], kinds, &store, &effects);
        agent.say("go").await;
        let told = crate::support::talk(&agent.history().await);
        assert!(told.len() < 60_000, "{} bytes", told.len());
        assert!(told.contains("line 0\n") && !told.contains("put secret"), "{told}");
        assert_eq!(store.blobs(&id()).await.unwrap().len(), 1, "the whole of it can be read on");
    });
}
