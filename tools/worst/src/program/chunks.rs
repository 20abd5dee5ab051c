//! The chunks: Robson's ramp made exact for buddies (Knowlton 1965).
//!
//! A block of 2^k bytes lies in an aligned chunk of as many, and any live block in a chunk
//! keeps it from being one. So before each order is filled, the cheapest block of each chunk of
//! that order stays and the others go. The requests of an order are the smallest that are
//! rounded up to it: memory is filled for half of its bytes.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use crate::attack::{Attack, Block};
use crate::target::Shape;

/// The chunks with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunks {
    /// Log of the first block, record included.
    pub first: u32,
    /// Orders by which blocks grow.
    pub step: u32,
    /// Whether chunks are told apart from address zero instead of the first block.
    pub absolute: bool,
}

impl Chunks {
    pub(super) fn first(demand: &Demand, shape: &Shape) -> impl Iterator<Item = Chunks> + use<> {
        let first = shape.block(demand.smallest).next_power_of_two().ilog2();
        [false, true].into_iter().map(move |absolute| Chunks {
            first,
            step: 1,
            absolute,
        })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Chunks {
        match random.below(3) {
            0 => Chunks {
                first: (self.first + 1 - 2 * random.below(2) as u32).max(4),
                ..self
            },
            1 => Chunks {
                step: 1 + random.below(3) as u32,
                ..self
            },
            _ => Chunks {
                absolute: !self.absolute,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let Demand {
            smallest, largest, ..
        } = attack.demand();
        let shape = attack.shape();
        let mut held: Vec<Block> = Vec::new();
        let mut origin = None;
        let mut order = self.first;
        loop {
            // No block is so large: nothing is left to be tried.
            if order >= u64::BITS {
                return;
            }
            // The smallest request of a block above half of 2^order.
            let size = (shape.request(1 << (order - 1)) + 1).clamp(smallest, largest);
            if shape.block(size) > 1 << order || attack.over() {
                return;
            }
            thin(&mut held, origin.unwrap_or(0), order, attack);
            while let Some(block) = attack.allocate(size) {
                held.push(block);
            }
            if origin.is_none() {
                let lowest = held.iter().filter_map(|&block| attack.place(block)).min();
                origin = match self.absolute {
                    true => Some(0),
                    false => lowest.map(|(begin, _)| begin),
                };
            }
            order += self.step;
        }
    }
}

/// Frees all but the cheapest block of each chunk of 2^order bytes; of equals the first stays.
/// O(blocks log blocks).
pub(super) fn thin(held: &mut Vec<Block>, origin: u64, order: u32, attack: &mut Attack<'_>) {
    let chunk = |block: Block, attack: &Attack<'_>| {
        let (begin, _) = attack.place(block)?;
        Some(begin.wrapping_sub(origin) >> order)
    };
    held.sort_by_key(|&block| {
        (
            chunk(block, attack),
            attack.size(block),
            attack.place(block),
        )
    });
    let mut last = None;
    held.retain(|&block| {
        let own = chunk(block, attack);
        let stays = own.is_none() || own != last;
        last = own;
        if !stays {
            attack.free(block);
        }
        stays
    });
}
