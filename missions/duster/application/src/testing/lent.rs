//! Memory of partitions that is given back when the unit is: campaigns make many units.
//!
//! *Invariant:* a [`Lent`] is dropped after all partitions over it, which whoever holds both has to see to by the order of
//! its fields; nobody else gets at those partitions.

use std::boxed::Box;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use crate::declared::PARTITIONS;
use crate::partition::Partition;
use crate::shared::Shared;

/// What is given back.
pub(super) struct Lent {
    memories: Vec<*mut [u8]>,
    // What both cores share lives as long as one of them.
    _shared: Arc<Shared>,
}

// SAFETY: memory and what is shared belong to no thread.
unsafe impl Send for Lent {}

impl Lent {
    /// Nothing of partitions yet, and what is shared: to be used while this lives.
    pub(super) fn new(shared: &Arc<Shared>) -> (Self, &'static Shared) {
        let lent = Lent {
            memories: Vec::new(),
            _shared: Arc::clone(shared),
        };
        // SAFETY: it lives while `lent` does, which its holder keeps until what uses it is gone.
        let shared = unsafe { &*Arc::as_ptr(shared) };
        (lent, shared)
    }

    /// A partition of the declaration.
    pub(super) fn partition(&mut self, number: usize) -> Partition {
        let memory = Box::into_raw(vec![0; PARTITIONS[number].size].into_boxed_slice());
        self.memories.push(memory);
        // SAFETY: it was just made, is named nowhere else, and lives while `self` does.
        Partition::new(number, unsafe { &mut *memory })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for memory in self.memories.drain(..) {
            // SAFETY: made by `partition`, and its partition is gone.
            drop(unsafe { Box::from_raw(memory) });
        }
    }
}
