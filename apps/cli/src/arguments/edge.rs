//! `metes edge`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::positive_size;

use super::{EdgeLab, EdgeRunner};

/// Functions at the edge: whether a set of them fits, their host and its clients, and a laboratory
#[derive(Args)]
#[command(after_help = "Examples:
  metes edge check set.toml
  metes edge serve --cores 2
  metes edge lab --list")]
pub(crate) struct Edge {
    #[command(subcommand)]
    pub(crate) action: EdgeAction,
}

#[derive(Subcommand)]
pub(crate) enum EdgeAction {
    Check(EdgeCheck),
    Serve(EdgeServe),
    Deploy(EdgeDeploy),
    Invoke(EdgeInvoke),
    List(EdgeList),
    Top(EdgeTop),
    Remove(EdgeRemove),
    Lab(EdgeLab),
    #[command(hide = true)]
    Runner(EdgeRunner),
}

/// Host functions until SIGINT or SIGTERM: HTTP on a Unix socket, and on TCP if asked for
///
/// Each core has a worker, which runs what is due first to its end; admission reckons with that. Says how workers are
/// scheduled, as far as the kernel permits.
#[derive(Args)]
#[command(
    after_help = "Example: metes edge serve --socket edge.sock --tcp 127.0.0.1:8080 --cores 2 --priority 60"
)]
pub(crate) struct EdgeServe {
    /// The Unix socket
    #[arg(long, value_name = "PATH", default_value = "edge.sock")]
    pub(crate) socket: PathBuf,
    /// Listen there, too
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<SocketAddr>,
    /// Workers, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) cores: u32,
    /// Slots of the largest size, 2 to 4096: one is for what is being deployed
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub(crate) slots: u32,
    /// Bytes of a slot: the largest memory of a function
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = positive_size)]
    pub(crate) slot: u64,
    /// Do not lock slots into memory
    #[arg(long)]
    pub(crate) unlocked: bool,
    /// Run workers under SCHED_FIFO with this priority, 1 to 79, where it is permitted
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(i32).range(1..=79))]
    pub(crate) priority: Option<i32>,
    /// Microseconds between looks for overruns, 25 to 10000; a budget must be twice as long
    #[arg(long, value_name = "US", default_value_t = 250, value_parser = clap::value_parser!(u64).range(25..=10_000))]
    pub(crate) look: u64,
    /// Functions at once, 1 to 4096
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) functions: u32,
    /// Deployments and removals under way at once, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) deployments: u32,
    /// Connections at once, 1 to 65536; mind `ulimit -n`
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) connections: u32,
    /// Milliseconds that a client may take for the head of a request, for its body, for its answer, or between two
    /// requests, 10 to 3600000
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(crate) timeout: u64,
}

/// Where a host listens.
#[derive(Args)]
pub(crate) struct EdgeHost {
    /// The host's Unix socket
    #[arg(long, value_name = "PATH", default_value = "edge.sock")]
    pub(crate) socket: PathBuf,
    /// The host's address on TCP instead
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "socket")]
    pub(crate) tcp: Option<String>,
}

/// Deploy a function: compile, measure and admit it beside those that are there
#[derive(Args)]
#[command(after_help = "Example: metes edge deploy function.toml")]
pub(crate) struct EdgeDeploy {
    /// The manifest; its module is beside it
    #[arg(value_name = "function.toml")]
    pub(crate) manifest: PathBuf,
    #[command(flatten)]
    pub(crate) host: EdgeHost,
}

/// Invoke a function, with standard input or a file as the request
///
/// What it answers goes to standard output. Exit status 1 if it did not end well.
#[derive(Args)]
#[command(after_help = "Example: echo hello | metes edge invoke echo")]
pub(crate) struct EdgeInvoke {
    /// The function
    pub(crate) name: String,
    /// The request [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) host: EdgeHost,
}

/// List the functions of a host
#[derive(Args)]
#[command(after_help = "Example: metes edge list")]
pub(crate) struct EdgeList {
    #[command(flatten)]
    pub(crate) host: EdgeHost,
}

/// Show what functions took, and how they ended
#[derive(Args)]
#[command(after_help = "Example: metes edge top")]
pub(crate) struct EdgeTop {
    #[command(flatten)]
    pub(crate) host: EdgeHost,
}

/// Take a function away
#[derive(Args)]
#[command(after_help = "Example: metes edge remove echo")]
pub(crate) struct EdgeRemove {
    /// The function
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) host: EdgeHost,
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
