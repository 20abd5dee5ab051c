//! Telecommands out of a stream of bytes: raw space packets back to back.
//!
//! A byte that cannot begin a packet, a packet that is longer than any, and a packet that stops in its midst lose the
//! stream; so does one whose checksum is wrong, as then its length may be wrong, too. What follows is discarded until the
//! line has been silent. Looking for the next header instead would find the packets within packets: a telecommand in a
//! damaged request to schedule it would be executed at once.
//!
//! *Invariant:* a packet is handed on only if it began after silence, or directly behind a packet that was handed on and not
//! disowned; at most [`MAX_PACKET`] bytes are held.

use crate::MAX_PACKET;

/// Bytes of a packet's primary header.
const HEADER: usize = 6;

/// What a byte completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A packet, as long as its header says.
    Packet(&'a [u8]),
    /// What there is of a packet that was cut off by silence or is longer than any may be; its primary header at least.
    Cut(&'a [u8]),
}

/// Finds packets in bytes.
#[derive(Clone, Debug)]
pub struct Framer {
    bytes: [u8; MAX_PACKET],
    length: usize,
    /// Length of the packet under way, once its header is there.
    expected: usize,
    lost: bool,
    discarded: u32,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// A framer on a line that is silent.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; MAX_PACKET],
            length: 0,
            expected: 0,
            lost: false,
            discarded: 0,
        }
    }

    /// Bytes that belonged to no packet, since the beginning.
    #[must_use]
    pub const fn discarded(&self) -> u32 {
        self.discarded
    }

    /// Takes a byte; gives the packet that it completes.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Option<Frame<'_>> {
        if self.lost {
            self.discarded = self.discarded.wrapping_add(1);
            return None;
        }
        *self.bytes.get_mut(self.length)? = byte;
        self.length += 1;
        if self.length < HEADER {
            return None;
        }
        if self.length == HEADER {
            self.expected = expected(&self.bytes);
            if self.expected > MAX_PACKET {
                self.lose();
                return self.bytes.get(..HEADER).map(Frame::Cut);
            }
            if self.expected == 0 {
                self.lose();
            }
            return None;
        }
        if self.length < self.expected {
            return None;
        }
        self.length = 0;
        self.bytes.get(..self.expected).map(Frame::Packet)
    }

    /// Says that the packet handed on last is none, so that the stream is lost.
    pub fn disown(&mut self) {
        self.lose();
    }

    /// Says that the line is silent: what comes next begins a packet. Gives the packet that was under way.
    pub fn silence(&mut self) -> Option<Frame<'_>> {
        self.lost = false;
        let length = core::mem::take(&mut self.length);
        self.discarded = self.discarded.wrapping_add(length as u32);
        if length < HEADER {
            return None;
        }
        self.bytes.get(..length).map(Frame::Cut)
    }

    /// Discards all until there is silence.
    fn lose(&mut self) {
        self.discarded = self.discarded.wrapping_add(self.length as u32);
        self.length = 0;
        self.lost = true;
    }
}

/// The length of the packet with that primary header; 0 when it begins no unsegmented packet of version 0.
fn expected(bytes: &[u8; MAX_PACKET]) -> usize {
    let [a, _, c, _, e, f, ..] = *bytes;
    if a >> 5 == 0 && c >> 6 == 3 {
        usize::from(u16::from_be_bytes([e, f])) + HEADER + 1
    } else {
        0
    }
}
