//! The arguments of `metes device`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::positive_size;

/// Find out what a program needs of a device's memory
#[derive(Args)]
#[command(after_help = "Example: metes device fit --memory 24GiB -- train.py")]
pub(crate) struct Device {
    #[command(subcommand)]
    pub(crate) action: DeviceAction,
}

#[derive(Subcommand)]
pub(crate) enum DeviceAction {
    Fit(Fit),
}

/// Run a training or serving script on a device that is not there, and say whether it fits
///
/// The script runs with the unmodified framework of a Python, on a library that takes the place of
/// CUDA: kernels do nothing, memory is counted. What such a run cannot know is said with its result.
/// With --json the script's output goes to stderr. Exit status 1 if it does not fit.
#[derive(Args)]
#[command(after_help = "Example: metes device fit --memory 24GiB -- train.py --steps 10")]
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
    /// Write every allocation as a trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the framework's own snapshot, for its viewer
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
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
