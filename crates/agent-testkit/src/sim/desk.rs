//! Decides what answers a request: a reply, a fault in front of it, or a recording.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Source;
use crate::fault::{Fault, RawReply};
use crate::pick::Pick;
use crate::script::{Reply, Script, ScriptError};

/// The source with what was given from it so far.
#[derive(Debug)]
pub(super) struct Desk {
    source: Source,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    /// Replies given in full.
    served: usize,
    /// One past the highest reply given.
    reached: usize,
    /// Faults given, by reply.
    faults: BTreeMap<usize, usize>,
}

/// What answers a request.
#[derive(Debug)]
pub(super) enum Serving<'d> {
    /// A reply at its position, with a fault in front of it or none.
    Reply(usize, &'d Reply, Option<&'d Fault>),
    Recorded(&'d RawReply),
    /// What was asked is told back, as the reply at this position.
    Echo(usize),
}

impl Desk {
    pub(super) fn new(source: Source) -> Self {
        Self { source, given: Mutex::default() }
    }

    pub(super) fn next(&self, pick: Pick, body: &[u8]) -> Result<Serving<'_>, ScriptError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let position = pick.position(given.served, body);
        let serving = match &self.source {
            Source::Script(script) => fault_or_reply(script, position, &mut given)?,
            Source::Recorded(replies) => {
                let exhausted = ScriptError::Exhausted { given: replies.len(), asked: position + 1 };
                Serving::Recorded(replies.get(position).ok_or(exhausted)?)
            }
            Source::Echo => Serving::Echo(position),
        };
        if !matches!(serving, Serving::Reply(_, _, Some(fault)) if !fault.delivers()) {
            given.served += 1;
            given.reached = given.reached.max(position + 1);
        }
        drop(given);
        Ok(serving)
    }

    pub(super) fn check_complete(&self) -> Result<(), ScriptError> {
        let reached = self.given.lock().unwrap_or_else(PoisonError::into_inner).reached;
        let given = match &self.source {
            Source::Script(script) => script.len(),
            Source::Recorded(replies) => replies.len(),
            Source::Echo => 0,
        };
        if reached < given { Err(ScriptError::Unused { given, served: reached }) } else { Ok(()) }
    }
}

fn fault_or_reply<'s>(
    script: &'s Script,
    position: usize,
    given: &mut Given,
) -> Result<Serving<'s>, ScriptError> {
    let reply = script.reply(position)?;
    let times = given.faults.entry(position).or_default();
    let fault = reply.faults.get(*times);
    *times += usize::from(fault.is_some());
    Ok(Serving::Reply(position, reply, fault))
}
