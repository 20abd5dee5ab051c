//! Exact worst cases of heaps behind dedicated lists, by playing every request sequence on small heaps.
//!
//! A block of a list's size that is freed is kept while the list has room, and serves the next request of that size;
//! which of several kept blocks serves is for the adversary to choose, so that the order of the list does not matter. To
//! the policy kept blocks are in use.
//!
//! Invariant: `kept` is a subset of the state's block starts, and no list keeps more than its limit.

use std::collections::{HashMap, HashSet, VecDeque};

use metes_heap::bounds::{self, Bound, Demand, Geometry};
use metes_heap::description::{DedicatedPool, Description, List};
use metes_heap::index::any::AnyIndex;
use metes_heap::index::dedicated::{ChosenKeeping, Dedicated};
use metes_heap::store;
use metes_heap::store::ledger::{ByHandle, Handle, Ledger, Record};
use metes_heap::{Heap, IndexKind, Limits};

use super::real::{Operation, index_of};
use super::search::{Case, Verdict, Worst};
use super::state::{MOST_CELLS, State};

/// A list: cells of its blocks, and most blocks that it keeps.
pub type Lists<'l> = &'l [(u32, u32)];

/// A case of [`Case`] behind lists.
#[derive(Clone, Copy, Debug)]
pub struct KeptCase<'l> {
    /// The heap behind them, and the demand.
    pub case: Case,
    /// By rising size.
    pub lists: Lists<'l>,
}

/// A heap and which of its blocks lists keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behind {
    /// Live and kept blocks.
    state: State,
    /// Bit c: the block that starts at cell c is kept.
    kept: u32,
}

impl Behind {
    fn kept_blocks(self) -> impl Iterator<Item = u32> {
        self.state
            .blocks()
            .filter(move |start| self.kept >> start & 1 == 1)
    }

    /// Cells of live blocks.
    fn live(self) -> u32 {
        let kept = self.kept_blocks().map(|start| self.state.length_of(start));
        self.state.live() - kept.sum::<u32>()
    }
}

