//! Packet buffering: what a router between a fast and a slow line asks of a heap.
//!
//! The workload has the figures that Mamagkakis et al. (EMSOFT 2006, section 7.1)
//! give for Easyport, whose captures are not public: 12 000 packets of 59 sizes
//! from 66 bytes (acknowledgements) to 54 KB, 38 % of 1514 bytes and 22 % of 66
//! bytes, at most 647 buffered at once, received in bursts, forwarded first in,
//! first out. All else is ours:
//!
//! - The other 40 % are signalling, voice and other datagrams, and segments that
//!   the receiver has merged (54 + 1460 k bytes), rarer the longer they are.
//! - A burst is 1 to 64 packets at 8 ns a byte (1 Gbit/s); the line on which they
//!   leave takes 80 ns a byte (100 Mbit/s). Between bursts the line recovers: it
//!   is loaded to 60 %, but during three rushes, when four times as much comes in
//!   as can leave, until 647 packets are buffered.
//! - A packet lives from its arrival until its last byte has left.
//!
//! Accesses are counted in words of 4 bytes, as the program in
//! `examples/cases/packets` makes them: a packet is written once when it comes
//! and read once when it leaves; in between its header is checked and rewritten
//! ([`HEADER_READS`], [`HEADER_WRITES`]).
//!
//! Invariant: sizes are apportioned before they are put in order, so every seed
//! gives exactly the same number of packets of each size.

mod capture;
mod sizes;

use std::collections::VecDeque;

use metes_trace::{Event, Op, Provenance, Trace, TraceBuilder};

pub use capture::{CaptureError, write_capture};
use metes_lab::Random;
pub use sizes::{ACKNOWLEDGEMENT, FULL, LARGEST, sizes};

/// Bytes of a word in which accesses are counted: the width of the processor's bus.
pub const WORD: u32 = 4;
/// Words of its header that the program reads between receiving and sending a
/// packet: its type and length; the ten halves of the header for the checksum
/// (6 words); source and destination (4) for the choice of the line.
pub const HEADER_READS: u64 = 11;
/// Words of its header that the program writes: both hardware addresses (3),
/// time to live and checksum.
pub const HEADER_WRITES: u64 = 5;
/// Bytes of those words of the header: read, and below written.
const HEADER_READ_BYTES: u64 = 33;
const HEADER_WRITE_BYTES: u64 = 15;
/// Packets that may be buffered at once.
pub const MOST_BUFFERED: usize = 647;

const IN_NS_PER_BYTE: u64 = 8;
/// Nanoseconds that the line on which packets leave takes for a byte.
pub const OUT_NS_PER_BYTE: u64 = 80;
const LONGEST_BURST: u64 = 64;
/// Load of the leaving line, in percent.
const CALM: u64 = 60;
const RUSH: u64 = 400;
/// Rushes begin when these shares of all packets have come, in percent.
const RUSHES: [usize; 3] = [15, 45, 75];

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many packets.
    pub packets: usize,
    /// What orders sizes and draws bursts.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            packets: 12_000,
            seed: 1,
        }
    }
}

/// One packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes, hardware header included.
    pub size: u32,
    /// When it has arrived, nanoseconds from the start.
    pub arrival: u64,
    /// When its last byte has left.
    pub departure: u64,
}

/// All packets in the order of their arrival. O(packets).
pub fn packets(options: &Options) -> Vec<Packet> {
    let mut random = Random::new(options.seed);
    let order = sizes::in_order(options.packets, &mut random);
    let mut packets: Vec<Packet> = Vec::with_capacity(order.len());
    let mut buffered: VecDeque<u64> = VecDeque::new();
    let mut rushes = RUSHES
        .map(|share| options.packets * share / 100)
        .into_iter();
    let mut next_rush = rushes.next();
    let mut rush = false;
    // When the next packet can come, and when the leaving line is free.
    let (mut now, mut free) = (0_u64, 0_u64);
    while packets.len() < order.len() {
        let begun = now;
        let mut bytes = 0;
        for _ in 0..random.between(1, LONGEST_BURST) {
            let Some(&size) = order.get(packets.len()) else {
                break;
            };
            if next_rush.is_some_and(|first| packets.len() >= first) {
                rush = true;
                next_rush = rushes.next();
            }
            let arrival = now + u64::from(size) * IN_NS_PER_BYTE;
            leave(&mut buffered, arrival);
            if buffered.len() == MOST_BUFFERED {
                // The sender is told to pause, as Ethernet's flow control does.
                rush = false;
                break;
            }
            let departure = arrival.max(free) + u64::from(size) * OUT_NS_PER_BYTE;
            packets.push(Packet {
                size,
                arrival,
                departure,
            });
            buffered.push_back(departure);
            (now, free) = (arrival, departure);
            bytes += u64::from(size);
        }
        let load = if rush { RUSH } else { CALM };
        let period = bytes * OUT_NS_PER_BYTE * 100 / load;
        // Between half and one and a half of the mean.
        let period = random.between(period / 2, period * 3 / 2);
        now = now.max(begun + period);
        if buffered.len() == MOST_BUFFERED {
            now = now.max(buffered[MOST_BUFFERED / 8]);
        }
    }
    packets
}

/// Forgets what has left by `now`.
fn leave(buffered: &mut VecDeque<u64>, now: u64) {
    while buffered.front().is_some_and(|&departure| departure <= now) {
        buffered.pop_front();
    }
}

/// The trace of a program that buffers the packets: an allocation when one comes,
/// a free, with the accesses in between, when it has left. O(packets).
///
/// Blocks need no more alignment than malloc gives (16 bytes).
pub fn trace(packets: &[Packet]) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut sent = 0;
    for packet in packets {
        sent = send(&mut builder, packets, sent, packet.arrival);
        let block = builder.alloc(packet.arrival, 0, u64::from(packet.size), 16);
        debug_assert!(block.is_ok(), "sizes are possible");
    }
    send(&mut builder, packets, sent, u64::MAX);
    builder.finish(Provenance {
        command: vec!["packets".to_owned(), packets.len().to_string()],
        recorder: "generated".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: 1,
        access_word: WORD,
        timed: true,
        ..Provenance::default()
    })
}

/// Frees what has left by `now`, oldest first; how many have in all.
fn send(builder: &mut TraceBuilder, packets: &[Packet], mut sent: usize, now: u64) -> usize {
    // A block's serial number is its packet's. What has left has come before.
    while let Some(packet) = packets.get(sent).filter(|packet| packet.departure <= now) {
        let words = u64::from(packet.size.div_ceil(WORD));
        let pushed = builder.push(Event {
            seq: builder.len() as u64,
            time_ns: packet.departure,
            thread: 0,
            op: Op::Free,
            block: sent as u64,
            size: 0,
            align: 0,
            reads: words + HEADER_READS,
            writes: words + HEADER_WRITES,
            read_bytes: u64::from(packet.size) + HEADER_READ_BYTES,
            write_bytes: u64::from(packet.size) + HEADER_WRITE_BYTES,
            site: 0,
        });
        debug_assert!(pushed.is_ok(), "each packet leaves once");
        sent += 1;
    }
    sent
}
