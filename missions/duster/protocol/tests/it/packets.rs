//! Each telecommand and each report there and back; any bytes; each way in which a telecommand is wrong.

use metes_duster_protocol::definitions::{
    Command, EVENTS, Event, Failure, HOUSEKEEPING, Housekeeping, Mode, Probe, REPORTS, Rates,
    Report, RequestId, ScienceKind, TELECOMMANDS,
};
use metes_duster_protocol::telecommand::{Acknowledge, decode, encode};
use metes_duster_protocol::telemetry::{
    Damage, HEADER, HEADROOM, SCIENCE_HEADER, ScienceHeader, Telemetry, seal_science,
};
use metes_duster_protocol::value::{Reader, Rest};
use metes_duster_protocol::{MAX_PACKET, Time};
use proptest::prelude::*;

use crate::{content, drawn};

/// A telecommand with any content behind the headers, and a right checksum.
pub(crate) fn telecommand(service: u8, subtype: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() + 6) as u16;
    let mut packet = vec![0x18, 0x2a, 0xc0, 0x01];
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[0x2f, service, subtype, 0, 0]);
    packet.extend_from_slice(data);
    checksum(&mut packet);
    packet
}

/// Appends the checksum, bit by bit.
pub(crate) fn checksum(packet: &mut Vec<u8>) {
    let mut crc = 0xffff_u16;
    for byte in packet.iter() {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 {
                crc << 1 ^ 0x1021
            } else {
                crc << 1
            };
        }
    }
    packet.extend_from_slice(&crc.to_be_bytes());
}

fn refused(packet: &[u8]) -> Failure {
    let refusal = decode(packet).expect_err("it is refused");
    assert_eq!(refusal.id, RequestId::of(packet));
    refusal.code
}

fn sealed_again(telemetry: &Telemetry<'_>) {
    let mut packet = [0xee; MAX_PACKET + 1];
    let time = Time::from_units(0x0123_4567_89ab);
    let length = telemetry.write(&mut packet, 0x3fff, time).expect("it fits");
    let received = Telemetry::decode(&packet[..length]).expect("it is telemetry");
    assert_eq!((received.sequence, received.time), (0x3fff, time));
    assert_eq!(received.telemetry, *telemetry);
    assert_eq!(packet[length], 0xee, "nothing is written behind the packet");
}

