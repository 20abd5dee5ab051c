//! Instructions as words.

/// Where code begins.
pub(crate) const BASE: u32 = 0x4000_0000;

pub(crate) const G0: u32 = 0;
pub(crate) const G1: u32 = 1;
pub(crate) const O0: u32 = 8;
pub(crate) const SP: u32 = 14;
pub(crate) const O7: u32 = 15;
pub(crate) const L0: u32 = 16;
pub(crate) const I7: u32 = 31;

pub(crate) const NEVER: u32 = 0;
pub(crate) const EQUAL: u32 = 1;
pub(crate) const ALWAYS: u32 = 8;
pub(crate) const NOT_EQUAL: u32 = 9;

pub(crate) const NOP: u32 = 0x0100_0000;
pub(crate) const UNIMP: u32 = 12;
pub(crate) const RETT: u32 = 0x81cc_8000;

/// Format 3 with an immediate.
pub(crate) fn immediate(op: u32, op3: u32, rs1: u32, value: i32, rd: u32) -> u32 {
    op << 30 | rd << 25 | op3 << 19 | rs1 << 14 | 1 << 13 | value as u32 & 0x1fff
}

pub(crate) fn sethi(value: u32, rd: u32) -> u32 {
    rd << 25 | 4 << 22 | value >> 10
}

pub(crate) fn add(rs1: u32, value: i32, rd: u32) -> u32 {
    immediate(2, 0, rs1, value, rd)
}

/// `mov from, rd`.
pub(crate) fn copy(from: u32, rd: u32) -> u32 {
    2 << 30 | rd << 25 | 2 << 19 | from
}

pub(crate) fn multiply(rs1: u32, rd: u32) -> u32 {
    immediate(2, 10, rs1, 3, rd)
}

pub(crate) fn load(rs1: u32, value: i32, rd: u32) -> u32 {
    immediate(3, 0, rs1, value, rd)
}

pub(crate) fn store(rd: u32, rs1: u32, value: i32) -> u32 {
    immediate(3, 4, rs1, value, rd)
}

pub(crate) fn save(bytes: i32) -> u32 {
    immediate(2, 60, SP, -bytes, SP)
}

pub(crate) const RESTORE: u32 = 0x81e8_0000;

pub(crate) fn jump(rs1: u32, value: i32, rd: u32) -> u32 {
    immediate(2, 56, rs1, value, rd)
}

pub(crate) fn ret() -> u32 {
    jump(I7, 8, G0)
}

pub(crate) fn retl() -> u32 {
    jump(O7, 8, G0)
}

/// `bicc`, by words from itself.
pub(crate) fn branch(condition: u32, annul: bool, words: i32) -> u32 {
    u32::from(annul) << 29 | condition << 25 | 2 << 22 | words as u32 & 0x3f_ffff
}

/// `call`, by words from itself.
pub(crate) fn call(words: i32) -> u32 {
    1 << 30 | words as u32 & 0x3fff_ffff
}

/// `ta number`.
pub(crate) fn trap(number: i32) -> u32 {
    immediate(2, 58, G0, number, ALWAYS)
}
