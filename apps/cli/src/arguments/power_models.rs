//! `metes power fit`, `predict`, `measure` and `apply`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Fit time and power to measured pairs of frequencies, and say what the fits are worth
///
/// Time = cpu / fp + memory / fm + constant, power = floor + k fp^3 + m fm (k V^2 fp where all voltages are given), by
/// least squares, with intervals, suspect points, and a warning beyond the data.
#[derive(Args)]
#[command(after_help = "Example: metes power fit measured.csv --at 900,450")]
pub(crate) struct PowerFit {
    /// Measurements: cpu_mhz, memory_mhz, and some of time_ms, power_w, energy_mj, voltage_v
    #[arg(value_name = "DATA.csv")]
    pub(crate) data: PathBuf,
    /// Terms of the time: cpu-cycles, memory-cycles, constant [default: all]
    #[arg(long, value_name = "TERM,...", value_delimiter = ',')]
    pub(crate) time_terms: Vec<String>,
    /// Terms of the power: floor, cpu-cubed, cpu, switching (V^2 fp), leakage (V), memory
    /// [default: floor, cpu-cubed, memory; with voltages floor, switching, memory]
    #[arg(long, value_name = "TERM,...", value_delimiter = ',')]
    pub(crate) power_terms: Vec<String>,
    /// Probability that an interval covers
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Foretell time, power and energy at this pair in MHz, and at this voltage; may be repeated
    #[arg(long, value_name = "CPU,MEMORY[,V]")]
    pub(crate) at: Vec<String>,
    /// Fit once more without the points that are suspect
    #[arg(long)]
    pub(crate) without_suspects: bool,
    /// Also write the models as a system file for `metes power plan`
    #[arg(short, long, value_name = "SYSTEM.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// Foretell a task's time and energy at pairs of frequencies from what replays counted, before there is hardware
///
/// Exit status 1 if no heap and pair meets the deadline.
#[derive(Args)]
#[command(
    after_help = "Example: metes replay run.trace.parquet --heap tlsf --levels near=64KiB,main=8MiB --json > replay.json
         metes power predict replay.json --nominal 200,100 --cpu 50,100,200 --memory 50,100"
)]
pub(crate) struct PowerPredict {
    /// Answers of `metes replay TRACE --heap H --levels L --json`; of several heaps, the Pareto set of energy and memory
    #[arg(value_name = "REPLAY.json", required = true)]
    pub(crate) replays: Vec<PathBuf>,
    /// Leave out pairs at which the task takes longer, ms
    #[arg(long, value_name = "MS")]
    pub(crate) deadline: Option<f64>,
    /// The pair in MHz at which the levels' latencies hold
    #[arg(long, value_name = "CPU,MEMORY")]
    pub(crate) nominal: String,
    /// Frequencies of the processor, MHz
    #[arg(long, value_name = "MHZ,...", value_delimiter = ',', required = true)]
    pub(crate) cpu: Vec<f64>,
    /// Frequencies of the memory, MHz
    #[arg(long, value_name = "MHZ,...", value_delimiter = ',', required = true)]
    pub(crate) memory: Vec<f64>,
    /// Levels that the memory's clock drives [default: the last]
    #[arg(long, value_name = "LEVEL,...", value_delimiter = ',')]
    pub(crate) memory_levels: Vec<String>,
    /// Cycles of an instruction
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) cycles: f64,
    /// What the core draws: floor in W, W a GHz^3, W a GHz of the memory
    #[arg(long, value_name = "FLOOR,CUBED,MEMORY", default_value = "0,0,0")]
    pub(crate) power: String,
    /// Measurements of the same task: the error of what is foretold of the first replay
    #[arg(long, value_name = "DATA.csv")]
    pub(crate) against: Option<PathBuf>,
    /// Also write the models of the first replay as a system file for `metes power plan`
    #[arg(short, long, value_name = "SYSTEM.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// Run a program at every pair of frequencies that this machine offers, and measure time and energy
