//! The unit on its bench: a machine of the declaration, the instrument around it, and the resets between one machine and the
//! next.
//!
//! The machine runs in portions of instructions. Between them the bench takes what the lines have told, and does what
//! is due: bytes of telecommands, faults. So a run depends on the image, the seeds and the commands alone.
//!
//! *Invariant:* mission time goes on over every reset, and never back; what a machine's flash held, the next one's holds.

use metes_duster_instrument::{FrontEnd, Kind, Probe, Shared, World, line};
use metes_duster_system::System;
use metes_leon3::cache::Geometry;
use metes_leon3::devices::{Access, Device, Identity, NEVER};
use metes_leon3::{Configuration, End, Image, Machine, Model, Stop};

use crate::analyser::Analyser;
use crate::hits::{Hits, Map, Part};
use crate::requests::Requests;

/// Most instructions of a portion.
const PORTION: u64 = 20_000;
/// GPIO line that tells of a trip of the high voltage.
const TRIPPED: u32 = 1 << 17;
/// Cycles to which resets are rounded: a multiple of each converter's period.
const GRID: u64 = 10_000_000;
/// Where the first serial line of the machine is telemetry, the second the log: those of the supplies are the instrument's.
const LOG: usize = 1;

/// Where the bench's own device stands: no software knows of it.
const ALARM: u32 = 0x800b_0000;

/// Ends a portion at a cycle, whatever the cores do then.
struct Alarm {
    at: u64,
    rings: bool,
}

impl Device for Alarm {
    fn name(&self) -> &'static str {
        "alarm of the bench"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, _offset: u32, _access: &mut Access) -> u32 {
        0
    }

    fn write(&mut self, _offset: u32, _value: u32, _access: &mut Access) {}

    fn next(&self) -> u64 {
        self.at
    }

    fn may_raise(&self) -> u32 {
        u32::from(self.at != NEVER)
    }

    fn advance(&mut self, _access: &mut Access) {
        self.at = NEVER;
        self.rings = true;
    }

    fn expired(&self) -> bool {
        self.rings
    }

    fn save(&self) -> Vec<u8> {
        [&self.at.to_be_bytes()[..], &[self.rings.into()]].concat()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (at, rings) = bytes.split_first_chunk().ok_or("not nine bytes")?;
        self.at = u64::from_be_bytes(*at);
        self.rings = rings == [1];
        Ok(())
    }
}

/// A reset of the unit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reset {
    /// The mission's cycle at which the next machine begins.
    pub at: u64,
    /// Why.
    pub why: String,
}

/// The unit.
pub struct Unit {
    configuration: Configuration,
    image: Image,
    machine: Machine,
    /// The instrument.
    pub world: Shared,
    /// What its pins tell.
    pub analyser: Analyser,
    /// The resets so far.
    pub resets: Vec<Reset>,
    /// Cycles of a watchdog's time.
    watchdog: u64,
    /// Mission cycles at which grains were detected, since they were taken.
    detected: Vec<u64>,
    telemetry: Vec<u8>,
    log: Vec<u8>,
    /// The mission cycle at which the last byte that was sent to it has come.
    line_free: u64,
    byte: u64,
    inhibited: bool,
    tripped: bool,
    /// Instructions of the machines before this one.
    instructions: u64,
    /// Bytes of telecommands that are yet to be lost.
    losses: u32,
    /// What lies where in its memory.
    pub map: Map,
    /// Bits of its memory that flipped.
    pub hits: Hits,
    /// Who writes down what is asked of the partitions, if anyone does.
    pub requests: Option<Requests>,
}

