//! Registers of a core as a debugger numbers them (gdb's `sparc-tdep.h`), and what writing one means.
//!
//! Invariant: 72 words, big-endian, in gdb's order; what a core cannot hold is left out, not kept.

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers};

use crate::core::Core;

/// How many registers there are.
pub(super) const COUNT: usize = 72;
const FLOAT: usize = 32;
const Y: usize = 64;
const PSR: usize = 65;
const WIM: usize = 66;
const TBR: usize = 67;
const PC: usize = 68;
const NPC: usize = 69;
const FSR: usize = 70;

/// SPARC of 32 bits.
pub(super) enum Sparc {}

impl Arch for Sparc {
    type Usize = u32;
    type Registers = Words;
    type BreakpointKind = usize;
    type RegId = Number;

    fn target_description_xml() -> Option<&'static str> {
        Some(r#"<target version="1.0"><architecture>sparc</architecture></target>"#)
    }
}

/// All registers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Words([u32; COUNT]);

impl Default for Words {
    fn default() -> Words {
        Words([0; COUNT])
    }
}

impl Registers for Words {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.0[PC]
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for byte in self.0.iter().flat_map(|word| word.to_be_bytes()) {
            write_byte(Some(byte));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        if bytes.len() != 4 * COUNT {
            return Err(());
        }
        let (words, _) = bytes.as_chunks::<4>();
        for (word, bytes) in self.0.iter_mut().zip(words) {
            *word = u32::from_be_bytes(*bytes);
        }
        Ok(())
    }
}

/// The number of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number(usize);

impl RegId for Number {
    fn from_raw_id(id: usize) -> Option<(Number, Option<NonZeroUsize>)> {
        (id < COUNT).then_some((Number(id), NonZeroUsize::new(4)))
    }
}

/// All registers of `core`.
pub(super) fn read_all(core: &Core) -> Words {
    Words(std::array::from_fn(|number| read(core, Number(number))))
}

/// The register `number` of `core`; the coprocessor's state, which there is none of, is zero.
pub(super) fn read(core: &Core, Number(number): Number) -> u32 {
    match number {
        0..FLOAT => core.registers.get(number as u8),
        FLOAT..Y => core.float.registers[number - FLOAT],
        Y => core.y,
        PSR => core.psr(),
        WIM => core.wim,
        TBR => core.tbr,
        PC => core.pc,
        NPC => core.npc,
        FSR => core.float.store_fsr(),
        _ => 0,
    }
}

/// Sets all registers of `core`: the state register first, which says what window the others are in.
pub(super) fn write_all(core: &mut Core, words: &Words, float: bool) {
    write(core, Number(PSR), words.0[PSR], float);
    for (number, &word) in words.0.iter().enumerate() {
        if number != PSR {
            write(core, Number(number), word, float);
        }
    }
}

/// Sets the register `number` of `core`, which has a floating-point unit or not. Setting `pc` alone sets `npc` behind it:
/// a debugger that lets a program go on elsewhere means this, and one that puts all back sets `npc` after `pc`.
pub(super) fn write(core: &mut Core, Number(number): Number, word: u32, float: bool) {
    match number {
        1..FLOAT => core.registers.set(number as u8, word),
        FLOAT..Y => core.float.registers[number - FLOAT] = word,
        Y => core.y = word,
        PSR => {
            core.set_psr(word);
            core.float_on &= float;
        }
        WIM => core.wim = word & u32::MAX >> (32 - core.registers.windows()),
        TBR => core.tbr = word & !0xf,
        PC => {
            core.pc = word & !3;
            core.npc = core.pc.wrapping_add(4);
        }
        NPC => core.npc = word & !3,
        FSR => core.float.load_fsr(word),
        // %g0 is zero, and there is no coprocessor.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each register stands where gdb looks for it.
    #[test]
    fn registers_stand_in_the_order_of_gdb() {
        let mut core = Core::new(0, 8);
        for number in 1..32 {
            core.registers.set(number, 0x100 + u32::from(number));
        }
        core.float.registers = std::array::from_fn(|number| 0x200 + number as u32);
        core.y = 1;
        core.icc = 0xa;
        core.wim = 2;
        core.tbr = 0x4000_0050;
        (core.pc, core.npc) = (0x4000_1000, 0x4000_2000);
        let mut bytes = Vec::new();
        read_all(&core).gdb_serialize(|byte| bytes.push(byte.expect("all are there")));
        assert_eq!(bytes.len(), 288);
        let word = |number: usize| {
            u32::from_be_bytes(bytes[4 * number..][..4].try_into().expect("4 bytes"))
        };
        assert_eq!(word(0), 0);
        assert_eq!((word(1), word(14), word(31)), (0x101, 0x10e, 0x11f));
        assert_eq!((word(32), word(63)), (0x200, 0x21f));
        assert_eq!((word(64), word(66), word(67)), (1, 2, 0x4000_0050));
        assert_eq!(word(65), 0xf3a0_00c0);
        assert_eq!((word(68), word(69)), (0x4000_1000, 0x4000_2000));
        assert_eq!((word(70), word(71)), (core.float.fsr, 0));
        for number in 0..COUNT {
            assert_eq!(read(&core, Number(number)), word(number), "{number}");
        }
    }

    /// What is written is read back, in whichever window the state register says.
    #[test]
    fn all_registers_come_back() {
        let mut core = Core::new(0, 8);
        let mut words = read_all(&core);
        for (number, word) in words.0.iter_mut().enumerate().skip(1).take(63) {
            *word = number as u32;
        }
        words.0[PSR] = 0xf3a0_10e5;
        words.0[WIM] = 4;
        words.0[TBR] = 0x4000_0000;
        words.0[PC] = 0x4000_0100;
        words.0[NPC] = 0x4000_0200;
        write_all(&mut core, &words, true);
        assert_eq!(read_all(&core), words);
        assert_eq!(core.registers.current(), 5);
        assert_eq!((core.pc, core.npc), (0x4000_0100, 0x4000_0200));
    }

    /// Nothing that a debugger writes makes a core impossible.
    #[test]
    fn a_core_holds_what_it_can() {
        let mut core = Core::new(0, 8);
        write_all(&mut core, &Words([u32::MAX; COUNT]), false);
        assert_eq!(core.registers.get(0), 0);
        assert_eq!(core.registers.current(), 0);
        assert_eq!((core.pc, core.npc), (0xffff_fffc, 0xffff_fffc));
        assert_eq!(core.wim, 0xff);
        assert!(!core.float_on);
        write(&mut core, Number(PC), 0x4000_0003, false);
        assert_eq!((core.pc, core.npc), (0x4000_0000, 0x4000_0004));
        assert_eq!(Number::from_raw_id(72), None);
        let mut words = Words::default();
        assert_eq!(words.gdb_deserialize(&[0; 287]), Err(()));
    }
}
