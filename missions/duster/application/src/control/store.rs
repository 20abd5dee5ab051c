//! The store: science in flash, over resets.
//!
//! A log of records in a circle of sectors. A record is a header and the source data of a science packet, whole pages of
//! its own, never over the end of a sector. The page with the header is programmed last, so a header means a whole record;
//! what a reset leaves half done is no record. Each header tells where the oldest record lies that is not deleted: who
//! finds the newest record knows the log. A deletion is a record without data. One sector is kept for those and for
//! the marks of resets, so a full store can be emptied.
//!
//! One step of the flash at a time: [`Store::step`] begins one operation, and looks at the next activation what became of it.
//!
//! *Invariant:* records from `tail` to `head` are never erased or programmed again; sequences in them rise by one.

mod dump;
mod scan;
mod write;

use super::fifo::Fifo;
use crate::declared::FLASH;
use crate::hardware::{Hardware, PAGE, PAGES_OF_SECTOR};
use crate::partition::{Block, Partition};
use metes_duster_protocol::Failure;
use metes_duster_protocol::checksum;

use dump::{Delete, Dump};
use scan::Scan;
use write::Write;

/// Pages of the flash, and sectors.
pub(super) const PAGES: u32 = FLASH / PAGE as u32;
pub(super) const SECTORS: u32 = PAGES / PAGES_OF_SECTOR;
/// Blocks that wait to be stored.
const WAITING: usize = 32;
/// Bytes of a record's header.
pub(super) const HEADER: usize = 24;
/// First bytes of a header.
const MAGIC: u32 = 0x4455_5354;
/// Failures of the flash in a row after which the store takes nothing any more.
const FAILURES: u8 = 3;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Science.
    Science = 0,
    /// The unit began to run.
    Reset = 1,
    /// Records before its tail are deleted.
    Deletion = 2,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) sequence: u32,
    pub(super) tail: u32,
    pub(super) length: u16,
    pub(super) acquisition: u16,
    pub(super) resets: u16,
    pub(super) kind: Kind,
    pub(super) data: u16,
}

impl Header {
    /// Its bytes.
    fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let words = [MAGIC, self.sequence, self.tail];
        let halves = [
            self.length,
            self.acquisition,
            self.resets,
            self.kind as u16,
            self.data,
        ];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        for (place, half) in bytes.chunks_exact_mut(2).skip(6).zip(halves) {
            place.copy_from_slice(&half.to_be_bytes());
        }
        let [front @ .., high, low] = &mut bytes;
        [*high, *low] = checksum::of(front).to_be_bytes();
        bytes
    }

    /// What a page's first bytes say; none when they are no header.
    fn read(page: &[u8; PAGE]) -> Option<Self> {
        let (header, _) = page.split_first_chunk::<HEADER>()?;
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?))
        };
        let half = |at: usize| -> Option<u16> {
            Some(u16::from_be_bytes(*header.get(at..)?.first_chunk()?))
        };
        if word(0)? != MAGIC || checksum::of(header) != 0 {
            return None;
        }
        Some(Header {
            sequence: word(4)?,
            tail: word(8)? % PAGES,
            length: half(12)?,
            acquisition: half(14)?,
            resets: half(16)?,
            kind: match half(18)? {
                0 => Kind::Science,
                1 => Kind::Reset,
                2 => Kind::Deletion,
                _ => return None,
            },
            data: half(20)?,
        })
    }

    /// Pages of the record.
    fn pages(&self) -> u32 {
        (HEADER as u32 + u32::from(self.length)).div_ceil(PAGE as u32)
    }
}

/// What a step has come to.
pub(super) enum Step {
    /// Nothing that others need to know.
    Nothing,
    /// The log is known: records in it, pages that hold none.
    Recovered { records: u32, torn: u32 },
    /// A block is stored (`true`), or cannot be.
    Block(Block, bool),
    /// A block of memory that is no longer needed.
    Back(Block),
    /// The flash did not do it.
    Failed(u32),
    /// A record of a dump: a block like those of core 1, and its bytes of source data.
    Record(Block, u16),
    /// A dump has ended after so many records.
    Dumped(u16, u32),
    /// A deletion is stored, or why it is not.
    Deleted(Result<(), Failure>),
}

