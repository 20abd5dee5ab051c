//! What depends on the order in which threads run: figures over interleavings.
//!
//! Invariant: a bound is of all interleavings, whatever was drawn; what was drawn says its seed.

use serde::Serialize;

/// A program of several threads over the orders in which they may run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interleaved {
    /// Threads that made requests.
    pub threads: u32,
    /// Requests.
    pub events: u64,
    /// Interleavings drawn.
    pub shuffles: u32,
    /// The seed of the first; that of each next is one more.
    pub seed: u64,
    /// No event was put before one recorded more than so many earlier; none: any order of each thread's.
    pub within: Option<u64>,
    /// Live bytes.
    pub live: LiveOver,
    /// Footprints.
    pub heaps: Vec<HeapOver>,
    /// What threads have to do with each other.
    pub sharing: Sharing,
    /// What each thread did.
    pub per_thread: Vec<ThreadFigures>,
}

/// Most live bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LiveOver {
    /// Of the recorded order.
    pub recorded: u64,
    /// Of drawn ones.
    pub drawn: Option<Spread>,
    /// No interleaving has more.
    pub bound: u64,
    /// The sum over threads of the most that each has at its own worst moment: a bound, too.
    pub of_threads: u64,
    /// Some interleaving has as much.
    pub reached: u64,
    /// Whether that is the bound.
    pub exact: bool,
}

/// Footprints of a heap. Bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeapOver {
    /// The heap.
    pub heap: String,
    /// On the recorded order.
    pub recorded: u64,
    /// On drawn ones.
    pub drawn: Option<Spread>,
    /// On the interleaving with the live bytes that were reached.
    pub at_reached: u64,
    /// Most requests that failed on one interleaving.
    pub failed: u64,
    /// What provably suffices for as many live bytes as recorded; none where no finite size is known to.
    pub guarantee_recorded: Option<u64>,
    /// What provably suffices on every interleaving.
    pub guarantee: Option<u64>,
}

/// Of many numbers the least, the quartiles and the most, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub least: u64,
    /// A quarter is at most this.
    pub lower_quartile: u64,
    /// A half is at most this.
    pub median: u64,
    /// Three quarters are at most this.
    pub upper_quartile: u64,
    /// The most.
    pub most: u64,
    /// The seed of the first with the least.
    pub least_seed: u64,
    /// The seed of the first with the most.
    pub most_seed: u64,
}

impl Spread {
    /// Of numbers with their seeds; none of none. O(n log n).
    #[must_use]
    pub fn of(mut numbers: Vec<(u64, u64)>) -> Option<Self> {
        numbers.sort_unstable();
        let rank = |quarters: usize| numbers[(numbers.len() * quarters).div_ceil(4).max(1) - 1].0;
        let (least, last) = (*numbers.first()?, *numbers.last()?);
        let most = numbers[numbers.partition_point(|number| number.0 < last.0)];
        Some(Spread {
            least: least.0,
            lower_quartile: rank(1),
            median: rank(2),
            upper_quartile: rank(3),
            most: most.0,
            least_seed: least.1,
            most_seed: most.1,
        })
    }
}

/// What threads have to do with each other's blocks and with a lock that they share, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// Operations that follow one of another thread: the heap's records move to another core.
    pub switches: u64,
    /// Blocks that another thread freed than allocated them.
    pub freed_elsewhere: u64,
    /// Their bytes.
    pub freed_elsewhere_bytes: u64,
    /// Resizes by another thread than allocated the block.
    pub resized_elsewhere: u64,
    /// How often the lock is taken; empty where the recording has no times.
    pub taken: Vec<Taken>,
}

/// Operations that begin while one of another thread holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// How long an operation holds it, nanoseconds.
    pub held_ns: u64,
    /// How many find it taken.
    pub operations: u64,
}

/// What a thread did, as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadFigures {
    /// Which, by first appearance.
    pub thread: u32,
    /// Its requests.
    pub events: u64,
    /// Allocations among them.
    pub allocations: u64,
    /// Frees among them.
    pub frees: u64,
    /// Resizes among them.
    pub resizes: u64,
    /// Most bytes that it has allocated and nobody has freed.
    pub peak_live: u64,
    /// Blocks of its own that others freed.
    pub freed_by_others: u64,
    /// Blocks of others that it freed.
    pub freed_of_others: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_numbers_that_are_there() {
        let numbers = |list: &[u64]| (0..).zip(list).map(|(seed, &one)| (one, seed)).collect();
        assert_eq!(Spread::of(Vec::new()), None);
        let spread = Spread::of(numbers(&[5, 1, 9, 9, 3])).expect("some");
        assert_eq!(
            (
                spread.least,
                spread.lower_quartile,
                spread.median,
                spread.upper_quartile,
                spread.most
            ),
            (1, 3, 5, 9, 9)
        );
        assert_eq!((spread.least_seed, spread.most_seed), (1, 2));
        let one = Spread::of(numbers(&[7])).expect("one");
        assert_eq!(
            (one.least, one.lower_quartile, one.upper_quartile, one.most),
            (7, 7, 7, 7)
        );
    }
}
