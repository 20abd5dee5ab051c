//! The arguments of `metes mesh`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use metes_mesh_replay::Kill;

use super::platform::{MeshBound, MeshPlatform, MeshSimulate};
use crate::quantity::positive_size;

/// One heap over many nodes: local first, remote when full, refusals that are true
#[derive(Args)]
#[command(after_help = "Example: metes mesh run operations.txt --nodes 4 --heap 64KiB")]
pub(crate) struct Mesh {
    #[command(subcommand)]
    pub(crate) action: MeshAction,
}

#[derive(Subcommand)]
pub(crate) enum MeshAction {
    Run(MeshRun),
    Simulate(MeshSimulate),
    Platform(MeshPlatform),
    Bound(MeshBound),
}

/// Do what a trace says that nodes ask for and free, and say who served it
///
/// One operation a line, # begins a comment: a,NODE,BLOCK,SIZE asks for a block, which is called by a
/// number; f,NODE,BLOCK frees it, whichever node does. A block that was refused is not freed. What a
/// node was refused though a heap could have served is spurious.
#[derive(Args)]
#[command(after_help = "Examples:
  metes mesh run operations.txt --nodes 4 --heap 64KiB --json
  metes mesh run operations.txt --nodes 16 --heap 4KiB --fabric sequential --kind best-fit
  metes mesh run operations.txt --nodes 4 --heap 64KiB --fabric processes --kill 2@100")]
pub(crate) struct MeshRun {
    /// The operations
    pub(crate) trace: PathBuf,
    /// Nodes, each with a heap
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: u32,
    /// Bytes of each heap, its records included
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) heap: u64,
    /// What nodes are
    #[arg(long, value_enum, default_value = "threads")]
    pub(crate) fabric: MeshFabric,
    /// The kind of each heap: a name such as tlsf or best-fit:order=fifo
    #[arg(long, value_name = "HEAP", default_value = "tlsf")]
    pub(crate) kind: String,
    /// A node that dies after so many operations of its own, and accesses to what nodes share since then; may be given for
    /// several
    #[arg(long, value_name = "NODE@OPERATION[.STEP]")]
    pub(crate) kill: Vec<Kill>,
}

/// What nodes are.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MeshFabric {
    /// A thread each, all at once
    Threads,
    /// A process each over one mapping, all at once
    Processes,
    /// A rank of MPI each over windows, all at once: needs metes-mesh-mpi and the mpirun of Open MPI
    Mpi,
    /// A node of the simulated many-core platform each, all at once (docs/mesh-platform.md)
    Platform,
    /// Turns of one thread, in the order of the trace
    Sequential,
}
