//! Integer arithmetic as "The SPARC Architecture Manual, Version 8" defines it, beside the simulator's.
//!
//! The model here is written from the definitions of appendix B, on wide numbers and bit by bit, and shares nothing with
//! the simulator; each operation is executed as an instruction.
//!
//! Invariant: result, condition codes, Y and trap of an instruction are all compared.

use metes_leon3::{Configuration, Image, Machine};
use metes_random::Random;
use proptest::prelude::*;

/// What an instruction begins with.
#[derive(Clone, Copy, Debug)]
struct Before {
    a: u32,
    b: u32,
    y: u32,
    /// N, Z, V, C from bit 3 on.
    icc: u32,
}

/// What it leaves: the destination, or the trap's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct After {
    result: Result<u32, u8>,
    icc: u32,
    y: u32,
}

const N: u32 = 8;
const Z: u32 = 4;
const V: u32 = 2;
const C: u32 = 1;

// Codes op3 of the instructions (appendix F, table F-3).
const ADD: u32 = 0x00;
const AND: u32 = 0x01;
const OR: u32 = 0x02;
const XOR: u32 = 0x03;
const SUB: u32 = 0x04;
const ANDN: u32 = 0x05;
const ORN: u32 = 0x06;
const XNOR: u32 = 0x07;
const ADDX: u32 = 0x08;
const UMUL: u32 = 0x0a;
const SMUL: u32 = 0x0b;
const SUBX: u32 = 0x0c;
const UDIV: u32 = 0x0e;
const SDIV: u32 = 0x0f;
/// Set in those above, the condition codes are written.
const CC: u32 = 0x10;
const TADDCC: u32 = 0x20;
const TSUBCC: u32 = 0x21;
const TADDCCTV: u32 = 0x22;
const TSUBCCTV: u32 = 0x23;
const MULSCC: u32 = 0x24;
const SLL: u32 = 0x25;
const SRL: u32 = 0x26;
const SRA: u32 = 0x27;

const TAG_OVERFLOW: u8 = 0x0a;
const DIVISION_BY_ZERO: u8 = 0x2a;

/// Every instruction with two operands and a result.
const ALL: [u32; 36] = [
    ADD,
    AND,
    OR,
    XOR,
    SUB,
    ANDN,
    ORN,
    XNOR,
    ADDX,
    UMUL,
    SMUL,
    SUBX,
    UDIV,
    SDIV,
    ADD | CC,
    AND | CC,
    OR | CC,
    XOR | CC,
    SUB | CC,
    ANDN | CC,
    ORN | CC,
    XNOR | CC,
    ADDX | CC,
    UMUL | CC,
    SMUL | CC,
    SUBX | CC,
    UDIV | CC,
    SDIV | CC,
    TADDCC,
    TSUBCC,
    TADDCCTV,
    TSUBCCTV,
    MULSCC,
    SLL,
    SRL,
    SRA,
];

/// The model: what appendix B says of the instruction.
fn model(op3: u32, before: Before) -> After {
    let Before { a, b, y, icc } = before;
    let unchanged = After {
        result: Ok(0),
        icc,
        y,
    };
    let result = |value: u32| After {
        result: Ok(value),
        ..unchanged
    };
    match op3 {
        TADDCC | TADDCCTV | TSUBCC | TSUBCCTV => {
            let (value, codes) = if matches!(op3, TADDCC | TADDCCTV) {
                sum(a, b, 0)
            } else {
                difference(a, b, 0)
            };
            // B.13, B.14: also if bit 1 or bit 0 of either operand is set.
            let tagged = a % 4 != 0 || b % 4 != 0;
            let codes = if tagged { codes | V } else { codes };
            if codes & V != 0 && matches!(op3, TADDCCTV | TSUBCCTV) {
                return After {
                    result: Err(TAG_OVERFLOW),
                    ..unchanged
                };
            }
            After {
                icc: codes,
                ..result(value)
            }
        }
        MULSCC => step(before),
        // B.12: the count is the least significant five bits.
        SLL => result((u64::from(a) * 2u64.pow(b % 32)) as u32),
        SRL => result((u64::from(a) / 2u64.pow(b % 32)) as u32),
        SRA => result(i64::from(a as i32).div_euclid(2i64.pow(b % 32)) as u32),
        _ => {
            let (after, codes) = plain(op3 & !CC, before);
            let written = op3 & CC != 0 && after.result.is_ok();
            After {
                icc: if written { codes } else { icc },
                ..after
            }
        }
    }
}

