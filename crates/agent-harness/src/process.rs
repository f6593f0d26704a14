//! What belongs to the whole process and to no session: credentials, the project, and what was spent.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use agent_core::{ModelProfile, Usage};

use crate::changes::model_name;
use crate::{Observed, Watch};

/// The state of a process (requirement K2): handed to agents in [`crate::HarnessConfig::process`], and to nobody by other ways, so
/// that a test has one of its own and nothing is left of it. Clones share it; so do sub-agents and runs beside a session.
///
/// It stays small: what belongs to a session is in [`crate::SessionView`].
#[derive(Clone, Default)]
pub struct Process(Arc<Inner>);

#[derive(Default)]
struct Inner {
    config: ProcessConfig,
    root: OnceLock<PathBuf>,
    spent: Observed<Spending>,
}

/// What a process begins with.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct ProcessConfig {
    /// Its name among others, for logs and leases.
    pub id: String,
    /// The folder it was started in.
    pub cwd: PathBuf,
    /// What it signs in with, by name.
    pub credentials: BTreeMap<String, Secret>,
}

/// What nothing prints.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// What was spent on each model, by `PROVIDER/MODEL`.
pub type Spending = BTreeMap<String, ModelSpending>;

/// What was spent on one model.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelSpending {
    /// Its requests, those that failed included.
    pub requests: u64,
    /// Its tokens.
    pub usage: Usage,
    /// What they cost, in US dollars; `None` where its prices are not known.
    pub cost_usd: Option<f64>,
}

/// The root of the project was set before, and stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the root of the project is {} already, and is set once in the life of a process", .0.display())]
#[non_exhaustive]
pub struct RootIsSet(pub PathBuf);

impl Process {
    /// A process of which nothing was spent.
    pub fn new(config: ProcessConfig) -> Self {
        Self(Arc::new(Inner { config, ..Inner::default() }))
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.0.config.id
    }

    /// The folder it was started in.
    pub fn cwd(&self) -> &Path {
        &self.0.config.cwd
    }

    /// The root of the project, once it was set.
    pub fn root(&self) -> Option<&Path> {
        self.0.root.get().map(PathBuf::as_path)
    }

    /// Sets the root of the project; the same one may be set again.
    ///
    /// # Errors
    /// When it is another one already.
    pub fn set_root(&self, root: impl Into<PathBuf>) -> Result<(), RootIsSet> {
        let root = root.into();
        let set = self.0.root.get_or_init(|| root.clone());
        if *set == root { Ok(()) } else { Err(RootIsSet(set.clone())) }
    }

    /// What it signs in with under this name.
    pub fn credential(&self, name: &str) -> Option<&Secret> {
        self.0.config.credentials.get(name)
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spending {
        self.0.spent.get()
    }

    /// Watches what is spent.
    pub fn watch(&self) -> Watch<Spending> {
        self.0.spent.watch()
    }

    /// Counts what requests to a model used.
    pub fn pay(&self, model: &ModelProfile, requests: u64, usage: &Usage) {
        let (name, usage) = (model_name(model), usage.clone());
        let cost = model.prices.as_ref().map(|prices| prices.cost(&usage));
        self.0.spent.update(move |spent| {
            let of = spent.entry(name).or_default();
            of.requests += requests;
            of.usage += &usage;
            of.cost_usd = cost.map(|cost| of.cost_usd.unwrap_or(0.0) + cost);
        });
    }
}

impl Secret {
    /// Keeps it.
    pub fn new(words: impl Into<Arc<str>>) -> Self {
        Self(words.into())
    }

    /// Gives it away, to whoever signs in with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(a secret)")
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { config, root, spent } = &*self.0;
        f.debug_struct("Process")
            .field("config", config)
            .field("root", &root.get())
            .field("spent", &spent.get())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::Prices;

    use super::*;

    fn used(output: u64) -> Usage {
        Usage { output, ..Usage::default() }
    }

    #[test]
    fn nothing_prints_a_credential() {
        let credentials = BTreeMap::from([("acme".to_owned(), Secret::new("swordfish"))]);
        let process = Process::new(ProcessConfig { credentials, id: "p1".into(), cwd: "/work".into() });
        let printed = format!("{process:?} {process:#?}");
        assert!(printed.contains("acme") && !printed.contains("swordfish"), "{printed}");
        assert_eq!(process.credential("acme").map(Secret::expose), Some("swordfish"));
        assert_eq!(process.credential("other"), None);
        assert_eq!((process.id(), process.cwd()), ("p1", Path::new("/work")));
    }

    #[test]
    fn the_root_is_set_once() {
        let process = Process::default();
        assert_eq!(process.root(), None);
        process.set_root("/a").unwrap();
        process.clone().set_root("/a").unwrap();
        let error = process.set_root("/b").unwrap_err();
        insta::assert_snapshot!(error, @"the root of the project is /a already, and is set once in the life of a process");
        assert_eq!(process.root(), Some(Path::new("/a")));
        assert_eq!(Process::default().root(), None, "another one begins anew");
    }

    #[test]
    fn what_is_spent_is_counted_by_model() {
        let process = Process::default();
        let free = ModelProfile::conservative("acme", "unknown");
        let prices = Prices {
            input: 1.0,
            output: 10.0,
            cache_read: 0.1,
            cache_write_5m: 1.25,
            cache_write_1h: 2.0,
            as_of: "2026-11-30".into(),
        };
        let priced = ModelProfile { prices: Some(prices), ..ModelProfile::conservative("acme", "priced") };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).for_each(|_| process.pay(&priced, 1, &used(1_000))));
            }
        });
        process.pay(&free, 2, &used(7));
        let spent = process.spent();
        let names: Vec<&str> = spent.keys().map(String::as_str).collect();
        assert_eq!(names, ["acme/priced", "acme/unknown"]);
        let [priced, free] = [&spent["acme/priced"], &spent["acme/unknown"]];
        assert_eq!((priced.requests, priced.usage.output, free.requests), (100, 100_000, 2));
        assert!(priced.cost_usd.is_some_and(|cost| (cost - 1.0).abs() < 1e-9), "{priced:?}");
        assert_eq!(free.cost_usd, None);
    }
}
