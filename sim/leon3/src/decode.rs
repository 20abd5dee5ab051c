//! Words of machine code as operations (SPARC V8 manual, appendix F; LEON3 adds `casa`, `umac`, `smac`).
//!
//! An operation is eight bytes, and all zero bytes are [`Kind::Undecoded`], so that a table of operations for all of
//! a memory costs nothing where no code lies. The second operand of every format-3 instruction is
//! `r[rs2] + immediate`: one of the two is zero, so register and immediate forms are one kind.
//!
//! Invariant: every word decodes, what is no instruction to [`Kind::Illegal`]; `rs1` and `rs2` are below 32, and a
//! destination `%g0` is [`SINK`], a register that nothing reads.

/// Where results for `%g0` go.
pub const SINK: u8 = 32;

macro_rules! kinds {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// What an operation does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bytemuck::Zeroable)]
        #[repr(u8)]
        #[allow(missing_docs)] // the manual's mnemonics
        pub enum Kind { $($(#[$about])* $name,)* }

        impl Kind {
            /// All kinds, in order.
            pub const ALL: &[Kind] = &[$(Kind::$name,)*];
        }
    };
}

kinds! {
    /// Not looked at yet.
    Undecoded,
    /// No instruction.
    Illegal,
    /// `unimp`.
    Unimp, Call,
    /// `bicc`: condition in `rd`, annul bit in `rs1`, displacement in `immediate`.
    Branch,
    /// `fbfcc`, likewise.
    FloatBranch,
    /// `sethi`, and `nop`; the value stands shifted.
    Sethi,
    Add, And, Or, Xor, Sub, Andn, Orn, Xnor, Addx, Umul, Smul, Subx, Udiv, Sdiv,
    AddCc, AndCc, OrCc, XorCc, SubCc, AndnCc, OrnCc, XnorCc, AddxCc, UmulCc, SmulCc, SubxCc, UdivCc, SdivCc,
    TaddCc, TsubCc, TaddCcTv, TsubCcTv, MulsCc, Sll, Srl, Sra,
    Rdy,
    /// Ancillary register in `rs1`.
    Rdasr, Rdpsr, Rdwim, Rdtbr, Wry,
    /// Ancillary register in `rd`.
    Wrasr, Wrpsr, Wrwim, Wrtbr, Jmpl, Rett,
    /// `ticc`: condition in `rd`.
    Ticc, Flush, Save, Restore, Umac, Smac,
    Ld, Ldub, Lduh, Ldd, St, Stb, Sth, Std, Ldsb, Ldsh, Ldstub, Swap,
    /// Alternate spaces: the space in `immediate`, no displacement.
    Lda, Lduba, Lduha, Ldda, Sta, Stba, Stha, Stda, Ldsba, Ldsha, Ldstuba, Swapa, Casa,
    Ldf, Ldfsr, Lddf, Stf, Stfsr, Stdfq, Stdf,
    /// `fpop1` and `fpop2`: the operation in `immediate`.
    FloatOperate, FloatCompare,
    /// Any instruction of a coprocessor, which LEON3 lacks.
    Coprocessor,
}

impl Kind {
    /// Whether the next instruction in memory is executed behind it, unless it traps, and nothing but registers and
    /// memory changes.
    pub fn is_straight(self) -> bool {
        use Kind::*;
        !matches!(
            self,
            Undecoded
                | Illegal
                | Unimp
                | Coprocessor
                | Call
                | Branch
                | FloatBranch
                | Jmpl
                | Rett
                | Ticc
                | Flush
                | Rdasr
                | Rdpsr
                | Wrasr
                | Wrpsr
                | Wrwim
                | Wrtbr
                | FloatOperate
                | FloatCompare
        ) && (self as u8) < Lda as u8
            || matches!(self, Ldf | Lddf | Stf | Stdf)
    }
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Zeroable)]
#[repr(C)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// Destination, or source of a store; or as the kind says.
    pub rd: u8,
    /// First operand.
    pub rs1: u8,
    /// Second operand, 0 with an immediate.
    pub rs2: u8,
    /// Immediate, displacement or address space.
    pub immediate: u32,
}

/// Decodes a word.
pub fn decode(word: u32) -> Operation {
    match word >> 30 {
        0 => format_2(word),
        1 => Operation {
            kind: Kind::Call,
            rd: 15,
            rs1: 0,
            rs2: 0,
            immediate: word << 2,
        },
        2 => arithmetic(word),
        _ => memory(word),
    }
}

