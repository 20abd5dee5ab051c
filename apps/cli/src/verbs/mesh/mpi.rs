//! `metes mesh run --fabric mpi`: a program of its own, which MPI starts once a rank.
//!
//! Invariant: what one rank says on stdout is one document; what any says on stderr goes on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use metes_mesh_replay::{Kill, Latency, Timed};

use super::shown;
use crate::arguments::MeshRun;
use crate::error::Failure;
use crate::output::{self, Table};
use crate::quantity::grouped;

/// Names the program where it is neither beside this one nor on the path.
const PROGRAM_VARIABLE: &str = "METES_MESH_MPI";
const PROGRAM: &str = "metes-mesh-mpi";

pub(super) fn run(arguments: &MeshRun, json: bool) -> Result<u8, Failure> {
    let program = program()?;
    let mut command = Command::new(mpirun()?);
    // Two that start at a time would make the same directory, and one would fail.
    let scratch = tempfile::tempdir()
        .map_err(|error| Failure::io("make a directory in", &std::env::temp_dir(), error))?;
    // SAFETY: a call without memory.
    if unsafe { libc::geteuid() } == 0 {
        // The ranks do what this process could do itself.
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    command
        // Who dies does not end the others; more ranks than cores, which give way when they wait; windows in memory.
        .args(["--enable-recovery", "--oversubscribe"])
        .args(["--mca", "mpi_yield_when_idle", "1", "--mca", "osc", "sm"])
        .args(["--mca", "orte_tmpdir_base"])
        .arg(scratch.path())
        .arg("-n")
        .arg(arguments.nodes.to_string())
        .arg(program)
        .arg(&arguments.trace)
        .args(["--nodes", &arguments.nodes.to_string()])
        .args(["--heap", &arguments.heap.to_string()])
        .args(["--kind", &arguments.kind]);
    for kill in &arguments.kill {
        let Kill {
            node,
            operation,
            step,
        } = kill;
        command.args(["--kill", &format!("{node}@{operation}.{step}")]);
    }
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let ended = command.output();
    let ended = ended.map_err(|error| Failure::io("run", Path::new("mpirun"), error))?;
    let timed: Option<Timed> = serde_json::from_slice(&ended.stdout).ok();
    let timed = timed.filter(|_| ended.status.success()).ok_or_else(|| {
        Failure::input(format!(
            "--fabric mpi: mpirun ended with {} before the trace was done; see what it said above",
            ended.status
        ))
    })?;
    if json {
        output::json(&timed)?;
    } else {
        output::text(&format!("{}\n{}", shown(&timed.replayed), times(&timed)))?;
    }
    Ok(0)
}

/// How fast it was, for people.
fn times(timed: &Timed) -> String {
    let mut table = Table::new(&["call", "calls", "p50 (us)", "p99 (us)", "longest (us)"]);
    let latency = &timed.latency;
    for (name, of) in [
        ("request, own heap", latency.local),
        ("request, another heap", latency.remote),
        ("request, refused", latency.refused),
        ("free, own heap", latency.free),
        ("free, another heap", latency.free_remote),
    ] {
        let Latency {
            calls,
            p50,
            p99,
            max,
        } = of;
        let times = [p50, p99, max].map(|seconds| format!("{:.1}", seconds * 1e6));
        let row = [name.to_string(), grouped(calls)].into_iter().chain(times);
        table.row(anstyle::Style::new(), row.collect());
    }
    format!(
        "{} operations a second, all ranks together\n\n{table}",
        grouped(timed.operations_per_second as u64)
    )
}

/// The program that each rank runs.
fn program() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let beside = beside.map(|place| place.join(PROGRAM));
    beside
        .filter(|path| path.is_file())
        .or_else(|| on_path(PROGRAM))
        .ok_or_else(|| {
            Failure::input(format!(
                "--fabric mpi: {PROGRAM} is neither beside metes nor on the path: build it with `cargo build --release \
                 --manifest-path apps/mesh-mpi/Cargo.toml`, or name it in {PROGRAM_VARIABLE}"
            ))
        })
}

/// The `mpirun` of Open MPI, whose options these are.
fn mpirun() -> Result<PathBuf, Failure> {
    let found = ["mpirun.openmpi", "mpirun"].into_iter().filter_map(on_path);
    let mut open = found.filter(|path| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("Open MPI"))
    });
    open.next().ok_or_else(|| {
        Failure::input(
            "--fabric mpi: no mpirun of Open MPI is on the path: install it (Debian: openmpi-bin)",
        )
    })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|place| place.join(name));
    places.find(|path| path.is_file())
}
