//! `metes mission`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The DUSTER data processing unit: run from sensor to ground, certified, and whether it fits
///
/// The flight software runs on a simulated LEON3 of two cores with the mission's devices and instrument; a ground beside
/// it computes every sample again.
#[derive(Args)]
#[command(after_help = "Example: metes mission run --seconds 60")]
pub(crate) struct Mission {
    #[command(subcommand)]
    pub(crate) action: MissionAction,
}

#[derive(Subcommand)]
pub(crate) enum MissionAction {
    Run(MissionRun),
    Storm(MissionStorm),
    Check(MissionCheck),
    Fit(MissionFit),
    Heaps(MissionHeaps),
    Serve(MissionServe),
}

/// What of the unit can be chosen.
#[derive(Args)]
pub(crate) struct MissionUnit {
    /// What decides the instrument's measurements and all that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What time is counted by
    #[arg(long, value_name = "MODEL", default_value = "caches")]
    pub(crate) model: MissionModel,
    /// The flight software, an ELF file [default: built from missions/duster/flight]
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum MissionModel {
    /// LEON3's manual, private caches, shared bus
    Caches,
    /// LEON3's manual, every access a hit
    Flat,
}

/// Fly the mission in short: high voltage, sweeps of 600 and 1000 steps, an acquisition of all probes, a dump of what is
/// missing
///
/// Exit status 1 if anything is not as it should be: a sample lost or wrong, a grain not detected within 10 ms, a
/// response or a partition above its bound.
#[derive(Args)]
#[command(after_help = "Example: metes mission run --seconds 60 --seed 7 --json")]
pub(crate) struct MissionRun {
    #[command(flatten)]
    pub(crate) unit: MissionUnit,
    /// Seconds of acquisition at objective rates, 1 to 3600; sweeps come with 20 or more
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// Faults at random times while it flies
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) faults: u64,
    /// Write all telemetry to this file, as space packets
    #[arg(long, value_name = "FILE")]
    pub(crate) telemetry: Option<PathBuf>,
    /// Write what the flight software asked of its partitions to this file, for `metes mission heaps`
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<PathBuf>,
    /// Write its science as a page that opens from disk: sweeps, field, dust, samples, reports
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
}

/// Hours of random commands, modes and faults, and whether the unit comes through
///
/// Behind each acquisition the ground asks for what is missing, looks at it beside the truth and lets the unit forget it. A line
/// an hour goes to stderr. The same seed gives the same storm. Exit status 1 if a telecommand or stored science was lost, the unit
/// was stuck, or a response or a partition came above its bound.
#[derive(Args)]
#[command(after_help = "Example: metes mission storm --hours 24 --faults 10000 --seed 3")]
pub(crate) struct MissionStorm {
    #[command(flatten)]
    pub(crate) unit: MissionUnit,
    /// Hours of mission time
    #[arg(long, value_name = "H", default_value_t = 1.0, value_parser = hours)]
    pub(crate) hours: f64,
    /// Faults at random times
    #[arg(long, value_name = "COUNT", default_value_t = 400, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) faults: u64,
}

/// Let a ground connect to the unit, in real time
///
/// Telecommands and telemetry are raw space packets on a TCP socket of this host. Runs until Ctrl-C.
#[derive(Args)]
#[command(after_help = "Example: metes mission serve --tcp 10025 --http 8000")]
pub(crate) struct MissionServe {
    #[command(flatten)]
    pub(crate) unit: MissionUnit,
    /// Port on this host; 0 takes one that is free
    #[arg(long, value_name = "PORT", default_value_t = 10025)]
    pub(crate) tcp: u16,
    /// Also show the science as it comes, on a page at this port of this host; 0 takes one that is free
    #[arg(long, value_name = "PORT")]
    pub(crate) http: Option<u16>,
    /// How many times as fast as real time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,
}

/// Prove what a declaration promises, or say why it does not hold
///
/// Response times of all tasks, memory of all partitions, backlog and delay of all buffers, clocks and loads of buses
/// and lines, from system.toml alone; with an image the longest path and the stack of each task, too. Exit status 1
/// if something does not hold.
#[derive(Args)]
#[command(after_help = "Examples:
  metes mission check
  metes mission check missions/duster/system.toml --image duster-dpu --json")]
pub(crate) struct MissionCheck {
    /// The declaration; without it that of the mission
    pub(crate) system: Option<PathBuf>,
    /// The flight image, an ELF file for LEON3
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
}

/// Say on which devices the unit fits, by the DUSTER paper's tables
///
/// The paper's baseline and a real-time memory management unit for each core, on the devices of its tables 2 and 3: the share of
/// each resource, the verdict (TIGHT above 70 %), what limits, and what is an estimate; and the paper's arithmetic where
/// it does not hold.
#[derive(Args)]
#[command(after_help = "Example: metes mission fit --json")]
pub(crate) struct MissionFit {
    /// The paper's baseline alone
    #[arg(long)]
    pub(crate) baseline: bool,
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hours) if (0.01..=10_000.0).contains(&hours) => Ok(hours),
        _ => Err("it must be a number from 0.01 to 10000".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.01..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("it must be a number from 0.01 to 1000".to_owned()),
    }
}

/// Compare heaps with the pools of flight software on the mission's own requests
///
/// For each partition and allocator: the least memory in which nothing is refused, that beside what is live at most,
/// requests refused in the partition as declared, the largest free block among free bytes. Heaps are those of Metes, laid out as on
/// LEON3; pools are buckets in the manner of cFE, slots in that of satrs, bins in that of F´. Requests come from a file (a
/// line each: a,PARTITION,BLOCK,SIZE or f,PARTITION,BLOCK) or are drawn.
#[derive(Args)]
#[command(after_help = "Examples:
  metes mission heaps --hours 24 --seed 1
  metes mission heaps requests.txt --count 2000 --json")]
pub(crate) struct MissionHeaps {
    /// The requests; without it they are drawn in the shape of the mission
    pub(crate) trace: Option<PathBuf>,
    /// Hours of requests that are drawn
    #[arg(long, value_name = "H", default_value_t = 1, conflicts_with = "trace", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) hours: u64,
    /// What they are drawn from
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "trace")]
    pub(crate) seed: u64,
    /// Times that the requests of a file are made, one after the other
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) repeat: u64,
    /// Calls around the peak whose instructions are counted on this host, exactly
    #[arg(long, value_name = "CALLS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub(crate) count: u64,
    /// The declaration; without it that of the mission
    #[arg(long, value_name = "FILE")]
    pub(crate) system: Option<PathBuf>,
}
