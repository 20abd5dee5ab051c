//! The operations by integers: every operand, every direction of rounding, every exception.
//!
//! No library has what SPARC asks for: `rustc_apfloat` has no square root, and calls a result tiny
//! after it is rounded. Tests compare with it where it says the same.
//!
//! Invariant: a result is the exact one, rounded once, by [`round`].

use super::format::{
    DIVISION, Direction, Double, Format, INEXACT, OVERFLOW, Outcome, Single, propagate,
};

/// A finite number: ±significand·2^exponent. The significand has its top bit where a normal number
/// has the hidden one, or is zero.
struct Parts {
    negative: bool,
    exponent: i32,
    significand: u64,
}

fn parts<F: Format>(bits: u64) -> Parts {
    let field = (F::magnitude(bits) >> F::FRACTION) as i32;
    let fraction = bits & (F::HIDDEN - 1);
    let least = 1 - F::BIAS - F::FRACTION as i32;
    let (exponent, significand) = if field != 0 {
        (least + field - 1, fraction | F::HIDDEN)
    } else if fraction != 0 {
        let shift = fraction.leading_zeros() - F::HIDDEN.leading_zeros();
        (least - shift as i32, fraction << shift)
    } else {
        (least, 0)
    };
    Parts {
        negative: F::is_negative(bits),
        exponent,
        significand,
    }
}

/// Rounds ±significand·2^exponent to a format. The significand is below 2^127; where it stands for
/// an exact result that has more bits, its lowest bit is 1 for them and it has two bits or more that
/// no result keeps.
///
/// Tiny is what is below every normal number *before* it is rounded (SPARC V8, appendix N, asks
/// for it; IEEE 754 leaves the choice).
pub(super) fn round<F: Format>(
    negative: bool,
    exponent: i32,
    significand: u128,
    direction: Direction,
) -> Outcome {
    debug_assert!(significand >> 127 == 0);
    if significand == 0 {
        return Outcome::exact(F::signed(negative, 0));
    }
    let leading = exponent + 127 - significand.leading_zeros() as i32;
    let least = 1 - F::BIAS;
    if leading > F::BIAS {
        return overflow::<F>(negative, direction);
    }
    // The result counts units of 2^unit.
    let unit = leading.max(least) - F::FRACTION as i32;
    let (kept, rest, half) = split(significand, unit - exponent);
    let up = match direction {
        Direction::Nearest => rest > half || rest == half && kept & 1 != 0,
        Direction::Zero => false,
        Direction::Up => rest != 0 && !negative,
        Direction::Down => rest != 0 && negative,
    };
    // A carry out of the fraction counts the exponent up, as does the hidden bit.
    let field = (leading.max(least) - least) as u64;
    let magnitude = (field << F::FRACTION) + kept + u64::from(up);
    if magnitude >= F::INFINITY {
        return overflow::<F>(negative, direction);
    }
    let bits = F::signed(negative, magnitude);
    Outcome::rounded(bits, rest != 0, leading < least)
}

/// A significand without its lowest `shift` bits, these bits, and half of what the lowest kept one
/// counts. What is kept has 53 bits at most.
fn split(significand: u128, shift: i32) -> (u64, u128, u128) {
    match shift {
        ..=0 => ((significand << -shift) as u64, 0, 1),
        1..128 => {
            let half = 1 << (shift - 1);
            let rest = significand & (half | (half - 1));
            ((significand >> shift) as u64, rest, half)
        }
        // Below 2^127, it is less than half.
        _ => (0, 1, 2),
    }
}

/// Infinity, or the largest finite number where the direction leads away from infinity.
fn overflow<F: Format>(negative: bool, direction: Direction) -> Outcome {
    let infinite = match direction {
        Direction::Nearest => true,
        Direction::Zero => false,
        Direction::Up => !negative,
        Direction::Down => negative,
    };
    Outcome {
        bits: F::signed(negative, F::INFINITY - u64::from(!infinite)),
        exceptions: OVERFLOW | INEXACT,
    }
}

/// rs1 + rs2.
pub(super) fn add<F: Format>(first: u64, second: u64, direction: Direction) -> Outcome {
    if F::is_nan(first) || F::is_nan(second) {
        return propagate::<F>(first, second);
    }
    match (F::is_infinite(first), F::is_infinite(second)) {
        (true, true) if first != second => return Outcome::invalid::<F>(),
        (true, _) => return Outcome::exact(first),
        (_, true) => return Outcome::exact(second),
        _ => {}
    }
    let (a, b) = (parts::<F>(first), parts::<F>(second));
    let exponent = a.exponent.max(b.exponent) - 64;
    let sum = aligned(&a, exponent) + aligned(&b, exponent);
    if sum == 0 {
        // Zeros of one sign keep it; what cancels is −0 only downward (IEEE 754-1985, 6.3).
        let negative = if a.negative == b.negative {
            a.negative
        } else {
            direction == Direction::Down
        };
        return Outcome::exact(F::signed(negative, 0));
    }
    round::<F>(sum < 0, exponent, sum.unsigned_abs(), direction)
}

