//! The bound on live bytes that a trace supports.
//!
//! A block of a class is live only in the L ticks from its allocation on, where L is the longest
//! lifetime of the class. So all that is live at t was allocated in the closed window [t − L, t],
//! and live ≤ α(L+), the right limit of the class's arrival curve. Classes add up. Three means
//! of the same kind give further bounds, and the least holds: the blocks of a class divided by
//! their lifetimes; arrivals above releases in the times throughout which something is live (the vertical
//! deviation of arrival and release curve); and all requests taken as one class.
//!
//! All of this is observed: it holds for this trace. That another run keeps to it is a
//! declaration ([`crate::Contract`]).
//!
//! Invariant: no bound is below what was live, per class and in total, where a block counts twice while a
//! resize may move it.

use std::collections::BTreeMap;

use metes_trace::Trace;

use crate::axis::Axis;
use crate::busy::Busy;
use crate::classes::{Classes, Counted};
use crate::residency::{Residencies, Residency};
use crate::staircase::Staircase;
use crate::windows::{Arrivals, Burst, Windows, densest};

/// How a trace is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What time is.
    pub axis: Axis,
    /// How requests are divided.
    pub classes: Classes,
    /// What is added up.
    pub counted: Counted,
    /// Window lengths tried in each doubling, where there are too many for all.
    pub resolution: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            axis: Axis::default(),
            classes: Classes::default(),
            counted: Counted::default(),
            resolution: 16,
        }
    }
}

/// Which argument gives a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// α(L+): arrivals within the longest lifetime.
    Lifetime,
    /// α(L+) of the blocks of each doubling of lifetimes apart, added up.
    Lifetimes,
    /// The vertical deviation of arrival and release curve.
    Release,
    /// The bounds of the classes added up; of the total alone.
    Classes,
}

impl Method {
    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Method::Lifetime => "longest lifetime",
            Method::Lifetimes => "lifetimes by doubling",
            Method::Release => "arrival above release",
            Method::Classes => "sum over classes",
        }
    }
}

/// Where a bound is made: the window of a length in which most arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Whether only blocks of one doubling of lifetimes count: the longest of those.
    pub lifetimes_up_to: Option<u64>,
    /// The length of the window.
    pub length: u64,
    /// What arrives in it.
    pub burst: Burst,
}

/// What a class, or all of the trace, does and is bounded by.
#[derive(Clone, Debug)]
pub struct Share {
    /// The largest request of the class; of the total the largest of all.
    pub largest: u64,
    /// Allocations, and resizes to a size of the class.
    pub arrivals: u64,
    /// Their bytes.
    pub bytes: u128,
    /// Most bytes live at one time, a block that a resize may move in both sizes.
    pub peak: u128,
    /// Longest lifetime in ticks of the axis; of blocks never freed, to the end of the trace.
    pub lifetime: u64,
    /// Blocks that were never freed.
    pub never_freed: u64,
    /// The least burst with the class's mean rate: no closed window holds more than the burst and its
    /// length times bytes / (end + 1).
    pub burst: u128,
    /// Bounds on the live bytes, and the argument of each, the least first.
    pub bounds: Vec<(Method, u128)>,
    /// The window that makes the bound: of its method, and of the blocks that count there most.
    pub cause: Cause,
    /// The longest time throughout which something is live.
    pub busy: u64,
    /// α: most bytes allocated in windows of each length.
    pub arrival: Staircase,
    /// β: fewest bytes freed in windows of each length while something is live.
    pub release: Staircase,
}

impl Share {
    /// The least bound, bytes.
    #[must_use]
    pub fn bound(&self) -> u128 {
        self.bounds.first().map_or(0, |(_, bytes)| *bytes)
    }

    fn offer(&mut self, method: Method, bytes: u128) {
        let place = self.bounds.partition_point(|(_, other)| *other <= bytes);
        self.bounds.insert(place, (method, bytes));
    }

    /// What the residencies of a class do, and their bounds.
    pub(crate) fn of(largest: u64, looked: &Looked<'_>, counted: Counted) -> Self {
        let Looked {
            residencies,
            lifetime,
            end,
            ..
        } = *looked;
        let bytes = residencies
            .iter()
            .map(|one| u128::from(counted.bytes(one.size)))
            .sum();
        let bounds = looked.bounds(counted);
        let whole = Cause {
            lifetimes_up_to: None,
            length: lifetime,
            burst: bounds.whole,
        };
        let cause = match bounds.ascending()[0].0 {
            Method::Release => Cause {
                length: bounds.above.0,
                burst: densest(residencies, counted, bounds.above.0),
                ..whole
            },
            Method::Lifetimes => {
                let largest = bounds.groups.iter().max_by_key(|group| group.burst.bytes);
                largest.copied().unwrap_or(whole)
            }
            _ => whole,
        };
        Share {
            largest,
            arrivals: residencies.len() as u64,
            bytes,
            peak: peak(residencies, counted),
            lifetime,
            never_freed: residencies.iter().filter(|one| one.ended.is_none()).count() as u64,
            burst: burst(residencies, counted, bytes, end),
            bounds: bounds.ascending().to_vec(),
            cause,
            busy: looked.busy.longest,
            arrival: bounds.arrival,
            release: bounds.release,
        }
    }
}

