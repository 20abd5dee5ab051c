//! Whether a certificate tells the truth about a set, by a way of its own: release for release and deadline for deadline,
//! in order of time, from the set's figures alone.
//!
//! Nothing of the admission's own analysis is used, so a fault there is found here. The walk over a core ends where its
//! first busy period does, or where a line above all later demand is below its supply.
//!
//! *Invariant:* `Ok` means that every deadline on every core was seen to be met; a walk that is too long is a flaw.

mod modes;
mod walk;

use std::collections::HashMap;

use crate::certificate::{Certificate, Core};
use crate::set::{Criticality, Function, Scheduling, Set};
use walk::Job;

/// Why a certificate does not prove that its set fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// There is no such set.
    #[error("the set is impossible: {0}")]
    Set(String),
    /// The cores are not those of the host.
    #[error(
        "the certificate has {found} cores, numbered or counted otherwise than the host's {expected}"
    )]
    Cores {
        /// How many it has.
        found: usize,
        /// How many the host has.
        expected: u32,
    },
    /// A function is on no core, on several, on another than its own, or in no set.
    #[error("`{0}` is not placed once, on the core that the set gives")]
    Placement(String),
    /// The bytes are not those of the set, or more than there are.
    #[error("the set asks for {asked} bytes of {there}, which is not what the certificate says")]
    Memory {
        /// Bytes that the set asks for.
        asked: u128,
        /// Bytes that there are.
        there: u64,
    },
    /// The network has no bound for a function's requests, or takes all of its deadline.
    #[error("requests of `{0}` are not there before their deadline")]
    Network(String),
    /// A deadline is missed.
    #[error("core {core} must do {demand} in a window of {time}")]
    Missed {
        /// The core.
        core: u32,
        /// The window.
        time: u128,
        /// What must be done in it.
        demand: u128,
    },
    /// A window of the certificate demands something else.
    #[error(
        "core {core}: a window of {time} demands {demand}, which is not what the certificate says"
    )]
    Point {
        /// The core.
        core: u32,
        /// The window.
        time: u128,
        /// What it demands.
        demand: u128,
    },
    /// The functions that are given up are not those of low criticality, or virtual deadlines cannot be.
    #[error("core {0}: what is said to be given up is not what the set lets go")]
    Degraded(u32),
    /// A function could not have as much more budget as is said.
    #[error("core {core}: `{name}` cannot have {budget} more")]
    Spare {
        /// The core.
        core: u32,
        /// The function.
        name: String,
        /// What is said to be spare.
        budget: u64,
    },
    /// A core that has more deadlines than are walked over.
    #[error("core {0} has more deadlines in its busy period than are walked over: not verified")]
    TooLong(u32),
}

impl Certificate {
    /// Verifies the certificate of a set. As many steps as there are releases in the busy periods, some millions at most.
    ///
    /// # Errors
    /// [`Flaw`]: the first thing that is not as it says.
    pub fn check(&self, set: &Set) -> Result<(), Flaw> {
        set.verify().map_err(|error| Flaw::Set(error.to_string()))?;
        self.check_memory(set)?;
        self.check_placement(set)?;
        let functions: HashMap<&str, &Function> = set
            .functions
            .iter()
            .map(|function| (function.name.as_str(), function))
            .collect();
        for core in &self.cores {
            check_core(core, set, &functions)?;
        }
        Ok(())
    }

    fn check_memory(&self, set: &Set) -> Result<(), Flaw> {
        let mut asked: u128 = set.functions.iter().map(|one| u128::from(one.memory)).sum();
        asked += set
            .host
            .compile_server
            .map_or(0, |one| u128::from(one.memory));
        let there = set.host.memory;
        let said = u128::from(self.memory.used);
        match said == asked && said + u128::from(self.memory.left) == u128::from(there) {
            true => Ok(()),
            false => Err(Flaw::Memory { asked, there }),
        }
    }

    fn check_placement(&self, set: &Set) -> Result<(), Flaw> {
        let numbered = (0..)
            .zip(&self.cores)
            .all(|(number, core)| core.core == number);
        if !numbered || self.cores.len() != set.host.cores as usize {
            return Err(Flaw::Cores {
                found: self.cores.len(),
                expected: set.host.cores,
            });
        }
        let mut placed: HashMap<&str, u32> = HashMap::new();
        for core in &self.cores {
            for name in &core.functions {
                if placed.insert(name, core.core).is_some() {
                    return Err(Flaw::Placement(name.clone()));
                }
            }
        }
        for function in &set.functions {
            let on = placed.remove(function.name.as_str());
            if on.is_none() || function.core.is_some() && function.core != on {
                return Err(Flaw::Placement(function.name.clone()));
            }
        }
        if let Some(name) = placed.keys().next() {
            return Err(Flaw::Placement((*name).to_owned()));
        }
        self.check_server(set)
    }

    fn check_server(&self, set: &Set) -> Result<(), Flaw> {
        let mut on = self.cores.iter().filter(|core| core.compile_server);
        let (first, second) = (on.next(), on.next());
        let asked = set.host.compile_server;
        let right = match (asked, first) {
            (None, first) => first.is_none(),
            (Some(server), Some(first)) => server.core.is_none_or(|core| core == first.core),
            (Some(_), None) => false,
        };
        match right && second.is_none() {
            true => Ok(()),
            false => Err(Flaw::Placement("compile server".to_owned())),
        }
    }
}

