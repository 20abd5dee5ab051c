//! A core: its state, and what each instruction does (SPARC V8 manual, appendix B; GRIP LEON3 for what differs).
//!
//! Invariant: an instruction that traps has changed nothing but the cycle count; `pc` and `npc` are where the core
//! goes on. Cycles never go back.

use serde::{Deserialize, Serialize};

use crate::bus::Bus;
use crate::cache::Cache;
use crate::decode::{Kind, Operation};
use crate::float::Float;
use crate::observer::{Observer, Touch};
use crate::registers::Registers;
use crate::timing::Timing;
use crate::trap::Trap;

/// Negative, zero, overflow, carry, in the order of the processor state register.
const NEGATIVE: u32 = 8;
const ZERO: u32 = 4;
const OVERFLOW: u32 = 2;
const CARRY: u32 = 1;

/// For each condition of `bicc` and `ticc`, a bit for each value of the condition codes with which it holds.
pub(crate) const CONDITIONS: [u16; 16] = {
    let mut table = [0; 16];
    let mut icc = 0;
    while icc < 16 {
        let (n, z, v, c) = (icc & 8 != 0, icc & 4 != 0, icc & 2 != 0, icc & 1 != 0);
        let holds = [false, z, z | (n ^ v), n ^ v, c | z, c, n, v];
        let mut condition = 0;
        while condition < 8 {
            table[condition + if holds[condition] { 0 } else { 8 }] |= 1 << icc;
            condition += 1;
        }
        icc += 1;
    }
    table
};

/// What a core is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// It waits for another core to start it.
    Waiting,
    /// It executes.
    Running,
    /// It sleeps until an interrupt (a write to `%asr19`).
    Asleep,
    /// Error mode: a trap while traps were off.
    Stopped(Trap),
}

/// A core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Core {
    /// Its number, as `%asr17` tells it.
    pub number: usize,
    /// Integer registers.
    pub registers: Registers,
    /// Floating-point registers and state.
    pub float: Float,
    /// Address of the instruction to execute.
    pub pc: u32,
    /// Address of the one behind it.
    pub npc: u32,
    /// Condition codes: negative 8, zero 4, overflow 2, carry 1.
    pub icc: u32,
    /// Whether the floating-point unit is on (EF).
    pub float_on: bool,
    /// Interrupts of this level and below wait (PIL).
    pub interrupt_level: u8,
    /// Supervisor mode (S).
    pub supervisor: bool,
    /// Supervisor mode before the trap (PS).
    pub previous_supervisor: bool,
    /// Whether traps are taken (ET).
    pub traps: bool,
    /// Window invalid mask.
    pub wim: u32,
    /// Trap base register.
    pub tbr: u32,
    /// Upper half of products and dividends.
    pub y: u32,
    /// Ancillary registers 16 to 31 that can be written; LEON3's own are computed.
    ancillary: [u32; 16],
    /// Cache control register, and others of the system control space.
    control: [u32; 4],
    /// What it is at.
    pub condition: Condition,
    /// Cycles since reset.
    pub cycles: u64,
    /// Instructions executed; annulled ones do not count, those that trap do.
    pub instructions: u64,
    /// Traps taken, interrupts included.
    pub taken: u64,
    pub(crate) caches: Option<Box<[Cache; 2]>>,
}

/// What every core of a machine has in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) timing: Timing,
    pub(crate) mac: bool,
    pub(crate) float: bool,
    pub(crate) multiplier: bool,
}

/// Why a core stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Its time is over, or something may concern others.
    Deadline,
    /// The observer wants the instruction at `pc` not to be executed yet.
    Observer,
}

impl Core {
    pub(crate) fn new(number: usize, windows: usize) -> Core {
        Core {
            number,
            registers: Registers::new(windows),
            float: Float::new(),
            pc: 0,
            npc: 4,
            icc: 0,
            float_on: false,
            interrupt_level: 0,
            supervisor: true,
            previous_supervisor: true,
            traps: false,
            wim: 0,
            tbr: 0,
            y: 0,
            ancillary: [0; 16],
            control: [0; 4],
            condition: Condition::Waiting,
            cycles: 0,
            instructions: 0,
            taken: 0,
            caches: None,
        }
    }

    /// The processor state register: implementation and version are LEON3's, 15 and 3.
    pub fn psr(&self) -> u32 {
        0xf300_0000
            | self.icc << 20
            | u32::from(self.float_on) << 12
            | u32::from(self.interrupt_level) << 8
            | u32::from(self.supervisor) << 7
            | u32::from(self.previous_supervisor) << 6
            | u32::from(self.traps) << 5
            | self.registers.current() as u32
    }

    /// Sets all of it that can be written.
    pub fn set_psr(&mut self, value: u32) {
        self.icc = value >> 20 & 15;
        self.float_on = value >> 12 & 1 == 1;
        self.interrupt_level = (value >> 8 & 15) as u8;
        self.supervisor = value >> 7 & 1 == 1;
        self.previous_supervisor = value >> 6 & 1 == 1;
        self.traps = value >> 5 & 1 == 1;
        let window = (value & 31) as usize;
        if window < self.registers.windows() && window != self.registers.current() {
            self.registers.enter(window);
        }
    }

    /// Whether the branch `operation` would be taken now; none if it is no branch, or goes one way only.
    pub fn would_branch(&self, operation: Operation) -> Option<bool> {
        match operation.kind {
            _ if matches!(operation.rd, 0 | 8) => None,
            Kind::Branch => Some(self.holds(operation.rd)),
            Kind::FloatBranch => Some(self.float.taken(u32::from(operation.rd))),
            _ => None,
        }
    }

