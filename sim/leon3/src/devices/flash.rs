//! A NOR flash memory behind a controller with a page buffer. No core of GRLIB has these registers; they are what a
//! mission's software needs of any flash: pages, sectors, and times during which it is busy.
//!
//! | offset | register |
//! | --- | --- |
//! | 0x00 | status: bit 0, busy; bit 1, the last operation failed (a one clears it) |
//! | 0x04 | address, in bytes |
//! | 0x08 | command: 1 programs the page at the address from the buffer, 2 erases its sector, 3 reads the page into the buffer |
//! | 0x0c | capacity in bytes |
//! | 0x200 to 0x400 | the page buffer |
//!
//! A page is 512 bytes, a sector 64 KiB. Programming clears bits and sets none; erasing sets all of the sector. At a
//! clock of *f* reading takes 20 us, programming 700 us, erasing 150 ms. A command while it is busy is ignored; one at an
//! address beyond the capacity, or of another number, fails at once. What is programmed is what the buffer held when the command
//! came; what is read is in the buffer at the end.
//!
//! Contents are kept by the chip: [`Flash::take`] and [`Flash::put`] carry them from a machine to the one that a reset
//! makes of it. Assumption: the chip goes on by itself, so an operation under way is completed in between.
//!
//! Invariant: a sector that takes no memory is erased; an operation is seen in full from the cycle at which it is no longer
//! busy, and not at all before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Access, Device, Identity, saved_by_serde};

/// Bytes of a page: what is programmed or read at once.
pub(crate) const PAGE: usize = 512;
/// Bytes of a sector: what is erased at once.
pub(crate) const SECTOR: usize = 64 << 10;
/// Most bytes of a flash memory.
pub(crate) const MOST: usize = 64 << 20;

const BUSY: u32 = 1;
const FAILED: u32 = 1 << 1;
const BUFFER: u32 = 0x200;

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Operation {
    Program(u32, Vec<u8>),
    Erase(u32),
    Read(u32),
}

/// What a flash memory holds: its sectors that are not erased, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents(BTreeMap<u32, Vec<u8>>);

impl Contents {
    /// The bytes of the page at `address`, which is rounded down to one.
    pub fn page(&self, address: u32) -> [u8; PAGE] {
        let (sector, at) = place(address);
        let mut page = [0xff; PAGE];
        if let Some(sector) = self.0.get(&sector) {
            page.copy_from_slice(&sector[at..at + PAGE]);
        }
        page
    }

    fn program(&mut self, address: u32, bytes: &[u8]) {
        let (sector, at) = place(address);
        let sector = self.0.entry(sector).or_insert_with(|| vec![0xff; SECTOR]);
        for (cell, byte) in sector[at..at + PAGE].iter_mut().zip(bytes) {
            *cell &= byte;
        }
    }

    fn erase(&mut self, address: u32) {
        self.0.remove(&place(address).0);
    }
}

/// The sector of an address, and where its page begins there.
fn place(address: u32) -> (u32, usize) {
    let (sector, offset) = (address / SECTOR as u32, address as usize % SECTOR);
    (sector, offset / PAGE * PAGE)
}

/// A flash memory and its controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    capacity: u32,
    /// Cycles of the cores' clock in a second.
    frequency: u32,
    address: u32,
    failed: bool,
    buffer: Vec<u8>,
    /// What is under way, and the cycle at which it is done.
    operation: Option<(u64, Operation)>,
    contents: Contents,
}

impl Flash {
    /// An erased memory of `capacity` bytes, a multiple of 64 KiB up to 64 MiB, at cores of `frequency` Hz.
    pub fn new(capacity: usize, frequency: u32) -> Flash {
        let sectors = (capacity / SECTOR).clamp(1, MOST / SECTOR);
        Flash {
            capacity: (sectors * SECTOR) as u32,
            frequency,
            address: 0,
            failed: false,
            buffer: vec![0xff; PAGE],
            operation: None,
            contents: Contents::default(),
        }
    }

    /// Takes its contents out, with what is under way completed; it is left erased.
    pub fn take(&mut self) -> Contents {
        self.settle(u64::MAX);
        std::mem::take(&mut self.contents)
    }

    /// Puts contents in, in the place of its own. What lies beyond its capacity is lost.
    pub fn put(&mut self, mut contents: Contents) {
        contents.0.split_off(&(self.capacity / SECTOR as u32));
        self.contents = contents;
    }

    /// What it holds; an operation that was under way at the last access is not in it.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Does what is done by cycle `now`.
    fn settle(&mut self, now: u64) {
        if self.operation.as_ref().is_none_or(|&(at, _)| now < at) {
            return;
        }
        match self.operation.take() {
            Some((_, Operation::Program(address, bytes))) => {
                self.contents.program(address, &bytes);
            }
            Some((_, Operation::Erase(address))) => self.contents.erase(address),
            Some((_, Operation::Read(address))) => {
                self.buffer.copy_from_slice(&self.contents.page(address));
            }
            None => {}
        }
    }

    fn command(&mut self, number: u32, now: u64) {
        if self.operation.is_some() {
            return;
        }
        let address = self.address;
        self.failed = address >= self.capacity;
        let (micros, operation) = match number {
            1 => (700, Operation::Program(address, self.buffer.clone())),
            2 => (150_000, Operation::Erase(address)),
            3 => (20, Operation::Read(address)),
            _ => {
                self.failed = true;
                return;
            }
        };
        if !self.failed {
            let cycles = (micros * u64::from(self.frequency)).div_ceil(1_000_000);
            self.operation = Some((now + cycles, operation));
        }
    }
}

impl Device for Flash {
    fn name(&self) -> &'static str {
        "flash"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        self.settle(access.now);
        match offset {
            0x00 => {
                let busy = if self.operation.is_some() { BUSY } else { 0 };
                busy | if self.failed { FAILED } else { 0 }
            }
            0x04 => self.address,
            0x0c => self.capacity,
            BUFFER..0x400 => {
                let word = self.buffer[(offset - BUFFER) as usize..].first_chunk();
                word.map_or(0, |&word| u32::from_be_bytes(word))
            }
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        self.settle(access.now);
        match offset {
            0x00 => self.failed &= value & FAILED == 0,
            0x04 => self.address = value,
            0x08 => self.command(value, access.now),
            BUFFER..0x400 => {
                let at = (offset - BUFFER) as usize;
                self.buffer[at..at + 4].copy_from_slice(&value.to_be_bytes());
            }
            _ => {}
        }
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests;
