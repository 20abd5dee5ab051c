//! Columns of numbers as bytes that a page turns into typed arrays without parsing; `page-columns.js` reads them.
//!
//! Each column takes the narrowest type that holds its values; the bytes of wide values are kept plane by plane (all
//! first bytes, all second bytes, …), which compresses to about half. The whole is compressed once.
//!
//! *Invariant:* a value is exact up to 2⁵³; an absent one is the type's largest value, which no present one is.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// Columns, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    bytes: Vec<u8>,
}

/// Where a column lies among the bytes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `u8`, `u16`, `u32` or `f64`.
    pub kind: &'static str,
    /// First byte.
    pub at: usize,
}

impl Columns {
    /// Adds a column, whose values are asked for several times; where it lies. Linear.
    pub fn add(&mut self, values: impl Iterator<Item = Option<u64>> + Clone) -> Place {
        let at = self.bytes.len();
        let largest = values.clone().flatten().max().unwrap_or(0);
        let (kind, width) = match largest {
            0..0xff => ("u8", 1),
            0xff..0xffff => ("u16", 2),
            0xffff..0xffff_ffff => ("u32", 4),
            _ => ("f64", 8),
        };
        let word = |value| match (kind, value) {
            ("f64", Some(value)) => (value as f64).to_bits(),
            ("f64", None) => f64::NAN.to_bits(),
            (_, Some(value)) => value,
            (_, None) => u64::MAX,
        };
        for plane in 0..width {
            let bytes = values.clone().map(|value| word(value).to_le_bytes()[plane]);
            self.bytes.extend(bytes);
        }
        Place { kind, at }
    }

    /// All bytes compressed, as base64 text: what [`Page::fill_with`](crate::Page::fill_with) takes. Linear.
    ///
    /// # Panics
    /// Never: memory takes every byte.
    #[must_use]
    pub fn packed(&self) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(7));
        let stream = encoder
            .write_all(&self.bytes)
            .and_then(|()| encoder.finish());
        STANDARD.encode(stream.expect("memory takes every byte"))
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
            let mut columns = Columns::default();
            let place = columns.add([Some(value), None].into_iter());
            assert_eq!(place, Place { kind, at: 0 }, "{value}");
            assert_eq!(columns.bytes.len(), size, "{value}");
            assert_eq!(columns.add([].into_iter()).at, size, "{value}");
        }
    }

    #[test]
    fn wide_values_lie_plane_by_plane() {
        let mut columns = Columns::default();
        columns.add([Some(0x0102), Some(0x0304), None].into_iter());
        assert_eq!(columns.bytes, [0x02, 0x04, 0xff, 0x01, 0x03, 0xff]);
    }
}
