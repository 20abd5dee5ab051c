//! The comb: memory full of small blocks, every other one freed, then a block
//! that no tooth gap holds. A search that visits holes visits all of them, and
//! so does a list in which freed blocks find their place.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::near;
use crate::attack::{Attack, Block};

/// The comb with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Comb {
    /// Request of a tooth.
    pub small: u64,
    /// Sizes of teeth rise over so many granules and begin again.
    pub wave: u32,
    /// One of so many blocks stays.
    pub every: u32,
    /// In which order teeth are freed: 0 as made, 1 from the end, 2 any.
    pub order: u8,
    /// What is asked for then.
    pub large: u64,
}

impl Comb {
    pub(super) fn first(demand: &Demand) -> impl Iterator<Item = Comb> + use<> {
        let Demand {
            smallest, largest, ..
        } = *demand;
        let orders = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 6)];
        orders.into_iter().map(move |(order, wave)| Comb {
            small: smallest,
            wave,
            every: 2,
            order,
            large: largest,
        })
    }

    pub(super) fn mutate(self, demand: &Demand, random: &mut Random) -> Comb {
        match random.below(5) {
            0 => Comb {
                small: near(self.small, demand, random),
                ..self
            },
            1 => Comb {
                wave: random.below(12) as u32,
                ..self
            },
            2 => Comb {
                every: 2 + random.below(3) as u32,
                ..self
            },
            3 => Comb {
                order: random.below(3) as u8,
                ..self
            },
            _ => Comb {
                large: near(self.large, demand, random),
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let granule = attack.shape().granule;
        let waves = u64::from(self.wave + 1);
        let mut held: Vec<Block> = Vec::new();
        let mut number = 0;
        // Room is left for what is asked for at the end.
        while attack.room() > self.large {
            let size = self.small + number % waves * granule;
            let size = size.min(attack.demand().largest);
            match attack.allocate(size) {
                Some(block) => held.push(block),
                None => break,
            }
            number += 1;
        }
        let (stay, mut go): (Vec<_>, Vec<_>) = held
            .into_iter()
            .enumerate()
            .partition(|(number, _)| number % self.every as usize == 0);
        match self.order {
            0 => {}
            1 => go.reverse(),
            _ => Random::new(1).shuffle(&mut go),
        }
        for (_, block) in go {
            attack.free(block);
        }
        let large: Vec<Block> = (0..4).filter_map(|_| attack.allocate(self.large)).collect();
        for block in large {
            attack.free(block);
        }
        // The last to go are the teeth that kept the others apart.
        for (_, block) in stay.into_iter().rev() {
            attack.free(block);
        }
    }
}
