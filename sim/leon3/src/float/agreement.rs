//! The unit against the naive model and against `rustc_apfloat`, on operands where much goes wrong.
//!
//! Invariant: what one of them does not say, the other one does.

use metes_random::Random;
use rustc_apfloat::ieee::{Double as ApDouble, Single as ApSingle};
use rustc_apfloat::{Float as ApFloat, FloatConvert, Round, Status, StatusAnd};

use super::format::{DIVISION, OVERFLOW};
use super::naive::{self, Fields, Fraction};
use super::tests::unit;
use super::*;

/// Operands a test draws for each operation.
const DRAWS: u64 = if cfg!(debug_assertions) {
    50_000
} else {
    1_000_000
};

const DIRECTIONS: [Direction; 4] = [
    Direction::Nearest,
    Direction::Zero,
    Direction::Up,
    Direction::Down,
];

/// Bits of a format where much goes wrong: next to powers of two, with few bits, at both ends of the
/// exponents, NaNs; or any bits.
fn draw<F: Format>(random: &mut Random) -> u64 {
    let fields = 1 << F::EXPONENT;
    let field = match random.below(5) {
        0 => random.below(3),
        1 => fields - 1 - random.below(3),
        2 => (fields / 2 - 4) + random.below(8),
        3 => (fields / 2 - 30) + random.below(60),
        _ => random.below(fields),
    };
    let any = random.next() & (F::HIDDEN - 1);
    let fraction = match random.below(6) {
        0 => 0,
        1 => random.below(4),
        2 => F::HIDDEN - 1 - random.below(4),
        3 => any & any << random.below(F::FRACTION.into()),
        4 => any >> random.below(F::FRACTION.into()) << random.below(F::FRACTION.into()),
        _ => any,
    };
    F::signed(
        random.below(2) != 0,
        field << F::FRACTION | fraction & (F::HIDDEN - 1),
    )
}

/// A second operand that the first one is something to: near to it, so that much cancels; half a
/// unit of it; such that product or quotient is at an end of the exponents; or any.
fn draw_second<F: Format>(random: &mut Random, first: u64) -> u64 {
    let fields = 1 << F::EXPONENT;
    let field = F::magnitude(first) >> F::FRACTION;
    let near = |random: &mut Random, wanted: u64| {
        let wanted = (wanted + random.below(5)).wrapping_sub(2) % fields;
        draw::<F>(random) & (F::SIGN | (F::HIDDEN - 1)) | wanted << F::FRACTION
    };
    match random.below(8) {
        0 => {
            (first ^ F::SIGN)
                .wrapping_add(random.below(9))
                .wrapping_sub(4)
                & (F::SIGN | (F::SIGN - 1))
        }
        1 => near(random, field),
        2 => near(random, field.saturating_sub(F::FRACTION.into())),
        3 => near(random, (fields / 2).wrapping_sub(field) % fields),
        4 => near(random, (fields + fields / 2).wrapping_sub(field) % fields),
        5 => near(random, field.wrapping_sub(fields / 2) % fields),
        _ => draw::<F>(random),
    }
}

fn each_pair<F: Format>(seed: u64, mut check: impl FnMut(u64, u64)) {
    let mut random = Random::new(seed);
    for _ in 0..DRAWS {
        let first = draw::<F>(&mut random);
        let second = draw_second::<F>(&mut random, first);
        check(first, second);
    }
}

fn the_host_is_exact<F: Format>() {
    let mut answered = [0; 4];
    each_pair::<F>(1, |a, b| {
        let nearest = Direction::Nearest;
        let pairs = [
            (host::add::<F>(a, b), exact::add::<F>(a, b, nearest)),
            (
                host::multiply::<F>(a, b),
                exact::multiply::<F, F>(a, b, nearest),
            ),
            (host::divide::<F>(a, b), exact::divide::<F>(a, b, nearest)),
            (host::root::<F>(a), exact::root::<F>(a, nearest)),
        ];
        for (index, (host, exact)) in pairs.into_iter().enumerate() {
            if let Some(host) = host {
                answered[index] += 1;
                assert_eq!(host, exact, "operation {index} on {a:#x} and {b:#x}");
            }
        }
    });
    assert!(
        answered.iter().all(|count| *count > DRAWS / 8),
        "the host answers: {answered:?} of {DRAWS}"
    );
}

