//! What an event says, as a sentence: its meaning, and each field with name, value and unit, by the definitions.
//!
//! *Invariant:* a sentence has no field that the packet has not.

use metes_duster_protocol::Event;
use metes_duster_protocol::definitions::{ENUMERATIONS, EVENTS};
use metes_duster_protocol::value::{Field, Kind, Reader, Value as _};

/// The sentence of an event, whose source data is `data`.
pub(super) fn text(event: &Event, data: &[u8]) -> String {
    let Some(row) = EVENTS.get(usize::from(event.number()) - 1) else {
        return event.name().to_owned();
    };
    let reader = &mut Reader::new(data.get(1..).unwrap_or_default());
    let fields: Vec<String> = row
        .fields
        .iter()
        .map_while(|field| Some(format!("{} {}", field.name, value(field, reader)?)))
        .collect();
    let doc = row.doc.trim().trim_end_matches('.');
    if fields.is_empty() {
        doc.to_owned()
    } else {
        format!("{doc}: {}", fields.join(", "))
    }
}

/// A field's value as text, with its unit.
fn value(field: &Field, reader: &mut Reader<'_>) -> Option<String> {
    let number = match field.kind {
        Kind::U8 => u8::read(reader).ok()?.to_string(),
        Kind::U16 => u16::read(reader).ok()?.to_string(),
        Kind::U32 => u32::read(reader).ok()?.to_string(),
        Kind::U64 => u64::read(reader).ok()?.to_string(),
        Kind::I16 => i16::read(reader).ok()?.to_string(),
        Kind::I32 => i32::read(reader).ok()?.to_string(),
        Kind::Enumeration(name) => named(name, u8::read(reader).ok()?.into()),
        Kind::WideEnumeration(name) => named(name, u16::read(reader).ok()?),
        Kind::Group(fields) => {
            let inner: Option<Vec<String>> = fields.iter().map(|one| value(one, reader)).collect();
            inner?.join("/")
        }
        _ => return None,
    };
    Some(if field.unit.is_empty() {
        number
    } else {
        format!("{number} {}", field.unit)
    })
}

fn named(enumeration: &str, number: u16) -> String {
    ENUMERATIONS
        .iter()
        .filter(|one| one.name == enumeration)
        .flat_map(|one| one.values)
        .find(|value| value.0 == number)
        .map_or_else(|| number.to_string(), |value| value.1.to_owned())
}