impl KeptCase<'_> {
    fn first(&self, cells: u32) -> Behind {
        Behind {
            state: self.case.policy.empty(cells),
            kept: 0,
        }
    }

    /// What the heap may be after a request: one, several where the adversary chooses, none where it is refused.
    fn allocate(&self, heap: Behind, cells: u32, size: u32, after: &mut Vec<Behind>) {
        let known = after.len();
        if self.lists.iter().any(|(own, _)| *own == size) {
            let kept = heap.kept_blocks();
            let serving = kept.filter(|start| heap.state.length_of(*start) == size);
            after.extend(serving.map(|start| Behind {
                kept: heap.kept & !(1 << start),
                ..heap
            }));
        }
        if after.len() == known {
            let mut states = Vec::new();
            let policy = self.case.policy;
            policy.allocate(heap.state, cells, size, &mut states);
            after.extend(states.into_iter().map(|state| Behind { state, ..heap }));
        }
    }

    fn free(&self, heap: Behind, cells: u32, start: u32) -> Behind {
        let size = heap.state.length_of(start);
        let kept = heap.kept_blocks();
        let of_size = kept.filter(|start| heap.state.length_of(*start) == size);
        let kept = of_size.count() as u32;
        match self.lists.iter().find(|(own, _)| *own == size) {
            Some((_, limit)) if kept < *limit => Behind {
                kept: heap.kept | 1 << start,
                ..heap
            },
            _ => Behind {
                state: self.case.policy.free(heap.state, cells, start),
                ..heap
            },
        }
    }

    /// Operations and what they lead to; those of requests first.
    fn edges(&self, heap: Behind, cells: u32) -> Vec<(Operation, Behind)> {
        let mut edges = Vec::new();
        let mut after = Vec::new();
        for size in self.case.requests(self.case.live - heap.live()) {
            self.allocate(heap, cells, size, &mut after);
            edges.extend(
                after
                    .drain(..)
                    .map(|next| (Operation::Allocate(size), next)),
            );
        }
        for start in heap.state.blocks() {
            if heap.kept >> start & 1 == 0 {
                let next = self.free(heap, cells, start);
                edges.push((Operation::Free(start), next));
            }
        }
        edges
    }

    /// Plays every sequence on a heap of `cells`, visiting at most `cap` states.
    pub fn play(&self, cells: u32, cap: usize) -> Verdict {
        let first = self.first(cells);
        let mut visited = HashSet::from([first]);
        let mut open = vec![first];
        let mut after = Vec::new();
        while let Some(heap) = open.pop() {
            for size in self.case.requests(self.case.live - heap.live()) {
                after.clear();
                self.allocate(heap, cells, size, &mut after);
                if after.is_empty() {
                    return Verdict::Refused(visited.len());
                }
            }
            for (_, next) in self.edges(heap, cells) {
                if visited.insert(next) {
                    if visited.len() > cap {
                        return Verdict::Unfinished;
                    }
                    open.push(next);
                }
            }
        }
        Verdict::Enough(visited.len())
    }

    /// The smallest heap in which no sequence is refused, or `None` where more than `cap` states or 32 cells would be
    /// needed.
    pub fn worst(&self, cap: usize) -> Option<Worst> {
        let mut states = 0;
        for cells in self.case.live..MOST_CELLS {
            match self.play(cells, cap) {
                Verdict::Enough(visited) => {
                    return Some(Worst {
                        cells,
                        states: states + visited,
                    });
                }
                Verdict::Refused(visited) => states += visited,
                Verdict::Unfinished => return None,
            }
        }
        None
    }

    /// The bound of the index that the policy describes, behind these lists.
    pub fn bound(&self, index: IndexKind) -> Bound {
        let mut heap = Description::of(index);
        let lists: Vec<DedicatedPool> = (self.lists.iter())
            .map(|&(size, limit)| DedicatedPool {
                limit: Some(limit),
                ..DedicatedPool::new(size as usize, 0)
            })
            .collect();
        heap.dedicated = List::from_slice(&lists);
        let demand = Demand::new(self.case.live.into(), self.case.largest.into(), 1);
        bounds::described(&heap, &Geometry::UNIT, &demand).expect("a small demand is valid")
    }

    /// Compares every decision of the policy behind lists with the code of `metes-heap`, over every reachable state of
    /// a heap of `cells`; for lists of one block, which leave no choice. How many decisions agreed.
    ///
    /// # Errors
    /// What leads to the first one on which they differ.
    pub fn compare(&self, cells: u32) -> Result<usize, Vec<Operation>> {
        let index = index_of(self.case.policy).ok_or_else(Vec::new)?;
        let first = self.first(cells);
        let mut reached: HashMap<Behind, Vec<Operation>> = HashMap::from([(first, Vec::new())]);
        let mut open = VecDeque::from([first]);
        let mut decisions = 0;
        while let Some(heap) = open.pop_front() {
            let operations = reached[&heap].clone();
            for size in self.case.requests(self.case.live - heap.live()) {
                let mut after = Vec::new();
                self.allocate(heap, cells, size, &mut after);
                let policy = after.first().map(|next| match next.state == heap.state {
                    // A kept block serves.
                    true => (heap.kept & !next.kept).trailing_zeros(),
                    false => (next.state.starts & !heap.state.starts).trailing_zeros(),
                });
                decisions += 1;
                if policy != self.replay(index, cells, &operations, size) {
                    return Err(operations);
                }
            }
            for (operation, next) in self.edges(heap, cells) {
                reached.entry(next).or_insert_with(|| {
                    open.push_back(next);
                    let mut path = operations.clone();
                    path.push(operation);
                    path
                });
            }
        }
        Ok(decisions)
    }

    /// Where the real heap places a request of `size` after `operations`.
    fn replay(
        &self,
        index: IndexKind,
        cells: u32,
        operations: &[Operation],
        size: u32,
    ) -> Option<u32> {
        let mut sizes = [0; 4];
        let mut keeping = ChosenKeeping::<4>::DEFAULT;
        for (list, (size, limit)) in self.lists.iter().enumerate() {
            sizes[list] = *size as usize;
            keeping.limit[list] = *limit;
        }
        let mut records = [Record::SPARE; 200];
        let ledger = Ledger::new(&mut records, ByHandle, store::Geometry::out_of_band(1));
        let index = Dedicated::with(sizes, keeping, AnyIndex::new(index, Limits::NONE));
        let mut heap = Heap::new(index, ledger);
        heap.add_region(cells as usize).ok()?;
        let mut places: [Option<Handle>; 32] = [None; 32];
        for operation in operations {
            match *operation {
                Operation::Allocate(size) => {
                    let place = heap.allocate(size as usize, 1)?;
                    places[heap.place_offset(place)] = Some(place);
                }
                Operation::Free(start) => {
                    heap.release_place(places[start as usize].take()?).ok()?;
                }
            }
        }
        let place = heap.allocate(size as usize, 1)?;
        Some(heap.place_offset(place) as u32)
    }
}

