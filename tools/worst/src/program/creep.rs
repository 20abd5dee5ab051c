//! The creep: a few live blocks, a new one before the oldest goes. A heap that
//! passes over holes that would do moves on into fresh memory for ever
//! (`docs/guarantees.md#limited-search`).

use std::collections::VecDeque;

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::near;
use crate::attack::Attack;

/// The creep with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Creep {
    /// Request.
    pub size: u64,
    /// Live blocks.
    pub hold: u32,
    /// Granules by which sizes go up and down again.
    pub wave: u32,
}

/// Requests of a creep: further ones show nothing new.
const REQUESTS: u64 = 1 << 16;

impl Creep {
    pub(super) fn first(demand: &Demand) -> impl Iterator<Item = Creep> + use<> {
        let largest = demand.largest;
        [(2, 0), (3, 4)].into_iter().map(move |(hold, wave)| Creep {
            size: largest,
            hold,
            wave,
        })
    }

    pub(super) fn mutate(self, demand: &Demand, random: &mut Random) -> Creep {
        match random.below(3) {
            0 => Creep {
                size: near(self.size, demand, random),
                ..self
            },
            1 => Creep {
                hold: 1 + random.below(64) as u32,
                ..self
            },
            _ => Creep {
                wave: random.below(16) as u32,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let demand = attack.demand();
        let granule = attack.shape().granule;
        let mut held = VecDeque::new();
        for number in 0..REQUESTS {
            let shift = number % u64::from(self.wave + 1) * granule;
            let size = self.size.saturating_sub(shift).max(demand.smallest);
            while held.len() > self.hold as usize || attack.room() < size {
                let Some(block) = held.pop_front() else {
                    return;
                };
                attack.free(block);
            }
            match attack.allocate(size) {
                Some(block) => held.push_back(block),
                None => return,
            }
        }
    }
}
