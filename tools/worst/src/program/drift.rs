//! The drift: memory stays full while sizes grow, as programs do that load
//! ever larger things. What a heap keeps of the small ones decides.

use metes_explore::Random;

use crate::attack::Attack;

/// The drift with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drift {
    /// Each size is so many percent of the last, at least one granule more.
    pub growth_percent: u64,
    /// Blocks replaced at each size, in percent of those live.
    pub turn_percent: u64,
    /// Which block goes: 0 the oldest, 1 the youngest, 2 any.
    pub choice: u8,
    /// What decides where any may go.
    pub seed: u64,
}

impl Drift {
    pub(super) fn first() -> impl Iterator<Item = Drift> {
        [(110, 50, 2), (102, 20, 2), (125, 100, 0)].into_iter().map(
            |(growth_percent, turn_percent, choice)| Drift {
                growth_percent,
                turn_percent,
                choice,
                seed: 1,
            },
        )
    }

    pub(super) fn mutate(self, random: &mut Random) -> Drift {
        match random.below(4) {
            0 => Drift {
                growth_percent: 101 + random.below(120) as u64,
                ..self
            },
            1 => Drift {
                turn_percent: 1 + random.below(100) as u64,
                ..self
            },
            2 => Drift {
                choice: random.below(3) as u8,
                ..self
            },
            _ => Drift {
                seed: random.next(),
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let mut random = Random::new(self.seed);
        let demand = attack.demand();
        let granule = attack.shape().granule;
        let mut held = std::collections::VecDeque::new();
        let mut size = demand.smallest;
        loop {
            while let Some(block) = attack.allocate(size) {
                held.push_back(block);
            }
            let turns = held.len() as u64 * self.turn_percent / 100 + 1;
            for _ in 0..turns {
                while attack.room() < size {
                    let last = held.len() - 1;
                    match self.choice {
                        0 => {}
                        1 => held.swap(0, last),
                        _ => held.swap(0, random.below(held.len())),
                    }
                    match held.pop_front() {
                        Some(block) if !attack.over() => attack.free(block),
                        _ => return,
                    }
                }
                match attack.allocate(size) {
                    Some(block) => held.push_back(block),
                    None => break,
                }
            }
            if size >= demand.largest || attack.over() {
                return;
            }
            let next = (size * self.growth_percent / 100).max(size + granule);
            size = next.min(demand.largest);
        }
    }
}
