//! Pipelines as a driver runs them.

#[cfg(test)]
mod pipeline;
