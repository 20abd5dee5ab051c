//! The rover: what next fit suffers from.
//!
//! Next fit goes on behind the block that served, so whoever knows where the rover is chooses
//! the hole. Memory is filled with *whole* blocks. The lowest of the new ones is freed: of all
//! holes only this *rest*, and another whole block just freed, hold a whole one; so a request
//! for one goes to the rest, and the rover to the next hole above it. That is the block just
//! freed, as all blocks between are in use, and a *pin* asked for now goes to its beginning,
//! whatever holes there are below. Block by block from the top, all of memory becomes pins with
//! holes between them that hold no whole block; then the same with what is left of M. The heap
//! comes near M n / p.
//!
//! A rest stays behind as a hole of a whole block. Later rounds fill it and leave it alone,
//! until whole blocks grow by a granule.
//!
//! A heap that orders its holes otherwise is not led so; it is only asked.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::near;
use crate::attack::{Attack, Block};

/// The rover with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rover {
    /// First request of a whole block.
    pub whole: u64,
    /// Request of a pin.
    pub pin: u64,
    /// Rounds until whole blocks grow by a granule.
    pub rounds: u32,
}

impl Rover {
    pub(super) fn first(demand: &Demand) -> impl Iterator<Item = Rover> + use<> {
        let Demand {
            smallest, largest, ..
        } = *demand;
        [(largest / 8, 6), (largest / 3, 1)]
            .into_iter()
            .map(move |(less, rounds)| Rover {
                whole: (largest - less).max(smallest),
                pin: smallest,
                rounds,
            })
    }

    pub(super) fn mutate(self, demand: &Demand, random: &mut Random) -> Rover {
        match random.below(4) {
            0 | 1 => Rover {
                whole: near(self.whole, demand, random),
                ..self
            },
            2 => Rover {
                rounds: 1 + random.below(24) as u32,
                ..self
            },
            _ => Rover {
                pin: near(self.pin, demand, random).min(4 * demand.smallest),
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let shape = attack.shape();
        let mut whole = self.whole;
        // Where the end of the heap begins, which is free after each round.
        let mut end = 0;
        while whole <= attack.demand().largest {
            for _ in 0..self.rounds {
                match self.round(whole, end, attack) {
                    Some(next) if !attack.over() => end = next,
                    _ => return,
                }
            }
            whole = shape.request(shape.block(whole) + shape.granule);
        }
    }

    /// One round; where the end of the heap begins after it. `None` where there was nothing
    /// to do.
    fn round(&self, whole: u64, end: u64, attack: &mut Attack<'_>) -> Option<u64> {
        let mut blocks: Vec<Block> = Vec::new();
        while let Some(block) = attack.allocate(whole) {
            blocks.push(block);
        }
        blocks.sort_by_key(|&block| attack.place(block));
        // Where there are no addresses all count as new.
        let new = blocks.partition_point(|&block| {
            let place = attack.place(block);
            place.is_some_and(|(begin, _)| begin < end)
        });
        let (plugs, blocks) = blocks.split_at(new);
        let next = match blocks {
            [rest, between @ .., highest] if !between.is_empty() => {
                let next = attack.place(*highest).map_or(end, |(begin, _)| begin);
                attack.free(*rest);
                for &block in between.iter().rev() {
                    attack.free(block);
                    let rest = attack.allocate(whole);
                    attack.allocate(self.pin);
                    if let Some(rest) = rest {
                        attack.free(rest);
                    }
                }
                // The highest kept the others from the end of the heap.
                attack.free(*highest);
                Some(next)
            }
            few => {
                few.iter().for_each(|&block| attack.free(block));
                None
            }
        };
        plugs.iter().for_each(|&block| attack.free(block));
        next
    }
}
