//! The probes behind their SPI controllers, in automated mode: a set each millisecond.
//!
//! *Invariant:* a frame is two words of twelve bits, the higher one first; sets are read in order and whole.

use duster_registers::{gpio, spi};
use metes_duster_application::acquisition::{FrontEnds, MOST_FRAMES};
use metes_duster_application::declared::{BUSES, FREQUENCY, TICK};
use metes_duster_application::shared::Probe;

use crate::clock;
use crate::devices::{GPIO, SPI, lines};

/// Bits of a word, and of a frame.
const WORD: u32 = 12;
/// Bits of the mode register.
const DIV16: u32 = 1 << 27;
const FACT: u32 = 1 << 13;

/// The probes, as core 1 reaches them.
pub(crate) struct Probes;

impl Probes {
    /// Controllers are set up, and rest.
    pub(crate) fn new() -> Probes {
        for (device, bus) in SPI.iter().zip(&BUSES) {
            let mut mode = spi::AUTOMATED | (WORD - 1) << 20 | bus.modulus << 16;
            if bus.halved {
                mode |= FACT;
            }
            if bus.sixteenth {
                mode |= DIV16;
            }
            device.write(spi::MODE, mode);
            device.write(spi::SELECT, !0);
            device.write(spi::AUTOMATIC_SELECT, !1);
            device.write(spi::PERIOD, FREQUENCY / 1_000_000 * TICK - 1);
            device.write(spi::MASK, (1 << (2 * bus.frames)) - 1);
            for word in 0..2 * bus.frames {
                device.write(spi::SEND + 4 * word, 0);
            }
        }
        Probes
    }
}

impl FrontEnds for Probes {
    #[inline(never)]
    fn take(&mut self, probe: Probe, frames: &mut [u32; MOST_FRAMES]) -> bool {
        let device = SPI[probe as usize];
        if device.read(spi::EVENT) & spi::NOT_EMPTY == 0 {
            return false;
        }
        let count = BUSES[probe as usize].frames.min(MOST_FRAMES);
        for (number, frame) in frames[..count].iter_mut().enumerate() {
            let high = device.read(spi::RECEIVED + 8 * number) >> 16 & 0xfff;
            let low = device.read(spi::RECEIVED + 8 * number + 4) >> 16 & 0xfff;
            *frame = high << WORD | low;
        }
        true
    }

    fn send(&mut self, probe: Probe, number: usize, frame: u32) {
        let device = SPI[probe as usize];
        device.write(spi::SEND + 8 * number, (frame >> WORD) << (32 - WORD));
        device.write(spi::SEND + 8 * number + 4, frame << (32 - WORD));
    }

    fn run(&mut self, on: bool) {
        for device in SPI {
            device.write(spi::AUTOMATIC, if on { spi::IN_ORDER } else { 0 });
        }
    }

    fn now(&self) -> u64 {
        clock::microseconds(1)
    }

    fn detected(&mut self) {
        GPIO.write(gpio::TOGGLE, lines::DETECTED);
    }
}
