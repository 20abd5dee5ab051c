//! What tasks demand of a core in a window of any length, and how far it must be looked at.
//!
//! *Invariant:* a window whose demand exceeds its length, if there is one, is shorter than what [`horizon`] returns.

use num_bigint::{BigInt, BigUint};
use num_traits::{ToPrimitive, Zero};

use crate::set::{Host, Scheduling};
use crate::task::Task;

/// The farthest that is looked: sums beyond are kept apart from it by saturation.
const FARTHEST: u128 = 1 << 120;
/// Rounds in which the busy period is looked for.
const ROUNDS: u32 = 10_000;

/// Demand of windows: never falls with their length.
pub(crate) trait Demand {
    /// Most demand in a window of length `time`; 128 bits' most if it is beyond.
    fn at(&self, time: u128) -> u128;
    /// The longest window below `end` that must be looked at: at lengths in between, demand less length is not above that
    /// of the next shorter one that is.
    fn last_rise(&self, end: u128) -> Option<u128>;
}

/// Plain demand by earliest deadline first, and a section that is not preempted.
pub(crate) struct Plain<'a> {
    pub(crate) tasks: &'a [Task],
    pub(crate) blocking: u128,
}

impl Demand for Plain<'_> {
    fn at(&self, time: u128) -> u128 {
        let tasks = self.tasks.iter().map(|task| task.demand(time));
        tasks.fold(self.blocking, u128::saturating_add)
    }

    fn last_rise(&self, end: u128) -> Option<u128> {
        let rises = self.tasks.iter().filter_map(|task| task.last_rise(end));
        rises.max()
    }
}

/// What may hold a core when a deadline comes near.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocking {
    /// The host's longest section that is not preempted.
    pub(crate) section: u64,
    /// Whether invocations are not preempted either.
    pub(crate) whole: bool,
}

impl Blocking {
    /// That of a host.
    pub(crate) fn of(host: &Host) -> Blocking {
        Blocking {
            section: host.overheads.blocking,
            whole: host.scheduling == Scheduling::NonPreemptive,
        }
    }

    /// Windows of lengths from a first one on, and what may block those: without preemption all but a unit of the longest
    /// invocation that is due later (Jeffay, Stanat and Martel 1991; George, Rivierre and Spuri 1996). The longest first.
    pub(crate) fn ranges(self, tasks: &[Task]) -> Vec<(u128, u128)> {
        let section = u128::from(self.section);
        if !self.whole {
            return vec![(0, section)];
        }
        let mut by_deadline: Vec<&Task> = tasks.iter().filter(|task| !task.above).collect();
        by_deadline.sort_by_key(|task| std::cmp::Reverse(task.deadline));
        let (mut ranges, mut longest) = (Vec::new(), 0);
        for task in by_deadline {
            ranges.push((u128::from(task.deadline), section + longest));
            longest = longest.max(task.budget - 1);
        }
        ranges
    }

    /// The most that may block any window.
    pub(crate) fn most(self, tasks: &[Task]) -> u128 {
        let below = tasks.iter().filter(|task| !task.above);
        let longest = below.map(|task| task.budget - 1).max();
        let longest = longest.filter(|_| self.whole).unwrap_or(0);
        u128::from(self.section) + longest
    }
}

/// A straight line that a task's demand is not above: `budget · (time + lead) / period`, from `from` on; from `periodic`
/// on the demand repeats itself.
pub(crate) struct Line {
    pub(crate) budget: u128,
    pub(crate) period: u64,
    pub(crate) lead: BigInt,
    pub(crate) from: u128,
    pub(crate) periodic: u128,
}

impl Line {
    /// That of a task's plain demand.
    pub(crate) fn of(task: &Task) -> Line {
        let early = BigInt::from(task.burst) * task.period + task.jitter;
        let lead = early - BigInt::from(task.deadline);
        Line {
            budget: task.budget,
            period: task.period,
            from: (-lead.clone()).to_u128().unwrap_or(0),
            lead,
            periodic: task.deadline.into(),
        }
    }
}

