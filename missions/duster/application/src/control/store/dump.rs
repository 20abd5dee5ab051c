//! Records read again, and deleted.
//!
//! Acquisitions are numbered upwards, so where one begins is found by the first record of each sector, and within a sector by
//! reading headers.
//!
//! *Invariant:* a record is sent only if its data has the checksum of its header.

use super::{Header, Kind, PAGES, SECTORS, State, Step, Store};
use crate::acquisition::HEADROOM;
use crate::hardware::{Hardware, PAGE, PAGES_OF_SECTOR};
use crate::partition::{Block, Partition};
use metes_duster_protocol::telemetry::TRAILER;
use metes_duster_protocol::{Failure, checksum};

/// A dump under way.
pub(super) struct Dump {
    acquisition: u16,
    first: u32,
    count: u32,
    /// Records of the acquisition that were met, and sent.
    met: u32,
    sent: u32,
    page: u32,
    /// A page was asked for.
    asked: bool,
    /// The record that is being read, its block, and its pages that are there.
    record: Option<(Header, Block, u32)>,
}

/// A deletion under way.
pub(in super::super) struct Delete {
    acquisition: u16,
    page: u32,
    asked: bool,
}

impl Store {
    pub(in super::super) fn check_dump(&self, acquisition: u16) -> Result<(), Failure> {
        if self.dump.is_some() || !self.idle() || matches!(self.state, State::Delete(_)) {
            return Err(Failure::Busy);
        }
        if self.records() == 0 || acquisition > self.acquisition {
            return Err(Failure::NoAcquisition);
        }
        Ok(())
    }

    pub(in super::super) fn begin_dump(&mut self, acquisition: u16, first: u32, count: u32) {
        self.dump = Some(Dump {
            acquisition,
            first,
            count,
            met: 0,
            sent: 0,
            page: self.sector_of(acquisition.max(1)),
            asked: false,
            record: None,
        });
    }

    pub(in super::super) const fn dumping(&self) -> bool {
        self.dump.is_some()
    }

    /// Ends a dump; the block that it held.
    pub(in super::super) fn end_dump(&mut self) -> Option<Block> {
        if matches!(self.state, State::Dump) {
            self.state = State::Idle;
        }
        self.dump.take()?.record.map(|(_, block, _)| block)
    }

    pub(in super::super) fn check_delete(&self) -> Result<(), Failure> {
        if self.dump.is_some() || !matches!(self.state, State::Idle) || !self.idle() {
            return Err(Failure::Busy);
        }
        if self.records() == 0 {
            return Err(Failure::NoAcquisition);
        }
        Ok(())
    }

    pub(in super::super) fn begin_delete(&mut self, acquisition: u16) {
        let page = if acquisition == u16::MAX {
            self.head
        } else {
            self.sector_of(acquisition.saturating_add(1))
        };
        self.state = State::Delete(Delete {
            acquisition,
            page,
            asked: false,
        });
    }

    /// The page from which on the first record of an acquisition, or a later one, is found: the beginning of the last sector
    /// that begins before it.
    fn sector_of(&self, acquisition: u16) -> u32 {
        let mut page = self.tail;
        let mut next = Store::next_sector(page);
        for _ in 0..SECTORS {
            let begins = self
                .sectors
                .get((next / PAGES_OF_SECTOR) as usize)
                .copied()
                .unwrap_or(0);
            if !self.live(next) || begins == 0 || begins >= acquisition {
                break;
            }
            page = next;
            next = Store::next_sector(next);
        }
        page
    }

    /// One step of a dump: a page is asked for, or what came is looked at.
    pub(super) fn dump_step(
        &mut self,
        hardware: &mut impl Hardware,
        memory: &mut Partition,
        room: bool,
    ) -> Step {
        let Some(mut dump) = self.dump.take() else {
            return Step::Nothing;
        };
        if !dump.asked {
            if dump.record.is_none() && (dump.sent == dump.count || !self.live(dump.page)) {
                return Step::Dumped(dump.acquisition, dump.sent);
            }
            if room {
                let behind = dump.record.as_ref().map_or(0, |(_, _, pages)| *pages);
                hardware.flash_read((dump.page + behind) % PAGES);
                dump.asked = true;
                self.state = State::Dump;
            }
            self.dump = Some(dump);
            return Step::Nothing;
        }
        dump.asked = false;
        self.fetch(hardware);
        let failed = hardware.flash_failed();
        let step = if failed {
            self.skip(&mut dump)
        } else {
            self.look(&mut dump, memory)
        };
        self.dump = Some(dump);
        step
    }

