//! What a store finds when the unit begins to run.
//!
//! The first page of each sector is read: the sector whose record has the highest sequence has the newest. Its pages are read
//! for the newest record and the end of what is programmed; then the record that the newest names as the oldest.
//!
//! *Invariant:* a page that was programmed, even in part, since its sector was erased, is not programmed again.

use super::{Header, Kind, PAGES, SECTORS, State, Step, Store};
use crate::hardware::{Hardware, PAGES_OF_SECTOR};

/// Where the scan stands.
pub(in super::super) struct Scan {
    phase: Phase,
    /// The page that was asked for; none at the beginning.
    page: Option<u32>,
    newest: Option<(u32, Header)>,
    /// Pages of the newest sector that are used, and those that hold no record.
    used: u32,
    torn: u32,
    /// Pages of the present record that are still to come.
    left: u32,
}

enum Phase {
    Sectors,
    Pages,
    Tail,
}

impl Scan {
    pub(super) const fn new() -> Self {
        Scan {
            phase: Phase::Sectors,
            page: None,
            newest: None,
            used: 0,
            torn: 0,
            left: 0,
        }
    }
}

impl Store {
    pub(super) fn scan_step(&mut self, hardware: &mut impl Hardware, mut scan: Scan) -> Step {
        let failed = hardware.flash_failed();
        let next = match scan.page {
            None => Some(0),
            Some(page) => {
                self.fetch(hardware);
                let header = Header::read(&self.page).filter(|_| !failed);
                match scan.phase {
                    Phase::Sectors => self.sector(&mut scan, page, header),
                    Phase::Pages => self.page(&mut scan, page, header),
                    Phase::Tail => {
                        self.found_tail(page, header);
                        None
                    }
                }
            }
        };
        match next {
            Some(page) => {
                hardware.flash_read(page);
                scan.page = Some(page);
                self.state = State::Scan(scan);
                Step::Nothing
            }
            None => self.known(hardware, &scan),
        }
    }

    /// The first page of a sector; the page that is to be read next.
    fn sector(&mut self, scan: &mut Scan, page: u32, header: Option<Header>) -> Option<u32> {
        if let Some(header) = header {
            let sector = (page / PAGES_OF_SECTOR) as usize;
            if let Some(place) = self.sectors.get_mut(sector) {
                *place = header.acquisition.max(1);
            }
            let newer = |newest: Header| header.sequence.wrapping_sub(newest.sequence) < 1 << 31;
            if scan.newest.is_none_or(|(_, newest)| newer(newest)) {
                scan.newest = Some((page, header));
            }
        }
        let next = page + PAGES_OF_SECTOR;
        if next < SECTORS * PAGES_OF_SECTOR {
            return Some(next);
        }
        scan.phase = Phase::Pages;
        scan.newest.map(|(page, _)| page)
    }

    /// A page of the newest sector.
    fn page(&mut self, scan: &mut Scan, page: u32, header: Option<Header>) -> Option<u32> {
        let place = page % PAGES_OF_SECTOR;
        if scan.left > 0 {
            // A record's own.
            scan.left -= 1;
            scan.used = place + 1;
        } else if let Some(header) = header {
            scan.newest = Some((page, header));
            scan.left = header.pages() - 1;
            scan.used = place + 1;
        } else if self.page.iter().any(|byte| *byte != 0xff) {
            scan.torn += 1;
            scan.used = place + 1;
        }
        if place + 1 < PAGES_OF_SECTOR {
            return Some(page + 1);
        }
        let (newest, header) = scan.newest?;
        self.sequence = header.sequence.wrapping_add(1);
        self.acquisition = header.acquisition;
        self.resets = header.resets;
        self.head = newest / PAGES_OF_SECTOR * PAGES_OF_SECTOR + scan.used;
        self.head %= PAGES;
        self.tail = header.tail;
        self.tail_sequence = self.sequence;
        scan.phase = Phase::Tail;
        // A deletion of all names itself, or the page behind it.
        (self.tail != self.head).then_some(self.tail)
    }

    /// The oldest record.
    fn found_tail(&mut self, page: u32, header: Option<Header>) {
        match header {
            Some(header) => self.tail_sequence = header.sequence,
            // Pages are left out before the end of a sector: the oldest lies at the beginning of the next.
            None => {
                self.tail = Store::next_sector(page);
                self.tail_sequence = self.sequence;
            }
        }
    }

    /// The log is known: a mark of the reset is written.
    fn known(&mut self, hardware: &mut impl Hardware, scan: &Scan) -> Step {
        self.resets = if scan.newest.is_some() {
            self.resets.saturating_add(1)
        } else {
            0
        };
        self.full = self.room(true).is_none();
        let recovered = Step::Recovered {
            records: self.records(),
            torn: scan.torn,
        };
        self.begin_mark(hardware, Kind::Reset);
        recovered
    }
}