enum State {
    Scan(Scan),
    Idle,
    Write(Write),
    Dump,
    Delete(Delete),
}

/// The store.
pub(super) struct Store {
    state: State,
    /// Blocks that wait to be stored.
    pub(super) queue: Fifo<Block, WAITING>,
    page: [u8; PAGE],
    /// Where the next record goes, and the oldest record lies.
    head: u32,
    tail: u32,
    /// Sequences of the next and of the oldest record.
    sequence: u32,
    tail_sequence: u32,
    acquisition: u16,
    resets: u16,
    dump: Option<Dump>,
    /// Acquisition of the first record of each sector, 0 if there is none.
    sectors: [u16; SECTORS as usize],
    full: bool,
    failures: u32,
    failed: u8,
}

impl Store {
    pub(super) const fn new() -> Self {
        Store {
            state: State::Scan(Scan::new()),
            queue: Fifo::new(),
            page: [0; PAGE],
            head: 0,
            tail: 0,
            sequence: 1,
            tail_sequence: 1,
            acquisition: 0,
            resets: 0,
            dump: None,
            sectors: [0; SECTORS as usize],
            full: false,
            failures: 0,
            failed: 0,
        }
    }

    /// Whether science is stored: the flash works and is not full.
    pub(super) const fn takes(&self) -> bool {
        !self.full && self.failed < FAILURES
    }

    /// Whether there is no room for science.
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether nothing waits to be stored.
    pub(super) fn idle(&self) -> bool {
        self.queue.is_empty() && !matches!(self.state, State::Write(_))
    }

    /// Records in the log, marks included.
    pub(super) const fn records(&self) -> u32 {
        self.sequence.wrapping_sub(self.tail_sequence)
    }

    /// Pages from the oldest record to the newest.
    pub(super) const fn pages(&self) -> u32 {
        (self.head + PAGES - self.tail) % PAGES
    }

    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) const fn resets(&self) -> u16 {
        self.resets
    }

    pub(super) const fn last_acquisition(&self) -> u16 {
        self.acquisition
    }

    /// One step: at most one operation of the flash is begun. Records of a dump are allocated from `memory`, while
    /// the ground takes them (`room`).
    pub(super) fn step(
        &mut self,
        hardware: &mut impl Hardware,
        memory: &mut Partition,
        room: bool,
    ) -> Step {
        if hardware.flash_busy() {
            return Step::Nothing;
        }
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Scan(scan) => self.scan_step(hardware, scan),
            State::Write(write) => self.write_step(hardware, write),
            State::Delete(delete) => self.delete_step(hardware, delete),
            State::Dump => self.dump_step(hardware, memory, room),
            State::Idle => {
                if let Some(block) = self.queue.take() {
                    self.begin_science(hardware, block)
                } else if self.dump.is_some() {
                    self.dump_step(hardware, memory, room)
                } else {
                    Step::Nothing
                }
            }
        }
    }

    /// Reads the flash's buffer.
    fn fetch(&mut self, hardware: &impl Hardware) {
        hardware.flash_buffer(&mut self.page);
    }

    /// The page behind a record of so many pages, or behind none.
    fn after(page: u32, pages: u32) -> u32 {
        (page + pages) % PAGES
    }

    /// The first page of the sector behind that of `page`.
    fn next_sector(page: u32) -> u32 {
        (page / PAGES_OF_SECTOR + 1) * PAGES_OF_SECTOR % PAGES
    }

    /// Whether `page` lies before `head`, counted from `tail` on.
    fn live(&self, page: u32) -> bool {
        (page + PAGES - self.tail) % PAGES < self.pages()
    }
}

#[cfg(test)]
mod tests;
