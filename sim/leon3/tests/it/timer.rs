//! The timers of QEMU's LEON3, and its clock under `-icount`, to the instruction.
//!
//! With `-icount shift=N` an instruction takes 2^N ns, and while the processor sleeps time jumps to when the next timer
//! runs out. What differs from a GPTIMER, as `hw/timer/grlib_gptimer.c` has it and as was measured (QEMU 10.0.2):
//!
//! - A timer that restarts counts from when its end was noticed, which is before an instruction, not from when it was.
//! - The prescaler does not count: a write to it sets a frequency, and each timer divides time by itself. One that runs
//!   then loses the part of a tick.
//! - A timer is not stopped by taking its enable bit, and the bit that loads it stays to be read.
//! - An instruction whose trap is raised in the midst of it takes no time: windows, addresses, tags.
//!
//! Invariant: `time` never goes back, and no timer that has run out before it is left.

use std::sync::{Arc, Mutex, MutexGuard};

use metes_leon3::devices::{Access, Device, Identity, NEVER};
use metes_leon3::{Bus, Trap};

/// Where the timers stand, in place of the simulator's.
const BASE: u32 = 0x8000_0300;
const INTERRUPT: u8 = 6;

// Bits of a timer's control register.
const ENABLE: u32 = 1;
const RESTART: u32 = 2;
const LOAD: u32 = 4;
const INTERRUPTS: u32 = 8;
const PENDING: u32 = 16;

/// Timers and clock, of which the bus has one half and the test the other.
#[derive(Clone, Debug)]
pub(crate) struct QemuTimer(Arc<Mutex<Timers>>);

#[derive(Debug)]
struct Timers {
    shift: u32,
    /// Instructions that took time, before the one at hand.
    counted: u64,
    /// Nanoseconds by which time has jumped.
    jumped: u64,
    scaler: u32,
    timers: [Timer; 2],
    /// The cycle at which the bus lets this device act, set by the test alone.
    acts: Option<u64>,
    /// Whether it then acts for a processor that sleeps.
    asleep: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    counter: u32,
    reload: u32,
    control: u32,
    /// When it runs out, ns.
    due: Option<u64>,
}

impl QemuTimer {
    /// The timers as QEMU's boot code leaves them, before the first instruction of an image.
    pub(crate) fn new(shift: u32) -> QemuTimer {
        // The 33rd of its 38 instructions starts the first timer, from 0.
        let booted = Timer {
            counter: 0,
            reload: 0xffff_fffe,
            control: ENABLE | RESTART,
            due: Some((33 << shift) + 1000),
        };
        let mut timers = Timers {
            shift,
            counted: 38,
            jumped: 0,
            scaler: 39,
            timers: [booted, Timer::default()],
            acts: None,
            asleep: false,
        };
        let entry = timers.time();
        if timers.timers[0].due <= Some(entry) {
            timers.run_out(0, entry);
        }
        QemuTimer(Arc::new(Mutex::new(timers)))
    }

    /// Stands where the simulator's timers stood.
    pub(crate) fn attach(&self, bus: &mut Bus) {
        bus.attach(BASE, 0x100, Box::new(self.clone()));
    }

    fn all(&self) -> MutexGuard<'_, Timers> {
        self.0.lock().expect("no test panics with it")
    }

    /// An instruction is over, by `trap` if it is not done.
    pub(crate) fn executed(&self, trap: Option<Trap>) {
        let rolled_back = [
            Trap::WINDOW_OVERFLOW,
            Trap::WINDOW_UNDERFLOW,
            Trap::ADDRESS_NOT_ALIGNED,
            Trap::TAG_OVERFLOW,
        ];
        if !trap.is_some_and(|trap| rolled_back.contains(&trap)) {
            self.all().counted += 1;
        }
    }

    /// Whether a timer has run out.
    pub(crate) fn is_due(&self) -> bool {
        let all = self.all();
        all.earliest().is_some_and(|due| due <= all.time())
    }

    /// Lets the device act at `cycle`: for a processor that goes to sleep then, or now.
    pub(crate) fn act_at(&self, cycle: u64, asleep: bool, bus: &mut Bus) {
        let mut all = self.all();
        all.acts = Some(cycle);
        all.asleep = asleep;
        drop(all);
        bus.settled();
    }

    /// The processor is awake.
    pub(crate) fn awake(&self, bus: &mut Bus) {
        self.all().acts = None;
        bus.settled();
    }
}

impl Timers {
    fn time(&self) -> u64 {
        (self.counted << self.shift) + self.jumped
    }

    /// The time that an instruction sees which accesses a device: its own counts.
    fn time_of_access(&self) -> u64 {
        self.time() + (1 << self.shift)
    }

