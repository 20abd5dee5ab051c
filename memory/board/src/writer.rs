//! The heap's side of a board.
//!
//! Invariant: nothing that is read from the shared memory decides anything here: the writer has
//! records of its own, and the shared ones are copies.

use crate::error::Error;
use crate::figures::{self, Figures};
use crate::header::{About, STREAMS};
use crate::layout::Layout;
#[cfg(target_os = "linux")]
use crate::memory::Shared;
use crate::protocol::{Publisher, Record};

/// Of a page's first word: whether it has memory. The rest are bytes of blocks.
pub(crate) const MAPPED: u64 = 1 << 63;

/// Writes a board. Changes become visible with the next [`publish`](Self::publish), all at once.
#[derive(Debug)]
pub struct Writer {
    #[cfg(target_os = "linux")]
    shared: Shared,
    layout: Layout,
    publisher: Publisher,
    page_shift: u32,
    pages: usize,
    /// Pages, and then streams.
    records: Box<[Record]>,
    /// Records that are not published as they are, and whether one is among them.
    changed: Vec<u32>,
    listed: Box<[bool]>,
}

impl Writer {
    /// Makes the board of a heap, which other processes find from now on; nothing is published
    /// yet. O(pages); nothing is allocated later.
    ///
    /// # Errors
    /// [`Error::System`], [`Error::Limit`], [`Error::Plan`].
    #[cfg(target_os = "linux")]
    pub fn create(about: &About<'_>) -> Result<Self, Error> {
        let About {
            start, page, pages, ..
        } = *about;
        let plan = |why| Error::Plan { pages, page, why };
        crate::header::check(start, page, pages).map_err(plan)?;
        let layout = crate::header::layout(pages);
        let words = layout
            .words()
            .ok_or_else(|| plan("it would be too large"))?;
        let shared = Shared::create(about, words)?;
        let mut writer = Writer {
            shared,
            layout,
            publisher: Publisher::new(layout),
            page_shift: page.trailing_zeros(),
            pages: pages as usize,
            records: vec![Record::default(); layout.records].into_boxed_slice(),
            changed: Vec::with_capacity(layout.records),
            listed: vec![false; layout.records].into_boxed_slice(),
        };
        writer.publish(&Figures::default());
        Ok(writer)
    }

    /// Changes a record; numbers without one are passed over.
    #[inline]
    fn change(&mut self, number: usize, change: impl FnOnce(&mut Record)) {
        let Some(record) = self.records.get_mut(number) else {
            return;
        };
        let before = *record;
        change(record);
        if *record != before && !self.listed[number] {
            self.listed[number] = true;
            self.changed.push(number as u32);
        }
    }

    /// Memory was mapped to a page, or taken from it; what lay there waits for nobody.
    pub fn map(&mut self, page: u64, mapped: bool) {
        self.change(page as usize, |record| match mapped {
            true => record[0] |= MAPPED,
            false => *record = [record[0] & !MAPPED, 0, 0],
        });
    }

    /// A block of `bytes` bytes, one at least, lies at an offset from now on. O(pages of it).
    pub fn add(&mut self, offset: u64, bytes: u64) {
        self.each_page(offset, bytes, |record, bytes| {
            record[0] = record[0] & MAPPED | (record[0] & !MAPPED).wrapping_add(bytes) & !MAPPED;
        });
    }

    /// A block of `bytes` bytes, one at least, lies at an offset no longer. O(pages of it).
    pub fn remove(&mut self, offset: u64, bytes: u64) {
        self.each_page(offset, bytes, |record, bytes| {
            record[0] = record[0] & MAPPED | (record[0] & !MAPPED).wrapping_sub(bytes) & !MAPPED;
        });
    }

    fn each_page(&mut self, offset: u64, bytes: u64, change: impl Fn(&mut Record, u64)) {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let number = at >> self.page_shift;
            let next = ((number + 1) << self.page_shift).min(end);
            if number < self.pages as u64 {
                self.change(number as usize, |record| change(record, next - at));
            }
            at = next;
        }
    }

    /// What the blocks that were freed on a page wait for: a bit for every stream, and a ticket.
    pub fn waits(&mut self, page: u64, streams: u64, ticket: u64) {
        if page < self.pages as u64 {
            self.change(page as usize, |record| {
                record[1] = streams;
                record[2] = ticket;
            });
        }
    }

    /// How a stream is called, and the ticket that it came to; `None`: nobody waits for it.
    #[inline]
    pub fn stream(&mut self, slot: usize, stream: Option<(u64, u64)>) {
        if slot < STREAMS {
            self.change(self.pages + slot, |record| {
                *record = stream.map_or([0; 3], |(name, ticket)| [name, ticket, 1]);
            });
        }
    }

    /// No block lies anywhere. O(pages).
    pub fn clear(&mut self) {
        for page in 0..self.pages {
            self.change(page, |record| record[0] &= MAPPED);
        }
    }

    /// Shows everything as it is now. O(1) and O(records that changed).
    #[inline]
    pub fn publish(&mut self, figures: &Figures) {
        let mut words = [0; figures::WORDS];
        figures.write(&mut words);
        let Writer {
            records, changed, ..
        } = self;
        let changes = changed
            .iter()
            .map(|number| (*number as usize, records[*number as usize]));
        #[cfg(target_os = "linux")]
        self.publisher
            .publish(self.shared.words(), changes, changed.len(), &mut words);
        for number in changed.drain(..) {
            self.listed[number as usize] = false;
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Writer {
    fn drop(&mut self) {
        let closed = &self.shared.words()[self.layout.closed()];
        closed.store(1, crate::cells::Ordering::Release);
    }
}
