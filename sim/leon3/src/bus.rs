//! The bus: RAM, ROM, decoded code, devices, plug-and-play tables.
//!
//! RAM takes no host memory before it is written; beside it lies a table of decoded operations, as large in words. What is
//! stored into a page of which something is decoded is decoded anew, so fetches see stores at once (as on QEMU; a
//! LEON3 needs `flush`).
//!
//! Invariant: an operation that is decoded is what [`decode`] makes of the word in RAM, and so is what is translated of
//! it: only this file writes RAM, and what it writes it forgets. A core runs while its cycle is below `deadline`;
//! whatever may concern another part of the machine lowers that.

use std::any::Any;

use crate::cache::Cost;
use crate::decode::{Kind, Operation, decode};
use crate::devices::{Access, Device, Irqmp, NEVER};
use crate::plug_and_play::Tables;
use crate::timing::Timing;
use crate::trap::Trap;

/// Where the bridge to peripheral devices lies, and how large its space is.
pub(crate) const PERIPHERALS: u32 = 0x8000_0000;
pub(crate) const PERIPHERALS_SIZE: u32 = 0x10_0000;

/// Bytes of a page, which decoding marks.
pub(crate) const PAGE: usize = 4096;
/// Most instructions of a row.
const LONGEST_ROW: usize = 64;
/// Most notes kept.
const MOST_NOTES: usize = 64;

/// A device and the addresses that it answers to.
pub(crate) struct Attached {
    pub(crate) base: u32,
    size: u32,
    /// The cycle at which it acts, as it said last.
    next: u64,
    /// The interrupt lines that it holds, as it said last.
    holds: u32,
    pub(crate) device: Box<dyn Device>,
}

/// Instructions that are executed one after the other, whatever they compute, from some address on.
#[derive(Clone, Copy, Debug, Default, bytemuck::Zeroable)]
pub(crate) struct Row {
    /// How many there are.
    pub(crate) length: u8,
    /// Whether this was looked for.
    known: bool,
    /// The cycles of the row.
    pub(crate) cycles: u16,
}

impl Attached {
    fn renew(&mut self) {
        self.next = self.device.next();
        self.holds = self.device.holds();
    }
}

/// Memory and devices, as cores see them.
pub struct Bus {
    base: u32,
    ram: Vec<u8>,
    code: Vec<Operation>,
    /// Rows of instructions that begin at each word of RAM, as far as they are known.
    rows: Vec<Row>,
    /// The row under way: its first address, or that of its first instruction whose cycles are not counted yet; and
    /// the address behind it, 0 when none is.
    pub(crate) row_begin: u32,
    pub(crate) row_end: u32,
    /// Which pages hold decoded code.
    decoded: Vec<bool>,
    pub(crate) rom: Vec<u8>,
    /// The interrupt controller.
    pub interrupts: Irqmp,
    pub(crate) attached: Vec<Attached>,
    tables: Tables,
    /// The cycle before which cores run.
    pub(crate) deadline: u64,
    /// The cycle at which the first device acts.
    next: u64,
    /// The latest cycle that devices have seen.
    pub(crate) now: u64,
    /// The cycle at which the bus is free, for models with waits.
    pub(crate) busy: u64,
    pub(crate) cost: Cost,
    /// Cores that software has started and the machine has not, a bit each.
    pub(crate) started: u64,
    /// No core accesses at an earlier cycle, where there are several.
    pub(crate) past: u64,
    /// An exchange is under way.
    pub(crate) exchange: bool,
    /// For how long the device of the last access lets the core wait.
    waits: u64,
    pub(crate) notes: Vec<String>,
    /// Devices may have been changed from outside.
    changed: bool,
    /// A device wants the run to end.
    expired: bool,
    #[cfg(feature = "translate")]
    pub(crate) translations: crate::translate::Translations,
}

impl Bus {
    pub(crate) fn new(base: u32, ram: usize, interrupts: Irqmp, cost: Cost) -> Bus {
        Bus {
            base,
            ram: vec![0; ram],
            code: bytemuck::allocation::zeroed_vec(ram / 4),
            rows: bytemuck::allocation::zeroed_vec(ram / 4),
            row_begin: 0,
            row_end: 0,
            decoded: vec![false; ram.div_ceil(PAGE)],
            rom: Vec::new(),
            interrupts,
            attached: Vec::new(),
            tables: Tables::new(base, ram),
            deadline: 0,
            next: NEVER,
            now: 0,
            busy: 0,
            cost,
            started: 0,
            past: 0,
            exchange: false,
            waits: 0,
            notes: Vec::new(),
            changed: false,
            expired: false,
            #[cfg(feature = "translate")]
            translations: crate::translate::Translations::new(base, ram / 4),
        }
    }

