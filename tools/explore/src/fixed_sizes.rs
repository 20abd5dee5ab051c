//! The block sizes that suit a trace, for heaps of fixed sizes (`ose`).
//!
//! Whoever configures such a kernel looks at the sizes that the program asks for
//! and chooses up to eight. Here: those with the least sum, over all requests, of
//! bytes between the block that a request needs and the block that it gets.
//!
//! Method: dynamic programming over the distinct sizes, a layer a size of the
//! table. The cost of rounding a run of sizes up to its largest is a Monge array,
//! so that the best cuts never fall and a layer takes O(n log n) (Aggarwal et al.,
//! Algorithmica 1987, for the principle).
//!
//! Invariant: the result is an optimum; of several, the one whose cuts are lowest.

use std::collections::BTreeMap;

use metes_heap::index::fixed::{SIZE_STEP, SIZES};
use metes_heap::{Geometry, SizeTable};

use crate::events::{Events, Operation};

/// The best table for the requests of a trace; the default where there are none.
/// O(events + n log n) for n distinct sizes.
pub fn fitted_sizes(events: &Events) -> SizeTable {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for event in events.as_slice() {
        if event.operation() == Operation::Free {
            continue;
        }
        let block = Geometry::tagged(8).block_for(event.size());
        let size = block.map(|block| block.next_multiple_of(SIZE_STEP as usize));
        // Larger ones are powers of two whatever the table.
        if let Some(size) = size.and_then(|size| u32::try_from(size).ok())
            && size <= 1 << 31
        {
            *counts.entry(size).or_default() += 1;
        }
    }
    let sizes: Vec<(u32, u64)> = counts.into_iter().collect();
    SizeTable::new(&fit(&sizes)).unwrap_or(SizeTable::DEFAULT)
}

/// Sums over the first sizes, so that the cost of a run is O(1).
struct Sums {
    sizes: Vec<u32>,
    /// Requests of the first `i` sizes, and their bytes.
    requests: Vec<u128>,
    bytes: Vec<u128>,
}

impl Sums {
    fn new(sizes: &[(u32, u64)]) -> Self {
        let mut sums = Sums {
            sizes: sizes.iter().map(|&(size, _)| size).collect(),
            requests: vec![0],
            bytes: vec![0],
        };
        for (number, &(size, count)) in sizes.iter().enumerate() {
            let count = u128::from(count);
            sums.requests.push(sums.requests[number] + count);
            sums.bytes
                .push(sums.bytes[number] + count * u128::from(size));
        }
        sums
    }

    /// Bytes lost when the sizes `from..to` are rounded up to the last of them.
    fn cost(&self, from: usize, to: usize) -> u128 {
        let requests = self.requests[to] - self.requests[from];
        u128::from(self.sizes[to - 1]) * requests - (self.bytes[to] - self.bytes[from])
    }
}

/// Up to [`SIZES`] of the sizes, rising, with the least cost; the last of them is
/// always among them.
fn fit(sizes: &[(u32, u64)]) -> Vec<u32> {
    let count = sizes.len();
    if count <= SIZES {
        return sizes.iter().map(|&(size, _)| size).collect();
    }
    let sums = Sums::new(sizes);
    // Least cost of the first `to` sizes with so many table entries.
    let mut least: Vec<u128> = (0..=count)
        .map(|to| if to == 0 { 0 } else { sums.cost(0, to) })
        .collect();
    let mut cuts: Vec<Vec<usize>> = Vec::with_capacity(SIZES);
    for entries in 2..=SIZES {
        let mut layer = Layer {
            sums: &sums,
            before: &least,
            least: vec![u128::MAX; count + 1],
            cut: vec![0; count + 1],
        };
        // Each entry but the last stands for at least one size.
        layer.fill(entries, count, entries - 1, count - 1);
        let Layer {
            least: next, cut, ..
        } = layer;
        least = next;
        cuts.push(cut);
    }
    let mut to = count;
    let mut table = vec![sizes[count - 1].0];
    for cut in cuts.iter().rev() {
        to = cut[to];
        table.push(sizes[to - 1].0);
    }
    table.reverse();
    table
}

struct Layer<'a> {
    sums: &'a Sums,
    before: &'a [u128],
    least: Vec<u128>,
    cut: Vec<usize>,
}

impl Layer<'_> {
    /// Fills `first..=last`, whose best cuts lie in `low..=high`.
    fn fill(&mut self, first: usize, last: usize, low: usize, high: usize) {
        if first > last {
            return;
        }
        let middle = first + (last - first) / 2;
        for cut in low..=high.min(middle - 1) {
            let cost = self.before[cut].saturating_add(self.sums.cost(cut, middle));
            if cost < self.least[middle] {
                self.least[middle] = cost;
                self.cut[middle] = cut;
            }
        }
        let best = self.cut[middle];
        self.fill(first, middle - 1, low, best);
        self.fill(middle + 1, last, best, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventsBuilder;

    /// Cost of a table for such sizes.
    fn cost(sizes: &[(u32, u64)], table: &[u32]) -> u64 {
        let lost = |&(size, count): &(u32, u64)| {
            let block = table.iter().find(|&&block| block >= size).unwrap();
            u64::from(block - size) * count
        };
        sizes.iter().map(lost).sum()
    }

    /// Least cost of any table, by trying all.
    fn least(sizes: &[(u32, u64)]) -> u64 {
        let free = sizes.len() - 1;
        let tables = (0..1_u32 << free).filter(|set| set.count_ones() as usize == SIZES - 1);
        let costs = tables.map(|set| {
            let chosen = (0..free).filter(|&place| set >> place & 1 == 1);
            let table: Vec<u32> = chosen.chain([free]).map(|place| sizes[place].0).collect();
            cost(sizes, &table)
        });
        costs.min().unwrap()
    }

    #[test]
    fn the_table_is_the_best_of_all() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let mut size = 0;
            let sizes: Vec<(u32, u64)> = (0..9 + draw(6))
                .map(|_| {
                    size += 32 * (1 + draw(40) as u32);
                    (size, 1 + draw(1000))
                })
                .collect();
            let table = fit(&sizes);
            assert_eq!(table.len(), SIZES);
            assert_eq!(cost(&sizes, &table), least(&sizes), "{sizes:?}: {table:?}");
        }
    }

    #[test]
    fn few_sizes_are_met_exactly() {
        let mut builder = EventsBuilder::new();
        for (block, size) in [(1, 66), (2, 1514), (3, 66), (4, 54 << 10)] {
            builder.push(Operation::Allocate, block, size, 0).unwrap();
        }
        let table = fitted_sizes(&builder.finish());
        // A word of record more, in multiples of 32.
        assert!(table.iter().eq([96, 1536, 55_328]));
        let none = fitted_sizes(&EventsBuilder::new().finish());
        assert_eq!(none, SizeTable::DEFAULT);
    }
}
