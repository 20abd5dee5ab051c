//! The declaration of the DUSTER data processing unit: `system.toml`, read and checked.
//!
//! One file says what the unit is made of. The flight software is built from it (task table, partitions, clocks), the
//! bench simulates it, the certificate is about it: so none of them can be of another unit.
//!
//! ```
//! let system = metes_duster_system::System::of_mission();
//! assert_eq!(system.platform.cores, 2);
//! assert_eq!(system.task("acquire").unwrap().core, 1);
//! ```
//!
//! *Invariant:* a [`System`] that was read is consistent: names are unique within their kind, cores exist, every task
//! has a budget within its period, every reference names something. Whether it *holds* is for the certificate to say.

mod check;

use serde::{Deserialize, Serialize};

/// The declaration of the mission as this repository has it.
pub const MISSION: &str = include_str!("../../system.toml");

/// Everything declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The machine.
    pub platform: Platform,
    /// What interrupts cost.
    #[serde(default, rename = "interrupt")]
    pub interrupts: Vec<Interrupt>,
    /// The tasks, of each core the most urgent first.
    #[serde(rename = "task")]
    pub tasks: Vec<Task>,
    /// The memories of tasks.
    #[serde(rename = "partition")]
    pub partitions: Vec<Partition>,
    /// SPI, one a probe.
    #[serde(rename = "bus")]
    pub buses: Vec<Bus>,
    /// Serial lines.
    #[serde(rename = "line")]
    pub lines: Vec<Line>,
    /// Buffers between tasks.
    #[serde(default, rename = "buffer")]
    pub buffers: Vec<Buffer>,
    /// What science takes.
    pub science: Science,
    /// Bounds of loops that code alone does not tell.
    #[serde(default, rename = "loop")]
    pub loops: Vec<Loop>,
}

/// How often the loops of a function are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// The last names of its path, joined by two colons.
    pub function: String,
    /// The task alone for which this is said; unless it is said, all of them.
    #[serde(default)]
    pub task: Option<String>,
    /// How often the head of a loop in it is reached, each time the loop is entered.
    pub times: u64,
    /// Why.
    pub why: String,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// Where it is from.
    #[serde(default)]
    pub source: String,
    /// Cores, 1 or 2.
    pub cores: usize,
    /// Hertz of cores, buses and timers.
    pub frequency: u32,
    /// Bytes of RAM.
    pub memory: usize,
    /// Bytes of a core's instruction cache.
    pub instruction_cache: u32,
    /// Bytes of a core's data cache.
    pub data_cache: u32,
    /// Bytes of flash.
    pub flash: usize,
    /// Microseconds until a unit that is not kicked is reset.
    pub watchdog: u64,
    /// Microseconds of a tick.
    pub tick: u64,
    /// Bytes of a core's stack.
    pub stack: usize,
    /// Microseconds that the executive takes around a task at most, from the end of one to the begin of the next.
    #[serde(default)]
    pub dispatch: u64,
    /// Bytes of code and constants that the task `fdir` looks at in an activation.
    #[serde(default)]
    pub image_check: usize,
}

/// What an interrupt costs a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// Its name.
    pub name: String,
    /// The core it interrupts.
    pub core: usize,
    /// Microseconds between two of it, at least.
    pub period: u64,
    /// Microseconds that one takes, at most.
    pub budget: u64,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// Microseconds between releases.
    pub period: u64,
    /// Microseconds to its first release.
    #[serde(default)]
    pub offset: u64,
    /// Microseconds from a release until it must be done.
    pub deadline: u64,
    /// Microseconds that it takes, at most.
    pub budget: u64,
}

/// The memory of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// The core that allocates and frees in it.
    pub core: usize,
    /// The task that it is of.
    pub owner: String,
    /// Its bytes.
    pub size: usize,
    /// Its heap, as `metes` names heaps.
    pub heap: String,
    /// What is asked of it, at most.
    #[serde(default, rename = "demand")]
    pub demands: Vec<Demand>,
}

/// What is asked of a partition at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// For what.
    pub what: String,
    /// Bytes of a block, at most.
    pub size: usize,
    /// Blocks at a time, at most.
    pub live: usize,
    /// Blocks at once, and a second beside that; with `lifetime` they bound what is live, too.
    #[serde(default)]
    pub burst: Option<u64>,
    /// Blocks a second, at most.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Microseconds from an allocation to its free, at most.
    #[serde(default)]
    pub lifetime: Option<u64>,
}

