//! What git says is true at this moment; it cannot stand in a static block, frozen as a snapshot neither.
use agent_prompt::{EnvironmentFacts, Fragment, Layer, RepositoryFacts, Static};

fn main() {
    let repository = RepositoryFacts { status: Some(" M src/lib.rs".into()), ..RepositoryFacts::default() };
    let _ = Fragment::<Static>::new(Layer::Session, "git", &repository);
    let _ = Fragment::<Static>::new(Layer::Session, "git", repository.status.clone().unwrap_or_default());
    let facts = EnvironmentFacts { repository: Some(repository), ..EnvironmentFacts::default() };
    let snapshot = facts.snapshot().unwrap();
    let _ = Fragment::<Static>::new(Layer::Session, "environment", &snapshot);
}