/// The machine that `system` declares.
#[must_use]
pub fn configuration(system: &System, model: Model) -> Configuration {
    let platform = &system.platform;
    let cache = |bytes| Geometry {
        bytes,
        ..Geometry::PAPER
    };
    Configuration {
        cores: platform.cores,
        memory: platform.memory,
        model,
        frequency: platform.frequency,
        timer_frequency: platform.frequency,
        timer_interrupt: 6,
        uarts: 5,
        uart_depth: 32,
        spi: 3,
        gpio: true,
        flash: Some(platform.flash),
        extended_interrupt: 12,
        watchdog: Some((platform.watchdog * 10) as u32),
        caches: (
            cache(platform.instruction_cache),
            cache(platform.data_cache),
        ),
        ..Configuration::default()
    }
}

impl Unit {
    /// The unit of `system` with `image`, and the instrument of `seed`; mission time begins.
    ///
    /// # Errors
    /// The image does not fit.
    pub fn new(
        system: &System,
        image: Image,
        model: Model,
        seed: u64,
    ) -> Result<Unit, metes_leon3::NoImage> {
        let configuration = configuration(system, model);
        let frequency = system.platform.frequency;
        let baud = system.line("telemetry").map_or(781_250, |line| line.baud);
        let mut unit = Unit {
            machine: Machine::with_image(&configuration, &image)?,
            map: Map::new(system, &image),
            hits: Hits::default(),
            configuration,
            image,
            world: World::new(seed, frequency),
            analyser: Analyser::new(system),
            resets: Vec::new(),
            watchdog: system.platform.watchdog * u64::from(frequency) / 1_000_000,
            detected: Vec::new(),
            telemetry: Vec::new(),
            log: Vec::new(),
            line_free: 0,
            byte: u64::from(frequency) * 10 / u64::from(baud),
            inhibited: false,
            tripped: false,
            instructions: 0,
            losses: 0,
            requests: None,
        };
        unit.connect();
        Ok(unit)
    }

    /// Puts the instrument around a fresh machine.
    fn connect(&mut self) {
        line::attach(&mut self.machine, &self.world);
        self.machine.bus.attach(
            ALARM,
            0x100,
            Box::new(Alarm {
                at: NEVER,
                rings: false,
            }),
        );
        for (number, probe) in Probe::ALL.into_iter().enumerate() {
            if let Some(spi) = self.machine.spi(number) {
                spi.attach(Box::new(FrontEnd::new(self.world.clone(), probe)));
            }
        }
        self.tripped = false;
        self.inhibited = false;
        self.analyser.reset();
        self.follow_trip();
    }

    /// Cycles of a second.
    #[must_use]
    pub fn frequency(&self) -> u64 {
        self.configuration.frequency.into()
    }

