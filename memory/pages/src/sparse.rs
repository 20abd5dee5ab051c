//! Hierarchical tables: entries only for chunks of pages that regions lie on.
//!
//! The paper mentions hierarchical tables and leaves them out (RTCSA 2014, II-B). Freeing a region
//! must free its tables, too, and must not visit them; so the directory of tables is itself a space
//! of constant-time pages: chunks of 64 pages are its pages, tables its frames. The chunks that a
//! region has to itself are one region of the directory, and one that it shares is a region alone,
//! which goes with its last sharer ([`Cover`](crate::cover::Cover)). An access translates in the
//! directory first.
//!
//! Invariant: the directory has a table for each chunk with an allocated region's first page, a
//! mapped page or a used slot; a table's headers outside `live` read as free.

use crate::cover::Cover;
use crate::{Access, Domain, Error, Frame, Frames, Header, Index, Links, Rights, Space, Tables};

/// log2 of the pages of a chunk.
const SHIFT: u32 = 6;

/// The entries of 64 pages: 1,288 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Which headers were set since this became the table of its chunk.
    live: u64,
    headers: [Header; 64],
    records: [[u32; 2]; 64],
    slots: [(u32, Frame); 64],
}

impl Table {
    /// A table of any content, as good as any other.
    pub const SPARE: Self = Self {
        live: 0,
        headers: [Header::FREE; 64],
        records: [[0; 2]; 64],
        slots: [(0, 0); 64],
    };
}

/// Tables of a space of `PAGES` pages, over a directory with tables `T` and index `I` for
/// `PAGES / 64` chunks.
#[derive(Debug)]
pub struct Sparse<'a, const PAGES: usize, T, I, L: Links> {
    directory: Space<T, I>,
    tables: Frames<L>,
    memory: &'a mut [Table],
    /// By chunk: regions that lie on it in part.
    sharers: &'a mut [u8],
}

impl<'a, const PAGES: usize, T: Tables, I: Index, L: Links> Sparse<'a, PAGES, T, I, L> {
    /// Tables without an entry. `directory` is closed or new; `links` and `memory` are as many as
    /// tables can be used at a time; `sharers` are zeroes, one a chunk. `None`: they do not fit.
    pub fn new(
        mut directory: Space<T, I>,
        links: L,
        memory: &'a mut [Table],
        sharers: &'a mut [u8],
    ) -> Option<Self> {
        const { assert!(PAGES.is_power_of_two() && PAGES >= 64 && PAGES <= 1 << 28) };
        let chunks = (PAGES >> SHIFT) as u32;
        let tables = Frames::new(links, u32::try_from(memory.len()).ok()?)?;
        directory.open(chunks, Domain::FIRST).ok()?;
        (sharers.len() >= chunks as usize).then_some(Self {
            directory,
            tables,
            memory,
            sharers,
        })
    }

    /// Tables in use.
    pub fn used(&self) -> u32 {
        self.tables.used()
    }

    #[inline]
    fn table(&self, page: u32) -> Option<&Table> {
        let table = self.directory.translate(page >> SHIFT, Access::Read)?;
        self.memory.get(table as usize)
    }

    /// The table of a page's chunk, which is covered; a new one at the first time.
    fn entry(&mut self, page: u32) -> Result<&mut Table, Error> {
        let chunk = page >> SHIFT;
        let table = match self.directory.access(chunk, Access::Read) {
            Err(Error::Absent) => {
                let table = self.directory.map_page(chunk, &mut self.tables)?.frame;
                if let Some(new) = self.memory.get_mut(table as usize) {
                    new.live = 0;
                }
                table
            }
            other => other?,
        };
        self.memory.get_mut(table as usize).ok_or(Error::NoFrame)
    }
}

impl<const PAGES: usize, T: Tables, I: Index, L: Links> Tables for Sparse<'_, PAGES, T, I, L> {
    const PAGES: usize = PAGES;

    fn record(&self, page: u32) -> (u32, u32) {
        let [region, position] = self
            .table(page)
            .map_or([0; 2], |it| it.records[page as usize % 64]);
        (region, position)
    }

    fn slot(&self, slot: u32) -> u32 {
        // No page has this number, so a slot without a table holds none.
        self.table(slot)
            .map_or(u32::MAX, |it| it.slots[slot as usize % 64].0)
    }

    fn frame(&self, _: u32, slot: u32) -> Frame {
        self.table(slot)
            .map_or(0, |it| it.slots[slot as usize % 64].1)
    }

    fn header(&self, start: u32) -> Header {
        let at = start as usize % 64;
        self.table(start)
            .filter(|it| it.live >> at & 1 != 0)
            .map_or(Header::FREE, |it| it.headers[at])
    }

    fn push(&mut self, start: u32, header: Header, page: u32, frame: Frame) {
        let position = header.count();
        if let Ok(table) = self.entry(page) {
            table.records[page as usize % 64] = [start, position];
        }
        let slot = start + position;
        if let Ok(table) = self.entry(slot) {
            table.slots[slot as usize % 64] = (page, frame);
        }
        self.set_header(start, header.pushed());
    }

    fn set_header(&mut self, start: u32, header: Header) {
        let at = start as usize % 64;
        // A chunk without a table has free headers only.
        if (header != Header::FREE || self.table(start).is_some())
            && let Ok(table) = self.entry(start)
        {
            table.headers[at] = header;
            table.live |= 1 << at;
        }
    }

    fn set_slot(&mut self, _: u32, _: u32) {}

    fn free_last(&self, _: u32) -> Option<u32> {
        None
    }

    fn cover(&mut self, start: u32, pages: u32) -> Result<(), Error> {
        let cover = Cover::of(u64::from(start), u64::from(pages), SHIFT);
        for chunk in cover.shared.into_iter().flatten() {
            let sharers = &mut self.sharers[chunk as usize];
            *sharers += 1;
            if *sharers == 1 {
                self.directory.map_region(chunk, 1, Rights::READ)?;
            }
        }
        if cover.own.1 != 0 {
            self.directory
                .map_region(cover.own.0, cover.own.1, Rights::READ)?;
        }
        if let Err(error) = self.entry(start).map(|_| ()) {
            self.uncover(start, pages);
            return Err(error);
        }
        Ok(())
    }

    fn uncover(&mut self, start: u32, pages: u32) {
        let cover = Cover::of(u64::from(start), u64::from(pages), SHIFT);
        let own = (cover.own.1 != 0).then_some(cover.own.0);
        let shared = cover.shared.into_iter().flatten().filter(|&chunk| {
            let sharers = &mut self.sharers[chunk as usize];
            *sharers -= 1;
            *sharers == 0
        });
        for chunk in shared.chain(own) {
            let result = self.directory.unmap_region(chunk, &mut self.tables);
            debug_assert_eq!(result, Ok(()), "what was covered");
        }
    }

    fn reserve(&mut self, page: u32, slot: u32) -> Result<(), Error> {
        self.entry(page)?;
        self.entry(slot).map(|_| ())
    }
}
