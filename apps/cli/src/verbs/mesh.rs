//! `metes mesh`.

mod simulate;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use metes_heap::store::Store;
use metes_heap::{AnyIndex, Tagged};
use metes_mesh_replay::{FabricKind, NotReplayed, Replayed, Trace, Unread, replay};

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
    let fabric = match arguments.fabric {
        MeshFabric::Threads => FabricKind::Threads,
        MeshFabric::Sequential => FabricKind::Sequential,
    };
    let replayed = replay(&trace, arguments.nodes, arguments.heap, fabric, |_| index())
        .map_err(|error| Failure::input(remedy(error)))?;
    if json {
        output::json(&replayed)?;
    } else {
        show(&replayed)?;
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
    let described = &config.heap;
    let mut pools = described.general.iter();
    let (pool, more) = (pools.next(), pools.next());
    let alone = more.is_none() && described.dedicated.is_empty() && described.objects.is_empty();
    let plain = config.store == metes_config::StoreKind::default() && config.levels.is_empty();
    match pool.filter(|_| alone && plain) {
        Some(pool) => Ok(move || AnyIndex::new(pool.index, pool.limits)),
        None => Err(Failure::input(format!(
            "--kind {kind}: a node's heap is one pool with boundary tags; name one such as tlsf, best-fit or buddy"
        ))),
    }
}

/// What is wrong, and by which option it is mended.
fn remedy(error: NotReplayed) -> String {
    let option = match error {
        NotReplayed::Impossible(metes_mesh::Impossible::Nodes { .. })
        | NotReplayed::Threads { .. } => "--nodes: ",
        NotReplayed::Impossible(_) | NotReplayed::NotMade(_) | NotReplayed::TooMuch { .. } => {
            "--heap: "
        }
        NotReplayed::Shared { .. } | NotReplayed::Broken { .. } => "",
    };
    format!("{option}{error}")
}

fn show(replayed: &Replayed) -> Result<(), Failure> {
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
        ..
    } = *replayed;
    let counts = [operations, local, remote, failed, spurious, parked, longest].map(grouped);
    let [operations, local, remote, failed, spurious, parked, longest] = counts;
    output::text(&format!(
        "{operations} operations: {local} requests served by the own heap, {remote} by another, {failed} refused \
         ({spurious} though a heap had room)\n\
         {parked} blocks freed without a lock; no request looked into more than {longest} heaps\n\
         {} in use at the end, {} blocks lost\n\n{table}",
        bytes(replayed.live_bytes),
        grouped(replayed.lost_blocks)
    ))
}
