use super::*;
use crate::devices::beside::{Do, Plain, compare};
use proptest::prelude::*;

/// A line by itself, looked at in each cycle.
#[derive(Clone, Copy, Default)]
struct Line {
    input: bool,
    output: bool,
    out: bool,
    mask: bool,
    polarity: bool,
    edge: bool,
    flag: bool,
    before: bool,
}

impl Line {
    fn now(self) -> bool {
        if self.out { self.output } else { self.input }
    }

    fn level(self) -> bool {
        self.mask && !self.edge && self.now() == self.polarity
    }

    /// Whether an edge interrupts.
    fn look(&mut self) -> bool {
        let edge = self.now() != self.before && self.now() == self.polarity;
        let interrupts = self.mask && self.edge && edge;
        self.before = self.now();
        self.flag |= interrupts || self.level();
        interrupts
    }
}

struct Lines {
    lines: [Line; 32],
    can: u32,
    coming: Vec<(u64, u32, u32)>,
    record: Vec<Driven>,
}

impl Lines {
    fn all(&self, bit: impl Fn(&Line) -> bool) -> u32 {
        (0..32).map(|i| u32::from(bit(&self.lines[i])) << i).sum()
    }

    fn look(&mut self) -> u32 {
        let mut lines = 0;
        for (i, line) in self.lines.iter_mut().enumerate() {
            lines |= u32::from(line.look()) << i;
        }
        lines
    }
}

impl Plain for Lines {
    fn tick(&mut self, now: u64) -> u32 {
        let mut pulses = 0;
        while self.coming.first().is_some_and(|&(at, ..)| at == now) {
            let (_, lines, values) = self.coming.remove(0);
            for (i, line) in self.lines.iter_mut().enumerate() {
                if lines >> i & 1 == 1 {
                    line.input = values >> i & 1 == 1;
                }
            }
            pulses |= self.look();
        }
        pulses
    }

    fn read(&mut self, offset: u32, _now: u64) -> (u32, u32) {
        let value = match offset {
            0 => self.all(|line| line.now()),
            4 | 0x54 | 0x64 | 0x74 => self.all(|line| line.output),
            8 | 0x58 | 0x68 | 0x78 => self.all(|line| line.out),
            0xc | 0x5c | 0x6c | 0x7c => self.all(|line| line.mask),
            0x10 => self.all(|line| line.polarity),
            0x14 => self.all(|line| line.edge),
            0x1c => 0x1001f,
            0x40 => self.can,
            0x44 => self.all(|line| line.flag),
            _ => 0,
        };
        (value, 0)
    }

    fn write(&mut self, offset: u32, value: u32, now: u64) -> u32 {
        let driven = |it: &Lines| {
            (
                it.all(|line| line.out),
                it.all(|line| line.out && line.output),
            )
        };
        let before = driven(self);
        for (i, line) in self.lines.iter_mut().enumerate() {
            let value = value >> i & 1 == 1;
            let can = self.can >> i & 1 == 1;
            let place = match offset {
                4 | 0x54 | 0x64 | 0x74 => &mut line.output,
                8 | 0x58 | 0x68 | 0x78 => &mut line.out,
                0xc | 0x5c | 0x6c | 0x7c if can => &mut line.mask,
                0x10 if can => &mut line.polarity,
                0x14 if can => &mut line.edge,
                0x44 => {
                    line.flag &= !value;
                    continue;
                }
                _ => continue,
            };
            match offset {
                0x54.. if offset < 0x60 => *place |= value,
                0x64.. if offset < 0x70 => *place &= value,
                0x74.. => *place ^= value,
                _ => *place = value,
            }
        }
        let pulses = self.look();
        let (lines, values) = driven(self);
        if before != (lines, values) {
            self.record.push(Driven {
                at: now,
                lines,
                values,
            });
        }
        pulses
    }

    fn holds(&self) -> u32 {
        self.all(|line| line.level())
    }
}

fn act() -> impl Strategy<Value = (u64, Do)> {
    let act = (0u32..32, any::<u32>(), any::<bool>()).prop_map(|(register, value, read)| {
        if read {
            Do::Read(register * 4)
        } else {
            Do::Write(register * 4, value)
        }
    });
    (0u64..30, act)
}

proptest! {
    #[test]
    fn lines_are_as_if_each_was_looked_at(
        all in proptest::collection::vec(act(), 1..120),
        coming in proptest::collection::vec((0u64..2000, any::<u32>(), any::<u32>()), 0..80),
        can in any::<u32>(),
    ) {
        let can = can & !1;
        let mut coming = coming;
        coming.sort_by_key(|&(at, ..)| at);
        let mut gpio = Gpio::new(32, 0, can);
        for &(at, lines, values) in &coming {
            gpio.set(at, lines, values);
        }
        let mut plain = Lines { lines: [Line::default(); 32], can, coming, record: Vec::new() };
        compare(&mut gpio, &mut plain, &all, 300);
        prop_assert_eq!(gpio.driven(), plain.record);
    }
}
