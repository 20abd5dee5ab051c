//! The arguments of `metes mesh simulate`, `platform` and `bound`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::quantity::positive_size;

/// A many-core platform.
#[derive(Args)]
pub(crate) struct PlatformShape {
    /// Nodes in a row
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) columns: Option<u16>,
    /// Nodes in a column
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) rows: Option<u16>,
    /// Bytes of each node's heap, its records included
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) heap: Option<u64>,
    /// What differs from the parameters that `metes mesh platform` prints, in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) platform: Option<PathBuf>,
    /// The kind of each heap under the manager of Metes: a name such as tlsf or first-fit
    #[arg(long, value_name = "HEAP", default_value = "tlsf")]
    pub(crate) kind: String,
}

/// Simulate a many-core platform: cores, controllers, a mesh, and who manages its heaps
///
/// Deterministic: the same command gives the same run, event for event. What things take is printed by
/// `metes mesh platform`, each figure with its source or marked as an assumption.
#[derive(Args)]
#[command(after_help = "Examples:
  metes mesh simulate --columns 8 --rows 8 --load storm -o mesh.html
  metes mesh simulate --columns 4 --rows 4 --load gaussian --picture camera.png --manager proposed --json")]
pub(crate) struct MeshSimulate {
    #[command(flatten)]
    pub(crate) shape: PlatformShape,
    /// Who manages the heaps
    #[arg(long, value_enum, default_value = "metes")]
    pub(crate) manager: MeshManager,
    /// What the nodes do: a storm of random requests, or a master that gives tasks of a kernel to slaves
    #[arg(long, value_enum, default_value = "storm")]
    pub(crate) load: MeshLoad,
    /// Tasks for each slave, or requests and frees of each node of a storm
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) operations: u32,
    /// What a storm is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// A PNG or PGM file for the kernels; without one a picture is drawn
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// What goes wrong, in TOML: deaths, stalls, lost, duplicated, links (see docs/mesh-platform.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Write a page that shows the mesh as it ran
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Cycles between two looks of the page
    #[arg(long, value_name = "CYCLES", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: u64,
}

/// Print what the simulated platform is made of, each figure with its source or marked as an assumption
#[derive(Args)]
#[command(after_help = "Example: metes mesh platform > platform.toml")]
pub(crate) struct MeshPlatform {}

/// Bound how long a request may take on a platform under the manager of Metes, beside a simulated storm
#[derive(Args)]
#[command(after_help = "Example: metes mesh bound --columns 4 --rows 4")]
pub(crate) struct MeshBound {
    #[command(flatten)]
    pub(crate) shape: PlatformShape,
    /// Packets that programs have under way beside those of their managers, at most
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) messages: u32,
}

/// Who manages the heaps.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MeshManager {
    /// A heap in C for each core alone
    CPrivate,
    /// One heap in C over all memories
    CSingle,
    /// Controllers, by priority tables (2011)
    Microcoded,
    /// Controllers, local first, then lazily (2016)
    Proposed,
    /// metes-mesh
    Metes,
}

/// What nodes do.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeshLoad {
    /// A quarter of the nodes wants twice what it has, blocks are passed on
    Storm,
    /// FAST-9 corners of a picture
    Fast,
    /// A Gaussian blur
    Gaussian,
    /// The integral image
    Integral,
    /// A matrix product
    Matrix,
}