#[test]
fn the_host_is_exact_on_singles() {
    the_host_is_exact::<Single>();
}

#[test]
fn the_host_is_exact_on_doubles() {
    the_host_is_exact::<Double>();
}

#[test]
fn the_host_converts_exactly() {
    let nearest = Direction::Nearest;
    let mut random = Random::new(2);
    for _ in 0..DRAWS {
        let integer = random.next() as i32 >> random.below(32);
        let (host, exact) = (
            host::from_integer(integer),
            exact::from_integer::<Single>(integer, nearest),
        );
        assert_eq!(host, exact, "{integer}");
    }
    each_pair::<Double>(3, |wide, other| {
        // Any double, and one that is a single or nearly.
        let near = f64::from(other as u32 as f32).to_bits() ^ other >> 61;
        for operand in [wide, narrowable(wide), near] {
            if let Some(outcome) = host::narrow(operand) {
                assert_eq!(outcome, exact::narrow(operand, nearest), "{operand:#x}");
            }
        }
    });
}

/// A double with its exponent in, or just out of, the reach of singles.
fn narrowable(bits: u64) -> u64 {
    let field = (bits >> 52 & 0x7ff) % 300 + 1023 - 155;
    bits & !Double::INFINITY | field << 52
}

fn is_finite<F: Format>(bits: u64) -> bool {
    F::magnitude(bits) < F::INFINITY
}

/// Compares with the naive model, which knows finite numbers and nonzero results.
fn agrees<R: Format>(
    exact: impl Fn(Direction) -> Outcome,
    naive: &Fraction,
    context: (&str, u64, u64),
) {
    if naive.numerator == num_bigint::BigUint::ZERO {
        for direction in DIRECTIONS {
            let outcome = exact(direction);
            assert_eq!(
                (R::magnitude(outcome.bits), outcome.exceptions),
                (0, 0),
                "{context:x?}"
            );
        }
        return;
    }
    let fields = Fields(R::FRACTION.into(), R::EXPONENT.into());
    for direction in DIRECTIONS {
        let outcome = exact(direction);
        assert_eq!(
            (outcome.bits, outcome.exceptions),
            fields.round(naive, direction),
            "{context:x?} {direction:?}"
        );
    }
}

fn integers_agree_with_the_naive_model<F: Format>(rarer: u64) {
    let fields = Fields(F::FRACTION.into(), F::EXPONENT.into());
    let mut turn = 0;
    each_pair::<F>(4, |a, b| {
        turn += 1;
        if turn % rarer != 0 || !is_finite::<F>(a) || !is_finite::<F>(b) {
            return;
        }
        let (x, y) = (fields.value(a), fields.value(b));
        agrees::<F>(
            |direction| exact::add::<F>(a, b, direction),
            &naive::add(&x, &y),
            ("add", a, b),
        );
        agrees::<F>(
            |direction| exact::multiply::<F, F>(a, b, direction),
            &naive::multiply(&x, &y),
            ("multiply", a, b),
        );
        if F::magnitude(b) != 0 {
            agrees::<F>(
                |direction| exact::divide::<F>(a, b, direction),
                &naive::divide(&x, &y),
                ("divide", a, b),
            );
        }
        let positive = F::magnitude(a);
        agrees::<F>(
            |direction| exact::root::<F>(positive, direction),
            &naive::root(&fields.value(positive)),
            ("root", positive, 0),
        );
    });
}

