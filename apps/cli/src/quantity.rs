//! Quantities on the command line and figures on the screen.
//!
//! Invariant: a printed figure says its unit; the grammar of sizes and times is that of
//! [`metes_quantity`].

use metes_explore::engine::{ObjectiveSet, Shard};
use metes_quantity::read_bytes;
pub(crate) use metes_quantity::{bytes, duration, grouped};
use metes_tune::Turns;

/// A size of at least one byte.
pub(crate) fn positive_size(text: &str) -> Result<u64, String> {
    metes_quantity::read_positive_bytes(text)
}

/// Times a quantity: `8x`, `1.5x` or `8`.
pub(crate) fn times(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', '×']).unwrap_or(text);
    match number.parse::<f64>() {
        Ok(times) if times > 0.0 && times <= 1e9 => Ok(times),
        _ => Err("give a factor above zero, as in 8x".to_owned()),
    }
}

/// Bytes of a slice of a block: a power of two.
pub(crate) fn slice(text: &str) -> Result<u64, String> {
    let size = read_bytes(text).map_err(|error| error.to_string())?;
    match size.is_power_of_two() && (16..=1 << 30).contains(&size) {
        true => Ok(size),
        false => Err("give a power of two from 16 to 1 GiB".to_owned()),
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
    let size = read_bytes(text).map_err(|error| format!("{error}, or `no`"))?;
    match usize::try_from(size)
        .ok()
        .filter(|size| metes_config::MAPPED.contains(size))
    {
        Some(size) => Ok(MappedFrom(Some(size))),
        None => Err("give a size from 4 KiB to 1 GiB, or `no`".to_owned()),
    }
}

/// Runs on each allocator: `5`, or `no`.
pub(crate) fn turns(text: &str) -> Result<Turns, String> {
    match text.parse() {
        _ if text == "no" => Ok(Turns::No),
        Ok(count @ 1..=99) => Ok(Turns::Of(count)),
        _ => Err("give a number from 1 to 99, or `no`".to_owned()),
    }
}

/// A time in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    metes_quantity::read_seconds(text).map_err(|error| error.to_string())
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
    fn changes_are_in_percent() {
        assert_eq!(change(110, 100), "+10.0 %");
        assert_eq!(change(1, 0), "-");
    }
}
