//! The churn: requests at random, with sizes at the ends of the demand and
//! anywhere, and from time to time half of all blocks freed.

use metes_explore::Random;

use crate::attack::Attack;

/// The churn with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Churn {
    /// What chance decides.
    pub seed: u64,
    /// Requests.
    pub requests: u32,
    /// Of a hundred requests so many are frees.
    pub frees_percent: u32,
}

impl Churn {
    pub(super) fn first() -> impl Iterator<Item = Churn> {
        [(40_000, 20), (100_000, 45)]
            .into_iter()
            .map(|(requests, frees_percent)| Churn {
                seed: 1,
                requests,
                frees_percent,
            })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Churn {
        match random.below(3) {
            0 => Churn {
                seed: random.next(),
                ..self
            },
            1 => Churn {
                requests: 1000 + random.below(200_000) as u32,
                ..self
            },
            _ => Churn {
                frees_percent: random.below(50) as u32,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let mut random = Random::new(self.seed);
        let demand = attack.demand();
        let spread = (demand.largest - demand.smallest + 1) as usize;
        let mut held = Vec::new();
        for _ in 0..self.requests {
            if attack.over() {
                return;
            }
            let mut go = usize::from(random.below(100) < self.frees_percent as usize);
            if random.below(4096) == 0 {
                go = held.len() / 2;
            }
            let size = match random.below(4) {
                0 => demand.smallest,
                1 => demand.largest,
                2 => demand.smallest + random.below(spread) as u64,
                _ => demand.smallest + random.below(spread.isqrt() + 1).min(spread - 1) as u64,
            };
            while !held.is_empty() && (go > 0 || attack.room() < size) {
                let block = held.swap_remove(random.below(held.len()));
                attack.free(block);
                if attack.over() {
                    return;
                }
                go = go.saturating_sub(1);
            }
            held.extend(attack.allocate(size));
        }
    }
}
