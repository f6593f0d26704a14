//! A session with those of its sub-agents: found by their names, held and deleted together.

use agent_core::{SessionId, SessionSummary};
use agent_store::{Lease, Store, StoreError};

/// A session with the sessions of its sub-agents, and theirs, held so that no worker takes one of them up.
#[derive(Debug)]
pub struct Family {
    /// The session itself first, and every one behind its parent.
    members: Vec<Lease>,
}

impl Family {
    /// Holds a session and all below it, of a damaged one too.
    ///
    /// # Errors
    /// [`StoreError::Missing`] for a session that does not exist, [`StoreError::Busy`] when a worker has one of them, and what
    /// the store says.
    pub async fn hold(store: &dyn Store, id: &SessionId) -> Result<Self, StoreError> {
        // Also of a damaged one it is known what it keeps.
        store.blobs(id).await?;
        let mut members = Vec::new();
        for one in std::iter::once(id.clone()).chain(descendants(store, id).await?) {
            members.push(store.lease(&one).await?);
        }
        Ok(Self { members })
    }

    /// Who they are, the session itself first.
    pub fn ids(&self) -> impl Iterator<Item = &SessionId> {
        self.members.iter().map(Lease::session)
    }

    /// Deletes them, those below first: nobody could take them up without it, and what they said is in its history. After a
    /// crash on the way the session itself is still there, and deleting it again takes the rest. What is kept beside a session
    /// is for the caller to remove, before this: a session of the same name that begins later must not go by it.
    ///
    /// # Errors
    /// What the store says.
    pub async fn delete(self, store: &dyn Store) -> Result<Vec<SessionId>, StoreError> {
        let ids = self.ids().cloned().collect();
        for lease in self.members.into_iter().rev() {
            store.delete(lease).await?;
        }
        Ok(ids)
    }
}

/// The sessions of sub-agents below this one: every one behind its parent.
async fn descendants(store: &dyn Store, id: &SessionId) -> Result<Vec<SessionId>, StoreError> {
    let lines = store.sessions().await?;
    let name = |line| match line {
        Ok(SessionSummary { id, .. }) | Err(StoreError::Corrupt { session: id, .. }) => Ok(id),
        Err(error) => Err(error),
    };
    let all: Vec<SessionId> = lines.into_iter().map(name).collect::<Result<_, _>>()?;
    let mut found: Vec<SessionId> = Vec::new();
    let mut parents = vec![id.clone()];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|child| is_child(child, &parent));
        let children: Vec<_> = children.filter(|child| !found.contains(child)).cloned().collect();
        parents.extend(children.iter().cloned());
        found.extend(children);
    }
    Ok(found)
}

/// Whether the name says so. A long name is cut in that of a child, and could be the beginning of another one's.
fn is_child(child: &SessionId, parent: &SessionId) -> bool {
    child.parent() == Some(parent.as_str()) && child.as_str().len() < LONGEST
}

/// As long as a name can be.
const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_may_be_cut_is_nobodys() {
        let check = |parent: &str, child: &str, expect: bool| {
            let id = |name: &str| SessionId::new(name).unwrap();
            assert_eq!(is_child(&id(child), &id(parent)), expect, "{parent} {child}");
        };
        let digits = ".sub-abababababababab";
        check("s", &format!("s{digits}"), true);
        check("s", &format!("s{digits}{digits}"), false);
        check("s", &format!("t{digits}"), false);
        check("s", "s.sub-", false);
        let (short, long) = ("x".repeat(106), "x".repeat(107));
        check(&short, &format!("{short}{digits}"), true);
        check(&long, &format!("{long}{digits}"), false);
    }
}
