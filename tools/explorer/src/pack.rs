//! Columns packed for the page.
//!
//! Invariant: a value is exact up to 2⁵³, and an absent one is no number.

use metes_ui::columns;
use serde::Serialize;

use crate::columns::{Columns, Values};

/// A column among the bytes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Packed {
    /// Name as in the file.
    pub(crate) key: String,
    /// Where it lies.
    #[serde(flatten)]
    pub(crate) place: columns::Place,
    /// The words that the values count, for a column of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) words: Option<Vec<String>>,
}

/// The columns packed: what lies where, and the bytes, compressed, as base64.
pub(crate) fn pack(columns: &Columns) -> (Vec<Packed>, String) {
    let mut bytes = columns::Columns::default();
    let packed = columns.list.iter().map(|column| {
        let (place, words) = match &column.values {
            Values::Integers(values) => (bytes.add(values.iter().copied()), None),
            Values::Words { dictionary, codes } => {
                let codes = codes.iter().map(|code| code.map(u64::from));
                (bytes.add(codes), Some(dictionary.clone()))
            }
        };
        Packed {
            key: column.name.clone(),
            place,
            words,
        }
    });
    let packed = packed.collect();
    (packed, bytes.packed())
}