    /// RAM and what is decoded of it, for translated code, and the length of RAM.
    #[cfg(feature = "translate")]
    #[inline(always)]
    pub(crate) fn memory(&mut self) -> (crate::translate::Memory, usize) {
        let memory = crate::translate::Memory {
            ram: self.ram.as_mut_ptr(),
            decoded: self.decoded.as_ptr(),
            code: self.code.as_ptr(),
        };
        (memory, self.ram.len())
    }

    /// Attaches a device that answers to `size` bytes from `base`. Devices among the peripherals
    /// (0x80000000 to 0x800fffff) appear in the plug-and-play table in the order in which they are attached. A device that
    /// stood at `base` before is gone.
    pub fn attach(&mut self, base: u32, size: u32, device: Box<dyn Device>) {
        self.attached.retain(|attached| attached.base != base);
        self.tables.set(base, size, device.identity());
        self.attached.push(Attached {
            base,
            size,
            next: NEVER,
            holds: 0,
            device,
        });
        self.attached.sort_by_key(|attached| attached.base);
        self.settled();
    }

    /// The attached devices, with the first address of each. What is changed in them the machine learns of when it
    /// runs next.
    pub fn devices(&mut self) -> impl Iterator<Item = (u32, &mut (dyn Device + 'static))> {
        self.changed = true;
        let attached = self.attached.iter_mut();
        attached.map(|attached| (attached.base, &mut *attached.device))
    }

    /// The device of type `D` that is number `number` of its kind, counted from the lowest address.
    pub fn device<D: Device>(&mut self, number: usize) -> Option<&mut D> {
        let devices = self.devices().filter_map(|(_, device)| {
            let device: &mut dyn Any = device;
            device.downcast_mut()
        });
        devices.into_iter().nth(number)
    }

    /// The cycle up to which devices have acted.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The plug-and-play table is told of the interrupt controller, too.
    pub(crate) fn tables(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// What was strange, in the order in which it was met, once each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn note(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NOTES {
            let note = note();
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// First address of RAM.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// RAM, byte by byte.
    pub fn ram(&self) -> &[u8] {
        &self.ram
    }

    /// Sets the bytes of the ROM, which begins at address 0.
    pub fn set_rom(&mut self, bytes: Vec<u8>) {
        self.rom = bytes;
    }

    /// Writes `bytes` at `address`, wherever there is RAM or ROM.
    ///
    /// # Errors
    /// There is not so much memory there.
    pub fn write_image(&mut self, address: u32, bytes: &[u8]) -> Result<(), NoMemory> {
        let none = NoMemory {
            address,
            size: bytes.len(),
            base: self.base,
            ram: self.ram.len(),
        };
        if address >= self.base {
            let at = (address - self.base) as usize;
            if self.ram.len().checked_sub(bytes.len()) < Some(at) {
                return Err(none);
            }
            self.write_ram(at, bytes);
            return Ok(());
        }
        let at = address as usize;
        let end = at.checked_add(bytes.len());
        let end = end.filter(|&end| end <= 1 << 24).ok_or(none)?;
        if self.rom.len() < end {
            self.rom.resize(end, 0);
        }
        self.rom[at..end].copy_from_slice(bytes);
        Ok(())
    }

    /// Sets page `number` of RAM; whether there is one.
    pub(crate) fn set_page(&mut self, number: usize, bytes: &[u8; PAGE]) -> bool {
        let there = number < self.ram.len() / PAGE;
        if there {
            self.write_ram(number * PAGE, bytes);
        }
        there
    }

    /// Writes `bytes` into RAM from offset `at` on, where there are as many.
    fn write_ram(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.ram[at..end].copy_from_slice(bytes);
        for offset in (at & !3..end).step_by(4) {
            self.forget(offset);
        }
    }

    /// Reads `into.len()` bytes at `address` from RAM or ROM, without any effect.
    pub fn peek(&self, address: u32, into: &mut [u8]) -> bool {
        let from = if address >= self.base {
            self.ram.get((address - self.base) as usize..)
        } else {
            self.rom.get(address as usize..)
        };
        match from.and_then(|from| from.get(..into.len())) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// The word at `address` in RAM or ROM.
    pub fn word(&self, address: u32) -> Option<u32> {
        let mut bytes = [0; 4];
        self.peek(address, &mut bytes)
            .then(|| u32::from_be_bytes(bytes))
    }

    /// The instruction at `address`, a multiple of 4.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, address: u32) -> Result<Operation, Trap> {
        let index = (address.wrapping_sub(self.base) >> 2) as usize;
        match self.code.get(index) {
            Some(operation) if operation.kind != Kind::Undecoded => Ok(*operation),
            _ => self.decode(address),
        }
    }

    #[cold]
    fn decode(&mut self, address: u32) -> Result<Operation, Trap> {
        let Some(word) = self.word(address) else {
            self.note(|| {
                format!("an instruction is fetched at {address:#010x}, where there is no memory")
            });
            return Err(Trap::INSTRUCTION_ACCESS);
        };
        let operation = decode(word);
        if address >= self.base {
            let offset = (address - self.base) as usize;
            self.code[offset / 4] = operation;
            self.decoded[offset / PAGE] = true;
        }
        Ok(operation)
    }

    #[inline(always)]
    fn forget(&mut self, offset: usize) {
        if self.decoded[offset / PAGE] && self.code[offset / 4].kind != Kind::Undecoded {
            self.forget_code(offset / 4);
        }
    }

    /// Word `index` of RAM is another one now: so are the rows that reach it, and the one under way ends.
    #[cold]
    fn forget_code(&mut self, index: usize) {
        let was = self.code[index].kind;
        self.code[index] = Operation {
            kind: Kind::Undecoded,
            rd: was as u8,
            ..self.code[index]
        };
        #[cfg(feature = "translate")]
        self.translations.forget(index);
        for row in &mut self.rows[index.saturating_sub(LONGEST_ROW)..=index] {
            row.known = false;
        }
        // Ends behind the instruction that is executed, wherever in the row that is.
        self.row_end = self.row_end.min(1);
    }

    /// The operation at `address`, which is one of a row.
    #[inline(always)]
    pub(crate) fn decoded_at(&self, address: u32) -> Operation {
        self.code[(address.wrapping_sub(self.base) >> 2) as usize]
    }

    /// The row that begins at `address`; of no length where there is none.
    #[inline(always)]
    pub(crate) fn row(&mut self, address: u32, timing: &Timing) -> Row {
        let index = (address.wrapping_sub(self.base) >> 2) as usize;
        match self.rows.get(index) {
            Some(row) if row.known => *row,
            Some(_) => self.find_row(address, index, timing),
            None => Row::default(),
        }
    }

    #[cold]
    fn find_row(&mut self, address: u32, index: usize, timing: &Timing) -> Row {
        let mut row = Row {
            known: true,
            ..Row::default()
        };
        while usize::from(row.length) < LONGEST_ROW {
            let at = address.wrapping_add(4 * u32::from(row.length));
            if index + usize::from(row.length) >= self.code.len() {
                break;
            }
            let Ok(operation) = self.fetch(at) else { break };
            if !operation.kind.is_straight() {
                break;
            }
            row.length += 1;
            row.cycles += timing.of(operation.kind) as u16;
        }
        self.rows[index] = row;
        row
    }

    /// Cycles of the row under way, from what is not counted yet to `behind`.
    pub(crate) fn row_cycles(&self, behind: u32, timing: &Timing) -> u64 {
        let operations = (self.row_begin..behind)
            .step_by(4)
            .map(|at| self.decoded_at(at));
        // What was overwritten in the row remembers what it was.
        let kind = |operation: Operation| match operation.kind {
            Kind::Undecoded => Kind::ALL[usize::from(operation.rd)],
            kind => kind,
        };
        operations.map(|operation| timing.of(kind(operation))).sum()
    }

    /// The bytes at `address` if they lie in RAM.
    #[inline(always)]
    pub(crate) fn load<const SIZE: usize>(&self, address: u32) -> Option<[u8; SIZE]> {
        let offset = address.wrapping_sub(self.base) as usize;
        let bytes = self.ram.get(offset..)?;
        bytes.first_chunk().copied()
    }

    /// Stores at `address`, aligned to `SIZE`, if that lies in RAM.
    #[inline(always)]
    pub(crate) fn store<const SIZE: usize>(&mut self, address: u32, value: [u8; SIZE]) -> bool {
        let offset = address.wrapping_sub(self.base) as usize;
        let Some(bytes) = self
            .ram
            .get_mut(offset..)
            .and_then(|bytes| bytes.first_chunk_mut())
        else {
            return false;
        };
        *bytes = value;
        self.forget(offset);
        if SIZE == 8 {
            self.forget(offset + 4);
        }
        true
    }

    /// Reads `size` bytes at `address` where there is no RAM.
    #[cold]
    pub(crate) fn load_elsewhere(
        &mut self,
        address: u32,
        size: u32,
        core: usize,
        now: u64,
    ) -> Result<u32, Trap> {
        let aligned = address & !3;
        let word = if let Some(word) = self.word(aligned) {
            word
        } else if let Some(word) = self.tables.read(aligned) {
            word
        } else {
            self.device_read(aligned, core, now)?
        };
        let shift = 8 * (4 - size - (address & 3));
        Ok(word >> shift & (u32::MAX >> (32 - 8 * size)))
    }

    /// The word at `address`, a multiple of 4, as `core` would read it at cycle `now`; none where nobody answers. What the
    /// reading does to a device is undone.
    pub fn inspect(&mut self, address: u32, core: usize, now: u64) -> Option<u32> {
        let here = self.word(address).or_else(|| self.tables.read(address));
        if here.is_some() {
            return here;
        }
        let mut access = Access::new(self.now.max(now), core);
        if let Some(offset) = offset_of_controller(address) {
            return Some(self.interrupts.clone().read(offset, &mut access));
        }
        let index = self.find(address)?;
        let attached = &mut self.attached[index];
        let held = attached.device.save();
        let word = attached.device.read(address - attached.base, &mut access);
        if let Err(error) = attached.device.restore(&held) {
            let name = attached.device.name();
            self.note(|| format!("{name} does not take back what it saved: {error}"));
        }
        Some(word)
    }

    fn device_read(&mut self, address: u32, core: usize, now: u64) -> Result<u32, Trap> {
        let mut access = self.access(core, now);
        if let Some(offset) = offset_of_controller(address) {
            return Ok(self.interrupts.read(offset, &mut access));
        }
        let Some(index) = self.find(address) else {
            return self.nobody(address, "read");
        };
        let attached = &mut self.attached[index];
        let value = attached.device.read(address - attached.base, &mut access);
        self.waits = access.waits();
        self.after(index, &access);
        Ok(value)
    }

    /// Writes `size` bytes at `address` where there is no RAM.
    #[cold]
    pub(crate) fn store_elsewhere(
        &mut self,
        address: u32,
        size: u32,
        value: u32,
        core: usize,
        now: u64,
    ) -> Result<(), Trap> {
        // A core drives every lane of the bus with what it stores; a peripheral device takes the word.
        let value = match size {
            1 => (value & 0xff) * 0x0101_0101,
            2 => (value & 0xffff) * 0x0001_0001,
            _ => value,
        };
        let aligned = address & !3;
        let below = 8 * (4 - size - (address & 3));
        let bits = u32::MAX >> (32 - 8 * size) << below;
        if (aligned as usize) < self.rom.len() {
            self.note(|| format!("the ROM at {address:#010x} is written, which changes nothing"));
            return Ok(());
        }
        let mut access = self.access(core, now);
        if let Some(offset) = offset_of_controller(aligned) {
            self.interrupts.write(offset, value, &mut access);
            self.started |= access.started();
            self.deadline = 0;
            return Ok(());
        }
        match self.find(aligned) {
            Some(index) => {
                let attached = &mut self.attached[index];
                let offset = aligned - attached.base;
                access.bits = bits;
                attached.device.write(offset, value, &mut access);
                self.waits = access.waits();
                self.after(index, &access);
            }
            None => {
                self.nobody(aligned, "written")?;
            }
        }
        Ok(())
    }

    /// The bridge answers with zero where it has no device; elsewhere nobody answers at all.
    fn nobody(&mut self, address: u32, done: &str) -> Result<u32, Trap> {
        let bridge = address.wrapping_sub(PERIPHERALS) < PERIPHERALS_SIZE;
        let what = if bridge {
            "where no peripheral device is: it reads as zero"
        } else {
            "where there is no memory or device"
        };
        self.note(|| format!("{address:#010x} is {done}, {what}"));
        if bridge {
            Ok(0)
        } else {
            Err(Trap::DATA_ACCESS)
        }
    }

    fn find(&self, address: u32) -> Option<usize> {
        let behind = self
            .attached
            .partition_point(|attached| attached.base <= address);
        let index = behind.checked_sub(1)?;
        let attached = &self.attached[index];
        (address - attached.base < attached.size).then_some(index)
    }

    /// An access at cycle `now`, before which every device has done what it had to do by then.
    fn access(&mut self, core: usize, now: u64) -> Access {
        self.advance(now);
        self.now = self.now.max(now);
        let mut access = Access::new(self.now, core);
        access.cycle = now;
        access.past = self.past.min(now);
        access.exchange = self.exchange;
        access
    }

    /// For how long the last access lets the core wait; told once.
    pub(crate) fn waits(&mut self) -> u64 {
        std::mem::take(&mut self.waits)
    }

    /// What a register at `address` costs beside the instruction, which is `cost` behind the bridge. What lies on the main
    /// bus behind RAM says itself how long it takes.
    pub(crate) fn register_cost(&self, address: u32, cost: u32) -> u64 {
        let on_main_bus = (self.base..PERIPHERALS).contains(&address);
        if on_main_bus { 0 } else { u64::from(cost) }
    }

    /// Device `index` was accessed or acted: interrupts it raised arrive, and if that may concern whoever runs, it looks
    /// up.
    fn after(&mut self, index: usize, access: &Access) {
        let attached = &mut self.attached[index];
        let (next, held) = (attached.next, attached.holds);
        attached.renew();
        let (renewed, holds) = (attached.next, attached.holds);
        if renewed != next {
            self.next = self.first();
        }
        self.deadline = self.deadline.min(self.next);
        if access.raised() != 0 || access.started() != 0 || held != holds {
            self.interrupts.raise(access.raised());
            if held != holds {
                self.interrupts.hold(self.held());
            }
            self.started |= access.started();
            self.deadline = 0;
        }
    }

    fn first(&self) -> u64 {
        let next = self.attached.iter().map(|attached| attached.next);
        next.min().unwrap_or(NEVER)
    }

    fn held(&self) -> u32 {
        let holds = self.attached.iter().map(|attached| attached.holds);
        holds.fold(0, |all, holds| all | holds)
    }

    /// Asks every device anew, if any may have been changed from outside.
    pub(crate) fn settle(&mut self) {
        if self.changed {
            self.settled();
        }
    }

    /// Tells it that devices were changed from outside: they may want to act at another time.
    pub fn settled(&mut self) {
        self.changed = false;
        self.attached.iter_mut().for_each(Attached::renew);
        self.next = self.first();
        self.interrupts.hold(self.held());
        self.expired = self
            .attached
            .iter()
            .any(|attached| attached.device.expired());
    }

    /// Whether a device wants the run to end.
    pub(crate) fn expired(&self) -> bool {
        self.expired
    }

    /// The interrupt lines that devices may raise while no core runs, as [`crate::devices::Device::may_raise`] tells.
    pub(crate) fn may_raise(&self) -> u32 {
        let devices = self.attached.iter();
        devices.fold(0, |lines, attached| lines | attached.device.may_raise())
    }

    /// The cycle at which the first device acts.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Lets devices act whose time has come by cycle `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        while self.next <= now {
            self.act();
        }
    }

    #[cold]
    fn act(&mut self) {
        let before = self.next;
        self.now = self.now.max(before);
        for index in 0..self.attached.len() {
            if self.attached[index].next <= self.now {
                let mut access = Access::new(self.now, 0);
                self.attached[index].device.advance(&mut access);
                self.after(index, &access);
                self.expired |= self.attached[index].device.expired();
            }
        }
        debug_assert!(self.next > before, "a device acts at {before} for ever");
    }
}

/// Offset of an address in the interrupt controller, which stands at its usual place.
fn offset_of_controller(address: u32) -> Option<u32> {
    let offset = address.wrapping_sub(CONTROLLER);
    (offset < 0x100).then_some(offset)
}

/// Where the interrupt controller stands.
pub(crate) const CONTROLLER: u32 = PERIPHERALS + 0x200;

/// No memory where an image has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{size} bytes at {address:#010x} lie outside memory, which is {ram} bytes from {base:#010x}; give the machine more \
     (--memory), or link the image for where there is some"
)]
pub struct NoMemory {
    address: u32,
    size: usize,
    base: u32,
    ram: usize,
}
