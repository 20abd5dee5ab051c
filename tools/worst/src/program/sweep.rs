//! The sweep: fill memory with one size, free all of it, go on to the next.
//!
//! Heaps that keep freed blocks in their class never use them for another: each
//! class comes to hold all of M once. The storage bound of Kingsley and of fixed
//! sizes is met so.

use metes_explore::Random;

use crate::attack::Attack;

/// The sweep with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// Sizes of a doubling; 0: every granule.
    pub per_doubling: u64,
    /// From the largest size down.
    pub descending: bool,
    /// Bytes by which each request is above or below where a class begins.
    pub shift: u64,
}

impl Sweep {
    pub(super) fn first() -> impl Iterator<Item = Sweep> {
        [(1, false), (4, false), (0, false), (4, true)]
            .into_iter()
            .map(|(per_doubling, descending)| Sweep {
                per_doubling,
                descending,
                shift: 1,
            })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Sweep {
        match random.below(3) {
            0 => Sweep {
                per_doubling: [0, 1, 2, 4, 8, 16][random.below(6)],
                ..self
            },
            1 => Sweep {
                descending: !self.descending,
                ..self
            },
            _ => Sweep {
                shift: random.below(17) as u64,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let mut sizes = self.sizes(attack);
        if self.descending {
            sizes.reverse();
        }
        for size in sizes {
            let mut held = Vec::new();
            while let Some(block) = attack.allocate(size) {
                held.push(block);
            }
            for block in held {
                attack.free(block);
            }
            if attack.over() {
                return;
            }
        }
    }

    /// The smallest request of each class, and the ends of the demand.
    fn sizes(&self, attack: &Attack<'_>) -> Vec<u64> {
        let shape = attack.shape();
        let demand = attack.demand();
        let mut sizes = vec![demand.smallest, demand.largest];
        let mut block = match self.per_doubling {
            0 => shape.block(demand.smallest),
            _ => 1 << shape.block(demand.smallest).ilog2(),
        };
        while shape.request(block) <= demand.largest {
            let request = shape.request(block) + self.shift;
            sizes.push(request.clamp(demand.smallest, demand.largest));
            block += match self.per_doubling {
                0 => shape.granule,
                classes => ((1 << block.ilog2()) / classes).max(shape.granule),
            };
        }
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}
