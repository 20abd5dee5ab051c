//! What QEMU 10 computes otherwise than the simulator, and why the simulator does not.
//!
//! A difference is foreseen from the instruction and its operands before it is executed, and the simulator is then given
//! QEMU's value: so the comparison goes on, and nothing is excused that was not foreseen. Of [`tiny`] alone, whose cause
//! is lost with the instruction, it is seen afterwards.
//!
//! Invariant: a quirk names one result of one instruction; everything else of that instruction is compared.

use metes_leon3::devices::{Access, Device};
use metes_leon3::{Core, Machine, Touch};

use crate::qemu::State;

/// Why values differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// `%asr17` tells of the floating-point unit in bits 11:10 (GRIP, LEON3, "Processor configuration register":
    /// 1 is a GRFPU). QEMU's is 0, "no FPU", though it has one.
    FloatOption,
    /// A compare of quiet NaNs by `fcmps` or `fcmpd` raises nothing (SPARC V8, B.22: *fcmp* is invalid for a signalling
    /// NaN only). QEMU 10 accrues *invalid* though its `cexc` says none; QEMU 7.2 does not.
    QuietCompare,
    /// `fstoi` and `fdtoi` of a NaN: the manual (appendix N) leaves the result open; the simulator takes the integer at the
    /// end that the sign says, as the emulation of Linux. QEMU takes the largest.
    NanToInteger,
    /// `fsmuld` of a signalling NaN in rs1 and a quiet one in rs2: the signalling one comes first (appendix N, table
    /// "Untrapped FPop results for NaNs"). QEMU widens both before, which makes both quiet.
    WidenedNans,
    /// The clear register of IRQMP takes pending interrupts, and no forced ones (GRLIB, `irqmp.vhd`: `ipend` alone). QEMU
    /// takes the forced ones of every processor, too.
    ClearOfForced,
    /// A result is tiny before it is rounded (appendix N, "underflow"); QEMU asks after it.
    Tiny,
}

/// A result to be changed when the instruction at hand is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quirk {
    pub(crate) why: Why,
    result: Result,
}

#[derive(Clone, Copy, Debug)]
enum Result {
    Integer(u8, u32),
    State(u32),
    Float(usize, u32),
    Double(usize, u64),
    /// Of the first processor, a bit for each level.
    Unforced(u32),
}

impl Quirk {
    /// What `word` will compute otherwise, with the operands that `core` has.
    pub(crate) fn of(word: u32, core: &Core) -> Option<Quirk> {
        if word >> 30 != 2 {
            return None;
        }
        match word >> 19 & 0x3f {
            0x28 => configuration(word, core),
            0x34 => operation(word, core),
            0x35 => compare(word, core),
            _ => None,
        }
    }

    /// What the access of an instruction has done otherwise.
    pub(crate) fn of_access(touch: &Touch) -> Option<Quirk> {
        const CLEAR: u32 = 0x8000_020c;
        (touch.write && touch.address == CLEAR).then_some(Quirk {
            why: Why::ClearOfForced,
            result: Result::Unforced(touch.value as u32),
        })
    }

    /// Gives the first processor the result that QEMU has.
    pub(crate) fn apply(self, machine: &mut Machine) {
        if let Result::Unforced(levels) = self.result {
            const FORCE: u32 = 0x80;
            let mut access = Access::new(0, 0);
            let interrupts = &mut machine.bus.interrupts;
            interrupts.write(FORCE, levels << 16, &mut access);
            return;
        }
        let core = machine.core_mut(0);
        match self.result {
            Result::Integer(register, value) => core.registers.set(register, value),
            Result::State(value) => core.float.fsr |= value,
            Result::Float(register, value) => core.float.registers[register] = value,
            Result::Double(register, value) => {
                core.float.registers[register & 30] = (value >> 32) as u32;
                core.float.registers[register | 1] = value as u32;
            }
            Result::Unforced(_) => {}
        }
    }
}

