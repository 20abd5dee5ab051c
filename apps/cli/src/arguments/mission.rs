//! The arguments of `metes mission`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The DUSTER data processing unit: certified, and whether it fits
#[derive(Args)]
#[command(after_help = "Example: metes mission check missions/duster/system.toml")]
pub(crate) struct Mission {
    #[command(subcommand)]
    pub(crate) action: MissionAction,
}

#[derive(Subcommand)]
pub(crate) enum MissionAction {
    Check(MissionCheck),
    Fit(MissionFit),
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
