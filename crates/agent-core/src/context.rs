//! Values of the program that stages and tools read, kept by their type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a program shares with its stages and its tools, one value of each type (requirement P1: the shared context). Never
/// stored and never sent.
///
/// ```
/// use agent_core::Context;
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

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_stand_in_place_of_earlier_ones_of_their_type() {
        let first = Context::default().with(1_u8).with("harbour");
        let merged = first.clone().merged(&Context::default().with(2_u8).with(3_u16));
        assert_eq!((merged.get::<u8>(), merged.get::<u16>()), (Some(&2), Some(&3)));
        assert_eq!((merged.get::<&str>(), first.get::<u8>()), (Some(&"harbour"), Some(&1)));
        assert!(Context::default().is_empty() && !first.is_empty());
    }

    #[test]
    fn types_are_shown_and_values_are_not() {
        assert_eq!(format!("{:?}", Context::default().with("a secret")), r#"["&str"]"#);
    }
}
