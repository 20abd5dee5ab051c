//! A telemetry packet, as far as the page reads it.
//!
//! *Invariant:* a packet whose check word does not fit, or which is not of the unit, is none.

/// A PUS-C telemetry packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub sequence: u16,
    pub service: u8,
    pub subtype: u8,
    /// Time of the unit, in microseconds.
    pub time: u64,
    pub data: &'a [u8],
}

const HEADER: usize = 19;

impl<'a> Packet<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (body, check) = bytes.split_at_checked(bytes.len().checked_sub(2)?)?;
        let half = |at: usize| Some(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]));
        let own = half(0)? == 0x0800 | 0x2a && usize::from(half(4)?) + 7 == bytes.len();
        if !own || crc(body).to_be_bytes() != check {
            return None;
        }
        let seconds = u32::from_be_bytes(body.get(13..17)?.try_into().ok()?);
        let fraction = u64::from(half(17)?) * 1_000_000 / 65_536;
        Some(Packet {
            sequence: half(2)? & 0x3fff,
            service: body[7],
            subtype: body[8],
            time: u64::from(seconds) * 1_000_000 + fraction,
            data: body.get(HEADER..)?,
        })
    }
}

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |sum: u16, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            (sum << 1) ^ if sum & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}
