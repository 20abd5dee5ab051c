//! The stream of telecommands: packets, garbage, silence.

use metes_duster_protocol::{Frame, Framer};
use proptest::prelude::*;

use crate::packets::telecommand;

/// All frames of a stream; a packet that begins with 0xff in its data is disowned.
fn frames(framer: &mut Framer, bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .iter()
        .filter_map(|byte| match framer.push(*byte) {
            Some(Frame::Packet(packet)) => Some(packet.to_vec()),
            _ => None,
        })
        .collect()
}

#[test]
fn packets_back_to_back_are_found() {
    let (one, two) = (telecommand(17, 1, &[]), telecommand(8, 1, &[1, 2, 3]));
    let mut framer = Framer::new();
    let found = frames(
        &mut framer,
        &[one.clone(), two.clone(), one.clone()].concat(),
    );
    assert_eq!(found, [one.clone(), two, one]);
    assert_eq!(framer.discarded(), 0);
    assert_eq!(framer.silence(), None);
}

#[test]
fn what_follows_a_disowned_packet_waits_for_silence() {
    let (one, two) = (telecommand(17, 1, &[]), telecommand(8, 1, &[1, 2, 3]));
    let mut framer = Framer::new();
    assert_eq!(frames(&mut framer, &one).len(), 1);
    framer.disown();
    assert!(frames(&mut framer, &two).is_empty());
    assert_eq!(framer.silence(), None);
    assert_eq!(frames(&mut framer, &two), std::slice::from_ref(&two));
    assert_eq!(framer.discarded(), two.len() as u32);
}

#[test]
fn a_telecommand_within_a_damaged_one_is_not_found() {
    let inner = telecommand(8, 1, &[7, 19, 136]);
    let outer = telecommand(11, 4, &[&[1, 0, 0, 0, 9, 0, 0][..], &inner].concat());
    for lost in 0..outer.len() - inner.len() - 2 {
        let mut bytes = outer.clone();
        bytes.remove(lost);
        let mut framer = Framer::new();
        for byte in bytes.iter().chain(&outer) {
            if let Some(Frame::Packet(packet)) = framer.push(*byte) {
                assert_ne!(packet, inner);
                framer.disown();
            }
        }
    }
}

#[test]
fn a_packet_cut_off_is_told_with_its_header() {
    let one = telecommand(17, 1, &[]);
    let mut framer = Framer::new();
    assert!(frames(&mut framer, &one[..9]).is_empty());
    assert_eq!(framer.silence(), Some(Frame::Cut(&one[..9])));
    assert!(frames(&mut framer, &one[..5]).is_empty());
    assert_eq!(framer.silence(), None);
    assert_eq!(frames(&mut framer, &one), [one]);
}

#[test]
fn a_packet_longer_than_any_is_told_with_its_header() {
    let mut framer = Framer::new();
    let header = [0x18, 0x2a, 0xc0, 0x05, 0x03, 0xfa];
    for byte in &header[..5] {
        assert_eq!(framer.push(*byte), None);
    }
    assert_eq!(framer.push(header[5]), Some(Frame::Cut(&header)));
    assert_eq!(framer.push(1), None);
    framer.silence();
    // One byte less is the longest.
    for byte in [0x18, 0x2a, 0xc0, 0x05, 0x03, 0xf9]
        .iter()
        .chain(&[7; 1017])
    {
        assert_eq!(framer.push(*byte), None);
    }
    assert!(matches!(framer.push(7), Some(Frame::Packet(packet)) if packet.len() == 1024));
}

proptest! {
    #[test]
    fn after_garbage_and_silence_packets_are_found_again(
        garbage in prop::collection::vec(any::<u8>(), 0..3000),
        disown in any::<bool>(),
    ) {
        let mut framer = Framer::new();
        for byte in &garbage {
            let found = matches!(framer.push(*byte), Some(Frame::Packet(_)));
            if found && disown {
                framer.disown();
            }
        }
        framer.silence();
        let one = telecommand(17, 1, &[]);
        prop_assert_eq!(frames(&mut framer, &one), [one]);
    }
}
