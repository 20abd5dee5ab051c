//! Heaps over sparse backing: how much memory, and how many moves of pages.
//!
//! The backend has no memory (`Offsets`): pages are counted, not their time. Where blocks lie
//! depends on the addresses alone, and a request is refused for want of pages exactly when more
//! pages than the cap would be touched by live blocks. So the smallest cap is the most pages that
//! are touched at a time, exactly, which a test holds against runs at that cap and below it.

use metes_device::backend::offsets::Offsets;
use metes_device::heap::{HandleHeap, ListHeap};
use metes_device::sparse::{Plan, SparseHeap};
use metes_step::Stepper;

use super::measure::{Instructions, Measured, Moves, Provisioned, Step, Which, play, times};
use super::workload::{ROUND, Workload};

/// A heap of lists, by handle, over pages.
#[derive(Debug)]
pub struct Sparse {
    /// Its name in tables.
    pub name: String,
    /// Bytes of a page, a power of two.
    pub page: u64,
    /// Addresses in multiples of the workload's peak.
    pub addresses: u64,
}

type Heap = SparseHeap<Offsets, HandleHeap>;

impl Sparse {
    /// `None` where it cannot be made.
    fn make(&self, workload: &Workload, cap: Option<u64>) -> Option<Heap> {
        let addresses = (self.addresses * workload.peak).next_multiple_of(self.page);
        let cap = cap.map_or(addresses, |cap| cap.next_multiple_of(self.page));
        let plan = Plan {
            addresses: addresses.max(cap),
            cap,
            page: self.page,
            granule: ROUND,
            blocks: workload.blocks + 1,
            moves: u64::MAX,
        };
        let device = Offsets::new(plan.cap, self.page).ok()?;
        SparseHeap::new(device, plan, ListHeap::by_handle).ok()
    }
}

impl Measured for Sparse {
    fn name(&self) -> &str {
        &self.name
    }

    fn store(&self) -> &str {
        "handle"
    }

    /// Not: it has a page operation a page, and counts them instead.
    fn counted(&self) -> bool {
        false
    }

    /// The smallest cap.
    fn smallest_arena(&self, workload: &Workload) -> Option<u64> {
        let mut heap = self.make(workload, None)?;
        let mut most = 0;
        play(&mut heap, workload, |heap, _| {
            most = most.max(heap.pages().live);
        })
        .then_some(most * self.page)
    }

    fn completes(&self, workload: &Workload, bytes: u64) -> bool {
        let heap = self.make(workload, Some(bytes));
        heap.is_some_and(|mut heap| play(&mut heap, workload, |_, _| {}))
    }

    fn instructions(
        &self,
        _: &mut Stepper,
        _: &Workload,
        _: u64,
        _: Which,
    ) -> Option<Instructions> {
        None
    }

    fn refusal(&self, _: &mut Stepper, _: usize) -> Option<u64> {
        None
    }

    fn times(&self, workload: &Workload, bytes: u64) -> Option<Vec<u32>> {
        times(self.make(workload, Some(bytes))?, workload)
    }

    /// Provisioned are the pages that the heap created: at the smallest cap, where it moves
    /// pages instead of creating more.
    fn provisioned(&self, workload: &Workload) -> Option<Vec<Provisioned>> {
        let cap = self.smallest_arena(workload)?;
        let mut heap = self.make(workload, Some(cap))?;
        let mut moments = Vec::with_capacity(workload.requests.len());
        let mut used = 0;
        play(&mut heap, workload, |heap, step| {
            match step {
                Step::Allocated(_, bytes) => used += bytes,
                Step::Freed(bytes) => used -= bytes,
            }
            moments.push(Provisioned {
                used,
                provisioned: heap.pages().peak * self.page,
            });
        })
        .then_some(moments)
    }

    fn host_bytes(&self, _: &Workload, _: u64, _: fn() -> u64) -> Option<u64> {
        None
    }

    fn moves(&self, workload: &Workload, bytes: u64) -> Option<Moves> {
        let mut heap = self.make(workload, Some(bytes))?;
        let mut allocations = 0;
        let served = play(&mut heap, workload, |_, step| {
            allocations += u64::from(matches!(step, Step::Allocated(..)));
        });
        let pages = heap.pages();
        served.then_some(Moves {
            allocations,
            moved: pages.moved,
            most: pages.most_moved,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::{serving, uniform};
    use super::*;

    #[test]
    fn the_smallest_cap_serves_and_a_page_less_does_not() {
        let sparse = Sparse {
            name: String::new(),
            page: 2 << 20,
            addresses: 2,
        };
        for workload in [uniform(50, 1000, 3), serving(1000, true, 3)] {
            let cap = sparse.smallest_arena(&workload).unwrap();
            assert!(cap >= workload.peak);
            assert!(sparse.completes(&workload, cap), "{}", workload.name);
            assert!(!sparse.completes(&workload, cap - sparse.page));
            let moves = sparse.moves(&workload, cap).unwrap();
            assert!(moves.moved >= moves.most && moves.most > 0);
            assert_eq!(sparse.moves(&workload, cap - sparse.page), None);
            let moments = sparse.provisioned(&workload).unwrap();
            assert_eq!(moments.last().map(|moment| moment.provisioned), Some(cap));
        }
    }
}
