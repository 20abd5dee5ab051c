//! Prints the definitions as JSON, for the ground: `cargo run -p metes-duster-protocol --example definitions`.

use metes_duster_protocol::definitions::{
    ENUMERATIONS, EVENTS, HOUSEKEEPING, Mode, Modes, PARAMETERS, REPORTS, SCIENCE_BODIES,
    TELECOMMANDS, transitions,
};
use metes_duster_protocol::telemetry::{HEADER, HEADROOM};
use metes_duster_protocol::value::{Field, Kind};
use metes_duster_protocol::{APID, APID_ACQUISITION, MAX_PACKET, samples};
use serde_json::{Value, json};

fn main() {
    println!("{:#}", definitions());
}

fn definitions() -> Value {
    json!({
        "apid": APID,
        "apid_acquisition": APID_ACQUISITION,
        "max_packet": MAX_PACKET,
        "telemetry_header": HEADER,
        "science_headroom": HEADROOM,
        "samples_in_packet": samples::IN_PACKET,
        "enumerations": ENUMERATIONS.iter().map(|enumeration| json!({
            "name": enumeration.name,
            "doc": enumeration.doc.trim(),
            "values": enumeration.values.iter().map(|(number, name, doc)| json!({
                "number": number, "name": name, "doc": doc.trim(),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "modes": modes().map(|mode| json!({
            "number": mode as u8, "name": mode.name(), "to": names(transitions(mode)),
        })).collect::<Vec<_>>(),
        "telecommands": TELECOMMANDS.iter().map(|telecommand| {
            let (service, subtype, function) = telecommand.key;
            json!({
                "service": service,
                "subtype": subtype,
                "function": (function != 0).then_some(function),
                "name": telecommand.name,
                "doc": telecommand.doc.trim(),
                "modes": names(telecommand.extra),
                "arguments": fields(telecommand.fields),
            })
        }).collect::<Vec<_>>(),
        "reports": REPORTS.iter().map(|report| json!({
            "service": report.key.0,
            "subtype": report.key.1,
            "name": report.name,
            "doc": report.doc.trim(),
            "fields": fields(report.fields),
        })).collect::<Vec<_>>(),
        "housekeeping": HOUSEKEEPING.iter().map(|structure| json!({
            "sid": structure.key.0,
            "name": structure.name,
            "doc": structure.doc.trim(),
            "period": structure.extra,
            "fields": fields(structure.fields),
        })).collect::<Vec<_>>(),
        "events": EVENTS.iter().map(|event| json!({
            "id": event.key.0,
            "name": event.name,
            "doc": event.doc.trim(),
            "severity": format!("{:?}", event.extra).to_uppercase(),
            "subtype": event.extra as u8,
            "fields": fields(event.fields),
        })).collect::<Vec<_>>(),
        "parameters": PARAMETERS.iter().map(|row| json!({
            "id": row.parameter as u8,
            "name": row.parameter.name(),
            "unit": row.unit,
            "range": [row.least, row.greatest],
            "default": row.default,
        })).collect::<Vec<_>>(),
        "science": SCIENCE_BODIES.iter().map(|body| json!({
            "kind": body.kind as u8,
            "name": body.kind.name(),
            "header": fields(body.header),
            "element": if body.element.is_empty() { json!("sample20") } else { json!(fields(body.element)) },
        })).collect::<Vec<_>>(),
    })
}

fn modes() -> impl Iterator<Item = Mode> {
    (0..=u8::MAX).map_while(Mode::of)
}

fn names(set: Modes) -> Vec<&'static str> {
    modes()
        .filter(|mode| set.contains(*mode))
        .map(Mode::name)
        .collect()
}

fn fields(fields: &[Field]) -> Vec<Value> {
    fields
        .iter()
        .map(|field| {
            let mut value = kind(&field.kind);
            value["name"] = json!(field.name);
            value["doc"] = json!(field.doc.trim());
            if !field.unit.is_empty() {
                value["unit"] = json!(field.unit);
            }
            if let Some((least, greatest)) = field.range {
                value["range"] = json!([least, greatest]);
            }
            value
        })
        .collect()
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::U8 => json!({ "kind": "u8" }),
        Kind::U16 => json!({ "kind": "u16" }),
        Kind::U32 => json!({ "kind": "u32" }),
        Kind::U64 => json!({ "kind": "u64" }),
        Kind::I16 => json!({ "kind": "i16" }),
        Kind::I32 => json!({ "kind": "i32" }),
        Kind::Time => json!({ "kind": "time" }),
        Kind::Bytes => json!({ "kind": "bytes" }),
        Kind::Rest => json!({ "kind": "rest" }),
        Kind::Enumeration(name) => {
            json!({ "kind": "enumeration", "bytes": 1, "enumeration": name })
        }
        Kind::WideEnumeration(name) => {
            json!({ "kind": "enumeration", "bytes": 2, "enumeration": name })
        }
        Kind::Group(group) => json!({ "kind": "group", "fields": fields(group) }),
        Kind::Repeated(of, names) => {
            json!({ "kind": "repeated", "of": self::kind(of), "names": names })
        }
        Kind::Counted(of) => json!({ "kind": "counted", "of": self::kind(of) }),
    }
}