/// How much of a core is asked for in the long run, exactly.
#[derive(Clone, Debug)]
pub(crate) struct Utilisation {
    pub(crate) numerator: BigUint,
    /// The least common multiple of the periods.
    pub(crate) denominator: BigUint,
}

impl Utilisation {
    pub(crate) fn of(parts: impl Iterator<Item = (u128, u64)> + Clone) -> Utilisation {
        let mut denominator = BigUint::from(1_u8);
        for (_, period) in parts.clone() {
            let rest = (&denominator % period).to_u64().unwrap_or(0);
            denominator *= period / common_divisor(period, rest);
        }
        let numerator = parts.fold(BigUint::zero(), |sum, (budget, period)| {
            sum + &denominator / period * budget
        });
        Utilisation {
            numerator,
            denominator,
        }
    }

    /// Millionths, rounded up.
    pub(crate) fn millionths(&self) -> u64 {
        let scaled = &self.numerator * 1_000_000_u32;
        let (down, rest) = (&scaled / &self.denominator, &scaled % &self.denominator);
        let down = down.to_u64().unwrap_or(u64::MAX);
        down.saturating_add(u64::from(!rest.is_zero()))
    }

    /// The fraction in lowest terms, where 128 bits hold both its parts.
    pub(crate) fn fraction(&self) -> Option<String> {
        let (mut top, mut bottom) = (self.numerator.to_u128()?, self.denominator.to_u128()?);
        while bottom != 0 {
            (top, bottom) = (bottom, top % bottom);
        }
        Some(format!(
            "{}/{}",
            &self.numerator / top,
            &self.denominator / top
        ))
    }
}

fn common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// How far windows must be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// More is asked for in the long run than there is.
    Over,
    /// Windows shorter than this decide.
    Below(u128),
    /// Farther than is looked.
    TooFar,
}

/// How far windows of plain demand must be looked at: the nearer of where its lines meet its supply (Zhang and Burns 2009,
/// with arrivals at once and jitter), and the first busy period.
pub(crate) fn horizon(plain: &Plain, utilisation: &Utilisation) -> Horizon {
    let lines: Vec<Line> = plain.tasks.iter().map(Line::of).collect();
    let horizon = horizon_of_lines(&lines, plain.blocking, utilisation);
    let farthest = match horizon {
        Horizon::Over => return horizon,
        Horizon::Below(end) => end,
        Horizon::TooFar => FARTHEST,
    };
    busy_period(plain, farthest).map_or(horizon, Horizon::Below)
}

/// Where lines meet the supply.
pub(crate) fn horizon_of_lines(
    lines: &[Line],
    blocking: u128,
    utilisation: &Utilisation,
) -> Horizon {
    let Utilisation {
        numerator,
        denominator,
    } = utilisation;
    if numerator > denominator {
        return Horizon::Over;
    }
    let whole = BigInt::from(denominator.clone());
    let left = &whole - BigInt::from(numerator.clone());
    let end = if left.is_zero() {
        // From its last deadline on, demand less supply repeats itself each hyperperiod.
        let periodic = lines.iter().map(|line| line.periodic).max().unwrap_or(0);
        whole + periodic
    } else {
        let head = lines.iter().fold(&whole * blocking, |sum, line| {
            sum + &line.lead * line.budget * (&whole / line.period)
        });
        let from = lines.iter().map(|line| line.from).max().unwrap_or(0);
        let meet: BigInt = (head + &left - 1_u8) / &left;
        meet.max(from.into())
    };
    match end.to_u128() {
        Some(end) if end <= FARTHEST => Horizon::Below(end),
        _ => Horizon::TooFar,
    }
}

/// The first busy period of arrivals as early as can be, behind the longest section that is not preempted; none if it is
/// not below `farthest`, or not found in a bounded number of rounds.
fn busy_period(plain: &Plain, farthest: u128) -> Option<u128> {
    let work = |length: u128| {
        let tasks = plain.tasks.iter().map(|task| task.work(length));
        tasks.fold(plain.blocking, u128::saturating_add)
    };
    let mut length = work(1);
    for _ in 0..ROUNDS {
        if length >= farthest {
            return None;
        }
        let longer = work(length);
        if longer == length {
            return Some(length);
        }
        length = longer;
    }
    None
}
