//! Fields of any message, from its table alone.
//!
//! *Invariant:* what is made keeps to kinds and ranges; the same choices make the same bytes.

use metes_duster_protocol::definitions::ENUMERATIONS;
use metes_duster_protocol::value::{Field, Kind};

/// Where numbers come from: drawn ones, or a pattern.
pub(crate) trait Choices {
    /// A number of `least..=greatest`.
    fn number(&mut self, least: i128, greatest: i128) -> i128;
}

/// Choices out of drawn words; when they are used up, the least.
pub(crate) struct Drawn<'a>(pub(crate) &'a [u64]);

impl Choices for Drawn<'_> {
    fn number(&mut self, least: i128, greatest: i128) -> i128 {
        let Some((word, rest)) = self.0.split_first() else {
            return least;
        };
        self.0 = rest;
        least + i128::from(*word) % (greatest - least + 1)
    }
}

/// A pattern: near the least, but not the same twice.
pub(crate) struct Pattern(pub(crate) u32);

impl Choices for Pattern {
    fn number(&mut self, least: i128, greatest: i128) -> i128 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        least + i128::from(self.0 >> 8) % (greatest - least + 1)
    }
}

/// The bytes of fields.
pub(crate) fn fields(fields: &[Field], choices: &mut dyn Choices, bytes: &mut Vec<u8>) {
    for field in fields {
        value(&field.kind, field.range, choices, bytes);
    }
}

fn value(kind: &Kind, range: Option<(i64, i64)>, choices: &mut dyn Choices, bytes: &mut Vec<u8>) {
    let range = range.map(|(least, greatest)| (i128::from(least), i128::from(greatest)));
    let mut number = |width: u32, signed: bool, choices: &mut dyn Choices| {
        let whole = if signed {
            (-(1i128 << (width - 1)), (1 << (width - 1)) - 1)
        } else {
            (0, (1 << width) - 1)
        };
        let (least, greatest) = range.unwrap_or(whole);
        let number = choices.number(least, greatest);
        let all = number.to_be_bytes();
        bytes.extend_from_slice(&all[16 - width as usize / 8..]);
    };
    match kind {
        Kind::U8 => number(8, false, choices),
        Kind::U16 => number(16, false, choices),
        Kind::U32 => number(32, false, choices),
        Kind::U64 => number(64, false, choices),
        Kind::I16 => number(16, true, choices),
        Kind::I32 => number(32, true, choices),
        Kind::Time => number(48, false, choices),
        Kind::Enumeration(name) => bytes.push(named(name, choices) as u8),
        Kind::WideEnumeration(name) => bytes.extend_from_slice(&named(name, choices).to_be_bytes()),
        Kind::Bytes => {
            let (least, greatest) = range.unwrap_or((0, 60));
            let count = choices.number(least, greatest.min(60));
            bytes.extend_from_slice(&(count as u16).to_be_bytes());
            any(count, choices, bytes);
        }
        Kind::Rest => {
            let (least, greatest) = range.unwrap_or((0, 60));
            let count = choices.number(least, greatest.min(60));
            any(count, choices, bytes);
        }
        Kind::Group(group) => fields(group, choices, bytes),
        Kind::Repeated(of, names) => {
            for _ in *names {
                value(of, None, choices, bytes);
            }
        }
        Kind::Counted(of) => {
            let (least, greatest) = range.unwrap_or((0, 8));
            let count = choices.number(least, greatest.min(8));
            bytes.push(count as u8);
            for _ in 0..count {
                value(of, None, choices, bytes);
            }
        }
    }
}

fn any(count: i128, choices: &mut dyn Choices, bytes: &mut Vec<u8>) {
    for _ in 0..count {
        bytes.push(choices.number(0, 255) as u8);
    }
}

fn named(name: &str, choices: &mut dyn Choices) -> u16 {
    let enumeration = ENUMERATIONS
        .iter()
        .find(|enumeration| enumeration.name == name)
        .expect("tables name enumerations that are there");
    let index = choices.number(0, enumeration.values.len() as i128 - 1);
    enumeration.values[index as usize].0
}
