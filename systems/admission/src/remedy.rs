//! What to change in a set that is refused, and what is spare in one that is not.
//!
//! The demand of a window never rises when a budget falls, or a deadline or period rises, so the least change is found
//! by bisection. Where cores are searched for, the least that bisection meets is told.
//!
//! *Invariant:* the effort is bounded: what is not found in it is not told.

use crate::decision::is_admitted;
use crate::demand::Blocking;
use crate::fit::{Effort, fits_as};
use crate::refusal::{Change, Reason};
use crate::set::{Function, MOST_CORES, Set};
use crate::task::Task;

/// Sets that are tried for one refusal.
const TRIES: u32 = 4000;
/// Functions whose changes are looked for, and of which spare is told.
const MOST: usize = 64;
/// Deadlines below a horizon up to which spare is told.
const WALKED: u128 = 1 << 14;
/// Changes that are told.
const TOLD: usize = 6;

/// Changes of one thing that suffice.
pub(crate) fn changes(set: &Set, reason: &Reason) -> Vec<Change> {
    let core = match reason {
        Reason::Impossible(_) => return Vec::new(),
        Reason::Memory { asked, there } => {
            return vec![Change::Memory {
                missing: asked - u128::from(*there),
            }];
        }
        Reason::Network {
            function,
            delay: None,
        } => return network_rate(set, function),
        Reason::Network { .. } | Reason::NoPartition { .. } => None,
        Reason::Utilisation { core, .. }
        | Reason::Demand { core, .. }
        | Reason::Undecided { core } => Some(*core),
    };
    let mut tries = Tries { set, left: TRIES };
    let mut changes = Vec::new();
    if matches!(reason, Reason::NoPartition { .. }) {
        changes.extend(tries.cores());
    }
    let concerned = set
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| core.is_none() || function.core == core);
    for (index, _) in concerned.take(MOST) {
        changes.extend(tries.of_function(index));
        if changes.len() >= TOLD || tries.left == 0 {
            break;
        }
    }
    changes.truncate(TOLD);
    if changes.is_empty() {
        changes.extend(tries.all_budgets());
    }
    changes
}

fn network_rate(set: &Set, name: &str) -> Vec<Change> {
    let function = set.functions.iter().find(|function| function.name == name);
    let network = function.and_then(|function| Some((function.network?, function.period)));
    let rate = network.map(|(network, period)| network.bytes.div_ceil(period));
    let faster = |rate: &u64| network.is_some_and(|(network, _)| *rate > network.rate);
    let to = rate.filter(faster);
    to.map(|to| Change::NetworkRate {
        name: name.to_owned(),
        to,
    })
    .into_iter()
    .collect()
}

struct Tries<'a> {
    set: &'a Set,
    left: u32,
}

impl Tries<'_> {
    fn admitted(&mut self, change: impl FnOnce(&mut Set)) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let mut set = self.set.clone();
        change(&mut set);
        set.verify().is_ok() && is_admitted(&set, Effort::SMALL)
    }

    fn of_function(&mut self, index: usize) -> Vec<Change> {
        let Function {
            name,
            budget,
            budget_high,
            deadline,
            period,
            ..
        } = &self.set.functions[index];
        let name = || name.clone();
        let least = |budget: u64| -> Box<dyn Fn(&mut Function)> {
            // A high budget falls with it: it is what the function may take.
            let high = budget_high.map(|high| high.min(budget));
            Box::new(move |function| {
                function.budget = budget.min(function.budget);
                function.budget_high = high;
            })
        };
        let highest = budget_high.unwrap_or(*budget);
        let mut changes = Vec::new();
        let lower = largest(1, highest.saturating_sub(1), |to| {
            self.admitted(|set| least(to)(&mut set.functions[index]))
        });
        changes.extend(lower.map(|to| Change::Budget { name: name(), to }));
        let later = smallest(*deadline, |to| {
            self.admitted(|set| set.functions[index].deadline = to)
        });
        changes.extend(later.map(|to| Change::Deadline { name: name(), to }));
        let rarer = smallest(*period, |to| {
            self.admitted(|set| set.functions[index].period = to)
        });
        changes.extend(rarer.map(|to| Change::Period { name: name(), to }));
        changes
    }

    fn cores(&mut self) -> Option<Change> {
        let cores = self.set.host.cores;
        let more = (cores + 1)..=cores.saturating_mul(2).min(MOST_CORES);
        let mut more = more.take(16);
        let to = more.find(|to| self.admitted(|set| set.host.cores = *to));
        to.map(|to| Change::Cores { to })
    }

    fn all_budgets(&mut self) -> Option<Change> {
        let scaled = |budget: u64, thousandths: u64| {
            let scaled = u128::from(budget) * u128::from(thousandths) / 1000;
            // Not above the budget, as it is of at most a thousand thousandths.
            (scaled as u64).max(1)
        };
        let found = largest(1, 999, |thousandths| {
            self.admitted(|set| {
                for function in &mut set.functions {
                    function.budget = scaled(function.budget, thousandths);
                    let high = function.budget_high;
                    function.budget_high = high.map(|high| scaled(high, thousandths));
                }
            })
        });
        found.map(|thousandths| Change::Budgets { thousandths })
    }
}

/// The largest number in a range that holds, if the first does, by bisection.
fn largest(first: u64, last: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    if first > last || !holds(first) {
        return None;
    }
    let (mut good, mut bad) = (first, last.saturating_add(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match holds(middle) {
            true => good = middle,
            false => bad = middle,
        }
    }
    Some(good)
}

/// The smallest number above one that does not hold, by doubling and bisection.
fn smallest(above: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    // What documents hold: 63 bits.
    let most = u64::MAX >> 1;
    if above >= most || !holds(most) {
        return None;
    }
    let mut bad = above;
    let mut good = above.saturating_mul(2).min(most);
    while !holds(good) {
        if good >= most {
            return None;
        }
        bad = good;
        good = good.saturating_mul(2).min(most);
    }
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        match holds(middle) {
            true => good = middle,
            false => bad = middle,
        }
    }
    Some(good)
}

/// Whether so few deadlines are due below a horizon that whoever checks a certificate can walk over them.
fn is_short(tasks: &[Task], horizon: u128) -> bool {
    let due = tasks
        .iter()
        .map(|task| u128::from(task.burst) + horizon / u128::from(task.period));
    due.sum::<u128>() <= WALKED
}

/// By how much each function's budgets could rise alone; nothing is told of many functions on one core.
pub(crate) fn spare(tasks: &[Task], blocking: Blocking, scale: Option<u64>) -> Vec<(String, u64)> {
    if tasks.len() > MOST {
        return Vec::new();
    }
    let mut tasks = tasks.to_vec();
    let functions = (0..tasks.len()).filter(|index| tasks[*index].function.is_some());
    let functions: Vec<usize> = functions.collect();
    let spare = functions.into_iter().map(|index| {
        let task = tasks[index].clone();
        let room = u128::from(task.deadline).saturating_sub(task.budget_high);
        // Not above a deadline of 64 bits.
        let more = largest(1, room as u64, |more| {
            tasks[index].budget = task.budget + u128::from(more);
            tasks[index].budget_high = task.budget_high + u128::from(more);
            fits_as(&tasks, blocking, scale, Effort::SMALL)
                .is_some_and(|horizon| is_short(&tasks, horizon))
        });
        tasks[index] = task.clone();
        (task.name, more.unwrap_or(0))
    });
    spare.collect()
}
