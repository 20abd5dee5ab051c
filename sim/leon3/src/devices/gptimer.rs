//! GPTIMER (GRLIB IP core manual, "GPTIMER"): a scaler and timers that count down, the last one a watchdog.
//!
//! Nothing counts: a timer that runs knows the tick of the scaler at which it was loaded, and what is read or due
//! follows from the cycle it is. Ticks come from a clock that may differ from the cores' ([`Clock`]); in GRLIB it is the
//! same.
//!
//! The last timer may be a watchdog: it runs from reset with its interrupt on, and where it becomes pending the machine ends,
//! unless bit 8 of its control (WDOGDIS) is set; with bit 7 (WDOGNMI) it also raises interrupt 15. As on the hardware a
//! watchdog whose interrupt is off never bites.
//!
//! A timer that is chained counts underflows of the one before it; the first has none before it and does not count.
//! Bits 16 and up of the configuration enable timers. Assumptions and limits: the scaler also counts while no timer is on
//! (newer versions halt it), and no tick is lost (in silicon one adder serves all timers, a cycle each, so the scaler's
//! reload value must be at least the number of timers); freezing in debug mode (DH, and DF in the configuration, which is
//! kept), latches (EL, EE), external clock and set (EV, ES) are not there: nothing halts the machine's time.
//!
//! Invariant: a running timer with counter `c` at tick `t` underflows at tick `t + c + 1`.

use serde::{Deserialize, Serialize};

use super::{Access, Device, GAISLER, Identity, NEVER, saved_by_serde};

const ENABLE: u32 = 1;
const RESTART: u32 = 1 << 1;
const LOAD: u32 = 1 << 2;
const INTERRUPT: u32 = 1 << 3;
const PENDING: u32 = 1 << 4;
const CHAIN: u32 = 1 << 5;
const WATCHDOG_NMI: u32 = 1 << 7;
const WATCHDOG_OFF: u32 = 1 << 8;
/// Halting in debug mode is off.
const NO_FREEZE: u32 = 1 << 9;
/// The interrupt that cannot be masked by a core.
const NMI: u8 = 15;

/// How the timers' clock relates to the cores': so many ticks in so many cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Ticks of the timers' clock ...
    pub ticks: u32,
    /// ... in so many cycles of the cores'.
    pub cycles: u32,
}

impl Clock {
    /// One clock for both.
    pub const SAME: Clock = Clock {
        ticks: 1,
        cycles: 1,
    };

    fn ticks(self, cycle: u64) -> u64 {
        if self == Clock::SAME {
            return cycle;
        }
        (u128::from(cycle) * u128::from(self.ticks) / u128::from(self.cycles)) as u64
    }

    /// The first cycle at which `tick` has been.
    fn cycle(self, tick: u64) -> u64 {
        if self == Clock::SAME {
            return tick;
        }
        (u128::from(tick) * u128::from(self.cycles)).div_ceil(u128::from(self.ticks)) as u64
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Timer {
    /// The counter at `since`.
    counter: u32,
    /// Tick of the scaler, counted from its last start.
    since: u64,
    reload: u32,
    control: u32,
}

/// Timers behind one scaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gptimer {
    timers: Vec<Timer>,
    interrupt: u8,
    separate: bool,
    clock: Clock,
    scaler_reload: u32,
    /// Tick of the clock at which the scaler began to count, and its value then.
    scaler_since: u64,
    scaler_value: u32,
    no_freeze: u32,
    /// Whether the last timer resets the system when it underflows.
    watchdog: bool,
    expired: bool,
}

impl Gptimer {
    /// `timers` timers (1 to 7); timer *i* interrupts on `interrupt + i`, or all on `interrupt` if not `separate`. With
    /// `watchdog` the last one runs from reset and ends the run when it underflows.
    pub fn new(
        timers: usize,
        interrupt: u8,
        separate: bool,
        watchdog: Option<u32>,
        clock: Clock,
    ) -> Gptimer {
        let mut timers = vec![Timer::default(); timers.clamp(1, 7)];
        if let (Some(reload), Some(last)) = (watchdog, timers.last_mut()) {
            last.reload = reload;
            last.counter = reload;
            last.control = ENABLE | INTERRUPT;
        }
        Gptimer {
            timers,
            interrupt,
            separate,
            clock,
            scaler_reload: 0xffff,
            scaler_since: 0,
            scaler_value: 0xffff,
            no_freeze: 0,
            watchdog: watchdog.is_some(),
            expired: false,
        }
    }

