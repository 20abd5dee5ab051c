//! Sizes on the command line and figures on the screen.
//!
//! Invariant: a printed figure says its unit; a size that cannot be held by 64
//! bits is refused, never cut.

use metes_explore::engine::{ObjectiveSet, Shard};
pub(crate) use metes_quantity::{bytes, grouped};

/// Units of a size: powers of 1024, but for the decimal ones written out.
const UNITS: [(&str, u64); 15] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("eib", 1 << 60),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
];

/// Reads a size in bytes: `4096`, `4k`, `64KiB`, `1 MiB`, `64kB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit);
    let Some((_, factor)) = factor.filter(|_| digits > 0) else {
        return Err("write bytes as 4096, or with a unit: 4k, 64KiB, 1MiB".to_owned());
    };
    number
        .replace('_', "")
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| "more bytes than 64 bits can count".to_owned())
}

/// Reads a size of at least one byte.
pub(crate) fn positive_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("zero bytes; give at least 1".to_owned()),
        size => Ok(size),
    }
}

/// From what size on blocks are mapped; `None`: none is. The default is that of a host.
#[derive(Clone, Copy)]
pub(crate) struct MappedFrom(pub(crate) Option<usize>);

impl Default for MappedFrom {
    fn default() -> Self {
        MappedFrom(Some(metes_heap::mapped::THRESHOLD))
    }
}

/// Reads from what size on blocks are mapped: `128KiB`, or `no`.
pub(crate) fn mapped(text: &str) -> Result<MappedFrom, String> {
    if text == "no" {
        return Ok(MappedFrom(None));
    }
    let size = size(text).map_err(|error| error + ", or `no`")?;
    match usize::try_from(size)
        .ok()
        .filter(|size| metes_config::MAPPED.contains(size))
    {
        Some(size) => Ok(MappedFrom(Some(size))),
        None => Err("give a size from 4 KiB to 1 GiB, or `no`".to_owned()),
    }
}

/// Reads a time in seconds, above zero and finite.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('s');
    match number.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(seconds),
        Ok(_) => Err("give a time above zero, in seconds".to_owned()),
        Err(_) => Err("write seconds as 30 or 2.5".to_owned()),
    }
}

/// A list of objectives: `footprint,accesses`.
pub(crate) fn objectives(text: &str) -> Result<ObjectiveSet, String> {
    text.parse()
}

/// One of n parts: `1/4` is the first of four.
pub(crate) fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, count)| {
        let index: u64 = index.parse().ok()?;
        let count: u64 = count.parse().ok()?;
        (1..=count).contains(&index).then_some(Shard {
            index: index - 1,
            count,
        })
    });
    parts.ok_or_else(|| "write a part as 1/4: the first of four".to_owned())
}

/// How much larger or smaller `figure` is than `base`: `+12.3 %`.
pub(crate) fn change(figure: u64, base: u64) -> String {
    if base == 0 {
        return "-".to_owned();
    }
    format!("{:+.1} %", 100.0 * (figure as f64 / base as f64 - 1.0))
}

/// `figure / base` with three decimals.
pub(crate) fn ratio(figure: u64, base: u64) -> String {
    if base == 0 {
        return "-".to_owned();
    }
    format!("{:.3}", figure as f64 / base as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let cases = [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("64KiB", 65536),
            ("64 kib", 65536),
            ("1MiB", 1 << 20),
            ("64kB", 64000),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, value) in cases {
            assert_eq!(size(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "1.5k",
            "4x",
            "18446744073709551616",
            "99999999TiB",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(positive_size("0").is_err());
    }

    #[test]
    fn changes_are_in_percent() {
        assert_eq!(change(110, 100), "+10.0 %");
        assert_eq!(change(1, 0), "-");
    }
}
