//! The indexes of `metes-heap` against the plain policies, decision by decision.
//!
//! Every state that a policy can reach is built on a real `Heap` over a `Ledger` (granule one
//! byte, no record inside) by replaying a shortest request sequence to it, and so is every
//! further operation from it. After each of them, every request must be served at the same place,
//! or refused, by both. So the search with the real code in place of the policy visits the same
//! states, and its worst case is the policy's.

use std::collections::HashMap;

use metes_heap::index::any::AnyIndex;
use metes_heap::store::Geometry;
use metes_heap::store::ledger::{ByHandle, Handle, Ledger, Record};
use metes_heap::{Fit, Heap, IndexKind, Limits, Order};

use super::policy::{Choice, ListOrder, Policy, Tail};
use super::search::Case;
use super::state::State;

/// An operation of a request sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request of this many cells.
    Allocate(u32),
    /// The block that starts at this cell is freed.
    Free(u32),
}

/// Where the real code and the policy part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The request sequence that leads there.
    pub operations: Vec<Operation>,
    /// The request on which they differ, in cells.
    pub request: u32,
    /// First cell the policy gives, if any.
    pub policy: Option<u32>,
    /// First cell the real code gives, if any.
    pub real: Option<u32>,
}

/// What a comparison covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// States compared.
    pub states: usize,
    /// Decisions compared.
    pub decisions: usize,
}

/// The index of `metes-heap` that a policy describes, if there is one.
pub fn index_of(policy: Policy) -> Option<IndexKind> {
    match policy {
        Policy::Fit {
            choice,
            order,
            tail: Tail::Last,
        } => {
            let fit = match choice {
                Choice::First => Fit::First,
                Choice::Next => Fit::Next,
                Choice::Best => Fit::Best,
                Choice::Worst => Fit::Worst,
            };
            let order = match order {
                ListOrder::Address => Order::Address,
                ListOrder::Lifo => Order::Lifo,
            };
            Some(IndexKind::list(fit, order))
        }
        // By address the end of the heap comes last anyway.
        Policy::FIRST_FIT => Some(IndexKind::list(Fit::First, Order::Address)),
        Policy::Classes {
            second_level,
            whole,
        } => Some(IndexKind::Classes {
            second_level,
            probes: if whole { usize::MAX } else { 0 },
        }),
        Policy::BuddyLowest => Some(IndexKind::Buddy { lowest: true }),
        _ => None,
    }
}

/// Compares the policy of `case` with its index in a heap of `cells`, over every reachable
/// state. `None` where `metes-heap` has no such index.
///
/// # Errors
/// The first [`Difference`].
pub fn compare(case: Case, cells: u32) -> Option<Result<Agreement, Difference>> {
    Some(compare_with(case, cells, index_of(case.policy)?))
}

/// Compares the policy of `case` with the index `kind`.
///
/// # Errors
/// The first [`Difference`].
pub fn compare_with(case: Case, cells: u32, kind: IndexKind) -> Result<Agreement, Difference> {
    Comparison::new(case, cells, kind).run()
}

struct Comparison {
    case: Case,
    cells: u32,
    kind: IndexKind,
    /// For each state the state and operation it was first reached by.
    reached: HashMap<State, Option<(State, Operation)>>,
    decisions: usize,
}

impl Comparison {
    fn new(case: Case, cells: u32, kind: IndexKind) -> Self {
        let reached = HashMap::from([(case.policy.empty(cells), None)]);
        Self {
            case,
            cells,
            kind,
            reached,
            decisions: 0,
        }
    }

    fn run(mut self) -> Result<Agreement, Difference> {
        let first = self.case.policy.empty(self.cells);
        let mut open = std::collections::VecDeque::from([first]);
        let mut operations = Vec::new();
        self.decide(&operations, first)?;
        while let Some(state) = open.pop_front() {
            self.path(state, &mut operations);
            for (operation, next) in self.edges(state) {
                operations.push(operation);
                self.decide(&operations, next)?;
                operations.pop();
                if let std::collections::hash_map::Entry::Vacant(entry) = self.reached.entry(next) {
                    entry.insert(Some((state, operation)));
                    open.push_back(next);
                }
            }
        }
        Ok(Agreement {
            states: self.reached.len(),
            decisions: self.decisions,
        })
    }

    /// The operations that lead to `state` along first discoveries.
    fn path(&self, mut state: State, operations: &mut Vec<Operation>) {
        operations.clear();
        while let Some((before, operation)) = self.reached[&state] {
            operations.push(operation);
            state = before;
        }
        operations.reverse();
    }

    fn edges(&self, state: State) -> Vec<(Operation, State)> {
        let Case { policy, live, .. } = self.case;
        let mut edges = Vec::new();
        let mut after = Vec::new();
        for size in self.case.requests(live - state.live()) {
            policy.allocate(state, self.cells, size, &mut after);
            edges.extend(
                after
                    .drain(..)
                    .map(|next| (Operation::Allocate(size), next)),
            );
        }
        for start in state.blocks() {
            let next = policy.free(state, self.cells, start);
            edges.push((Operation::Free(start), next));
        }
        edges
    }

    /// Replays `operations` on the real heap and compares every decision in the state they lead
    /// to. Requests are tried one after another, each undone by a fresh replay.
    fn decide(&mut self, operations: &[Operation], state: State) -> Result<(), Difference> {
        let mut after = Vec::new();
        for size in self.case.requests(self.case.live - state.live()) {
            after.clear();
            self.case
                .policy
                .allocate(state, self.cells, size, &mut after);
            let policy = after
                .first()
                .map(|next| (next.starts & !state.starts).trailing_zeros());
            let real = self.replay(operations, size);
            self.decisions += 1;
            if policy != real {
                return Err(Difference {
                    operations: operations.to_vec(),
                    request: size,
                    policy,
                    real,
                });
            }
        }
        Ok(())
    }

    /// Where the real heap places a request of `size` after `operations`.
    fn replay(&self, operations: &[Operation], size: u32) -> Option<u32> {
        // A record for each block, two for the ends, and one for each list.
        let mut records = [Record::SPARE; 160];
        let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(1));
        let mut heap = Heap::new(AnyIndex::new(self.kind, Limits::NONE), ledger);
        heap.add_region(self.cells as usize).ok()?;
        let mut places: [Option<Handle>; 32] = [None; 32];
        for operation in operations {
            match *operation {
                Operation::Allocate(size) => {
                    let place = heap.allocate(size as usize, 1)?;
                    places[heap.place_offset(place)] = Some(place);
                }
                Operation::Free(start) => {
                    heap.release_place(places[start as usize].take()?).ok()?
                }
            }
        }
        let place = heap.allocate(size as usize, 1)?;
        Some(heap.place_offset(place) as u32)
    }
}
