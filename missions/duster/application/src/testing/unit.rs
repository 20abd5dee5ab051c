//! Hardware of core 0 that is not there.
//!
//! *Invariant:* flash keeps to what flash can do: bits are only cleared by programming, an operation takes its time, and one
//! that is cut short by a reset is done in part.

use std::boxed::Box;
use std::collections::{HashMap, VecDeque};
use std::vec;
use std::vec::Vec;

use metes_duster_protocol::definitions::{ResetCause, Supply};
use metes_duster_protocol::supply::{
    Order, REQUEST, Reply, read_request, reply as frame_of, status,
};

use crate::declared::LINE_CAPACITY;
use crate::hardware::{Hardware, PAGE, PAGES_OF_SECTOR};

/// Where the memory begins that service 6 reaches.
pub const MEMORY_BASE: u32 = 0x4000_0000;
/// Bytes that the line carries in a millisecond.
const LINE_RATE: usize = 78;
const SECTOR: usize = PAGE * PAGES_OF_SECTOR as usize;

/// Flash that takes host memory where it was programmed.
#[derive(Clone, Default)]
pub struct Flash {
    sectors: HashMap<u32, Box<[u8]>>,
    /// The operation under way and when it ends.
    under_way: Option<(Operation, u64)>,
    buffer: Vec<u8>,
    failed: bool,
    /// So many operations from now on fail.
    pub failing: u32,
}

#[derive(Clone)]
enum Operation {
    Read(u32),
    Program(u32, Box<[u8; PAGE]>),
    Erase(u32),
}

impl Flash {
    fn sector(&mut self, page: u32) -> (&mut [u8], usize) {
        let sector = self
            .sectors
            .entry(page / PAGES_OF_SECTOR)
            .or_insert_with(|| vec![0xff; SECTOR].into_boxed_slice());
        (sector, (page % PAGES_OF_SECTOR) as usize * PAGE)
    }

    /// A page as it is.
    pub fn page(&mut self, page: u32) -> &mut [u8] {
        let (sector, at) = self.sector(page);
        &mut sector[at..at + PAGE]
    }

    fn begin(&mut self, operation: Operation, ends: u64) {
        assert!(self.under_way.is_none(), "the flash is at work");
        self.under_way = Some((operation, ends));
    }

    /// Ends what is over by now.
    fn settle(&mut self, now: u64) {
        if self
            .under_way
            .as_ref()
            .is_some_and(|(_, ends)| *ends <= now)
            && let Some((operation, _)) = self.under_way.take()
        {
            if self.failing > 0 {
                self.failing -= 1;
                self.failed = true;
            } else {
                self.apply(operation, PAGE);
            }
        }
    }

    /// Cuts what is under way short: `done` bytes of it.
    pub fn cut(&mut self, done: usize) {
        if let Some((operation, _)) = self.under_way.take() {
            self.apply(operation, done);
        }
        self.failed = false;
    }

    fn apply(&mut self, operation: Operation, done: usize) {
        match operation {
            Operation::Read(page) => self.buffer = self.page(page).to_vec(),
            Operation::Program(page, bytes) => {
                for (place, byte) in self.page(page).iter_mut().zip(bytes.iter().take(done)) {
                    *place &= byte;
                }
            }
            Operation::Erase(sector) => {
                let (bytes, _) = self.sector(sector * PAGES_OF_SECTOR);
                let done = done * PAGES_OF_SECTOR as usize;
                bytes[..done].fill(0xff);
            }
        }
    }
}

/// A supply: what it was told, and what it tells.
#[derive(Clone, Debug, Default)]
pub struct SupplyModel {
    frame: Vec<u8>,
    replies: VecDeque<u8>,
    /// On, which of low voltage is channel 0.
    pub on: bool,
    /// Channels that are on.
    pub channels: [bool; 4],
    /// What it shall have and what it has, by channel.
    pub target: [u16; 4],
    /// Voltage of channel 0, in its unit.
    pub voltage: u16,
    /// Tripped.
    pub tripped: bool,
    /// Does not answer.
    pub silent: bool,
    /// So many frames from now on are answered with a wrong checksum.
    pub garbled: u32,
    /// Never gets to its voltage.
    pub stuck: bool,
}

impl SupplyModel {
    fn ask(&mut self, bytes: &[u8]) {
        self.frame.extend_from_slice(bytes);
        while self.frame.len() >= REQUEST {
            let frame: Vec<u8> = self.frame.drain(..REQUEST).collect();
            let asked = read_request(frame.first_chunk().expect("so many"));
            let (order, argument) = asked.expect("requests are whole");
            if !self.silent {
                self.answer(order, argument);
            }
        }
    }

    fn answer(&mut self, order: u8, argument: u16) {
        let mut channel = 0;
        match Order::of(order) {
            Some(Order::Set) if argument >> 12 < 4 => {
                channel = usize::from(argument >> 12) & 3;
                self.target[channel] = argument;
            }
            Some(order @ (Order::On | Order::Off)) => {
                channel = usize::from(argument >> 12) & 3;
                self.channels[channel] = order == Order::On && !self.tripped;
                self.on = self.channels[0];
            }
            Some(Order::ClearTrip) => self.tripped = false,
            _ => channel = usize::from(argument >> 12) & 3,
        }
        if self.tripped {
            self.on = false;
        }
        let stable = self.on && self.voltage == self.target[0] && !self.stuck;
        let bit = |holds: bool, bit: u8| if holds { bit } else { 0 };
        let told = bit(self.on, status::ON)
            | bit(stable, status::STABLE)
            | bit(self.tripped, status::TRIPPED);
        let voltage = if channel == 0 {
            self.voltage
        } else {
            self.target[channel] & 0xfff
        };
        let mut frame = frame_of(Reply {
            order,
            status: told,
            voltage,
            current: 1,
        });
        if self.garbled > 0 {
            self.garbled -= 1;
            frame[3] ^= 0x10;
        }
        self.replies.extend(frame);
    }

