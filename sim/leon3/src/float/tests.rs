//! The state of the unit, and what operations do to it, by examples.

use super::format::{DIVISION, OVERFLOW};
use super::*;

/// A unit that rounds in a direction and has operands in %f0 and %f2, each a format.
pub(super) fn unit<F: Format>(direction: u32, first: u64, second: u64) -> Float {
    let mut float = Float::new();
    float.load_fsr(direction << 30);
    F::write(&mut float.registers, 0, first);
    F::write(&mut float.registers, 2, second);
    float
}

/// Executes a single operation on %f0 and %f2 and gives %f4.
fn single(opf: u32, first: u32, second: u32) -> (u32, u32) {
    let mut float = unit::<Single>(0, first.into(), second.into());
    float.operate(opf, 4, 0, 2).expect("no trap is enabled");
    (float.registers[4], float.fsr & CURRENT)
}

fn double(opf: u32, first: u64, second: u64) -> (u64, u32) {
    let mut float = unit::<Double>(0, first, second);
    float.operate(opf, 4, 0, 2).expect("no trap is enabled");
    (Double::read(&float.registers, 4), float.fsr & CURRENT)
}

#[test]
fn nans_propagate_by_appendix_n() {
    const ONE: u32 = 0x3f80_0000;
    const QUIET: [u32; 2] = [0x7fc0_0001, 0xffc0_0002];
    const SIGNALLING: [u32; 2] = [0x7f80_0003, 0xff80_0004];
    for opf in [0x41, 0x45, 0x49, 0x4d] {
        assert_eq!(single(opf, ONE, QUIET[1]), (QUIET[1], 0), "{opf:#x}");
        assert_eq!(single(opf, QUIET[0], ONE), (QUIET[0], 0));
        assert_eq!(single(opf, QUIET[0], QUIET[1]), (QUIET[1], 0));
        assert_eq!(single(opf, ONE, SIGNALLING[1]), (0xffc0_0004, INVALID));
        assert_eq!(single(opf, SIGNALLING[0], ONE), (0x7fc0_0003, INVALID));
        assert_eq!(single(opf, SIGNALLING[0], QUIET[1]), (0x7fc0_0003, INVALID));
        assert_eq!(single(opf, QUIET[0], SIGNALLING[1]), (0xffc0_0004, INVALID));
        let both = single(opf, SIGNALLING[0], SIGNALLING[1]);
        assert_eq!(both, (0xffc0_0004, INVALID));
    }
    assert_eq!(single(0x29, 0, SIGNALLING[1]), (0xffc0_0004, INVALID));
    assert_eq!(
        double(0x2a, 0, 0x7ff0 << 48 | 5),
        (0x7ff8 << 48 | 5, INVALID)
    );
}

#[test]
fn no_number_is_all_ones_but_the_sign() {
    const INFINITY: u32 = 0x7f80_0000;
    let no_number = (0x7fff_ffff, INVALID);
    assert_eq!(single(0x41, INFINITY, INFINITY | 1 << 31), no_number);
    assert_eq!(single(0x45, INFINITY, INFINITY), no_number);
    assert_eq!(single(0x49, INFINITY, 0), no_number);
    assert_eq!(single(0x4d, INFINITY, INFINITY), no_number);
    assert_eq!(single(0x4d, 0, 1 << 31), no_number);
    assert_eq!(single(0x29, 0, 0xbf80_0000), no_number);
    let no_number = (u64::MAX >> 1, INVALID);
    assert_eq!(double(0x2a, 0, (-1f64).to_bits()), no_number);
    assert_eq!(double(0x4e, 0, 0), no_number);
}

