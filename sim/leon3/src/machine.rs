//! A machine: cores, a bus and devices, and how time passes for them.
//!
//! Time is cycles. It passes in slices of at most a quantum that end when the next device acts; in a slice each core runs by
//! itself, in the order of their numbers, until its own cycles reach the slice's end. So whatever cores do to each other is seen
//! after a quantum at the latest, and what happens depends on nothing but image, configuration and input. A single core
//! has no other to wait for, and its slices end with events alone: it takes an interrupt at the very instruction.
//!
//! Invariant: between slices no core is behind the slice's end; the same machine run in other portions does the same.

use serde::{Deserialize, Serialize};

use crate::bus::{Bus, CONTROLLER, PERIPHERALS};
use crate::cache::{Cache, Cost, Geometry};
use crate::core::{Common, Condition, Core, Pause};
use crate::devices::{
    self, Access, Clock, Device, Flash, Gpio, Gptimer, Irqmp, MemoryController, NEVER, Numbers,
    Spictrl, Uart,
};
use crate::image::{Image, NoImage};
use crate::observer::Observer;
use crate::timing::Timing;
use crate::trap::Trap;

/// Most cores of a machine.
pub const MOST_CORES: usize = 64;

/// What time is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// An instruction is a cycle.
    Uniform,
    /// The table of LEON3's instructions, every access a hit.
    Flat,
    /// The table, private caches and a shared bus with wait states.
    Caches,
}

/// What a machine is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Cores, 1 to 64.
    pub cores: usize,
    /// Register windows of each, 2 to 32.
    pub windows: usize,
    /// Bytes of RAM from 0x40000000, a multiple of 4096.
    pub memory: usize,
    /// What time is counted by.
    pub model: Model,
    /// Longest time for which a core of several runs by itself, in cycles.
    pub quantum: u64,
    /// Frequency of the cores, Hz.
    pub frequency: u32,
    /// Frequency of the timers, Hz; the cores' in a real one.
    pub timer_frequency: u32,
    /// Interrupt of the first timer.
    pub timer_interrupt: u8,
    /// Serial lines, 1 to 5.
    pub uarts: usize,
    /// Bytes of the FIFOs of a serial line, 1 to 32; 1 is none but the holding registers.
    pub uart_depth: usize,
    /// SPI controllers, 0 to 3: at 0x80004000, 0x80005000 and 0x80006000, on interrupts 13, 11 and 10.
    pub spi: usize,
    /// Whether there is a GPIO port of 32 lines, at 0x80000900; lines 1 to 15 interrupt on 1 to 15.
    pub gpio: bool,
    /// Bytes of flash memory, a multiple of 64 KiB up to 64 MiB, its registers at 0x80007000.
    pub flash: Option<usize>,
    /// Line on which interrupts 16 to 31 arrive, 0 for none.
    pub extended_interrupt: u8,
    /// Ticks after which the second timer, a watchdog that runs from reset, ends the run.
    pub watchdog: Option<u32>,
    /// Whether there is a floating-point unit.
    pub float: bool,
    /// Whether there are `umac` and `smac`.
    pub mac: bool,
    /// Caches, where the model has them: of instructions and of data.
    pub caches: (Geometry, Geometry),
}

impl Default for Configuration {
    /// A core of 40 MHz as QEMU's `leon3_generic` is: 8 windows, timers on interrupt 6, a serial line.
    fn default() -> Configuration {
        Configuration {
            cores: 1,
            windows: 8,
            memory: 64 << 20,
            model: Model::Flat,
            quantum: 64,
            frequency: 40_000_000,
            timer_frequency: 40_000_000,
            timer_interrupt: 6,
            uarts: 1,
            uart_depth: 1,
            spi: 0,
            gpio: false,
            flash: None,
            extended_interrupt: 0,
            watchdog: None,
            float: true,
            mac: false,
            caches: (Geometry::PAPER, Geometry::PAPER),
        }
    }
}