    /// A millisecond: two volts.
    fn ramp(&mut self) {
        let goal = if self.on && !self.stuck {
            self.target[0]
        } else {
            0
        };
        self.voltage = if self.voltage < goal {
            (self.voltage + 2).min(goal)
        } else {
            self.voltage.saturating_sub(20).max(goal)
        };
    }
}

/// The hardware.
#[derive(Clone)]
pub struct Unit {
    /// Microseconds since the epoch.
    pub now: u64,
    /// Bytes on their way to the unit, and from it.
    pub to_unit: VecDeque<u8>,
    /// Bytes that the unit sent and the line has carried.
    pub from_unit: Vec<u8>,
    line: VecDeque<u8>,
    /// High voltage, low voltage.
    pub supplies: [SupplyModel; 2],
    /// High voltage is cut off.
    pub inhibited: bool,
    /// The flash.
    pub flash: Flash,
    /// Memory from [`MEMORY_BASE`] on.
    pub memory: Vec<u8>,
    /// Code and constants.
    pub image: Vec<u8>,
    /// Kicks of the watchdog.
    pub kicks: u32,
    /// What was logged.
    pub logged: Vec<u8>,
    /// Why it began to run.
    pub cause: ResetCause,
}

impl Default for Unit {
    fn default() -> Self {
        Unit {
            now: 0,
            to_unit: VecDeque::new(),
            from_unit: Vec::new(),
            line: VecDeque::new(),
            supplies: Default::default(),
            inhibited: false,
            flash: Flash::default(),
            memory: (0..65_536_u32).map(|at| ((at * 7) >> 3) as u8).collect(),
            image: (0..3004_u32).map(|at| ((at * at) >> 5) as u8).collect(),
            kicks: 0,
            logged: Vec::new(),
            cause: ResetCause::Power,
        }
    }
}

impl Unit {
    /// Lets microseconds pass.
    pub fn pass(&mut self, microseconds: u64) {
        self.now += microseconds;
        let milliseconds = (microseconds / 1000) as usize;
        let sent = self.line.len().min(LINE_RATE * milliseconds);
        self.from_unit.extend(self.line.drain(..sent));
        for _ in 0..milliseconds.min(4000) {
            let inhibited = self.inhibited;
            let high = &mut self.supplies[0];
            high.ramp();
            if inhibited {
                high.voltage = 0;
            }
            self.supplies[1].ramp();
        }
        self.flash.settle(self.now);
    }

    /// The hardware after a reset: flash and supplies stay as they are.
    #[must_use]
    pub fn anew(self) -> Self {
        Unit {
            flash: self.flash,
            supplies: self.supplies,
            cause: ResetCause::Watchdog,
            ..Unit::default()
        }
    }

    fn supply(&mut self, supply: Supply) -> &mut SupplyModel {
        &mut self.supplies[supply as usize]
    }
}

impl Hardware for Unit {
    fn now(&self) -> u64 {
        self.now
    }

    fn reset_cause(&self) -> ResetCause {
        self.cause
    }

    fn load(&self) -> u16 {
        123
    }

    fn line_free(&self) -> usize {
        LINE_CAPACITY - self.line.len()
    }

    fn line_send(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.line_free());
        self.line.extend(bytes);
    }

    fn line_receive(&mut self) -> Option<u8> {
        self.to_unit.pop_front()
    }

    fn supply_send(&mut self, supply: Supply, bytes: &[u8]) {
        self.supply(supply).ask(bytes);
    }

    fn supply_receive(&mut self, supply: Supply) -> Option<u8> {
        self.supply(supply).replies.pop_front()
    }

    fn log(&mut self, bytes: &[u8]) {
        self.logged.extend_from_slice(bytes);
    }

    fn tripped(&self) -> bool {
        self.supplies[0].tripped
    }

    fn inhibit(&mut self, inhibited: bool) {
        self.inhibited = inhibited;
    }

    fn flash_busy(&self) -> bool {
        self.flash.under_way.is_some()
    }

    fn flash_failed(&mut self) -> bool {
        core::mem::take(&mut self.flash.failed)
    }

    fn flash_read(&mut self, page: u32) {
        let ends = self.now + 20;
        self.flash.begin(Operation::Read(page), ends);
    }

    fn flash_buffer(&self, bytes: &mut [u8; PAGE]) {
        bytes.fill(0);
        let count = self.flash.buffer.len().min(PAGE);
        bytes[..count].copy_from_slice(&self.flash.buffer[..count]);
    }

    fn flash_program(&mut self, page: u32, bytes: &[u8; PAGE]) {
        let ends = self.now + 700;
        self.flash
            .begin(Operation::Program(page, Box::new(*bytes)), ends);
    }

    fn flash_erase(&mut self, sector: u32) {
        let ends = self.now + 150_000;
        self.flash.begin(Operation::Erase(sector), ends);
    }

    fn kick(&mut self) {
        self.kicks += 1;
    }

    fn image(&self) -> &[u8] {
        &self.image
    }

    fn memory(&self, address: u32, length: u32) -> Option<&[u8]> {
        let first = address.checked_sub(MEMORY_BASE)? as usize;
        self.memory.get(first..first.checked_add(length as usize)?)
    }

    fn write_memory(&mut self, address: u32, bytes: &[u8]) -> bool {
        let Some(first) = address.checked_sub(MEMORY_BASE) else {
            return false;
        };
        let first = first as usize;
        match self.memory.get_mut(first..first + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}
