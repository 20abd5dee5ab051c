//! Quantities as people write them: sizes in bytes, times in seconds.
//!
//! A size is a number and, after any spaces, a unit in capitals or not: `4096`, `64 KiB`, `4k`,
//! `1_000 kB`, `1.5MiB`. A letter alone and those with `iB` count by powers of 1024, those with `B`
//! by powers of 1000. A time is a number and a unit from `ns` to `h`, or seconds without one.
//! `quantities.json` beside the tests says it by examples, which the Python package is held to as well.
//!
//! *Invariant:* what is read is exact: a size that is no whole number of bytes, or more than 64 bits
//! count, is refused, never rounded or cut. What [`spell_bytes`] writes, [`read_bytes`] reads back.

use std::fmt;

/// Units of a size, in small letters.
const SIZES: [(&str, u64); 20] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("e", 1 << 60),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("eib", 1 << 60),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("eb", 1_000_000_000_000_000_000),
];

/// Units of a time and their seconds.
const TIMES: [(&str, f64); 8] = [
    ("", 1.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ns", 1e-9),
    ("min", 60.0),
    ("h", 3600.0),
];

/// Why a text is no quantity: a sentence with cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoQuantity {
    /// It is no number, or its unit is none.
    Size(String),
    /// It is no whole number of bytes.
    Fraction(String),
    /// 64 bits do not count so many bytes.
    Large(String),
    /// It is no time above zero.
    Time(String),
}

impl fmt::Display for NoQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoQuantity::Size(text) => write!(
                f,
                "`{text}` is not a size: write bytes as in `4096`, or a unit as in `64 KiB`"
            ),
            NoQuantity::Fraction(text) => write!(
                f,
                "`{text}` is not a size: it is no whole number of bytes, write those"
            ),
            NoQuantity::Large(text) => write!(
                f,
                "`{text}` is not a size in bytes that a machine word can hold"
            ),
            NoQuantity::Time(text) => write!(
                f,
                "`{text}` is not a time above zero: write seconds as in `2.5`, or a unit as in `90 ms`"
            ),
        }
    }
}

impl std::error::Error for NoQuantity {}

/// Number and unit, in small letters, of a quantity.
fn split(text: &str) -> (&str, String) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '_' | '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    (number, unit.trim_start().to_ascii_lowercase())
}

/// The digits of a number before and behind its point, without `_`; none where it is no number.
fn digits(number: &str) -> Option<(String, String)> {
    let plain = number.replace('_', "");
    let (whole, fraction) = match plain.split_once('.') {
        None => (plain.as_str(), ""),
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
    };
    let sound = !whole.is_empty() && !fraction.contains('.') && number.starts_with(|c| c != '_');
    sound.then(|| (whole.to_owned(), fraction.trim_end_matches('0').to_owned()))
}

/// A size in bytes: `4096`, `4k`, `64KiB`, `1.5 MiB`, `64kB`. Linear.
///
/// # Errors
/// What a size is, where `text` is none.
pub fn read_bytes(text: &str) -> Result<u64, NoQuantity> {
    let (number, unit) = split(text);
    let factor = SIZES.iter().find(|(name, _)| *name == unit);
    let (Some((_, factor)), Some((whole, fraction))) = (factor, digits(number)) else {
        return Err(NoQuantity::Size(text.to_owned()));
    };
    let large = || NoQuantity::Large(text.to_owned());
    let whole: u64 = whole.parse().map_err(|_| large())?;
    let whole = whole.checked_mul(*factor).ok_or_else(large)?;
    let rest = part(&fraction, *factor).ok_or_else(|| NoQuantity::Fraction(text.to_owned()))?;
    whole.checked_add(rest).ok_or_else(large)
}

/// The digits behind a point, times a factor, where that is whole.
fn part(fraction: &str, factor: u64) -> Option<u64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let product = fraction.parse::<u128>().ok()?.checked_mul(factor.into())?;
    let whole = product.is_multiple_of(scale).then(|| product / scale)?;
    u64::try_from(whole).ok()
}

/// A size of at least one byte. Linear.
///
/// # Errors
/// As [`read_bytes`], and for none.
pub fn read_positive_bytes(text: &str) -> Result<u64, String> {
    match read_bytes(text).map_err(|error| error.to_string())? {
        0 => Err("zero bytes; give at least 1".to_owned()),
        size => Ok(size),
    }
}

/// A time in seconds, above zero and up to 10⁹: `30`, `2.5s`, `90 ms`, `5min`. Linear.
///
/// # Errors
/// What a time is, where `text` is none.
pub fn read_seconds(text: &str) -> Result<f64, NoQuantity> {
    let (number, unit) = split(text);
    let factor = TIMES.iter().find(|(name, _)| *name == unit);
    let number = digits(number).and_then(|(whole, fraction)| {
        let number: f64 = format!("{whole}.{fraction}0").parse().ok()?;
        Some(number * factor?.1)
    });
    let sound = number.filter(|seconds| *seconds > 0.0 && *seconds <= 1e9);
    sound.ok_or_else(|| NoQuantity::Time(text.to_owned()))
}

/// A size as [`read_bytes`] reads it back, in the largest unit of which it is a whole number: `4096` is
/// `4 KiB`, `100` is `100`.
#[must_use]
pub fn spell_bytes(bytes: u64) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        let factor = 1_u64 << shift;
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{} {unit}", bytes / factor);
        }
    }
    bytes.to_string()
}