/// Where serial lines stand, and their interrupts (as on the GR712RC).
const UARTS: [(u32, u8); 5] = [
    (0x100, 3),
    (0x1000, 17),
    (0x1100, 18),
    (0x1200, 19),
    (0x1300, 20),
];
/// Where SPI controllers stand, and their interrupts. The GR712RC has one at 0x400 on 13; its automated mode's registers
/// take more room than there is.
const SPI: [(u32, u8); 3] = [(0x4000, 13), (0x5000, 11), (0x6000, 10)];
/// Words of their FIFOs, as a power of two.
const SPI_DEPTH: u8 = 5;
/// Where the GPIO port stands (as on the GR712RC), and which lines interrupt.
const GPIO: u32 = 0x900;
const GPIO_INTERRUPTS: u32 = 0xfffe;
/// Where the registers of the flash memory stand.
const FLASH: u32 = 0x7000;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// `ta 0` with traps off: the image is done.
    Halt {
        /// The core that did so.
        core: usize,
    },
    /// A trap with traps off: error mode.
    Error {
        /// The core.
        core: usize,
        /// The trap.
        trap: Trap,
    },
    /// Every core sleeps or waits, and nothing will wake one.
    Idle,
    /// The watchdog ran out.
    Watchdog,
}

/// Why a run paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// As many instructions as asked for are executed.
    Limit,
    /// The observer wants it; the core that was about to execute.
    Observer {
        /// The core.
        core: usize,
    },
    /// The run is over.
    End(End),
}

/// A configuration that no machine can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {is}, but must be {must}")]
pub struct Impossible {
    what: &'static str,
    is: u64,
    must: &'static str,
}

/// A LEON3 system.
pub struct Machine {
    configuration: Configuration,
    pub(crate) common: Common,
    pub(crate) cores: Vec<Core>,
    /// Memory and devices.
    pub bus: Bus,
    /// The core whose turn it is in this slice, and the cycle at which the slice ends.
    pub(crate) turn: usize,
    pub(crate) slice: u64,
    pub(crate) printed: Vec<Vec<u8>>,
}

impl Machine {
    /// A machine without an image, core 0 about to execute address 0.
    ///
    /// # Errors
    /// The configuration is impossible.
    pub fn new(configuration: &Configuration) -> Result<Machine, Impossible> {
        let check = |what, is: u64, good: bool, must| {
            if good {
                Ok(())
            } else {
                Err(Impossible { what, is, must })
            }
        };
        let it = configuration;
        check(
            "the number of cores is",
            it.cores as u64,
            (1..=MOST_CORES).contains(&it.cores),
            "1 to 64",
        )?;
        check(
            "the number of windows is",
            it.windows as u64,
            (2..=32).contains(&it.windows),
            "2 to 32",
        )?;
        let memory = it.memory >= 4096 && it.memory <= 1 << 30 && it.memory.is_multiple_of(4096);
        check(
            "memory is",
            it.memory as u64,
            memory,
            "4 KiB to 1 GiB in steps of 4 KiB",
        )?;
        check(
            "the quantum is",
            it.quantum,
            it.quantum > 0,
            "at least 1 cycle",
        )?;
        let frequencies = it.frequency > 0 && it.timer_frequency > 0;
        check(
            "a frequency is",
            u64::from(it.frequency),
            frequencies,
            "at least 1 Hz",
        )?;
        check(
            "the number of serial lines is",
            it.uarts as u64,
            (1..=UARTS.len()).contains(&it.uarts),
            "1 to 5",
        )?;
        check(
            "the FIFOs' depth is",
            it.uart_depth as u64,
            (1..=32).contains(&it.uart_depth),
            "1 to 32",
        )?;
        check(
            "the number of SPI controllers is",
            it.spi as u64,
            it.spi <= SPI.len(),
            "0 to 3",
        )?;
        let flash = it.flash.unwrap_or(devices::flash::SECTOR);
        check(
            "flash memory is",
            flash as u64,
            (1..=devices::flash::MOST).contains(&flash)
                && flash.is_multiple_of(devices::flash::SECTOR),
            "64 KiB to 64 MiB in steps of 64 KiB",
        )?;
        let line = u64::from(it.timer_interrupt);
        check(
            "the timers' interrupt is",
            line,
            (1..=14).contains(&line),
            "1 to 14",
        )?;
        let line = u64::from(it.extended_interrupt);
        check(
            "the line of extended interrupts is",
            line,
            line <= 14,
            "1 to 14, or 0 for none",
        )?;
        for cache in [it.caches.0, it.caches.1] {
            check(
                "a cache's size is",
                u64::from(cache.bytes),
                cache.possible(),
                "a power of two up to 16 MiB, divided into ways and lines (4 bytes to 4 KiB) that are powers of two, too",
            )?;
        }
        Ok(Machine::assemble(configuration))
    }

