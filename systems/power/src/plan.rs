//! The plan of a system: a pair of frequencies, or a schedule of speeds, with the least energy.
//!
//! *Invariant:* a plan that is feasible was checked by [`checker`](crate::checker), which knows no optimiser.

use num_traits::Zero;

use crate::analysis::{AnalysisError, Miss, check};
use crate::checker::{Flaw, Planned, check_pair, check_schedule};
use crate::levels;
use crate::pair::{Candidate, candidates, cheapest, hyperperiod, per_task};
use crate::rational::{Rational, nearly};
use crate::simulation::{Order, Released, Run, Speeds, simulate};
use crate::speed::{energy_of, fixed_priority, run_by_deadline, windows, yds};
use crate::system::{Cost, Pair, Scheduler, System};

/// Most jobs of a schedule by priorities.
pub const MOST_BY_PRIORITY: usize = 5_000;
/// Most jobs that tasks are expanded to.
const MOST_EXPANDED: usize = 200_000;
/// Most groups of one speed whose energies are summed exactly: their denominators multiply.
const MOST_EXACT: usize = 2_000;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No exact answer in bounded time.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// What cannot be planned so.
    #[error("{0}")]
    Unsuited(String),
    /// The plan does not hold: a fault of the planner.
    #[error("the plan does not hold where it is checked apart: {0}")]
    Flawed(#[from] Flaw),
}

/// How hard is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Problems of branch and bound, for each stretch of time or each assignment of pairs.
    pub nodes: u64,
    /// Whether each task may have a pair of its own.
    pub per_task: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            nodes: 20_000,
            per_task: false,
        }
    }
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Whether there is one that meets all deadlines.
    pub feasible: bool,
    /// The pair of all tasks, where there is one for all.
    pub pair: Option<Pair>,
    /// The pairs of tasks, where each has its own.
    pub pairs: Vec<(String, Pair)>,
    /// Energy over the hyperperiod, or from the first release to the last deadline; none where the exact number would have
    /// more digits than anybody reads.
    pub energy: Option<Rational>,
    /// The same to 15 digits.
    pub energy_nearly: f64,
    /// No plan takes less than this.
    pub bound_nearly: f64,
    /// Whether nothing takes less.
    pub optimal: bool,
    /// What the energy is over.
    pub length: Rational,
    /// Who runs when and how fast, core by core.
    pub speeds: Vec<Planned>,
    /// All pairs, as they were looked at.
    pub candidates: Vec<Candidate>,
    /// Who is late first at the highest frequencies, where there is no plan.
    pub miss: Option<Miss>,
}

/// Plans a system.
///
/// # Errors
/// [`PlanError`] where what is asked cannot be planned, or not in bounded time.
pub fn plan(system: &System, effort: Effort) -> Result<Plan, PlanError> {
    let any_speed = system.processor.cpu.is_empty();
    if any_speed || system.tasks.is_empty() {
        if effort.per_task {
            return Err(PlanError::Unsuited(
                "a pair for each task needs tasks, and frequencies of [processor]: give both"
                    .to_owned(),
            ));
        }
        return schedule(system, effort);
    }
    if let Some(task) = system.tasks.iter().find(|task| !task.blocking.is_fixed())
        && effort.per_task
    {
        return Err(PlanError::Unsuited(format!(
            "blocking of `{}` depends on the frequencies, and a pair for each task does not say at which it is blocked: give it as a time",
            task.name
        )));
    }
    if effort.per_task && system.jobs.is_empty() {
        return each_its_pair(system, effort);
    }
    if effort.per_task {
        return Err(PlanError::Unsuited(
            "a pair for each task is not planned beside jobs that come once: leave these out"
                .to_owned(),
        ));
    }
    one_pair(system)
}

fn one_pair(system: &System) -> Result<Plan, PlanError> {
    let candidates = candidates(system)?;
    let mut plan = Plan {
        length: hyperperiod(system),
        optimal: true,
        ..Plan::default()
    };
    match cheapest(&candidates) {
        Some(best) => {
            let energy = check_pair(system, &best.pair)?;
            if energy != best.energy {
                return Err(Flaw::Energy.into());
            }
            plan.feasible = true;
            plan.energy_nearly = nearly(&best.energy);
            plan.energy = Some(best.energy.clone());
            plan.pair = Some(best.pair.clone());
        }
        None => plan.miss = check(system, None)?.miss(),
    }
    plan.bound_nearly = plan.energy_nearly;
    plan.candidates = candidates;
    Ok(plan)
}

