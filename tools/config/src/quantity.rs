//! Sizes and percentages, read and written.
//!
//! Invariant: what a `write_` function prints, its `read_` function reads back
//! as the same value.

/// A size in bytes: `4096`, `64 KiB`, `1_000 kB`; the grammar is that of [`metes_quantity`].
///
/// # Errors
/// What a size is, where `text` is none.
pub fn read_size(text: &str) -> Result<usize, String> {
    let bytes = metes_quantity::read_bytes(text).map_err(|error| error.to_string())?;
    usize::try_from(bytes)
        .map_err(|_| metes_quantity::NoQuantity::Large(text.to_owned()).to_string())
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
    metes_quantity::spell_bytes(size as u64)
}

/// A percentage: `50` or `50 %`.
pub(crate) fn read_percent(text: &str) -> Result<u32, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    number
        .parse()
        .map_err(|_| format!("`{text}` is not a percentage: write a whole number as in `50`"))
}
