//! Traps (SPARC V8 manual, chapter 7).

use serde::{Deserialize, Serialize};

/// What a trap is for: the number that selects its entry in the trap table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trap(pub u8);

#[allow(missing_docs)] // the manual's names
impl Trap {
    pub const RESET: Trap = Trap(0x00);
    pub const INSTRUCTION_ACCESS: Trap = Trap(0x01);
    pub const ILLEGAL_INSTRUCTION: Trap = Trap(0x02);
    pub const PRIVILEGED_INSTRUCTION: Trap = Trap(0x03);
    pub const FLOAT_DISABLED: Trap = Trap(0x04);
    pub const WINDOW_OVERFLOW: Trap = Trap(0x05);
    pub const WINDOW_UNDERFLOW: Trap = Trap(0x06);
    pub const ADDRESS_NOT_ALIGNED: Trap = Trap(0x07);
    pub const FLOAT_EXCEPTION: Trap = Trap(0x08);
    pub const DATA_ACCESS: Trap = Trap(0x09);
    pub const TAG_OVERFLOW: Trap = Trap(0x0a);
    pub const COPROCESSOR_DISABLED: Trap = Trap(0x24);
    pub const DIVISION_BY_ZERO: Trap = Trap(0x2a);
}

impl Trap {
    /// The trap of interrupt `level`, 1 to 15.
    pub fn interrupt(level: u8) -> Trap {
        Trap(0x10 + level)
    }

    /// The trap of `ticc` with operand `number`.
    pub fn software(number: u32) -> Trap {
        Trap(0x80 | (number & 0x7f) as u8)
    }

    /// What it is for, in words.
    pub fn reason(self) -> String {
        let reason = match self {
            Trap::RESET => "reset",
            Trap::INSTRUCTION_ACCESS => "no memory at the address of an instruction",
            Trap::ILLEGAL_INSTRUCTION => "no instruction, or one that is not implemented",
            Trap::PRIVILEGED_INSTRUCTION => "a privileged instruction in user mode",
            Trap::FLOAT_DISABLED => "a floating-point instruction while the unit is off",
            Trap::WINDOW_OVERFLOW => "register window overflow",
            Trap::WINDOW_UNDERFLOW => "register window underflow",
            Trap::ADDRESS_NOT_ALIGNED => "an address that is not aligned",
            Trap::FLOAT_EXCEPTION => "a floating-point exception",
            Trap::DATA_ACCESS => "no memory or device at the address of an access",
            Trap::TAG_OVERFLOW => "tag overflow",
            Trap::COPROCESSOR_DISABLED => "a coprocessor instruction, and there is no coprocessor",
            Trap::DIVISION_BY_ZERO => "division by zero",
            Trap(number @ 0x11..=0x1f) => return format!("interrupt {}", number - 0x10),
            Trap(number @ 0x80..) => return format!("software trap {}", number - 0x80),
            Trap(_) => "a trap of no name",
        };
        reason.to_owned()
    }
}
