//! A fabric on which a node dies before a step of its own that is named by its number.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use metes_mesh::{Fabric, HeapSpace, Node, Word};

/// What unwinds a node that dies.
struct Death;

/// A node's own view of a fabric, on which it lives for so many steps.
pub(crate) struct Mortal<'f, F> {
    fabric: &'f F,
    left: Cell<u64>,
}

impl<'f, F: Fabric> Mortal<'f, F> {
    pub(crate) fn new(fabric: &'f F, steps: u64) -> Self {
        Mortal {
            fabric,
            left: Cell::new(steps),
        }
    }

    /// Steps that it has left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    fn step(&self) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            // Nobody is told of a death, so no hook of panics either.
            None => resume_unwind(Box::new(Death)),
        }
    }
}

/// What `life` has brought, if the node has not died of it.
pub(crate) fn outlived<T>(life: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(life)) {
        Ok(brought) => Some(brought),
        Err(payload) if payload.is::<Death>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

impl<F: Fabric> Fabric for Mortal<'_, F> {
    type Heap = F::Heap;

    fn space(&self) -> HeapSpace {
        self.fabric.space()
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        self.step();
        self.fabric.load(node, word)
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        self.step();
        self.fabric.store(node, word, value);
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        self.step();
        self.fabric.compare_exchange(node, word, current, new)
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        self.step();
        self.fabric.tag(node, granule)
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        self.step();
        self.fabric.set_tag(node, granule, tag);
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        self.step();
        self.fabric.exchange_tag(node, granule, current, new)
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        self.step();
        // SAFETY: as the caller says.
        unsafe { self.fabric.link(node, offset) }
    }

    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        self.step();
        // SAFETY: as the caller says.
        unsafe { self.fabric.set_link(node, offset, link) };
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T {
        self.step();
        // SAFETY: as the caller says.
        let changed = unsafe { self.fabric.with_heap(node, change) };
        self.step();
        changed
    }

    fn barrier(&self) -> bool {
        self.step();
        self.fabric.barrier()
    }

    fn relax(&self) {
        self.step();
        self.fabric.relax();
    }
}
