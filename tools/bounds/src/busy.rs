//! The times throughout which something is live, and what is freed in them. At one time
//! allocations come before frees.
//!
//! Invariant: in no window within a period is less freed than what is found for its length.

use std::ops::Range;

use crate::classes::Counted;
use crate::residency::Residency;
use crate::windows::{Windows, ahead, sums};

/// The times throughout which something of a class is live.
pub(crate) struct Busy {
    /// Ascending.
    periods: Vec<Period>,
    /// Where windows to try end: at the times of frees, and at the end of the trace if something is
    /// still live. Ascending, over all periods.
    ends: Vec<End>,
    /// Times of frees, and the sizes freed.
    times: Vec<u64>,
    sizes: Vec<u64>,
    /// The longest of the periods.
    pub(crate) longest: u64,
    /// Whether nothing is live at the end.
    pub(crate) drains: bool,
}

#[derive(Clone)]
struct Period {
    from: u64,
    /// The time of its last end, less that.
    length: u64,
    /// Which of the ends lie in it.
    ends: Range<usize>,
}

struct End {
    time: u64,
    /// How many frees are before it.
    frees: usize,
}

impl Busy {
    /// O(n log n).
    pub(crate) fn of(residencies: &[Residency], end: u64) -> Self {
        let mut frees: Vec<(u64, u64)> = residencies
            .iter()
            .filter_map(|residency| Some((residency.ended?, residency.size)))
            .collect();
        frees.sort_unstable_by_key(|(time, _)| *time);
        let mut begins: Vec<(u64, usize)> = Vec::new();
        let mut ends: Vec<End> = Vec::new();
        let (mut live, mut next) = (0_usize, 0);
        let mut free_before = |time: u64, live: &mut usize, ends: &mut Vec<End>| {
            while let Some((freed, _)) = frees.get(next).filter(|(freed, _)| *freed < time) {
                if ends.last().is_none_or(|last| last.time != *freed) {
                    ends.push(End {
                        time: *freed,
                        frees: next,
                    });
                }
                *live -= 1;
                next += 1;
            }
        };
        for residency in residencies {
            free_before(residency.born, &mut live, &mut ends);
            if live == 0 {
                begins.push((residency.born, ends.len()));
            }
            live += 1;
        }
        free_before(u64::MAX, &mut live, &mut ends);
        if live > 0 && ends.last().is_none_or(|last| last.time != end) {
            ends.push(End {
                time: end,
                frees: frees.len(),
            });
        }
        let nexts = begins.iter().skip(1).map(|(_, first)| *first);
        let periods: Vec<Period> = (begins.iter().zip(nexts.chain([ends.len()])))
            .map(|((from, first), next)| Period {
                from: *from,
                length: ends[*first..next].last().map_or(0, |end| end.time - from),
                ends: *first..next,
            })
            .collect();
        Busy {
            longest: periods
                .iter()
                .map(|period| period.length)
                .max()
                .unwrap_or(0),
            periods,
            ends,
            times: frees.iter().map(|(time, _)| *time).collect(),
            sizes: frees.into_iter().map(|(_, size)| size).collect(),
            drains: live == 0,
        }
    }

    /// Of each length of windows up to the longest period the fewest bytes freed in a window
    /// `[s, s + length)` within a period. O(periods of that length + w log n) each, with w windows
    /// looked at, as in [`Arrivals::most`](crate::windows::Arrivals::most).
    pub(crate) fn fewest(&self, windows: &Windows, counted: Counted) -> Vec<(u64, u128)> {
        let before = sums(self.sizes.iter().map(|size| counted.bytes(*size)));
        let mut periods = self.periods.clone();
        let mut least = 0;
        let lengths = windows.lengths.iter().copied();
        lengths
            .map_while(|length| {
                periods.retain(|period| period.length >= length);
                least = self.fewest_in(&periods, &before, length, least)?;
                Some((length, least))
            })
            .collect()
    }