#[test]
fn nans_keep_their_high_bits_in_another_format() {
    let mut float = Float::new();
    float.registers[2] = 0xffa5_5aa5;
    float.operate(0xc9, 4, 0, 2).expect("no trap");
    assert_eq!(Double::read(&float.registers, 4), 0xfffc_ab54_a000_0000);
    assert_eq!(float.fsr & CURRENT, INVALID);
    float.registers[2..4].copy_from_slice(&[0x7ff4_ab54, 0xbfff_ffff]);
    float.operate(0xc6, 4, 0, 2).expect("no trap");
    assert_eq!(float.registers[4], 0x7fe5_5aa5);
    float.registers[0] = 0x7f80_0001;
    float.registers[2] = 0xffc0_0001;
    float.operate(0x69, 4, 0, 2).expect("no trap");
    assert_eq!(Double::read(&float.registers, 4), 0x7ff8_0000_2000_0000);
}

#[test]
fn integers_end_at_the_largest() {
    for (bits, expected) in [
        (0x4f00_0000, (0x7fff_ffff, INVALID)),
        (0xcf00_0000, (0x8000_0000, 0)),
        (0xcf00_0001, (0x8000_0000, INVALID)),
        (0x7fc0_0000, (0x7fff_ffff, INVALID)),
        (0xffc0_0000, (0x8000_0000, INVALID)),
        (0xff80_0000, (0x8000_0000, INVALID)),
        (0xbfc0_0000, (0xffff_ffff, INEXACT)),
        (0x0000_0001, (0, INEXACT)),
        (0x8000_0000, (0, 0)),
    ] {
        assert_eq!(single(0xd1, 0, bits), expected, "{bits:#x}");
    }
}

#[test]
fn moves_raise_nothing() {
    for (opf, expected) in [
        (0x01, 0xff80_0001),
        (0x05, 0x7f80_0001),
        (0x09, 0x7f80_0001),
    ] {
        let mut float = unit::<Single>(0, 0, 0xff80_0001);
        float.load_fsr(0x1f << 23 | 3 << 10 | 0x15 << 5 | 0x1f);
        float.operate(opf, 31, 0, 2).expect("no exception");
        assert_eq!(float.registers[31], expected);
        // The current exceptions are those of the last operation: none.
        let expected = 0x1f << 23 | VERSION << 17 | 3 << 10 | 0x15 << 5;
        assert_eq!(float.store_fsr(), expected);
    }
}

#[test]
fn a_trap_leaves_all_as_it_was_and_says_one_cause() {
    // 2^−100 squared: tiny and inexact; the largest number squared: beyond all.
    const SMALL: u32 = 0x0d80_0000;
    const LARGE: u32 = 0x7f7f_ffff;
    const LEAST: u32 = 0x0080_0000;
    const HALF: u32 = 0x3f00_0000;
    for (operands, enabled, expected) in [
        ((SMALL, SMALL), UNDERFLOW, Some(UNDERFLOW)),
        ((SMALL, SMALL), UNDERFLOW | INEXACT, Some(UNDERFLOW)),
        ((SMALL, SMALL), INEXACT, Some(INEXACT)),
        ((SMALL, SMALL), !(UNDERFLOW | INEXACT) & 0x1f, None),
        ((LARGE, LARGE), OVERFLOW | INEXACT, Some(OVERFLOW)),
        ((LARGE, LARGE), INEXACT, Some(INEXACT)),
        ((LARGE, LARGE), UNDERFLOW, None),
        // Tiny and exact: underflow for a trap alone (IEEE 754-1985, 7.4).
        ((LEAST, HALF), UNDERFLOW, Some(UNDERFLOW)),
        ((0x7f80_0000, 0), INVALID, Some(INVALID)),
    ] {
        let mut float = unit::<Single>(0, operands.0.into(), operands.1.into());
        float.load_fsr(enabled << 23 | 2 << 10 | 0x0a << 5 | 0x1f);
        float.registers[4] = 7;
        let before = float.clone();
        let result = float.operate(0x49, 4, 0, 2);
        let Some(cause) = expected else {
            assert_eq!(result, Ok(()));
            assert_eq!(float.fsr >> 5 & CURRENT, 0x0a | float.fsr & CURRENT);
            continue;
        };
        assert_eq!(result, Err(FloatException::Ieee754));
        assert_eq!(float.registers, before.registers);
        let expected = before.fsr & !CURRENT | 1 << 14 | cause;
        assert_eq!(float.fsr, expected, "{operands:x?} {enabled:#x}");
        // The next one that ends clears the kind of trap.
        float.operate(0x01, 4, 0, 4).expect("no exception");
        assert_eq!(float.fsr, before.fsr & !CURRENT);
    }
    assert_eq!(single(0x49, LEAST, HALF), (LEAST / 2, 0));
}

