//! A storm: hours of random commands, modes and faults, and after each of them a unit that can be brought back.
//!
//! What is done is drawn by the seed: single telecommands of any kind in any mode, bytes that are none, acquisitions, sweeps,
//! dumps, silence. Behind a time in which something was acquired the ground does as grounds do: it asks for what is
//! missing, looks at it, and lets the unit forget it.
//!
//! A unit on which nothing acts any more is left the time in which its own check of code and constants must have it reset. If it
//! was not, it is reset from outside, as a spacecraft switches its power; where no bit of its data had flipped since it began,
//! that is told as stuck.
//!
//! *Invariant:* a storm is a function of its seed; what is wrong behind it is told in words.

use metes_duster_protocol::Mode;
use metes_duster_protocol::definitions::{
    Command, Event, Parameter, Probe, ProbeMode, Rates, Structure,
};
use metes_duster_protocol::time::Time;
use metes_random::{Random, mix};

use crate::bench::{Bench, Outcome};
use crate::ground::Verification;
use crate::hits::Part;

/// Milliseconds that a telecommand may take.
const SOON: u64 = 20_000;
/// Milliseconds behind its time within which the unit gives an acquisition up that does not end.
const GIVEN_UP: u64 = 12_000;
/// Why the unit was reset from outside.
const POWER: &str = "power";
/// Modes that can be asked for.
const MODES: [Mode; 8] = [
    Mode::Safe,
    Mode::Standby,
    Mode::Config,
    Mode::AcqEnv,
    Mode::Sweep,
    Mode::AcqDust,
    Mode::AcqFull,
    Mode::Dump,
];

/// What came of a storm, beside the report.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Storm {
    /// Acquisitions and sweeps that began.
    pub acquisitions: u64,
    /// Dumps that were complete.
    pub dumps: u64,
    /// Times that nothing acted on the unit any more until it had reset itself, as bits had flipped in its memory.
    pub silences: u64,
    /// Times that the unit had to be reset from outside, as bits had flipped in its data.
    pub power_cycles: u64,
    /// Times that it had to be although none had.
    pub stuck: u64,
    /// Acquisitions that were not over when their time was, or soon after they were stopped.
    pub late_ends: u64,
    /// Samples that the store had lost behind their acquisition, and no flipped bit explains it.
    pub lost_stored: u64,
    /// Resets that nobody asked for, and no flipped bit explains.
    pub unexplained_resets: u64,
    /// Bits that flipped in code or constants; those behind which the unit was reset within the time that its check takes;
    /// the longest time until it was, in seconds.
    pub image_flips: u64,
    /// See [`image_flips`](Self::image_flips).
    pub image_resets: u64,
    /// See [`image_flips`](Self::image_flips).
    pub image_seconds: f64,
}

/// A storm under way.
pub struct Weather<'a> {
    bench: &'a mut Bench,
    random: Random,
    storm: Storm,
}

/// Lets `hours` of storm pass over `bench`, as `seed` draws it; `hour` is told of each that has passed.
pub fn storm(
    bench: &mut Bench,
    hours: f64,
    seed: u64,
    mut hour: impl FnMut(u64, &Bench, &Storm),
) -> Storm {
    let end = (hours * 3_600_000.0) as u64;
    let mut weather = Weather {
        random: Random::new(mix(seed ^ 0x5708)),
        storm: Storm::default(),
        bench,
    };
    let mut told = 0;
    while weather.bench.milliseconds() < end {
        weather.act();
        let passed = weather.bench.milliseconds() / 3_600_000;
        if passed > told {
            told = passed;
            hour(passed, weather.bench, &weather.storm);
        }
    }
    weather.recover();
    weather.collect();
    weather.look_back();
    weather.storm
}

