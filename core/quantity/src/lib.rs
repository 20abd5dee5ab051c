//! Quantities as people read and write them, and foreign text as they may be shown it.
//!
//! ```
//! use metes_quantity::{bytes, duration, grouped, read_bytes};
//!
//! assert_eq!(grouped(1_234_567_u64), "1 234 567");
//! assert_eq!(bytes(579_693_u64), "566 KiB");
//! assert_eq!(duration(1_240_000), "1.24 ms");
//! assert_eq!(read_bytes("1.5 MiB"), Ok(1_572_864));
//! ```
//!
//! Invariant: a figure with a unit is rounded to three significant digits, or to a whole number of the
//! unit where that has more.

mod read;
mod text;

pub use read::{NoQuantity, read_bytes, read_positive_bytes, read_seconds, spell_bytes};
pub use text::{printable, showable};

/// Digits in groups of three.
#[must_use]
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Bytes with three significant digits and a unit, a power of 1024.
#[must_use]
pub fn bytes(number: impl Into<u128>) -> String {
    const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    scaled(number.into(), 1024.0, &NAMES)
}

/// Nanoseconds with three significant digits and a unit up to seconds.
#[must_use]
pub fn duration(ns: u64) -> String {
    scaled(ns.into(), 1000.0, &["ns", "µs", "ms", "s"])
}

/// In the largest unit of which there is one at least; each is `step` of the one before.
fn scaled(number: u128, step: f64, units: &[&str]) -> String {
    let mut value = number as f64;
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1 000"),
            (1_234_567, "1 234 567"),
        ] {
            assert_eq!(grouped(number as u64), text);
        }
        let all = "340 282 366 920 938 463 463 374 607 431 768 211 455";
        assert_eq!(grouped(u128::MAX), all);
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (15 << 10, "15.0 KiB"),
            (150 << 20, "150 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(bytes(1_u128 << 80), "1048576 EiB");
        for (ns, text) in [
            (999, "999 ns"),
            (1500, "1.50 µs"),
            (25_000_000, "25.0 ms"),
            (7_200_000_000_000, "7200 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