///
/// The program tells the task's time itself, by lines `begin SECONDS` and `end SECONDS` of the monotonic clock in the file
/// that METES_MARKERS names; without them the time is the whole process's, start-up included. What was set before is
/// restored however this ends.
#[derive(Args)]
#[command(after_help = "Examples:
  metes power measure --list
  metes power measure --repeats 20 -o measured.csv -- ./task
  metes power measure --runs measured.csv --meter-csv otii.csv --markers uart.log -o energies.csv")]
pub(crate) struct PowerMeasure {
    /// Where the machine's controls are: a recorded tree in place of the running kernel's
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub(crate) sysfs: PathBuf,
    /// Only list what there is, and change nothing
    #[arg(long, conflicts_with_all = ["command", "runs", "output"])]
    pub(crate) list: bool,
    /// Frequencies of the processor, MHz [default: all that are offered]
    #[arg(long, value_name = "MHZ,...", value_delimiter = ',')]
    pub(crate) cpu: Vec<f64>,
    /// Frequencies of the memory, MHz [default: all that are offered]
    #[arg(long, value_name = "MHZ,...", value_delimiter = ',')]
    pub(crate) memory: Vec<f64>,
    /// The memory's device in devfreq [default: the one whose name says so]
    #[arg(long, value_name = "NAME")]
    pub(crate) memory_device: Option<String>,
    /// The meter [default: whole packages of powercap, else the first of hwmon]
    #[arg(long, value_name = "NAME")]
    pub(crate) meter: Option<String>,
    /// Runs that count, at each pair
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeats: u32,
    /// Runs before them that do not
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) warm_up: u32,
    /// Where settings stand until they are restored: `metes power apply --restore FILE` restores after a SIGKILL
    #[arg(long, value_name = "FILE", default_value = "metes-power.saved")]
    pub(crate) saved: PathBuf,
    /// The table of all runs
    #[arg(short, long, value_name = "FILE.csv")]
    pub(crate) output: Option<PathBuf>,
    /// Runs measured before, whose energy an external meter has
    #[arg(long, value_name = "FILE.csv", requires_all = ["meter_csv", "markers", "output"], conflicts_with = "command")]
    pub(crate) runs: Option<PathBuf>,
    /// Samples of the external meter: time_s and power_w, or time_s, current_a and voltage_v
    #[arg(long, value_name = "FILE.csv", requires = "runs")]
    pub(crate) meter_csv: Option<PathBuf>,
    /// Markers on the meter's clock, a `begin SECONDS` and an `end SECONDS` for each run
    #[arg(long, value_name = "FILE", requires = "runs")]
    pub(crate) markers: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["list", "runs"])]
    pub(crate) command: Vec<OsString>,
}

/// Set a pair of frequencies: while a program runs, or until it is restored
#[derive(Args)]
#[command(after_help = "Examples:
  metes power apply --cpu 1200 --memory 500 -- ./task
  metes power apply --cpu 1200 --saved before.toml
  metes power apply --restore before.toml")]
pub(crate) struct PowerApply {
    /// Where the machine's controls are
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub(crate) sysfs: PathBuf,
    /// Frequency of the processor, MHz
    #[arg(long, value_name = "MHZ", required_unless_present = "restore")]
    pub(crate) cpu: Option<f64>,
    /// Frequency of the memory, MHz
    #[arg(long, value_name = "MHZ", requires = "cpu")]
    pub(crate) memory: Option<f64>,
    /// The memory's device in devfreq [default: the one whose name says so]
    #[arg(long, value_name = "NAME")]
    pub(crate) memory_device: Option<String>,
    /// Where what was set before stands until it is restored
    #[arg(long, value_name = "FILE", default_value = "metes-power.saved")]
    pub(crate) saved: PathBuf,
    /// Restore what this file says was set
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cpu", "memory", "saved", "command", "memory_device", "sysfs"])]
    pub(crate) restore: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