impl Weather<'_> {
    fn act(&mut self) {
        match self.random.below(100) {
            0..15 => {
                let milliseconds = self.random.between(100, 30_000);
                self.bench.pass(milliseconds);
            }
            15..55 => self.command(),
            55..65 => self.noise(),
            65..75 => {
                let mode = MODES[self.random.below(8) as usize];
                self.bench.execute(&Command::SetMode { mode }, SOON);
            }
            75..90 => self.acquire(),
            90..95 => self.sweep(),
            _ => {
                self.recover();
                self.collect();
            }
        }
        if self.random.below(20) == 0 {
            self.recover();
        }
    }

    /// One telecommand, any of them in any mode, with arguments that are drawn.
    fn command(&mut self) {
        let probe = [Probe::Langmuir, Probe::Efield, Probe::Dust][self.random.below(3) as usize];
        let structure = [
            Structure::System,
            Structure::Supplies,
            Structure::Memory,
            Structure::Acquisition,
        ][self.random.below(4) as usize];
        let word = self.random.next();
        let address = 0x4000_0000 + (word >> 40) as u32 % 0x40_0000;
        let command = match self.random.below(24) {
            0 => Command::Ping {},
            1 => Command::TestConnection {
                apid: 0x2a + (word & 1) as u16,
            },
            2 => Command::ReportHousekeeping { structure },
            3 => Command::SetHousekeepingPeriod {
                structure,
                interval: 1 + (word % 100) as u16,
            },
            4 => Command::EnableHousekeeping { structure },
            5 => Command::ReportMode {},
            6 => Command::ReportSchedule {},
            7 => Command::EnableSchedule {},
            8 => Command::DumpMemory {
                address,
                length: 1 + (word % 4096) as u32,
            },
            9 => Command::CheckMemory {
                address,
                length: 1 + (word % 65_536) as u32,
            },
            10 => Command::SetBias {
                probe,
                code: word as i16,
            },
            11 => {
                let mode = if word & 1 == 0 {
                    ProbeMode::Nominal
                } else {
                    ProbeMode::Monitor
                };
                Command::SetProbeMode { probe, mode }
            }
            12 => Command::ArmHighVoltage {},
            13 => Command::SetHighVoltage {
                voltage: (word % 6500) as u16,
            },
            14 => Command::SafeHighVoltage {},
            15 => Command::ClearTrip {},
            16 => Command::SetLowVoltage {
                channel: (word % 5) as u8,
                voltage: (word >> 8 & 0xfff) as u16,
            },
            17 => Command::LowVoltageOn {},
            18 => Command::LowVoltageOff {},
            19 => Command::ReportParameter {
                parameter: Parameter::DustThreshold,
            },
            20 => Command::SetParameter {
                parameter: Parameter::ArmTimeout,
                value: 1 + (word % 700) as i32,
            },
            21 => Command::SetTime {
                time: Time::from_units(word >> 16),
            },
            22 => Command::StopAcquisition {},
            _ => Command::StopDump {},
        };
        let outcome = self.bench.execute(&command, SOON);
        if outcome == Outcome::Silent {
            self.explain();
        }
    }

    /// Bytes that are no telecommand, or one that was cut, spoilt or repeated.
    fn noise(&mut self) {
        let count = self.random.between(1, 300) as usize;
        let mut bytes: Vec<u8> = (0..count).map(|_| self.random.next() as u8).collect();
        if self.random.below(2) == 0 {
            // Begins as one does.
            bytes.splice(..0, [0x18, 0x2a, 0xc0, 0x00, 0x00, 0x20, 0x2f]);
        }
        self.bench.send_bytes(&bytes);
        self.bench.pass(200);
    }

    /// A telecommand of which nothing came: the unit resets itself in time, or is switched off and on.
    fn explain(&mut self) {
        let boot = self.bench.unit.resets.len();
        let recovery = self.bench.unit.map.recovery * 1000 / self.bench.unit.frequency();
        let end = self.bench.milliseconds() + recovery;
        while self.bench.unit.resets.len() == boot && self.bench.milliseconds() < end {
            self.bench.pass(100);
        }
        let hits = &self.bench.unit.hits;
        let reset = self.bench.unit.resets.len() > boot;
        if reset && hits.any(boot) || hits.lasting(boot) {
            self.storm.silences += u64::from(reset);
            self.storm.power_cycles += u64::from(!reset);
            self.bench.commands.lost -= 1;
            self.bench.commands.cut += 1;
        } else {
            self.storm.stuck += 1;
        }
        if !reset {
            self.bench.unit.reset(POWER);
        }
        self.bench.pass(5_000);
    }

    /// Which resets nobody asked for and nothing explains, and what became of flips in code and constants.
    fn look_back(&mut self) {
        let unit = &self.bench.unit;
        let (hits, resets) = (&unit.hits, &unit.resets);
        let own = |why: &str| why != POWER && why != "forced";
        self.storm.unexplained_resets = resets
            .iter()
            .enumerate()
            .filter(|(boot, reset)| own(&reset.why) && !hits.any(*boot))
            .count() as u64;
        let seconds = |cycles: u64| cycles as f64 / unit.frequency() as f64;
        let image = hits.all().iter().filter(|hit| hit.part == Part::Image);
        for hit in image {
            let until = resets.get(hit.boot).map_or(unit.now(), |reset| reset.at);
            let took = until - hit.at;
            self.storm.image_flips += 1;
            self.storm.image_resets += u64::from(took <= unit.map.recovery);
            self.storm.image_seconds = self.storm.image_seconds.max(seconds(took));
        }
    }

    /// Brings the unit to standby, from wherever it is.
    fn recover(&mut self) -> bool {
        for _ in 0..6 {
            match self
                .bench
                .execute(&Command::SetMode { mode: Mode::Safe }, SOON)
            {
                Outcome::Silent => {
                    self.explain();
                    continue;
                }
                _ => self.bench.execute(&Command::ClearTrip {}, SOON),
            };
            if self.bench.execute(
                &Command::SetMode {
                    mode: Mode::Standby,
                },
                SOON,
            ) == Outcome::Completed
            {
                return true;
            }
            self.bench.pass(1_000);
        }
        self.bench.commands.lost += 1;
        self.explain();
        false
    }

    fn acquire(&mut self) {
        if !self.recover() {
            return;
        }
        let mode = [Mode::AcqEnv, Mode::AcqDust, Mode::AcqFull][self.random.below(3) as usize];
        let probes = match mode {
            Mode::AcqEnv => 3,
            Mode::AcqDust => 4,
            _ => 7,
        };
        if mode != Mode::AcqEnv {
            self.bench.execute(&Command::ArmHighVoltage {}, SOON);
            let voltage = self.random.between(1500, 5500) as u16;
            self.bench
                .execute(&Command::SetHighVoltage { voltage }, SOON);
        }
        if self.bench.execute(&Command::SetMode { mode }, SOON) != Outcome::Completed {
            return;
        }
        let rates = if self.random.below(2) == 0 {
            Rates::Objective
        } else {
            Rates::Minimum
        };
        let duration = self.random.between(60, 120) as u16;
        let command = Command::StartAcquisition {
            probes,
            rates,
            duration,
        };
        self.bench.forget_events();
        let boot = self.bench.unit.resets.len();
        let sequence = match self.bench.begin(&command) {
            Ok(sequence) => sequence,
            Err(outcome) => {
                if outcome == Outcome::Silent {
                    self.explain();
                }
                return;
            }
        };
        let begun = self.bench.milliseconds();
        let began = |event: &Event| matches!(event, Event::AcquisitionStarted { .. }).then_some(());
        let began = self.bench.wait(5_000, began).is_some();
        self.storm.acquisitions += u64::from(began);
        let left = if self.random.below(3) == 0 {
            let early = self.random.between(1, 59) * 1000;
            self.bench.pass(early);
            self.bench.execute(&Command::StopAcquisition {}, SOON);
            5_000
        } else {
            u64::from(duration) * 1000 + 5_000
        };
        let ended =
            |event: &Event| matches!(event, Event::AcquisitionFinished { .. }).then_some(());
        if began {
            self.bench.wait(left, ended);
        }
        self.end(
            sequence,
            boot,
            begun + u64::from(duration) * 1000 + GIVEN_UP,
        );
        if self.recover() {
            self.collect();
        }
    }

    /// Waits for the end of a telecommand that was accepted, until millisecond `last` at most; what is still open then is lost,
    /// unless the unit was reset or a bit of its memory had flipped since reset number `boot`.
    fn end(&mut self, sequence: u16, boot: usize, last: u64) {
        let resets = |bench: &Bench| bench.unit.resets.len();
        let over = |bench: &Bench| {
            let known = bench.ground.verifications.get(&sequence);
            known.is_some_and(Verification::over)
        };
        // Its completion follows the event, if that has come.
        let soon = self.bench.milliseconds() + 100;
        while !over(self.bench) && resets(self.bench) == boot {
            if self.bench.milliseconds() >= last {
                break;
            }
            self.bench.pass(10);
            self.storm.late_ends += u64::from(self.bench.milliseconds() == soon);
        }
        let outcome = self.bench.end(sequence);
        let excused = resets(self.bench) > boot || self.bench.unit.hits.any(boot);
        if outcome == Outcome::Open && !excused {
            self.bench.commands.cut -= 1;
            self.bench.commands.lost += 1;
        }
    }

    fn sweep(&mut self) {
        if !self.recover() {
            return;
        }
        let mode = Mode::Sweep;
        if self.bench.execute(&Command::SetMode { mode }, SOON) != Outcome::Completed {
            return;
        }
        let steps = self.random.between(600, 1000) as u16;
        let (from, to) = (self.random.next() as i16, self.random.next() as i16);
        let command = Command::StartSweep {
            steps,
            from,
            to,
            dwell: 10,
        };
        if self.bench.execute(&command, 30_000) == Outcome::Completed {
            self.storm.acquisitions += 1;
        }
    }

    /// Asks for what is stored, if anything is missing, and lets it be forgotten.
    fn collect(&mut self) {
        if self.bench.ground.science.missing() > 0 {
            let mode = Mode::Dump;
            if self.bench.execute(&Command::SetMode { mode }, SOON) != Outcome::Completed {
                return;
            }
            self.bench.forget_events();
            let command = Command::DumpScience {
                acquisition: 0,
                first: 0,
                count: u32::MAX,
            };
            self.bench.commands.commands += 1;
            self.bench.send(&command);
            let over = |event: &Event| matches!(event, Event::DumpFinished { .. }).then_some(());
            let complete = self.bench.wait(1_200_000, over).is_some();
            self.bench.commands.completed += u64::from(complete);
            self.bench.commands.cut += u64::from(!complete);
            self.storm.dumps += u64::from(complete);
            self.bench.execute(
                &Command::SetMode {
                    mode: Mode::Standby,
                },
                SOON,
            );
            if !complete {
                return;
            }
        }
        let before = self.bench.commands.completed;
        self.bench.execute(
            &Command::DeleteScience {
                acquisition: u16::MAX,
            },
            60_000,
        );
        if self.bench.commands.completed > before {
            self.storm.lost_stored += self.bench.unexplained();
        }
    }
}
