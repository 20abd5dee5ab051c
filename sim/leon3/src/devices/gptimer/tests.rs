use super::*;
use crate::devices::beside::{Do, Plain, compare};
use proptest::prelude::*;

/// Counts every tick.
struct Ticking {
    clock: Clock,
    /// Ticks so far.
    ticks: u64,
    scaler: u32,
    reload: u32,
    /// Counter, reload value, control.
    timers: Vec<[u32; 3]>,
    watchdog: bool,
    bitten: bool,
    freeze: u32,
}

impl Ticking {
    fn count(&mut self) -> u32 {
        if self.scaler > 0 {
            self.scaler -= 1;
            return 0;
        }
        self.scaler = self.reload;
        let mut lines = 0;
        let mut underflow = false;
        let count = self.timers.len();
        for (index, [counter, reload, control]) in self.timers.iter_mut().enumerate() {
            let counts = *control & ENABLE != 0 && (*control & CHAIN == 0 || underflow);
            underflow = counts && *counter == 0;
            if counts {
                *counter = counter.wrapping_sub(1);
            }
            if underflow {
                if *control & RESTART != 0 {
                    *counter = *reload;
                } else {
                    *control &= !ENABLE;
                }
                if *control & INTERRUPT != 0 {
                    *control |= PENDING;
                    lines |= 1 << (6 + index);
                    if *control & WATCHDOG_NMI != 0 {
                        lines |= 1 << 15;
                    }
                    let last = index + 1 == count;
                    self.bitten |= last && self.watchdog && *control & WATCHDOG_OFF == 0;
                }
            }
        }
        lines
    }
}

impl Plain for Ticking {
    fn tick(&mut self, now: u64) -> u32 {
        let mut lines = 0;
        while (self.ticks + 1) * u64::from(self.clock.cycles) <= now * u64::from(self.clock.ticks) {
            self.ticks += 1;
            lines |= self.count();
        }
        lines
    }

    fn read(&mut self, offset: u32, _now: u64) -> (u32, u32) {
        let index = (offset as usize >> 4).wrapping_sub(1);
        let value = match offset {
            0 => self.scaler,
            4 => self.reload,
            8 => self.freeze | 0x130 | self.timers.len() as u32,
            _ => match self.timers.get(index) {
                Some(timer) => timer.get(offset as usize / 4 % 4).copied().unwrap_or(0),
                None => 0,
            },
        };
        (value, 0)
    }

    fn write(&mut self, offset: u32, value: u32, _now: u64) -> u32 {
        let index = (offset as usize >> 4).wrapping_sub(1);
        let watchdog = self.watchdog && index == self.timers.len() - 1;
        match offset {
            0 => self.scaler = value & 0xffff,
            4 => (self.scaler, self.reload) = (value & 0xffff, value & 0xffff),
            8 => {
                self.freeze = value & 0x200;
                for (index, timer) in self.timers.iter_mut().enumerate() {
                    timer[2] |= value >> (16 + index) & 1;
                }
            }
            _ => {
                let Some([counter, reload, control]) = self.timers.get_mut(index) else {
                    return 0;
                };
                match offset & 15 {
                    0 => *counter = value,
                    4 => *reload = value,
                    8 => {
                        let mut kept = 0x2b;
                        if watchdog {
                            kept |= 0x180;
                        }
                        *control = *control & PENDING & !value | value & kept;
                        if value & LOAD != 0 {
                            *counter = *reload;
                        }
                    }
                    _ => {}
                }
            }
        }
        0
    }
}

fn act() -> impl Strategy<Value = (u64, Do)> {
    let offset = prop_oneof![1 => Just(0), 1 => Just(4), 1 => Just(8), 9 => (1u32..5, 0u32..4).prop_map(|(i, r)| i * 16 + r * 4)];
    let act = (offset, 0u32..0x200, 0u32..0x20, any::<bool>()).prop_map(
        |(offset, control, count, read)| {
            if read {
                return Do::Read(offset);
            }
            let value = match offset {
                0 | 4 => count % 7,
                8 => control << 9,
                _ if offset & 15 == 8 => control,
                _ => count,
            };
            Do::Write(offset, value)
        },
    );
    (prop_oneof![0u64..4, 0u64..80], act)
}

proptest! {
    /// Reads, interrupts and the watchdog, each at its cycle, at clocks that are slower, quicker and the same.
    #[test]
    fn timers_count_as_if_each_tick_was_counted(
        all in proptest::collection::vec(act(), 1..80),
        ticks in 1u32..6, cycles in 1u32..6,
        timers in 1usize..5, watchdog in proptest::option::of(0u32..100),
    ) {
        let clock = Clock { ticks, cycles };
        let mut timer = Gptimer::new(timers, 6, true, watchdog, clock);
        let mut plain = Ticking {
            clock, ticks: 0, scaler: 0xffff, reload: 0xffff, timers: vec![[0; 3]; timers],
            watchdog: watchdog.is_some(), bitten: false, freeze: 0,
        };
        if let Some(reload) = watchdog {
            plain.timers[timers - 1] = [reload, reload, ENABLE | INTERRUPT];
        }
        let begin = [(0, Do::Write(4, 2))];
        compare(&mut timer, &mut plain, &[&begin, &all[..]].concat(), 700);
        prop_assert_eq!(timer.expired(), plain.bitten);
    }
}

#[test]
fn a_watchdog_bites_unless_it_is_fed_or_off() {
    let bites = |writes: &[(u64, u32, u32)]| {
        let mut timer = Gptimer::new(2, 6, true, Some(9), Clock::SAME);
        timer.write(4, 0, &mut Access::new(0, 0));
        for now in 1..50 {
            let mut access = Access::new(now, 0);
            if timer.next() <= now {
                timer.advance(&mut access);
            }
            for &(_, offset, value) in writes.iter().filter(|&&(at, ..)| at == now) {
                timer.write(offset, value, &mut access);
            }
            if timer.expired() {
                return Some(now);
            }
        }
        None
    };
    assert_eq!(bites(&[]), Some(10));
    assert_eq!(bites(&[(8, 0x28, 0xd), (15, 0x28, 0xd)]), Some(25), "fed");
    assert_eq!(bites(&[(8, 0x28, 0)]), None, "stopped");
    assert_eq!(bites(&[(8, 0x28, 0x109)]), None, "its output off");
    assert_eq!(bites(&[(8, 0x28, 1)]), None, "its interrupt off");
}
