//! The floating-point unit: registers, state register, operations and compares of singles and
//! doubles (The SPARC Architecture Manual, Version 8; GR740 user manual, 7 and 8, for the GRFPU).
//!
//! Where the manual leaves a choice, this unit takes the recommendation of its appendix N:
//!
//! - A result that is no number has all bits set but the sign. Of two NaNs a signalling one comes
//!   first, then that of rs2. The GRFPU (GR740, 8.2.7) has other bits for no number, `0x7fff_0000` and
//!   `0x7fff_e000_0000_0000`, and gives them for a signalling NaN, too; QEMU does as this unit.
//! - A result is tiny before it is rounded. With its trap enabled, underflow is every tiny result,
//!   else one that is inexact. QEMU calls a result tiny after it is rounded, and asks for inexact in
//!   both cases.
//! - What no integer is near to becomes the largest or the smallest one, by its sign; so does a NaN,
//!   as in the emulation of Linux. QEMU makes the largest of every NaN.
//! - Of a trap, `cexc` says one cause. QEMU says all exceptions.
//! - Numbers below the normal ones are computed with, as by GRFPU5 and by the Meiko unit that QEMU
//!   names for LEON3. The GRFPU up to version 4 stops at such an operand with *unfinished_FPop*, and
//!   gives no such result; with the bit `ns` it takes them, too, as zeros, and so does this unit.
//! - A double in an odd register is the one in the even register below: the GRFPU does not look
//!   (GR740, 7.2), nor does QEMU.
//! - Operations on quadruples, and every other code that is none, are *unimplemented_FPop*.
//!
//! There is no queue of deferred traps: an operation ends, or traps, before the next one. Whoever
//! models the queue keeps the address and sets the bit `qne`.
//!
//! Invariant: registers and `aexc` hold the results of operations that ended, never of one that
//! trapped.

#[cfg(test)]
mod agreement;
mod exact;
mod format;
mod host;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use format::{Direction, Double, Format, INEXACT, INVALID, Outcome, Single, UNDERFLOW};

/// What the field `ver` of the state register says: 2 is a GRFPU, 3 a GRFPU-Lite
/// (`arch/sparc/kernel/cpu.c` of Linux). QEMU says 4 for LEON3.
pub const VERSION: u32 = 2;

/// Bits of the state register that `ldfsr` writes: rd, tem, ns, fcc, aexc and cexc.
const LOADED: u32 = 0xcfc0_0fff;
/// Non-standard mode.
const NONSTANDARD: u32 = 1 << 22;
/// The kind of the last trap.
const TRAP_TYPE: u32 = 7 << 14;
/// Current exceptions.
const CURRENT: u32 = 0x1f;

/// Why an operation ended in the trap *fp_exception*; the number is what `fsr.ftt` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FloatException {
    /// An exception of IEEE 754 whose trap is enabled: `fsr.cexc` says which.
    #[error("a floating-point exception whose trap is enabled: fsr.cexc says which")]
    Ieee754 = 1,
    /// No operation of this unit.
    #[error(
        "a floating-point operation that the unit does not have: compile for singles and doubles"
    )]
    Unimplemented = 3,
}

/// Registers and state of the floating-point unit of a core.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Float {
    /// `%f0` to `%f31`. A double is in two, the high half in the even one.
    pub registers: [u32; 32],
    /// The state register, `%fsr`, as `stfsr` stores it.
    pub fsr: u32,
}

impl Default for Float {
    fn default() -> Self {
        Self::new()
    }
}

