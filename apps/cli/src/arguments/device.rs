//! The arguments of `metes device`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::{positive_size, seconds};

/// Measure heaps for a device's memory, find out what a program needs of it, and watch it
#[derive(Args)]
#[command(after_help = "Examples:
  metes device bench --quick
  metes device fit --memory 24GiB -- train.py
  metes device watch")]
pub(crate) struct Device {
    #[command(subcommand)]
    pub(crate) action: DeviceAction,
}

#[derive(Subcommand)]
pub(crate) enum DeviceAction {
    Bench(DeviceBench),
    Fit(Fit),
    Watch(Watch),
}

/// Run a training or serving script on a device that is not there, and say whether it fits
///
/// The script runs with the unmodified framework of a Python, on a library that takes the place of
/// CUDA: kernels do nothing, memory is counted. What such a run cannot know is said with its result.
/// With --json the script's output goes to stderr. Exit status 1 if it does not fit, 3 if that is
/// undecided: the script went by values that nobody computed (see --reads).
#[derive(Args)]
#[command(after_help = "Examples:
  metes device fit --memory 24GiB -- train.py --steps 10
  metes device fit --memory 24GiB --report fit.html -- train.py --steps 10")]
pub(crate) struct Fit {
    /// Memory of the device
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) memory: u64,
    /// How much of it is for the driver and other programs
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) reserve: Option<u64>,
    /// Look for the smallest device up to --memory, to within a step
    #[arg(long, value_name = "STEP", value_parser = positive_size)]
    pub(crate) smallest: Option<u64>,
    /// What reads give that nobody computed: zero, one, 0*19,1, random:7; for one place behind
    /// FILE:LINE= or FILE:FUNCTION=; @FILE has one a line; may be repeated [default: zeros, and
    /// checks pass]
    #[arg(long, value_name = "[PLACE=]VALUES")]
    pub(crate) reads: Vec<String>,
    /// End the script when it went by such values so often at one place; 0: never [default: 1000]
    #[arg(long, value_name = "COUNT")]
    pub(crate) most_reads: Option<u32>,
    /// Write every allocation as a trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the framework's own snapshot, for its viewer
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Write a page that opens from disk: memory over time, what it was for, the lines of the peak
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Compute capability of the device [default: 9.0]
    #[arg(long, value_name = "X.Y")]
    pub(crate) capability: Option<String>,
    /// The Python that has the framework and the package `metes`
    #[arg(long, value_name = "FILE", default_value = "python3")]
    pub(crate) python: PathBuf,
    /// The script and its arguments, or -m and a module
    #[arg(last = true, required = true, value_name = "SCRIPT")]
    pub(crate) script: Vec<OsString>,
}

/// Measure device heaps: arenas, instructions, refusals, time, pages
///
/// Generated workloads (the benchmark of Segregated-fit and TLSF on a host for device memory,
/// sizes by doublings, a served language model) and recorded ones. Heaps: tlsf with probes
/// (0, 1, 2, 3, 4, 8) and store (handle, table, hash); segregated-fit, the paper's, with
/// store; hybrid with smallest and largest slot; sparse with page and addresses (times the
/// peak); best-fit, over trees, to compare with. No device is needed. Exit status 1 if a
/// heap's time is said to be constant and grows.
///
/// With --cuda it measures a device instead: heaps over its memory and the driver's own calls on
/// the same benchmark, what mapping and unmapping pages takes, and whether that stalls streams.
#[derive(Args)]
#[command(after_help = "Examples:
  metes device bench --quick
  metes device bench --heap tlsf --heap sparse:page=64KiB --trace llama.trace.parquet
  metes device bench -o device.html
  metes device bench --cuda")]
pub(crate) struct DeviceBench {
    /// A heap, with its parameters; times are compared with the first [default: tlsf by each
    /// store and without probes, segregated-fit, hybrid, sparse, best-fit]
    #[arg(long = "heap", value_name = "NAME")]
    pub(crate) heaps: Vec<String>,
    /// A trace file to measure on, too
    #[arg(long = "trace", value_name = "FILE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Measure this CUDA device, by its number [default: 0]
    #[arg(long, value_name = "ORDINAL", num_args = 0..=1, default_missing_value = "0",
        conflicts_with_all = ["heaps", "output"])]
    pub(crate) cuda: Option<u32>,
    /// Only so much as takes seconds: fewer seeds, requests and counted calls
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also write figures and pictures as a page that opens from disk
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
}

/// Watch a device heap while its program runs: figures, rates, a map of its addresses
///
/// Programs that run by `python -m metes.torch`, or after metes.torch.enable() and its like, can
/// be watched; programs that use the library from C if METES_DEVICE_WATCH=1 is in their
/// environment, or their options say so. The heap waits for nobody who watches. Ends with the
/// program, or by Ctrl-C or q.
#[derive(Args)]
#[command(after_help = "Examples:
  metes device watch
  metes device watch 4711 --page
  metes --json device watch --once")]
pub(crate) struct Watch {
    /// A process, as 4711, or of several heaps in it one, as 4711.1; or a copy of a heap's board
    /// [default: the one heap that there is]
    #[arg(value_name = "PID|FILE")]
    pub(crate) target: Option<PathBuf>,
    /// One picture, and end; so it is too where stdout is no terminal. With --interval look
    /// twice, so far apart, for the rates
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds from one look to the next [default: 0.5]; with --json a stream of records, one a
    /// line
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Option<f64>,
    /// A live page on this machine; port 0: any
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:0",
        conflicts_with = "once"
    )]
    pub(crate) page: Option<SocketAddr>,
    /// Write this moment as a page that opens from disk, and end
    #[arg(short, long, value_name = "FILE.html", conflicts_with = "page")]
    pub(crate) output: Option<PathBuf>,
}
