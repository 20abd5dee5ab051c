//! The two formats of the unit, and what holds for both: fields, NaNs, and the exceptions an
//! operation ends with.
//!
//! A number travels as its bits in a `u64`, whatever its format.
//!
//! Invariant: the bits of a format use no place above its sign.

use std::ops::{Add, Div, Mul, Sub};

/// Exceptions, in the places that they have in `cexc` and `aexc` (SPARC V8, 4.4).
pub(super) const INEXACT: u32 = 1;
/// A finite number was divided by zero.
pub(super) const DIVISION: u32 = 1 << 1;
/// The exact result is nonzero and below every normal number: with [`INEXACT`], or whether or not
/// it is exact when the trap is enabled (IEEE 754-1985, 7.4). Until [`super::Float`] knows about
/// the trap, it stands for *tiny*.
pub(super) const UNDERFLOW: u32 = 1 << 2;
/// The rounded result is beyond every finite number.
pub(super) const OVERFLOW: u32 = 1 << 3;
/// There is no result.
pub(super) const INVALID: u32 = 1 << 4;

/// Where a result between two numbers goes: the field `rd` of the state register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Nearest,
    Zero,
    Up,
    Down,
}

/// What an operation gives: bits in the format of its result, and exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) bits: u64,
    pub(super) exceptions: u32,
}

impl Outcome {
    /// A result that may be inexact, and may be tiny.
    #[inline(always)]
    pub(super) fn rounded(bits: u64, is_inexact: bool, is_tiny: bool) -> Self {
        let inexact = u32::from(is_inexact) * INEXACT;
        let tiny = u32::from(is_tiny) * UNDERFLOW;
        Self {
            bits,
            exceptions: inexact | tiny,
        }
    }

    pub(super) fn exact(bits: u64) -> Self {
        Self {
            bits,
            exceptions: 0,
        }
    }

    /// No result: the NaN whose bits are all one but the sign (SPARC V8, appendix N).
    pub(super) fn invalid<F: Format>() -> Self {
        Self {
            bits: F::SIGN - 1,
            exceptions: INVALID,
        }
    }
}

/// A binary format of IEEE 754, and the type of the host that computes in it.
pub(super) trait Format {
    /// Bits of the fraction.
    const FRACTION: u32;
    /// Bits of the exponent.
    const EXPONENT: u32;

    const SIGN: u64 = 1 << (Self::FRACTION + Self::EXPONENT);
    const HIDDEN: u64 = 1 << Self::FRACTION;
    const INFINITY: u64 = Self::SIGN - Self::HIDDEN;
    const QUIET: u64 = Self::HIDDEN >> 1;
    const BIAS: i32 = (1 << (Self::EXPONENT - 1)) - 1;

    /// The same format on the host.
    type Host: Copy
        + Add<Output = Self::Host>
        + Sub<Output = Self::Host>
        + Mul<Output = Self::Host>
        + Div<Output = Self::Host>
        + PartialOrd;

    /// Bits to a number of the host.
    fn host(bits: u64) -> Self::Host;
    /// A number of the host to bits.
    fn bits(number: Self::Host) -> u64;
    /// A number, not a NaN, as a double, which all of them are.
    fn wide(bits: u64) -> f64;
    /// The square root of the host, to nearest.
    fn root(number: Self::Host) -> Self::Host;
    /// Whether x·y is exactly p, which is x·y, x, or y to nearest; all of them are finite and none
    /// is zero. `None`: it takes a longer way to say.
    fn is_product(x: u64, y: u64, p: u64) -> Option<bool>;
    /// The number in the registers from `number` on, of which a double ignores the lowest bit.
    fn read(registers: &[u32; 32], number: usize) -> u64;
    /// Puts a number where [`read`](Self::read) finds it.
    fn write(registers: &mut [u32; 32], number: usize, bits: u64);

    /// All but the sign.
    fn magnitude(bits: u64) -> u64 {
        bits & (Self::SIGN - 1)
    }

    fn is_negative(bits: u64) -> bool {
        bits & Self::SIGN != 0
    }

    fn is_nan(bits: u64) -> bool {
        Self::magnitude(bits) > Self::INFINITY
    }

