//! `metes power explore`.

use std::path::PathBuf;

use clap::Args;

/// Heaps and pairs of frequencies in one: the Pareto set of energy and memory that misses no deadline
///
/// Each heap is replayed on the trace, which is one activation of the task; what it counts is added to what the system
/// declares for the task. At each pair of frequencies exact analysis decides whether the whole system meets its deadlines.
/// What is on the Pareto set is checked apart and run. Exit status 1 if there is none.
#[derive(Args)]
#[command(after_help = "Examples:
  metes power explore system.toml --trace run.trace.parquet --task store --levels near=64KiB,main=8MiB --nominal 100,100
  metes power explore system.toml --trace run.trace.parquet --space space.toml --levels main=8MiB --nominal 100,100 --csv all.csv")]
pub(crate) struct PowerExplore {
    /// The system, with `units`
    #[arg(value_name = "SYSTEM.toml")]
    pub(crate) system: PathBuf,
    /// What one activation of the task asks of its heap
    #[arg(long, value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// The task that allocates [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Tasks that the task that allocates may hold up: their blocking grows as it does
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) holds_up: Vec<String>,
    /// A heap: a name, a spec or a heap.toml; may be repeated [default: all named heaps]
    #[arg(long, value_name = "HEAP")]
    pub(crate) heap: Vec<String>,
    /// All heaps of a described space: paper, prototype or a space.toml
    #[arg(long, value_name = "S", conflicts_with = "heap")]
    pub(crate) space: Option<String>,
    /// Memory levels: NAME=SIZE, ... or a file
    #[arg(long, value_name = "LEVELS")]
    pub(crate) levels: String,
    /// The pair in MHz at which the levels' latencies hold
    #[arg(long, value_name = "CPU,MEMORY")]
    pub(crate) nominal: String,
    /// Levels that the memory's clock drives [default: the last]
    #[arg(long, value_name = "LEVEL,...", value_delimiter = ',')]
    pub(crate) memory_levels: Vec<String>,
    /// Cycles of an instruction
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) cycles: f64,
    /// Only what the heap itself takes: the system declares the program's own instructions and accesses
    #[arg(long)]
    pub(crate) records_only: bool,
    /// The task's longest response, which is the deadline that can be guaranteed, as a third objective
    #[arg(long)]
    pub(crate) responses: bool,
    /// Also write all combinations that were looked at
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) csv: Option<PathBuf>,
}
