//! Exact worst cases of placement policies, by playing every request sequence on small heaps.
//!
//! A bound of [`metes_heap::bounds`] is a promise about all sequences; on a heap of a few cells
//! all sequences can be tried. [`table`] finds for each policy the smallest heap that never
//! refuses, sets it beside the printed bound and the literature's value, and lets the indexes of
//! `metes-heap` decide the same states ([`real`]).

pub mod kept;
pub mod policy;
pub mod real;
pub mod search;
pub mod state;
#[cfg(test)]
mod tests;

use metes_heap::bounds::{
    self, BuddyChoice, ClassSearch, Demand, Geometry, HeapKind, Limits, Order,
};
use serde::Serialize;

use policy::{Choice, ListOrder, Policy, Tail};
use search::{BlockSizes, Case};

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Cases of at most some ten thousand states: well under a second in a release build.
    Quick,
    /// Every case of the table, some with millions of states: about a minute.
    Full,
}

/// A case of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The policy.
    pub policy: String,
    /// M: most live cells.
    pub live: u32,
    /// n: largest block in cells; the smallest is one cell.
    pub largest: u32,
    /// `all` sizes or `powers of two`.
    pub sizes: &'static str,
    /// Smallest heap in cells that no sequence exhausts; `None` beyond the state cap.
    pub found: Option<u32>,
    /// States visited.
    pub states: usize,
    /// The value of an earlier search of this kind, where there is one.
    pub paper: Option<u32>,
    /// The bound printed for this policy and demand.
    pub bound: Option<u128>,
    /// Name of the bound.
    pub method: &'static str,
    /// Its formula with numbers.
    pub formula: String,
    /// A conjectured, smaller bound, where there is one.
    pub conjectured: Option<u128>,
    /// Robson's lower bound for heaps that never move a block.
    pub necessary: u128,
    /// Decisions in which the code of `metes-heap` was compared with the policy and agreed;
    /// `None` where it has no such index or the case is too large to compare.
    pub decisions: Option<usize>,
    /// Where the code and the policy differ, if they do.
    pub difference: Option<String>,
}

impl Row {
    /// True unless a bound or a conjecture is refuted, the code differs from the policy, or the
    /// earlier value is missed.
    pub fn holds(&self) -> bool {
        let found = self.found.map(u128::from);
        let within = |bound: Option<u128>| match (found, bound) {
            (Some(found), Some(bound)) => found <= bound,
            _ => true,
        };
        within(self.bound)
            && within(self.conjectured)
            && self.difference.is_none()
            && (self.paper.is_none() || self.found.is_none() || self.found == self.paper)
    }

    /// True where the worst case meets the bound: the bound cannot be lowered.
    pub fn meets_bound(&self) -> bool {
        self.found.is_some() && self.found.map(u128::from) == self.bound
    }
}

/// Most states of a case in the full table.
const CAP: usize = 40_000_000;
/// Most states up to which the real code is compared, for the quick and the full table.
const COMPARED: [usize; 2] = [2_500, 30_000];