fn each_its_pair(system: &System, effort: Effort) -> Result<Plan, PlanError> {
    let mut plan = Plan {
        length: hyperperiod(system),
        ..Plan::default()
    };
    match per_task(system, effort.nodes)? {
        Some(found) => {
            // What is chosen, as times that no frequency changes.
            let mut chosen = system.clone();
            for (task, pair) in chosen.tasks.iter_mut().zip(&found.pairs) {
                task.cost = Cost::Time(task.cost.time(pair));
            }
            check_pair(&chosen, &system.processor.fastest())?;
            plan.feasible = true;
            plan.optimal = found.optimal;
            plan.energy_nearly = nearly(&found.energy);
            plan.energy = Some(found.energy);
            let names = system.tasks.iter().map(|task| task.name.clone());
            plan.pairs = names.zip(found.pairs).collect();
        }
        None => plan.miss = check(system, None)?.miss(),
    }
    plan.bound_nearly = if plan.optimal {
        plan.energy_nearly
    } else {
        0.0
    };
    Ok(plan)
}

/// Jobs of a core, with their names.
struct OnCore {
    core: u32,
    names: Vec<String>,
    jobs: Vec<Released>,
}

fn schedule(system: &System, effort: Effort) -> Result<Plan, PlanError> {
    let cores = jobs_of(system)?;
    let all = || cores.iter().flat_map(|on_core| &on_core.jobs);
    let from = all().map(|job| &job.release).min().cloned();
    let to = all().map(|job| &job.deadline).max().cloned();
    let (from, to) = (
        from.unwrap_or_else(Rational::zero),
        to.unwrap_or_else(Rational::zero),
    );
    if system.processor.sleep.is_some() && cores.len() > 1 {
        return Err(PlanError::Unsuited(
            "sleep is planned for one core, and there are more: leave it out".to_owned(),
        ));
    }
    let mut plan = Plan {
        feasible: true,
        optimal: true,
        energy: Some(Rational::zero()),
        length: &to - &from,
        ..Plan::default()
    };
    for on_core in &cores {
        let sped = sped(&on_core.jobs, system, effort)?;
        plan.optimal &= sped.optimal;
        let (run, energy) = if system.processor.cpu.is_empty() {
            let factor = nearly(&system.processor.power.cpu_cubed);
            plan.bound_nearly += factor * sped.bound_nearly;
            plan.energy_nearly += factor * sped.energy_nearly;
            let cubed = &system.processor.power.cpu_cubed;
            (sped.run, sped.energy.map(|energy| energy * cubed))
        } else {
            let jobs = &on_core.jobs;
            let found = levels::cheapest(
                jobs,
                &sped.run,
                system.scheduler,
                &system.processor,
                &from,
                &to,
            );
            let Some((run, energy)) = found else {
                return Ok(Plan {
                    miss: miss(on_core, system),
                    ..Plan::default()
                });
            };
            // The floor is everybody's: it is added once below.
            let energy = energy - &system.processor.power.floor * &plan.length;
            plan.energy_nearly += nearly(&energy);
            let convex = system.processor.sleep.is_none() && system.processor.switch_is_free();
            plan.optimal &= convex && system.scheduler == Scheduler::Edf;
            (run, Some(energy))
        };
        plan.energy = match (plan.energy, energy) {
            (Some(sum), Some(energy)) => Some(sum + energy),
            _ => None,
        };
        plan.speeds.extend(planned(on_core, &run));
        check_schedule(&on_core.jobs, &run, system.scheduler, &system.processor)?;
    }
    let floor = &system.processor.power.floor * &plan.length;
    plan.energy_nearly += nearly(&floor);
    plan.bound_nearly += nearly(&floor);
    plan.energy = plan.energy.map(|energy| energy + floor);
    if plan.optimal {
        plan.bound_nearly = plan.energy_nearly;
    }
    Ok(plan)
}

/// A schedule of any speeds.
struct Sped {
    run: Run,
    energy: Option<Rational>,
    energy_nearly: f64,
    bound_nearly: f64,
    optimal: bool,
}