/// Residencies of a class, or of all of the trace, and what of them is the same however bytes are
/// counted.
pub(crate) struct Looked<'a> {
    residencies: &'a [Residency],
    /// The time of the last event.
    end: u64,
    /// The longest.
    lifetime: u64,
    /// By doublings of lifetimes; blocks never freed are apart.
    groups: Vec<Vec<Residency>>,
    windows: Windows,
    busy: Busy,
}

/// The bounds that one way of counting gives, and what they are made of.
struct Bounds {
    arrival: Staircase,
    release: Staircase,
    /// What arrives within the longest lifetime.
    whole: Burst,
    /// Of the blocks of each doubling of lifetimes the same.
    groups: Vec<Cause>,
    /// In which length of window arrivals are most above releases, and by how much.
    above: (u64, u128),
}

impl Bounds {
    /// The least first.
    fn ascending(&self) -> [(Method, u128); 3] {
        let sum = self.groups.iter().map(|group| group.burst.bytes).sum();
        let mut all = [
            (Method::Lifetime, self.whole.bytes),
            (Method::Release, self.above.1),
            (Method::Lifetimes, sum),
        ];
        all.sort_by_key(|(_, bytes)| *bytes);
        all
    }
}

impl<'a> Looked<'a> {
    /// O(n log n).
    pub(crate) fn at(residencies: &'a [Residency], end: u64, resolution: u64) -> Self {
        let lifetime = longest(residencies);
        Looked {
            residencies,
            end,
            lifetime,
            groups: by_lifetime(residencies),
            windows: Windows::new(end, resolution).with(lifetime),
            busy: Busy::of(residencies, end),
        }
    }

    fn bounds(&self, counted: Counted) -> Bounds {
        let arrivals = Arrivals::of(self.residencies, counted);
        let arrival = Staircase::arrival(&arrivals, &self.windows);
        let release = Staircase::release(&self.busy, counted, &self.windows);
        let groups = self.groups.iter().map(|own| {
            let length = longest(own);
            Cause {
                lifetimes_up_to: Some(length),
                length,
                burst: densest(own, counted, length),
            }
        });
        Bounds {
            whole: densest(self.residencies, counted, self.lifetime),
            groups: groups.collect(),
            above: arrival.above(&release, self.busy.longest),
            arrival,
            release,
        }
    }

    fn least_bound(&self, counted: Counted) -> u128 {
        self.bounds(counted).ascending()[0].1
    }
}

/// Everything that a trace supports.
#[derive(Clone, Debug)]
pub struct Observed {
    /// How the trace was looked at.
    pub options: Options,
    /// The time of the last event.
    pub end: u64,
    /// Most bytes live at one time, a resized block in its new size alone.
    pub peak: u128,
    /// The event after which they first were.
    pub peak_event: u64,
    /// Resizes: each may have a block twice for a while.
    pub resizes: u64,
    /// The smallest and the largest request.
    pub sizes: (u64, u64),
    /// By class, ascending.
    pub classes: Vec<Share>,
    /// All requests as one class; its bounds are those of the trace.
    pub total: Share,
}

/// Why a trace supports no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// No allocation.
    #[error("the trace allocates nothing, so there is nothing to bound; record a run that does")]
    Nothing,
    /// Nanoseconds are asked for, and the trace has none.
    #[error("the trace has no times; use events, or record it again with times")]
    NoTimes,
}

/// Looks at a trace. O(events × window lengths tried) at worst, where all windows hold the same; the
/// bounds by lifetimes are exact whatever the resolution.
///
/// # Errors
/// [`ObserveError`].
pub fn observe(trace: &Trace, options: Options) -> Result<Observed, ObserveError> {
    observe_also(trace, options, [], &|_| {}).map(|(observed, [])| observed)
}