    fn is_signalling(bits: u64) -> bool {
        Self::is_nan(bits) && bits & Self::QUIET == 0
    }

    fn is_infinite(bits: u64) -> bool {
        Self::magnitude(bits) == Self::INFINITY
    }

    /// Whether it is nonzero and below every normal number.
    fn is_denormal(bits: u64) -> bool {
        Self::magnitude(bits).wrapping_sub(1) < Self::HIDDEN - 1
    }

    /// A zero, or what else its magnitude says, with a sign.
    fn signed(negative: bool, magnitude: u64) -> u64 {
        if negative {
            magnitude | Self::SIGN
        } else {
            magnitude
        }
    }
}

/// What comes of operands of which one is a NaN: a signalling one, made quiet, before a quiet one,
/// that of rs2 before that of rs1 (SPARC V8, appendix N). One operand stands for both.
#[cold]
pub(super) fn propagate<F: Format>(first: u64, second: u64) -> Outcome {
    let signalling = F::is_signalling(first) || F::is_signalling(second);
    let takes_second = F::is_signalling(second) || F::is_nan(second) && !F::is_signalling(first);
    Outcome {
        bits: F::QUIET | if takes_second { second } else { first },
        exceptions: if signalling { INVALID } else { 0 },
    }
}

/// 32 bits in one register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single;

/// 64 bits in two registers, the high ones in the even one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Double;

impl Format for Single {
    const FRACTION: u32 = 23;
    const EXPONENT: u32 = 8;
    type Host = f32;

    #[inline(always)]
    fn host(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }

    #[inline(always)]
    fn bits(number: f32) -> u64 {
        u64::from(number.to_bits())
    }

    #[inline(always)]
    fn wide(bits: u64) -> f64 {
        f64::from(Self::host(bits))
    }

    #[inline(always)]
    fn root(number: f32) -> f32 {
        number.sqrt()
    }

    /// A product of singles is a double.
    #[inline(always)]
    fn is_product(x: u64, y: u64, p: u64) -> Option<bool> {
        Some(Self::wide(x) * Self::wide(y) == Self::wide(p))
    }

    #[inline(always)]
    fn read(registers: &[u32; 32], number: usize) -> u64 {
        u64::from(registers[number & 31])
    }

    #[inline(always)]
    fn write(registers: &mut [u32; 32], number: usize, bits: u64) {
        registers[number & 31] = bits as u32;
    }
}

impl Format for Double {
    const FRACTION: u32 = 52;
    const EXPONENT: u32 = 11;
    type Host = f64;

    #[inline(always)]
    fn host(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    #[inline(always)]
    fn bits(number: f64) -> u64 {
        number.to_bits()
    }

    #[inline(always)]
    fn wide(bits: u64) -> f64 {
        Self::host(bits)
    }

    #[inline(always)]
    fn root(number: f64) -> f64 {
        number.sqrt()
    }

    /// With normal numbers s·2^(e − 1075), the significands multiply as integers. The shift is 52,
    /// 53 or 54, for p is as good as x·y.
    #[inline(always)]
    fn is_product(x: u64, y: u64, p: u64) -> Option<bool> {
        let exponent = |bits: u64| (bits >> Self::FRACTION & 0x7ff) as i32;
        let significand = |bits: u64| u128::from(bits & (Self::HIDDEN - 1) | Self::HIDDEN);
        if exponent(x) == 0 || exponent(y) == 0 || exponent(p) == 0 {
            return None;
        }
        let shift = (exponent(p) - exponent(x) - exponent(y) + 1075) & 127;
        Some(significand(x) * significand(y) == significand(p) << shift)
    }

    #[inline(always)]
    fn read(registers: &[u32; 32], number: usize) -> u64 {
        let even = number & 30;
        u64::from(registers[even]) << 32 | u64::from(registers[even + 1])
    }

    #[inline(always)]
    fn write(registers: &mut [u32; 32], number: usize, bits: u64) {
        let even = number & 30;
        registers[even] = (bits >> 32) as u32;
        registers[even + 1] = bits as u32;
    }
}