#[test]
fn integers_agree_with_the_naive_model_on_singles() {
    integers_agree_with_the_naive_model::<Single>(4);
}

#[test]
fn integers_agree_with_the_naive_model_on_doubles() {
    integers_agree_with_the_naive_model::<Double>(16);
}

#[test]
fn conversions_agree_with_the_naive_model() {
    let (single, double) = (Fields(23, 8), Fields(52, 11));
    let mut turn = 0u64;
    each_pair::<Double>(5, |wide, other| {
        turn += 1;
        if !turn.is_multiple_of(16) {
            return;
        }
        let wide = narrowable(wide);
        agrees::<Single>(
            |direction| exact::narrow(wide, direction),
            &double.value(wide),
            ("narrow", wide, 0),
        );
        let integer = other as i32;
        let mut exact_integer = single.value(0);
        exact_integer.negative = integer < 0;
        exact_integer.numerator = integer.unsigned_abs().into();
        exact_integer.denominator = 1u32.into();
        agrees::<Single>(
            |direction| exact::from_integer::<Single>(integer, direction),
            &exact_integer,
            ("integer", other, 0),
        );
    });
    each_pair::<Single>(6, |a, b| {
        if is_finite::<Single>(a) && is_finite::<Single>(b) {
            turn += 1;
            if !turn.is_multiple_of(16) {
                return;
            }
            let product = naive::multiply(&single.value(a), &single.value(b));
            agrees::<Double>(
                |_| host::multiply_wide(a, b).expect("finite"),
                &product,
                ("wide", a, b),
            );
        }
    });
}

const ROUNDS: [Round; 4] = [
    Round::NearestTiesToEven,
    Round::TowardZero,
    Round::TowardPositive,
    Round::TowardNegative,
];

fn exceptions(status: Status) -> u32 {
    [
        (Status::INEXACT, INEXACT),
        (Status::UNDERFLOW, UNDERFLOW),
        (Status::DIV_BY_ZERO, DIVISION),
        (Status::OVERFLOW, OVERFLOW),
        (Status::INVALID_OP, INVALID),
    ]
    .into_iter()
    .filter(|(named, _)| status.contains(*named))
    .map(|(_, exception)| exception)
    .sum()
}

/// Executes an operation and compares %f4 with what another arithmetic gives.
fn same<R: Format, A: ApFloat>(
    mut float: Float,
    opf: u32,
    other: StatusAnd<A>,
    context: (u64, u64, usize),
) {
    float.operate(opf, 4, 0, 2).expect("no trap is enabled");
    let (ours, theirs) = (R::read(&float.registers, 4), other.value.to_bits() as u64);
    let context = format!("{opf:#x} on {context:x?}: {ours:#x}, {theirs:#x}");
    if R::is_nan(theirs) {
        assert!(R::is_nan(ours), "{context}");
    } else {
        assert_eq!(ours, theirs, "{context}");
    }
    let (ours, theirs) = (float.fsr & CURRENT, exceptions(other.status));
    assert_eq!(float.fsr >> 5 & CURRENT, ours, "{context}");
    // It calls neither underflow what is tiny only before it is rounded, nor overflow what becomes the
    // largest number. The naive model does.
    let unsaid = match R::magnitude(R::read(&float.registers, 4)) {
        magnitude if magnitude == R::HIDDEN => UNDERFLOW,
        magnitude if magnitude == R::INFINITY - 1 => OVERFLOW,
        _ => 0,
    };
    assert!(
        ours == theirs || theirs & INEXACT != 0 && ours == theirs | unsaid,
        "{context}: exceptions {ours:#x}, {theirs:#x}"
    );
}

