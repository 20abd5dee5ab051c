use super::*;
use crate::devices::beside::{Do, Plain, compare};
use proptest::prelude::*;

/// Shifts bit by bit, cycle by cycle.
#[derive(Default)]
struct Shifting {
    depth: usize,
    control: u32,
    scaler: u32,
    overrun: bool,
    fifo: Vec<u8>,
    /// The byte on the line, bits of it still to come, cycles of the present bit still to come.
    line: Option<(u8, u32, u32)>,
    /// Cycles of a bit of the byte on the line.
    bit: u32,
    received: Vec<u8>,
    held: Option<u8>,
    outside: Vec<(u64, u8)>,
    printed: Vec<u8>,
}

impl Shifting {
    fn on(&self, bit: u32) -> bool {
        self.control & bit != 0
    }

    fn start(&mut self) -> u32 {
        let mut lines = 0;
        while self.line.is_none() && self.on(2) && !self.fifo.is_empty() {
            let byte = self.fifo.remove(0);
            if self.fifo.is_empty() && self.on(8) {
                lines |= 8;
            }
            if self.scaler == 0 {
                lines |= self.leave(byte);
                continue;
            }
            let parity = u32::from(self.on(0x20));
            let stop = parity * u32::from(self.on(0x8000));
            self.bit = (self.scaler + 1) * 8;
            self.line = Some((byte, 10 + parity + stop, self.bit));
        }
        lines
    }

    fn leave(&mut self, byte: u8) -> u32 {
        let mut lines = 0;
        if self.on(0x4000) && (self.fifo.is_empty() || !self.on(2)) {
            lines |= 8;
        }
        if self.on(0x80) {
            lines |= self.hear(byte);
        } else {
            self.printed.push(byte);
        }
        lines
    }

    fn hear(&mut self, byte: u8) -> u32 {
        if !self.on(1) {
            return 0;
        }
        if self.received.len() < self.depth {
            self.received.push(byte);
        } else {
            if self.held.is_some() {
                self.overrun = true;
            }
            self.held = Some(byte);
        }
        if self.on(4) { 8 } else { 0 }
    }
}

impl Plain for Shifting {
    fn tick(&mut self, now: u64) -> u32 {
        let mut lines = 0;
        if let Some((byte, bits, cycles)) = self.line {
            self.line = match (bits, cycles) {
                (1, 1) => None,
                (_, 1) => Some((byte, bits - 1, self.bit)),
                _ => Some((byte, bits, cycles - 1)),
            };
            if self.line.is_none() {
                lines |= self.leave(byte);
                lines |= self.start();
            }
        }
        while self.outside.first().is_some_and(|&(at, _)| at == now) {
            let (_, byte) = self.outside.remove(0);
            if !self.on(0x80) {
                lines |= self.hear(byte);
            }
        }
        lines
    }

    fn read(&mut self, offset: u32, _now: u64) -> (u32, u32) {
        let value = match offset {
            0 if self.received.is_empty() => 0,
            0 => {
                let byte = self.received.remove(0);
                self.received.extend(self.held.take());
                u32::from(byte)
            }
            4 => {
                let (s, r, d) = (self.fifo.len(), self.received.len(), self.depth);
                let mut bits = vec![r > 0, self.line.is_none(), s == 0, false, self.overrun];
                if d > 1 {
                    bits.extend([false, false, s < d / 2, r >= d / 2, s == d, r == d]);
                }
                let flags = bits
                    .iter()
                    .rev()
                    .fold(0, |all, &bit| all << 1 | u32::from(bit));
                if d > 1 {
                    flags | (s << 20 | r << 26) as u32
                } else {
                    flags
                }
            }
            8 => self.control | if self.depth > 1 { 1 << 31 } else { 0 },
            12 => self.scaler,
            _ => 0,
        };
        (value, 0)
    }

    fn write(&mut self, offset: u32, value: u32, _now: u64) -> u32 {
        match offset {
            0 => {
                if self.fifo.len() == self.depth {
                    self.fifo.remove(0);
                    self.fifo.insert(0, value as u8);
                } else {
                    self.fifo.push(value as u8);
                }
            }
            4 => self.overrun = value & 16 != 0,
            8 => self.control = value & 0xffff,
            12 => self.scaler = value & 0xfff,
            _ => {}
        }
        self.start()
    }

    fn holds(&self) -> u32 {
        let send = self.on(2) && self.on(0x200) && self.fifo.len() < self.depth / 2;
        let receive = self.on(1) && self.on(0x400) && self.received.len() >= self.depth / 2;
        u32::from(self.depth > 1 && (send || receive)) * 8
    }
}

fn act() -> impl Strategy<Value = (u64, Do)> {
    let act = prop_oneof![
        4 => any::<u8>().prop_map(|byte| Do::Write(0, byte.into())),
        1 => (0u32..32).prop_map(|value| Do::Write(4, value)),
        1 => any::<u16>().prop_map(|value| Do::Write(8, u32::from(value) | 3)),
        1 => any::<u16>().prop_map(|value| Do::Write(8, value.into())),
        1 => (0u32..3).prop_map(|value| Do::Write(12, value)),
        5 => (0u32..5).prop_map(|register| Do::Read(register * 4)),
    ];
    (prop_oneof![0u64..5, 0u64..300], act)
}

proptest! {
    #[test]
    fn bytes_go_as_if_bit_by_bit(
        all in proptest::collection::vec(act(), 1..100),
        depth in 0u32..4,
        arriving in proptest::collection::vec((0u64..6000, any::<u8>()), 0..60),
    ) {
        let depth = 1 << depth;
        let mut arriving = arriving;
        arriving.sort_by_key(|&(at, _)| at);
        let mut uart = Uart::new(3, depth);
        for &(at, byte) in &arriving {
            uart.arrive(at, byte);
        }
        let mut plain = Shifting { depth, outside: arriving, ..Shifting::default() };
        let begin = [(0, Do::Write(12, 1)), (0, Do::Write(8, 3))];
        compare(&mut uart, &mut plain, &[&begin, &all[..]].concat(), 3000);
        prop_assert_eq!(uart.printed().unwrap(), plain.printed);
    }
}