/// A line of the plan: policy, sizes, (M, n, earlier value), whether the quick table has it.
struct Plan(Policy, BlockSizes, &'static [(u32, u32, Option<u32>, bool)]);

const fn last(choice: Choice, order: ListOrder) -> Policy {
    Policy::fit(choice, order, Tail::Last)
}

use BlockSizes::{All, PowersOfTwo};

#[rustfmt::skip]
const PLANS: &[Plan] = &[
    Plan(Policy::FIRST_FIT, All, &[
        (4, 2, Some(6), true), (6, 2, Some(9), true), (6, 3, Some(10), true),
        (8, 2, Some(12), true), (8, 3, Some(15), true), (8, 4, Some(16), true),
        (10, 3, None, false), (10, 4, None, false),
    ]),
    Plan(Policy::FIRST_FIT, PowersOfTwo, &[
        (8, 4, Some(16), true), (12, 2, Some(19), false), (12, 4, None, false),
    ]),
    Plan(Policy::BuddyLowest, PowersOfTwo, &[
        (4, 2, Some(6), true), (6, 2, Some(8), true), (8, 2, Some(12), true),
        (8, 4, Some(16), true), (10, 4, None, true), (12, 2, Some(18), false),
        (12, 4, None, false), (14, 2, None, false),
    ]),
    Plan(Policy::BuddySmallest, PowersOfTwo, &[
        (4, 2, Some(6), true), (6, 2, Some(8), true), (8, 2, Some(12), true),
        (8, 4, Some(16), true), (10, 4, None, false), (12, 2, Some(18), false),
        (12, 4, None, false),
    ]),
    Plan(Policy::AnySmallest, PowersOfTwo, &[
        (4, 2, None, true), (6, 2, None, true), (8, 2, None, false), (8, 4, None, false),
        (10, 4, None, false),
    ]),
    Plan(Policy::AnyBuddy, PowersOfTwo, &[
        (4, 2, None, true), (6, 2, None, true), (8, 2, None, false), (8, 4, None, false),
    ]),
    Plan(Policy::HALF_FIT, PowersOfTwo, &[
        (4, 2, Some(6), true), (6, 2, Some(9), true), (8, 2, Some(13), false),
        (8, 4, Some(17), false), (10, 2, None, false),
    ]),
    Plan(Policy::HALF_FIT, All, &[(6, 3, None, true), (7, 3, None, false)]),
    Plan(Policy::tlsf(2), All, &[
        (6, 2, None, true), (6, 3, None, true), (7, 5, None, false), (8, 3, None, false),
    ]),
    Plan(Policy::Classes { second_level: 1, whole: true }, All, &[(6, 3, None, true)]),
    Plan(Policy::BEST_FIT, All, &[
        (6, 3, Some(12), true), (8, 3, Some(15), false), (8, 4, Some(19), false),
    ]),
    Plan(Policy::LIFO_FIT, All, &[(6, 2, Some(10), true), (6, 3, Some(12), true)]),
    Plan(Policy::NEXT_FIT, All, &[(6, 2, None, true), (6, 3, None, true), (8, 2, None, false)]),
    Plan(Policy::WORST_FIT, All, &[(6, 2, None, true), (6, 3, None, true), (8, 3, None, false)]),
    Plan(Policy::AnyFit, All, &[
        (6, 2, None, true), (6, 3, None, true), (8, 2, None, false), (8, 3, None, false),
    ]),
    Plan(last(Choice::First, ListOrder::Lifo), All, &[(6, 2, None, true), (6, 3, None, true)]),
    Plan(last(Choice::Next, ListOrder::Address), All, &[(6, 2, None, true), (6, 3, None, true)]),
    Plan(last(Choice::Best, ListOrder::Address), All, &[
        (6, 2, None, true), (6, 3, None, true), (8, 3, None, false), (8, 4, None, false),
    ]),
    Plan(last(Choice::Best, ListOrder::Lifo), All, &[(6, 2, None, true), (6, 3, None, true)]),
    Plan(last(Choice::Worst, ListOrder::Address), All, &[(6, 2, None, true), (6, 3, None, true)]),
    Plan(last(Choice::Worst, ListOrder::Lifo), All, &[(6, 2, None, true), (6, 3, None, true)]),
];

/// Computes the table. Every number in it is found in this call.
pub fn table(effort: Effort) -> Vec<Row> {
    let mut rows = Vec::new();
    for Plan(policy, sizes, cases) in PLANS {
        for (live, largest, paper, quick) in *cases {
            if *quick || effort == Effort::Full {
                let case = Case {
                    policy: *policy,
                    live: *live,
                    largest: *largest,
                    sizes: *sizes,
                };
                rows.push(row(case, *paper, COMPARED[effort as usize]));
            }
        }
    }
    rows
}

fn row(case: Case, paper: Option<u32>, compared: usize) -> Row {
    let mut demand = Demand::new(case.live.into(), case.largest.into(), 1);
    if case.sizes == PowersOfTwo {
        demand = demand.doubling();
    }
    let bound = bounds::bound(&heap_of(case.policy), &Geometry::UNIT, &demand)
        .expect("the cases of the table are valid demands");
    let worst = case.worst(CAP);
    let agreement = worst
        .filter(|worst| worst.states <= compared)
        .and_then(|worst| real::compare(case, worst.cells));
    let conjectured = bound.others.iter().flatten();
    let conjectured = conjectured
        .filter(|other| other.standing == bounds::Standing::Conjectured)
        .map(|other| other.bytes)
        .next();
    Row {
        policy: case.policy.name(),
        live: case.live,
        largest: case.largest,
        sizes: match case.sizes {
            All => "all",
            PowersOfTwo => "powers of two",
        },
        found: worst.map(|worst| worst.cells),
        states: worst.map_or(0, |worst| worst.states),
        paper,
        bound: bound.heap_bytes,
        method: bound.used.map_or("none", |used| used.method),
        formula: bound.formula().to_string(),
        conjectured,
        necessary: bound.necessary_bytes,
        decisions: match &agreement {
            Some(Ok(agreement)) => Some(agreement.decisions),
            _ => None,
        },
        difference: match agreement {
            Some(Err(difference)) => Some(format!("{difference:?}")),
            _ => None,
        },
    }
}

/// The heap whose bound covers a policy.
fn heap_of(policy: Policy) -> HeapKind<'static> {
    let limits = Limits::NONE;
    match policy {
        Policy::Fit { choice, order, .. } => {
            let order = match order {
                ListOrder::Address => Order::Address,
                ListOrder::Lifo => Order::Lifo,
            };
            match choice {
                Choice::First => HeapKind::FirstFit { order, limits },
                Choice::Next => HeapKind::NextFit { order, limits },
                Choice::Best => HeapKind::BestFit { order, limits },
                Choice::Worst => HeapKind::WorstFit { order, limits },
            }
        }
        Policy::Classes {
            second_level,
            whole: true,
        } => HeapKind::SegregatedFit {
            per_doubling: second_level,
            search: ClassSearch::WholeClass,
            limits,
        },
        Policy::Classes {
            second_level: 1, ..
        } => HeapKind::HalfFit {
            power_of_two: false,
        },
        Policy::Classes { second_level, .. } => HeapKind::Tlsf { second_level },
        Policy::BuddyLowest => buddy(BuddyChoice::LowestAddress),
        Policy::BuddySmallest | Policy::AnySmallest => buddy(BuddyChoice::SmallestThenLowest),
        Policy::AnyBuddy => buddy(BuddyChoice::Any),
        // The bound of best fit is the any-fit bound.
        Policy::AnyFit => HeapKind::BestFit {
            order: Order::Lifo,
            limits,
        },
    }
}

const fn buddy(choice: BuddyChoice) -> HeapKind<'static> {
    HeapKind::Buddy {
        choice,
        outside: None,
    }
}