    /// Underflows of the scaler by cycle `now`, since it was written.
    fn scaled(&self, now: u64) -> u64 {
        let ticks = self.clock.ticks(now) - self.scaler_since;
        let first = u64::from(self.scaler_value) + 1;
        if ticks < first {
            0
        } else {
            1 + (ticks - first) / (u64::from(self.scaler_reload) + 1)
        }
    }

    /// The first cycle at which the scaler has underflowed `count` times.
    fn cycle_of(&self, count: u64) -> u64 {
        if count == 0 {
            return self.clock.cycle(self.scaler_since);
        }
        let period = u64::from(self.scaler_reload) + 1;
        let ticks = u64::from(self.scaler_value) + 1 + (count - 1).saturating_mul(period);
        self.clock.cycle(self.scaler_since.saturating_add(ticks))
    }

    fn scaler(&self, now: u64) -> u32 {
        let ticks = self.clock.ticks(now) - self.scaler_since;
        let first = u64::from(self.scaler_value) + 1;
        if ticks < first {
            self.scaler_value - ticks as u32
        } else {
            let period = u64::from(self.scaler_reload) + 1;
            self.scaler_reload - ((ticks - first) % period) as u32
        }
    }

    /// Whether a timer counts by the scaler: it is on, and no chain makes it count another's underflows.
    fn runs(timer: &Timer) -> bool {
        timer.control & (ENABLE | CHAIN) == ENABLE
    }

    /// Makes the scaler's counting begin at `now` with `value`, keeping what timers have counted.
    fn rescale(&mut self, now: u64, value: u32, reload: u32) {
        let scaled = self.scaled(now);
        for timer in self.timers.iter_mut().filter(|timer| Self::runs(timer)) {
            timer.counter = timer.counter.wrapping_sub((scaled - timer.since) as u32);
            timer.since = 0;
        }
        self.scaler_since = self.clock.ticks(now);
        self.scaler_value = value;
        self.scaler_reload = reload;
    }

    fn counter(&self, index: usize, now: u64) -> u32 {
        let timer = &self.timers[index];
        if Self::runs(timer) {
            timer
                .counter
                .wrapping_sub((self.scaled(now) - timer.since) as u32)
        } else {
            timer.counter
        }
    }

    /// Notes what timer `index` has counted by `now`, before it is changed.
    fn catch_up(&mut self, index: usize, now: u64) {
        self.timers[index].counter = self.counter(index, now);
        self.timers[index].since = self.scaled(now);
    }

