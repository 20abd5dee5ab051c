//! Words as text, in the syntax of GNU's tools: `ld [ %g1 + 4 ], %o0`.
//!
//! Invariant: every word has a text; one that is no instruction of the machine is `.word 0x...`.

use crate::decode::{Kind, Operation, SINK, decode};

/// How operands are written.
#[derive(Clone, Copy)]
enum Form {
    /// `rs1, second, rd`.
    Three,
    /// `second, rd` onto `rs1`, without a first of zero.
    Write(&'static str),
    /// `[ address ], rd`.
    Load,
    /// `rd, [ address ]`.
    Store,
    /// The same with an address space.
    LoadSpace,
    StoreSpace,
}

const CONDITIONS: [&str; 16] = [
    "n", "e", "le", "l", "leu", "cs", "neg", "vs", "a", "ne", "g", "ge", "gu", "cc", "pos", "vc",
];
const FLOAT_CONDITIONS: [&str; 16] = [
    "n", "ne", "lg", "ul", "l", "ug", "g", "u", "a", "e", "ue", "ge", "uge", "le", "ule", "o",
];

/// `word` at address `pc` as text.
pub fn disassemble(word: u32, pc: u32) -> String {
    let it = decode(word);
    let rd = register(if it.rd == SINK { 0 } else { it.rd });
    text(word, pc, it, &rd).unwrap_or_else(|| format!(".word {word:#010x}"))
}

fn text(word: u32, pc: u32, it: Operation, rd: &str) -> Option<String> {
    use Kind::*;
    let target = || format!("{:#x}", pc.wrapping_add(it.immediate));
    let annul = if it.rs1 == 1 { ",a" } else { "" };
    let condition = usize::from(it.rd & 15);
    Some(match it.kind {
        Unimp => format!("unimp {:#x}", word & 0x3f_ffff),
        Call => format!("call {}", target()),
        Branch if condition == 8 => format!("b{annul} {}", target()),
        Branch => format!("b{}{annul} {}", CONDITIONS[condition], target()),
        FloatBranch if condition == 8 => format!("fb{annul} {}", target()),
        FloatBranch => format!("fb{}{annul} {}", FLOAT_CONDITIONS[condition], target()),
        Sethi if word == 0x0100_0000 => "nop".to_owned(),
        Sethi => format!("sethi %hi({:#x}), {rd}", it.immediate),
        Rdy => format!("rd %y, {rd}"),
        Rdasr if it.rs1 == 15 && rd == "%g0" => "stbar".to_owned(),
        Rdasr => format!("rd %asr{}, {rd}", it.rs1),
        Rdpsr => format!("rd %psr, {rd}"),
        Rdwim => format!("rd %wim, {rd}"),
        Rdtbr => format!("rd %tbr, {rd}"),
        Wrasr if it.rs1 == 0 => format!("wr {}, %asr{}", alone(word, it), it.rd),
        Wrasr => format!("wr {}, %asr{}", operands(word, it), it.rd),
        Jmpl => jump(word, it, rd),
        Rett => format!("rett {}", address(word, it)),
        Flush => format!("flush {}", address(word, it)),
        Ticc if it.rs1 == 0 && word >> 13 & 1 == 1 => {
            format!("t{} {}", CONDITIONS[condition], second(word, it))
        }
        Ticc => format!("t{} {}", CONDITIONS[condition], address(word, it)),
        Casa => {
            let (first, second) = (register(it.rs1), register(it.rs2));
            format!("casa [ {first} ] ({}), {second}, {rd}", it.immediate)
        }
        Ldf | Lddf => format!(
            "{} [ {} ], %f{}",
            if it.kind == Ldf { "ld" } else { "ldd" },
            address(word, it),
            it.rd
        ),
        Stf | Stdf => format!(
            "{} %f{}, [ {} ]",
            if it.kind == Stf { "st" } else { "std" },
            it.rd,
            address(word, it)
        ),
        Ldfsr => format!("ld [ {} ], %fsr", address(word, it)),
        Stfsr => format!("st %fsr, [ {} ]", address(word, it)),
        Stdfq => format!("std %fq, [ {} ]", address(word, it)),
        FloatOperate | FloatCompare => float(it)?,
        Undecoded | Illegal | Coprocessor => return None,
        kind => plain(word, it, kind, rd)?,
    })
}

/// Instructions that differ in their names alone.
fn plain(word: u32, it: Operation, kind: Kind, rd: &str) -> Option<String> {
    let (name, form) = named(kind)?;
    let space = it.immediate;
    Some(match form {
        Form::Three if kind == Kind::SubCc && rd == "%g0" => {
            format!("cmp {}", operands(word, it))
        }
        Form::Three if kind == Kind::AndCc && rd == "%g0" => {
            format!("btst {}, {}", second(word, it), register(it.rs1))
        }
        Form::Three if kind == Kind::Or && it.rs1 == 0 => match second(word, it).as_str() {
            "%g0" | "0" => format!("clr {rd}"),
            second => format!("mov {second}, {rd}"),
        },
        Form::Three if matches!(kind, Kind::Save | Kind::Restore) && word & 0x3e07_ffff == 0 => {
            name.to_owned()
        }
        Form::Three => format!("{name} {}, {rd}", operands(word, it)),
        Form::Write(to) if it.rs1 == 0 => format!("{name} {}, {to}", alone(word, it)),
        Form::Write(to) => format!("{name} {}, {to}", operands(word, it)),
        Form::Load => format!("{name} [ {} ], {rd}", address(word, it)),
        Form::Store if it.rd == 0 && name != "std" => {
            format!("clr{} [ {} ]", &name[2..], address(word, it))
        }
        Form::Store => format!("{name} {rd}, [ {} ]", address(word, it)),
        Form::LoadSpace => format!("{name} [ {} ] ({space}), {rd}", address(word, it)),
        Form::StoreSpace => format!("{name} {rd}, [ {} ] ({space})", address(word, it)),
    })
}

fn named(kind: Kind) -> Option<(&'static str, Form)> {
    use Form::*;
    use Kind::*;
    #[rustfmt::skip]
    const NAMES: &[(Kind, &str, Form)] = &[
        (Add, "add", Three), (And, "and", Three), (Or, "or", Three), (Xor, "xor", Three), (Sub, "sub", Three),
        (Andn, "andn", Three), (Orn, "orn", Three), (Xnor, "xnor", Three), (Addx, "addx", Three), (Umul, "umul", Three),
        (Smul, "smul", Three), (Subx, "subx", Three), (Udiv, "udiv", Three), (Sdiv, "sdiv", Three),
        (AddCc, "addcc", Three), (AndCc, "andcc", Three), (OrCc, "orcc", Three), (XorCc, "xorcc", Three),
        (SubCc, "subcc", Three), (AndnCc, "andncc", Three), (OrnCc, "orncc", Three), (XnorCc, "xnorcc", Three),
        (AddxCc, "addxcc", Three), (UmulCc, "umulcc", Three), (SmulCc, "smulcc", Three), (SubxCc, "subxcc", Three),
        (UdivCc, "udivcc", Three), (SdivCc, "sdivcc", Three), (TaddCc, "taddcc", Three), (TsubCc, "tsubcc", Three),
        (TaddCcTv, "taddcctv", Three), (TsubCcTv, "tsubcctv", Three), (MulsCc, "mulscc", Three), (Sll, "sll", Three),
        (Srl, "srl", Three), (Sra, "sra", Three), (Save, "save", Three), (Restore, "restore", Three),
        (Umac, "umac", Three), (Smac, "smac", Three),
        (Wry, "wr", Write("%y")), (Wrpsr, "wr", Write("%psr")), (Wrwim, "wr", Write("%wim")), (Wrtbr, "wr", Write("%tbr")),
        (Ld, "ld", Load), (Ldub, "ldub", Load), (Lduh, "lduh", Load), (Ldd, "ldd", Load), (Ldsb, "ldsb", Load),
        (Ldsh, "ldsh", Load), (Ldstub, "ldstub", Load), (Swap, "swap", Load),
        (St, "st", Store), (Stb, "stb", Store), (Sth, "sth", Store), (Std, "std", Store),
        (Lda, "lda", LoadSpace), (Lduba, "lduba", LoadSpace), (Lduha, "lduha", LoadSpace), (Ldda, "ldda", LoadSpace),
        (Ldsba, "ldsba", LoadSpace), (Ldsha, "ldsha", LoadSpace), (Ldstuba, "ldstuba", LoadSpace), (Swapa, "swapa", LoadSpace),
        (Sta, "sta", StoreSpace), (Stba, "stba", StoreSpace), (Stha, "stha", StoreSpace), (Stda, "stda", StoreSpace),
    ];
    let found = NAMES.iter().find(|(of, ..)| *of == kind);
    found.map(|&(_, name, form)| (name, form))
}

fn jump(word: u32, it: Operation, rd: &str) -> String {
    match (word, rd) {
        (0x81c7_e008, _) => "ret".to_owned(),
        (0x81c3_e008, _) => "retl".to_owned(),
        (_, "%g0") => format!("jmp {}", address(word, it)),
        (_, "%o7") => format!("call {}", address(word, it)),
        _ => format!("jmpl {}, {rd}", address(word, it)),
    }
}

fn float(it: Operation) -> Option<String> {
    #[rustfmt::skip]
    const OPERATIONS: &[(u32, &str, bool)] = &[
        (0x01, "fmovs", false), (0x05, "fnegs", false), (0x09, "fabss", false), (0x29, "fsqrts", false),
        (0x2a, "fsqrtd", false), (0x41, "fadds", true), (0x42, "faddd", true), (0x45, "fsubs", true), (0x46, "fsubd", true),
        (0x49, "fmuls", true), (0x4a, "fmuld", true), (0x4d, "fdivs", true), (0x4e, "fdivd", true), (0x69, "fsmuld", true),
        (0xc4, "fitos", false), (0xc6, "fdtos", false), (0xc8, "fitod", false), (0xc9, "fstod", false),
        (0xd1, "fstoi", false), (0xd2, "fdtoi", false),
    ];
    const COMPARES: &[(u32, &str, bool)] = &[
        (0x51, "fcmps", true),
        (0x52, "fcmpd", true),
        (0x55, "fcmpes", true),
        (0x56, "fcmped", true),
    ];
    let compares = it.kind == Kind::FloatCompare;
    let table = if compares { COMPARES } else { OPERATIONS };
    let &(_, name, two) = table.iter().find(|(opf, ..)| *opf == it.immediate)?;
    let first = if two {
        format!("%f{}, ", it.rs1)
    } else {
        String::new()
    };
    let to = match it.rd {
        _ if !compares => format!(", %f{}", it.rd & 31),
        0 | SINK => String::new(),
        _ => return None,
    };
    Some(format!("{name} {first}%f{}{to}", it.rs2))
}

fn register(number: u8) -> String {
    match number {
        14 => "%sp".to_owned(),
        30 => "%fp".to_owned(),
        _ => format!(
            "%{}{}",
            ["g", "o", "l", "i"][usize::from(number >> 3 & 3)],
            number & 7
        ),
    }
}

/// A small immediate in decimal, as all below zero are.
fn immediate(value: u32) -> String {
    match value as i32 {
        value @ ..=9 => value.to_string(),
        value => format!("{value:#x}"),
    }
}

fn second(word: u32, it: Operation) -> String {
    if word >> 13 & 1 == 1 {
        immediate(it.immediate)
    } else {
        register(it.rs2)
    }
}

/// The second operand where the first is `%g0`.
fn alone(word: u32, it: Operation) -> String {
    if it.rs2 == 0 && it.immediate == 0 {
        register(0)
    } else {
        second(word, it)
    }
}

fn operands(word: u32, it: Operation) -> String {
    format!("{}, {}", register(it.rs1), second(word, it))
}

/// `rs1 + second`, of which a zero is left away.
fn address(word: u32, it: Operation) -> String {
    let space = word >> 30 == 3 && word >> 23 & 3 == 1;
    let by_register = space || word >> 13 & 1 == 0;
    match (by_register, it.rs1, it.rs2, it.immediate) {
        (true, first, 0, _) => register(first),
        (true, first, other, _) => format!("{} + {}", register(first), register(other)),
        (false, 0, _, value) if value != 0 => immediate(value),
        (false, first, _, 0) => register(first),
        (false, first, _, value) => format!("{} + {}", register(first), immediate(value)),
    }
}
