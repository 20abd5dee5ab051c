//! Robson's ramp (JACM 18(3), 1971; JACM 21(3), 1974): fill memory with the
//! smallest blocks, free as many as can be spared, fill up with blocks of twice
//! the size, and so on. What is kept leaves no hole for the next size.
//!
//! The *oblivious* program frees every other block of each generation, whatever
//! the heap does. The *adaptive* one looks where blocks lie: for step s it keeps
//! those that cover an address of one residue modulo s, one in each stretch of s
//! bytes, and chooses the residue that keeps the most memory useless for the
//! fewest bytes.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use crate::attack::{Attack, Block};
use crate::target::Shape;

/// The ramp with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Robson {
    /// Bytes of the smallest block, record included.
    pub unit: u64,
    /// Whether it looks where blocks lie.
    pub adaptive: bool,
    /// Whether residues are counted from address zero instead of the first block.
    pub absolute: bool,
}

impl Robson {
    /// Blocks that double from the smallest one, and from the next power of two.
    pub(super) fn first(demand: &Demand, shape: &Shape) -> impl Iterator<Item = Robson> + use<> {
        let unit = shape.block(demand.smallest);
        [
            (unit, false, false),
            (unit, true, false),
            (unit.next_power_of_two(), true, false),
            (unit.next_power_of_two(), true, true),
        ]
        .into_iter()
        .map(|(unit, adaptive, absolute)| Robson {
            unit,
            adaptive,
            absolute,
        })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Robson {
        match random.below(4) {
            0 => Robson {
                unit: self.unit + 16,
                ..self
            },
            1 => Robson {
                unit: (self.unit.saturating_sub(16)).max(16),
                ..self
            },
            2 => Robson {
                absolute: !self.absolute,
                ..self
            },
            _ => Robson {
                adaptive: !self.adaptive,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let shape = attack.shape();
        let mut generations: Vec<Vec<Block>> = Vec::new();
        let mut step = self.unit;
        let mut origin = None;
        while shape.request(step) <= attack.demand().largest && !attack.over() {
            if self.adaptive {
                let keep = origin.unwrap_or(0);
                self.thin_by_address(&mut generations, step, keep, attack);
            } else {
                thin_by_number(&mut generations, attack);
            }
            let mut generation = Vec::new();
            while let Some(block) = attack.allocate(shape.request(step)) {
                generation.push(block);
            }
            if origin.is_none() {
                let first = generation.first().and_then(|&block| attack.place(block));
                origin = match self.absolute {
                    true => Some(0),
                    false => first.map(|(begin, _)| begin),
                };
            }
            generations.push(generation);
            step *= 2;
        }
    }

    /// Keeps the blocks that cover an address of the best residue modulo `step`.
    fn thin_by_address(
        &self,
        generations: &mut [Vec<Block>],
        step: u64,
        origin: u64,
        attack: &mut Attack<'_>,
    ) {
        let spans: Vec<(u64, u64)> = generations
            .iter()
            .flatten()
            .filter_map(|&block| attack.place(block))
            .map(|(begin, end)| (begin - origin.min(begin), end - begin))
            .collect();
        let Some(residue) = best_residue(&spans, step, attack.shape().granule) else {
            return;
        };
        for generation in generations {
            generation.retain(|&block| {
                let Some((begin, end)) = attack.place(block) else {
                    return true;
                };
                let keep = covers(begin - origin.min(begin), end - begin, residue, step);
                if !keep {
                    attack.free(block);
                }
                keep
            });
        }
    }
}

/// Whether a span covers an address of the residue modulo `step`.
fn covers(begin: u64, length: u64, residue: u64, step: u64) -> bool {
    (residue + step - begin % step) % step < length
}

/// The residue with the largest sum of step − length over the spans that cover it:
/// each makes a stretch of `step` bytes useless and costs its length. Robson's
/// choice between two residues, over all of them. O(spans + step / granule).
fn best_residue(spans: &[(u64, u64)], step: u64, granule: u64) -> Option<u64> {
    let places = (step / granule) as usize;
    // Differences of a sum over a ring of residues.
    let mut change = vec![0_i64; places + 1];
    for &(begin, length) in spans {
        let gain = step as i64 - length as i64;
        if gain <= 0 {
            continue;
        }
        let first = (begin % step / granule) as usize;
        let end = first + (length / granule) as usize;
        change[first] += gain;
        change[end.min(places)] -= gain;
        if end > places {
            change[0] += gain;
            change[end - places] -= gain;
        }
    }
    let mut sum = 0;
    let sums = change[..places].iter().map(|change| {
        sum += change;
        sum
    });
    let best = sums
        .enumerate()
        .max_by_key(|&(place, sum)| (sum, usize::MAX - place))?;
    Some(best.0 as u64 * granule)
}

/// Frees every other block of each generation.
fn thin_by_number(generations: &mut [Vec<Block>], attack: &mut Attack<'_>) {
    for generation in generations {
        let mut number = 0;
        generation.retain(|&block| {
            number += 1;
            let keep = number % 2 == 1;
            if !keep {
                attack.free(block);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against trying every residue.
        #[test]
        fn the_residue_is_the_best_one(
            spans in prop::collection::vec((0_u64..40, 1_u64..6), 0..12),
            places in 1_u64..12,
        ) {
            let spans: Vec<_> = spans.iter().map(|&(begin, length)| (begin * 16, length * 16)).collect();
            let step = places * 16;
            let worth = |residue| -> i64 {
                let covering = spans.iter().filter(|span| span.1 < step && covers(span.0, span.1, residue, step));
                covering.map(|span| step as i64 - span.1 as i64).sum()
            };
            let found = best_residue(&spans, step, 16).unwrap();
            let most = (0..places).map(|place| worth(place * 16)).max().unwrap();
            prop_assert_eq!(worth(found), most);
        }
    }
}