fn check_core(core: &Core, set: &Set, functions: &HashMap<&str, &Function>) -> Result<(), Flaw> {
    let mut jobs = jobs(core, set, functions)?;
    let blocking = u128::from(set.host.overheads.blocking);
    let whole = set.host.scheduling == Scheduling::NonPreemptive;
    let verify = |jobs: &[Job]| match &core.degraded {
        None => walk::deadlines_are_met(core.core, jobs, blocking, whole, |job| job.most),
        Some(degraded) => {
            modes::both_are_met(core.core, jobs, blocking, degraded.virtual_deadlines)
        }
    };
    check_degraded(core, &jobs)?;
    verify(&jobs)?;
    check_points(core, &jobs, blocking, whole)?;
    for spare in &core.spare {
        let flaw = || Flaw::Spare {
            core: core.core,
            name: spare.name.clone(),
            budget: spare.budget,
        };
        let named = jobs.iter().position(|job| job.name == Some(&spare.name));
        let index = named.ok_or_else(flaw)?;
        if spare.budget == 0 {
            continue;
        }
        let before = jobs[index].clone();
        jobs[index].usual += u128::from(spare.budget);
        jobs[index].most += u128::from(spare.budget);
        if verify(&jobs).is_err() {
            return Err(flaw());
        }
        jobs[index] = before;
    }
    Ok(())
}

/// What runs on a core, from the set.
fn jobs<'a>(
    core: &'a Core,
    set: &Set,
    functions: &HashMap<&str, &'a Function>,
) -> Result<Vec<Job<'a>>, Flaw> {
    let overheads = &set.host.overheads;
    let of_all = u128::from(overheads.release) + u128::from(overheads.scrub);
    let mut jobs = Vec::new();
    for name in &core.functions {
        let function = functions.get(name.as_str()).copied();
        let function = function.ok_or_else(|| Flaw::Placement(name.clone()))?;
        let late = || Flaw::Network(name.clone());
        let delay = network_delay(function).ok_or_else(late)?;
        let deadline = function.deadline.checked_sub(delay);
        let most = function.budget_high.unwrap_or(function.budget);
        let extra = of_all + u128::from(function.overhead);
        jobs.push(Job {
            name: Some(&function.name),
            period: function.period.into(),
            deadline: deadline.filter(|left| *left > 0).ok_or_else(late)?.into(),
            usual: u128::from(function.budget) + extra,
            most: u128::from(most) + extra,
            at_once: function.burst.into(),
            early: delay.into(),
            low: function.criticality == Criticality::Low,
            above: false,
        });
    }
    if let Some(server) = set.host.compile_server.filter(|_| core.compile_server) {
        jobs.push(Job {
            name: None,
            period: server.period.into(),
            deadline: server.period.into(),
            usual: server.budget.into(),
            most: server.budget.into(),
            at_once: 1,
            early: 0,
            low: true,
            above: false,
        });
    }
    // Each may come at the end of one period and at the beginning of the next.
    jobs.extend(set.host.interference.iter().map(|interference| Job {
        name: None,
        period: interference.period.into(),
        deadline: 0,
        usual: interference.budget.into(),
        most: interference.budget.into(),
        at_once: 2,
        early: 0,
        low: true,
        above: true,
    }));
    Ok(jobs)
}

/// The longest delay in closed form: of the last request of a burst, if all are served as fast as they come.
fn network_delay(function: &Function) -> Option<u64> {
    let Some(network) = &function.network else {
        return Some(0);
    };
    let fast = u128::from(network.rate) * u128::from(function.period);
    if u128::from(network.bytes) > fast {
        return None;
    }
    let burst = u128::from(function.burst) * u128::from(network.bytes);
    let delay = u128::from(network.latency) + burst.div_ceil(u128::from(network.rate));
    u64::try_from(delay).ok()
}

fn check_degraded(core: &Core, jobs: &[Job]) -> Result<(), Flaw> {
    let Some(degraded) = &core.degraded else {
        return Ok(());
    };
    let low = jobs.iter().filter(|job| job.low).filter_map(|job| job.name);
    let suspended = degraded.suspended.iter().eq(low);
    match suspended && (1..=16).contains(&degraded.virtual_deadlines) {
        true => Ok(()),
        false => Err(Flaw::Degraded(core.core)),
    }
}

/// What is said of windows, which is of the virtual deadlines if there are any.
fn check_points(core: &Core, jobs: &[Job], blocking: u128, whole: bool) -> Result<(), Flaw> {
    for point in &core.decides {
        let demand: u128 = jobs
            .iter()
            .map(|job| match &core.degraded {
                None => job.due(job.deadline, job.most, point.time),
                Some(degraded) => {
                    let deadline = modes::virtual_deadline(job, degraded.virtual_deadlines);
                    job.due(deadline, job.usual, point.time)
                }
            })
            .fold(blocking, u128::saturating_add);
        let demand = match whole {
            true => demand.saturating_add(walk::begun(jobs, point.time, |job| job.most)),
            false => demand,
        };
        if demand != point.demand {
            return Err(Flaw::Point {
                core: core.core,
                time: point.time,
                demand,
            });
        }
    }
    Ok(())
}
