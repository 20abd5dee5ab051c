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

    /// The windows with one more length among them.
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

/// Arrivals in their order, of which windows of many lengths are searched.
pub(crate) struct Arrivals {
    times: Vec<u64>,
    /// Bytes before each; one more at the end.
    before: Vec<u128>,
}

/// Arrivals from `first` to before `end`.
#[derive(Clone, Copy, Default)]
struct Window {
    first: usize,
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
        }
    }

    /// The most bytes in a closed window of each length, which ascend. O(w log n) for a length, with w
    /// windows [looked at](Self::after): n at worst, where all hold the same.
    pub(crate) fn most(&self, lengths: &[u64]) -> Vec<u128> {
        let mut all = Vec::with_capacity(lengths.len());
        let mut most = 0;
        // The window that holds that, and up to which length no other holds more.
        let mut densest = Window::default();
        let mut unsurpassed = None;
        for length in lengths {
            if unsurpassed.is_some_and(|longest| *length <= longest) {
                all.push(most);
                continue;
            }
            let before = most;
            if densest.end > 0 {
                densest.first = self.beginning(0, densest.end, *length);
                most = self.bytes(densest);
            }
            let mut window = Window::default();
            while let Some(next) = self.after(window, *length, most) {
                (most, densest, window) = (self.bytes(next), next, next);
            }
            all.push(most);
            // Where lengths are many, windows of several hold the same.
            if most == before {
                unsurpassed = Some(self.unsurpassed(most));
            }
        }
        all
    }

    /// Up to which length no window holds more than that, which is the most for some length.
    fn unsurpassed(&self, bytes: u128) -> u64 {
        let mut longest = u64::MAX;
        let mut window = Window::default();
        while let Some(Window { first, end }) = self.after(window, longest, bytes) {
            // The shortest that ends there.
            let first = ahead(&self.before, first, |sum| sum + bytes < self.before[end]) - 1;
            longest = (self.times[end - 1] - self.times[first]).saturating_sub(1);
            window = Window { first, end };
        }
        longest
    }

    /// The next window that ends later, and at this length holds more.
    ///
    /// A later window begins no earlier. So only ends matter up to which more has arrived than that and all
    /// before the window looked at last, and they are searched by doubling steps.
    fn after(&self, window: Window, length: u64, bytes: u128) -> Option<Window> {
        let Window { mut first, mut end } = window;
        loop {
            let reached = bytes + self.before[first];
            end = ahead(&self.before, end + 1, |sum| *sum <= reached);
            if end >= self.before.len() {
                return None;
            }
            first = self.beginning(first, end, length);
            let window = Window { first, end };
            if self.bytes(window) > bytes {
                return Some(window);
            }
        }
    }

    /// The first arrival, none before `from`, in the window of a length up to the last before `end`.
    fn beginning(&self, from: usize, end: usize, length: u64) -> usize {
        let newest = self.times[end - 1];
        ahead(&self.times, from, |born| {
            newest.saturating_sub(*born) > length
        })
    }

    fn bytes(&self, window: Window) -> u128 {
        self.before[window.end] - self.before[window.first]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Residencies that begin after such waits.
    fn arriving(requests: &[(u64, u64)]) -> Vec<Residency> {
        let mut born = 0;
        let begin = |(event, (wait, size)): (usize, &(u64, u64))| {
            born += wait;
            Residency {
                born,
                last: born,
                ended: None,
                size: *size,
                event: event as u64,
            }
        };
        requests.iter().enumerate().map(begin).collect()
    }

    fn request() -> impl Strategy<Value = (u64, u64)> {
        let wait = prop_oneof![Just(0), 0..4_u64, 0..50_u64];
        (wait, prop_oneof![Just(8), 0..4_u64, 0..500_u64])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn no_window_is_passed_over_that_holds_more(
            requests in prop::collection::vec(request(), 0..60),
            lengths in prop::collection::btree_set(0..400_u64, 1..40),
        ) {
            let lengths: Vec<u64> = lengths.into_iter().collect();
            let residencies = arriving(&requests);
            let found = Arrivals::of(&residencies, Counted::AtLeast(1)).most(&lengths);
            for (length, found) in lengths.iter().zip(found) {
                let windows = residencies.iter().map(|newest| {
                    let within = |one: &&Residency| {
                        one.born <= newest.born && newest.born - one.born <= *length
                    };
                    let sizes = residencies.iter().filter(within).map(|one| one.size);
                    sizes.map(|size| u128::from(size.max(1))).sum()
                });
                prop_assert_eq!(found, windows.max().unwrap_or(0), "of length {}", length);
                let densest = densest(&residencies, Counted::AtLeast(1), *length);
                prop_assert_eq!(found, densest.bytes);
            }
        }

        #[test]
        fn looking_ahead_finds_the_first_that_does_not_hold(
            items in prop::collection::vec(0..30_u64, 0..40),
            from in any::<prop::sample::Index>(),
            bound in 0..31_u64,
        ) {
            let mut items = items;
            items.sort_unstable();
            let from = from.index(items.len() + 1);
            let first = (from..items.len()).find(|place| items[*place] >= bound);
            prop_assert_eq!(ahead(&items, from, |item| *item < bound), first.unwrap_or(items.len()));
        }
    }
}