fn format_2(word: u32) -> Operation {
    let branch = |kind| Operation {
        kind,
        rd: (word >> 25 & 15) as u8,
        rs1: (word >> 29 & 1) as u8,
        rs2: 0,
        immediate: ((word << 10) as i32 >> 8) as u32,
    };
    match word >> 22 & 7 {
        0 => plain(word, Kind::Unimp),
        2 => branch(Kind::Branch),
        4 => Operation {
            kind: Kind::Sethi,
            rd: destination(word),
            rs1: 0,
            rs2: 0,
            immediate: word << 10,
        },
        6 => branch(Kind::FloatBranch),
        7 => plain(word, Kind::Coprocessor),
        _ => plain(word, Kind::Illegal),
    }
}

fn field(word: u32, low: u32) -> u8 {
    (word >> low & 31) as u8
}

/// Where a result goes.
fn destination(word: u32) -> u8 {
    match field(word, 25) {
        0 => SINK,
        rd => rd,
    }
}

/// Registers as the word names them, and the second operand.
fn plain(word: u32, kind: Kind) -> Operation {
    let immediate = word >> 13 & 1 == 1;
    Operation {
        kind,
        rd: field(word, 25),
        rs1: field(word, 14),
        rs2: if immediate { 0 } else { field(word, 0) },
        immediate: if immediate {
            ((word << 19) as i32 >> 19) as u32
        } else {
            0
        },
    }
}

/// As `plain`, with a destination.
fn into(word: u32, kind: Kind) -> Operation {
    Operation {
        rd: destination(word),
        ..plain(word, kind)
    }
}

fn arithmetic(word: u32) -> Operation {
    use Kind::*;
    #[rustfmt::skip]
    const BASIC: [Kind; 64] = [
        Add, And, Or, Xor, Sub, Andn, Orn, Xnor, Addx, Illegal, Umul, Smul, Subx, Illegal, Udiv, Sdiv,
        AddCc, AndCc, OrCc, XorCc, SubCc, AndnCc, OrnCc, XnorCc, AddxCc, Illegal, UmulCc, SmulCc, SubxCc, Illegal, UdivCc, SdivCc,
        TaddCc, TsubCc, TaddCcTv, TsubCcTv, MulsCc, Sll, Srl, Sra, Rdasr, Rdpsr, Rdwim, Rdtbr, Illegal, Illegal, Illegal, Illegal,
        Wrasr, Wrpsr, Wrwim, Wrtbr, FloatOperate, FloatCompare, Coprocessor, Coprocessor, Jmpl, Rett, Ticc, Flush, Save, Restore, Umac, Smac,
    ];
    let kind = BASIC[(word >> 19 & 63) as usize];
    match kind {
        Rdasr if field(word, 14) == 0 => into(word, Rdy),
        Wrasr if field(word, 25) == 0 => plain(word, Wry),
        Wrasr | Wrpsr | Wrwim | Wrtbr | Rett | Flush | Illegal | Coprocessor => plain(word, kind),
        Ticc => Operation {
            rd: (word >> 25 & 15) as u8,
            ..plain(word, Ticc)
        },
        FloatOperate | FloatCompare => Operation {
            rs2: field(word, 0),
            immediate: word >> 5 & 0x1ff,
            ..plain(word, kind)
        },
        _ => into(word, kind),
    }
}

fn memory(word: u32) -> Operation {
    use Kind::*;
    #[rustfmt::skip]
    const BASIC: [Kind; 64] = [
        Ld, Ldub, Lduh, Ldd, St, Stb, Sth, Std, Illegal, Ldsb, Ldsh, Illegal, Illegal, Ldstub, Illegal, Swap,
        Lda, Lduba, Lduha, Ldda, Sta, Stba, Stha, Stda, Illegal, Ldsba, Ldsha, Illegal, Illegal, Ldstuba, Illegal, Swapa,
        Ldf, Ldfsr, Illegal, Lddf, Stf, Stfsr, Stdfq, Stdf, Illegal, Illegal, Illegal, Illegal, Illegal, Illegal, Illegal, Illegal,
        Coprocessor, Coprocessor, Illegal, Coprocessor, Coprocessor, Coprocessor, Coprocessor, Coprocessor,
        Illegal, Illegal, Illegal, Illegal, Casa, Illegal, Illegal, Illegal,
    ];
    let kind = BASIC[(word >> 19 & 63) as usize];
    let alternate = |operation| {
        // An address space is no displacement: the immediate form is no instruction.
        if word >> 13 & 1 == 1 {
            plain(word, Illegal)
        } else {
            Operation {
                immediate: word >> 5 & 0xff,
                ..operation
            }
        }
    };
    match kind {
        Ld | Ldub | Lduh | Ldsb | Ldsh => into(word, kind),
        Lda | Lduba | Lduha | Ldsba | Ldsha => alternate(into(word, kind)),
        Ldda | Sta | Stba | Stha | Stda | Ldstuba | Swapa | Casa => alternate(plain(word, kind)),
        _ => plain(word, kind),
    }
}
