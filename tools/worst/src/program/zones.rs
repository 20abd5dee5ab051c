//! The zones: what first fit by address suffers from, as far as we can construct it.
//!
//! Block sizes grow from the smallest to the largest. Before each the cheapest live blocks are
//! kept that leave no hole of that size, cheapest by *requested* bytes, and memory is filled with
//! the smallest request that takes such a block. So each size has a zone of its own above those of
//! the smaller ones, and of a zone stay the fewest blocks. Where remainders are too small to split
//! off, each new block is freed and asked for again a size smaller: it keeps the remainder.
//!
//! Invariant: every hole is smaller than the block that is asked for next, as far as the blocks
//! that are live allow it.

use metes_explore::Random;

use super::sieve::{Span, cheapest};
use crate::attack::{Attack, Block};

/// The zones with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zones {
    /// Each block is so many percent of the last, at least one granule more.
    pub growth_percent: u64,
    /// Blocks up to so many granules keep a remainder; 0: none.
    pub slack_up_to: u64,
}

/// A live block with its true end.
struct Held {
    begin: u64,
    end: u64,
    block: Block,
}

impl Zones {
    pub(super) fn first() -> impl Iterator<Item = Zones> {
        [(100, 0), (100, 16), (103, 0), (110, 0), (200, 0)]
            .into_iter()
            .map(|(growth_percent, slack_up_to)| Zones {
                growth_percent,
                slack_up_to,
            })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Zones {
        match random.below(2) {
            0 => Zones {
                growth_percent: 100 + random.below(30) as u64,
                ..self
            },
            _ => Zones {
                slack_up_to: random.below(64) as u64,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let shape = attack.shape();
        let demand = attack.demand();
        let last = shape.block(demand.largest);
        let mut held: Vec<Held> = Vec::new();
        let mut block = shape.block(demand.smallest);
        loop {
            let slack = block <= self.slack_up_to * shape.granule
                && shape.minimum > shape.granule
                && block > shape.block(demand.smallest);
            let whole = smallest_request(block, attack);
            let less = smallest_request(block.saturating_sub(shape.granule), attack);
            thin(
                &mut held,
                if slack { block - shape.granule } else { block },
                attack,
            );
            while fill(&mut held, (block, whole), slack.then_some(less), attack) && slack {}
            if block >= last || attack.over() {
                return;
            }
            let next = block * self.growth_percent / 100;
            let next = next.next_multiple_of(shape.granule);
            block = next.max(block + shape.granule).min(last);
        }
    }
}

/// The smallest request of the demand that takes a block of at least `block` bytes.
fn smallest_request(block: u64, attack: &Attack<'_>) -> u64 {
    let shape = attack.shape();
    let demand = attack.demand();
    if block <= shape.block(demand.smallest) {
        return demand.smallest;
    }
    (shape.request(block - shape.granule) + 1).clamp(demand.smallest, demand.largest)
}

/// Fills memory with requests of `whole` bytes in blocks of `block`, and asks for each again with
/// `less` bytes. Whether any was served.
fn fill(
    held: &mut Vec<Held>,
    (block, whole): (u64, u64),
    less: Option<u64>,
    attack: &mut Attack<'_>,
) -> bool {
    let first = held.len();
    while let Some(new) = attack.allocate(whole) {
        let begin = attack.place(new).map_or(0, |place| place.0);
        held.push(Held {
            begin,
            end: begin + block,
            block: new,
        });
    }
    let Some(less) = less else {
        return held.len() > first;
    };
    // The last of them lies at the free end.
    let new = held.len().saturating_sub(1).max(first);
    for at in first..new {
        attack.free(held[at].block);
        let Some(again) = attack.allocate(less) else {
            held.remove(at);
            return false;
        };
        held[at].block = again;
    }
    new > first
}

/// Frees all but the cheapest set of blocks, by requests, that leaves no hole of `hole` bytes.
fn thin(held: &mut Vec<Held>, hole: u64, attack: &mut Attack<'_>) {
    held.sort_unstable_by_key(|held| held.begin);
    let spans: Vec<Span> = held
        .iter()
        .map(|held| Span {
            begin: held.begin,
            end: held.end,
            cost: attack.size(held.block),
        })
        .collect();
    let mut keep = cheapest(&spans, attack.high(), hole).into_iter();
    held.retain(|held| {
        let kept = keep.next().unwrap_or(true);
        if !kept {
            attack.free(held.block);
        }
        kept
    });
}