    fn assemble(configuration: &Configuration) -> Machine {
        let it = configuration;
        let (timing, cost) = match it.model {
            Model::Uniform => (Timing::uniform(), Cost::NOTHING),
            Model::Flat => (Timing::leon3(), Cost::FLAT),
            Model::Caches => (Timing::leon3(), Cost::CACHES),
        };
        let base = 0x4000_0000;
        let interrupts = Irqmp::new(it.cores, it.extended_interrupt);
        let mut bus = Bus::new(base, it.memory, interrupts, cost);
        let mut cores: Vec<Core> = (0..it.cores)
            .map(|number| Core::new(number, it.windows))
            .collect();
        for core in &mut cores {
            bus.tables().add_core();
            bus.interrupts.wait(core.number, core.number > 0);
            if it.model == Model::Caches {
                let (instructions, data) = it.caches;
                core.caches = Some(Box::new([Cache::new(instructions), Cache::new(data)]));
            }
        }
        cores[0].condition = Condition::Running;
        bus.attach(PERIPHERALS, 0x100, Box::new(MemoryController::new()));
        for &(offset, interrupt) in &UARTS[..it.uarts] {
            bus.attach(
                PERIPHERALS + offset,
                0x100,
                Box::new(Uart::new(interrupt, it.uart_depth)),
            );
        }
        let identity = bus.interrupts.identity();
        bus.tables().set(CONTROLLER, 0x100, identity);
        let clock = if it.timer_frequency == it.frequency {
            Clock::SAME
        } else {
            Clock {
                ticks: it.timer_frequency,
                cycles: it.frequency,
            }
        };
        let timer = Gptimer::new(2, it.timer_interrupt, true, it.watchdog, clock);
        bus.attach(PERIPHERALS + 0x300, 0x100, Box::new(timer));
        if it.gpio {
            let gpio = Gpio::new(32, 0, GPIO_INTERRUPTS);
            bus.attach(PERIPHERALS + GPIO, 0x100, Box::new(gpio));
        }
        for &(offset, interrupt) in &SPI[..it.spi] {
            let spi = Spictrl::new(interrupt, SPI_DEPTH, 4);
            bus.attach(PERIPHERALS + offset, 0x800, Box::new(spi));
        }
        if let Some(capacity) = it.flash {
            let flash = Flash::new(capacity, it.frequency);
            bus.attach(PERIPHERALS + FLASH, 0x800, Box::new(flash));
        }
        bus.attach(PERIPHERALS + 0xf00, 0x100, Box::new(Numbers::new(it.cores)));
        Machine {
            configuration: it.clone(),
            common: Common {
                timing,
                mac: it.mac,
                float: it.float,
                multiplier: true,
            },
            cores,
            bus,
            turn: it.cores,
            slice: 0,
            printed: vec![Vec::new(); it.uarts],
        }
    }

    /// A machine with `image` in its memory, as a boot loader leaves it: every core at the entry, core 0 with its stack
    /// pointer at the end of memory, the first serial line on, timers at a microsecond a tick and the first running.
    ///
    /// # Errors
    /// The configuration is impossible, or the image does not fit.
    pub fn with_image(configuration: &Configuration, image: &Image) -> Result<Machine, NoImage> {
        let mut machine = Machine::new(configuration)?;
        for segment in image.segments() {
            machine.bus.write_image(segment.address, &segment.bytes)?;
        }
        let top = machine.bus.base().wrapping_add(configuration.memory as u32);
        for core in &mut machine.cores {
            core.pc = image.entry();
            core.npc = image.entry().wrapping_add(4);
        }
        machine.cores[0].registers.set(14, top);
        let mut access = Access::new(0, 0);
        let scaler = (configuration.timer_frequency / 1_000_000).max(1) - 1;
        for (base, device) in machine.bus.devices() {
            match base.wrapping_sub(PERIPHERALS) {
                0x100 => device.write(0x8, 3, &mut access),
                0x300 => {
                    device.write(0x4, scaler, &mut access);
                    device.write(0x14, 0xffff_fffe, &mut access);
                    device.write(0x18, 7, &mut access);
                }
                _ => {}
            }
        }
        machine.bus.settled();
        Ok(machine)
    }

    /// What it is made of.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The cores.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// A core, to be changed by a debugger.
    pub fn core_mut(&mut self, number: usize) -> &mut Core {
        &mut self.cores[number]
    }

