//! Response times: fixed priorities, run to completion, interrupts above all.
//!
//! On a core, task *i* waits for one activation of a less urgent task that has just begun (B), for all more urgent ones
//! that are released before it begins, and for interrupts until it is done. Of every activation in the busy period of its
//! level the start s is the least fixed point of
//!
//! ```text
//! s(q) = B + q C_i + Σ_{j more urgent} (⌊s/T_j⌋ + 1) C_j + Σ_interrupts (⌊s/T_k⌋ + 1) C_k
//! ```
//!
//! and its end e the least of e = s's tasks + C_i + Σ_interrupts ⌈e/T_k⌉ C_k, from which q T_i are taken.
//!
//! *Invariant:* no activation of a task set within its declaration takes longer from release to end, whatever offsets
//! are; the tests hold simulated task sets to it. Everything is in nanoseconds.

use metes_duster_system::System;

use super::{Row, Unit};

/// Busy periods longer than so many nanoseconds, a minute, or of so many activations, are not followed.
const LONGEST: u64 = 60_000_000_000;
const MOST_ACTIVATIONS: u64 = 1 << 14;
/// Steps to a fixed point.
const MOST_STEPS: u32 = 1 << 14;

/// How long a task may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBound {
    /// The task.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// Most nanoseconds from a release to its end; none if the core has more to do than it can, or a busy period is too
    /// long to be followed.
    pub response: Option<u64>,
}

/// What comes again and again: nanoseconds between, and that one takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recurring {
    pub(super) period: u64,
    pub(super) budget: u64,
}

/// What a core does: tasks, the most urgent first, and interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Core {
    pub(super) tasks: Vec<Recurring>,
    pub(super) interrupts: Vec<Recurring>,
    /// What the executive takes to see that nothing is due.
    pub(super) dispatch: u64,
}

impl Core {
    pub(super) fn of(system: &System, core: usize) -> Core {
        let nanoseconds = |micros: u64| micros.saturating_mul(1000);
        let dispatch = nanoseconds(system.platform.dispatch);
        let tasks = system.tasks.iter().filter(|task| task.core == core);
        let interrupts = system.interrupts.iter().filter(|it| it.core == core);
        Core {
            tasks: tasks
                .map(|task| Recurring {
                    period: nanoseconds(task.period),
                    budget: nanoseconds(task.budget).saturating_add(dispatch),
                })
                .collect(),
            interrupts: interrupts
                .map(|it| Recurring {
                    period: nanoseconds(it.period),
                    budget: nanoseconds(it.budget),
                })
                .collect(),
            dispatch,
        }
    }

    /// Millionths of the time that are asked for, rounded up.
    pub(super) fn utilisation(&self) -> u64 {
        let all = self.tasks.iter().chain(&self.interrupts);
        all.map(|it| (it.budget.saturating_mul(1_000_000)).div_ceil(it.period))
            .fold(0, u64::saturating_add)
    }

    /// The longest response of task `task`.
    pub(super) fn response(&self, task: usize) -> Option<u64> {
        let own = self.tasks[task];
        let less_urgent = self.tasks[task + 1..].iter().map(|it| it.budget);
        let blocking = less_urgent.max().unwrap_or(0).max(self.dispatch);
        let urgent = &self.tasks[..task];
        let interrupts = |times: &dyn Fn(&Recurring) -> u64| work(&self.interrupts, times);
        // The busy period of this level.
        let whole = fixed_point(sum([blocking, own.budget]), |time| {
            let come = |it: &Recurring| time.div_ceil(it.period);
            let tasks = work(urgent.iter().chain([&own]), come);
            sum([blocking, tasks, interrupts(&come)])
        })?;
        let activations = whole.div_ceil(own.period);
        if activations > MOST_ACTIVATIONS {
            return None;
        }
        let mut longest = 0;
        for activation in 0..activations {
            let before = sum([blocking, activation.saturating_mul(own.budget)]);
            let begun = fixed_point(before, |time| {
                let come = |it: &Recurring| time / it.period + 1;
                sum([before, work(urgent, come), interrupts(&come)])
            })?;
            let tasks = work(urgent, |it| begun / it.period + 1);
            let tasks = sum([before, own.budget, tasks]);
            let done = fixed_point(tasks, |time| {
                sum([tasks, interrupts(&|it| time.div_ceil(it.period))])
            })?;
            longest = longest.max(done.saturating_sub(activation * own.period));
        }
        Some(longest)
    }
}

