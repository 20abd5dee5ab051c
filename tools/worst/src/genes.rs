//! Short sequences of requests that are bred for one slow call.
//!
//! A sequence is a list of genes: sizes to allocate, and live blocks to free by
//! their position among the live ones, so that any change leaves a sequence
//! that can be played. Sizes are drawn from where heaps decide: the ends of the
//! demand and either side of class boundaries.
//!
//! Invariant: genes and the demand alone decide what is asked.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use crate::attack::{Attack, Block};
use crate::target::Shape;

/// Most genes of a sequence.
const LONGEST: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Gene {
    /// So many bytes.
    Allocate(u64),
    /// The live block at this position, modulo how many there are.
    Free(u16),
}

/// A sequence of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Genes(Vec<Gene>);

impl Genes {
    /// Requests at random.
    pub(crate) fn random(demand: &Demand, random: &mut Random) -> Genes {
        let length = 8 + random.below(LONGEST - 8);
        Genes((0..length).map(|_| gene(demand, random)).collect())
    }

    /// One to three of: a gene changed, added, taken out, moved.
    pub(crate) fn mutate(&self, demand: &Demand, random: &mut Random) -> Genes {
        let mut genes = self.0.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(genes.len().max(1));
            match random.below(5) {
                0 if genes.len() < LONGEST => genes.insert(at, gene(demand, random)),
                1 if genes.len() > 1 => {
                    genes.remove(at);
                }
                2 if genes.len() > 1 => {
                    let other = random.below(genes.len());
                    genes.swap(at, other);
                }
                _ => {
                    if let Some(place) = genes.get_mut(at) {
                        *place = match *place {
                            Gene::Allocate(size) if random.below(2) == 0 => {
                                let shifted = match random.below(2) {
                                    0 => size + 16,
                                    _ => size.saturating_sub(16),
                                };
                                Gene::Allocate(shifted.clamp(demand.smallest, demand.largest))
                            }
                            _ => gene(demand, random),
                        };
                    }
                }
            }
        }
        Genes(genes)
    }

    /// The first part of one and the second of another.
    pub(crate) fn cross(&self, other: &Genes, random: &mut Random) -> Genes {
        let first = random.below(self.0.len() + 1);
        let second = random.below(other.0.len() + 1);
        let mut genes = self.0[..first].to_vec();
        genes.extend(&other.0[second..]);
        genes.truncate(LONGEST);
        Genes(genes)
    }

    /// The genes without one of them; `None` beyond the end.
    pub(crate) fn without(&self, at: usize) -> Option<Genes> {
        let mut genes = self.0.clone();
        (at < genes.len()).then(|| {
            genes.remove(at);
            Genes(genes)
        })
    }

    pub(crate) fn play(&self, attack: &mut Attack<'_>) {
        let mut held: Vec<Block> = Vec::new();
        for gene in &self.0 {
            match *gene {
                Gene::Allocate(size) => held.extend(attack.allocate(size)),
                Gene::Free(at) if !held.is_empty() => {
                    let block = held.remove(usize::from(at) % held.len());
                    attack.free(block);
                }
                Gene::Free(_) => {}
            }
        }
    }
}

fn gene(demand: &Demand, random: &mut Random) -> Gene {
    match random.below(5) {
        0 | 1 => Gene::Free(random.next() as u16),
        _ => Gene::Allocate(size(demand, random)),
    }
}

/// A request where heaps decide.
fn size(demand: &Demand, random: &mut Random) -> u64 {
    let Demand {
        smallest, largest, ..
    } = *demand;
    let shape = Shape::TAGGED;
    let size = match random.below(6) {
        0 => smallest,
        1 => largest,
        2 => smallest + random.below((largest - smallest + 1) as usize) as u64,
        _ => {
            let (low, high) = (shape.block(smallest).ilog2(), shape.block(largest).ilog2());
            let power = 1_u64 << (low + random.below((high - low + 1) as usize) as u32);
            let class = power + power / 32 * random.below(32) as u64;
            let shift = [0, shape.granule][random.below(2)];
            shape.request(class.next_multiple_of(shape.granule) + shift)
        }
    };
    size.clamp(smallest, largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_to_the_demand() {
        let mut random = Random::new(3);
        for (live, largest, smallest) in [(100, 1, 1), (4096, 4096, 4096), (1 << 20, 5000, 3)] {
            let demand = Demand::new(live, largest, smallest);
            for _ in 0..500 {
                let size = size(&demand, &mut random);
                assert!((smallest..=largest).contains(&size), "{size}");
            }
            let mut genes = Genes::random(&demand, &mut random);
            for _ in 0..200 {
                let other = Genes::random(&demand, &mut random);
                genes = genes
                    .mutate(&demand, &mut random)
                    .cross(&other, &mut random);
                assert!(genes.0.len() <= LONGEST);
            }
        }
    }
}