    /// The model of time that its cycles are of, in words.
    pub fn timing(&self) -> &'static str {
        match self.configuration.model {
            Model::Uniform => "an instruction is a cycle",
            Model::Flat => "LEON3's manual, every access a hit",
            Model::Caches => "LEON3's manual, private caches, shared bus",
        }
    }

    /// Instructions that all cores have executed.
    pub fn instructions(&self) -> u64 {
        self.cores.iter().map(|core| core.instructions).sum()
    }

    /// Cycles since reset: of the core that is furthest.
    pub fn cycles(&self) -> u64 {
        self.cores.iter().map(|core| core.cycles).max().unwrap_or(0)
    }

    /// Serial line `number`, to give it bytes that arrive.
    pub fn uart(&mut self, number: usize) -> Option<&mut Uart> {
        self.bus.device(number)
    }

    /// SPI controller `number`, to give it what stands on its other side.
    pub fn spi(&mut self, number: usize) -> Option<&mut Spictrl> {
        self.bus.device(number)
    }

    /// The GPIO port, to set its inputs and see its outputs.
    pub fn gpio(&mut self) -> Option<&mut Gpio> {
        self.bus.device(0)
    }

    /// The flash memory, to take its contents out and put them in.
    pub fn flash(&mut self) -> Option<&mut Flash> {
        self.bus.device(0)
    }

    /// What serial line `number` has printed since the last call.
    pub fn printed(&mut self, number: usize) -> Vec<u8> {
        self.collect();
        self.printed
            .get_mut(number)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    fn collect(&mut self) {
        let printing = self
            .bus
            .devices()
            .filter_map(|(_, device)| device.printed());
        for (all, new) in self.printed.iter_mut().zip(printing) {
            all.extend(new);
        }
    }

    /// Runs until `most` more instructions are executed, the observer pauses, or the run is over. Time in which every
    /// core sleeps counts as an instruction or two for each event, so that the call ends even where none ever wakes. After
    /// a pause of the observer the same instruction is shown to it again.
    pub fn run<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stop {
        self.bus.settle();
        let stop = self.run_slices(most, observer);
        // The interpreter puts there what translated code does not compute at all.
        for core in &mut self.cores {
            core.registers.empty_sink();
        }
        stop
    }

    fn run_slices<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stop {
        let mut left = most;
        loop {
            while self.turn < self.cores.len() {
                if let Some(stop) = self.take_turn(&mut left, observer) {
                    return stop;
                }
                self.turn += 1;
            }
            let busy = self.busy();
            if !busy && !self.may_wake() {
                return Stop::End(End::Idle);
            }
            // A single core looks by itself: it may fall asleep at the beginning of a long slice.
            if !busy && self.cores.len() > 1 && !self.sleeps_on(&mut left) {
                return Stop::Limit;
            }
            self.begin_slice(busy);
        }
    }

    /// Whether every core may sleep to the next event: that counts as an instruction, if there is one.
    fn sleeps_on(&self, left: &mut u64) -> bool {
        if self.bus.next() == NEVER {
            return true;
        }
        let some = *left > 0;
        *left -= u64::from(some);
        some
    }

    /// Whether a core executes in the next slice.
    fn busy(&self) -> bool {
        self.bus.started != 0 || self.cores.iter().any(|core| self.awake(core))
    }

    /// Begins the next slice, in which a core executes or none does.
    fn begin_slice(&mut self, busy: bool) {
        let next = self.bus.next();
        let quantum = if !busy {
            NEVER
        } else if self.cores.len() == 1 {
            NEVER - 1
        } else {
            self.configuration.quantum
        };
        let now = self.slice;
        // A core alone is behind nobody.
        self.bus.past = if self.cores.len() == 1 { NEVER } else { now };
        let end = now.saturating_add(quantum).min(next.max(now + 1));
        self.slice = end;
        self.turn = 0;
    }

    /// Whether `core` executes, or will as soon as it is its turn.
    fn awake(&self, core: &Core) -> bool {
        match core.condition {
            Condition::Running | Condition::Stopped(_) => true,
            Condition::Waiting => false,
            Condition::Asleep => self.wakes(core),
        }
    }

    fn wakes(&self, core: &Core) -> bool {
        let level = self.bus.interrupts.level(core.number);
        level == 15 || level > core.interrupt_level
    }

    /// Whether a device can wake a core or end the run, now that no core runs. A timer that nobody hears goes on for
    /// ever.
    fn may_wake(&self) -> bool {
        if self.bus.next() == NEVER {
            return false;
        }
        let lines = self.bus.may_raise();
        let wakes = |core: &Core, line: u32| {
            let level = self.bus.interrupts.level_with(core.number, line);
            level == 15 || level > core.interrupt_level
        };
        let mut sleeping = self
            .cores
            .iter()
            .filter(|core| core.condition == Condition::Asleep);
        lines & 1 == 1
            || sleeping.any(|core| (1..32).any(|line| lines >> line & 1 == 1 && wakes(core, line)))
    }

    /// Runs the core whose turn it is to the end of the slice.
    fn take_turn<O: Observer>(&mut self, left: &mut u64, observer: &mut O) -> Option<Stop> {
        let number = self.turn;
        while self.cores[number].cycles < self.slice {
            self.bus.advance(self.cores[number].cycles);
            if self.bus.expired() {
                return Some(Stop::End(End::Watchdog));
            }
            self.start_cores();
            match self.cores[number].condition {
                Condition::Waiting => self.cores[number].cycles = self.slice,
                Condition::Asleep if !self.wakes(&self.cores[number]) => {
                    if self.cores.len() == 1 && !self.may_wake() {
                        return Some(Stop::End(End::Idle));
                    }
                    if self.cores.len() == 1 && !self.sleeps_on(left) {
                        return Some(Stop::Limit);
                    }
                    let core = &mut self.cores[number];
                    core.cycles = self.slice.min(self.bus.next().max(core.cycles + 1));
                }
                Condition::Asleep => {
                    self.cores[number].condition = Condition::Running;
                    self.bus.interrupts.wait(number, false);
                }
                Condition::Stopped(trap) => return Some(Stop::End(end(number, trap))),
                Condition::Running => {
                    if let Some(stop) = self.run_core(number, left, observer) {
                        return Some(stop);
                    }
                }
            }
        }
        None
    }

    fn run_core<O: Observer>(
        &mut self,
        number: usize,
        left: &mut u64,
        observer: &mut O,
    ) -> Option<Stop> {
        let core = &mut self.cores[number];
        let level = self.bus.interrupts.level(number);
        if level != 0 && core.takes(level) {
            let trap = Trap::interrupt(level);
            self.bus.interrupts.acknowledge(number, level);
            observer.trapped(core, trap);
            // Traps are on, so there is no error mode to enter.
            let _ = core.trap(trap, &self.common);
            return None;
        }
        if *left == 0 {
            return Some(Stop::Limit);
        }
        let limit = core.cycles.saturating_add(*left);
        self.bus.deadline = self.slice.min(self.bus.next()).min(limit);
        let before = core.instructions;
        let pause = core.run(&mut self.bus, &self.common, observer);
        *left -= core.instructions - before;
        if core.condition == Condition::Asleep {
            self.bus.interrupts.wait(number, true);
        }
        (pause == Pause::Observer).then_some(Stop::Observer { core: number })
    }

    /// Starts the cores that software has named.
    fn start_cores(&mut self) {
        let started = std::mem::take(&mut self.bus.started);
        for core in &mut self.cores {
            let named = started >> core.number & 1 == 1;
            if named && matches!(core.condition, Condition::Waiting | Condition::Asleep) {
                core.condition = Condition::Running;
                self.bus.interrupts.wait(core.number, false);
            }
        }
    }
}

