//! The packets as a capture file (pcap, nanosecond timestamps) that network tools
//! open: Ethernet, IPv4 with a right checksum, and filling.

use std::io::{self, Write};

use super::Packet;

/// Little-endian pcap with nanoseconds, version 2.4, Ethernet.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: u32 = 2 | 4 << 16;
const ETHERNET: u32 = 1;
const SNAP: u32 = 65_535;
const ETHERNET_HEADER: usize = 14;
const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A packet is shorter than its headers or longer than the format allows.
    #[error("a packet of {size} bytes has no place in a capture: from 34 to {SNAP} bytes have")]
    Size {
        /// The packet's bytes.
        size: u32,
    },
    /// The file could not be written.
    #[error("cannot write the capture: {0}")]
    Write(#[from] io::Error),
}

/// Writes the packets with the times of their arrival. O(bytes).
///
/// # Errors
/// [`CaptureError`] for an impossible packet, or when `file` cannot be written.
pub fn write_capture(packets: &[Packet], file: &mut impl Write) -> Result<(), CaptureError> {
    for word in [MAGIC, VERSION, 0, 0, SNAP, ETHERNET] {
        file.write_all(&word.to_le_bytes())?;
    }
    let mut bytes = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let size = packet.size;
        if (size as usize) < ETHERNET_HEADER + IP_HEADER || size > SNAP {
            return Err(CaptureError::Size { size });
        }
        let seconds = packet.arrival / NS_PER_SECOND;
        let nanoseconds = packet.arrival % NS_PER_SECOND;
        for word in [seconds as u32, nanoseconds as u32, size, size] {
            file.write_all(&word.to_le_bytes())?;
        }
        fill(&mut bytes, size as usize, number);
        file.write_all(&bytes)?;
    }
    file.flush()?;
    Ok(())
}

/// Makes the bytes of packet `number`.
fn fill(bytes: &mut Vec<u8>, size: usize, number: usize) {
    bytes.clear();
    // Locally administered hardware addresses; IPv4.
    bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let length = ((size - ETHERNET_HEADER) as u16).to_be_bytes();
    let identity = (number as u16).to_be_bytes();
    // TCP where there is room for its header, else UDP; addresses for documentation.
    let tcp = size >= ETHERNET_HEADER + IP_HEADER + TCP_HEADER;
    let protocol = if tcp { 6 } else { 17 };
    let host = (number % 250) as u8 + 1;
    let header = bytes.len();
    bytes.extend([0x45, 0, length[0], length[1]]);
    bytes.extend([identity[0], identity[1], 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend([192, 0, 2, host, 198, 51, 100, host]);
    let sum = checksum(&bytes[header..]).to_be_bytes();
    bytes[header + 10..header + 12].copy_from_slice(&sum);
    let begun = bytes.len();
    bytes.extend((begun..size).map(|place| (place as u8) ^ (number as u8)));
}

/// The Internet checksum (RFC 1071) of whole pairs of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let pairs = bytes.as_chunks().0.iter();
    let mut sum: u32 = pairs
        .map(|&pair: &[u8; 2]| u32::from(u16::from_be_bytes(pair)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
