//! Columns as bytes that a page turns into typed arrays without parsing.
//!
//! Each column takes the narrowest type that holds its values; the bytes of wide
//! values are kept plane by plane (all first bytes, all second bytes, …), which
//! compresses to about half. The whole is compressed once.
//!
//! Invariant: a value is exact up to 2⁵³; an absent one is the type's largest
//! value, which no present one is.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::columns::{Column, Columns, Values};

/// Where a column lies among the bytes, and how.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Packed {
    /// Name as in the file.
    pub(crate) key: String,
    /// `u8`, `u16`, `u32` or `f64`.
    pub(crate) kind: &'static str,
    /// First byte.
    pub(crate) at: usize,
    /// The words that the values count, for a column of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) words: Option<Vec<String>>,
}

/// The columns packed: what lies where, and the bytes, compressed, as base64.
pub(crate) fn pack(columns: &Columns) -> (Vec<Packed>, String) {
    let mut bytes = Vec::new();
    let packed = columns
        .list
        .iter()
        .map(|column| one(column, &mut bytes))
        .collect();
    (packed, compressed(&bytes))
}

/// Bytes compressed, as base64 text.
pub(crate) fn compressed(bytes: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(7));
    let stream = encoder.write_all(bytes).and_then(|()| encoder.finish());
    STANDARD.encode(stream.expect("memory takes every byte"))
}

fn one(column: &Column, bytes: &mut Vec<u8>) -> Packed {
    let at = bytes.len();
    let (numbers, words): (Vec<Option<u64>>, _) = match &column.values {
        Values::Integers(values) => (values.clone(), None),
        Values::Words { dictionary, codes } => (
            codes.iter().map(|code| code.map(u64::from)).collect(),
            Some(dictionary.clone()),
        ),
    };
    let largest = numbers.iter().flatten().max().copied().unwrap_or(0);
    let kind = match largest {
        0..0xff => "u8",
        0xff..0xffff => "u16",
        0xffff..0xffff_ffff => "u32",
        _ => "f64",
    };
    let width = match kind {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        _ => 8,
    };
    let word = |value: &Option<u64>| match (kind, value) {
        ("f64", Some(value)) => (*value as f64).to_bits(),
        ("f64", None) => f64::NAN.to_bits(),
        (_, Some(value)) => *value,
        (_, None) => u64::MAX,
    };
    for plane in 0..width {
        bytes.extend(numbers.iter().map(|value| word(value).to_le_bytes()[plane]));
    }
    Packed {
        key: column.name.clone(),
        kind,
        at,
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_takes_the_narrowest_type_that_leaves_room_for_absence() {
        for (value, kind, size) in [
            (254, "u8", 2),
            (255, "u16", 4),
            (65_534, "u16", 4),
            (65_535, "u32", 8),
            (u64::from(u32::MAX), "f64", 16),
        ] {
            let column = Column {
                name: "x".into(),
                values: Values::Integers(vec![Some(value), None]),
            };
            let mut bytes = Vec::new();
            assert_eq!(one(&column, &mut bytes).kind, kind, "{value}");
            assert_eq!(bytes.len(), size, "{value}");
        }
    }

    #[test]
    fn wide_values_lie_plane_by_plane() {
        let column = Column {
            name: "x".into(),
            values: Values::Integers(vec![Some(0x0102), Some(0x0304), None]),
        };
        let mut bytes = Vec::new();
        one(&column, &mut bytes);
        assert_eq!(bytes, [0x02, 0x04, 0xff, 0x01, 0x03, 0xff]);
    }
}