/// Looks at a trace as [`observe`] does, and gives the least bound of each further way of counting
/// too: what is looked at once is only added up again. `tell` is told from time to time which share
/// of the work is done.
///
/// # Errors
/// [`ObserveError`].
pub fn observe_also<const N: usize>(
    trace: &Trace,
    options: Options,
    others: [Counted; N],
    tell: &dyn Fn(f64),
) -> Result<(Observed, [u128; N]), ObserveError> {
    if options.axis == Axis::Nanoseconds && trace.times().all_are(0) {
        return Err(ObserveError::NoTimes);
    }
    let Options {
        axis,
        classes,
        counted,
        resolution,
    } = options;
    let residencies = Residencies::of(trace, axis, classes, counted);
    let requests = (trace.ops().iter().zip(trace.sizes().iter()))
        .filter(|(op, _)| matches!(op, metes_trace::Op::Alloc | metes_trace::Op::Resize))
        .map(|(_, size)| size);
    let sizes = requests.fold(None, |range, size| match range {
        None => Some((size, size)),
        Some((least, most)) => Some((size.min(least), size.max(most))),
    });
    let sizes = sizes.ok_or(ObserveError::Nothing)?;
    // Where no request is smaller, none is raised.
    let others = others.map(|other| match other {
        Counted::AtLeast(least) if least <= sizes.0 => Counted::Requested,
        other => other,
    });
    let end = residencies.end;
    let all = residencies.all();
    // Each residency is looked at in its class and in the total.
    let mut done = 0;
    let mut look = |largest: u64, own: &[Residency]| {
        let looked = Looked::at(own, end, resolution);
        let share = Share::of(largest, &looked, counted);
        let others = others.map(|other| match other == counted {
            true => share.bound(),
            false => looked.least_bound(other),
        });
        done += own.len();
        tell(done as f64 / (2 * all.len()) as f64);
        (share, others)
    };
    let (mut total, mut also) = look(sizes.1, &all);
    let mut shares = Vec::with_capacity(residencies.classes.len());
    let mut sums = [0; N];
    for (largest, own) in &residencies.classes {
        let (share, others) = look(*largest, own);
        shares.push(share);
        for (sum, other) in sums.iter_mut().zip(others) {
            *sum += other;
        }
    }
    total.offer(Method::Classes, shares.iter().map(Share::bound).sum());
    for (least, sum) in also.iter_mut().zip(sums) {
        *least = sum.min(*least);
    }
    let observed = Observed {
        options,
        end,
        peak: residencies.peak,
        peak_event: residencies.peak_event,
        resizes: residencies.resizes,
        sizes,
        classes: shares,
        total,
    };
    Ok((observed, also))
}

fn longest(residencies: &[Residency]) -> u64 {
    let lifetimes = residencies.iter().map(|one| one.last - one.born);
    lifetimes.max().unwrap_or(0)
}

/// Most bytes live at one time, at which allocations come before frees.
fn peak(residencies: &[Residency], counted: Counted) -> u128 {
    let mut ends: Vec<_> = residencies
        .iter()
        .map(|one| (one.last, counted.bytes(one.size)))
        .collect();
    ends.sort_unstable_by_key(|(last, _)| *last);
    let mut ends = ends.into_iter().peekable();
    let (mut live, mut most) = (0_u128, 0);
    for one in residencies {
        while let Some((_, bytes)) = ends.next_if(|(last, _)| *last < one.born) {
            live -= u128::from(bytes);
        }
        live += u128::from(counted.bytes(one.size));
        most = live.max(most);
    }
    most
}

/// The least burst beside a rate of bytes / (end + 1): the most by which a closed window exceeds
/// its length times that, rounded up.
fn burst(residencies: &[Residency], counted: Counted, bytes: u128, end: u64) -> u128 {
    let ticks = u128::from(end) + 1;
    let (mut level, mut most, mut now) = (0_u128, 0, 0);
    for one in residencies {
        let drained = bytes.saturating_mul((one.born - now).into());
        now = one.born;
        // Both factors are below 2^63 + 1; no program has a burst of 2^64 bytes.
        level = level
            .saturating_sub(drained)
            .saturating_add(u128::from(counted.bytes(one.size)) * ticks);
        most = level.max(most);
    }
    most.div_ceil(ticks)
}

/// By doublings of lifetimes; blocks never freed are apart.
fn by_lifetime(residencies: &[Residency]) -> Vec<Vec<Residency>> {
    let mut groups: BTreeMap<(bool, u32), Vec<Residency>> = BTreeMap::new();
    for one in residencies {
        let doubling = u64::BITS - (one.last - one.born).leading_zeros();
        let group = groups.entry((one.ended.is_none(), doubling)).or_default();
        group.push(*one);
    }
    groups.into_values().collect()
}