#[cfg(test)]
mod tests {
    use metes_heap::{Fit, Order};

    use super::super::policy::Policy;
    use super::super::search::BlockSizes;
    use super::*;

    fn kept(policy: Policy, live: u32, largest: u32, lists: Lists<'_>) -> KeptCase<'_> {
        KeptCase {
            case: Case {
                policy,
                live,
                largest,
                sizes: BlockSizes::All,
            },
            lists,
        }
    }

    const FIRST: IndexKind = IndexKind::list(Fit::First, Order::Address);
    const BEST: IndexKind = IndexKind::list(Fit::Best, Order::Lifo);

    #[test]
    fn no_bound_behind_lists_is_refuted_and_some_are_met() {
        let mut met = 0;
        let mut found_more = 0;
        for (policy, index) in [
            (Policy::FIRST_FIT, FIRST),
            (Policy::BEST_FIT, BEST),
            (Policy::AnyFit, BEST),
            (Policy::NEXT_FIT, IndexKind::list(Fit::Next, Order::Address)),
            (Policy::HALF_FIT, IndexKind::tlsf(1)),
            (Policy::tlsf(2), IndexKind::tlsf(2)),
        ] {
            for (live, largest) in [(4, 2), (5, 2), (4, 3)] {
                let alone = kept(policy, live, largest, &[]).worst(1 << 20).unwrap();
                for lists in [
                    &[(1, 1)][..],
                    &[(2, 1)],
                    &[(1, 2)],
                    &[(2, 2)],
                    &[(1, 1), (2, 1)],
                ] {
                    let own = kept(policy, live, largest, lists);
                    let bound = own.bound(index).heap_bytes.unwrap();
                    let worst = own.worst(1 << 15);
                    let Some(worst) = worst else { continue };
                    let what = format!("{policy:?} ({live},{largest}) {lists:?}");
                    assert!(
                        u128::from(worst.cells) <= bound,
                        "{what}: {worst:?} of {bound}"
                    );
                    met += usize::from(u128::from(worst.cells) == bound);
                    found_more += usize::from(worst.cells > alone.cells);
                }
            }
        }
        println!("{met} bounds are met, {found_more} lists take more");
        assert!(met > 0 && found_more > 20, "{met} {found_more}");
    }

    #[test]
    fn the_real_lists_decide_as_the_policy_does() {
        for (policy, live, largest, cells) in [
            (Policy::FIRST_FIT, 4, 2, 8),
            (Policy::FIRST_FIT, 4, 3, 9),
            (Policy::HALF_FIT, 4, 2, 8),
            (Policy::tlsf(2), 4, 3, 9),
        ] {
            for lists in [&[(1, 1)][..], &[(2, 1)], &[(1, 1), (2, 1)]] {
                let own = kept(policy, live, largest, lists);
                let agreed = own.compare(cells);
                assert!(
                    agreed.is_ok_and(|count| count > 100),
                    "{policy:?} {lists:?}"
                );
            }
        }
    }

    #[test]
    fn a_list_without_room_keeps_nothing() {
        let own = kept(Policy::FIRST_FIT, 4, 2, &[(1, 1)]);
        let mut heap = own.first(8);
        let mut after = Vec::new();
        for _ in 0..3 {
            after.clear();
            own.allocate(heap, 8, 1, &mut after);
            heap = after[0];
        }
        for (start, kept) in [(0, 1), (1, 1), (2, 1)] {
            heap = own.free(heap, 8, start);
            assert_eq!(heap.kept.count_ones(), kept);
        }
        assert_eq!((heap.live(), heap.state.live()), (0, 1));
    }
}
