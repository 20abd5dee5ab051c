//! Sizes and percentages, read and written.
//!
//! Invariant: what a `write_` function prints, its `read_` function reads back
//! as the same value.

const UNITS: [(&str, usize); 13] = [
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
];

/// A size in bytes: `4096`, `64 KiB`, `1_000 kB`.
///
/// # Errors
/// What a size is, where `text` is none.
pub fn read_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let Some(&(_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!(
            "`{text}` is not a size: write bytes as in `4096`, or a unit as in `64 KiB`"
        ));
    };
    number
        .replace('_', "")
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` is not a size in bytes that a machine word can hold"))
}

/// A size as TOML: a plain number of bytes where that is clearest, else a
/// string with a unit.
pub(crate) fn write_size(size: usize) -> String {
    match spell_size(size) {
        plain if plain.bytes().all(|b| b.is_ascii_digit()) && i64::try_from(size).is_ok() => plain,
        spelt => format!("\"{spelt}\""),
    }
}

/// A size for people and specs: `4096` is `4 KiB`, `100` is `100`.
pub fn spell_size(size: usize) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        let factor = 1usize << shift;
        if size >= factor && size.is_multiple_of(factor) {
            return format!("{} {unit}", size / factor);
        }
    }
    size.to_string()
}

/// A percentage: `50` or `50 %`.
pub(crate) fn read_percent(text: &str) -> Result<u32, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    number
        .parse()
        .map_err(|_| format!("`{text}` is not a percentage: write a whole number as in `50`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(read_size("0"), Ok(0));
        assert_eq!(read_size("64 KiB"), Ok(65536));
        assert_eq!(read_size("64KiB"), Ok(65536));
        assert_eq!(read_size("1_000 kB"), Ok(1_000_000));
        assert_eq!(read_size(&usize::MAX.to_string()), Ok(usize::MAX));
        for wrong in [
            "",
            "KiB",
            "-1",
            "1.5 MiB",
            "4 kib",
            "18446744073709551616",
            "99999999 TiB",
        ] {
            assert!(read_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_survive() {
        for size in [
            0,
            1,
            1000,
            1023,
            1024,
            1536,
            4096,
            1 << 36,
            usize::MAX,
            1 << 63,
        ] {
            assert_eq!(read_size(&spell_size(size)), Ok(size));
        }
    }
}
