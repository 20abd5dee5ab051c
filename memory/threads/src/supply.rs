//! Pages of nobody, and which nodes are bound: what threads share under the lock.
//!
//! Invariant: a page here has no slot in use.

use core::ptr;

use crate::heaps::MOST_THREADS;
use crate::node::Node;
use crate::page::{KINDS, Page};

/// Pages that others have freed slots of that are looked at before a new page is taken.
pub(crate) const SIFTED: usize = 8;
const WORDS: usize = (MOST_THREADS + 1).div_ceil(64);

pub(crate) struct Supply {
    /// Pages without a slot in use, by kinds.
    free: [*const Page; KINDS.len()],
    /// Pages that were taken from the system, and the most that there may be.
    pub(crate) given: [usize; KINDS.len()],
    pub(crate) most: [usize; KINDS.len()],
    /// Nodes that were opened: the shared one is the first.
    pub(crate) nodes: usize,
    /// Most nodes beside it.
    pub(crate) threads: usize,
    bound: [u64; WORDS],
    /// The node that was helped last.
    pub(crate) turn: usize,
    /// Pages that were taken off a node's chain to be looked at.
    sifted: *const Page,
}

impl Supply {
    pub(crate) const fn new() -> Self {
        Supply {
            free: [ptr::null(); KINDS.len()],
            given: [0; KINDS.len()],
            most: [0; KINDS.len()],
            nodes: 0,
            threads: 0,
            // The shared one is nobody's.
            bound: {
                let mut bound = [0; WORDS];
                bound[0] = 1;
                bound
            },
            turn: 0,
            sifted: ptr::null(),
        }
    }

    /// A page of a kind.
    pub(crate) fn take(&mut self, kind: usize) -> Option<*const Page> {
        // SAFETY: pages stay.
        let page = unsafe { self.free[kind].as_ref() }?;
        self.free[kind] = page.next.get();
        Some(page)
    }

    /// Takes a page that is nobody's.
    pub(crate) fn give(&mut self, page: &Page) {
        debug_assert_eq!(page.used.get(), 0);
        page.disown();
        page.next.set(self.free[page.kind()]);
        self.free[page.kind()] = page;
    }

    /// The lowest number of a node that no thread has. O(1).
    pub(crate) fn lowest_unbound(&self) -> Option<usize> {
        let word = self.bound.iter().position(|&word| word != u64::MAX)?;
        let number = 64 * word + (!self.bound[word]).trailing_zeros() as usize;
        (number <= self.threads).then_some(number)
    }

    pub(crate) fn set_bound(&mut self, number: usize, bound: bool) {
        let bit = 1 << (number % 64);
        match bound {
            true => self.bound[number / 64] |= bit,
            false => self.bound[number / 64] &= !bit,
        }
    }

    /// Whether there are pages to be looked at.
    pub(crate) fn sifts(&self) -> bool {
        !self.sifted.is_null()
    }

    /// Takes the chain of a node to be looked at.
    pub(crate) fn take_chain_of(&mut self, node: &Node) {
        debug_assert!(!self.sifts());
        self.sifted = ptr::with_exposed_provenance(node.chain.0.take());
    }

    /// Looks at up to `most` pages that a thread's slots were freed of by others: one all of whose slots were is taken over, any
    /// other is put back on the chain of its owner.
    pub(crate) fn sift(&mut self, most: usize) {
        for _ in 0..most {
            // SAFETY: pages stay.
            let Some(page) = (unsafe { self.sifted.as_ref() }) else {
                return;
            };
            // Before it may be put on a chain again.
            self.sifted = ptr::with_exposed_provenance(page.parked.next());
            let some = page.parked.take();
            if page.take_over(some) {
                self.give(page);
            } else if page.parked.untake(some) {
                let owner = page.owner.load(core::sync::atomic::Ordering::Relaxed);
                let address = ptr::from_ref(page).expose_provenance();
                // SAFETY: nodes stay, and the page has slots in use, so it has an owner.
                unsafe { (*owner).chain.0.push(address, &page.parked) };
            }
        }
    }
}