    /// The mission's cycle.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.offset() + self.machine.cycles()
    }

    /// The mission cycle at which the machine began.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.world.lock().offset
    }

    /// The mission cycle at which the unit's own time began.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.analyser.epoch().map(|epoch| epoch + self.offset())
    }

    /// Instructions so far, of all machines.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions + self.machine.instructions()
    }

    /// What was strange to the machine.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.machine.bus.notes()
    }

    /// The machine, to look at.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Its image.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What it has sent since the last call.
    pub fn take_telemetry(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.telemetry)
    }

    /// What it has logged since the last call.
    pub fn take_log(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.log)
    }

    /// Mission cycles at which grains were detected, since the last call.
    pub fn take_detected(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.detected)
    }

    /// Sends bytes to it, one behind the other at the line's rate.
    pub fn send(&mut self, bytes: &[u8]) {
        let offset = self.offset();
        // Beyond anything that a core has seen.
        let mut at = self.line_free.max(self.now() + 1000);
        for &byte in bytes {
            at += self.byte;
            if self.losses > 0 {
                self.losses -= 1;
                continue;
            }
            if let Some(uart) = self.machine.uart(0) {
                uart.arrive(at - offset, byte);
            }
        }
        self.line_free = at;
    }

    /// Loses the next byte that is sent to it.
    pub fn lose_byte(&mut self) {
        self.losses += 1;
    }

    /// From now on what is asked of the partitions is written down; whether the image names what is needed for that.
    pub fn write_requests(&mut self, system: &System) -> bool {
        self.requests = Requests::new(&self.image, system);
        self.requests.is_some()
    }

    /// Runs to the mission's cycle `to`, over whatever resets there are.
    pub fn advance(&mut self, to: u64) {
        while self.now() < to {
            let at = to - self.offset();
            if let Some(alarm) = self.alarm() {
                *alarm = Alarm { at, rings: false };
            }
            self.portions(to);
        }
    }

    /// Runs to cycle `to`, or to the next reset.
    fn portions(&mut self, to: u64) {
        loop {
            if self.now() >= to {
                return;
            }
            let stop = match &mut self.requests {
                Some(requests) => self.machine.run(PORTION, requests),
                None => self.machine.run(PORTION, &mut ()),
            };
            self.collect();
            if self
                .alarm()
                .is_some_and(|alarm| std::mem::take(&mut alarm.rings))
            {
                continue;
            }
            let why = match stop {
                Stop::Limit | Stop::Observer { .. } => continue,
                Stop::End(End::Watchdog) => ("watchdog".to_owned(), 0),
                // Silicon stays there until its watchdog bites.
                Stop::End(End::Error { core, trap }) => {
                    let what = format!("core {core} in error mode: {trap:?}");
                    (what, self.watchdog)
                }
                Stop::End(End::Halt { core }) => (format!("core {core} halted"), self.watchdog),
                Stop::End(End::Idle) => ("all cores asleep".to_owned(), self.watchdog),
            };
            self.begin_anew(why.0, why.1);
            return;
        }
    }

    /// Resets the whole unit.
    pub fn reset(&mut self, why: &str) {
        self.begin_anew(why.to_owned(), 0);
    }

    fn begin_anew(&mut self, why: String, after: u64) {
        let at = (self.now() + after + 1).next_multiple_of(GRID);
        self.instructions += self.machine.instructions();
        let flash = self.machine.flash().map(|flash| flash.take());
        // It was possible before.
        if let Ok(machine) = Machine::with_image(&self.configuration, &self.image) {
            self.machine = machine;
        }
        if let (Some(own), Some(contents)) = (self.machine.flash(), flash) {
            own.put(contents);
        }
        if let Some(requests) = &mut self.requests {
            requests.reset();
        }
        self.world.lock().offset = at;
        self.line_free = self.line_free.max(at);
        self.resets.push(Reset { at, why });
        self.connect();
    }

    /// Takes what the lines have told.
    fn collect(&mut self) {
        let offset = self.offset();
        let printed = self.machine.printed(0);
        self.telemetry.extend(printed);
        let printed = self.machine.printed(LOG);
        self.log.extend(printed);
        let driven = self.machine.gpio().map(|gpio| gpio.driven());
        for driven in driven.unwrap_or_default() {
            self.analyser.see(driven);
        }
        let detected = self.analyser.take_detected();
        self.detected.extend(detected.iter().map(|at| at + offset));
        if self.analyser.inhibits() != self.inhibited {
            self.inhibited = !self.inhibited;
            let now = self.now();
            let world = &mut *self.world.lock();
            let supply = &mut world.supplies[Kind::High as usize];
            supply.inhibit(self.inhibited, now, &mut world.truth);
        }
        self.follow_trip();
    }

    /// The line of the supply's trip is as the supply is.
    fn follow_trip(&mut self) {
        let tripped = self.world.lock().tripped();
        if tripped != self.tripped {
            self.tripped = tripped;
            let at = self.machine.cycles();
            if let Some(gpio) = self.machine.gpio() {
                gpio.set(at, TRIPPED, if tripped { TRIPPED } else { 0 });
            }
        }
    }

    /// Keeps the next tick from the unit, or lets it come `late` cycles late.
    pub fn spoil_tick(&mut self, late: Option<u64>) {
        const INTERRUPT: u32 = 1 << 3;
        let now = self.machine.cycles();
        let Some(timer) = self.timer() else { return };
        let mut access = Access::new(now, 0);
        let control = timer.read(0x18, &mut access);
        // Counts of ten cycles until it underflows, and room for it to have done so.
        let left = u64::from(timer.read(0x10, &mut access)) * 10 + 50;
        if control & 1 == 0 || control & INTERRUPT == 0 || left > 1_000_000 {
            return;
        }
        timer.write(0x18, control & !(INTERRUPT | 1 << 4 | 1 << 2), &mut access);
        let resets = self.resets.len();
        let until = self.now() + left + late.unwrap_or(0);
        self.advance(until);
        if self.resets.len() > resets {
            return;
        }
        let now = self.machine.cycles();
        let Some(timer) = self.timer() else { return };
        timer.write(0x18, control & !(1 << 4 | 1 << 2), &mut Access::new(now, 0));
        if late.is_some() {
            let mut access = Access::new(now, 0);
            for core in 0..self.configuration.cores as u32 {
                let force = 0x80 + 4 * core;
                self.machine
                    .bus
                    .interrupts
                    .write(force, 1 << 6, &mut access);
            }
            self.machine.bus.settled();
            // Until what was released by that tick and the next has run.
            self.analyser.excuse(now + self.frequency() / 500);
        } else {
            self.analyser.delay(self.frequency() / 1000);
        }
    }

    fn alarm(&mut self) -> Option<&mut Alarm> {
        self.machine.bus.device(0)
    }

    fn timer(&mut self) -> Option<&mut metes_leon3::devices::Gptimer> {
        self.machine.bus.device(0)
    }

    /// Flips bit `bit` of the byte at `address`; whether there is memory.
    pub fn flip(&mut self, address: u32, bit: u32) -> bool {
        let mut byte = [0];
        let bus = &mut self.machine.bus;
        if !bus.peek(address, &mut byte) {
            return false;
        }
        // A stack grows downwards: where it has not been yet there is nothing but what memory began with.
        let fresh = self.map.below_on_stack(address).is_some_and(|below| {
            let mut bytes = vec![0; below.len()];
            bus.peek(below.start, &mut bytes) && bytes.iter().all(|&byte| byte == 0)
        });
        let spoilt = [byte[0] ^ 1 << (bit & 7)];
        if self.machine.bus.write_image(address, &spoilt).is_err() {
            return false;
        }
        if !fresh {
            let (now, boot) = (self.now(), self.resets.len());
            let part: Part = self.map.part(address);
            self.hits.add(now, boot, part);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps for ever, interrupts off.
    const SLEEPER: [u32; 3] = [0xa780_0000, 0x10bf_ffff, 0x0100_0000];

    fn unit(words: &[u32]) -> Unit {
        let system = System::of_mission();
        let image = Image::of_words(0x4000_0000, words);
        Unit::new(&system, image, Model::Flat, 1).unwrap()
    }

    #[test]
    fn time_passes_as_asked_though_all_sleep_and_the_watchdog_bites_at_last() {
        let mut unit = unit(&SLEEPER);
        for step in 1..20 {
            unit.advance(step * 1_000_000);
            let late = unit.now() - step * 1_000_000;
            assert!(late < 1000, "{late} cycles late");
        }
        assert_eq!(unit.resets, []);
        // A boot loader leaves ticks of a microsecond: thirty seconds.
        unit.advance(3_100_000_000);
        assert_eq!(unit.resets.len(), 1);
        assert_eq!(unit.resets[0].why, "watchdog");
        assert!(unit.resets[0].at >= 3_000_000_000);
        assert_eq!(unit.offset(), unit.resets[0].at);
    }

    #[test]
    fn error_mode_lasts_until_the_watchdog() {
        // unimp, traps off.
        let mut unit = unit(&[0]);
        unit.advance(1_000_000_000);
        let ats: Vec<u64> = unit.resets.iter().map(|reset| reset.at).collect();
        assert_eq!(ats, [310_000_000, 620_000_000, 930_000_000, 1_240_000_000]);
        assert!(unit.resets[0].why.contains("error mode"));
    }
}