    /// Whether `condition` of `bicc` and `ticc` holds.
    #[inline(always)]
    fn holds(&self, condition: u8) -> bool {
        CONDITIONS[usize::from(condition & 15)] >> (self.icc & 15) & 1 == 1
    }

    /// Whether an interrupt of `level` is taken now.
    pub(crate) fn takes(&self, level: u8) -> bool {
        self.traps && (level == 15 || level > self.interrupt_level)
    }

    /// Enters the handler of `trap`, or error mode if traps are off.
    ///
    /// # Errors
    /// Error mode.
    pub(crate) fn trap(&mut self, trap: Trap, common: &Common) -> Result<(), Trap> {
        let interrupt = (0x11..=0x1f).contains(&trap.0);
        self.cycles = if interrupt {
            self.cycles + u64::from(common.timing.interrupt)
        } else {
            self.cycles.wrapping_add_signed(common.timing.trap.into())
        };
        if !self.traps {
            self.tbr = self.tbr & !0xff0 | u32::from(trap.0) << 4;
            self.condition = Condition::Stopped(trap);
            return Err(trap);
        }
        self.taken += 1;
        self.traps = false;
        self.previous_supervisor = self.supervisor;
        self.supervisor = true;
        self.registers.enter(self.registers.below());
        self.registers.set(17, self.pc);
        self.registers.set(18, self.npc);
        self.tbr = self.tbr & !0xff0 | u32::from(trap.0) << 4;
        self.pc = self.tbr;
        self.npc = self.tbr + 4;
        Ok(())
    }

    /// Executes until the bus's deadline, a pause or error mode.
    pub(crate) fn run<O: Observer>(
        &mut self,
        bus: &mut Bus,
        common: &Common,
        observer: &mut O,
    ) -> Pause {
        if self.caches.is_some() {
            self.run_on::<O, true>(bus, common, observer)
        } else {
            self.run_on::<O, false>(bus, common, observer)
        }
    }

    fn run_on<O: Observer, const CACHES: bool>(
        &mut self,
        bus: &mut Bus,
        common: &Common,
        observer: &mut O,
    ) -> Pause {
        let in_rows = !O::LOOKS && !CACHES;
        while self.cycles < bus.deadline {
            if in_rows && self.npc == self.pc.wrapping_add(4) {
                #[cfg(feature = "translate")]
                if crate::translate::run(self, bus, common) {
                    continue;
                }
                self.run_row(bus, common, observer);
                if self.cycles >= bus.deadline {
                    break;
                }
            }
            let pc = self.pc;
            if O::LOOKS && observer.before(self, bus) {
                return Pause::Observer;
            }
            if CACHES {
                self.fetch_cost(bus, pc);
            }
            if let Err(trap) = self.run_one::<O, CACHES>(bus, common, observer)
                && self.failed(trap, bus, common, observer)
            {
                break;
            }
        }
        Pause::Deadline
    }

    /// Executes the instruction at `pc`.
    #[inline(always)]
    fn run_one<O: Observer, const CACHES: bool>(
        &mut self,
        bus: &mut Bus,
        common: &Common,
        observer: &mut O,
    ) -> Done {
        let (pc, npc) = (self.pc, self.npc);
        self.instructions += 1;
        let operation = bus.fetch(pc).inspect_err(|_| self.cycles += 1)?;
        self.cycles += common.timing.of(operation.kind);
        self.pc = npc;
        self.npc = npc.wrapping_add(4);
        let mut step = Step {
            core: self,
            bus,
            common,
            observer,
            pc,
        };
        let done = step.execute::<CACHES>(operation);
        if done.is_err() {
            (self.pc, self.npc) = (pc, npc);
        }
        done
    }

    /// Executes the row that begins at `pc`, if all of it may begin before the deadline: instructions that neither jump
    /// nor change how the core runs. In between nothing is looked at: what concerns others ends the row at its
    /// instruction.
    #[inline(always)]
    fn run_row<O: Observer>(&mut self, bus: &mut Bus, common: &Common, observer: &mut O) {
        let row = bus.row(self.pc, &common.timing);
        if row.length == 0 || self.cycles + u64::from(row.cycles) > bus.deadline {
            return;
        }
        let begin = self.pc;
        let end = begin + 4 * u32::from(row.length);
        bus.row_begin = begin;
        bus.row_end = end;
        let mut step = Step {
            core: self,
            bus,
            common,
            observer,
            pc: begin,
        };
        let mut done = Ok(());
        while step.pc < step.bus.row_end {
            let operation = step.bus.decoded_at(step.pc);
            done = step.execute::<false>(operation);
            if done.is_err() {
                break;
            }
            step.pc += 4;
        }
        let at = step.pc;
        // An instruction that traps was executed, too.
        let behind = if done.is_err() { at + 4 } else { at };
        self.instructions += u64::from((behind - begin) / 4);
        self.cycles += if at == end && bus.row_begin == begin {
            u64::from(row.cycles)
        } else {
            bus.row_cycles(behind, &common.timing)
        };
        (self.pc, self.npc) = (at, at + 4);
        bus.row_end = 0;
        if let Err(trap) = done {
            self.failed(trap, bus, common, observer);
        }
    }