impl Float {
    /// All registers zero: to nearest, no trap enabled.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            registers: [0; 32],
            fsr: VERSION << 17,
        }
    }

    /// `ldfsr`: all but ver, ftt and qne (SPARC V8, 4.4). Bits of no use stay 0. O(1).
    pub fn load_fsr(&mut self, value: u32) {
        self.fsr = self.fsr & !LOADED | value & LOADED;
    }

    /// `stfsr`. O(1).
    #[must_use]
    pub const fn store_fsr(&self) -> u32 {
        self.fsr
    }

    /// Executes the operation `opf` of `FPop1` on registers, of whose numbers 5 bits count. O(1).
    ///
    /// # Errors
    /// The trap *fp_exception*, with `fsr.ftt` set; registers, `fsr.aexc` and `fsr.fcc` are as before.
    #[inline]
    pub fn operate(
        &mut self,
        opf: u32,
        rd: usize,
        rs1: usize,
        rs2: usize,
    ) -> Result<(), FloatException> {
        match opf {
            0x01 => self.copy(rd, rs2, |bits| bits),
            0x05 => self.copy(rd, rs2, |bits| bits ^ 1 << 31),
            0x09 => self.copy(rd, rs2, |bits| bits & !(1 << 31)),
            0x29 => self.root::<Single>(rd, rs2),
            0x2a => self.root::<Double>(rd, rs2),
            0x41 => self.add::<Single>(rd, rs1, rs2, false),
            0x42 => self.add::<Double>(rd, rs1, rs2, false),
            0x45 => self.add::<Single>(rd, rs1, rs2, true),
            0x46 => self.add::<Double>(rd, rs1, rs2, true),
            0x49 => self.multiply::<Single>(rd, rs1, rs2),
            0x4a => self.multiply::<Double>(rd, rs1, rs2),
            0x4d => self.divide::<Single>(rd, rs1, rs2),
            0x4e => self.divide::<Double>(rd, rs1, rs2),
            0x69 => self.multiply_wide(rd, rs1, rs2),
            0xc4 => self.integer_to_single(rd, rs2),
            0xc6 => self.narrow(rd, rs2),
            0xc8 => self.integer_to_double(rd, rs2),
            0xc9 => self.widen(rd, rs2),
            0xd1 => self.truncate::<Single>(rd, rs2),
            0xd2 => self.truncate::<Double>(rd, rs2),
            _ => Err(self.unimplemented()),
        }
    }

    /// Executes the compare `opf` of `FPop2`: `fsr.fcc` says equal (0), less (1), greater (2) or
    /// unordered (3). Compares see numbers as they are, in non-standard mode, too. O(1).
    ///
    /// # Errors
    /// The trap *fp_exception*, with `fsr.ftt` set; `fsr.fcc` and `fsr.aexc` are as before.
    #[inline]
    pub fn compare(&mut self, opf: u32, rs1: usize, rs2: usize) -> Result<(), FloatException> {
        match opf {
            0x51 => self.relate::<Single>(rs1, rs2, false),
            0x52 => self.relate::<Double>(rs1, rs2, false),
            0x55 => self.relate::<Single>(rs1, rs2, true),
            0x56 => self.relate::<Double>(rs1, rs2, true),
            _ => Err(self.unimplemented()),
        }
    }

    /// Whether `fbfcc` with this condition, of which 4 bits count, is taken. O(1).
    #[must_use]
    #[inline]
    pub const fn taken(&self, condition: u32) -> bool {
        // The lower conditions by the relations that they ask for, equal in bit 0 (SPARC V8, B.22):
        // never, ne, lg, ul, l, ug, g, u. The upper ones ask for all others.
        const ASKED: [u8; 8] = [0, 0b1110, 0b0110, 0b1010, 0b0010, 0b1100, 0b0100, 0b1000];
        let relation = self.fsr >> 10 & 3;
        let lower = ASKED[(condition & 7) as usize] >> relation & 1 != 0;
        lower != (condition & 8 != 0)
    }

    #[inline(always)]
    fn direction(&self) -> Direction {
        match self.fsr >> 30 {
            0 => Direction::Nearest,
            1 => Direction::Zero,
            2 => Direction::Up,
            _ => Direction::Down,
        }
    }

    /// An operand of what computes: in non-standard mode, a zero for what is no normal number (GR740,
    /// 8.2.6).
    #[inline(always)]
    fn operand<F: Format>(&self, register: usize) -> u64 {
        let bits = F::read(&self.registers, register);
        if self.fsr & NONSTANDARD != 0 && F::is_denormal(bits) {
            bits & F::SIGN
        } else {
            bits
        }
    }

    /// Ends an operation: its result, or the trap.
    #[inline(always)]
    fn deliver<F: Format>(&mut self, rd: usize, outcome: Outcome) -> Result<(), FloatException> {
        let Outcome {
            mut bits,
            mut exceptions,
        } = outcome;
        if exceptions & UNDERFLOW != 0 && self.fsr & NONSTANDARD != 0 {
            bits &= F::SIGN;
            exceptions |= INEXACT;
        }
        self.settle(exceptions)?;
        F::write(&mut self.registers, rd, bits);
        Ok(())
    }

    /// Enters the exceptions of an operation in the state register.
    #[inline(always)]
    fn settle(&mut self, exceptions: u32) -> Result<(), FloatException> {
        self.fsr &= !(TRAP_TYPE | CURRENT);
        if exceptions == 0 {
            return Ok(());
        }
        let enabled = self.fsr >> 23 & CURRENT;
        let mut raised = exceptions;
        if raised & (UNDERFLOW | INEXACT) == UNDERFLOW && enabled & UNDERFLOW == 0 {
            raised = 0;
        }
        if raised & enabled != 0 {
            self.fsr |= (FloatException::Ieee754 as u32) << 14 | cause(raised & enabled);
            return Err(FloatException::Ieee754);
        }
        self.fsr |= raised << 5 | raised;
        Ok(())
    }

    /// Exceptions, conditions and registers stay (SPARC V8, 4.4).
    #[cold]
    fn unimplemented(&mut self) -> FloatException {
        let exception = FloatException::Unimplemented;
        self.fsr = self.fsr & !TRAP_TYPE | (exception as u32) << 14;
        exception
    }

    /// `fmovs`, `fnegs`, `fabss`: NaNs are bits to them, and there is no exception.
    #[inline(always)]
    fn copy(
        &mut self,
        rd: usize,
        rs2: usize,
        change: fn(u32) -> u32,
    ) -> Result<(), FloatException> {
        self.settle(0)?;
        self.registers[rd & 31] = change(self.registers[rs2 & 31]);
        Ok(())
    }

    #[inline(always)]
    fn add<F: Format>(
        &mut self,
        rd: usize,
        rs1: usize,
        rs2: usize,
        subtracts: bool,
    ) -> Result<(), FloatException> {
        let (first, mut second) = (self.operand::<F>(rs1), self.operand::<F>(rs2));
        if subtracts && !F::is_nan(second) {
            second ^= F::SIGN;
        }
        let outcome = match self.direction() {
            Direction::Nearest => host::add::<F>(first, second),
            _ => None,
        };
        let outcome = outcome.unwrap_or_else(|| exact::add::<F>(first, second, self.direction()));
        self.deliver::<F>(rd, outcome)
    }

    #[inline(always)]
    fn multiply<F: Format>(
        &mut self,
        rd: usize,
        rs1: usize,
        rs2: usize,
    ) -> Result<(), FloatException> {
        let (first, second) = (self.operand::<F>(rs1), self.operand::<F>(rs2));
        let outcome = match self.direction() {
            Direction::Nearest => host::multiply::<F>(first, second),
            _ => None,
        };
        let outcome =
            outcome.unwrap_or_else(|| exact::multiply::<F, F>(first, second, self.direction()));
        self.deliver::<F>(rd, outcome)
    }

    #[inline(always)]
    fn divide<F: Format>(
        &mut self,
        rd: usize,
        rs1: usize,
        rs2: usize,
    ) -> Result<(), FloatException> {
        let (first, second) = (self.operand::<F>(rs1), self.operand::<F>(rs2));
        let outcome = match self.direction() {
            Direction::Nearest => host::divide::<F>(first, second),
            _ => None,
        };
        let outcome =
            outcome.unwrap_or_else(|| exact::divide::<F>(first, second, self.direction()));
        self.deliver::<F>(rd, outcome)
    }

    #[inline(always)]
    fn root<F: Format>(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let operand = self.operand::<F>(rs2);
        let outcome = match self.direction() {
            Direction::Nearest => host::root::<F>(operand),
            _ => None,
        };
        let outcome = outcome.unwrap_or_else(|| exact::root::<F>(operand, self.direction()));
        self.deliver::<F>(rd, outcome)
    }

    #[inline(always)]
    fn multiply_wide(&mut self, rd: usize, rs1: usize, rs2: usize) -> Result<(), FloatException> {
        let (first, second) = (self.operand::<Single>(rs1), self.operand::<Single>(rs2));
        let outcome = host::multiply_wide(first, second)
            .unwrap_or_else(|| exact::multiply::<Single, Double>(first, second, self.direction()));
        self.deliver::<Double>(rd, outcome)
    }

    #[inline(always)]
    fn integer_to_single(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let integer = self.registers[rs2 & 31].cast_signed();
        let outcome = match self.direction() {
            Direction::Nearest => host::from_integer(integer),
            direction => exact::from_integer::<Single>(integer, direction),
        };
        self.deliver::<Single>(rd, outcome)
    }

    #[inline(always)]
    fn integer_to_double(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let double = f64::from(self.registers[rs2 & 31].cast_signed());
        self.deliver::<Double>(rd, Outcome::exact(double.to_bits()))
    }

    #[inline(always)]
    fn narrow(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let operand = self.operand::<Double>(rs2);
        let outcome = match self.direction() {
            Direction::Nearest => host::narrow(operand),
            _ => None,
        };
        let outcome = outcome.unwrap_or_else(|| exact::narrow(operand, self.direction()));
        self.deliver::<Single>(rd, outcome)
    }

    #[inline(always)]
    fn widen(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let outcome = exact::widen(self.operand::<Single>(rs2));
        self.deliver::<Double>(rd, outcome)
    }

    #[inline(always)]
    fn truncate<F: Format>(&mut self, rd: usize, rs2: usize) -> Result<(), FloatException> {
        let outcome = host::to_integer::<F>(self.operand::<F>(rs2));
        self.deliver::<Single>(rd, outcome)
    }

    #[inline(always)]
    fn relate<F: Format>(
        &mut self,
        rs1: usize,
        rs2: usize,
        signals: bool,
    ) -> Result<(), FloatException> {
        let first = F::read(&self.registers, rs1);
        let second = F::read(&self.registers, rs2);
        let relation = F::host(first).partial_cmp(&F::host(second));
        let is_invalid =
            relation.is_none() && (signals || F::is_signalling(first) || F::is_signalling(second));
        self.settle(if is_invalid { INVALID } else { 0 })?;
        let condition = match relation {
            Some(std::cmp::Ordering::Equal) => 0,
            Some(std::cmp::Ordering::Less) => 1,
            Some(std::cmp::Ordering::Greater) => 2,
            None => 3,
        };
        self.fsr = self.fsr & !(3 << 10) | condition << 10;
        Ok(())
    }
}

/// The exception that a trap is for, alone of those raised and enabled: overflow and underflow come
/// before inexact, the only one that others come with (SPARC V8, 4.4).
fn cause(trapping: u32) -> u32 {
    1 << (31 - trapping.leading_zeros())
}
