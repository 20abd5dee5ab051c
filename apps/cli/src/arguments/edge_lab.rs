//! `metes edge lab`.

use std::path::PathBuf;

use clap::Args;

/// Measure kernels in WebAssembly, native code and containers: starts, long runs, and what explains them
///
/// Kernels are built with the rustc on the path, for this machine and for wasm32-wasip1. Every subject that can be had
/// here runs them: native code with several allocators, namespaces, OCI runtimes, engines of images, wasmtime, wasmi, V8,
/// and runtimes whose commands are installed. Those that cannot be had are listed with the reason. Subjects take turns.
/// Exit status 1 if two of them do not compute the same.
#[derive(Args)]
#[command(after_help = "Example: metes edge lab --kernels gemm,atax --runs 5 -o lab.html")]
pub(crate) struct EdgeLab {
    /// Kernels, by name, with commas between [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) kernels: Vec<String>,
    /// Subjects, by name, with commas between; native code is always one [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) subjects: Vec<String>,
    /// How much a kernel computes: mini, small, medium or large
    #[arg(long, value_name = "SIZE", default_value = "medium", value_parser = size)]
    pub(crate) size: metes_edge_lab::Size,
    /// Processes of each kernel and subject, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Runs in one process of each, at most, 0 to 1000
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) repeats: u32,
    /// Instances of a loaded module in one process, 0 to 2000
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=2000))]
    pub(crate) instances: u32,
    /// A directory of PolyBench/C, whose kernels are measured instead of ours; needs clang
    #[arg(long, value_name = "DIR")]
    pub(crate) polybench: Option<PathBuf>,
    /// List kernels and subjects, and which of these cannot be had here, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Write the page that opens from disk
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Write every run as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) csv: Option<PathBuf>,
    /// Write every run as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    pub(crate) parquet: Option<PathBuf>,
}

/// What the runner does; for the laboratory itself.
#[derive(Args)]
pub(crate) struct EdgeRunner {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

fn size(text: &str) -> Result<metes_edge_lab::Size, String> {
    metes_edge_lab::Size::named(text).ok_or_else(|| "give mini, small, medium or large".to_owned())
}