    /// The instruction at `pc` traps; whether that ends the run.
    #[cold]
    fn failed<O: Observer>(
        &mut self,
        trap: Trap,
        bus: &mut Bus,
        common: &Common,
        observer: &mut O,
    ) -> bool {
        if trap == Trap::ILLEGAL_INSTRUCTION {
            let word = bus.word(self.pc).unwrap_or(0);
            let pc = self.pc;
            bus.note(|| {
                format!("{word:08x} at {pc:#010x} is no instruction that this machine has")
            });
        }
        if O::LOOKS {
            observer.trapped(self, trap);
        }
        let ends = self.trap(trap, common).is_err();
        // Where it took no cycle, fewer instructions than cycles may be left.
        if ends || common.timing.trap < 0 {
            bus.deadline = 0;
        }
        ends
    }

    /// Waits for the bus from `self.cycles` and keeps it for `cycles`.
    fn wait(&mut self, bus: &mut Bus, cycles: u32) {
        let begin = self.cycles.max(bus.busy);
        self.cycles = begin + u64::from(cycles);
        bus.busy = self.cycles;
    }

    fn line(&mut self, bus: &mut Bus, cache: usize, address: u32) {
        let Some(caches) = &mut self.caches else {
            return;
        };
        if !caches[cache].fill(address) {
            let words = caches[cache].words();
            self.wait(bus, bus.cost.first + (words - 1) * bus.cost.further);
        }
    }

    fn fetch_cost(&mut self, bus: &mut Bus, pc: u32) {
        self.line(bus, 0, pc);
    }
}

/// An instruction under way.
struct Step<'a, O> {
    core: &'a mut Core,
    bus: &'a mut Bus,
    common: &'a Common,
    observer: &'a mut O,
    pc: u32,
}

type Done = Result<(), Trap>;