    fn underflow(&mut self, index: usize, at: u64, access: &mut Access) {
        let line = self.interrupt + if self.separate { index as u8 } else { 0 };
        let watchdog = self.watchdog && index + 1 == self.timers.len();
        let timer = &mut self.timers[index];
        timer.counter = u32::MAX;
        timer.since = at;
        if timer.control & RESTART != 0 {
            timer.counter = timer.reload;
        } else {
            timer.control &= !ENABLE;
        }
        if timer.control & INTERRUPT != 0 {
            timer.control |= PENDING;
            access.interrupt(line);
            if timer.control & WATCHDOG_NMI != 0 {
                access.interrupt(NMI);
            }
            self.expired |= watchdog && timer.control & WATCHDOG_OFF == 0;
        }
        let next = index + 1;
        if let Some(chained) = self.timers.get_mut(next)
            && chained.control & (ENABLE | CHAIN) == ENABLE | CHAIN
        {
            if chained.counter == 0 {
                self.underflow(next, at, access);
            } else {
                chained.counter -= 1;
            }
        }
    }
}

impl Device for Gptimer {
    fn name(&self) -> &'static str {
        "GPTIMER"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: GAISLER,
            device: 0x011,
            version: 1,
            interrupt: self.interrupt,
        })
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        let index = (offset >> 4) as usize;
        match offset {
            0x00 => self.scaler(access.now),
            0x04 => self.scaler_reload,
            0x08 => {
                let separate = u32::from(self.separate) << 8;
                let interrupt = u32::from(self.interrupt) << 3;
                self.no_freeze | separate | interrupt | self.timers.len() as u32
            }
            _ if index == 0 || index > self.timers.len() => 0,
            _ => match offset & 15 {
                0 => self.counter(index - 1, access.now),
                4 => self.timers[index - 1].reload,
                8 => self.timers[index - 1].control,
                _ => 0,
            },
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        let now = access.now;
        let index = (offset >> 4) as usize;
        match offset {
            0x00 => self.rescale(now, value & 0xffff, self.scaler_reload),
            // A new reload value is counted from at once.
            0x04 => self.rescale(now, value & 0xffff, value & 0xffff),
            0x08 => {
                self.no_freeze = value & NO_FREEZE;
                for index in 0..self.timers.len() {
                    if value >> (16 + index) & 1 == 1 {
                        self.catch_up(index, now);
                        self.timers[index].control |= ENABLE;
                    }
                }
            }
            _ if index == 0 || index > self.timers.len() => {}
            _ => {
                self.catch_up(index - 1, now);
                let watchdog = self.watchdog && index == self.timers.len();
                let also = if watchdog {
                    WATCHDOG_NMI | WATCHDOG_OFF
                } else {
                    0
                };
                let timer = &mut self.timers[index - 1];
                match offset & 15 {
                    0 => timer.counter = value,
                    4 => timer.reload = value,
                    8 => {
                        // The pending bit is cleared by a one.
                        let pending = timer.control & PENDING & !value;
                        let kept = ENABLE | RESTART | INTERRUPT | CHAIN | also;
                        timer.control = value & kept | pending;
                        if value & LOAD != 0 {
                            timer.counter = timer.reload;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn next(&self) -> u64 {
        let due = |timer: &Timer| self.cycle_of(timer.since + u64::from(timer.counter) + 1);
        let running = self.timers.iter().filter(|timer| Self::runs(timer));
        running.map(due).min().unwrap_or(NEVER)
    }

    fn may_raise(&self) -> u32 {
        let speaks = |timer: &Timer| timer.control & (ENABLE | INTERRUPT) == ENABLE | INTERRUPT;
        let line = |index: usize| self.interrupt + if self.separate { index as u8 } else { 0 };
        let speaking = (0..self.timers.len()).filter(|&index| speaks(&self.timers[index]));
        let lines = speaking.fold(0, |lines, index| lines | 1 << (line(index) & 31));
        let bites = self.watchdog && self.timers.last().is_some_and(speaks);
        lines & !1 | u32::from(bites)
    }

    fn expired(&self) -> bool {
        self.expired
    }

    fn advance(&mut self, access: &mut Access) {
        let scaled = self.scaled(access.now);
        loop {
            let due = |timer: &Timer| timer.since + u64::from(timer.counter) + 1;
            let first = (0..self.timers.len())
                .filter(|&index| Self::runs(&self.timers[index]))
                .min_by_key(|&index| due(&self.timers[index]));
            match first {
                Some(index) if due(&self.timers[index]) <= scaled => {
                    let at = due(&self.timers[index]);
                    self.underflow(index, at, access);
                }
                _ => return,
            }
        }
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests;
