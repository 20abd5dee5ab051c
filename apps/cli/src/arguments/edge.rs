//! `metes edge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{EdgeLab, EdgeRunner};

/// Functions at the edge: whether a set of them fits a host, and a laboratory of WebAssembly beside containers
#[derive(Args)]
#[command(after_help = "Examples:
  metes edge check set.toml
  metes edge lab --list")]
pub(crate) struct Edge {
    #[command(subcommand)]
    pub(crate) action: EdgeAction,
}

#[derive(Subcommand)]
pub(crate) enum EdgeAction {
    Check(EdgeCheck),
    Lab(EdgeLab),
    #[command(hide = true)]
    Runner(EdgeRunner),
}

/// Decide whether a set of functions fits its host, by processor demand and memory
///
/// Each core is scheduled by preemptive earliest deadline first. What is admitted has a certificate, which this checks
/// again in a way of its own before it is shown; what is refused is told with the smallest changes that fit. Exit status
/// 1 if the set is refused, or the certificate given is not one of it.
#[derive(Args)]
#[command(after_help = "Examples:
  metes edge check set.toml
  metes edge check set.toml --output certificate.json
  metes edge check set.toml --certificate certificate.json")]
pub(crate) struct EdgeCheck {
    /// The set: TOML (docs/edge-admission.md)
    #[arg(value_name = "SET.toml")]
    pub(crate) set: PathBuf,
    /// Verify this certificate against the set, and decide nothing
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) certificate: Option<PathBuf>,
    /// Write the certificate there, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
