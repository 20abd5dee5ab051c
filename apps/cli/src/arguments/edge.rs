//! `metes edge`.

use clap::{Args, Subcommand};

use super::{EdgeLab, EdgeRunner};

/// Functions at the edge: a laboratory of WebAssembly beside native code and containers
#[derive(Args)]
#[command(after_help = "Example: metes edge lab --list")]
pub(crate) struct Edge {
    #[command(subcommand)]
    pub(crate) action: EdgeAction,
}

#[derive(Subcommand)]
pub(crate) enum EdgeAction {
    Lab(EdgeLab),
    #[command(hide = true)]
    Runner(EdgeRunner),
}
