//! Whether a set fits: memory, then the cores that are given, then cores for the rest.
//!
//! *Invariant:* what is admitted has a certificate, what is refused has a reason.

use crate::certificate::{Certificate, Memory, Spare};
use crate::demand::Blocking;
use crate::fit::{Effort, Fit, NoFit, certified, fit};
use crate::partition::{Partition, given, partition};
use crate::refusal::{Reason, Refusal};
use crate::remedy;
use crate::set::Set;
use crate::task::{Task, above, tasks};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It fits, and this is why.
    Admitted(Certificate),
    /// It does not, or it is not known that it does.
    Refused(Refusal),
}

/// Whether a set fits its host.
///
/// Exact where every function has its core, none has `budget_high` and the host blocks nothing: refused are the sets that
/// miss a deadline when all arrive at once and as often as they may. The effort is bounded; what is not decided in it is
/// refused, and says so. A set that [`Set::verify`] finds impossible is refused as such.
#[must_use]
pub fn admit(set: &Set) -> Decision {
    match decide(set) {
        Ok((placed, fits)) => Decision::Admitted(certificate(set, &placed, &fits)),
        Err(reason) => Decision::Refused(Refusal {
            changes: remedy::changes(set, &reason),
            reason,
        }),
    }
}

/// Whether it is admitted, without certificate or remedy.
pub(crate) fn is_admitted(set: &Set, effort: Effort) -> bool {
    decide_in(set, effort).is_ok()
}

type Placed = Vec<Vec<Task>>;

fn decide(set: &Set) -> Result<(Placed, Vec<Fit>), Reason> {
    set.verify()
        .map_err(|error| Reason::Impossible(error.to_string()))?;
    let (asked, there) = memory(set);
    if asked > u128::from(there) {
        return Err(Reason::Memory { asked, there });
    }
    decide_in(set, Effort::FULL)
}

fn decide_in(set: &Set, effort: Effort) -> Result<(Placed, Vec<Fit>), Reason> {
    let tasks = tasks(set).map_err(|late| Reason::Network {
        function: set.functions[late.function].name.clone(),
        delay: late.delay,
    })?;
    let blocking = Blocking::of(&set.host);
    let above = above(set);
    let placed = given(&tasks, set.host.cores);
    let placed = collected(&tasks, &placed, &above);
    let fits = fit_all(&placed, blocking, effort)?;
    if tasks.iter().all(|task| task.core.is_some()) {
        return Ok((placed, fits));
    }
    let cores = match partition(&tasks, set.host.cores, &above, blocking, effort) {
        Partition::Found(cores) => cores,
        Partition::None => return Err(Reason::NoPartition { whole: true }),
        Partition::NotFound => return Err(Reason::NoPartition { whole: false }),
    };
    let mut placed = vec![Vec::new(); set.host.cores as usize];
    for (index, core) in cores.into_iter().enumerate() {
        placed[core as usize].push(index);
    }
    let placed = collected(&tasks, &placed, &above);
    let fits = fit_all(&placed, blocking, effort)?;
    Ok((placed, fits))
}

fn collected(tasks: &[Task], placed: &[Vec<usize>], above: &[Task]) -> Placed {
    let on = |core: &Vec<usize>| {
        let members = core.iter().map(|index| &tasks[*index]);
        members.chain(above).cloned().collect()
    };
    placed.iter().map(on).collect()
}

fn fit_all(placed: &Placed, blocking: Blocking, effort: Effort) -> Result<Vec<Fit>, Reason> {
    let fits = (0..).zip(placed).map(|(core, tasks)| {
        fit(tasks, blocking, effort).map_err(|no_fit| match no_fit {
            NoFit::Over(used) => Reason::Utilisation {
                core,
                fraction: used.fraction(),
                millionths: used.millionths(),
            },
            NoFit::Misses(step) => Reason::Demand {
                core,
                time: step.time,
                demand: step.demand,
            },
            NoFit::Undecided => Reason::Undecided { core },
        })
    });
    fits.collect()
}

/// Bytes that are asked for, and that there are.
pub(crate) fn memory(set: &Set) -> (u128, u64) {
    let server = set.host.compile_server.map_or(0, |server| server.memory);
    let functions = set.functions.iter().map(|function| function.memory);
    let asked = functions.chain([server]).map(u128::from).sum();
    (asked, set.host.memory)
}

fn certificate(set: &Set, placed: &Placed, fits: &[Fit]) -> Certificate {
    let (asked, there) = memory(set);
    let used = u64::try_from(asked).unwrap_or(there);
    let mut cores = Vec::with_capacity(fits.len());
    for ((core, tasks), fit) in (0..).zip(placed).zip(fits) {
        let mut certified = certified(core, tasks, fit);
        let spare = remedy::spare(tasks, Blocking::of(&set.host), fit.scale);
        certified.spare = spare
            .into_iter()
            .map(|(name, budget)| Spare { name, budget })
            .collect();
        cores.push(certified);
    }
    Certificate {
        cores,
        memory: Memory {
            used,
            left: there - used,
        },
    }
}
