//! Content of any message, from its table alone: for tests, campaigns and examples.
//!
//! *Invariant:* what is made keeps to kinds and ranges; the same choices make the same bytes.

use crate::definitions::ENUMERATIONS;
use crate::value::{Field, Kind, Writer};

/// Bytes and elements of what has no length of its own, at most.
const BYTES: i64 = 60;
const ELEMENTS: i64 = 8;

/// A number between two, both included.
pub type Choose<'a> = dyn FnMut(i64, i64) -> i64 + 'a;

/// Writes fields.
pub fn fields(fields: &[Field], choose: &mut Choose<'_>, writer: &mut Writer<'_>) {
    for field in fields {
        value(&field.kind, field.range, choose, writer);
    }
}

fn value(kind: &Kind, range: Option<(i64, i64)>, choose: &mut Choose<'_>, writer: &mut Writer<'_>) {
    let mut number = |bytes: usize, signed: bool| {
        let bits = 8 * bytes as u32;
        let (least, greatest) = range.unwrap_or(if signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        });
        let all = choose(least, greatest).to_be_bytes();
        writer.put(all.get(8 - bytes..).unwrap_or_default());
    };
    match kind {
        Kind::U8 => number(1, false),
        Kind::U16 => number(2, false),
        Kind::U32 => number(4, false),
        Kind::U64 => {
            number(4, false);
            number(4, false);
        }
        Kind::I16 => number(2, true),
        Kind::I32 => number(4, true),
        Kind::Time => number(6, false),
        Kind::Enumeration(name) => writer.put(&[named(name, choose) as u8]),
        Kind::WideEnumeration(name) => writer.put(&named(name, choose).to_be_bytes()),
        Kind::Bytes => {
            let count = length(range, BYTES, choose);
            writer.put(&(count as u16).to_be_bytes());
            any(count, choose, writer);
        }
        Kind::Rest => {
            let count = length(range, BYTES, choose);
            any(count, choose, writer);
        }
        Kind::Group(group) => fields(group, choose, writer),
        Kind::Repeated(of, names) => {
            for _ in *names {
                value(of, None, choose, writer);
            }
        }
        Kind::Counted(of) => {
            let count = length(range, ELEMENTS, choose);
            writer.put(&[count as u8]);
            for _ in 0..count {
                value(of, None, choose, writer);
            }
        }
    }
}

fn length(range: Option<(i64, i64)>, most: i64, choose: &mut Choose<'_>) -> i64 {
    let (least, greatest) = range.unwrap_or((0, most));
    choose(least, greatest.min(most))
}

fn any(count: i64, choose: &mut Choose<'_>, writer: &mut Writer<'_>) {
    for _ in 0..count {
        writer.put(&[choose(0, 255) as u8]);
    }
}

fn named(name: &str, choose: &mut Choose<'_>) -> u16 {
    let values = ENUMERATIONS
        .iter()
        .find(|enumeration| enumeration.name == name)
        .map_or(&[][..], |enumeration| enumeration.values);
    let index = choose(0, values.len() as i64 - 1);
    values.get(index as usize).map_or(0, |value| value.0)
}
