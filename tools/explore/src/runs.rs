//! Several runs that one heap is to serve: a test suite, inputs small and large.
//!
//! Of a heap that serves them two things are minimised beside time: the *largest* footprint, of the run on
//! which it needs most, and the *mean* one, over all runs.
//!
//! Invariant: neither the order of the runs matters nor how often all of them are given: what is searched on
//! is the set of different runs, the longest first, each with its share of the whole.

use crate::events::Events;

/// The runs.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Different ones, the longest first.
    distinct: Vec<Events>,
    /// How many of the given ones each stands for, without common factors.
    weights: Vec<u64>,
    /// Of each given run, which of the different ones it is.
    of: Vec<usize>,
}

impl Runs {
    /// Some runs in the order in which they are given. O(events). `None` without any.
    pub fn new(given: Vec<Events>) -> Option<Self> {
        let mut order: Vec<(String, usize)> = (given.iter().enumerate())
            .map(|(index, events)| (crate::engine::trace_hash(events), index))
            .collect();
        order.sort_by(|(one, a), (other, b)| {
            let lengths = given[*b].len().cmp(&given[*a].len());
            lengths.then_with(|| one.cmp(other)).then(a.cmp(b))
        });
        let mut given: Vec<Option<Events>> = given.into_iter().map(Some).collect();
        let mut runs = Runs {
            distinct: Vec::new(),
            weights: Vec::new(),
            of: vec![0; given.len()],
        };
        for (_, index) in order {
            let events = given[index].take()?;
            // Equal ones are neighbours.
            if runs.distinct.last() == Some(&events) {
                *runs.weights.last_mut()? += 1;
            } else {
                runs.distinct.push(events);
                runs.weights.push(1);
            }
            runs.of[index] = runs.distinct.len() - 1;
        }
        let factor = runs.weights.iter().copied().reduce(common)?;
        runs.weights.iter_mut().for_each(|weight| *weight /= factor);
        Some(runs)
    }

    /// The different runs, the longest first, each with its share.
    pub fn distinct(&self) -> impl Iterator<Item = (&Events, u64)> {
        self.distinct.iter().zip(self.weights.iter().copied())
    }

    /// How many different ones there are.
    pub fn len(&self) -> usize {
        self.distinct.len()
    }

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.distinct.is_empty()
    }

    /// Of each given run, which of the different ones it is.
    pub fn of(&self) -> &[usize] {
        &self.of
    }

    /// What all shares come to.
    pub fn weight(&self) -> u64 {
        self.weights.iter().sum()
    }
}

/// The greatest common divisor; positive for positive numbers.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventsBuilder, Operation};

    fn run(sizes: &[u64]) -> Events {
        let mut builder = EventsBuilder::new();
        for (block, &size) in sizes.iter().enumerate() {
            builder
                .push(Operation::Allocate, block as u64, size, 0)
                .unwrap();
        }
        builder.finish()
    }

    #[test]
    fn equal_runs_are_one_and_their_order_is_none() {
        let (a, b) = (run(&[1, 2, 3]), run(&[4, 5]));
        let given = vec![b.clone(), a.clone(), b.clone()];
        let runs = Runs::new(given).unwrap();
        let distinct: Vec<_> = runs.distinct().collect();
        assert_eq!(distinct, [(&a, 1), (&b, 2)], "the longest first");
        assert_eq!(runs.of(), [1, 0, 1]);
        let thrice: Vec<Events> = [&a, &b, &b, &b, &a, &a, &b, &b, &b]
            .map(Clone::clone)
            .to_vec();
        let again = Runs::new(thrice).unwrap();
        assert!(again.distinct().eq(runs.distinct()), "shares, not counts");
        assert_eq!(runs.weight(), 3);
        assert!(Runs::new(Vec::new()).is_none());
    }
}
