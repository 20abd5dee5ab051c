//! The state of a class as the slides write it, and whether its pages agree with it.

use super::super::table::{LISTS, NONE, Place, Table};
use super::Class;

/// The state of a size class, as the slides write it, and what explains its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassState {
    /// Bytes of a page-block, β.
    pub block: usize,
    /// Page-blocks of a page, π.
    pub blocks: u32,
    /// Used page-blocks, h.
    pub used: u32,
    /// Not-full pages, n.
    pub not_full: u32,
    /// Pages of the class.
    pub pages: u32,
    /// Page-blocks that are being left by moves.
    pub sources: u32,
    /// Pages with pinned page-blocks.
    pub held: u32,
    /// Pages in which nothing but sources is left.
    pub source_pages: u32,
}

impl Class {
    /// The state of the automaton: h, n, and the bytes that only this state explains.
    pub(in crate::compact) fn state(&self, table: &Table<'_>) -> ClassState {
        let (mut used, mut held, mut source_pages) = (0, 0, 0);
        for (_, page) in table.pages() {
            if page.class.get() == self.number && page.place.get() != Place::Unowned {
                used += u32::from(page.used.get());
                held += u32::from(page.pins.get() > 0);
                source_pages += u32::from(page.used.get() == 0);
            }
        }
        ClassState {
            block: self.bytes as usize,
            blocks: self.blocks,
            used,
            not_full: self.not_full,
            pages: self.pages,
            sources: self.sources,
            held,
            source_pages,
        }
    }

    /// Verifies lists, counts and bitmaps, and that n is within κ. Linear in pages.
    pub(in crate::compact) fn check(&self, table: &Table<'_>) -> bool {
        let mut counted = [0u32; LISTS];
        let (mut sources, mut pages) = (0, 0);
        for (number, page) in table.pages() {
            if page.place.get() == Place::Unowned || page.class.get() != self.number {
                continue;
            }
            let counts = table.bits(number).counts(self.blocks as usize);
            let (taken, left) = (page.used.get(), page.sources.get());
            let rest = (self.blocks as usize).checked_sub(usize::from(taken + left));
            if counts != rest.map(|free| (free, usize::from(left)))
                || self.belongs(table, number) != Some(page.place.get())
            {
                return false;
            }
            sources += u32::from(left);
            pages += 1;
            if let Some(count) = counted.get_mut(page.place.get() as usize) {
                *count += 1;
            }
        }
        let linked = [Place::Open, Place::Blocked, Place::Held]
            .iter()
            .all(|&place| self.length(table, place, pages) == Some(counted[place as usize]));
        let not_full = counted[Place::Open as usize] + counted[Place::Blocked as usize];
        linked
            && not_full == self.not_full
            && not_full <= self.kappa
            && (sources, pages) == (self.sources, self.pages)
    }

    fn length(&self, table: &Table<'_>, place: Place, most: u32) -> Option<u32> {
        let list = self.lists[place as usize];
        let (mut number, mut before, mut count) = (list.first, NONE, 0);
        while number != NONE {
            let page = table.get(number)?;
            if page.place.get() != place || page.previous.get() != before || count == most {
                return None;
            }
            count += 1;
            before = number;
            number = page.next.get();
        }
        (list.last == before).then_some(count)
    }
}
