//! What functions ask of a core, as sporadic tasks.
//!
//! A task is released at most `burst + ⌊(t + jitter) / period⌋` times in any closed window of length t, and each release
//! needs `budget` within `deadline`. A request that comes over a network is released when it has arrived whole: its
//! deadline is shorter by the network's longest delay, and that delay is its jitter.
//!
//! *Invariant:* what a set declares is in its tasks, and nothing else: without declared overheads a function's task has
//! the function's own figures.

use crate::network;
use crate::set::{Criticality, Function, Interference, Overheads, Set};

/// The name under which the compile server is placed; no function has it in brackets by chance, as names are compared
/// with their kind.
pub(crate) const COMPILE_SERVER: &str = "[compile server]";
/// As above, of what preempts functions.
pub(crate) const INTERFERENCE: &str = "[interference]";

/// What is placed on a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Whose.
    pub(crate) name: String,
    /// Index of the function; none of the compile server.
    pub(crate) function: Option<usize>,
    /// Its core, if it was given.
    pub(crate) core: Option<u32>,
    pub(crate) period: u64,
    /// From the release on the host.
    pub(crate) deadline: u64,
    /// Time of an invocation, the host's own included.
    pub(crate) budget: u128,
    /// The same when a function of high criticality takes more.
    pub(crate) budget_high: u128,
    /// Releases at once.
    pub(crate) burst: u64,
    /// How much later than another a release may come after its arrival.
    pub(crate) jitter: u64,
    /// Whether it may be suspended for others.
    pub(crate) low: bool,
    /// Whether it preempts all others, and has no deadline that is looked at.
    pub(crate) above: bool,
}

/// A function whose requests the network cannot bring in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooLate {
    pub(crate) function: usize,
    /// The network's longest delay; none if it grows without end.
    pub(crate) delay: Option<u64>,
}

/// The tasks of a set, in the order of its functions, the compile server last.
pub(crate) fn tasks(set: &Set) -> Result<Vec<Task>, TooLate> {
    let overheads = &set.host.overheads;
    let mut tasks = Vec::with_capacity(set.functions.len() + 1);
    for (index, function) in set.functions.iter().enumerate() {
        tasks.push(task(index, function, overheads)?);
    }
    tasks.extend(set.host.compile_server.as_ref().map(|server| Task {
        name: COMPILE_SERVER.to_owned(),
        function: None,
        core: server.core,
        period: server.period,
        deadline: server.period,
        budget: server.budget.into(),
        budget_high: server.budget.into(),
        burst: 1,
        jitter: 0,
        low: true,
        above: false,
    }));
    Ok(tasks)
}

/// What every core has above its tasks. A reservation serves at the end of one period and at the beginning of the next: of any
/// window it takes no more than a task does that is released twice at once and due at once.
pub(crate) fn above(set: &Set) -> Vec<Task> {
    let task = |interference: &Interference| Task {
        name: INTERFERENCE.to_owned(),
        function: None,
        core: None,
        period: interference.period,
        deadline: 0,
        budget: interference.budget.into(),
        budget_high: interference.budget.into(),
        burst: 2,
        jitter: 0,
        low: true,
        above: true,
    };
    set.host.interference.iter().map(task).collect()
}

fn task(index: usize, function: &Function, overheads: &Overheads) -> Result<Task, TooLate> {
    let delay = match &function.network {
        None => Some(0),
        Some(network) => network::delay(function, network),
    };
    let late = TooLate {
        function: index,
        delay,
    };
    let delay = delay.ok_or_else(|| late.clone())?;
    let deadline = function.deadline.checked_sub(delay);
    let deadline = deadline.filter(|deadline| *deadline > 0).ok_or(late)?;
    let extra =
        u128::from(overheads.release) + u128::from(overheads.scrub) + u128::from(function.overhead);
    let high = function.budget_high.unwrap_or(function.budget);
    Ok(Task {
        name: function.name.clone(),
        function: Some(index),
        core: function.core,
        period: function.period,
        deadline,
        budget: u128::from(function.budget) + extra,
        budget_high: u128::from(high) + extra,
        burst: function.burst,
        jitter: delay,
        low: function.criticality == Criticality::Low,
        above: false,
    })
}

impl Task {
    /// Most work whose release and deadline lie within a window of length `time`. O(1). Of what 128 bits do not hold, the
    /// most that they do.
    pub(crate) fn demand(&self, time: u128) -> u128 {
        let deadline = u128::from(self.deadline);
        if time < deadline {
            return 0;
        }
        let later = time - deadline + u128::from(self.jitter);
        let releases = u128::from(self.burst) + later / u128::from(self.period);
        releases.saturating_mul(self.budget)
    }

    /// Most work released in a window of length `time`, its end not included. Of what is above functions its end is
    /// included, as it is in its demand: of a busy period that ends with such a release the end decides, too. O(1).
    pub(crate) fn work(&self, time: u128) -> u128 {
        if self.above {
            return self.demand(time);
        }
        let later = time.saturating_add(u128::from(self.jitter));
        let releases = u128::from(self.burst) - 1 + later.div_ceil(u128::from(self.period));
        releases.saturating_mul(self.budget)
    }

    /// The last time below `end` at which one of its deadlines is; none if there is none before.
    pub(crate) fn last_rise(&self, end: u128) -> Option<u128> {
        if self.above {
            return None;
        }
        let deadline = u128::from(self.deadline);
        let before = end.checked_sub(1)?.checked_sub(deadline)?;
        let period = u128::from(self.period);
        // Releases beyond the burst are at multiples of the period less the jitter, and none before 0.
        let jitter = u128::from(self.jitter);
        let rise = ((before + jitter) / period * period).saturating_sub(jitter);
        Some(deadline + rise)
    }
}