/// An instruction that has a form with condition codes, and these.
fn plain(op3: u32, before: Before) -> (After, u32) {
    let Before { a, b, y, icc } = before;
    let carry = icc & C;
    let with = |value: u32, codes: u32| {
        (
            After {
                result: Ok(value),
                icc,
                y,
            },
            codes,
        )
    };
    let bits = |of: fn(bool, bool) -> bool| {
        let value = (0..32).fold(0, |value, bit| {
            value | u32::from(of(a >> bit & 1 == 1, b >> bit & 1 == 1)) << bit
        });
        with(value, sign_and_zero(value))
    };
    match op3 {
        ADD | ADDX => {
            let (value, codes) = sum(a, b, if op3 == ADDX { carry } else { 0 });
            with(value, codes)
        }
        SUB | SUBX => {
            let (value, codes) = difference(a, b, if op3 == SUBX { carry } else { 0 });
            with(value, codes)
        }
        AND => bits(|a, b| a && b),
        OR => bits(|a, b| a || b),
        XOR => bits(|a, b| a != b),
        ANDN => bits(|a, b| a && !b),
        ORN => bits(|a, b| a || !b),
        XNOR => bits(|a, b| a == b),
        UMUL | SMUL => {
            let product = if op3 == SMUL {
                signed(a) * signed(b)
            } else {
                i128::from(a) * i128::from(b)
            };
            let product = product.rem_euclid(1 << 64) as u64;
            let (value, codes) = (product as u32, sign_and_zero(product as u32));
            let (after, codes) = with(value, codes);
            (
                After {
                    y: (product >> 32) as u32,
                    ..after
                },
                codes,
            )
        }
        UDIV | SDIV => quotient(op3 == SDIV, before),
        _ => unreachable!("{op3:#x} is none"),
    }
}

fn signed(word: u32) -> i128 {
    let word = i128::from(word);
    if word >= 1 << 31 {
        word - (1 << 32)
    } else {
        word
    }
}

fn sign_and_zero(value: u32) -> u32 {
    let negative = if signed(value) < 0 { N } else { 0 };
    negative | if value == 0 { Z } else { 0 }
}

/// Codes of a result whose true value is given, as a number without a sign and as one with it.
fn codes(value: u32, unsigned: i128, with_sign: i128) -> u32 {
    let carry = if (0..1 << 32).contains(&unsigned) {
        0
    } else {
        C
    };
    let overflow = if with_sign == signed(value) { 0 } else { V };
    sign_and_zero(value) | carry | overflow
}

fn sum(a: u32, b: u32, carry: u32) -> (u32, u32) {
    let exact = i128::from(a) + i128::from(b) + i128::from(carry);
    let value = exact.rem_euclid(1 << 32) as u32;
    (
        value,
        codes(value, exact, signed(a) + signed(b) + i128::from(carry)),
    )
}

fn difference(a: u32, b: u32, borrow: u32) -> (u32, u32) {
    let exact = i128::from(a) - i128::from(b) - i128::from(borrow);
    let value = exact.rem_euclid(1 << 32) as u32;
    (
        value,
        codes(value, exact, signed(a) - signed(b) - i128::from(borrow)),
    )
}

/// B.18: Y and rs1 together by rs2, towards zero; where 32 bits do not hold it, the nearest that they do, and V. Y stays
/// as it was (of the choice that the manual leaves; B.18, implementation note).
fn quotient(with_sign: bool, before: Before) -> (After, u32) {
    let Before { a, b, y, icc } = before;
    let unchanged = After {
        result: Err(DIVISION_BY_ZERO),
        icc,
        y,
    };
    if b == 0 {
        return (unchanged, 0);
    }
    let (exact, least, most) = if with_sign {
        let dividend = signed(y) * (1 << 32) + i128::from(a);
        (dividend / signed(b), -(1i128 << 31), (1i128 << 31) - 1)
    } else {
        let dividend = i128::from(y) * (1 << 32) + i128::from(a);
        (dividend / i128::from(b), 0, (1i128 << 32) - 1)
    };
    let held = exact.clamp(least, most);
    let value = held.rem_euclid(1 << 32) as u32;
    let overflow = if held == exact { 0 } else { V };
    (
        After {
            result: Ok(value),
            ..unchanged
        },
        sign_and_zero(value) | overflow,
    )
}

