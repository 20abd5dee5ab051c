//! Which numbers of a count have been seen: telemetry that comes twice, live and from the store, is counted once.
//!
//! *Invariant:* ranges are disjoint, in order, and no two of them touch.

use std::collections::BTreeMap;

/// A set of numbers, kept as ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// End of each range, which is no more in it, by its first number.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `from..to`; how many of them are new. O(log ranges + ranges that are united).
    pub fn add(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let before = self
            .ends
            .range(..=from)
            .next_back()
            .filter(|&(_, &end)| end >= from)
            .map_or(from, |(&start, _)| start);
        let (mut had, mut end) = (0, to);
        let touched: Vec<(u64, u64)> = self
            .ends
            .range(before..=to)
            .map(|(&start, &end)| (start, end))
            .collect();
        for (start, last) in touched {
            self.ends.remove(&start);
            had += last.min(to).saturating_sub(start.max(from));
            end = end.max(last);
        }
        self.ends.insert(before, end);
        to - from - had
    }

    /// Whether all of `from..to` have been seen. O(log ranges).
    #[must_use]
    pub fn has(&self, from: u64, to: u64) -> bool {
        let last = self.ends.range(..=from).next_back();
        from >= to || last.is_some_and(|(_, &end)| end >= to)
    }

    /// How many numbers between the first and the last have not been seen. O(ranges).
    #[must_use]
    pub fn missing(&self) -> u64 {
        let ends = self.ends.values();
        let starts = self.ends.keys().skip(1);
        ends.zip(starts).map(|(end, start)| start - end).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_counts_once() {
        let mut seen = Ranges::default();
        assert_eq!(seen.add(10, 20), 10);
        assert_eq!(seen.add(10, 20), 0);
        assert_eq!(seen.add(15, 25), 5);
        assert_eq!(seen.add(30, 40), 10);
        assert_eq!(seen.missing(), 5);
        assert_eq!(seen.add(0, 50), 25);
        assert_eq!(seen.missing(), 0);
        assert!(seen.has(0, 50) && !seen.has(0, 51));
        assert_eq!(seen.add(7, 7), 0);
    }

    #[test]
    fn ranges_are_a_set_of_numbers() {
        let mut random = metes_random::Random::new(19);
        for _ in 0..200 {
            let (mut seen, mut model) = (Ranges::default(), [false; 64]);
            for _ in 0..20 {
                let from = random.below(64);
                let to = (from + random.below(12)).min(64);
                let asked = from as usize..to as usize;
                assert_eq!(
                    seen.has(from, to),
                    model[asked.clone()].iter().all(|&had| had)
                );
                let new = model[asked.clone()].iter().filter(|&&had| !had).count();
                assert_eq!(seen.add(from, to), new as u64);
                model[asked].fill(true);
            }
            let first = model.iter().position(|&had| had).unwrap_or(0);
            let last = model.iter().rposition(|&had| had).unwrap_or(0);
            let missing = model[first..=last].iter().filter(|&&had| !had).count();
            if model.contains(&true) {
                assert_eq!(seen.missing(), missing as u64);
            }
        }
    }
}