/// What is too much stays too much.
fn sum<const N: usize>(times: [u64; N]) -> u64 {
    times.into_iter().fold(0, u64::saturating_add)
}

/// What all of `these` take if each comes so often.
fn work<'a>(
    these: impl IntoIterator<Item = &'a Recurring>,
    times: impl Fn(&Recurring) -> u64,
) -> u64 {
    let each = these
        .into_iter()
        .map(|it| it.budget.saturating_mul(times(it)));
    each.fold(0, u64::saturating_add)
}

/// The least fixed point of a function that does not fall, from `time` upwards; none if it is not found soon.
fn fixed_point(mut time: u64, next: impl Fn(u64) -> u64) -> Option<u64> {
    for _ in 0..MOST_STEPS {
        let then = next(time);
        if then <= time {
            return Some(time);
        }
        if then > LONGEST {
            return None;
        }
        time = then;
    }
    None
}

/// The response time of every task, in the order of the declaration.
#[must_use]
pub fn bounds(system: &System) -> Vec<TaskBound> {
    let cores: Vec<_> = (0..system.platform.cores)
        .map(|core| Core::of(system, core))
        .collect();
    let mut seen = vec![0; cores.len()];
    let tasks = system.tasks.iter().map(|task| {
        let core = &cores[task.core];
        let number = seen[task.core];
        seen[task.core] += 1;
        TaskBound {
            name: task.name.clone(),
            core: task.core,
            response: core.response(number),
        }
    });
    tasks.collect()
}