    /// The fewest bytes freed in a window of this length within one of these periods, all as long
    /// or longer; no fewer than in a shorter window. A window that ends elsewhere than before a free, or at the period's
    /// end, can be moved on until it does without a further free in it.
    ///
    /// A later window with less in it than was found yet begins after so much was freed that what is
    /// freed up to the end of the window looked at last leaves less; so all before that are passed over.
    fn fewest_in(
        &self,
        periods: &[Period],
        before: &[u128],
        length: u64,
        shorter: u128,
    ) -> Option<u128> {
        let mut least: Option<u128> = None;
        // The first end at which a window may have less, and how many frees are before the start.
        let (mut earliest, mut from) = (0, 0);
        for period in periods {
            let mut place = period.ends.start;
            loop {
                let ends = &self.ends[..period.ends.end];
                let first = earliest.max(period.from.saturating_add(length));
                place = ahead(ends, place, |end| end.time < first);
                let Some(end) = ends.get(place) else {
                    break;
                };
                let start = end.time - length;
                from = ahead(&self.times, from, |time| *time < start);
                let freed = before[end.frees] - before[from];
                let so_far = least.map_or(freed, |least| least.min(freed));
                if so_far <= shorter {
                    return Some(shorter);
                }
                least = Some(so_far);
                let passed = before[end.frees] - so_far;
                let later = ahead(before, from, |sum| *sum <= passed);
                // All is freed before: no later window has less.
                let Some(freed) = later.checked_sub(1).and_then(|last| self.times.get(last)) else {
                    return least;
                };
                earliest = freed.saturating_add(length).saturating_add(1);
                place += 1;
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Residencies that begin after such waits, most of them freed, and the end of the trace.
    fn residing(blocks: &[(u64, Option<u64>, u64)], rest: u64) -> (Vec<Residency>, u64) {
        let mut born = 0;
        let mut all = Vec::new();
        for (event, (wait, lifetime, size)) in blocks.iter().enumerate() {
            born += wait;
            let ended = lifetime.map(|lifetime| born + lifetime);
            all.push(Residency {
                born,
                last: ended.unwrap_or(u64::MAX),
                ended,
                size: *size,
                event: event as u64,
            });
        }
        let times = all.iter().map(|one| one.ended.unwrap_or(one.born));
        let end = times.max().unwrap_or(0) + rest;
        for one in &mut all {
            one.last = one.last.min(end);
        }
        (all, end)
    }

    fn block() -> impl Strategy<Value = (u64, Option<u64>, u64)> {
        let wait = prop_oneof![Just(0), 0..4_u64, 0..40_u64];
        let lifetime = prop_oneof![
            8 => (0..30_u64).prop_map(Some),
            1 => Just(None),
        ];
        (wait, lifetime, prop_oneof![Just(0), 1..4_u64, 0..500_u64])
    }

    /// The fewest bytes freed in any window `[s, s + length)` throughout which something is live:
    /// from each tick of it to the next the same.
    fn fewest(residencies: &[Residency], end: u64, length: u64) -> Option<u128> {
        let live = |from: u64, to: u64| {
            let mut live = residencies.iter();
            live.any(|one| one.born <= from && to <= one.last)
        };
        let windows = (0..=end.checked_sub(length)?).filter(|start| {
            live(*start, *start) && (*start..start + length).all(|now| live(now, now + 1))
        });
        let freed = windows.map(|start| {
            let window = start..start + length;
            let freed = residencies
                .iter()
                .filter(|one| one.ended.is_some_and(|time| window.contains(&time)));
            freed.map(|one| u128::from(one.size)).sum()
        });
        freed.min()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_window_is_passed_over_in_which_less_is_freed(
            blocks in prop::collection::vec(block(), 0..40),
            rest in 0..20_u64,
            lengths in prop::collection::btree_set(0..100_u64, 1..40),
        ) {
            let (residencies, end) = residing(&blocks, rest);
            let windows = Windows {
                lengths: lengths.into_iter().collect(),
                exact: false,
            };
            let busy = Busy::of(&residencies, end);
            let mut found = busy.fewest(&windows, Counted::Requested).into_iter();
            for length in windows.lengths {
                let expected = fewest(&residencies, end, length);
                prop_assert_eq!(found.next(), expected.map(|least| (length, least)));
            }
        }
    }
}
