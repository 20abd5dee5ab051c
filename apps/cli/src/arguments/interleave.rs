//! The command line of `metes interleave`.

use std::path::PathBuf;

use clap::Args;

/// Say how much of a program's memory depends on the order in which its threads run
///
/// Replays the recorded requests in many other orders, each of which keeps that of each thread and of each block: least,
/// quartiles and most of live bytes and of heaps' footprints. Bounds the live bytes of all orders, and what heaps provably
/// take on any. Counts how often threads would find the heap's lock taken, and free each other's blocks. Exit status 1 if
/// a request fails.
#[derive(Args)]
#[command(after_help = "Examples:
  metes interleave program.trace.parquet
  metes interleave program.trace.parquet --heap tlsf --heap best-fit --shuffles 1000
  metes interleave program.trace.parquet --seed 17 --shuffles 1
  metes interleave program.trace.parquet --within 5000 -o threads.html")]
pub(crate) struct Interleave {
    /// A trace of several threads
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// A heap: a name with parameters, a heap.toml, a directory with one, or per-thread; may be said again
    /// [default: tlsf and per-thread]
    #[arg(long = "heap", value_name = "H")]
    pub(crate) heaps: Vec<String>,
    /// Orders drawn
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) shuffles: u32,
    /// The seed of the first order; that of each next is one more
    #[arg(long, value_name = "S", default_value = "1")]
    pub(crate) seed: u64,
    /// Draw only orders in which no request comes before one that was recorded more than so many earlier
    #[arg(long, value_name = "EVENTS")]
    pub(crate) within: Option<u64>,
    /// Also write a page
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
}