fn agrees_with_apfloat<F: Format, A: ApFloat>(opfs: [u32; 4]) {
    each_pair::<F>(7, |a, b| {
        let (x, y) = (A::from_bits(a.into()), A::from_bits(b.into()));
        for (index, round) in ROUNDS.into_iter().enumerate() {
            let float = unit::<F>(index as u32, a, b);
            let context = (a, b, index);
            same::<F, A>(float.clone(), opfs[0], x.add_r(y, round), context);
            same::<F, A>(float.clone(), opfs[1], x.sub_r(y, round), context);
            same::<F, A>(float.clone(), opfs[2], x.mul_r(y, round), context);
            same::<F, A>(float, opfs[3], x.div_r(y, round), context);
        }
    });
}

#[test]
fn singles_agree_with_apfloat() {
    agrees_with_apfloat::<Single, ApSingle>([0x41, 0x45, 0x49, 0x4d]);
}

#[test]
fn doubles_agree_with_apfloat() {
    agrees_with_apfloat::<Double, ApDouble>([0x42, 0x46, 0x4a, 0x4e]);
}

#[test]
fn conversions_agree_with_apfloat() {
    let mut lost = false;
    each_pair::<Double>(8, |wide, other| {
        for (index, round) in ROUNDS.into_iter().enumerate() {
            for wide in [wide, narrowable(wide)] {
                let number = ApDouble::from_bits(wide.into());
                let float = unit::<Double>(index as u32, 0, wide);
                let context = (0, wide, index);
                let narrowed: StatusAnd<ApSingle> = number.convert_r(round, &mut lost);
                same::<Single, _>(float.clone(), 0xc6, narrowed, context);
                same_integer(float, 0xd2, number, context);
            }
            let context = (0, other, index);
            let number = ApSingle::from_bits(u128::from(other as u32));
            let float = unit::<Single>(index as u32, 0, other & 0xffff_ffff);
            let widened: StatusAnd<ApDouble> = number.convert_r(round, &mut lost);
            same::<Double, _>(float.clone(), 0xc9, widened, context);
            same_integer(float.clone(), 0xd1, number, context);
            let integer = i128::from(other as i32);
            same::<Single, _>(
                float.clone(),
                0xc4,
                ApSingle::from_i128_r(integer, round),
                context,
            );
            same::<Double, _>(float, 0xc8, ApDouble::from_i128_r(integer, round), context);
        }
    });
}

fn same_integer<A: ApFloat>(mut float: Float, opf: u32, number: A, context: (u64, u64, usize)) {
    float.operate(opf, 4, 0, 2).expect("no trap is enabled");
    let mut is_exact = false;
    let theirs = number.to_i128_r(32, Round::TowardZero, &mut is_exact);
    let expected = match theirs.status {
        Status::INVALID_OP if number.is_negative() => i32::MIN,
        Status::INVALID_OP => i32::MAX,
        _ => theirs.value as i32,
    };
    assert_eq!(
        (float.registers[4].cast_signed(), float.fsr & CURRENT),
        (expected, exceptions(theirs.status)),
        "{opf:#x} on {context:x?}"
    );
}

#[test]
fn roots_agree_with_their_squares() {
    // A root of a square is exact; those of the square's neighbours lie next to it.
    let mut random = Random::new(9);
    for _ in 0..DRAWS {
        let root = f64::from(random.next() as u32 >> 6 | 1);
        let (bits, square) = (root.to_bits(), (root * root).to_bits());
        for direction in 0..4 {
            for (operand, down, up) in [
                (square, bits, bits),
                (square - 1, bits - 1, bits),
                (square + 1, bits, bits + 1),
            ] {
                let mut float = unit::<Double>(direction, 0, operand);
                float.operate(0x2a, 4, 0, 2).expect("no trap is enabled");
                let result = Double::read(&float.registers, 4);
                match direction {
                    0 => assert!(result == down || result == up, "{operand:#x}"),
                    2 => assert_eq!(result, up, "{operand:#x}"),
                    _ => assert_eq!(result, down, "{operand:#x}"),
                }
                assert_eq!(float.fsr & CURRENT, u32::from(operand != square));
            }
        }
    }
}
