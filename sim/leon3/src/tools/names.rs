//! Names that the manual gives: traps and registers.
//!
//! Invariant: a name has no space and no semicolon.

use crate::trap::Trap;

/// The manual's name of `trap`.
pub(super) fn trap(trap: Trap) -> String {
    let name = match trap {
        Trap::RESET => "reset",
        Trap::INSTRUCTION_ACCESS => "instruction_access_exception",
        Trap::ILLEGAL_INSTRUCTION => "illegal_instruction",
        Trap::PRIVILEGED_INSTRUCTION => "privileged_instruction",
        Trap::FLOAT_DISABLED => "fp_disabled",
        Trap::WINDOW_OVERFLOW => "window_overflow",
        Trap::WINDOW_UNDERFLOW => "window_underflow",
        Trap::ADDRESS_NOT_ALIGNED => "mem_address_not_aligned",
        Trap::FLOAT_EXCEPTION => "fp_exception",
        Trap::DATA_ACCESS => "data_access_exception",
        Trap::TAG_OVERFLOW => "tag_overflow",
        Trap::COPROCESSOR_DISABLED => "cp_disabled",
        Trap::DIVISION_BY_ZERO => "division_by_zero",
        Trap(number @ 0x11..=0x1f) => return format!("interrupt_level_{}", number - 0x10),
        Trap(number @ 0x80..) => return format!("trap_instruction_{}", number - 0x80),
        Trap(number) => return format!("trap_{number:02x}"),
    };
    name.to_owned()
}