pub(super) fn rows(system: &System, tasks: &[TaskBound]) -> Vec<Row> {
    let mut rows = Vec::new();
    for core in 0..system.platform.cores {
        let share = Core::of(system, core).utilisation();
        // At the whole there is no end of the busy period.
        let row = Row::most(
            format!("core {core}"),
            "utilisation",
            Unit::Millionths,
            Some(share),
            999_999,
        );
        rows.push(row.note("budgets, dispatching and interrupts"));
    }
    for (bound, task) in tasks.iter().zip(&system.tasks) {
        let subject = format!("task {}", task.name);
        let row = Row::most(
            subject,
            "response",
            Unit::Nanoseconds,
            bound.response,
            task.deadline * 1000,
        );
        let note = match (bound.response, row.holds) {
            (None, _) => format!("core {} has more to do than it can, or hardly less", task.core),
            (Some(_), true) => String::new(),
            (Some(_), false) => {
                "its budget, one of a less urgent task, those of more urgent ones and interrupts; shorten the \
                 longest of these, or give it a later deadline"
                    .to_owned()
            }
        };
        rows.push(row.note(note));
    }
    if let Some((bound, task)) = tasks
        .iter()
        .zip(&system.tasks)
        .find(|(it, _)| it.name == "fdir")
    {
        let between = bound.response.map(|response| response + task.period * 1000);
        let limit = system.platform.watchdog * 1000;
        let row = Row::most(
            "watchdog".to_owned(),
            "longest time between two kicks",
            Unit::Nanoseconds,
            between,
            limit,
        );
        rows.push(row.note("by the task fdir"));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_random::Random;
    use proptest::prelude::*;

    /// The executive as it is, instant by instant: tasks are released at offset + k · period, the most urgent one that is due
    /// begins when none runs, interrupts go before it. Gives the longest response of each task.
    fn simulated(core: &Core, horizon: u64, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut draw = |below: u64| random.below(below.max(1));
        let tasks = &core.tasks;
        let offsets: Vec<u64> = tasks.iter().map(|it| draw(it.period)).collect();
        let mut due: Vec<std::collections::VecDeque<u64>> = vec![Default::default(); tasks.len()];
        let mut next: Vec<u64> = core.interrupts.iter().map(|it| draw(it.period)).collect();
        let mut interrupting = 0;
        let mut running: Option<(usize, u64, u64)> = None;
        let mut longest = vec![0; tasks.len()];
        for now in 0..horizon {
            for (task, it) in tasks.iter().enumerate() {
                if now >= offsets[task] && (now - offsets[task]).is_multiple_of(it.period) {
                    due[task].push_back(now);
                }
            }
            for (next, it) in next.iter_mut().zip(&core.interrupts) {
                if now == *next {
                    interrupting += it.budget - draw(2).min(it.budget - 1);
                    *next += it.period + draw(3) * draw(2);
                }
            }
            if interrupting > 0 {
                interrupting -= 1;
                continue;
            }
            if running.is_none() {
                let task = due.iter().position(|due| !due.is_empty());
                running = task.and_then(|task| {
                    let released = due[task].pop_front()?;
                    let budget = tasks[task].budget;
                    let takes = if draw(3) > 0 {
                        budget
                    } else {
                        1 + draw(budget)
                    };
                    Some((task, released, takes))
                });
            }
            if let Some((task, released, left)) = running {
                running = (left > 1).then_some((task, released, left - 1));
                if left == 1 {
                    longest[task] = longest[task].max(now + 1 - released);
                }
            }
        }
        longest
    }

    fn recurring(period: std::ops::Range<u64>, most: u64) -> impl Strategy<Value = Recurring> {
        (period, 1..=most).prop_map(|(period, budget)| Recurring { period, budget })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn no_simulated_response_is_longer(
            tasks in prop::collection::vec(recurring(8..60, 12), 1..6),
            interrupts in prop::collection::vec(recurring(7..40, 3), 0..3),
            seed in any::<u64>(),
        ) {
            let core = Core { tasks, interrupts, dispatch: 0 };
            prop_assume!(core.utilisation() < 1_000_000);
            let simulated = simulated(&core, 4000, seed);
            for (task, longest) in simulated.into_iter().enumerate() {
                let bound = core.response(task).expect("less than the whole is asked for");
                prop_assert!(longest <= bound, "task {task}: {longest} > {bound} of {core:?}");
            }
        }
    }

    fn core(tasks: &[(u64, u64)], interrupts: &[(u64, u64)]) -> Core {
        let all = |these: &[(u64, u64)]| {
            let each = these
                .iter()
                .map(|&(period, budget)| Recurring { period, budget });
            each.collect()
        };
        Core {
            tasks: all(tasks),
            interrupts: all(interrupts),
            dispatch: 0,
        }
    }

    #[test]
    fn small_sets_by_hand() {
        // Waits for the less urgent one that has just begun.
        let two = core(&[(10, 2), (20, 5)], &[]);
        assert_eq!((two.response(0), two.response(1)), (Some(7), Some(7)));
        // An interrupt each 4, of 1: 7 instants of work take 10 with those at 0, 4 and 8.
        let interrupted = core(&[(10, 2), (20, 5)], &[(4, 1)]);
        assert_eq!(interrupted.response(0), Some(10));
        // The first activation of the last takes 30, the second 35: only the whole busy period tells (Davis, Burns,
        // Bril and Lukkien 2007, their counterexample on CAN).
        let pushed = core(&[(25, 10), (35, 10), (35, 10)], &[]);
        assert_eq!(pushed.response(2), Some(35));
    }

    #[test]
    fn simulated_sets_reach_their_bound() {
        // A bound that nothing comes near would say little.
        let set = core(&[(10, 2), (20, 5)], &[]);
        let longest = (0..200).map(|seed| simulated(&set, 2000, seed)[0]).max();
        assert_eq!(
            longest,
            Some(6),
            "one instant below 7, as the other began an instant before"
        );
    }

    #[test]
    fn too_much_work_has_no_bound() {
        let full = core(&[(10, 6), (10, 5)], &[]);
        assert!(full.utilisation() > 1_000_000);
        assert_eq!(full.response(1), None);
    }
}
