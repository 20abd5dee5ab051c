//! Windows of a trace: which lengths are tried, and in which window of a length most is allocated.
//!
//! Times are whole numbers. Of n residencies there may be n²/2 different window lengths, so either
//! all are tried, where they are few, or so many of each doubling.
//!
//! Invariant: no window of a length holds more than what is found for it.

use crate::classes::Counted;
use crate::residency::Residency;

/// Traces of up to so many events, or of so many times, have all of their windows tried.
const ALL: u64 = 2048;

/// The lengths of windows that are tried, ascending from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) lengths: Vec<u64>,
    /// Whether nothing changes between them.
    pub(crate) exact: bool,
}

impl Windows {
    /// Windows up to `longest`: each, if they are few, else `resolution` in each doubling.
    pub(crate) fn new(longest: u64, resolution: u64) -> Self {
        if longest < ALL {
            return Windows {
                lengths: (0..=longest).collect(),
                exact: true,
            };
        }
        let resolution = resolution.max(1);
        let mut lengths: Vec<u64> = (0..resolution.min(longest)).collect();
        let mut from = resolution;
        while from < longest {
            let parts = (0..resolution).map(|part| {
                let more = u128::from(from) * u128::from(part) / u128::from(resolution);
                u128::from(from) + more
            });
            lengths.extend(
                parts
                    .filter_map(|length| u64::try_from(length).ok())
                    .take_while(|length| *length < longest),
            );
            from = from.saturating_mul(2);
        }
        lengths.push(longest);
        Windows {
            lengths,
            exact: false,
        }
    }

    /// The same, and one more.
    pub(crate) fn with(&self, length: u64) -> Self {
        let mut windows = self.clone();
        if let Err(place) = windows.lengths.binary_search(&length) {
            windows.lengths.insert(place, length);
        }
        windows
    }
}

/// A window of allocations, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The event of its first allocation.
    pub from_event: u64,
    /// The event of its last.
    pub to_event: u64,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// Allocations of the class in it.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u128,
}

/// The closed window of this length in which most is allocated; the first of several. O(n).
pub(crate) fn densest(arrivals: &[Residency], counted: Counted, length: u64) -> Burst {
    let mut best = Burst::default();
    let (mut first, mut bytes) = (0, 0_u128);
    for (last, newest) in arrivals.iter().enumerate() {
        bytes += u128::from(counted.bytes(newest.size));
        while newest.born - arrivals[first].born > length {
            bytes -= u128::from(counted.bytes(arrivals[first].size));
            first += 1;
        }
        if bytes > best.bytes || best.blocks == 0 {
            best = Burst {
                from_event: arrivals[first].event,
                to_event: newest.event,
                from: arrivals[first].born,
                to: newest.born,
                blocks: (last - first + 1) as u64,
                bytes,
            };
        }
    }
    best
}

/// Arrivals in their order, by which windows of many lengths are searched.
pub(crate) struct Arrivals {
    times: Vec<u64>,
    /// Bytes before each; one more at the end.
    before: Vec<u128>,
    /// Where the window found last ends, in `before`: longer ones there hold no less.
    end: usize,
}

impl Arrivals {
    /// Linear.
    pub(crate) fn of(residencies: &[Residency], counted: Counted) -> Self {
        let times = residencies.iter().map(|one| one.born).collect();
        let bytes = residencies.iter().map(|one| counted.bytes(one.size));
        Arrivals {
            times,
            before: sums(bytes),
            end: 0,
        }
    }

    /// The most bytes in a closed window of this length.
    ///
    /// A window that holds more than was found yet ends where more has arrived than that and all
    /// before the window looked at last, because later windows do not begin earlier. So only ends
    /// at which the sum passes that are looked at, and they are searched by doubling steps: O(w log n), w the
    /// number of windows looked at. That is n where all windows hold the same, and few
    /// where some hold much more than others, or where few of this length have room beside each other.
    pub(crate) fn most(&mut self, length: u64) -> u128 {
        let Arrivals { times, before, end } = self;
        let beginning = |from: usize, end: usize| {
            let newest = times[end - 1];
            ahead(times, from, |born| newest.saturating_sub(*born) > length)
        };
        let mut most = match *end {
            0 => 0,
            end => before[end] - before[beginning(0, end)],
        };
        let (mut first, mut last) = (0, 0);
        loop {
            let reached = most + before[first];
            last = ahead(before, last + 1, |sum| *sum <= reached);
            if last >= before.len() {
                return most;
            }
            first = beginning(first, last);
            let bytes = before[last] - before[first];
            if bytes > most {
                (most, *end) = (bytes, last);
            }
        }
    }
}

/// The sums of all before each, and of all.
pub(crate) fn sums(bytes: impl Iterator<Item = u64>) -> Vec<u128> {
    let sums = bytes.scan(0_u128, |sum, bytes| {
        *sum += u128::from(bytes);
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// The first place from `from` on of which something does not hold that holds of some first items:
/// by doubling steps, in O(log) of the distance.
pub(crate) fn ahead<T>(items: &[T], from: usize, holds: impl Fn(&T) -> bool) -> usize {
    let (mut from, mut step) = (from, 1);
    while items.get(from + step - 1).is_some_and(&holds) {
        from += step;
        step *= 2;
    }
    let end = items.len().min(from + step - 1);
    from + items[from..end].partition_point(holds)
}
