//! One step: what the model said and the answer to each of its calls, paired by construction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::{
    AssistantPart, CallId, Finish, Origin, Response, ToolCall, ToolInput, ToolOutput, ToolResult, Usage,
};

/// A finished step.
///
/// Invariant: every client-executed call has exactly one result, results stand in call order, no result is
/// without a call and no two calls share an id (requirement M4). Provider-executed calls are provider parts
/// and take no part in this. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Parts")]
pub struct StepRecord {
    response: Arc<Response>,
    results: Arc<[ToolResult]>,
}

/// A response some of whose calls still wait for their results.
///
/// It lives in a checkpoint, never in a history. [`PendingStep::finish`] consumes it. Clones share the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStep {
    response: Arc<Response>,
    results: BTreeMap<CallId, ToolResult>,
}

/// Why a step cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// A call has no result.
    #[error("call {0} has no result; answer every call, with an error result if it did not run")]
    Unanswered(CallId),
    /// A result answers no call of this step.
    #[error("the result for {0} answers no call of this step; use the id of a call the model made")]
    Unasked(CallId),
    /// A call has two results.
    #[error("call {0} has two results; the first one stands")]
    AnsweredTwice(CallId),
    /// Two calls share an id.
    #[error("two calls have the id {0}; rename one before it enters the history")]
    DuplicateCall(CallId),
}

/// What was mended when a step was loaded that broke the pairing rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A call without a result was given an error result.
    Answered(CallId),
    /// A result without a call was left out.
    Dropped(CallId),
    /// A call whose id was taken was renamed.
    Renamed {
        /// The id as stored.
        from: CallId,
        /// The id in the view.
        to: CallId,
    },
}

/// The words of a result that stands in for one that is missing.
pub const MISSING_RESULT: &str = "This call was interrupted and its result was lost. It may or may not have had an effect: check before you repeat it.";

impl StepRecord {
    /// Pairs calls and results; results may come in any order.
    ///
    /// ```
    /// use agent_core::{AssistantPart, CallId, PairingError, Response, StepRecord, ToolCall, ToolInput};
    ///
    /// let call = ToolCall { id: CallId::new("c1")?, name: "grep".into(), input: ToolInput::finished("{}"), data: None };
    /// let said = Response::of(vec![AssistantPart::ToolCall(call)]);
    /// assert!(matches!(StepRecord::new(said, vec![]), Err(PairingError::Unanswered(_))));
    /// # Ok::<(), agent_core::IdError>(())
    /// ```
    pub fn new(response: Response, results: Vec<ToolResult>) -> Result<Self, PairingError> {
        let mut pending = PendingStep::new(response)?;
        for result in results {
            pending.answer(result)?;
        }
        pending.finish().map_err(|pending| {
            let missing = pending.unanswered().next().map(|call| call.id.clone());
            PairingError::Unanswered(missing.unwrap_or_else(|| CallId::positional(0)))
        })
    }

    /// Mends a step that came from outside, saying what was changed (requirement M4).
    pub fn repaired(mut response: Response, results: Vec<ToolResult>) -> (Self, Vec<Repair>) {
        let mut repairs = Vec::new();
        let mut taken = BTreeSet::new();
        for call in response.parts.iter_mut().filter_map(call_mut) {
            if !taken.insert(call.id.clone()) {
                let to = free_variant(&call.id, |id| taken.contains(id));
                taken.insert(to.clone());
                repairs.push(Repair::Renamed { from: call.id.clone(), to: to.clone() });
                call.id = to;
            }
        }
        let mut by_call = BTreeMap::new();
        for result in results {
            let known = taken.contains(&result.call);
            if !known || by_call.contains_key(&result.call) {
                repairs.push(Repair::Dropped(result.call));
            } else {
                by_call.insert(result.call.clone(), result);
            }
        }
        let results = response.calls().map(|call| {
            by_call.remove(&call.id).unwrap_or_else(|| {
                repairs.push(Repair::Answered(call.id.clone()));
                ToolResult { call: call.id.clone(), output: ToolOutput::error(MISSING_RESULT) }
            })
        });
        let results = results.collect();
        (Self { response: Arc::new(response), results }, repairs)
    }

    /// The whole response.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// What the model said, in order.
    pub fn parts(&self) -> &[AssistantPart] {
        &self.response.parts
    }

    /// The model's words in it, joined; empty when it had none.
    pub fn text(&self) -> String {
        self.response.parts.iter().filter_map(AssistantPart::as_text).collect()
    }