fn sped(jobs: &[Released], system: &System, effort: Effort) -> Result<Sped, PlanError> {
    match system.scheduler {
        Scheduler::Edf => {
            let groups = yds(&windows(jobs));
            let exact = groups.groups.len() <= MOST_EXACT;
            let energy_nearly = groups.nearly();
            Ok(Sped {
                run: run_by_deadline(jobs, &groups),
                energy: exact.then(|| groups.energy()),
                energy_nearly,
                bound_nearly: energy_nearly,
                optimal: true,
            })
        }
        Scheduler::FixedPriority => {
            if jobs.len() > MOST_BY_PRIORITY {
                return Err(PlanError::Unsuited(format!(
                    "{} jobs, and {MOST_BY_PRIORITY} at most are planned by priorities: part them, or schedule by edf",
                    jobs.len()
                )));
            }
            let optimum = fixed_priority(jobs, effort.nodes);
            let energy = energy_of(&optimum.groups);
            Ok(Sped {
                energy_nearly: nearly(&energy),
                energy: Some(energy),
                bound_nearly: nearly(&energy_of(&optimum.bound)),
                optimal: optimum.optimal,
                run: optimum.run,
            })
        }
    }
}

/// Who is late first at the highest level.
fn miss(on_core: &OnCore, system: &System) -> Option<Miss> {
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let speeds = Speeds::Constant(system.processor.fastest().cpu);
    let run = simulate(&on_core.jobs, order, &speeds);
    let late = run.late(&on_core.jobs)?;
    let end = run.finish[late].as_ref();
    Some(Miss {
        name: on_core.names[late].clone(),
        late: end.map(|end| end - &on_core.jobs[late].deadline),
    })
}

fn planned(on_core: &OnCore, run: &Run) -> Vec<Planned> {
    let segments = run.segments.iter();
    let planned = segments.map(|segment| Planned {
        job: on_core.names[segment.job].clone(),
        core: on_core.core,
        from: segment.from.clone(),
        to: segment.to.clone(),
        speed: segment.speed.clone(),
    });
    planned.collect()
}

/// The jobs of each core: those that come once, and those of tasks that come before the last first arrival and one
/// hyperperiod more, named `task#1` and so on.
fn jobs_of(system: &System) -> Result<Vec<OnCore>, PlanError> {
    let system = &system.ranked();
    let offsets = system.tasks.iter().map(|task| task.offset.clone());
    let end = offsets.max().unwrap_or_else(Rational::zero) + hyperperiod(system);
    let mut expanded = 0;
    let mut cores = Vec::new();
    for core in system.cores() {
        let mut on_core = OnCore {
            core,
            names: Vec::new(),
            jobs: Vec::new(),
        };
        for job in system.jobs.iter().filter(|job| job.core == core) {
            on_core.names.push(job.name.clone());
            on_core.jobs.push(Released {
                release: job.release.clone(),
                deadline: job.deadline.clone(),
                work: job.work.clone(),
                priority: job.priority,
            });
        }
        for task in system.tasks.iter().filter(|task| task.core == core) {
            let Some(work) = task.cost.work().filter(|_| task.blocking.is_zero()) else {
                return Err(PlanError::Unsuited(format!(
                    "`{}` takes memory, constant or blocking, which no speed changes: list frequencies of [processor], or leave them out",
                    task.name
                )));
            };
            let mut release = task.offset.clone();
            let mut number = 0;
            while release < end {
                number += 1;
                expanded += 1;
                // It may be ready so late only: it is planned behind that.
                let ready = &release + &task.jitter;
                let deadline = &release + &task.deadline;
                if deadline <= ready || expanded > MOST_EXPANDED {
                    return Err(PlanError::Unsuited(if deadline <= ready {
                        format!(
                            "`{}` may be ready at its deadline only: give it less jitter",
                            task.name
                        )
                    } else {
                        format!(
                            "a hyperperiod has more than {MOST_EXPANDED} jobs: give periods that have a smaller common multiple"
                        )
                    }));
                }
                on_core.names.push(format!("{}#{number}", task.name));
                on_core.jobs.push(Released {
                    release: ready,
                    deadline,
                    work: work.clone(),
                    priority: task.priority,
                });
                release += &task.period;
            }
        }
        cores.push(on_core);
    }
    Ok(cores)
}