#[test]
fn a_result_is_tiny_before_it_is_rounded() {
    // (1 − 2^−24) · 2^−126 is halfway and rounds to the smallest normal number.
    let tiny = single(0x49, 0x3f7f_ffff, 0x0080_0000);
    assert_eq!(tiny, (0x0080_0000, UNDERFLOW | INEXACT));
}

#[test]
fn division_by_zero_is_not_invalid() {
    assert_eq!(single(0x4d, 0xbf80_0000, 0), (0xff80_0000, DIVISION));
    assert_eq!(single(0x4d, 0x7f80_0000, 0), (0x7f80_0000, 0));
    let mut float = unit::<Double>(0, 1f64.to_bits(), 0);
    float.load_fsr(DIVISION << 23);
    assert_eq!(float.operate(0x4e, 4, 0, 2), Err(FloatException::Ieee754));
    assert_eq!(float.fsr & (TRAP_TYPE | CURRENT), 1 << 14 | DIVISION);
}

#[test]
fn non_standard_mode_takes_and_gives_zeros() {
    let standard = single(0x41, 0x8000_0001, 0);
    assert_eq!(standard, (0x8000_0001, 0));
    let mut float = unit::<Single>(0, 0x8000_0001, 0x3f80_0000);
    float.load_fsr(NONSTANDARD);
    float.operate(0x49, 4, 0, 2).expect("no trap");
    assert_eq!((float.registers[4], float.fsr & CURRENT), (1 << 31, 0));
    float.registers[0] = 0x8080_0000;
    float.registers[2] = 0x3f00_0000;
    float.operate(0x49, 4, 0, 2).expect("no trap");
    let expected = (1 << 31, UNDERFLOW | INEXACT);
    assert_eq!((float.registers[4], float.fsr & CURRENT), expected);
    // Moves and compares see what is there.
    float.registers[0] = 1;
    float.operate(0x05, 4, 0, 0).expect("no trap");
    assert_eq!(float.registers[4], 0x8000_0001);
    float.compare(0x51, 4, 0).expect("no trap");
    assert_eq!(float.fsr >> 10 & 3, 1);
}

#[test]
fn doubles_are_in_even_registers() {
    let mut float = unit::<Double>(0, 1.5f64.to_bits(), 0.25f64.to_bits());
    float.operate(0x42, 37, 33, 3).expect("no trap");
    assert_eq!(Double::read(&float.registers, 4), 1.75f64.to_bits());
    assert_eq!(float.registers[4], (1.75f64.to_bits() >> 32) as u32);
    assert_eq!(float.compare(0x52, 31, usize::MAX), Ok(()));
}

#[test]
fn other_codes_are_unimplemented() {
    const SINGLES: [u32; 13] = [
        0x01, 0x05, 0x09, 0x29, 0x41, 0x45, 0x49, 0x4d, 0x69, 0xc4, 0xc8, 0xc9, 0xd1,
    ];
    const DOUBLES: [u32; 7] = [0x2a, 0x42, 0x46, 0x4a, 0x4e, 0xc6, 0xd2];
    for opf in 0..=0x3ff {
        let mut float = Float::new();
        float.load_fsr(1 << 10 | 0x1f);
        let before = float.fsr;
        let result = float.clone().operate(opf, 4, 0, 2);
        // Zero over zero is invalid, but no trap is enabled.
        let is_known = SINGLES.contains(&opf) || DOUBLES.contains(&opf);
        assert_eq!(result.is_ok(), is_known, "{opf:#x}");
        let result = float.compare(opf, 0, 2);
        let is_known = [0x51, 0x52, 0x55, 0x56].contains(&opf);
        assert_eq!(result.is_ok(), is_known, "{opf:#x}");
        if !is_known {
            assert_eq!(result, Err(FloatException::Unimplemented));
            assert_eq!(float.fsr, before | 3 << 14);
        }
    }
}