    /// The results, in the order of their calls.
    pub fn results(&self) -> &[ToolResult] {
        &self.results
    }

    /// Each call with its result, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
        self.response.calls().zip(self.results.iter())
    }

    /// Tokens of the call that gave this step.
    pub fn usage(&self) -> &Usage {
        &self.response.usage
    }

    /// Why the model stopped.
    pub fn finish(&self) -> &Finish {
        &self.response.finish
    }

    /// Which model said it, under which message id.
    pub fn origin(&self) -> &Origin {
        &self.response.origin
    }
}

impl PendingStep {
    /// A response whose calls have ids of their own; see [`crate::History::admit`] for one that may not.
    pub fn new(response: Response) -> Result<Self, PairingError> {
        let mut seen = BTreeSet::new();
        for call in response.calls() {
            if !seen.insert(&call.id) {
                return Err(PairingError::DuplicateCall(call.id.clone()));
            }
        }
        Ok(Self { response: Arc::new(response), results: BTreeMap::new() })
    }

    /// Takes the result of one call. The first one stands.
    pub fn answer(&mut self, result: ToolResult) -> Result<(), PairingError> {
        if !self.response.calls().any(|call| call.id == result.call) {
            return Err(PairingError::Unasked(result.call));
        }
        if self.results.contains_key(&result.call) {
            return Err(PairingError::AnsweredTwice(result.call));
        }
        self.results.insert(result.call.clone(), result);
        Ok(())
    }

    /// Calls that have their result, in order.
    pub fn answered(&self) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
        self.response.calls().filter_map(|call| Some((call, self.results.get(&call.id)?)))
    }

    /// Calls without a result, in order.
    pub fn unanswered(&self) -> impl Iterator<Item = &ToolCall> {
        self.response.calls().filter(|call| !self.results.contains_key(&call.id))
    }

    /// What the model said.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// The record, once every call is answered; until then the pending step comes back.
    pub fn finish(mut self) -> Result<StepRecord, Box<Self>> {
        if self.unanswered().next().is_some() {
            return Err(Box::new(self));
        }
        let results = self.response.calls().filter_map(|call| self.results.remove(&call.id)).collect();
        Ok(StepRecord { response: self.response, results })
    }

    /// The record with `output` as the answer to every call that still has none (requirement L8).
    pub fn finish_with(mut self, mut output: impl FnMut(&ToolCall) -> ToolOutput) -> StepRecord {
        let results = self.response.calls().map(|call| {
            let given = self.results.remove(&call.id);
            given.unwrap_or_else(|| ToolResult { call: call.id.clone(), output: output(call) })
        });
        let results = results.collect();
        StepRecord { response: self.response, results }
    }
}

/// Makes the calls of a response unique among themselves and against ids that are taken (case M01).
///
/// A second call equal in id, name and input is the same call and is dropped; another one with a taken id gets
/// the next free variant, the same one each time.
pub(crate) fn disambiguate(response: &mut Response, taken: impl Fn(&CallId) -> bool) {
    if response.calls().nth(1).is_none() {
        // One call has nothing to be told apart from but the history.
        let alone = response.parts.iter_mut().find_map(call_mut).filter(|call| taken(&call.id));
        alone.into_iter().for_each(|call| call.id = free_variant(&call.id, &taken));
        return;
    }
    let mut given: Vec<(CallId, String, ToolInput)> = Vec::new();
    let mut used: BTreeSet<CallId> = BTreeSet::new();
    response.parts.retain_mut(|part| {
        let Some(call) = call_mut(part) else { return true };
        let as_given = (call.id.clone(), call.name.clone(), call.input.clone());
        if given.contains(&as_given) {
            return false;
        }
        if taken(&call.id) || used.contains(&call.id) {
            call.id = free_variant(&call.id, |id| taken(id) || used.contains(id));
        }
        used.insert(call.id.clone());
        given.push(as_given);
        true
    });
}

fn free_variant(id: &CallId, taken: impl Fn(&CallId) -> bool) -> CallId {
    let mut n = 2;
    loop {
        let variant = id.variant(n);
        if !taken(&variant) {
            return variant;
        }
        n += 1;
    }
}

fn call_mut(part: &mut AssistantPart) -> Option<&mut ToolCall> {
    if let AssistantPart::ToolCall(call) = part { Some(call) } else { None }
}

