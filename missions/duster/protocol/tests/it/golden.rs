//! Packets on file, for decoders that are not ours: one of each telecommand and report.
//!
//! `METES_BLESS=1 cargo test -p metes-duster-protocol golden` writes them anew, when definitions have changed.

use std::fmt::Write;

use metes_duster_protocol::definitions::{
    Command, EVENTS, Event, HOUSEKEEPING, Housekeeping, REPORTS, Report, TELECOMMANDS,
};
use metes_duster_protocol::telecommand::{Acknowledge, decode, encode};
use metes_duster_protocol::value::Reader;
use metes_duster_protocol::{MAX_PACKET, Telemetry, Time};
use serde_json::{Value, json};

use crate::{content, pattern};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/packets.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn packets() -> Value {
    let mut packet = [0; MAX_PACKET];
    let mut sequence = 0;
    let telecommands: Vec<_> = TELECOMMANDS
        .iter()
        .map(|row| {
            sequence += 1;
            let mut data = content(row, pattern(sequence.into()));
            if row.name == "SET_PARAMETER" {
                data = vec![1, 0, 0, 0x75, 0x30];
            }
            let command = Command::read(row.key, &mut Reader::new(&data))
                .unwrap()
                .unwrap();
            let length = encode(&command, sequence, Acknowledge::ALL, &mut packet).unwrap();
            assert!(decode(&packet[..length]).is_ok());
            let (service, subtype, _) = row.key;
            json!({ "name": row.name, "service": service, "subtype": subtype, "sequence": sequence,
                    "data": hex(&packet[11..length - 2]), "packet": hex(&packet[..length]) })
        })
        .collect();
    sequence = 0;
    let mut telemetry = |name: &str, report: Telemetry<'_>| {
        sequence += 1;
        let time = Time::from_microseconds(1_500_000 * u64::from(sequence));
        let length = report.write(&mut packet, sequence, time).unwrap();
        let (service, subtype) = report.kind();
        json!({ "name": name, "service": service, "subtype": subtype, "sequence": sequence,
                "time": time.units(), "data": hex(&packet[19..length - 2]), "packet": hex(&packet[..length]) })
    };
    let mut reports = Vec::new();
    for (index, row) in REPORTS.iter().enumerate() {
        let data = content(row, pattern(index as u32));
        let report = Report::read(row.key, &mut Reader::new(&data))
            .unwrap()
            .unwrap();
        reports.push(telemetry(row.name, Telemetry::Report(report)));
    }
    for (index, row) in EVENTS.iter().enumerate() {
        let data = content(row, pattern(100 + index as u32));
        let event = Event::read(row.key, &mut Reader::new(&data))
            .unwrap()
            .unwrap();
        reports.push(telemetry(row.name, Telemetry::Event(event)));
    }
    for (index, row) in HOUSEKEEPING.iter().enumerate() {
        let data = content(row, pattern(200 + index as u32));
        let report = Housekeeping::read(row.key, &mut Reader::new(&data))
            .unwrap()
            .unwrap();
        reports.push(telemetry(row.name, Telemetry::Housekeeping(report)));
    }
    json!({ "telecommands": telecommands, "telemetry": reports })
}

#[test]
fn golden_packets_are_what_is_written() {
    let written = format!("{:#}\n", packets());
    if std::env::var_os("METES_BLESS").is_some() {
        std::fs::write(FILE, &written).expect("the file is written");
    }
    let on_file = std::fs::read_to_string(FILE).expect("the file is there");
    assert!(
        on_file == written,
        "definitions have changed: METES_BLESS=1 cargo test -p metes-duster-protocol golden"
    );
}
