//! Values of the program that stages read, kept by their type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a program shares with its stages, one value of each type (requirement P1: the shared context). Never stored and
/// never sent.
///
/// ```
/// use agent_prepare::Context;
///
/// #[derive(Debug, PartialEq)]
/// struct Tenant(&'static str);
///
/// let context = Context::default().with(Tenant("harbour"));
/// assert_eq!(context.get::<Tenant>(), Some(&Tenant("harbour")));
/// assert_eq!(context.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Context(BTreeMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl Context {
    /// The context with this value in place of another one of its type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.insert(TypeId::of::<T>(), (std::any::type_name::<T>(), Arc::new(value)));
        self
    }

    /// The value of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>()).and_then(|(_, value)| value.downcast_ref())
    }

    /// This context with the values of another one laid over it.
    #[must_use]
    pub fn merged(mut self, over: &Self) -> Self {
        self.0.extend(over.0.iter().map(|(id, value)| (*id, value.clone())));
        self
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}
