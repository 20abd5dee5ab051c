//! APBUART (GRLIB IP core manual, "APBUART"): a serial line of bytes.
//!
//! Sending takes the ten bits of a byte at the rate of the scaler, or no time where it is zero; a byte in the shift
//! register and one in the holding register, or a FIFO. What arrives is given by the user, each byte with its cycle.
//!
//! Invariant: bytes leave and arrive in their order; none is lost without the overrun bit.

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
const LOOP_BACK: u32 = 1 << 7;
const SEND_FIFO_INTERRUPT: u32 = 1 << 9;
const RECEIVE_FIFO_INTERRUPT: u32 = 1 << 10;
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
    /// What is to arrive, each with its cycle.
    arriving: VecDeque<(u64, u8)>,
    printed: Vec<u8>,
}

impl Uart {
    /// A line with FIFOs of `depth` bytes (1: holding registers alone) that interrupts on `interrupt`.
    pub fn new(interrupt: u8, depth: usize) -> Uart {
        Uart {
            interrupt,
            depth: depth.max(1),
            control: 0,
            scaler: 0,
            overrun: false,
            sending: VecDeque::new(),
            shifting: None,
            received: VecDeque::new(),
            arriving: VecDeque::new(),
            printed: Vec::new(),
        }
    }

    /// Lets `byte` arrive at cycle `at`, behind what arrives before.
    pub fn arrive(&mut self, at: u64, byte: u8) {
        let at = at.max(self.arriving.back().map_or(0, |&(at, _)| at));
        self.arriving.push_back((at, byte));
    }

    /// Cycles that a byte is under way: a start bit, eight of data, a stop bit, each 8 ticks of the scaler.
    fn byte_time(&self) -> u64 {
        if self.scaler == 0 {
            0
        } else {
            10 * 8 * (u64::from(self.scaler) + 1)
        }
    }

    fn status(&self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let sending = self.sending.len();
        let received = self.received.len();
        let state = bit(received > 0, DATA_READY)
            | bit(self.shifting.is_none() && sending == 0, SHIFT_EMPTY)
            | bit(sending == 0, FIFO_EMPTY)
            | bit(self.overrun, OVERRUN);
        if self.depth == 1 {
            // Without FIFOs nothing tells how full they are.
            return state;
        }
        state
            | bit(sending < self.depth.div_ceil(2), SEND_HALF)
            | bit(received >= self.depth.div_ceil(2), RECEIVE_HALF)
            | bit(sending >= self.depth, SEND_FULL)
            | bit(received >= self.depth, RECEIVE_FULL)
            | (sending.min(63) as u32) << 20
            | (received.min(63) as u32) << 26
    }

    fn begin(&mut self, now: u64, access: &mut Access) {
        if self.control & SENDER_ON == 0 {
            return;
        }
        while self.shifting.is_none() {
            let Some(byte) = self.sending.pop_front() else {
                return;
            };
            if self.control & SEND_INTERRUPT != 0 && self.sending.is_empty() {
                access.interrupt(self.interrupt);
            }
            if self.control & SEND_FIFO_INTERRUPT != 0
                && self.sending.len() < self.depth.div_ceil(2)
            {
                access.interrupt(self.interrupt);
            }
            match self.byte_time() {
                0 => self.sent(byte, now, access),
                time => self.shifting = Some((byte, now + time)),
            }
        }
    }

    fn sent(&mut self, byte: u8, now: u64, access: &mut Access) {
        if self.control & LOOP_BACK != 0 {
            let _ = now;
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
            self.overrun = true;
        } else {
            self.received.push_back(byte);
        }
        let half = self.control & RECEIVE_FIFO_INTERRUPT != 0
            && self.received.len() >= self.depth.div_ceil(2);
        if self.control & RECEIVE_INTERRUPT != 0 || half {
            access.interrupt(self.interrupt);
        }
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
            0x00 => self.received.pop_front().map_or(0, u32::from),
            0x04 => self.status(),
            0x08 => self.control | if self.depth > 1 { FIFOS } else { 0 },
            0x0c => self.scaler,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        match offset {
            0x00 => {
                // A byte too many is lost, as the holding register is overwritten.
                if self.sending.len() >= self.depth {
                    self.sending.pop_back();
                }
                self.sending.push_back(value as u8);
                self.begin(access.now, access);
            }
            0x04 => self.overrun &= value & OVERRUN != 0,
            0x08 => {
                self.control = value & !FIFOS;
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

    fn advance(&mut self, access: &mut Access) {
        if let Some((byte, at)) = self.shifting
            && at <= access.now
        {
            self.shifting = None;
            self.sent(byte, at, access);
            self.begin(at, access);
        }
        while let Some(&(at, byte)) = self.arriving.front()
            && at <= access.now
        {
            self.arriving.pop_front();
            self.receive(byte, access);
        }
    }

    saved_by_serde!();

    fn printed(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.printed))
    }
}
