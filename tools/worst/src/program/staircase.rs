//! The staircase: fill memory with blocks of a + p bytes, cut each into a and a
//! *pin* of p, free the a's. What is left are pins with holes of a between
//! them; then the same with a larger a, which fits into none of those holes.
//!
//! It is what best fit suffers from (Robson; Knuth, TAOCP 1, exercise 2.5-42: a
//! heap of nearly M · n): once all memory is pins, each of them keeps a hole
//! of nearly n useless. The cut is forced on any policy, since the only hole
//! that holds a is the one just freed; where the pin goes is the policy's choice.
//! Best fit, size classes and last-freed-first take the exact rest behind a;
//! worst fit takes the block itself, so that there the pin is asked for first.
//! Where a search is rounded up to a class, a need not even grow.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::near;
use crate::attack::{Attack, Block};
use crate::target::Shape;

/// The staircase with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staircase {
    /// First a, as a request.
    pub first: u64,
    /// Granules that a grows by in a round, where the heap could not use the old
    /// holes. Where it could, a grows by one granule at least.
    pub step: u64,
    /// Request of a pin.
    pub pin: u64,
    /// Whether the pin is asked for before a.
    pub pin_first: bool,
}

impl Staircase {
    pub(super) fn first(demand: &Demand, shape: &Shape) -> impl Iterator<Item = Staircase> + use<> {
        let Demand {
            smallest, largest, ..
        } = *demand;
        let pin = shape.request(shape.block(smallest)).min(largest);
        let half = (largest / 2).max(smallest);
        [
            (half, 1, false),
            (half, 1, true),
            (half, 0, false),
            (smallest, 4, false),
            (largest - largest / 8, 0, false),
        ]
        .into_iter()
        .map(move |(first, step, pin_first)| Staircase {
            first: first.max(smallest),
            step,
            pin,
            pin_first,
        })
    }

    pub(super) fn mutate(self, demand: &Demand, random: &mut Random) -> Staircase {
        match random.below(5) {
            0 | 1 => Staircase {
                first: near(self.first, demand, random),
                ..self
            },
            2 => Staircase {
                step: random.below(9) as u64,
                ..self
            },
            3 => Staircase {
                pin: near(self.pin, demand, random).min(4 * demand.smallest),
                ..self
            },
            _ => Staircase {
                pin_first: !self.pin_first,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let shape = attack.shape();
        let pin = shape.block(self.pin);
        let mut long = shape.block(self.first);
        loop {
            let whole = shape.request(long + pin);
            if whole > attack.demand().largest || attack.over() {
                return;
            }
            let high = attack.high();
            let mut blocks = Vec::new();
            while let Some(block) = attack.allocate(whole) {
                blocks.push(block);
            }
            let Some(&first) = blocks.first() else {
                return;
            };
            // Whether the heap had to leave its old holes alone.
            let fresh = attack.place(first).is_none_or(|(begin, _)| begin >= high);
            let mut fillers: Vec<Block> = Vec::with_capacity(blocks.len());
            for block in blocks {
                attack.free(block);
                let request = shape.request(long);
                if self.pin_first {
                    attack.allocate(self.pin);
                    fillers.extend(attack.allocate(request));
                } else {
                    fillers.extend(attack.allocate(request));
                    attack.allocate(self.pin);
                }
            }
            for filler in fillers {
                attack.free(filler);
            }
            let least = u64::from(!fresh);
            long += self.step.max(least) * shape.granule;
        }
    }
}