/// B.16, its steps as they are numbered there.
fn step(before: Before) -> After {
    let Before { a, b, y, icc } = before;
    // (1), (2): rs1 a place to the right, with N xor V in front.
    let front = (icc & N != 0) != (icc & V != 0);
    let shifted = a / 2 + if front { 1 << 31 } else { 0 };
    // (3): the multiplicand, if the last bit of Y is set.
    let addend = if y % 2 == 1 { b } else { 0 };
    // (4), (5): the sum and its codes.
    let (value, icc) = sum(shifted, addend, 0);
    // (6): Y a place to the right, with the last bit of the unshifted rs1 in front.
    let y = y / 2 + if a % 2 == 1 { 1 << 31 } else { 0 };
    After {
        result: Ok(value),
        icc,
        y,
    }
}

/// A machine that executes single instructions.
struct Bench {
    machine: Machine,
}

const BASE: u32 = 0x4000_0000;
const DESTINATION: u8 = 20;
const UNTOUCHED: u32 = 0xdead_beef;

impl Bench {
    fn new() -> Bench {
        let configuration = Configuration {
            memory: 4096,
            ..Configuration::default()
        };
        let image = Image::of_words(BASE, &[0x0100_0000]);
        let machine = Machine::with_image(&configuration, &image).expect("a machine");
        Bench { machine }
    }

    /// Executes `op3` on registers, or with `b` in the instruction where it is asked for.
    fn execute(&mut self, op3: u32, before: Before, immediate: bool) -> After {
        let second = if immediate {
            1 << 13 | before.b & 0x1fff
        } else {
            19
        };
        let word = 2 << 30 | u32::from(DESTINATION) << 25 | op3 << 19 | 18 << 14 | second;
        self.machine
            .bus
            .write_image(BASE, &word.to_be_bytes())
            .expect("memory");
        let core = self.machine.core_mut(0);
        core.registers.enter(0);
        for (register, value) in [(18, before.a), (19, before.b), (DESTINATION, UNTOUCHED)] {
            core.registers.set(register, value);
        }
        core.icc = before.icc;
        core.y = before.y;
        core.traps = true;
        core.tbr = 0;
        (core.pc, core.npc) = (BASE, BASE + 4);
        self.machine.run(1, &mut ());
        let core = &self.machine.cores()[0];
        let trap = (core.tbr >> 4 & 0xff) as u8;
        let (icc, y) = (core.icc, core.y);
        if trap != 0 {
            self.machine.core_mut(0).registers.enter(0);
            assert_eq!(
                self.machine.cores()[0].registers.get(DESTINATION),
                UNTOUCHED
            );
            return After {
                result: Err(trap),
                icc,
                y,
            };
        }
        assert_eq!(core.pc, BASE + 4);
        let result = Ok(core.registers.get(DESTINATION));
        After { result, icc, y }
    }
}

/// The operand that 13 bits of an instruction stand for.
fn extended(b: u32) -> u32 {
    ((b << 19) as i32 >> 19) as u32
}

/// What a row of the table says: the instruction, operands, Y and codes before; result, codes and Y after.
type Row = (u32, u32, u32, u32, u32, Result<u32, u8>, u32, u32);

