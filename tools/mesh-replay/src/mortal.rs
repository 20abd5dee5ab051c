//! A node's own view of a fabric, on which it dies where it was told to.
//!
//! Invariant: it dies before a step, and takes none afterwards.

use std::cell::Cell;

use metes_mesh::{Fabric, HeapSpace, Node, Word};

/// A view that ends, once [armed](Mortal::arm), before a step that is named by its number.
pub struct Mortal<'f, F> {
    fabric: &'f F,
    left: Cell<Option<u64>>,
    end: fn() -> !,
}

impl<F> std::fmt::Debug for Mortal<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mortal")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'f, F> Mortal<'f, F> {
    /// A view that ends by `end`.
    pub fn new(fabric: &'f F, end: fn() -> !) -> Self {
        Mortal {
            fabric,
            left: Cell::new(None),
            end,
        }
    }

    /// From now on it has so many steps left.
    pub fn arm(&self, steps: u64) {
        self.left.set(Some(steps));
        if steps == 0 {
            (self.end)();
        }
    }

    /// Dies if it was to die by now.
    pub fn expire(&self) {
        if self.left.get().is_some() {
            (self.end)();
        }
    }

    fn step(&self) {
        if let Some(left) = self.left.get() {
            match left.checked_sub(1) {
                Some(left) => self.left.set(Some(left)),
                None => (self.end)(),
            }
        }
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

    fn at<T>(&self, node: Node, act: impl FnOnce() -> T) -> T {
        self.fabric.at(node, act)
    }

    fn barrier(&self) -> bool {
        self.step();
        self.fabric.barrier()
    }

    fn near_barrier(&self) {
        self.fabric.near_barrier();
    }

    fn relax(&self) {
        self.fabric.relax();
    }
}