impl<O: Observer> Step<'_, O> {
    #[inline(always)]
    fn first(&self, operation: Operation) -> u32 {
        self.core.registers.get(operation.rs1)
    }

    #[inline(always)]
    fn second(&self, operation: Operation) -> u32 {
        let register = self.core.registers.get(operation.rs2);
        register.wrapping_add(operation.immediate)
    }

    #[inline(always)]
    fn set(&mut self, operation: Operation, value: u32) -> Done {
        self.core.registers.set(operation.rd, value);
        Ok(())
    }

    /// Sets the result and negative and zero by it, overflow and carry as given.
    #[inline(always)]
    fn set_codes(&mut self, operation: Operation, value: u32, overflow: u32, carry: u32) -> Done {
        self.core.icc = codes(value, overflow, carry);
        self.set(operation, value)
    }

    #[inline(always)]
    fn add_codes(&mut self, operation: Operation, carry: u32) -> Done {
        let (a, b) = (self.first(operation), self.second(operation));
        let value = a.wrapping_add(b).wrapping_add(carry);
        let (overflow, carry) = sum_codes(a, b, value);
        self.set_codes(operation, value, overflow, carry)
    }

    #[inline(always)]
    fn sub_codes(&mut self, operation: Operation, borrow: u32) -> Done {
        let (a, b) = (self.first(operation), self.second(operation));
        let value = a.wrapping_sub(b).wrapping_sub(borrow);
        let (overflow, carry) = difference_codes(a, b, value);
        self.set_codes(operation, value, overflow, carry)
    }

    fn tagged(&mut self, operation: Operation, subtract: bool, traps: bool) -> Done {
        let (a, b) = (self.first(operation), self.second(operation));
        let (value, (overflow, carry)) = if subtract {
            let value = a.wrapping_sub(b);
            (value, difference_codes(a, b, value))
        } else {
            let value = a.wrapping_add(b);
            (value, sum_codes(a, b, value))
        };
        let overflow = overflow | u32::from((a | b) & 3 != 0);
        if traps && overflow != 0 {
            return Err(Trap::TAG_OVERFLOW);
        }
        self.set_codes(operation, value, overflow, carry)
    }

    #[inline(always)]
    fn multiply(&mut self, operation: Operation, signed: bool) -> Result<u32, Trap> {
        if !self.common.multiplier {
            return Err(Trap::ILLEGAL_INSTRUCTION);
        }
        let (a, b) = (self.first(operation), self.second(operation));
        let product = if signed {
            (i64::from(a as i32) * i64::from(b as i32)) as u64
        } else {
            u64::from(a) * u64::from(b)
        };
        self.core.y = (product >> 32) as u32;
        Ok(product as u32)
    }

    /// The quotient, saturated, and whether it was (appendix B.18).
    fn divide(&mut self, operation: Operation, signed: bool) -> Result<(u32, u32), Trap> {
        if !self.common.multiplier {
            return Err(Trap::ILLEGAL_INSTRUCTION);
        }
        let dividend = u64::from(self.core.y) << 32 | u64::from(self.first(operation));
        let divisor = self.second(operation);
        if divisor == 0 {
            return Err(Trap::DIVISION_BY_ZERO);
        }
        if !signed {
            let quotient = dividend / u64::from(divisor);
            return Ok(match u32::try_from(quotient) {
                Ok(quotient) => (quotient, 0),
                Err(_) => (u32::MAX, 1),
            });
        }
        let quotient = i128::from(dividend as i64) / i128::from(divisor as i32);
        Ok(match i32::try_from(quotient) {
            Ok(quotient) => (quotient as u32, 0),
            Err(_) if quotient < 0 => (i32::MIN as u32, 1),
            Err(_) => (i32::MAX as u32, 1),
        })
    }

    /// A step of a multiplication (appendix B.17).
    fn multiply_step(&mut self, operation: Operation) -> Done {
        let source = self.first(operation);
        let negative = (self.core.icc >> 3 ^ self.core.icc >> 1) & 1;
        let a = source >> 1 | negative << 31;
        let b = if self.core.y & 1 == 1 {
            self.second(operation)
        } else {
            0
        };
        self.core.y = self.core.y >> 1 | source << 31;
        let value = a.wrapping_add(b);
        let (overflow, carry) = sum_codes(a, b, value);
        self.set_codes(operation, value, overflow, carry)
    }

    /// A 16 x 16 product onto the 40 bits of Y and `%asr18` (GRIP LEON3, "Multiply and accumulate").
    fn accumulate(&mut self, operation: Operation, signed: bool) -> Done {
        if !self.common.mac {
            return Err(Trap::ILLEGAL_INSTRUCTION);
        }
        let (a, b) = (self.first(operation), self.second(operation));
        let product = if signed {
            i64::from(a as i16) * i64::from(b as i16)
        } else {
            i64::from(a as u16) * i64::from(b as u16)
        };
        let before = u64::from(self.core.y & 0xff) << 32 | u64::from(self.core.ancillary[2]);
        let sum = before.wrapping_add(product as u64);
        self.core.y = (sum >> 32 & 0xff) as u32;
        self.core.ancillary[2] = sum as u32;
        self.set(operation, sum as u32)
    }

    fn privileged(&self) -> Done {
        if self.core.supervisor {
            Ok(())
        } else {
            Err(Trap::PRIVILEGED_INSTRUCTION)
        }
    }

    #[inline(always)]
    fn branch(&mut self, operation: Operation, taken: bool) -> Done {
        let annul = operation.rs1 != 0;
        if taken {
            let target = self.pc.wrapping_add(operation.immediate);
            // Always, annulled: the slot is skipped.
            if annul && operation.rd == 8 {
                self.core.pc = target;
                self.core.npc = target.wrapping_add(4);
                self.core.cycles += u64::from(self.common.timing.annulled);
            } else {
                self.core.npc = target;
            }
        } else if annul {
            self.core.pc = self.core.npc;
            self.core.npc = self.core.npc.wrapping_add(4);
            self.core.cycles += u64::from(self.common.timing.annulled);
        }
        Ok(())
    }

    #[inline(always)]
    fn holds(&self, condition: u8) -> bool {
        self.core.holds(condition)
    }

    fn save_restore(&mut self, operation: Operation, window: usize, trap: Trap) -> Done {
        if self.core.wim >> window & 1 == 1 {
            return Err(trap);
        }
        let value = self.first(operation).wrapping_add(self.second(operation));
        self.core.registers.enter(window);
        self.set(operation, value)
    }

    fn return_from_trap(&mut self, operation: Operation) -> Done {
        if self.core.traps {
            return Err(if self.core.supervisor {
                Trap::ILLEGAL_INSTRUCTION
            } else {
                Trap::PRIVILEGED_INSTRUCTION
            });
        }
        self.privileged()?;
        let target = self.address(operation);
        let window = self.core.registers.above();
        if self.core.wim >> window & 1 == 1 {
            return Err(Trap::WINDOW_UNDERFLOW);
        }
        if target & 3 != 0 {
            return Err(Trap::ADDRESS_NOT_ALIGNED);
        }
        self.core.npc = target;
        self.core.registers.enter(window);
        self.core.supervisor = self.core.previous_supervisor;
        self.core.traps = true;
        self.look_up();
        Ok(())
    }

    /// An interrupt may be due now.
    fn look_up(&mut self) {
        if self.bus.interrupts.level(self.core.number) != 0 {
            self.bus.deadline = 0;
        }
    }

    fn trap_if(&mut self, operation: Operation) -> Done {
        if self.holds(operation.rd) {
            return Err(Trap::software(self.address(operation)));
        }
        Ok(())
    }

    fn write_psr(&mut self, operation: Operation) -> Done {
        self.privileged()?;
        let value = self.first(operation) ^ self.second(operation);
        if (value & 31) as usize >= self.core.registers.windows() {
            return Err(Trap::ILLEGAL_INSTRUCTION);
        }
        self.core.set_psr(value);
        self.core.float_on &= self.common.float;
        self.look_up();
        Ok(())
    }

    fn read_ancillary(&mut self, operation: Operation) -> Done {
        let value = match operation.rs1 {
            // Stack barrier: `stbar` has %g0 as its destination.
            15 => 0,
            17 => {
                let core = &self.core;
                let windows = core.registers.windows() as u32 - 1;
                let float = u32::from(self.common.float) << 10;
                let mac = u32::from(self.common.mac) << 9;
                let multiplier = u32::from(self.common.multiplier) << 8;
                (core.number as u32 & 15) << 28 | float | mac | multiplier | windows
            }
            // The up-counter: lower and upper half of the cycles.
            22 => (self.core.cycles >> 32) as u32 | 1 << 31,
            23 => self.core.cycles as u32,
            number @ 16.. => self.core.ancillary[usize::from(number - 16)],
            _ => 0,
        };
        self.set(operation, value)
    }

    fn write_ancillary(&mut self, operation: Operation) -> Done {
        let value = self.first(operation) ^ self.second(operation);
        match operation.rd {
            // A write to %asr19 puts the core to sleep.
            19 => {
                self.privileged()?;
                self.core.condition = Condition::Asleep;
                self.bus.deadline = 0;
            }
            number @ 16.. => self.core.ancillary[usize::from(number - 16)] = value,
            _ => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn address(&self, operation: Operation) -> u32 {
        self.first(operation).wrapping_add(self.second(operation))
    }

    #[inline(always)]
    fn touch(&mut self, address: u32, size: u32, value: u64, write: bool) {
        if O::LOOKS {
            self.observer.touched(
                self.core,
                Touch {
                    pc: self.pc,
                    address,
                    size,
                    value,
                    write,
                },
            );
        }
    }

    #[inline(always)]
    fn load<const SIZE: usize, const CACHES: bool>(&mut self, address: u32) -> Result<u32, Trap> {
        if address & (SIZE as u32 - 1) != 0 {
            return Err(Trap::ADDRESS_NOT_ALIGNED);
        }
        let value = match self.bus.load::<SIZE>(address) {
            Some(bytes) => {
                if CACHES {
                    self.core.line(self.bus, 1, address);
                }
                bytes
                    .iter()
                    .fold(0, |value, &byte| value << 8 | u32::from(byte))
            }
            None => self.load_elsewhere(address, SIZE as u32)?,
        };
        self.touch(address, SIZE as u32, u64::from(value), false);
        Ok(value)
    }

    /// Within a row, counts the cycles so far and ends the row behind this instruction.
    fn settle(&mut self) {
        if self.bus.row_end != 0 {
            let behind = self.pc + 4;
            self.core.cycles += self.bus.row_cycles(behind, &self.common.timing);
            self.bus.row_begin = behind;
            self.bus.row_end = behind;
        }
    }

    #[cold]
    fn load_elsewhere(&mut self, address: u32, size: u32) -> Result<u32, Trap> {
        self.settle();
        self.core.cycles += self.bus.register_cost(address, self.bus.cost.device_read);
        let (number, now) = (self.core.number, self.core.cycles);
        let value = self.bus.load_elsewhere(address, size, number, now)?;
        self.core.cycles += self.bus.waits();
        Ok(value)
    }

    #[inline(always)]
    fn store<const SIZE: usize, const CACHES: bool>(&mut self, address: u32, value: u32) -> Done {
        if address & (SIZE as u32 - 1) != 0 {
            return Err(Trap::ADDRESS_NOT_ALIGNED);
        }
        let bytes = value.to_be_bytes();
        let bytes: [u8; SIZE] = bytes[4 - SIZE..].try_into().expect("SIZE is 1, 2 or 4");
        if self.bus.store(address, bytes) {
            if CACHES {
                self.written(1);
            }
        } else {
            self.store_elsewhere(address, SIZE as u32, value)?;
        }
        self.touch(address, SIZE as u32, u64::from(value), true);
        Ok(())
    }

    #[cold]
    fn store_elsewhere(&mut self, address: u32, size: u32, value: u32) -> Done {
        self.settle();
        self.core.cycles += self.bus.register_cost(address, self.bus.cost.device_write);
        let (number, now) = (self.core.number, self.core.cycles);
        self.bus
            .store_elsewhere(address, size, value, number, now)?;
        self.core.cycles += self.bus.waits();
        Ok(())
    }

    /// Words written through: the write buffer takes them, and waits while the bus is busy with the last ones.
    fn written(&mut self, words: u32) {
        let begin = self.core.cycles.max(self.bus.busy);
        self.core.cycles = begin;
        self.bus.busy = begin + u64::from(words * self.bus.cost.write);
    }

    #[inline(always)]
    fn load_double<const CACHES: bool>(&mut self, address: u32) -> Result<u64, Trap> {
        if address & 7 != 0 {
            return Err(Trap::ADDRESS_NOT_ALIGNED);
        }
        let value = match self.bus.load::<8>(address) {
            Some(bytes) => {
                if CACHES {
                    self.core.line(self.bus, 1, address);
                }
                u64::from_be_bytes(bytes)
            }
            None => {
                let high = self.load_elsewhere(address, 4)?;
                u64::from(high) << 32 | u64::from(self.load_elsewhere(address + 4, 4)?)
            }
        };
        self.touch(address, 8, value, false);
        Ok(value)
    }

    #[inline(always)]
    fn store_double<const CACHES: bool>(&mut self, address: u32, high: u32, low: u32) -> Done {
        if address & 7 != 0 {
            return Err(Trap::ADDRESS_NOT_ALIGNED);
        }
        let value = u64::from(high) << 32 | u64::from(low);
        if self.bus.store(address, value.to_be_bytes()) {
            if CACHES {
                self.written(2);
            }
        } else {
            self.store_elsewhere(address, 4, high)?;
            self.store_elsewhere(address + 4, 4, low)?;
        }
        self.touch(address, 8, value, true);
        Ok(())
    }

    /// Replaces the word at `address` by what `with` makes of it, with nobody in between; gives the old one.
    fn exchange<const CACHES: bool>(
        &mut self,
        address: u32,
        with: impl FnOnce(u32) -> Option<u32>,
    ) -> Result<u32, Trap> {
        self.at_once(|step| {
            let old = step.load::<4, CACHES>(address)?;
            if let Some(new) = with(old) {
                step.store::<4, CACHES>(address, new)?;
            }
            Ok(old)
        })
    }

    /// Does a load and a store of which devices know that they are one.
    fn at_once(&mut self, act: impl FnOnce(&mut Self) -> Result<u32, Trap>) -> Result<u32, Trap> {
        self.bus.exchange = true;
        let done = act(self);
        self.bus.exchange = false;
        done
    }

    fn load_store_byte<const CACHES: bool>(&mut self, operation: Operation, address: u32) -> Done {
        let old = self.at_once(|step| {
            let old = step.load::<1, CACHES>(address)?;
            step.store::<1, CACHES>(address, 0xff)?;
            Ok(old)
        })?;
        self.core.registers.set_named(operation.rd, old);
        Ok(())
    }

    fn swap<const CACHES: bool>(&mut self, operation: Operation, address: u32) -> Done {
        let new = self.core.registers.get(operation.rd);
        let old = self.exchange::<CACHES>(address, |_| Some(new))?;
        self.core.registers.set_named(operation.rd, old);
        Ok(())
    }

    fn compare_and_swap<const CACHES: bool>(&mut self, operation: Operation) -> Done {
        // User data may be named in user mode (GRIP LEON3, "Compare and swap").
        if operation.immediate != 0x0a {
            self.privileged()?;
        }
        let address = self.first(operation);
        let expected = self.core.registers.get(operation.rs2);
        let new = self.core.registers.get(operation.rd);
        let old = self.exchange::<CACHES>(address, |old| (old == expected).then_some(new))?;
        self.core.registers.set_named(operation.rd, old);
        Ok(())
    }

    fn float(&self) -> Done {
        if self.core.float_on {
            Ok(())
        } else {
            Err(Trap::FLOAT_DISABLED)
        }
    }

    /// The address of an access to another space, if that is memory; other spaces are served here.
    fn alternate<const CACHES: bool>(
        &mut self,
        operation: Operation,
        size: u32,
        write: bool,
    ) -> Result<Option<u32>, Trap> {
        self.privileged()?;
        let address = self
            .first(operation)
            .wrapping_add(self.core.registers.get(operation.rs2));
        match operation.immediate {
            // Memory: as it is, past the cache, user or supervisor, instructions or data, past the MMU.
            0x00 | 0x01 | 0x08..=0x0b | 0x1c => Ok(Some(address)),
            space => {
                if address & (size - 1) != 0 {
                    return Err(Trap::ADDRESS_NOT_ALIGNED);
                }
                let named = operation.rd;
                if write {
                    let value = self.core.registers.get(named);
                    self.write_space(space, address, value);
                } else {
                    let value = self.read_space(space, address);
                    let named = if named == crate::decode::SINK {
                        0
                    } else {
                        named
                    };
                    self.core.registers.set_named(named, value);
                }
                Ok(None)
            }
        }
    }

    /// Spaces of the caches and their control; the tags and data of caches are not there to be read.
    fn read_space(&mut self, space: u32, address: u32) -> u32 {
        match (space, address & 0xfc) {
            (0x02, 0x00) => self.core.control[0],
            // Configuration of the instruction cache and of the data cache.
            (0x02, 0x08 | 0x0c) => CACHE_CONFIGURATION,
            _ => 0,
        }
    }

    fn write_space(&mut self, space: u32, address: u32, value: u32) {
        const FLUSH: u32 = 3 << 21;
        match (space, address & 0xfc) {
            (0x02, 0x00) => {
                self.core.control[0] = value & !FLUSH;
                for (cache, bit) in [(0, 1 << 21), (1, 1 << 22)] {
                    if let Some(caches) = &mut self.core.caches
                        && value & bit != 0
                    {
                        caches[cache].flush();
                    }
                }
            }
            (0x10 | 0x11, _) => {
                if let Some(caches) = &mut self.core.caches {
                    caches[usize::from(space == 0x11)].flush();
                }
            }
            (0x18 | 0x19, _) => self.bus.note(|| {
                format!("the MMU's space {space:#04x} is written at {address:#x}; this machine has no MMU")
            }),
            _ => {}
        }
    }

    #[inline(always)]
    fn execute<const CACHES: bool>(&mut self, operation: Operation) -> Done {
        use Kind::*;
        let carry = self.core.icc & CARRY;
        match operation.kind {
            Undecoded | Illegal | Unimp => Err(Trap::ILLEGAL_INSTRUCTION),
            Coprocessor => Err(Trap::COPROCESSOR_DISABLED),
            Call => {
                self.core.npc = self.pc.wrapping_add(operation.immediate);
                self.set(operation, self.pc)
            }
            Branch => self.branch(operation, self.holds(operation.rd)),
            FloatBranch => {
                self.float()?;
                let taken = self.core.float.taken(u32::from(operation.rd));
                self.branch(operation, taken)
            }
            Sethi => self.set(operation, operation.immediate),
            Add => self.set(
                operation,
                self.first(operation).wrapping_add(self.second(operation)),
            ),
            And => self.set(operation, self.first(operation) & self.second(operation)),
            Or => self.set(operation, self.first(operation) | self.second(operation)),
            Xor => self.set(operation, self.first(operation) ^ self.second(operation)),
            Sub => self.set(
                operation,
                self.first(operation).wrapping_sub(self.second(operation)),
            ),
            Andn => self.set(operation, self.first(operation) & !self.second(operation)),
            Orn => self.set(operation, self.first(operation) | !self.second(operation)),
            Xnor => self.set(operation, !(self.first(operation) ^ self.second(operation))),
            Addx => {
                let sum = self.first(operation).wrapping_add(self.second(operation));
                self.set(operation, sum.wrapping_add(carry))
            }
            Subx => {
                let difference = self.first(operation).wrapping_sub(self.second(operation));
                self.set(operation, difference.wrapping_sub(carry))
            }
            Umul | Smul => {
                let value = self.multiply(operation, operation.kind == Smul)?;
                self.set(operation, value)
            }
            Udiv | Sdiv => {
                let (value, _) = self.divide(operation, operation.kind == Sdiv)?;
                self.set(operation, value)
            }
            AddCc => self.add_codes(operation, 0),
            AddxCc => self.add_codes(operation, carry),
            SubCc => self.sub_codes(operation, 0),
            SubxCc => self.sub_codes(operation, carry),
            AndCc => {
                let value = self.first(operation) & self.second(operation);
                self.set_codes(operation, value, 0, 0)
            }
            OrCc => {
                let value = self.first(operation) | self.second(operation);
                self.set_codes(operation, value, 0, 0)
            }
            XorCc => {
                let value = self.first(operation) ^ self.second(operation);
                self.set_codes(operation, value, 0, 0)
            }
            AndnCc => {
                let value = self.first(operation) & !self.second(operation);
                self.set_codes(operation, value, 0, 0)
            }
            OrnCc => {
                let value = self.first(operation) | !self.second(operation);
                self.set_codes(operation, value, 0, 0)
            }
            XnorCc => {
                let value = !(self.first(operation) ^ self.second(operation));
                self.set_codes(operation, value, 0, 0)
            }
            UmulCc | SmulCc => {
                let value = self.multiply(operation, operation.kind == SmulCc)?;
                self.set_codes(operation, value, 0, 0)
            }
            UdivCc | SdivCc => {
                let (value, overflow) = self.divide(operation, operation.kind == SdivCc)?;
                self.set_codes(operation, value, overflow, 0)
            }
            TaddCc | TaddCcTv => self.tagged(operation, false, operation.kind == TaddCcTv),
            TsubCc | TsubCcTv => self.tagged(operation, true, operation.kind == TsubCcTv),
            MulsCc => self.multiply_step(operation),
            Sll => self.set(
                operation,
                self.first(operation) << (self.second(operation) & 31),
            ),
            Srl => self.set(
                operation,
                self.first(operation) >> (self.second(operation) & 31),
            ),
            Sra => {
                let value = self.first(operation) as i32 >> (self.second(operation) & 31);
                self.set(operation, value as u32)
            }
            Rdy => self.set(operation, self.core.y),
            Rdasr => self.read_ancillary(operation),
            Rdpsr => {
                self.privileged()?;
                self.set(operation, self.core.psr())
            }
            Rdwim => {
                self.privileged()?;
                self.set(operation, self.core.wim)
            }
            Rdtbr => {
                self.privileged()?;
                self.set(operation, self.core.tbr)
            }
            Wry => {
                self.core.y = self.first(operation) ^ self.second(operation);
                Ok(())
            }
            Wrasr => self.write_ancillary(operation),
            Wrpsr => self.write_psr(operation),
            Wrwim => {
                self.privileged()?;
                let there = u32::MAX >> (32 - self.core.registers.windows());
                self.core.wim = (self.first(operation) ^ self.second(operation)) & there;
                Ok(())
            }
            Wrtbr => {
                self.privileged()?;
                let value = self.first(operation) ^ self.second(operation);
                self.core.tbr = value & !0xfff | self.core.tbr & 0xff0;
                Ok(())
            }
            Jmpl => {
                let target = self.address(operation);
                if target & 3 != 0 {
                    return Err(Trap::ADDRESS_NOT_ALIGNED);
                }
                self.core.npc = target;
                self.set(operation, self.pc)
            }
            Rett => self.return_from_trap(operation),
            Ticc => self.trap_if(operation),
            Flush => {
                if let Some(caches) = &mut self.core.caches {
                    caches.iter_mut().for_each(crate::cache::Cache::flush);
                }
                Ok(())
            }
            Save => self.save_restore(
                operation,
                self.core.registers.below(),
                Trap::WINDOW_OVERFLOW,
            ),
            Restore => self.save_restore(
                operation,
                self.core.registers.above(),
                Trap::WINDOW_UNDERFLOW,
            ),
            Umac | Smac => self.accumulate(operation, operation.kind == Smac),
            Ld => {
                let value = self.load::<4, CACHES>(self.address(operation))?;
                self.set(operation, value)
            }
            Ldub => {
                let value = self.load::<1, CACHES>(self.address(operation))?;
                self.set(operation, value)
            }
            Lduh => {
                let value = self.load::<2, CACHES>(self.address(operation))?;
                self.set(operation, value)
            }
            Ldsb => {
                let value = self.load::<1, CACHES>(self.address(operation))?;
                self.set(operation, value as u8 as i8 as u32)
            }
            Ldsh => {
                let value = self.load::<2, CACHES>(self.address(operation))?;
                self.set(operation, value as u16 as i16 as u32)
            }
            Ldd | Std if operation.rd & 1 == 1 => Err(Trap::ILLEGAL_INSTRUCTION),
            Ldd => self.load_pair::<CACHES>(operation, self.address(operation)),
            St => self.store::<4, CACHES>(
                self.address(operation),
                self.core.registers.get(operation.rd),
            ),
            Stb => self.store::<1, CACHES>(
                self.address(operation),
                self.core.registers.get(operation.rd),
            ),
            Sth => self.store::<2, CACHES>(
                self.address(operation),
                self.core.registers.get(operation.rd),
            ),
            Std => self.store_pair::<CACHES>(operation, self.address(operation)),
            Ldstub => self.load_store_byte::<CACHES>(operation, self.address(operation)),
            Swap => self.swap::<CACHES>(operation, self.address(operation)),
            Ldf | Lddf | Ldfsr | Stf | Stdf | Stfsr | Stdfq | FloatOperate | FloatCompare => {
                self.floating::<CACHES>(operation)
            }
            Casa => self.compare_and_swap::<CACHES>(operation),
            Lda | Lduba | Lduha | Ldda | Sta | Stba | Stha | Stda | Ldsba | Ldsha | Ldstuba
            | Swapa => self.in_space::<CACHES>(operation),
        }
    }

    #[inline(always)]
    fn load_pair<const CACHES: bool>(&mut self, operation: Operation, address: u32) -> Done {
        let value = self.load_double::<CACHES>(address)?;
        let even = operation.rd;
        self.core.registers.set_named(even, (value >> 32) as u32);
        self.core.registers.set(even + 1, value as u32);
        Ok(())
    }

    #[inline(always)]
    fn store_pair<const CACHES: bool>(&mut self, operation: Operation, address: u32) -> Done {
        let even = operation.rd;
        let (high, low) = (
            self.core.registers.get(even),
            self.core.registers.get(even + 1),
        );
        self.store_double::<CACHES>(address, high, low)
    }

    fn floating<const CACHES: bool>(&mut self, operation: Operation) -> Done {
        use Kind::*;
        self.float()?;
        let number = usize::from(operation.rd);
        match operation.kind {
            Ldf => {
                self.core.float.registers[number] =
                    self.load::<4, CACHES>(self.address(operation))?
            }
            Lddf => {
                let value = self.load_double::<CACHES>(self.address(operation))?;
                self.core.float.registers[number & 30] = (value >> 32) as u32;
                self.core.float.registers[number | 1] = value as u32;
            }
            Ldfsr => {
                let value = self.load::<4, CACHES>(self.address(operation))?;
                self.core.float.load_fsr(value);
            }
            Stf => {
                self.store::<4, CACHES>(self.address(operation), self.core.float.registers[number])?
            }
            Stdf => {
                let registers = &self.core.float.registers;
                let (high, low) = (registers[number & 30], registers[number | 1]);
                self.store_double::<CACHES>(self.address(operation), high, low)?;
            }
            Stfsr => {
                let value = self.core.float.store_fsr();
                self.store::<4, CACHES>(self.address(operation), value)?;
            }
            // The queue is always empty: exceptions are precise.
            Stdfq => {
                self.privileged()?;
                return Err(Trap::FLOAT_EXCEPTION);
            }
            _ => {
                let (rs1, rs2) = (usize::from(operation.rs1), usize::from(operation.rs2));
                self.core.cycles += self.common.timing.float(operation.immediate);
                let done = if operation.kind == FloatOperate {
                    self.core
                        .float
                        .operate(operation.immediate, number, rs1, rs2)
                } else {
                    self.core.float.compare(operation.immediate, rs1, rs2)
                };
                return done.map_err(|_| Trap::FLOAT_EXCEPTION);
            }
        }
        Ok(())
    }

    /// Loads and stores in other spaces.
    fn in_space<const CACHES: bool>(&mut self, operation: Operation) -> Done {
        use Kind::*;
        let (size, write) = match operation.kind {
            Lda | Swapa => (4, false),
            Lduha | Ldsha => (2, false),
            Lduba | Ldsba | Ldstuba => (1, false),
            Ldda => (8, false),
            Sta => (4, true),
            Stha => (2, true),
            Stba => (1, true),
            Stda => (8, true),
            _ => return Err(Trap::ILLEGAL_INSTRUCTION),
        };
        if size == 8 && operation.rd & 1 == 1 {
            return Err(Trap::ILLEGAL_INSTRUCTION);
        }
        let Some(address) = self.alternate::<CACHES>(operation, size, write)? else {
            return Ok(());
        };
        let value = match operation.kind {
            Lda => self.load::<4, CACHES>(address)?,
            Lduha => self.load::<2, CACHES>(address)?,
            Ldsha => self.load::<2, CACHES>(address)? as u16 as i16 as u32,
            Lduba => self.load::<1, CACHES>(address)?,
            Ldsba => self.load::<1, CACHES>(address)? as u8 as i8 as u32,
            Ldda => return self.load_pair::<CACHES>(operation, address),
            Sta => return self.store::<4, CACHES>(address, self.core.registers.get(operation.rd)),
            Stha => return self.store::<2, CACHES>(address, self.core.registers.get(operation.rd)),
            Stba => return self.store::<1, CACHES>(address, self.core.registers.get(operation.rd)),
            Stda => return self.store_pair::<CACHES>(operation, address),
            Ldstuba => return self.load_store_byte::<CACHES>(operation, address),
            _ => return self.swap::<CACHES>(operation, address),
        };
        self.set(operation, value)
    }
}

/// Configuration of a cache as its register tells it: 4 KiB a way times 4, lines of 4 words, one way, snooping.
const CACHE_CONFIGURATION: u32 = 1 << 27 | 4 << 20 | 2 << 16;

#[inline(always)]
fn codes(value: u32, overflow: u32, carry: u32) -> u32 {
    let zero = if value == 0 { ZERO } else { 0 };
    ((value >> 31) * NEGATIVE) | zero | (overflow * OVERFLOW) | (carry * CARRY)
}

/// Overflow and carry of a sum.
#[inline(always)]
fn sum_codes(a: u32, b: u32, value: u32) -> (u32, u32) {
    let overflow = (a ^ value) & (b ^ value);
    let carry = a & b | (a | b) & !value;
    (overflow >> 31, carry >> 31)
}

/// Overflow and borrow of a difference.
#[inline(always)]
fn difference_codes(a: u32, b: u32, value: u32) -> (u32, u32) {
    let overflow = (a ^ b) & (a ^ value);
    let borrow = !a & b | (!a | b) & value;
    (overflow >> 31, borrow >> 31)
}
