//! What instructions cost: a table of cycles by kind, each entry with where it is from.
//!
//! The caches' part is in [`crate::cache`]. Not modelled: the wait of an instruction that uses what the load before it
//! reads, and of a branch that uses the condition codes of the instruction before it (one cycle each on some
//! configurations), contention inside the floating-point unit.
//!
//! Invariant: every instruction that is done takes a cycle at least.

use crate::decode::Kind;

/// Cycles of each kind of instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    cycles: [u8; 256],
    /// Cycles from an instruction that traps to the first of the handler, beside its own.
    pub trap: i8,
    /// Cycles from an interrupt to the first instruction of the handler.
    pub interrupt: u8,
    /// Cycles of a delay slot that is annulled.
    pub annulled: u8,
    name: &'static str,
}

/// A row of the table: kinds, their cycles, and the source of the figure.
pub struct Row {
    /// Kinds of instructions.
    pub kinds: &'static [Kind],
    /// Cycles with hits in the caches.
    pub cycles: u8,
    /// Where the figure is from.
    pub source: &'static str,
}

const MANUAL: &str = "GRLIB IP core manual, LEON3, \"Instruction timing\"";
const FLOAT: &str =
    "GRLIB IP core manual, GRFPU, latencies; the core waits for the result: an assumption";

/// Instructions that take more than a cycle on a LEON3 with a hardware multiplier of 16 x 16 bits, a radix-2 divider and
/// a GRFPU.
pub const LEON3: &[Row] = {
    use Kind::*;
    &[
        Row {
            kinds: &[Jmpl, Rett],
            cycles: 3,
            source: MANUAL,
        },
        Row {
            kinds: &[Ldd, Ldda, Lddf],
            cycles: 2,
            source: MANUAL,
        },
        Row {
            kinds: &[St, Stb, Sth, Sta, Stba, Stha, Stf, Stfsr],
            cycles: 2,
            source: MANUAL,
        },
        Row {
            kinds: &[Std, Stda, Stdf, Stdfq],
            cycles: 3,
            source: MANUAL,
        },
        Row {
            kinds: &[Ldstub, Ldstuba, Swap, Swapa, Casa],
            cycles: 5,
            source: MANUAL,
        },
        Row {
            kinds: &[Umul, Smul, UmulCc, SmulCc],
            cycles: 4,
            source: MANUAL,
        },
        Row {
            kinds: &[Umac, Smac],
            cycles: 2,
            source: "assumption: a step of the 16 x 16 multiplier and the sum",
        },
        Row {
            kinds: &[Udiv, Sdiv, UdivCc, SdivCc],
            cycles: 35,
            source: MANUAL,
        },
        Row {
            kinds: &[FloatOperate, FloatCompare],
            cycles: 4,
            source: FLOAT,
        },
    ]
};

impl Timing {
    /// Every instruction takes a cycle, one that traps and nothing else any: cycles are instructions that were done.
    pub fn uniform() -> Timing {
        Timing {
            cycles: [1; 256],
            trap: -1,
            interrupt: 0,
            annulled: 0,
            name: "uniform",
        }
    }

    /// A LEON3 with hits in its caches ([`LEON3`]); a taken trap 5 cycles (the manual), an annulled slot 1.
    pub fn leon3() -> Timing {
        let mut cycles = [1; 256];
        for row in LEON3 {
            for &kind in row.kinds {
                cycles[kind as usize] = row.cycles;
            }
        }
        Timing {
            cycles,
            trap: 5,
            interrupt: 5,
            annulled: 1,
            name: "leon3",
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Cycles of `kind`.
    #[inline(always)]
    pub fn of(&self, kind: Kind) -> u64 {
        u64::from(self.cycles[kind as usize & 255])
    }

    /// Further cycles of the floating-point operation `opf`: dividing and taking roots is slower than the rest.
    pub fn float(&self, opf: u32) -> u64 {
        if self.name == "uniform" {
            return 0;
        }
        match opf {
            0x29 => 20, // fsqrts: 24
            0x2a => 21, // fsqrtd: 25
            0x4d => 12, // fdivs: 16
            0x4e => 13, // fdivd: 17
            _ => 0,
        }
    }
}
