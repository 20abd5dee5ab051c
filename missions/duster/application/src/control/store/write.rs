//! A record on its way into flash.
//!
//! *Invariant:* pages behind the first are programmed before it; a record whose operation failed begins anew behind it.

use super::{FAILURES, HEADER, Header, Kind, PAGES, State, Step, Store};
use crate::acquisition::HEADROOM;
use crate::hardware::{Hardware, PAGE, PAGES_OF_SECTOR};
use crate::partition::Block;
use metes_duster_protocol::{Failure, checksum};

/// A record that is being written.
pub(in super::super) struct Write {
    header: Header,
    /// Its data; none of a mark.
    block: Option<Block>,
    first: u32,
    /// Pages that are not programmed yet, the first of the record the last of them.
    left: u32,
}

impl Store {
    /// Where a record of so many pages goes: the page, and whether its sector has to be erased before. None when the
    /// store is full: a sector with live records is not entered from behind, and science leaves the one before for marks.
    fn place(&self, pages: u32, science: bool) -> Option<(u32, bool)> {
        let place = self.head % PAGES_OF_SECTOR;
        let goes_on = place != 0 && place + pages <= PAGES_OF_SECTOR;
        let page = match place {
            _ if goes_on => self.head,
            0 => self.head,
            _ => Store::next_sector(self.head),
        };
        if self.records() > 0 {
            let of_tail = |page: u32| page / PAGES_OF_SECTOR == self.tail / PAGES_OF_SECTOR;
            let entered = !goes_on && of_tail(page);
            let kept = science && of_tail(Store::next_sector(page));
            // A log whose end is its beginning would look empty.
            let closed = Store::after(page, pages) == self.tail;
            if entered || kept || closed {
                return None;
            }
        }
        Some((page, !goes_on))
    }

    /// Whether the longest record of science, or a mark, still has a place.
    pub(super) fn room(&self, science: bool) -> Option<()> {
        self.place(2, science).map(|_| ())
    }

    /// Begins to store a block of science.
    pub(super) fn begin_science(&mut self, hardware: &mut impl Hardware, block: Block) -> Step {
        let data = data(&block);
        let acquisition = data.get(2..4).and_then(|bytes| bytes.first_chunk());
        let header = Header {
            sequence: self.sequence,
            tail: self.tail,
            length: data.len() as u16,
            acquisition: acquisition.map_or(0, |bytes| u16::from_be_bytes(*bytes)),
            resets: self.resets,
            kind: Kind::Science,
            data: checksum::of(data),
        };
        self.begin(hardware, header, Some(block))
    }

    /// Begins to store a mark.
    pub(super) fn begin_mark(&mut self, hardware: &mut impl Hardware, kind: Kind) -> Step {
        let header = Header {
            sequence: self.sequence,
            tail: self.tail,
            length: 0,
            acquisition: self.acquisition,
            resets: self.resets,
            kind,
            data: 0xffff,
        };
        self.begin(hardware, header, None)
    }

    fn begin(
        &mut self,
        hardware: &mut impl Hardware,
        mut header: Header,
        block: Option<Block>,
    ) -> Step {
        let pages = header.pages();
        let place = self.place(pages, block.is_some());
        let Some((first, erases)) = place.filter(|_| self.failed < FAILURES) else {
            self.full = self.failed < FAILURES;
            let kind = header.kind;
            return unwritten(block, kind, Failure::StoreFull);
        };
        if self.records() == 0 || header.kind == Kind::Deletion && self.tail == self.head {
            // The log begins with this record.
            header.tail = first;
            self.tail = first;
        }
        let write = Write {
            header,
            block,
            first,
            left: pages,
        };
        if erases {
            let sector = first / PAGES_OF_SECTOR;
            if let Some(place) = self.sectors.get_mut(sector as usize) {
                *place = 0;
            }
            hardware.flash_erase(sector);
            self.state = State::Write(write);
        } else {
            self.program(hardware, write);
        }
        Step::Nothing
    }

    /// An operation of the record under way has ended.
    pub(super) fn write_step(&mut self, hardware: &mut impl Hardware, write: Write) -> Step {
        if hardware.flash_failed() {
            return self.write_failed(write);
        }
        if write.left > 0 {
            self.program(hardware, write);
            return Step::Nothing;
        }
        let Write {
            header,
            block,
            first,
            ..
        } = write;
        let sector = first / PAGES_OF_SECTOR;
        if first.is_multiple_of(PAGES_OF_SECTOR)
            && let Some(place) = self.sectors.get_mut(sector as usize)
        {
            *place = header.acquisition.max(1);
        }
        self.failed = 0;
        self.head = Store::after(first, header.pages());
        self.sequence = header.sequence.wrapping_add(1);
        self.acquisition = header.acquisition;
        self.full = self.room(true).is_none();
        match (block, header.kind) {
            (Some(block), _) => Step::Block(block, true),
            (None, Kind::Deletion) => Step::Deleted(Ok(())),
            (None, _) => Step::Nothing,
        }
    }

    /// The record goes behind the page that failed.
    fn write_failed(&mut self, write: Write) -> Step {
        self.failures = self.failures.saturating_add(1);
        self.failed += 1;
        let page = write.first + write.left.saturating_sub(1);
        let behind = Store::after(write.first, write.header.pages());
        if self.tail == write.first && self.records() == 0 {
            self.tail = behind;
        }
        self.head = behind;
        let kind = write.header.kind;
        match write.block {
            Some(block) => match self.queue.put(block) {
                // It is stored behind those that wait.
                Ok(()) => Step::Failed(page),
                Err(block) => Step::Block(block, false),
            },
            None if kind == Kind::Deletion => Step::Deleted(Err(Failure::Flash)),
            None => Step::Failed(page % PAGES),
        }
    }

    /// Begins to program the last of the pages that are left.
    fn program(&mut self, hardware: &mut impl Hardware, mut write: Write) {
        write.left -= 1;
        let number = write.left as usize;
        let data = write.block.as_ref().map_or(&[][..], data);
        self.page.fill(0xff);
        let (from, place) = if number == 0 {
            let (header, rest) = self.page.split_at_mut(HEADER);
            header.copy_from_slice(&write.header.bytes());
            (0, rest)
        } else {
            (number * PAGE - HEADER, &mut self.page[..])
        };
        let bytes = data.get(from..).unwrap_or_default();
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        hardware.flash_program(write.first + write.left, &self.page);
        self.state = State::Write(write);
    }
}

/// The source data in a block of science.
pub(in super::super) fn data(block: &Block) -> &[u8] {
    let bytes = block.bytes();
    let length = bytes
        .first_chunk()
        .map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    bytes.get(HEADROOM..HEADROOM + length).unwrap_or_default()
}

/// What was to be written cannot be.
fn unwritten(block: Option<Block>, kind: Kind, why: Failure) -> Step {
    match (block, kind) {
        (Some(block), _) => Step::Block(block, false),
        (None, Kind::Deletion) => Step::Deleted(Err(why)),
        (None, _) => Step::Nothing,
    }
}
