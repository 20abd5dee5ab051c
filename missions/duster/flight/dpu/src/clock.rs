//! Time: a tick each millisecond at both cores, tenths of a microsecond between.
//!
//! *Invariant:* `TICKS` of a core counts the underflows of the timer that its interrupt has seen; a time that is read is
//! that of an instant between the call and its return.

use core::sync::atomic::{AtomicU32, Ordering};

use duster_registers::{interrupts, timer};
use metes_duster_application::declared::{FREQUENCY, TICK, WATCHDOG};
use metes_duster_application::executive::Core;

use crate::devices::{GPIO, INTERRUPTS, TIMER, lines};

/// The timer's interrupt line.
pub(crate) const LEVEL: u32 = 6;
/// Timer counts in a microsecond, and in a tick.
const COUNTS: u32 = 10;
const TICK_COUNTS: u32 = TICK * COUNTS;
/// What an interrupt takes beside what it measures, in counts: entry and return.
const AROUND: u32 = 12;

/// Ticks since the epoch, of each core.
pub(crate) static TICKS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// Timer counts that interrupts took, of each core.
static STOLEN: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// Time does not begin yet: the scaler, and the watchdog, which runs from reset.
pub(crate) fn prepare() {
    TIMER.write(timer::SCALER_RELOAD, FREQUENCY / (1_000_000 * COUNTS) - 1);
    TIMER.write(timer::CONTROL, 0);
    kick();
    GPIO.write(
        duster_registers::gpio::DIRECTION,
        !(lines::TRIPPED | lines::WATCHDOG),
    );
    INTERRUPTS.write(interrupts::CLEAR, u32::MAX);
    INTERRUPTS.write(interrupts::BROADCAST, 1 << LEVEL);
}

/// The epoch.
pub(crate) fn begin() {
    TIMER.write(timer::RELOAD, TICK_COUNTS - 1);
    GPIO.write(duster_registers::gpio::RAISE, lines::EPOCH);
    TIMER.write(timer::CONTROL, timer::RUN);
}

/// The watchdog is told that all is well.
pub(crate) fn kick() {
    let watchdog = timer::NEXT;
    TIMER.write(watchdog + timer::RELOAD, WATCHDOG * COUNTS - 1);
    TIMER.write(watchdog + timer::CONTROL, timer::RUN);
}

/// Counts since the last underflow.
pub(crate) fn counts() -> u32 {
    (TICK_COUNTS - 1).wrapping_sub(TIMER.read(timer::COUNTER))
}

/// Counts since the epoch, modulo 2³², as core `core` sees them.
#[inline(never)]
pub(crate) fn time(core: usize) -> u32 {
    loop {
        let before = TICKS[core].load(Ordering::Relaxed);
        let counts = counts();
        if TICKS[core].load(Ordering::Relaxed) == before {
            return before.wrapping_mul(TICK_COUNTS).wrapping_add(counts);
        }
    }
}

/// Microseconds since the epoch.
#[inline(never)]
pub(crate) fn microseconds(core: usize) -> u64 {
    loop {
        let before = TICKS[core].load(Ordering::Relaxed);
        let counts = counts();
        if TICKS[core].load(Ordering::Relaxed) == before {
            return u64::from(before) * u64::from(TICK) + u64::from(counts / COUNTS);
        }
    }
}

/// The timer's interrupt on `core`; `rest` is what else is done each tick.
pub(crate) fn tick(core: usize, rest: impl FnOnce()) {
    let ticks = &TICKS[core];
    ticks.store(
        ticks.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
    rest();
    steal(core, counts() + AROUND);
}

/// Runs the handler of another interrupt, and notes what it took.
pub(crate) fn interrupted(core: usize, work: impl FnOnce()) {
    let begun = time(core);
    let stolen = STOLEN[core].load(Ordering::Relaxed);
    work();
    let took = time(core).wrapping_sub(begun);
    // A tick that came in between has noted its own part.
    let tick = STOLEN[core].load(Ordering::Relaxed).wrapping_sub(stolen);
    steal(core, took.saturating_sub(tick) + AROUND);
}

fn steal(core: usize, counts: u32) {
    let stolen = &STOLEN[core];
    stolen.store(
        stolen.load(Ordering::Relaxed).wrapping_add(counts),
        Ordering::Relaxed,
    );
}

/// A core, as the executive sees it.
pub(crate) struct Here(pub(crate) usize);

impl Core for Here {
    fn ticks(&self) -> u32 {
        TICKS[self.0].load(Ordering::Relaxed)
    }

    fn time(&self) -> u32 {
        time(self.0)
    }

    fn stolen(&self) -> u32 {
        STOLEN[self.0].load(Ordering::Relaxed)
    }

    fn running(&mut self, number: Option<usize>) {
        let shift = 8 * self.0;
        match number {
            Some(number) => GPIO.write(duster_registers::gpio::RAISE, (number as u32 + 1) << shift),
            None => GPIO.write(duster_registers::gpio::KEEP, !(0xff << shift)),
        }
    }
}