#[test]
fn the_state_register_keeps_what_is_not_written() {
    let mut float = Float::new();
    assert_eq!(float.store_fsr() >> 17 & 7, VERSION);
    float.load_fsr(u32::MAX);
    assert_eq!(float.store_fsr(), LOADED | VERSION << 17);
    assert!(float.operate(0x43, 0, 0, 0).is_err());
    float.load_fsr(0);
    assert_eq!(float.store_fsr(), VERSION << 17 | 3 << 14);
}

#[test]
fn branches_ask_for_relations() {
    // Equal, less, greater, unordered: what each condition of SPARC V8, table B.22, asks for.
    let names: [(&str, &str); 16] = [
        ("n", ""),
        ("ne", "lgu"),
        ("lg", "lg"),
        ("ul", "lu"),
        ("l", "l"),
        ("ug", "gu"),
        ("g", "g"),
        ("u", "u"),
        ("a", "elgu"),
        ("e", "e"),
        ("ue", "eu"),
        ("ge", "eg"),
        ("uge", "egu"),
        ("le", "el"),
        ("ule", "elu"),
        ("o", "elg"),
    ];
    let operands = [
        ('e', 0.0f32, -0.0f32),
        ('l', -1.0, 1e-40),
        ('g', f32::INFINITY, 3.0),
        ('u', 1.0, f32::NAN),
    ];
    for (relation, first, second) in operands {
        let mut float = unit::<Single>(0, first.to_bits().into(), second.to_bits().into());
        float.compare(0x51, 0, 2).expect("no trap is enabled");
        for (condition, (name, asked)) in names.iter().enumerate() {
            let taken = float.taken(condition as u32);
            assert_eq!(taken, asked.contains(relation), "fb{name} of {relation}");
        }
    }
}

#[test]
fn compares_signal_what_they_are_asked_to() {
    const QUIET: u32 = 0x7fc0_0000;
    const SIGNALLING: u32 = 0x7f80_0001;
    for (opf, operand, expected) in [
        (0x51, QUIET, 0),
        (0x55, QUIET, INVALID),
        (0x51, SIGNALLING, INVALID),
        (0x55, SIGNALLING, INVALID),
    ] {
        let mut float = unit::<Single>(0, operand.into(), 0);
        for (rs1, rs2) in [(0, 2), (2, 0)] {
            float.load_fsr(0);
            float.compare(opf, rs1, rs2).expect("no trap is enabled");
            let expected_fsr = VERSION << 17 | 3 << 10 | expected << 5 | expected;
            assert_eq!(float.fsr, expected_fsr, "{opf:#x} {operand:#x}");
        }
        float.load_fsr(INVALID << 23 | 1 << 10);
        let result = float.compare(opf, 2, 0);
        let condition = if expected == 0 { 3 } else { 1 };
        assert_eq!(result.is_err(), expected != 0);
        assert_eq!(float.fsr >> 10 & 3, condition);
    }
    let mut float = unit::<Double>(0, f64::NAN.to_bits(), 0);
    float.compare(0x52, 0, 2).expect("no trap is enabled");
    assert_eq!(float.fsr & CURRENT, 0);
    float.compare(0x56, 0, 2).expect("no trap is enabled");
    assert_eq!(float.fsr & CURRENT, INVALID);
}

#[test]
fn it_can_be_saved() {
    let mut float = unit::<Double>(2, 1f64.to_bits(), 3f64.to_bits());
    float.operate(0x4e, 4, 0, 2).expect("no trap is enabled");
    let text = serde_json::to_string(&float).expect("JSON");
    assert_eq!(serde_json::from_str::<Float>(&text).ok(), Some(float));
}
