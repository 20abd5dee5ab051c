//! The sieve: before each request size, keep the fewest bytes that leave no
//! hole in which the heap would find it, and free everything else.
//!
//! Robson's ramp with the choice made exact: which blocks to keep is the
//! cheapest path along the memory in which neighbours are less than a hole
//! apart. It needs no doubling: sizes may grow by any factor.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::near;
use crate::attack::{Attack, Block};

/// The sieve with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sieve {
    /// First request.
    pub first: u64,
    /// Each size is so many percent of the last, at least one granule more.
    pub growth_percent: u64,
    /// Holes up to so many percent of the block are taken for useless: above 100
    /// for heaps that round a search up.
    pub hole_percent: u64,
    /// Between any so many requests one of `pin` bytes is made; 0: never.
    pub pin_every: u32,
    /// That request.
    pub pin: u64,
}

impl Sieve {
    pub(super) fn first(demand: &Demand) -> impl Iterator<Item = Sieve> + use<> {
        let smallest = demand.smallest;
        [
            (200, 100, 0),
            (200, 200, 0),
            (150, 100, 0),
            (200, 103, 1),
            (125, 100, 2),
        ]
        .into_iter()
        .map(move |(growth_percent, hole_percent, pin_every)| Sieve {
            first: smallest,
            growth_percent,
            hole_percent,
            pin_every,
            pin: smallest,
        })
    }

    pub(super) fn mutate(self, demand: &Demand, random: &mut Random) -> Sieve {
        match random.below(5) {
            0 => Sieve {
                first: near(self.first, demand, random),
                ..self
            },
            1 => Sieve {
                growth_percent: 101 + random.below(200) as u64,
                ..self
            },
            2 => Sieve {
                hole_percent: [100, 100, 102, 104, 107, 113, 125, 150, 200][random.below(9)],
                ..self
            },
            3 => Sieve {
                pin_every: random.below(5) as u32,
                ..self
            },
            _ => Sieve {
                pin: near(self.pin, demand, random),
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let shape = attack.shape();
        let mut held: Vec<Block> = Vec::new();
        let mut size = self.first;
        loop {
            let hole = shape.block(size) * self.hole_percent / 100;
            if !held.is_empty() {
                thin(&mut held, hole, attack);
            }
            self.fill(&mut held, size, attack);
            let largest = attack.demand().largest;
            if size >= largest || attack.over() {
                return;
            }
            let next = (size * self.growth_percent / 100).max(size + shape.granule);
            size = next.min(largest);
        }
    }

    /// Fills memory with requests of `size` and pins between them.
    fn fill(&self, held: &mut Vec<Block>, size: u64, attack: &mut Attack<'_>) {
        let mut number = 0;
        while let Some(block) = attack.allocate(size) {
            held.push(block);
            number += 1;
            if self.pin_every > 0 && number % self.pin_every == 0 {
                held.extend(attack.allocate(self.pin));
            }
        }
    }
}

/// Frees all but the cheapest set of blocks with no hole of `hole` bytes between
/// them that was not there before. O(blocks log blocks).
fn thin(held: &mut Vec<Block>, hole: u64, attack: &mut Attack<'_>) {
    let mut spans: Vec<(u64, u64, Block)> = Vec::with_capacity(held.len());
    for &block in held.iter() {
        let Some((begin, end)) = attack.place(block) else {
            // A heap without addresses: every other block, as well as can be.
            return thin_blindly(held, attack);
        };
        spans.push((begin, end, block));
    }
    spans.sort_unstable_by_key(|span| span.0);
    let ranges: Vec<Span> = spans
        .iter()
        .map(|&(begin, end, _)| Span {
            begin,
            end,
            cost: end - begin,
        })
        .collect();
    let keep = cheapest(&ranges, attack.high(), hole);
    held.clear();
    for (span, keep) in spans.iter().zip(keep) {
        if keep {
            held.push(span.2);
        } else {
            attack.free(span.2);
        }
    }
}

fn thin_blindly(held: &mut Vec<Block>, attack: &mut Attack<'_>) {
    let mut number = 0;
    held.retain(|&block| {
        number += 1;
        if number % 2 == 0 {
            attack.free(block);
        }
        number % 2 == 1
    });
}

/// A block's place and what it costs to keep it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) cost: u64,
}

/// Which of the spans to keep, so that no two kept neighbours are `hole` bytes
/// or more apart, nor the last one from `high`; spans that are so far apart
/// anyway count as near. Least cost; spans by rising address. Linear: a window
/// with its minimum in front.
pub(super) fn cheapest(spans: &[Span], high: u64, hole: u64) -> Vec<bool> {
    // Place 0 is the beginning of memory, the last one its end.
    let begin = spans.first().map_or(0, |span| span.begin);
    let ends: Vec<u64> = std::iter::once(begin)
        .chain(spans.iter().map(|span| span.end))
        .collect();
    let begins = spans.iter().map(|span| span.begin).chain([high]);
    let mut cost = vec![0_u64];
    let mut before = vec![0_usize];
    let mut window = std::collections::VecDeque::from([0_usize]);
    for (place, begin) in begins.enumerate() {
        let place = place + 1;
        while window
            .front()
            .is_some_and(|&front| begin.saturating_sub(ends[front]) >= hole && front + 1 < place)
        {
            window.pop_front();
        }
        // Empty where even the nearest span is too far: that hole stays.
        let from = window.front().copied().unwrap_or(place - 1);
        let own = spans.get(place - 1).map_or(0, |span| span.cost);
        cost.push(cost[from] + own);
        before.push(from);
        while window.back().is_some_and(|&back| cost[back] >= cost[place]) {
            window.pop_back();
        }
        window.push_back(place);
    }
    let mut keep = vec![false; spans.len()];
    let mut place = before[spans.len() + 1];
    while place > 0 {
        keep[place - 1] = true;
        place = before[place];
    }
    keep
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Cost of the cheapest set, by trying all of them.
    fn naive(spans: &[Span], high: u64, hole: u64) -> u64 {
        let allowed = |kept: &[Span]| {
            let mut end = spans.first().map_or(0, |span| span.begin);
            for next in kept
                .iter()
                .map(|span| (span.begin, span.end))
                .chain([(high, high)])
            {
                if next.0 - end >= hole {
                    return false;
                }
                end = next.1;
            }
            true
        };
        (0..1_u32 << spans.len())
            .filter_map(|set| {
                let kept: Vec<_> = (0..spans.len())
                    .filter(|&place| set >> place & 1 == 1)
                    .map(|place| spans[place])
                    .collect();
                let bytes = kept.iter().map(|span| span.cost).sum();
                allowed(&kept).then_some(bytes)
            })
            .min()
            .unwrap_or(u64::MAX)
    }

    proptest! {
        #[test]
        fn the_set_is_the_cheapest(
            pieces in prop::collection::vec((0_u64..3, 1_u64..6, 0_u64..5), 1..10),
            tail in 0_u64..3,
            hole in 3_u64..12,
        ) {
            let mut at = 5;
            let mut spans = Vec::new();
            for (gap, length, cost) in pieces {
                spans.push(Span { begin: at + gap, end: at + gap + length, cost });
                at += gap + length;
            }
            let high = at + tail;
            let keep = cheapest(&spans, high, hole);
            let bytes: u64 = spans.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(span, _)| span.cost).sum();
            prop_assert_eq!(bytes, naive(&spans, high, hole));
        }
    }
}
