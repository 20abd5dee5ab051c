//! The pages: what size classes in pages suffer from that never move a block.
//!
//! A page belongs to its class as long as one of its page-blocks is used. So memory is filled
//! with one size after another, and of each fill one block a page stays: the page is lost to
//! every other class for the bytes of one block.

use metes_explore::Random;
use metes_heap::bounds::Demand;

use super::chunks::thin;
use crate::attack::Attack;

/// The pages with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pages {
    /// Log of the bytes of a page.
    pub page: u32,
    /// Each size is so many percent of the last, at least one granule more.
    pub growth_percent: u64,
}

impl Pages {
    pub(super) fn first() -> impl Iterator<Item = Pages> {
        [(14, 113), (12, 113)]
            .into_iter()
            .map(|(page, growth_percent)| Pages {
                page,
                growth_percent,
            })
    }

    pub(super) fn mutate(self, random: &mut Random) -> Pages {
        match random.below(2) {
            0 => Pages {
                page: 10 + random.below(7) as u32,
                ..self
            },
            _ => Pages {
                growth_percent: 102 + random.below(40) as u64,
                ..self
            },
        }
    }

    pub(super) fn play(&self, attack: &mut Attack<'_>) {
        let Demand {
            smallest, largest, ..
        } = attack.demand();
        let granule = attack.shape().granule;
        let mut size = smallest;
        loop {
            let mut new = Vec::new();
            while let Some(block) = attack.allocate(size) {
                new.push(block);
            }
            if size >= largest || attack.over() {
                return;
            }
            thin(&mut new, 0, self.page, attack);
            let next = (size * self.growth_percent / 100).max(size + granule);
            size = next.min(largest);
        }
    }
}