/// An SPI bus and the probe on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// The probe's name.
    pub name: String,
    /// Hertz of SCK.
    pub clock: u32,
    /// The least that the probe takes.
    pub clock_min: u32,
    /// The most.
    pub clock_max: u32,
    /// Frames of 24 bits in a set.
    pub frames: usize,
    /// Samples a second, objective.
    pub rate: u32,
    /// Samples a second, minimum.
    pub rate_min: u32,
    /// Samples that the front end holds.
    pub fifo: usize,
}

/// A serial line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uart: usize,
    /// Bits a second, start and stop bits included.
    pub baud: u32,
    /// What must get through.
    pub load: Load,
}

/// What a line must carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Load {
    /// Bytes a second.
    Bytes(u64),
    /// `"science"`: all probes at their objective rates, and housekeeping.
    Of(String),
}

/// A buffer between two tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// What it holds, in its own unit (blocks, orders, bytes).
    pub capacity: usize,
    /// Who fills it: a task.
    pub from: String,
    /// Who empties it: a task or a line.
    pub to: String,
    /// Of a task that empties it: what one activation takes, if so much is there.
    #[serde(default)]
    pub served: Option<u64>,
    /// What comes.
    #[serde(default, rename = "flow")]
    pub flows: Vec<Flow>,
}

/// What comes to a buffer at most: in any time t at most `burst + rate t`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Of what.
    pub what: String,
    /// At once, in the buffer's unit.
    pub burst: u64,
    /// A second.
    pub rate: u64,
    /// Bytes of one in the flash store, its header included, if it goes there.
    #[serde(default)]
    pub stored: u64,
}

/// What science takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Science {
    /// Samples in a packet.
    pub samples_a_packet: usize,
    /// Bytes of a packet beside its samples.
    pub packet_overhead: usize,
    /// Bytes a second of housekeeping.
    pub housekeeping: u64,
}

/// Why a declaration is none.
#[derive(Debug, thiserror::Error)]
pub enum NoSystem {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is no TOML, or has other keys.
    #[error("{0}")]
    Text(String),
    /// It contradicts itself.
    #[error("{0}")]
    Contradiction(String),
}

impl System {
    /// The declaration of this repository's mission.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[must_use]
    pub fn of_mission() -> System {
        System::read(MISSION).expect("the mission's declaration is consistent")
    }

    /// Reads a declaration.
    ///
    /// # Errors
    /// [`NoSystem`], with the line where it is one of text.
    pub fn read(text: &str) -> Result<System, NoSystem> {
        let system: System = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            NoSystem::Text(format!(
                "line {line}: {}",
                error.message().replace('\n', " ")
            ))
        })?;
        system.check()?;
        Ok(system)
    }

    /// Reads the declaration in a file.
    ///
    /// # Errors
    /// [`NoSystem`]
    pub fn read_file(path: &std::path::Path) -> Result<System, NoSystem> {
        let text = std::fs::read_to_string(path).map_err(|error| NoSystem::Unreadable {
            path: path.display().to_string(),
            error,
        })?;
        System::read(&text)
    }

    /// The task of this name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// The partition of this name.
    #[must_use]
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|it| it.name == name)
    }

    /// The bus of this name.
    #[must_use]
    pub fn bus(&self, name: &str) -> Option<&Bus> {
        self.buses.iter().find(|it| it.name == name)
    }

    /// The line of this name.
    #[must_use]
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|it| it.name == name)
    }

    /// Bytes a second of science packets at the objective rates, rounded up.
    #[must_use]
    pub fn science_load(&self) -> u64 {
        let of = |bus: &Bus| {
            let samples = self.science.samples_a_packet as u64;
            let packet = (samples * 20).div_ceil(8) + self.science.packet_overhead as u64;
            (u64::from(bus.rate) * packet).div_ceil(samples)
        };
        self.buses.iter().map(of).sum()
    }

    /// Bytes a second that `line` must carry.
    #[must_use]
    pub fn load(&self, line: &Line) -> u64 {
        match &line.load {
            Load::Bytes(bytes) => *bytes,
            Load::Of(_) => self.science_load() + self.science.housekeeping,
        }
    }
}

