//! The command line of `metes compare`.

use std::path::PathBuf;

use clap::Args;
use metes_tune::regress::Setting;

/// Say what became worse between two traces, or two results
///
/// Compares live bytes, blocks and bytes that are never freed, sizes that grew over the boundary of a size class,
/// lifetimes, bursts, and footprint and cycles on a heap. Prints what differs, worse things first, and nothing where
/// nothing does. Exit status 0 if nothing is worse, 1 if something is beyond its threshold, 2 for bad input.
#[derive(Args)]
#[command(after_help = "Examples:
  metes compare before.trace.parquet after.trace.parquet
  metes compare before.trace.parquet after.trace.parquet --threshold leaks=0 --threshold peak-live=2
  metes compare main-out branch-out -o compare.html
  metes --json compare main.json branch.json")]
pub(crate) struct Compare {
    /// A trace, a directory that `tune` or `explore` wrote, or what they printed with --json
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// Another one
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
    /// Percent by which something must be more to be worse: of one thing or, without a name, of all.
    /// Named are peak-live (5), peak-blocks (10), allocations (10), leaks (1), sizes (1), lifetimes (50), bursts (25),
    /// footprint (5), cycles (10)
    #[arg(long = "threshold", value_name = "[WHAT=]PERCENT")]
    pub(crate) thresholds: Vec<Setting>,
    /// The heap that traces are replayed on [default: the one of BEFORE, where that is a result; else tlsf]
    #[arg(long, value_name = "H")]
    pub(crate) heap: Option<String>,
    /// Also write a page
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
}
