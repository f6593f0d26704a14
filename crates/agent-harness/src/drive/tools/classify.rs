//! The classifier before a person: how long it may take, and what is told when it fails.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{Diagnostic, RawJson};
use agent_tools::{AskRequest, Classified, Classifier, ClassifierError, Matter, Permissions};
use async_trait::async_trait;
use futures_util::FutureExt;

use super::Said;
use super::execute::words_of_panic;

/// The same permissions with a classifier that fails when it takes too long or panics.
pub(super) fn in_time(permissions: &Permissions) -> Cow<'_, Permissions> {
    match &permissions.classifier {
        None => Cow::Borrowed(permissions),
        Some(inner) => {
            let classifier: Arc<dyn Classifier> = Arc::new(InTime(inner.clone()));
            Cow::Owned(Permissions { classifier: Some(classifier), ..permissions.clone() })
        }
    }
}

/// A person is asked now, and nobody before them again; a classifier that failed is told.
pub(super) fn tell(said: &mut Said, request: &AskRequest) {
    said.is_classified = true;
    if let Some(error) = request.classifier_fault() {
        tracing::warn!(%error, "a classifier failed");
        said.told
            .push(Diagnostic { what: "permissions".to_owned(), why: format!("{error}; a person is asked") });
    }
}

#[derive(Debug)]
struct InTime(Arc<dyn Classifier>);

#[async_trait]
impl Classifier for InTime {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn classify(&self, matter: &Matter<'_>, input: &RawJson) -> Result<Classified, ClassifierError> {
        let looking = AssertUnwindSafe(self.0.classify(matter, input)).catch_unwind();
        let fault = |why: String| Err(ClassifierError::new(self.name(), why));
        match tokio::time::timeout(LONGEST, looking).await {
            Ok(Ok(said)) => said,
            Ok(Err(panic)) => fault(format!("it broke down ({})", words_of_panic(&*panic))),
            Err(_) => fault(format!("it took longer than {} s", LONGEST.as_secs())),
        }
    }
}

/// How long a classifier may take over one call.
const LONGEST: Duration = Duration::from_secs(30);
