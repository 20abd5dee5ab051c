//! APBUART (GRLIB IP core manual, "APBUART"): a serial line of bytes.
//!
//! Sending takes the ten bits of a byte (eleven with parity, twelve with two stop bits) at the rate of the scaler, 8 (n + 1)
//! cycles a bit, or no time where the scaler is zero (an assumption, as simulators have it). Either way there is a shift
//! register and a holding register or FIFO. What arrives is given by the user, each byte with the cycle of its last bit;
//! a byte that finds the FIFO full waits in the shift register, and one more takes its place and is an overrun. A byte
//! written to a full FIFO takes the place of the one that would be sent next.
//!
//! Interrupts: one for each byte received; one when the last byte leaves the FIFO for the shift register; one when the
//! shift register empties (bit 14). Those of FIFOs (bits 9 and 10) hold the line as long as the FIFO is less than half
//! full, or at least half full ([`Device::holds`]).
//!
//! Assumptions: a byte begins when there is one, not at the next bit's time; a changed scaler counts from the next byte.
//! Not there: framing, parity and break errors (the line is perfect), flow control, the delayed interrupt, the FIFO's debug
//! mode, the external clock.
//!
//! Invariant: bytes leave and arrive in their order; none that arrives while the receiver is on is lost without the
//! overrun bit.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Access, Device, GAISLER, Identity, NEVER, saved_by_serde};

const DATA_READY: u32 = 1;
const SHIFT_EMPTY: u32 = 1 << 1;
const FIFO_EMPTY: u32 = 1 << 2;
const OVERRUN: u32 = 1 << 4;
const SEND_HALF: u32 = 1 << 7;
const RECEIVE_HALF: u32 = 1 << 8;
const SEND_FULL: u32 = 1 << 9;
const RECEIVE_FULL: u32 = 1 << 10;

const RECEIVER_ON: u32 = 1;
const SENDER_ON: u32 = 1 << 1;
const RECEIVE_INTERRUPT: u32 = 1 << 2;
const SEND_INTERRUPT: u32 = 1 << 3;
const PARITY: u32 = 1 << 5;
const LOOP_BACK: u32 = 1 << 7;
const SEND_FIFO_INTERRUPT: u32 = 1 << 9;
const RECEIVE_FIFO_INTERRUPT: u32 = 1 << 10;
const SHIFT_INTERRUPT: u32 = 1 << 14;
const TWO_STOPS: u32 = 1 << 15;
/// Bits of the control register that are kept.
const CONTROL: u32 = 0xffff;
const FIFOS: u32 = 1 << 31;

/// A serial line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uart {
    interrupt: u8,
    depth: usize,
    control: u32,
    scaler: u32,
    overrun: bool,
    /// What waits to be sent.
    sending: VecDeque<u8>,
    /// The byte under way and the cycle at which it has left.
    shifting: Option<(u8, u64)>,
    received: VecDeque<u8>,
    /// The byte in the receiver's shift register, for which there is no room.
    held: Option<u8>,
    /// What is to arrive, each with its cycle.
    arriving: VecDeque<(u64, u8)>,
    printed: Vec<u8>,
}

impl Uart {
    /// A line with FIFOs of `depth` bytes (1 to 32; 1: holding registers alone) that interrupts on `interrupt`.
    pub fn new(interrupt: u8, depth: usize) -> Uart {
        Uart {
            interrupt,
            depth: depth.clamp(1, 32),
            control: 0,
            scaler: 0,
            overrun: false,
            sending: VecDeque::new(),
            shifting: None,
            received: VecDeque::new(),
            held: None,
            arriving: VecDeque::new(),
            printed: Vec::new(),
        }
    }

    /// Lets `byte` arrive at cycle `at`, behind what arrives before.
    pub fn arrive(&mut self, at: u64, byte: u8) {
        let at = at.max(self.arriving.back().map_or(0, |&(at, _)| at));
        self.arriving.push_back((at, byte));
    }

    /// Cycles that a byte is under way: a start bit, eight of data, parity, stop bits, each 8 ticks of the scaler.
    fn byte_time(&self) -> u64 {
        let bits = match self.control & (PARITY | TWO_STOPS) {
            PARITY => 11,
            0 | TWO_STOPS => 10,
            _ => 12,
        };
        if self.scaler == 0 {
            0
        } else {
            bits * 8 * (u64::from(self.scaler) + 1)
        }
    }