/// QEMU's state register, where `word` has had a result that is tiny here and not there. Its exact value is lost, so this
/// is seen behind the instruction: the result is the smallest normal number, and underflow alone differs.
pub(crate) fn tiny(word: u32, here: &State, there: &State) -> Option<u32> {
    const UNDERFLOW: u32 = 1 << 2;
    const INEXACT: u32 = 1;
    let mut otherwise = *here;
    otherwise.fsr = there.fsr;
    let apart = here.fsr & !there.fsr;
    let only_underflow = otherwise == *there
        && there.fsr & !here.fsr == 0
        && here.fsr & 31 == UNDERFLOW | INEXACT
        && (apart == UNDERFLOW || apart == UNDERFLOW | UNDERFLOW << 5);
    let result = (word >> 25 & 31) as usize;
    let double_result = matches!(word >> 5 & 0x1ff, 0x42 | 0x46 | 0x4a | 0x4e | 0x69);
    let smallest = if double_result {
        double(&here.floats, result) << 1 >> 1 == 1 << 52
    } else {
        here.floats[result] << 1 >> 1 == 1 << 23
    };
    let operates = word >> 30 == 2 && word >> 19 & 0x3f == 0x34;
    (operates && only_underflow && smallest).then_some(there.fsr)
}

/// `rd %asr17`, not into `%g0`.
fn configuration(word: u32, core: &Core) -> Option<Quirk> {
    let register = (word >> 25 & 31) as u8;
    let windows = core.registers.windows() as u32 - 1;
    let value = (core.number as u32) << 28 | 1 << 8 | windows;
    (word >> 14 & 31 == 17 && register != 0).then_some(Quirk {
        why: Why::FloatOption,
        result: Result::Integer(register, value),
    })
}

fn operation(word: u32, core: &Core) -> Option<Quirk> {
    let [rd, rs1, rs2] = [25, 14, 0].map(|at| (word >> at & 31) as usize);
    let floats = &core.float.registers;
    let largest = Quirk {
        why: Why::NanToInteger,
        result: Result::Float(rd, i32::MAX as u32),
    };
    match word >> 5 & 0x1ff {
        // Of those that have a sign: the others become the largest here, too.
        0xd1 => (is_nan(floats[rs2]) && floats[rs2] >> 31 == 1).then_some(largest),
        0xd2 => {
            let operand = double(floats, rs2);
            (is_wide_nan(operand) && operand >> 63 == 1).then_some(largest)
        }
        0x69 => {
            let (first, second) = (floats[rs1], floats[rs2]);
            let quiet = is_nan(second) && !is_signalling(second);
            (is_signalling(first) && quiet).then_some(Quirk {
                why: Why::WidenedNans,
                result: Result::Double(rd, widened(second)),
            })
        }
        _ => None,
    }
}

/// The quiet compares, where no operand signals and what accrued is not there already.
fn compare(word: u32, core: &Core) -> Option<Quirk> {
    const INVALID_ACCRUED: u32 = 1 << 9;
    let [rs1, rs2] = [14, 0].map(|at| (word >> at & 31) as usize);
    let floats = &core.float.registers;
    let quiet = match word >> 5 & 0x1ff {
        0x51 => {
            let operands = [floats[rs1], floats[rs2]];
            operands.iter().any(|&it| is_nan(it)) && !operands.iter().any(|&it| is_signalling(it))
        }
        0x52 => {
            let operands = [double(floats, rs1), double(floats, rs2)];
            operands.iter().any(|&it| is_wide_nan(it))
                && operands
                    .iter()
                    .all(|&it| !is_wide_nan(it) || it >> 51 & 1 == 1)
        }
        _ => return None,
    };
    (quiet && core.float.fsr & INVALID_ACCRUED == 0).then_some(Quirk {
        why: Why::QuietCompare,
        result: Result::State(INVALID_ACCRUED),
    })
}

fn double(floats: &[u32; 32], register: usize) -> u64 {
    u64::from(floats[register & 30]) << 32 | u64::from(floats[register | 1])
}

fn is_nan(single: u32) -> bool {
    single << 1 > 0xff00_0000
}

fn is_signalling(single: u32) -> bool {
    is_nan(single) && single >> 22 & 1 == 0
}

fn is_wide_nan(double: u64) -> bool {
    double << 1 > 0xffe0_0000_0000_0000
}

/// A quiet NaN with more digits.
fn widened(single: u32) -> u64 {
    let sign = u64::from(single >> 31) << 63;
    sign | 0x7ff8_0000_0000_0000 | u64::from(single & 0x007f_ffff) << 29
}