/// The divisor register of an APBUART that comes closest to `baud` at `frequency` hertz, and the rate it gives:
/// `frequency / (8 (n + 1))`.
#[must_use]
pub fn uart_scaler(frequency: u32, baud: u32) -> (u32, f64) {
    let exact = f64::from(frequency) / 8.0 / f64::from(baud.max(1));
    let scaler = (exact.round() as u32).clamp(1, 4096) - 1;
    (scaler, f64::from(frequency) / 8.0 / f64::from(scaler + 1))
}

/// The clock of an SPICTRL: its divider fields, and the rate they give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpiClock {
    /// PM, 0 to 15.
    pub modulus: u32,
    /// FACT: 2 cycles a period instead of 4.
    pub halved: bool,
    /// DIV16: 16 times as many.
    pub sixteenth: bool,
    /// Cycles of a period of SCK.
    pub cycles: u32,
}

/// The fastest clock of an SPICTRL at `frequency` that is no faster than `clock`; none if that is too slow for it.
#[must_use]
pub fn spi_clock(frequency: u32, clock: u32) -> Option<SpiClock> {
    let mut best: Option<SpiClock> = None;
    for sixteenth in [false, true] {
        for halved in [true, false] {
            for modulus in 0..16 {
                let cycles =
                    (if halved { 2 } else { 4 }) * (modulus + 1) * if sixteenth { 16 } else { 1 };
                let slow = u64::from(clock) * u64::from(cycles) >= u64::from(frequency);
                if slow && best.is_none_or(|best| cycles < best.cycles) {
                    best = Some(SpiClock {
                        modulus,
                        halved,
                        sixteenth,
                        cycles,
                    });
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mission_is_read() {
        let system = System::of_mission();
        assert_eq!(system.platform.frequency, 100_000_000);
        // The paper's objective rates, in packets of 384 samples.
        assert!((41_000..44_000).contains(&system.science_load()));
        let line = system.line("telemetry").unwrap();
        assert!(system.load(line) * 10 < u64::from(line.baud));
    }

    proptest! {
        /// Whatever is done to a declaration, it is read or refused in one line.
        #[test]
        fn any_text_is_read_or_refused(from in 0..MISSION.len(), length in 0usize..40, with in "[-a-z0-9_=\\[\\]\". \n]{0,12}") {
            let end = (from + length).min(MISSION.len());
            let (Some(before), Some(behind)) = (MISSION.get(..from), MISSION.get(end..)) else {
                return Ok(());
            };
            if let Err(error) = System::read(&format!("{before}{with}{behind}")) {
                prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
        }
    }

    #[test]
    fn divisors_are_those_of_the_silicon() {
        assert_eq!(uart_scaler(100_000_000, 781_250), (15, 781_250.0));
        assert_eq!(uart_scaler(100_000_000, 460_800).0, 26);
        // 10 Mb/s, 625 kb/s: exact; 750 kb/s falls to 714.
        assert_eq!(spi_clock(100_000_000, 10_000_000).unwrap().cycles, 10);
        assert_eq!(spi_clock(100_000_000, 625_000).unwrap().cycles, 160);
        assert!(spi_clock(100_000_000, 10_000).is_none());
    }

    #[test]
    fn contradictions_are_told() {
        let told = |from: &str, to: &str| {
            let text = MISSION.replacen(from, to, 1);
            assert!(text != MISSION, "{from}");
            System::read(&text).unwrap_err().to_string()
        };
        let cases = [
            ("name = \"detect\"", "name = \"acquire\"", "twice"),
            ("owner = \"ingest\"", "owner = \"nobody\"", "no task"),
            ("cores = 2", "cores = 1", "core 1"),
            ("cores = 2", "cores = 0", "1 or 2"),
            ("budget = 140\n", "budget = 0\n", "budget"),
            ("period = 20_000", "period = 20_500", "tick"),
            ("uart = 3", "uart = 9", "UART"),
            ("cores = 2", "kores = 2", "kores"),
            ("to = \"telemetry\"", "to = \"nowhere\"", "nowhere"),
            ("heap = \"tlsf:second_level=8\"", "heap = \"\"", "heap"),
        ];
        for (from, to, says) in cases {
            let said = told(from, to);
            assert!(said.contains(says), "{to}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
