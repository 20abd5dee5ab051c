//! The operations to nearest, by the host, which computes in the same formats.
//!
//! The host does not say whether it rounded; that is found after the fact, by arithmetic that does
//! not round. Where that takes a longer way (no finite result, a result near or below the smallest
//! normal number, a double that is not normal) an operation says `None`, and
//! [`exact`](super::exact) does it.
//!
//! Invariant: what an operation gives is what [`exact`](super::exact) gives for
//! [`Nearest`](super::format::Direction::Nearest).

use super::format::{Format, INEXACT, INVALID, OVERFLOW, Outcome, Single};

/// rs1 + rs2. The rounding error of a sum is a number, and Fast2Sum finds it without another one
/// (Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971). A sum below
/// every normal number has no error.
#[inline(always)]
pub(super) fn add<F: Format>(first: u64, second: u64) -> Option<Outcome> {
    let sum = F::host(first) + F::host(second);
    let bits = F::bits(sum);
    if F::magnitude(bits) >= F::INFINITY {
        return None;
    }
    let swapped = F::magnitude(first) < F::magnitude(second);
    let (large, small) = if swapped {
        (second, first)
    } else {
        (first, second)
    };
    let is_inexact = sum - F::host(large) != F::host(small);
    Some(Outcome::rounded(bits, is_inexact, F::is_denormal(bits)))
}

/// Whether a result is finite and normal and stays so whichever way it was rounded.
#[inline(always)]
fn is_plain<F: Format>(bits: u64) -> bool {
    let magnitude = F::magnitude(bits);
    F::HIDDEN < magnitude && magnitude < F::INFINITY
}

/// An outcome of which the factors of a product tell whether it is exact.
#[inline(always)]
fn proven<F: Format>(bits: u64, factors: (u64, u64), product: u64) -> Option<Outcome> {
    let is_exact = F::is_product(factors.0, factors.1, product)?;
    Some(Outcome::rounded(bits, !is_exact, false))
}

/// rs1 · rs2.
#[inline(always)]
pub(super) fn multiply<F: Format>(first: u64, second: u64) -> Option<Outcome> {
    let bits = F::bits(F::host(first) * F::host(second));
    if !is_plain::<F>(bits) {
        return None;
    }
    proven::<F>(bits, (first, second), bits)
}

/// rs1 / rs2: exact when the quotient times rs2 is rs1.
#[inline(always)]
pub(super) fn divide<F: Format>(first: u64, second: u64) -> Option<Outcome> {
    let bits = F::bits(F::host(first) / F::host(second));
    if !is_plain::<F>(bits) {
        return None;
    }
    proven::<F>(bits, (bits, second), first)
}

/// √rs2: exact when its square is rs2.
#[inline(always)]
pub(super) fn root<F: Format>(operand: u64) -> Option<Outcome> {
    let bits = F::bits(F::root(F::host(operand)));
    if !is_plain::<F>(bits) {
        return None;
    }
    proven::<F>(bits, (bits, bits), operand)
}

/// A double to a single.
#[inline(always)]
pub(super) fn narrow(operand: u64) -> Option<Outcome> {
    let wide = f64::from_bits(operand);
    let single = wide as f32;
    if !wide.is_finite() {
        return None;
    }
    let bits = Single::bits(single);
    if single.is_infinite() {
        let exceptions = OVERFLOW | INEXACT;
        return Some(Outcome { bits, exceptions });
    }
    let is_tiny = wide.abs() < f64::from(f32::MIN_POSITIVE) && wide != 0.0;
    let is_inexact = f64::from(single) != wide;
    Some(Outcome::rounded(bits, is_inexact, is_tiny))
}

/// An integer to a single.
#[inline(always)]
pub(super) fn from_integer(integer: i32) -> Outcome {
    let single = integer as f32;
    let is_inexact = f64::from(single) != f64::from(integer);
    Outcome::rounded(Single::bits(single), is_inexact, false)
}

/// Two singles to their product, a double, which has room for all of it in every direction. `None`:
/// one of them is not finite.
#[inline(always)]
pub(super) fn multiply_wide(first: u64, second: u64) -> Option<Outcome> {
    let product = Single::wide(first) * Single::wide(second);
    product
        .is_finite()
        .then(|| Outcome::exact(product.to_bits()))
}

/// A number to an integer, toward zero in every direction (SPARC V8, B.30).
#[inline(always)]
pub(super) fn to_integer<F: Format>(operand: u64) -> Outcome {
    let wide = F::wide(operand);
    // Only numbers from here to there have an integer when their fraction is left away.
    if wide > -2_147_483_649.0 && wide < 2_147_483_648.0 {
        let integer = wide as i32;
        let bits = u64::from(integer.cast_unsigned());
        return Outcome::rounded(bits, f64::from(integer) != wide, false);
    }
    // The largest or the smallest by the sign, be it that of a NaN (appendix N). The sign is that of
    // the bits: the host promises none when it converts a NaN.
    Outcome {
        bits: u64::from(i32::MAX.cast_unsigned() + u32::from(F::is_negative(operand))),
        exceptions: INVALID,
    }
}
