//! `metes mesh`.

mod mpi;
mod simulate;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use metes_heap::store::Store;
use metes_heap::{AnyIndex, Tagged};
use metes_mesh_replay::{
    FabricKind, Lists, NotReplayed, Replayed, Setting, Trace, Unread, check, replay, replay_with,
};

use crate::arguments::{Mesh, MeshAction, MeshFabric, MeshRun};
use crate::error::Failure;
use crate::heap;
use crate::output::{self, Table};
use crate::quantity::{bytes, grouped};

pub(crate) fn run(arguments: &Mesh, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        MeshAction::Run(arguments) => run_trace(arguments, json),
        MeshAction::Simulate(arguments) => simulate::simulate(arguments, json),
        MeshAction::Platform(_) => simulate::platform(json),
        MeshAction::Bound(arguments) => simulate::bounds(arguments, json),
    }
}

fn run_trace(arguments: &MeshRun, json: bool) -> Result<u8, Failure> {
    let index = index(&arguments.kind)?;
    let path = &arguments.trace;
    let trace = read(path, arguments.nodes)?;
    if let MeshFabric::Platform = arguments.fabric {
        return simulate::replay(arguments, &trace, json);
    }
    let fabric = match arguments.fabric {
        MeshFabric::Threads => FabricKind::Threads,
        MeshFabric::Processes | MeshFabric::Mpi => FabricKind::Processes,
        MeshFabric::Sequential | MeshFabric::Platform => FabricKind::Sequential,
    };
    let setting = Setting {
        nodes: arguments.nodes,
        heap: arguments.heap,
        fabric,
        kills: &arguments.kill,
    };
    if let MeshFabric::Mpi = arguments.fabric {
        // What cannot be is told here, in the words of options, and not by every rank.
        let lists = Lists::new(&trace, arguments.nodes);
        check(&lists, setting)
            .and_then(|_| {
                replay(
                    &Trace::default(),
                    1,
                    arguments.heap,
                    FabricKind::Sequential,
                    |_| index(),
                )
            })
            .map_err(|error| Failure::input(remedy(error)))?;
        return mpi::run(arguments, json);
    }
    let replayed = replay_with(&trace, setting, |_| index(), |_, _| {})
        .map_err(|error| Failure::input(remedy(error)))?;
    if json {
        output::json(&replayed)?;
    } else {
        output::text(&shown(&replayed))?;
    }
    Ok(0)
}

fn read(path: &Path, nodes: u32) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| Failure::io("read", path, error))?;
    Trace::read(BufReader::new(file), nodes).map_err(|error| match error {
        Unread::System(error) => Failure::io("read", path, error),
        error => Failure::input(format!("{}: {error}", output::name(path))),
    })
}

/// What each node's heap is made by.
fn index(kind: &str) -> Result<impl Fn() -> AnyIndex<<Tagged as Store>::Block> + use<>, Failure> {
    let config = heap::resolve(kind)?;
    match config.one_pool() {
        Some((index, limits)) => Ok(move || AnyIndex::new(index, limits)),
        None => Err(Failure::input(format!(
            "--kind {kind}: a node's heap is one pool with boundary tags; name one such as tlsf, best-fit or buddy"
        ))),
    }
}

/// What is wrong, and by which option it is mended.
fn remedy(error: NotReplayed) -> String {
    let option = match error {
        NotReplayed::Impossible(metes_mesh::Impossible::Nodes { .. })
        | NotReplayed::Threads { .. }
        | NotReplayed::NotStarted { .. } => "--nodes: ",
        NotReplayed::Impossible(_) | NotReplayed::NotMade(_) | NotReplayed::TooMuch { .. } => {
            "--heap: "
        }
        NotReplayed::Immortal
        | NotReplayed::NoVictim { .. }
        | NotReplayed::Twice { .. }
        | NotReplayed::Longer { .. } => "--kill: ",
        NotReplayed::NobodyLives | NotReplayed::Shared { .. } | NotReplayed::Broken { .. } => "",
    };
    format!("{option}{error}")
}

/// What came of a trace, for people.
pub(super) fn shown(replayed: &Replayed) -> String {
    let mut table = Table::new(&["node", "most bytes"]);
    for (node, &peak) in replayed.node_peaks.iter().enumerate() {
        table.row(anstyle::Style::new(), vec![node.to_string(), bytes(peak)]);
    }
    let Replayed {
        operations,
        failed,
        spurious,
        local,
        remote,
        parked,
        longest,
        adopted,
        undone,
        ..
    } = *replayed;
    let deaths = match &replayed.dead[..] {
        [] => String::new(),
        dead => format!(
            "died: {}; {} blocks adopted, {} operations not done\n",
            dead.iter()
                .map(|node| format!("node {node}"))
                .collect::<Vec<_>>()
                .join(", "),
            grouped(adopted),
            grouped(undone)
        ),
    };
    let counts = [operations, local, remote, failed, spurious, parked, longest].map(grouped);
    let [operations, local, remote, failed, spurious, parked, longest] = counts;
    format!(
        "{operations} operations: {local} requests served by the own heap, {remote} by another, {failed} refused \
         ({spurious} though a heap had room)\n\
         {parked} blocks freed without a lock; no request looked into more than {longest} heaps\n\
         {deaths}{} in use at the end, {} blocks lost\n\n{table}",
        bytes(replayed.live_bytes),
        grouped(replayed.lost_blocks)
    )
}