    /// Whether FIFOs ask for attention: the sender's is less than half full, the receiver's at least half.
    fn halves(&self) -> (bool, bool) {
        let half = self.depth / 2;
        (self.sending.len() < half, self.received.len() >= half)
    }

    fn status(&self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let sending = self.sending.len();
        let received = self.received.len();
        let status = bit(received > 0, DATA_READY)
            | bit(self.shifting.is_none(), SHIFT_EMPTY)
            | bit(sending == 0, FIFO_EMPTY)
            | bit(self.overrun, OVERRUN);
        if self.depth == 1 {
            return status;
        }
        let (send_half, receive_half) = self.halves();
        status
            | bit(send_half, SEND_HALF)
            | bit(receive_half, RECEIVE_HALF)
            | bit(sending >= self.depth, SEND_FULL)
            | bit(received >= self.depth, RECEIVE_FULL)
            | (sending as u32) << 20
            | (received as u32) << 26
    }

    fn begin(&mut self, now: u64, access: &mut Access) {
        while self.shifting.is_none() && self.control & SENDER_ON != 0 {
            let Some(byte) = self.sending.pop_front() else {
                return;
            };
            if self.control & SEND_INTERRUPT != 0 && self.sending.is_empty() {
                access.interrupt(self.interrupt);
            }
            match self.byte_time() {
                0 => self.sent(byte, access),
                time => self.shifting = Some((byte, now + time)),
            }
        }
    }

    fn sent(&mut self, byte: u8, access: &mut Access) {
        let last = self.sending.is_empty() || self.control & SENDER_ON == 0;
        if self.control & SHIFT_INTERRUPT != 0 && last {
            access.interrupt(self.interrupt);
        }
        if self.control & LOOP_BACK != 0 {
            self.receive(byte, access);
        } else {
            self.printed.push(byte);
        }
    }

    fn receive(&mut self, byte: u8, access: &mut Access) {
        if self.control & RECEIVER_ON == 0 {
            return;
        }
        if self.received.len() >= self.depth {
            self.overrun |= self.held.replace(byte).is_some();
        } else {
            self.received.push_back(byte);
        }
        if self.control & RECEIVE_INTERRUPT != 0 {
            access.interrupt(self.interrupt);
        }
    }

    fn take(&mut self) -> u8 {
        let byte = self.received.pop_front().unwrap_or(0);
        self.received.extend(self.held.take());
        byte
    }
}

impl Device for Uart {
    fn name(&self) -> &'static str {
        "APBUART"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: GAISLER,
            device: 0x00c,
            version: 1,
            interrupt: self.interrupt,
        })
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        match offset {
            0x00 => u32::from(self.take()),
            0x04 => self.status(),
            0x08 => self.control | if self.depth > 1 { FIFOS } else { 0 },
            0x0c => self.scaler,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        match offset {
            0x00 => {
                if self.sending.len() >= self.depth {
                    self.sending[0] = value as u8;
                } else {
                    self.sending.push_back(value as u8);
                }
                self.begin(access.now, access);
            }
            0x04 => self.overrun = value & OVERRUN != 0,
            0x08 => {
                self.control = value & CONTROL;
                self.begin(access.now, access);
            }
            0x0c => self.scaler = value & 0xfff,
            _ => {}
        }
    }

    fn next(&self) -> u64 {
        let leaves = self.shifting.map_or(NEVER, |(_, at)| at);
        let arrives = self.arriving.front().map_or(NEVER, |&(at, _)| at);
        leaves.min(arrives)
    }

    fn holds(&self) -> u32 {
        let (send_half, receive_half) = self.halves();
        let on = |bits: u32| self.depth > 1 && self.control & bits == bits;
        let send = send_half && on(SENDER_ON | SEND_FIFO_INTERRUPT);
        let receive = receive_half && on(RECEIVER_ON | RECEIVE_FIFO_INTERRUPT);
        u32::from(send || receive) << self.interrupt & !1
    }

    fn advance(&mut self, access: &mut Access) {
        if let Some((byte, at)) = self.shifting
            && at <= access.now
        {
            self.shifting = None;
            self.sent(byte, access);
            self.begin(at, access);
        }
        while let Some(&(at, byte)) = self.arriving.front()
            && at <= access.now
        {
            self.arriving.pop_front();
            // Looped back, the receiver hears the sender alone.
            if self.control & LOOP_BACK == 0 {
                self.receive(byte, access);
            }
        }
    }

    saved_by_serde!();

    fn printed(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.printed))
    }
}

#[cfg(test)]
mod tests;
