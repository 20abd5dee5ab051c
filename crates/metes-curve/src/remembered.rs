//! What was found out about a value once, and need not be looked for again.
//!
//! Invariant: nobody can tell whether anything is remembered: clones and what is made of a value by
//! changing it remember nothing, and comparisons and hashes take no notice.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// At most one finding about the value it is a part of.
#[derive(Debug)]
pub(crate) struct Remembered<T>(OnceLock<T>);

impl<T> Remembered<T> {
    /// What is remembered, or is found now.
    pub(crate) fn get(&self, find: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(find)
    }
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered(OnceLock::new())
    }
}

impl<T> Clone for Remembered<T> {
    fn clone(&self) -> Self {
        Remembered::default()
    }
}

impl<T> PartialEq for Remembered<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Remembered<T> {}

impl<T> Hash for Remembered<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
