//! A device beside a plain model of it that does something each cycle, both given the same accesses.
//!
//! Invariant: the device is advanced at exactly the cycles that it names, as the bus does, or up to a few cycles late
//! where the test says so; whatever can be seen of it is compared.

use super::{Access, Device};

/// A model that lives cycle by cycle.
pub(crate) trait Plain {
    /// Cycle `now` begins; the interrupt lines that are pulsed.
    fn tick(&mut self, now: u64) -> u32;
    /// A register is read: its value, and lines that are pulsed.
    fn read(&mut self, offset: u32, now: u64) -> (u32, u32);
    /// A register is written; lines that are pulsed.
    fn write(&mut self, offset: u32, value: u32, now: u64) -> u32;
    /// Lines that are held.
    fn holds(&self) -> u32 {
        0
    }
}

/// What is done to both.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    Read(u32),
    Write(u32, u32),
}

/// Does each of `all`, so many cycles after the one before, and lives on for `rest` cycles.
pub(crate) fn compare(
    device: &mut impl Device,
    plain: &mut impl Plain,
    all: &[(u64, Do)],
    rest: u64,
) {
    let mut at = 0;
    let mut coming = all
        .iter()
        .map(|&(gap, act)| {
            at += gap;
            (at, act)
        })
        .peekable();
    let end = all.iter().map(|&(gap, _)| gap).sum::<u64>() + rest;
    for now in 0..end {
        let expected = plain.tick(now);
        let mut access = Access::new(now, 0);
        while device.next() <= now {
            assert_eq!(device.next(), now, "it wanted to act earlier");
            device.advance(&mut access);
        }
        assert_eq!(access.raised(), expected, "pulses at {now}");
        if now % 97 == 0 {
            let saved = device.save();
            device.restore(&saved).unwrap();
            assert_eq!(device.save(), saved);
        }
        while let Some((_, act)) = coming.next_if(|&(at, _)| at == now) {
            let mut access = Access::new(now, 0);
            let expected = match act {
                Do::Read(offset) => {
                    let read = device.read(offset, &mut access);
                    let (value, lines) = plain.read(offset, now);
                    assert_eq!(
                        read, value,
                        "register {offset:#x} at {now}, {read:#x} {value:#x}"
                    );
                    lines
                }
                Do::Write(offset, value) => {
                    device.write(offset, value, &mut access);
                    plain.write(offset, value, now)
                }
            };
            assert_eq!(access.raised(), expected, "pulses at {now} by {act:x?}");
        }
        assert_eq!(device.holds(), plain.holds(), "lines held at {now}");
    }
}
