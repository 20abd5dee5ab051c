//! The DUSTER data processing unit: core 0 controls, core 1 acquires.
//!
//! Core 0 prepares the devices, starts core 1 and lets time begin when that is ready; from then on both run their tasks by
//! the table of the declaration and sleep where none is released.
//!
//! *Invariant:* interrupts touch the clock and the rings of the line alone; everything else is a task's.
#![no_std]
#![no_main]

mod clock;
mod control;
mod devices;
mod front;
mod hardware;
mod line;
mod memories;
mod tasks;

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use duster_registers::interrupts;
use metes_duster_application::acquisition::{Acquisition, Partitions};
use metes_duster_application::declared::{
    PARTITION_DUST, PARTITION_EFIELD, PARTITION_LANGMUIR, TASK_ACQUIRE, TASK_DETECT, TASK_FIELD,
    TASK_ORDERS, TASK_SNAPSHOT, TASK_SWEEP, TASKS_1, TICK,
};
use metes_duster_application::executive::{Executive, Ran};
use metes_duster_application::shared::{Report, Shared};

use clock::Here;
use devices::{GPIO, INTERRUPTS, lines};
use front::Probes;

// The linker's layout and the declaration say the same.
const _: () = assert!(duster_runtime::STACK == metes_duster_application::declared::STACK);

/// What the cores share.
static SHARED: Shared = Shared::new();
/// Core 1 is ready for time to begin.
static READY: AtomicU32 = AtomicU32::new(0);
/// Time has begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Where each core begins, on a stack of its own.
#[unsafe(no_mangle)]
extern "C" fn main(core: usize) -> ! {
    if core == 0 { control() } else { acquire() }
}

fn control() -> ! {
    clock::prepare();
    line::prepare();
    INTERRUPTS.write(interrupts::START, 1 << 1);
    let mut unit = control::Unit::new(&SHARED);
    while READY.load(Ordering::Acquire) == 0 {}
    INTERRUPTS.write(interrupts::MASK, 1 << clock::LEVEL | 1 << line::LEVEL);
    clock::begin();
    BEGUN.store(1, Ordering::Release);
    duster_runtime::unmask();
    unit.run()
}

fn acquire() -> ! {
    let mut probes = Probes::new();
    let partitions = Partitions {
        langmuir: memories::partition(PARTITION_LANGMUIR),
        efield: memories::partition(PARTITION_EFIELD),
        dust: memories::partition(PARTITION_DUST),
    };
    let mut acquisition = Acquisition::new(&SHARED, partitions, &mut probes);
    let mut executive = Executive::new(&TASKS_1, TICK);
    let mut load = Load::default();
    INTERRUPTS.write(interrupts::MASK + 4, 1 << clock::LEVEL);
    READY.store(1, Ordering::Release);
    duster_runtime::unmask();
    // The first releases are at the epoch itself, so there is no tick to sleep for.
    while BEGUN.load(Ordering::Acquire) == 0 {}
    loop {
        let seen = clock::TICKS[1].load(Ordering::Relaxed);
        let ran = executive.dispatch(&mut Here(1), |task, _| match task {
            TASK_ACQUIRE => tasks::acquire(&mut acquisition, &mut probes),
            TASK_DETECT => tasks::detect(&mut acquisition, &mut probes),
            TASK_SWEEP => tasks::sweep(&mut acquisition, &mut probes),
            TASK_SNAPSHOT => tasks::snapshot(&mut acquisition),
            TASK_FIELD => tasks::field(&mut acquisition, &probes),
            TASK_ORDERS => tasks::orders(&mut acquisition, &mut probes),
            _ => {}
        });
        match ran {
            Some(ran) => report(&ran),
            None => duster_runtime::sleep(&clock::TICKS[1], seen),
        }
        if let Some(load) = load.of(seen, || executive.take_busy()) {
            SHARED.status.load.store(load, Ordering::Relaxed);
        }
    }
}

/// Tells core 0 of an activation that was not as declared.
fn report(ran: &Ran) {
    let task = ran.task as u8;
    if ran.over_budget {
        let took = ran.took;
        let _ = SHARED.reports.put(Report::Budget { task, took });
    }
    if ran.late || ran.skipped > 0 {
        GPIO.write(duster_registers::gpio::TOGGLE, lines::LATE);
        let response = ran.response;
        let _ = SHARED.reports.put(Report::Deadline { task, response });
    }
}

/// The share of time that tasks take, second by second.
#[derive(Default)]
struct Load {
    since: u32,
}

impl Load {
    /// Per mille, when a second is over; `busy` gives the tenths of a microsecond since then.
    fn of(&mut self, ticks: u32, busy: impl FnOnce() -> u32) -> Option<u32> {
        let passed = ticks.wrapping_sub(self.since);
        if passed < 1_000_000 / TICK {
            return None;
        }
        self.since = ticks;
        Some(busy() / (passed * TICK * 10 / 1000).max(1))
    }
}

/// A trap that is none of windows or interrupts: the unit stops, and its watchdog resets it.
#[unsafe(no_mangle)]
extern "C" fn on_fault(_trap: u32, _pc: u32) -> ! {
    stop()
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    stop()
}

/// Waits for the watchdog: no core kicks it any more, as core 0 wants both alive.
fn stop() -> ! {
    duster_runtime::masked(|| {
        loop {
            core::hint::spin_loop();
        }
    })
}

/// An interrupt of either core.
#[unsafe(no_mangle)]
extern "C" fn on_interrupt(level: u32) {
    match (duster_runtime::core(), level) {
        (0, clock::LEVEL) => clock::tick(0, line::serve),
        (1, clock::LEVEL) => clock::tick(1, || {}),
        (0, line::LEVEL) => clock::interrupted(0, line::serve),
        _ => {}
    }
}
