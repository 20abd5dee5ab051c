//! Two levels of criticality on one core, by demand in both modes (Ekberg and Yi, “Bounding and shaping the demand of
//! mixed-criticality sporadic tasks”, ECRTS 2012).
//!
//! While every invocation keeps within `budget`, all are scheduled, those of high criticality by virtual deadlines. When
//! one of high criticality has used up its `budget`, those of low criticality are suspended, and high ones go on with
//! `budget_high` and their own deadlines until the core is idle.
//!
//! *Invariant:* sound, not exact: what is found to fit fits in both modes; of one scale of virtual deadlines, and for
//! tasks of high criticality with deadlines not above periods and without bursts.

use num_bigint::BigInt;

use crate::demand::{Demand, Horizon, Line, Plain, Utilisation, horizon, horizon_of_lines};
use crate::qpa::{Answer, answer};
use crate::task::Task;

/// Virtual deadlines are multiples of 1/16 of the deadlines.
const SCALES: u64 = 16;

/// What high tasks demand after the switch: carried-over invocations less what they had done.
struct AfterSwitch<'a> {
    tasks: &'a [Task],
    scale: u64,
    blocking: u128,
}

/// The deadline of a task before the switch.
fn virtual_deadline(task: &Task, scale: u64) -> u64 {
    if task.low {
        return task.deadline;
    }
    let scaled = u128::from(task.deadline) * u128::from(scale);
    // A sixteenth of at most 16 times a number of 64 bits.
    scaled.div_ceil(u128::from(SCALES)) as u64
}

impl AfterSwitch<'_> {
    fn high(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| !task.low)
    }

    /// How much of its deadline is left to a task at the least when it is carried over.
    fn left(&self, task: &Task) -> u128 {
        u128::from(task.deadline - virtual_deadline(task, self.scale))
    }

    fn demand_of(&self, task: &Task, time: u128) -> u128 {
        let (left, period) = (self.left(task), u128::from(task.period));
        if time < left {
            return 0;
        }
        let full = (1 + (time - left) / period).saturating_mul(task.budget_high);
        let phase = time % period;
        let carried = (left..u128::from(task.deadline)).contains(&phase);
        let done = match carried {
            true => task.budget.saturating_sub(phase - left),
            false => 0,
        };
        full.saturating_sub(done)
    }
}

impl Demand for AfterSwitch<'_> {
    fn at(&self, time: u128) -> u128 {
        let tasks = self.high().map(|task| self.demand_of(task, time));
        tasks.fold(self.blocking, u128::saturating_add)
    }

    // Demand jumps where a carried-over invocation begins to count, and climbs until what it had done is made up for.
    fn last_rise(&self, end: u128) -> Option<u128> {
        let before = end.checked_sub(1)?;
        let tasks = self.high().flat_map(|task| {
            let (left, period) = (self.left(task), u128::from(task.period));
            [left, left + task.budget].map(|first| {
                let later = before.checked_sub(first)?;
                Some(first + later / period * period)
            })
        });
        tasks.flatten().max()
    }
}

/// A scale of virtual deadlines at which both modes fit, the largest; none if none was found.
pub(crate) fn scale(tasks: &[Task], blocking: u128, limit: u64) -> Option<u64> {
    let mut high = tasks.iter().filter(|task| !task.low);
    let analysed =
        |task: &Task| task.burst == 1 && task.jitter == 0 && task.deadline <= task.period;
    if !high.all(analysed) {
        return None;
    }
    (1..=SCALES)
        .rev()
        .find(|scale| fits(tasks, *scale, blocking, limit).is_some())
}

/// How far both modes were looked at, if they fit at a scale.
pub(crate) fn fits(tasks: &[Task], scale: u64, blocking: u128, limit: u64) -> Option<u128> {
    let before = before_switch(tasks, scale);
    let plain = Plain {
        tasks: &before,
        blocking,
    };
    let used = Utilisation::of(before.iter().map(|task| (task.budget, task.period)));
    let one = held(&plain, horizon(&plain, &used), limit)?;
    let after = AfterSwitch {
        tasks,
        scale,
        blocking,
    };
    let other = held(&after, after_horizon(&after), limit)?;
    Some(one.max(other))
}

/// The tasks with their deadlines before the switch.
pub(crate) fn before_switch(tasks: &[Task], scale: u64) -> Vec<Task> {
    let sooner = |task: &Task| Task {
        deadline: virtual_deadline(task, scale),
        ..task.clone()
    };
    tasks.iter().map(sooner).collect()
}

/// How far windows after the switch must be looked at.
fn after_horizon(after: &AfterSwitch) -> Horizon {
    let lines: Vec<Line> = after
        .high()
        .map(|task| Line {
            budget: task.budget_high,
            period: task.period,
            lead: BigInt::from(task.period) - BigInt::from(after.left(task)),
            from: 0,
            periodic: task.deadline.into(),
        })
        .collect();
    let used = Utilisation::of(lines.iter().map(|line| (line.budget, line.period)));
    horizon_of_lines(&lines, after.blocking, &used)
}

/// The horizon, if no window below it demands more than its length.
fn held(demand: &impl Demand, horizon: Horizon, limit: u64) -> Option<u128> {
    match horizon {
        Horizon::Below(end) => {
            matches!(answer(demand, 0, end, limit), Answer::Fits { .. }).then_some(end)
        }
        Horizon::Over | Horizon::TooFar => None,
    }
}