/// Worked by hand from the definitions.
const EXAMPLES: &[Row] = &[
    (UMUL, 0xffff_ffff, 0xffff_ffff, 7, N, Ok(1), N, 0xffff_fffe),
    (SMUL, 0xffff_ffff, 0xffff_ffff, 7, N, Ok(1), N, 0),
    (SMUL | CC, 0x8000_0000, 2, 7, V | C, Ok(0), Z, 0xffff_ffff),
    (UMUL | CC, 0x8000_0000, 3, 7, V | C, Ok(0x8000_0000), N, 1),
    (UDIV, 0, 2, 1, 0, Ok(0x8000_0000), 0, 1),
    (UDIV | CC, 0, 2, 2, C, Ok(0xffff_ffff), N | V, 2),
    (UDIV | CC, 7, 2, 0, C, Ok(3), 0, 0),
    (
        SDIV | CC,
        0xffff_fff9,
        2,
        0xffff_ffff,
        C,
        Ok(0xffff_fffd),
        N,
        0xffff_ffff,
    ),
    (
        SDIV | CC,
        0,
        0xffff_ffff,
        0x8000_0000,
        0,
        Ok(0x7fff_ffff),
        V,
        0x8000_0000,
    ),
    (SDIV | CC, 0x8000_0000, 1, 0, 0, Ok(0x7fff_ffff), V, 0),
    (
        SDIV | CC,
        0x8000_0000,
        0xffff_ffff,
        0,
        0,
        Ok(0x8000_0000),
        N,
        0,
    ),
    (
        SDIV | CC,
        0x8000_0001,
        0xffff_ffff,
        0,
        0,
        Ok(0x8000_0000),
        N | V,
        0,
    ),
    (UDIV, 1, 0, 0, N | Z, Err(DIVISION_BY_ZERO), N | Z, 0),
    (SDIV | CC, 1, 0, 5, C, Err(DIVISION_BY_ZERO), C, 5),
    (MULSCC, 6, 5, 1, 0, Ok(8), 0, 0),
    (MULSCC, 7, 5, 2, N, Ok(0x8000_0003), N, 0x8000_0001),
    (MULSCC, 6, 0x8000_0000, 1, V, Ok(3), V | C, 0),
    (TADDCC, 4, 8, 0, C, Ok(12), 0, 0),
    (TADDCC, 5, 8, 0, 0, Ok(13), V, 0),
    (TADDCC, 0x7fff_fffc, 4, 0, 0, Ok(0x8000_0000), N | V, 0),
    (TADDCCTV, 4, 2, 0, Z, Err(TAG_OVERFLOW), Z, 0),
    (TADDCCTV, 0xffff_fffc, 4, 0, 0, Ok(0), Z | C, 0),
    (TSUBCC, 4, 8, 0, 0, Ok(0xffff_fffc), N | C, 0),
    (TSUBCCTV, 0x8000_0000, 4, 0, N, Err(TAG_OVERFLOW), N, 0),
    (ADDX | CC, 0xffff_ffff, 0, 0, C, Ok(0), Z | C, 0),
    (ADDX, 1, 1, 0, C | N, Ok(3), C | N, 0),
    (ADD | CC, 0x7fff_ffff, 1, 0, 0, Ok(0x8000_0000), N | V, 0),
    (SUBX | CC, 0, 0xffff_ffff, 0, C, Ok(0), Z | C, 0),
    (SUBX, 0, 0, 0, C, Ok(0xffff_ffff), C, 0),
    (SUB | CC, 0x8000_0000, 1, 0, 0, Ok(0x7fff_ffff), V, 0),
    (SLL, 1, 31, 0, 15, Ok(0x8000_0000), 15, 0),
    (SLL, 1, 32, 0, 0, Ok(1), 0, 0),
    (SRL, 0x8000_0000, 63, 0, 0, Ok(1), 0, 0),
    (SRA, 0x8000_0000, 31, 0, 0, Ok(0xffff_ffff), 0, 0),
    (ORN | CC, 0, 0xffff_ffff, 0, 15, Ok(0), Z, 0),
];

#[test]
fn the_examples_hold() {
    let mut bench = Bench::new();
    for &(op3, a, b, y, icc, result, icc_after, y_after) in EXAMPLES {
        let before = Before { a, b, y, icc };
        let after = After {
            result,
            icc: icc_after,
            y: y_after,
        };
        assert_eq!(
            model(op3, before),
            after,
            "the model of {op3:#x}, {before:x?}"
        );
        assert_eq!(
            bench.execute(op3, before, false),
            after,
            "{op3:#x}, {before:x?}"
        );
    }
}

/// Operands at the edges, each with each, under every value of the codes that it may matter for.
#[test]
fn edges_are_the_models() {
    const EDGES: [u32; 12] = [
        0,
        1,
        2,
        3,
        31,
        32,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_fffc,
        0xffff_fffe,
        0xffff_ffff,
    ];
    let mut bench = Bench::new();
    for op3 in ALL {
        for a in EDGES {
            for b in EDGES {
                for (y, icc) in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]
                    .into_iter()
                    .zip([0, C, N, N | V, V | C])
                {
                    let before = Before { a, b, y, icc };
                    assert_eq!(
                        bench.execute(op3, before, false),
                        model(op3, before),
                        "{op3:#x}, {before:x?}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any operands, codes and Y, in registers and in the instruction, for every instruction.
    #[test]
    fn any_operands_are_the_models(seed in any::<u64>()) {
        let mut bench = Bench::new();
        let mut random = Random::new(seed);
        for op3 in ALL {
            let [a, b, y] = [(); 3].map(|()| {
                let word = random.next() as u32;
                // Small ones, too, so that quotients fit.
                if random.below(3) == 0 { (word as i32 >> random.below(32)) as u32 } else { word }
            });
            let before = Before { a, b, y, icc: random.below(16) as u32 };
            prop_assert_eq!(bench.execute(op3, before, false), model(op3, before), "{:#x}, {:x?}", op3, before);
            let immediate = Before { b: extended(b), ..before };
            prop_assert_eq!(bench.execute(op3, immediate, true), model(op3, immediate), "{:#x}, {:x?}", op3, immediate);
        }
    }
}