    fn earliest(&self) -> Option<u64> {
        self.timers.iter().filter_map(|timer| timer.due).min()
    }

    /// Nanoseconds of `ticks`: whole ones and a fraction of 32 bits, as QEMU's `ptimer` keeps them.
    fn span(&self, ticks: u64) -> u64 {
        let frequency = 40_000_000 / (u64::from(self.scaler & 0xffff) + 1);
        let period = (1_000_000_000 << 32) / frequency.max(1);
        ((u128::from(period) * u128::from(ticks)) >> 32) as u64
    }

    /// Sets the timer going from its counter, if it is on.
    fn start(&mut self, number: usize, now: u64) {
        let span = self.span(u64::from(self.timers[number].counter) + 1);
        let timer = &mut self.timers[number];
        timer.due = (timer.control & ENABLE != 0).then_some(now + span);
    }

    /// Sets the frequency. Timers go on from their counts as they are read, without the part of a tick.
    fn rescale(&mut self, scaler: u32, now: u64) {
        let left = [0, 1].map(|number| self.left(number, now));
        self.scaler = scaler;
        for (number, left) in left.into_iter().enumerate() {
            let span = self.span(left);
            let due = &mut self.timers[number].due;
            *due = due.map(|_| now + span);
        }
    }

    /// Whole ticks until the timer runs out.
    fn left(&self, number: usize, now: u64) -> u64 {
        let due = self.timers[number].due;
        let left = due.map_or(0, |due| due.saturating_sub(now));
        left / self.span(1).max(1)
    }

    fn run_out(&mut self, number: usize, now: u64) -> bool {
        let timer = &mut self.timers[number];
        timer.due = None;
        let interrupts = timer.control & INTERRUPTS != 0;
        if interrupts {
            timer.control |= PENDING;
        }
        if timer.control & RESTART != 0 {
            timer.counter = timer.reload;
            self.start(number, now);
        }
        interrupts
    }

    fn write_control(&mut self, number: usize, value: u32, now: u64) {
        let timer = &mut self.timers[number];
        // What pends is cleared by a one.
        timer.control = if value & PENDING != 0 {
            value & !PENDING
        } else {
            value | timer.control & PENDING
        };
        if value & LOAD != 0 {
            timer.counter = timer.reload;
        }
        if value & LOAD != 0 || value & ENABLE != 0 {
            self.start(number, now);
        }
    }
}

impl Device for QemuTimer {
    fn name(&self) -> &'static str {
        "QEMU's timers"
    }

    /// None: the timers in whose place it stands are in the table already.
    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        let all = self.all();
        let number = (offset >> 4) as usize;
        match (offset, offset & 15) {
            (0x0 | 0x4, _) => all.scaler,
            // Two timers from interrupt 6 on, one each; not to be frozen.
            (0x8, _) => 2 | u32::from(INTERRUPT) << 3 | 1 << 8 | 1 << 9,
            (0x10..0x30, 0x0) => all.left(number - 1, all.time_of_access()) as u32,
            (0x10..0x30, 0x4) => all.timers[number - 1].reload,
            (0x10..0x30, 0x8) => all.timers[number - 1].control,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, _access: &mut Access) {
        let mut all = self.all();
        let now = all.time_of_access();
        let number = (offset >> 4) as usize;
        match (offset, offset & 15) {
            (0x0 | 0x4, _) => all.rescale(value & 0xffff, now),
            (0x10..0x30, 0x0) => {
                all.timers[number - 1].counter = value;
                if all.timers[number - 1].control & ENABLE != 0 {
                    all.start(number - 1, now);
                }
            }
            (0x10..0x30, 0x4) => all.timers[number - 1].reload = value,
            (0x10..0x30, 0x8) => all.write_control(number - 1, value, now),
            _ => {}
        }
    }

    fn next(&self) -> u64 {
        let all = self.all();
        // A processor that sleeps for ever does not wake.
        all.acts
            .filter(|_| all.earliest().is_some())
            .unwrap_or(NEVER)
    }

    fn advance(&mut self, access: &mut Access) {
        let mut all = self.all();
        if all.asleep {
            let now = all.time();
            all.jumped += all.earliest().map_or(0, |due| due.saturating_sub(now));
        }
        let now = all.time();
        for number in 0..2 {
            if all.timers[number].due.is_some_and(|due| due <= now) && all.run_out(number, now) {
                access.interrupt(INTERRUPT + number as u8);
            }
        }
        // Until the test says that the processor is awake, time jumps on.
        all.acts = all.asleep.then_some(access.now + 1);
    }

    /// Nobody saves a machine with it.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}
