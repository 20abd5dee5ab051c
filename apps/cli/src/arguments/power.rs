//! `metes power`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{PowerApply, PowerExplore, PowerFit, PowerMeasure, PowerPredict};

/// Frequencies of processor and memory under deadlines: exact analysis, and the plan of least energy
#[derive(Args)]
#[command(after_help = "Examples:
  metes power check system.toml
  metes power plan system.toml --gantt plan.svg
  metes power explore system.toml --trace run.trace.parquet --levels main=8MiB --nominal 100,100
  metes power fit measured.csv
  metes power measure -o measured.csv -- ./task")]
pub(crate) struct Power {
    #[command(subcommand)]
    pub(crate) action: PowerAction,
}

#[derive(Subcommand)]
pub(crate) enum PowerAction {
    Check(PowerCheck),
    Plan(PowerPlan),
    Explore(PowerExplore),
    Fit(PowerFit),
    Predict(PowerPredict),
    Measure(PowerMeasure),
    Apply(PowerApply),
}

/// Whether tasks and jobs meet their deadlines at a pair of frequencies, and the longest response of each
///
/// Exact, in rationals. Exit status 1 if a deadline is missed; then the first that is late is named, and by how much.
#[derive(Args)]
#[command(after_help = "Example: metes power check system.toml --cpu 700 --memory 400")]
pub(crate) struct PowerCheck {
    /// The system
    #[arg(value_name = "SYSTEM.toml")]
    pub(crate) system: PathBuf,
    /// Frequency of the processor, a number or 8/3; the highest unless given
    #[arg(long, value_name = "F")]
    pub(crate) cpu: Option<String>,
    /// Frequency of the memory; the highest unless given
    #[arg(long, value_name = "F")]
    pub(crate) memory: Option<String>,
}

/// The plan of least energy that meets all deadlines: a pair of frequencies, or a schedule of speeds
///
/// With frequencies and tasks, the pair of least energy over the hyperperiod; else the optimal schedule of speeds for the
/// jobs, by EDF or fixed priorities. Each plan is checked apart from what found it. Exit status 1 if there is none.
#[derive(Args)]
#[command(after_help = "Example: metes power plan system.toml --gantt plan.svg")]
pub(crate) struct PowerPlan {
    /// The system
    #[arg(value_name = "SYSTEM.toml")]
    pub(crate) system: PathBuf,
    /// Draw who runs when, and the power, as SVG
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) gantt: Option<PathBuf>,
    /// Choose a pair for each task instead of one for all
    #[arg(long)]
    pub(crate) per_task: bool,
}