    /// A page cannot be read: neither can its record.
    fn skip(&mut self, dump: &mut Dump) -> Step {
        self.failures = self.failures.saturating_add(1);
        let page = dump.page;
        match dump.record.take() {
            Some((header, block, _)) => {
                dump.page = Store::after(page, header.pages());
                Step::Back(block)
            }
            None => {
                dump.page = Store::after(page, 1);
                Step::Failed(page)
            }
        }
    }

    /// A page of a dump.
    fn look(&mut self, dump: &mut Dump, memory: &mut Partition) -> Step {
        let Some((header, block, pages)) = dump.record.take() else {
            return self.look_at_header(dump, memory);
        };
        self.gather(dump, header, block, pages)
    }

    fn look_at_header(&mut self, dump: &mut Dump, memory: &mut Partition) -> Step {
        let Some(header) = Header::read(&self.page) else {
            dump.page = Store::after(dump.page, 1);
            return Step::Nothing;
        };
        let wanted = header.kind == Kind::Science
            && (dump.acquisition == 0 || header.acquisition == dump.acquisition);
        if wanted && dump.met >= dump.first {
            let size = HEADROOM + usize::from(header.length) + TRAILER;
            // If there is no memory the page is read again.
            return match memory.allocate(size) {
                Some(block) => self.gather(dump, header, block, 0),
                None => Step::Nothing,
            };
        }
        dump.met += u32::from(wanted);
        dump.page = if dump.acquisition != 0 && header.acquisition > dump.acquisition {
            // All that come are later.
            self.head
        } else {
            Store::after(dump.page, header.pages())
        };
        Step::Nothing
    }

    /// Data of a record that is sent, from the page that was read.
    fn gather(&mut self, dump: &mut Dump, header: Header, mut block: Block, pages: u32) -> Step {
        let length = usize::from(header.length);
        let (from, skipped) = if pages == 0 {
            (0, super::HEADER)
        } else {
            (pages as usize * PAGE - super::HEADER, 0)
        };
        let bytes = self.page.get(skipped..).unwrap_or_default();
        let data = block.bytes_mut().get_mut(HEADROOM..HEADROOM + length);
        let place = data
            .and_then(|data| data.get_mut(from..))
            .unwrap_or_default();
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        if pages + 1 < header.pages() {
            dump.record = Some((header, block, pages + 1));
            return Step::Nothing;
        }
        dump.met += 1;
        dump.page = Store::after(dump.page, header.pages());
        let data = block.bytes().get(HEADROOM..HEADROOM + length);
        if checksum::of(data.unwrap_or_default()) == header.data {
            dump.sent += 1;
            Step::Record(block, header.length)
        } else {
            self.failures = self.failures.saturating_add(1);
            Step::Back(block)
        }
    }

    /// One step of a deletion: looks for the first record that stays, then marks it as the oldest.
    pub(super) fn delete_step(&mut self, hardware: &mut impl Hardware, mut delete: Delete) -> Step {
        if delete.asked {
            delete.asked = false;
            self.fetch(hardware);
            let header = Header::read(&self.page).filter(|_| !hardware.flash_failed());
            match header {
                Some(header) if header.acquisition > delete.acquisition => {
                    self.tail = delete.page;
                    self.tail_sequence = header.sequence;
                    return self.begin_mark(hardware, Kind::Deletion);
                }
                Some(header) => delete.page = Store::after(delete.page, header.pages()),
                None => delete.page = Store::after(delete.page, 1),
            }
        }
        if !self.live(delete.page) {
            // Nothing stays.
            self.tail = self.head;
            self.tail_sequence = self.sequence;
            return self.begin_mark(hardware, Kind::Deletion);
        }
        hardware.flash_read(delete.page);
        delete.asked = true;
        self.state = State::Delete(delete);
        Step::Nothing
    }
}
