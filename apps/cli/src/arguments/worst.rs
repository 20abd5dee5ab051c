//! The arguments of `metes worst`.
//!
//! Invariant: what is left out is decided by the library, which knows the target.

use std::path::PathBuf;

use clap::Args;

use crate::quantity::positive_size;

/// Attack a heap: the most memory and the most instructions that adversaries bring about
///
/// What is found is a maximum, measured; it is printed beside the bound, proven. The
/// requests behind it are saved as traces that `metes replay` replays. Ticks depend on the
/// machine and its load: of them only the ratio is printed. On a board only instructions
/// are looked for. Exit status 1 if a bound is exceeded.
#[derive(Args)]
#[command(after_help = "Examples:
  metes worst --heap tlsf -o worst
  metes worst --heap first-fit --live 1MiB --max-block 4096 --min-block 64
  metes worst --heap half-fit --operations 100000000 --json
  metes worst --heap tlsf --target leon3")]
pub(crate) struct Worst {
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
    /// Most requested bytes live at once (M) [default: 1MiB; 24KiB on a board]
    #[arg(long, value_name = "M", value_parser = positive_size)]
    pub(crate) live: Option<u64>,
    /// Largest request (n) [default: 4096; 1536 on a board]
    #[arg(long, value_name = "n", value_parser = positive_size)]
    pub(crate) max_block: Option<u64>,
    /// Smallest request (l) [default: 64; 24 on a board]
    #[arg(long, value_name = "l", value_parser = positive_size)]
    pub(crate) min_block: Option<u64>,
    /// Requests of the search for space
    #[arg(long, value_name = "N", default_value = "20000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) operations: u64,
    /// Instructions that the search for time may count, some ten microseconds each; 0
    /// leaves time out
    #[arg(long, value_name = "N", default_value = "500000")]
    pub(crate) counted: u64,
    /// Time the slowest calls with hot and with cold caches
    #[arg(long)]
    pub(crate) ticks: bool,
    /// What chance decides
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Directory for the traces
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Where instructions are counted: here, or on an emulated board
    #[arg(long, value_name = "WHERE", default_value = "host")]
    pub(crate) target: Target,
    /// The directory boards of the source [default: looked for upwards]
    #[arg(long, alias = "bare-metal", value_name = "DIR")]
    pub(crate) boards: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
    /// This machine
    Host,
    /// LEON3, SPARC V8
    Leon3,
    /// ARM Cortex-M3
    CortexM3,
    /// RV32IMAC
    Riscv,
}