/// The stored form of a step; reading it checks the invariant.
#[derive(Deserialize)]
pub(crate) struct Parts {
    response: Response,
    results: Vec<ToolResult>,
}

impl Parts {
    pub(crate) fn repaired(self) -> (StepRecord, Vec<Repair>) {
        StepRecord::repaired(self.response, self.results)
    }
}

impl TryFrom<Parts> for StepRecord {
    type Error = PairingError;
    fn try_from(parts: Parts) -> Result<Self, PairingError> {
        Self::new(parts.response, parts.results)
    }
}

impl Serialize for StepRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Lent<'s> {
            response: &'s Response,
            results: &'s [ToolResult],
        }
        Lent { response: &self.response, results: &self.results }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CallId {
        CallId::new(text).unwrap()
    }

    fn call(name: &str, input: &str) -> AssistantPart {
        AssistantPart::ToolCall(ToolCall {
            id: id(name),
            name: "t".into(),
            input: ToolInput::finished(input),
            data: None,
        })
    }

    fn result(name: &str) -> ToolResult {
        ToolResult { call: id(name), output: ToolOutput::text(name) }
    }

    fn ids(response: &Response) -> Vec<&str> {
        response.calls().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn results_stand_in_call_order() {
        let said = Response::of(vec![call("a", "{}"), call("b", "{}")]);
        let step = StepRecord::new(said, vec![result("b"), result("a")]).unwrap();
        let order: Vec<_> =
            step.pairs().map(|(call, result)| (call.id.as_str(), result.call.as_str())).collect();
        assert_eq!(order, [("a", "a"), ("b", "b")]);
    }

    #[test]
    fn what_breaks_the_pairing_is_refused() {
        let check = |calls: &[&str], results: &[&str], expect: PairingError| {
            let said = Response::of(calls.iter().map(|name| call(name, "{}")).collect());
            let error = StepRecord::new(said, results.iter().map(|name| result(name)).collect()).unwrap_err();
            assert_eq!(error, expect);
        };
        check(&["a"], &[], PairingError::Unanswered(id("a")));
        check(&[], &["a"], PairingError::Unasked(id("a")));
        check(&["a"], &["a", "a"], PairingError::AnsweredTwice(id("a")));
        check(&["a", "a"], &["a"], PairingError::DuplicateCall(id("a")));
    }

    #[test]
    fn the_same_rule_holds_for_stored_steps() {
        let step = StepRecord::new(Response::of(vec![call("a", "{}")]), vec![result("a")]).unwrap();
        let text = serde_json::to_string(&step).unwrap();
        assert_eq!(serde_json::from_str::<StepRecord>(&text).unwrap(), step);
        let broken = text.replace(r#""results":[{"call":"a""#, r#""results":[{"call":"b""#);
        assert!(serde_json::from_str::<StepRecord>(&broken).is_err());
        let (mended, repairs) = serde_json::from_str::<Parts>(&broken).unwrap().repaired();
        assert_eq!(repairs, [Repair::Dropped(id("b")), Repair::Answered(id("a"))]);
        assert!(mended.results()[0].output.is_error());
    }

    #[test]
    fn ids_given_twice() {
        let mut same = Response::of(vec![call("x", "{}"), call("x", "{}")]);
        disambiguate(&mut same, |_| false);
        assert_eq!(ids(&same), ["x"], "the same call said twice runs once");

        let mut other = Response::of(vec![call("x", r#"{"p":1}"#), call("x", r#"{"p":2}"#)]);
        disambiguate(&mut other, |_| false);
        assert_eq!(ids(&other), ["x", "x~2"]);

        let mut reused = Response::of(vec![call("x", "{}")]);
        disambiguate(&mut reused, |id| ["x", "x~2"].contains(&id.as_str()));
        assert_eq!(ids(&reused), ["x~3"], "an id of an earlier step is taken");
    }

    #[test]
    fn finishing_early_answers_every_call() {
        let mut pending = PendingStep::new(Response::of(vec![call("a", "{}"), call("b", "{}")])).unwrap();
        pending.answer(result("b")).unwrap();
        assert_eq!(pending.clone().finish().unwrap_err().unanswered().count(), 1);
        let step = pending.finish_with(|call| ToolOutput::error(format!("{} was not run", call.id)));
        assert_eq!(step.results()[0].output.plain(), "a was not run");
        assert_eq!(step.results()[1].output.plain(), "b");
    }
}
