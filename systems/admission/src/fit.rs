//! Whether tasks fit one core.
//!
//! *Invariant:* with one level of criticality the answer is exact for arrivals as early as the set allows.

use crate::certificate::{Core, Degraded, Point};
use crate::criticality;
use crate::demand::{Blocking, Horizon, Plain, Utilisation, horizon};
use crate::qpa::{Answer, KEPT, Step, answer};
use crate::task::Task;

/// How much may be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Tasks times steps of one test of a core.
    pub(crate) steps: u64,
    /// Tests of a core in one search for a partition.
    pub(crate) tests: u32,
}

impl Effort {
    /// Of a decision.
    pub(crate) const FULL: Effort = Effort {
        steps: 1 << 24,
        tests: 20_000,
    };
    /// Of one try of a remedy, of which there are many.
    pub(crate) const SMALL: Effort = Effort {
        steps: 1 << 14,
        tests: 200,
    };
}

/// Why tasks fit a core.
pub(crate) struct Fit {
    pub(crate) used: Utilisation,
    pub(crate) horizon: u128,
    pub(crate) steps: Vec<Step>,
    pub(crate) whole: bool,
    /// The scale of virtual deadlines, where low tasks must be given up.
    pub(crate) scale: Option<u64>,
}

/// Why they do not.
#[derive(Clone, Debug)]
pub(crate) enum NoFit {
    /// More is asked for in the long run than there is.
    Over(Utilisation),
    /// A window demands more than its length.
    Misses(Step),
    /// It is not known in the effort allowed.
    Undecided,
}

/// Whether tasks fit, in an effort of tasks times steps.
pub(crate) fn fit(tasks: &[Task], blocking: Blocking, effort: Effort) -> Result<Fit, NoFit> {
    let limit = limit(tasks, effort);
    let found = fit_undegraded(tasks, blocking, limit);
    let two_levels = tasks.iter().any(|task| task.budget_high > task.budget);
    if found.is_ok() || !two_levels {
        return found;
    }
    match criticality::scale(tasks, blocking.section.into(), limit) {
        Some(scale) => Ok(degraded(tasks, blocking, scale, limit)),
        None => found,
    }
}

/// How far tasks were looked at, if they fit in the way in which others did: without giving any up, or by virtual deadlines
/// of a scale.
pub(crate) fn fits_as(
    tasks: &[Task],
    blocking: Blocking,
    scale: Option<u64>,
    effort: Effort,
) -> Option<u128> {
    let limit = limit(tasks, effort);
    match scale {
        None => fit_undegraded(tasks, blocking, limit)
            .ok()
            .map(|fit| fit.horizon),
        Some(scale) => criticality::fits(tasks, scale, blocking.section.into(), limit),
    }
}

fn limit(tasks: &[Task], effort: Effort) -> u64 {
    (effort.steps / (tasks.len() as u64).max(1)).max(64)
}

/// Every invocation may take its high budget, and none is given up.
fn fit_undegraded(tasks: &[Task], blocking: Blocking, limit: u64) -> Result<Fit, NoFit> {
    let most: Vec<Task> = tasks
        .iter()
        .map(|task| Task {
            budget: task.budget_high,
            ..task.clone()
        })
        .collect();
    plain_fit(&most, blocking, limit)
}

fn plain_fit(tasks: &[Task], blocking: Blocking, limit: u64) -> Result<Fit, NoFit> {
    let used = Utilisation::of(tasks.iter().map(|task| (task.budget, task.period)));
    let most = Plain {
        tasks,
        blocking: blocking.most(tasks),
    };
    let horizon = match horizon(&most, &used) {
        Horizon::Over => return Err(NoFit::Over(used)),
        Horizon::TooFar => return Err(NoFit::Undecided),
        Horizon::Below(end) => end,
    };
    let (mut steps, mut whole, mut end) = (Vec::new(), true, horizon);
    for (first, blocking) in blocking.ranges(tasks) {
        let plain = Plain { tasks, blocking };
        match answer(&plain, first, end, limit) {
            Answer::Fits {
                steps: more,
                whole: all,
            } => {
                steps.extend(more);
                whole &= all;
            }
            Answer::Misses(step) => return Err(NoFit::Misses(step)),
            Answer::TooLong => return Err(NoFit::Undecided),
        }
        end = end.min(first);
    }
    steps.truncate(KEPT);
    Ok(Fit {
        whole: whole && steps.len() < KEPT,
        used,
        horizon,
        steps,
        scale: None,
    })
}

/// Why tasks fit by virtual deadlines of a scale that was found to suffice: the windows before the switch are told.
fn degraded(tasks: &[Task], blocking: Blocking, scale: u64, limit: u64) -> Fit {
    let before = criticality::before_switch(tasks, scale);
    let fit = plain_fit(&before, blocking, limit).expect("the scale was found by this test");
    Fit {
        scale: Some(scale),
        ..fit
    }
}

/// Of what a certificate tells of a core all but what is spare.
pub(crate) fn certified(core: u32, tasks: &[Task], fit: &Fit) -> Core {
    let names = |chosen: &dyn Fn(&Task) -> bool| -> Vec<String> {
        let chosen = tasks
            .iter()
            .filter(|task| task.function.is_some() && chosen(task));
        chosen.map(|task| task.name.clone()).collect()
    };
    Core {
        core,
        functions: names(&|_| true),
        compile_server: tasks
            .iter()
            .any(|task| task.function.is_none() && !task.above),
        utilisation: fit.used.fraction(),
        utilisation_millionths: fit.used.millionths(),
        horizon: fit.horizon,
        decides: fit
            .steps
            .iter()
            .map(|step| Point {
                time: step.time,
                demand: step.demand,
            })
            .collect(),
        decides_whole: fit.whole,
        degraded: fit.scale.map(|scale| Degraded {
            suspended: names(&|task| task.low),
            virtual_deadlines: scale,
        }),
        spare: Vec::new(),
    }
}