proptest! {
    #[test]
    fn a_telecommand_is_read_as_it_was_written(
        row in 0..TELECOMMANDS.len(),
        words in prop::collection::vec(any::<u64>(), 0..80),
        sequence in 0..0x4000_u16,
        flags in 0..16_u8,
    ) {
        let row = &TELECOMMANDS[row];
        let data = content(row, drawn(&words));
        let command = Command::read(row.key, &mut Reader::new(&data)).unwrap().unwrap();
        let mut packet = [0; MAX_PACKET];
        let acknowledge = Acknowledge::of(flags);
        let length = encode(&command, sequence, acknowledge, &mut packet).unwrap();
        let request = match (decode(&packet[..length]), command) {
            (Err(refusal), Command::SetParameter { parameter, value }) => {
                let row = parameter.definition().expect("it can be set");
                prop_assert!(value < row.least || value > row.greatest);
                prop_assert_eq!(refusal.code, Failure::Argument);
                return Ok(());
            }
            (request, _) => request.unwrap(),
        };
        prop_assert_eq!(request.command, command);
        prop_assert_eq!(request.acknowledge, acknowledge);
        prop_assert_eq!(request.id, RequestId { packet: 0x182a, sequence: 0xc000 | sequence });
        // One byte more or less is another length.
        let key = if row.key.0 == 8 { vec![row.key.2] } else { vec![] };
        if !row.fields.last().is_some_and(|field| matches!(field.kind, metes_duster_protocol::value::Kind::Rest)) {
            let longer = [&key[..], &data, &[0]].concat();
            prop_assert_eq!(refused(&telecommand(row.key.0, row.key.1, &longer)), Failure::Length);
            if let Some((_, shorter)) = data.split_last() {
                let shorter = [&key[..], shorter].concat();
                prop_assert_eq!(refused(&telecommand(row.key.0, row.key.1, &shorter)), Failure::Length);
            }
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written(
        row in any::<prop::sample::Index>(),
        words in prop::collection::vec(any::<u64>(), 0..120),
    ) {
        let data;
        let row = row.index(REPORTS.len() + EVENTS.len() + HOUSEKEEPING.len());
        let telemetry = if let Some(row) = REPORTS.get(row) {
            data = content(row, drawn(&words));
            Telemetry::Report(Report::read(row.key, &mut Reader::new(&data)).unwrap().unwrap())
        } else if let Some(row) = EVENTS.get(row - REPORTS.len()) {
            data = content(row, drawn(&words));
            Telemetry::Event(Event::read(row.key, &mut Reader::new(&data)).unwrap().unwrap())
        } else {
            let row = &HOUSEKEEPING[row - REPORTS.len() - EVENTS.len()];
            data = content(row, drawn(&words));
            Telemetry::Housekeeping(Housekeeping::read(row.key, &mut Reader::new(&data)).unwrap().unwrap())
        };
        sealed_again(&telemetry);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
        if let Err(refusal) = decode(&bytes) {
            prop_assert_eq!(refusal.id, RequestId::of(&bytes));
        }
        let _ = Telemetry::decode(&bytes);
    }

    #[test]
    fn any_content_is_read(
        service in any::<u8>(),
        subtype in any::<u8>(),
        row in 0..TELECOMMANDS.len(),
        known in any::<bool>(),
        data in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let (service, subtype) = if known {
            (TELECOMMANDS[row].key.0, TELECOMMANDS[row].key.1)
        } else {
            (service, subtype)
        };
        let packet = telecommand(service, subtype, &data);
        if let Ok(request) = decode(&packet) {
            let mut again = [0; MAX_PACKET];
            let length = encode(&request.command, 1, request.acknowledge, &mut again).unwrap();
            prop_assert_eq!(&again[..length], &packet[..]);
        }
        let mut report = packet;
        report[0] = 0x08;
        report.truncate(report.len() - 2);
        checksum(&mut report);
        let _ = Telemetry::decode(&report);
    }

    #[test]
    fn a_damaged_telecommand_is_refused(bit in 0..8 * 17_usize) {
        let mut packet = telecommand(20, 3, &[1, 0, 0, 1]);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(matches!(refused(&packet), Failure::Length | Failure::Checksum));
    }
}

#[test]
fn what_is_wrong_is_told() {
    assert_eq!(refused(&[]), Failure::Length);
    assert_eq!(refused(&telecommand(17, 1, &[])[..12]), Failure::Length);
    assert_eq!(
        refused(&[telecommand(17, 1, &[]), vec![0]].concat()),
        Failure::Length
    );
    assert_eq!(refused(&telecommand(200, 1, &[])), Failure::Service);
    assert_eq!(refused(&telecommand(17, 2, &[])), Failure::Subtype);
    assert_eq!(refused(&telecommand(8, 1, &[0])), Failure::Function);
    assert_eq!(refused(&telecommand(8, 1, &[99])), Failure::Function);
    assert_eq!(refused(&telecommand(8, 1, &[])), Failure::Length);
    assert_eq!(refused(&telecommand(128, 1, &[9])), Failure::Argument);
    for (bytes, code) in [
        (&[0x38, 0x2a][..], Failure::Version),
        (&[0x08, 0x2a], Failure::Version),
        (&[0x10, 0x2a], Failure::Version),
        (&[0x18, 0x2b], Failure::Apid),
    ] {
        let mut packet = telecommand(17, 1, &[]);
        packet.truncate(11);
        packet[..2].copy_from_slice(bytes);
        checksum(&mut packet);
        assert_eq!(refused(&packet), code);
    }
    for (at, byte) in [(6, 0x1f), (6, 0xff), (2, 0x40)] {
        let mut packet = telecommand(17, 1, &[]);
        packet.truncate(11);
        packet[at] = byte;
        checksum(&mut packet);
        assert_eq!(refused(&packet), Failure::Version);
    }
}

#[test]
fn ranges_are_held_at_both_ends() {
    let sweep = |steps: u16, dwell: u16| {
        let mut data = vec![3];
        for word in [steps, 0x8000, 0x7fff, dwell] {
            data.extend_from_slice(&word.to_be_bytes());
        }
        decode(&telecommand(8, 1, &data))
            .map(|request| request.command.key())
            .map_err(|refusal| refusal.code)
    };
    for steps in [600, 1000] {
        assert_eq!(sweep(steps, 10), Ok((8, 1, 3)));
        assert_eq!(sweep(steps, 100), Ok((8, 1, 3)));
    }
    for (steps, dwell) in [(599, 10), (1001, 10), (600, 9), (600, 101)] {
        assert_eq!(sweep(steps, dwell), Err(Failure::Argument));
    }
    let acquisition = Command::StartAcquisition {
        probes: 7,
        rates: Rates::Objective,
        duration: 60,
    };
    let mut packet = [0; 64];
    let length = encode(&acquisition, 0, Acknowledge::ALL, &mut packet).unwrap();
    assert_eq!(decode(&packet[..length]).unwrap().command, acquisition);
}

#[test]
fn a_packet_that_does_not_fit_is_not_written() {
    let data = [0; 1000];
    let dump = Telemetry::Report(Report::MemoryDump {
        address: 0,
        data: metes_duster_protocol::value::Bytes(&data),
    });
    assert_eq!(dump.write(&mut [0; 2000], 0, Time::default()), None);
    let mode = Telemetry::Report(Report::ModeReport { mode: Mode::Safe });
    assert_eq!(mode.write(&mut [0; HEADER + 2], 0, Time::default()), None);
    assert_eq!(
        mode.write(&mut [0; HEADER + 3], 0, Time::default()),
        Some(HEADER + 3)
    );
    assert_eq!(
        encode(&Command::Ping {}, 0, Acknowledge::ALL, &mut [0; 12]),
        None
    );
}

#[test]
fn science_is_sealed_where_it_lies() {
    let header = ScienceHeader {
        kind: ScienceKind::Samples,
        probe: Probe::Dust,
        acquisition: 7,
        rate: 10_000,
        first: 384,
        time: 38_400,
        count: 4,
    };
    let mut block = [0xee; HEADROOM + SCIENCE_HEADER + 10 + 2];
    header.write(&mut block[HEADROOM..]).unwrap();
    block[HEADROOM + SCIENCE_HEADER..][..10].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for stored in [false, true] {
        let packet = seal_science(
            &mut block,
            SCIENCE_HEADER + 10,
            stored,
            9,
            Time::from_units(5),
        )
        .unwrap();
        assert_eq!(packet, 13..block.len());
        let received = Telemetry::decode(&block[packet]).unwrap();
        let (Telemetry::Report(Report::Science { first, data, .. })
        | Telemetry::Report(Report::StoredScience { first, data, .. })) = received.telemetry
        else {
            panic!("{received:?}");
        };
        assert_eq!((first, data), (384, Rest(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])));
        assert_eq!(received.telemetry.kind(), (128, 128 + u8::from(stored)));
        assert_eq!(ScienceHeader::read(&block[HEADROOM..]), Some(header));
    }
    assert_eq!(
        seal_science(&mut block, SCIENCE_HEADER + 11, false, 0, Time::default()),
        None
    );
    assert_eq!(
        seal_science(&mut [0; 5], 0, false, 0, Time::default()),
        None
    );
}

#[test]
fn an_event_of_another_severity_is_none() {
    let event = Telemetry::Event(Event::HvTrip { voltage: 5000 });
    let mut packet = [0; 64];
    let length = event.write(&mut packet, 0, Time::default()).unwrap();
    assert_eq!(packet[8], 4);
    let mut other = packet[..length - 2].to_vec();
    other[8] = 1;
    checksum(&mut other);
    assert_eq!(Telemetry::decode(&other), Err(Damage::Unknown));
}