/// What error mode by `trap` means.
fn end(core: usize, trap: Trap) -> End {
    if trap == Trap::software(0) {
        End::Halt { core }
    } else {
        End::Error { core, trap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns on a timer of a microsecond a tick with `control` and masks all but `mask`, then sleeps and ends.
    fn sleeper(control: u32, mask: u32) -> Machine {
        let words = [
            0x0320_0000,           // sethi %hi(0x80000000), %g1
            0x8410_2000 | mask,    // mov mask, %g2
            0xc420_6240,           // st %g2, [%g1 + 0x240]
            0x8410_2064,           // mov 100, %g2
            0xc420_6324,           // st %g2, [%g1 + 0x324]
            0x8410_2000 | control, // mov control, %g2
            0xc420_6328,           // st %g2, [%g1 + 0x328]
            0xa780_0000,           // wr %asr19
            0x91d0_2000,           // ta 0
        ];
        let image = Image::of_words(0x4000_0000, &words);
        Machine::with_image(&Configuration::default(), &image).expect("a machine")
    }

    #[test]
    fn a_sleep_that_no_timer_ends_is_the_end() {
        // With an interrupt that is heard, the second timer wakes.
        let halt = Stop::End(End::Halt { core: 0 });
        assert_eq!(sleeper(0xf, 1 << 7).run(100, &mut ()), halt);
        // One that is masked, or does not interrupt, runs on for ever, and nobody wakes.
        assert_eq!(sleeper(0xf, 1 << 5).run(100, &mut ()), Stop::End(End::Idle));
        assert_eq!(sleeper(0x7, 1 << 7).run(100, &mut ()), Stop::End(End::Idle));
    }
}
