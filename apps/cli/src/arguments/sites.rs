//! The command line of `metes sites`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Show who allocates: call stacks, live bytes at the peak, leaks, flame graph
///
/// The trace is one that `metes record --sites` wrote. A block counts for the stack that gave it its present size.
#[derive(Args)]
#[command(after_help = "Examples:
  metes record --sites -o ls.trace.parquet -- ls -l
  metes sites ls.trace.parquet
  metes sites ls.trace.parquet --by leaked --top 5 -o ls.html
  metes sites ls.trace.parquet --by bytes --folded ls.folded --pprof ls.pb.gz")]
pub(crate) struct Sites {
    /// A trace file
    pub(crate) trace: PathBuf,
    /// What sites are ordered by, and what folded stacks count
    #[arg(long, value_name = "WHAT", default_value = "peak")]
    pub(crate) by: SitesBy,
    /// Leave of each stack the functions of an interpreted program, without those of its interpreter
    #[arg(long)]
    pub(crate) interpreted: bool,
    /// Sites and functions that are listed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) top: u32,
    /// Calls of each stack that are listed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) calls: u32,
    /// Also what blocks take beyond their bytes at the peak, on a heap: a name with parameters, a heap.toml, or a
    /// directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: Option<String>,
    /// Also write a page with a flame graph
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Also write folded stacks, as makers of flame graphs read them
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Also write a profile, as `pprof` reads it (profile.proto, gzip)
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
}

/// A figure of sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SitesBy {
    /// Allocations and resizes
    Allocations,
    /// Bytes requested
    Bytes,
    /// Bytes live at the peak
    Peak,
    /// Bytes never freed
    Leaked,
    /// Blocks freed before anything else was asked for
    Temporary,
}

impl From<SitesBy> for metes_sites::By {
    fn from(by: SitesBy) -> Self {
        match by {
            SitesBy::Allocations => metes_sites::By::Allocations,
            SitesBy::Bytes => metes_sites::By::Bytes,
            SitesBy::Peak => metes_sites::By::Peak,
            SitesBy::Leaked => metes_sites::By::Leaked,
            SitesBy::Temporary => metes_sites::By::Temporary,
        }
    }
}
