//! The executive: tasks of fixed priority, released by a table, run to completion on one stack.
//!
//! A task is released each period; of those released the most urgent runs, to its end. What an activation takes is
//! measured and compared with its budget, when it ends with its deadline: both are told, none is hidden. A task that has
//! fallen behind runs once for each release, at most `BEHIND` of them; older ones are counted as skipped.
//!
//! *Invariant:* releases are at `offset + k * period` ticks, whatever ran before; every release is run or counted.

use crate::declared::Timing;

/// Releases of a task that may be due at once.
const BEHIND: u32 = 2;

/// What the executive needs of a core.
pub trait Core {
    /// Ticks since the epoch.
    fn ticks(&self) -> u32;

    /// Units of 100 nanoseconds since the epoch, modulo 2³².
    fn time(&self) -> u32;

    /// Units of 100 nanoseconds that interrupts have taken, modulo 2³².
    fn stolen(&self) -> u32;

    /// Tells the outside that task `number` runs, or none.
    fn running(&mut self, number: Option<usize>);
}

/// How an activation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The task.
    pub task: usize,
    /// Microseconds that it took, without interrupts, rounded up.
    pub took: u32,
    /// Microseconds from its release to its end, rounded up.
    pub response: u32,
    /// It took more than its budget.
    pub over_budget: bool,
    /// It was not done by its deadline.
    pub late: bool,
    /// Releases that were skipped before this one.
    pub skipped: u32,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Activations.
    pub runs: u32,
    /// The most microseconds that one took.
    pub longest: u32,
    /// The most microseconds from a release to its end.
    pub response: u32,
    /// Times over budget.
    pub over_budget: u32,
    /// Deadlines missed, skipped releases included.
    pub late: u32,
}

/// The tasks of a core.
pub struct Executive<const N: usize> {
    table: &'static [Timing; N],
    next: [u32; N],
    tick: u32,
    activity: [Activity; N],
    /// Units of 100 nanoseconds that tasks took, since it was asked last.
    busy: u32,
}

impl<const N: usize> Executive<N> {
    /// The tasks of `table`, the most urgent first, released from the epoch on; a tick takes `tick` microseconds.
    #[must_use]
    pub fn new(table: &'static [Timing; N], tick: u32) -> Self {
        let mut next = [0; N];
        for (next, timing) in next.iter_mut().zip(table) {
            *next = timing.offset;
        }
        Executive {
            table,
            next,
            tick,
            activity: [Activity::default(); N],
            busy: 0,
        }
    }

    /// Runs the most urgent task that is released, by `run`; none if there is none. O(N), and what the task takes.
    pub fn dispatch<C: Core>(
        &mut self,
        core: &mut C,
        run: impl FnOnce(usize, &mut C),
    ) -> Option<Ran> {
        let now = core.ticks();
        let due = |next: u32| now.wrapping_sub(next) < 1 << 31;
        let task = self.next.iter().position(|&next| due(next))?;
        let timing = &self.table[task];
        let behind = now.wrapping_sub(self.next[task]) / timing.period;
        let skipped = behind.saturating_sub(BEHIND - 1);
        let release = self.next[task].wrapping_add(skipped * timing.period);
        self.next[task] = release.wrapping_add(timing.period);

        core.running(Some(task));
        let (begun, stolen) = (core.time(), core.stolen());
        run(task, core);
        let ended = core.time();
        let stolen = core.stolen().wrapping_sub(stolen);
        core.running(None);

        let took = ended.wrapping_sub(begun).wrapping_sub(stolen);
        let released = release.wrapping_mul(self.tick).wrapping_mul(10);
        let response = ended.wrapping_sub(released).div_ceil(10);
        let ran = Ran {
            task,
            took: took.div_ceil(10),
            response,
            over_budget: took > timing.budget * 10,
            late: response > timing.deadline,
            skipped,
        };
        self.note(&ran, took);
        Some(ran)
    }

    fn note(&mut self, ran: &Ran, took: u32) {
        let it = &mut self.activity[ran.task];
        it.runs = it.runs.wrapping_add(1);
        it.longest = it.longest.max(ran.took);
        it.response = it.response.max(ran.response);
        it.over_budget += u32::from(ran.over_budget);
        it.late += u32::from(ran.late) + ran.skipped;
        self.busy = self.busy.wrapping_add(took);
    }

    /// What is known of the tasks.
    #[must_use]
    pub fn activity(&self) -> &[Activity; N] {
        &self.activity
    }

    /// Units of 100 nanoseconds that tasks took since the last call.
    pub fn take_busy(&mut self) -> u32 {
        core::mem::take(&mut self.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A core whose time is what tasks take.
    #[derive(Default)]
    struct Plain {
        time: u32,
        traced: Vec<Option<usize>>,
    }

    impl Core for Plain {
        fn ticks(&self) -> u32 {
            self.time / 10_000
        }

        fn time(&self) -> u32 {
            self.time
        }

        fn stolen(&self) -> u32 {
            0
        }

        fn running(&mut self, number: Option<usize>) {
            self.traced.push(number);
        }
    }

    const fn timing(period: u32, offset: u32, deadline: u32, budget: u32) -> Timing {
        Timing {
            name: "",
            period,
            offset,
            deadline,
            budget,
        }
    }

    static TABLE: [Timing; 3] = [
        timing(1, 0, 1000, 200),
        timing(5, 2, 5000, 400),
        timing(10, 0, 10_000, 3000),
    ];

    proptest! {
        /// Beside a list of all releases: each is run in the order of urgency among those due, or counted.
        #[test]
        fn every_release_is_run_or_counted(works in proptest::collection::vec(1u32..30_000, 1..300)) {
            let mut executive = Executive::new(&TABLE, 1000);
            let mut core = Plain::default();
            let mut served = [0u32; 3];
            for &work in &works {
                let now = core.ticks();
                let releases = |task: usize| {
                    let it = &TABLE[task];
                    if now < it.offset { 0 } else { (now - it.offset) / it.period + 1 }
                };
                let urgent = (0..3).find(|&task| releases(task) > served[task]);
                let ran = executive.dispatch(&mut core, |_, core| core.time += work);
                prop_assert_eq!(ran.map(|ran| ran.task), urgent);
                match ran {
                    Some(ran) => {
                        let behind = releases(ran.task) - served[ran.task];
                        prop_assert_eq!(ran.skipped, behind.saturating_sub(BEHIND));
                        served[ran.task] += ran.skipped + 1;
                        let release = TABLE[ran.task].offset + (served[ran.task] - 1) * TABLE[ran.task].period;
                        prop_assert_eq!(ran.response, (core.time - release * 10_000).div_ceil(10));
                        prop_assert_eq!(ran.took, work.div_ceil(10));
                        prop_assert_eq!(ran.late, ran.response > TABLE[ran.task].deadline);
                    }
                    None => core.time = (now + 1) * 10_000,
                }
            }
        }
    }

    #[test]
    fn the_outside_sees_what_runs() {
        let mut executive = Executive::new(&TABLE, 1000);
        let mut core = Plain::default();
        executive.dispatch(&mut core, |_, core| core.time += 3000);
        assert_eq!(core.traced, [Some(0), None]);
        let activity = executive.activity()[0];
        assert_eq!(
            (activity.runs, activity.longest, activity.over_budget),
            (1, 300, 1)
        );
        assert_eq!(executive.take_busy(), 3000);
    }
}