/// A number in units of 2^exponent, at most 64 places below its own; the lowest bit is 1 for all
/// that is lost. Of a sum that lost some, 60 bits or more are not kept.
fn aligned(parts: &Parts, exponent: i32) -> i128 {
    let shift = parts.exponent - exponent;
    let significand = u128::from(parts.significand);
    let magnitude = match shift {
        0.. => significand << shift,
        -63..=-1 => {
            let kept = significand >> -shift;
            kept | u128::from(kept << -shift != significand)
        }
        _ => u128::from(significand != 0),
    };
    if parts.negative {
        -(magnitude as i128)
    } else {
        magnitude as i128
    }
}

/// rs1 · rs2, rounded to `R`, which is their format or a wider one.
pub(super) fn multiply<F: Format, R: Format>(
    first: u64,
    second: u64,
    direction: Direction,
) -> Outcome {
    if F::is_nan(first) || F::is_nan(second) {
        let outcome = propagate::<F>(first, second);
        return Outcome {
            bits: convert_nan::<F, R>(outcome.bits),
            ..outcome
        };
    }
    let negative = F::is_negative(first) != F::is_negative(second);
    if F::is_infinite(first) || F::is_infinite(second) {
        if F::magnitude(first) == 0 || F::magnitude(second) == 0 {
            return Outcome::invalid::<R>();
        }
        return Outcome::exact(R::signed(negative, R::INFINITY));
    }
    let (a, b) = (parts::<F>(first), parts::<F>(second));
    let product = u128::from(a.significand) * u128::from(b.significand);
    round::<R>(negative, a.exponent + b.exponent, product, direction)
}

/// rs1 / rs2.
pub(super) fn divide<F: Format>(first: u64, second: u64, direction: Direction) -> Outcome {
    if F::is_nan(first) || F::is_nan(second) {
        return propagate::<F>(first, second);
    }
    let negative = F::is_negative(first) != F::is_negative(second);
    let infinity = Outcome::exact(F::signed(negative, F::INFINITY));
    match (F::is_infinite(first), F::is_infinite(second)) {
        (true, true) => return Outcome::invalid::<F>(),
        (true, _) => return infinity,
        (_, true) => return Outcome::exact(F::signed(negative, 0)),
        _ => {}
    }
    let (a, b) = (parts::<F>(first), parts::<F>(second));
    if b.significand == 0 {
        return if a.significand == 0 {
            Outcome::invalid::<F>()
        } else {
            Outcome {
                exceptions: DIVISION,
                ..infinity
            }
        };
    }
    // A quotient of 64 bits or more, and one that tells whether there are others.
    let (dividend, divisor) = (u128::from(a.significand) << 64, u128::from(b.significand));
    let rest = u128::from(!dividend.is_multiple_of(divisor));
    let quotient = (dividend / divisor) << 1 | rest;
    round::<F>(negative, a.exponent - b.exponent - 65, quotient, direction)
}

/// √rs2.
pub(super) fn root<F: Format>(operand: u64, direction: Direction) -> Outcome {
    if F::is_nan(operand) {
        return propagate::<F>(operand, operand);
    }
    if F::magnitude(operand) == 0 {
        return Outcome::exact(operand);
    }
    if F::is_negative(operand) {
        return Outcome::invalid::<F>();
    }
    if F::is_infinite(operand) {
        return Outcome::exact(operand);
    }
    let a = parts::<F>(operand);
    // An even exponent, and a root of 56 bits or more.
    let even = (124 - F::FRACTION) & !1;
    let shift = even | (a.exponent & 1) as u32;
    let square = u128::from(a.significand) << shift;
    let root = square.isqrt();
    let rest = u128::from(root * root != square);
    let exponent = (a.exponent - shift as i32) / 2 - 1;
    round::<F>(false, exponent, root << 1 | rest, direction)
}

/// An integer to a format.
pub(super) fn from_integer<F: Format>(integer: i32, direction: Direction) -> Outcome {
    let magnitude = u128::from(integer.unsigned_abs());
    round::<F>(integer < 0, 0, magnitude, direction)
}

/// A double to a single.
pub(super) fn narrow(operand: u64, direction: Direction) -> Outcome {
    if Double::is_nan(operand) {
        let outcome = propagate::<Double>(operand, operand);
        return Outcome {
            bits: convert_nan::<Double, Single>(outcome.bits),
            ..outcome
        };
    }
    let a = parts::<Double>(operand);
    if Double::is_infinite(operand) {
        return Outcome::exact(Single::signed(a.negative, Single::INFINITY));
    }
    round::<Single>(a.negative, a.exponent, u128::from(a.significand), direction)
}

/// A single to a double.
pub(super) fn widen(operand: u64) -> Outcome {
    if Single::is_nan(operand) {
        let outcome = propagate::<Single>(operand, operand);
        return Outcome {
            bits: convert_nan::<Single, Double>(outcome.bits),
            ..outcome
        };
    }
    Outcome::exact(Single::wide(operand).to_bits())
}

/// A quiet NaN of another format: its sign, and of its fraction the high bits that there is room
/// for, or all and zeros behind them (SPARC V8, appendix N).
fn convert_nan<F: Format, R: Format>(bits: u64) -> u64 {
    let fraction = bits & (F::HIDDEN - 1);
    let fraction = if F::FRACTION > R::FRACTION {
        fraction >> (F::FRACTION - R::FRACTION)
    } else {
        fraction << (R::FRACTION - F::FRACTION)
    };
    R::signed(F::is_negative(bits), R::INFINITY | fraction)
}
