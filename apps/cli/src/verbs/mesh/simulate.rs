//! `metes mesh simulate`, `platform` and `bound`.

use std::path::Path;
use std::rc::Rc;

use metes_kernels::{Picture, TILE, record_named};
use metes_platform::programs::{Storm, master_and_slaves, storms};
use metes_platform::{
    Bound, Faults, HeapKind, ManagerKind, Parameters, Program, Run, Setup, bound, parameters, run,
};
use serde_json::json;

use crate::arguments::{MeshBound, MeshLoad, MeshManager, MeshRun, MeshSimulate, PlatformShape};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::heap;
use crate::output::{self, Table};
use crate::own::Form;
use crate::quantity::grouped;

/// The cycle after which a run is broken off.
const LIMIT: u64 = 1 << 40;
/// Pixels of a side of a picture, at most; of one that is drawn.
const SIDE: usize = 256;

/// `metes mesh platform`.
pub(super) fn platform(json: bool) -> Result<u8, Failure> {
    if json {
        output::json(&Parameters::default())?;
    } else {
        output::text(parameters::DEFAULTS)?;
    }
    Ok(0)
}

/// `metes mesh bound`.
pub(super) fn bounds(arguments: &MeshBound, json: bool) -> Result<u8, Failure> {
    let parameters = read(&arguments.shape)?;
    let heaps = kind(&arguments.shape.kind)?;
    let bound = bound(&parameters, heaps, arguments.messages.into()).map_err(fail)?;
    let setup = Setup {
        manager: ManagerKind::Metes,
        faults: Faults::default(),
        limit: LIMIT,
        every: 0,
        heaps,
        parameters,
    };
    let programs = storms(storm(&setup.parameters, 200, 1), setup.parameters.nodes());
    let run = run(&setup, programs).map_err(fail)?;
    let simulated = longest(&run);
    let holds = simulated <= bound.allocate;
    if json {
        output::json(&json!({ "bound": bound, "simulated": simulated, "holds": holds }))?;
    } else {
        show_bound(&bound, simulated)?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

/// `metes mesh simulate`.
pub(super) fn simulate(arguments: &MeshSimulate, json: bool) -> Result<u8, Failure> {
    let parameters = read(&arguments.shape)?;
    let heaps = kind(&arguments.shape.kind)?;
    let faults = match &arguments.faults {
        Some(path) => Faults::parse(&text(path)?).map_err(|error| in_file(path, error))?,
        None => Faults::default(),
    };
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Page)?;
    }
    let manager = match arguments.manager {
        MeshManager::CPrivate => ManagerKind::CPrivate,
        MeshManager::CSingle => ManagerKind::CSingle,
        MeshManager::Microcoded => ManagerKind::Microcoded,
        MeshManager::Proposed => ManagerKind::Proposed,
        MeshManager::Metes => ManagerKind::Metes,
    };
    if manager != ManagerKind::Metes && !faults.is_empty() {
        return Err(Failure::input(format!(
            "--faults: the manager {manager} waits for ever for what is lost; take --manager metes, or leave out --faults"
        )));
    }
    let programs = programs(arguments, &parameters)?;
    let setup = Setup {
        every: arguments.output.as_ref().map_or(0, |_| arguments.every),
        limit: LIMIT,
        parameters,
        manager,
        heaps,
        faults,
    };
    let run = run(&setup, programs).map_err(fail)?;
    let page = match &arguments.output {
        Some(path) => {
            let title = format!("{} under {}", load_name(arguments.load), manager);
            let page = metes_mesh_replay::page(&run.recording, &title);
            output::write_file(path, page.as_bytes())?;
            Some(output::name(path))
        }
        None => None,
    };
    let messages = match arguments.load {
        MeshLoad::Storm => 0,
        // Two tasks of each slave, and their return.
        _ => 2 * setup.parameters.nodes() as u64,
    };
    let bound = (manager == ManagerKind::Metes && setup.faults.is_empty())
        .then(|| bound(&setup.parameters, heaps, messages).ok())
        .flatten();
    let holds = run.unsound.is_empty()
        && run.stuck.is_empty()
        && bound.is_none_or(|bound| longest(&run) <= bound.allocate);
    if json {
        let mut document = document(&run, bound.as_ref());
        document["holds"] = json!(holds);
        document["page"] = json!(page);
        output::json(&document)?;
    } else {
        show(&run, bound.as_ref())?;
        if let Some(page) = page {
            output::text(&format!("\n{page}\n"))?;
        }
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

fn fail(error: impl std::error::Error) -> Failure {
    Failure::input(error.to_string())
}

fn in_file(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

fn text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

/// The parameters that a command line names.
fn read(shape: &PlatformShape) -> Result<Parameters, Failure> {
    let mut parameters = match &shape.platform {
        Some(path) => Parameters::parse(&text(path)?).map_err(|error| in_file(path, error))?,
        None => Parameters::default(),
    };
    if let Some(columns) = shape.columns {
        parameters.network.columns = columns.into();
    }
    if let Some(rows) = shape.rows {
        parameters.network.rows = rows.into();
    }
    if let Some(heap) = shape.heap {
        parameters.heap = heap;
    }
    parameters.check().map_err(fail)?;
    Ok(parameters)
}

/// The kind of heap of that name.
pub(super) fn kind(name: &str) -> Result<HeapKind, Failure> {
    let config = heap::resolve(name)?;
    match config.one_pool() {
        Some((index, limits)) => Ok(HeapKind { index, limits }),
        None => Err(Failure::input(format!(
            "--kind {name}: a node's heap is one pool with boundary tags; name one such as tlsf, best-fit or buddy"
        ))),
    }
}

/// A storm of which a quarter of the nodes wants twice what it has.
fn storm(parameters: &Parameters, operations: u64, seed: u64) -> Storm {
    Storm {
        operations,
        gap: 200,
        sizes: (16, 200),
        hungry: 25,
        much: 2 * parameters.heap,
        little: parameters.heap / 8,
        passed_on: 20,
        seed,
    }
}

fn programs(
    arguments: &MeshSimulate,
    parameters: &Parameters,
) -> Result<Vec<Box<dyn Program>>, Failure> {
    let nodes = parameters.nodes();
    let operations = arguments.operations;
    if arguments.load == MeshLoad::Storm {
        if arguments.picture.is_some() {
            return Err(Failure::input(
                "--picture: a storm needs none; name a kernel by --load, or leave out --picture",
            ));
        }
        let storm = storm(parameters, operations.into(), arguments.seed);
        return Ok(storms(storm, nodes));
    }
    let picture = match &arguments.picture {
        Some(path) => {
            let whole = Picture::read(path).map_err(fail)?;
            let tiles = |pixels: usize| pixels.min(SIDE) / TILE * TILE;
            let (width, height) = (tiles(whole.width()), tiles(whole.height()));
            let side = width.min(height);
            if side == 0 {
                return Err(Failure::input(format!(
                    "{}: fewer than {TILE} x {TILE} pixels, which is one tile: give a larger picture",
                    output::name(path)
                )));
            }
            whole.cropped(0, 0, side, side).map_err(fail)?
        }
        None => Picture::generated(SIDE, SIDE, 1),
    };
    let workload = record_named(load_name(arguments.load), &picture).map_err(fail)?;
    let workload = Rc::new(workload.expect("a name of a kernel"));
    let tasks = operations as usize * nodes.saturating_sub(1);
    master_and_slaves(&workload, nodes, tasks).map_err(fail)
}

fn load_name(load: MeshLoad) -> &'static str {
    match load {
        MeshLoad::Storm => "storm",
        MeshLoad::Fast => "fast",
        MeshLoad::Gaussian => "gaussian",
        MeshLoad::Integral => "integral",
        MeshLoad::Matrix => "matrix",
    }
}

/// Cycles of the longest request.
fn longest(run: &Run) -> u64 {
    let longest = run.nodes.iter().filter_map(|counts| counts.allocate.max());
    longest.max().unwrap_or(0)
}

fn document(run: &Run, bound: Option<&Bound>) -> serde_json::Value {
    json!({
        "cycles": run.cycles,
        "operations": run.sum(|counts| counts.events()),
        "cycles_an_operation": run.cycles_an_event(),
        "local": run.sum(|counts| counts.served_at_home),
        "remote": run.sum(|counts| counts.served_away),
        "failed": run.sum(|counts| counts.refused),
        "spurious": run.sum(|counts| counts.spurious),
        "visits": run.sum(|counts| counts.visits),
        "skips": run.sum(|counts| counts.skips),
        "longest": longest(run),
        "bound": bound,
        "lock_share": run.lock_share(),
        "communication": run.communication(),
        "live_bytes": run.live.iter().map(|(live, _)| live).sum::<u64>(),
        "node_peaks": run.live.iter().map(|(_, peak)| peak).collect::<Vec<_>>(),
        "lost_blocks": run.lost(),
        "bad_frees": run.bad_frees,
        "dead": run.dead,
        "adopted": run.adopted,
        "stuck": run.stuck,
        "network": {
            "packets": run.network.counts.injected,
            "mean_cycles": run.network.latency.mean(),
            "longest_cycles": run.network.latency.max(),
            "most_in_flight": run.most_in_flight,
        },
    })
}

fn show(run: &Run, bound: Option<&Bound>) -> Result<(), Failure> {
    let count = |of: fn(&metes_platform::Counts) -> u64| grouped(run.sum(of));
    let mut text = format!(
        "{} cycles, {} requests and frees, {:.1} cycles each\n\
         {} requests served by the own heap, {} by another, {} refused ({} though a heap had room), {} heaps passed over\n\
         longest request {} cycles",
        grouped(run.cycles),
        count(metes_platform::Counts::events),
        run.cycles_an_event().unwrap_or(0.0),
        count(|counts| counts.served_at_home),
        count(|counts| counts.served_away),
        count(|counts| counts.refused),
        count(|counts| counts.spurious),
        count(|counts| counts.skips),
        grouped(longest(run)),
    );
    if let Some(bound) = bound {
        text += &format!(", bound {}", grouped(bound.allocate));
    }
    text += &format!(
        "\n{:.1} % of the time waiting for locks, {} packets, {} blocks lost\n",
        100.0 * run.lock_share(),
        grouped(run.network.counts.injected),
        grouped(run.lost()),
    );
    if !run.dead.is_empty() {
        text += &format!(
            "dead: nodes {:?}; {} blocks taken over by others\n",
            run.dead,
            grouped(run.adopted)
        );
    }
    if !run.stuck.is_empty() {
        text += &format!(
            "programs of nodes {:?} did not come to their end\n",
            run.stuck
        );
    }
    output::text(&text)
}

fn show_bound(bound: &Bound, simulated: u64) -> Result<(), Failure> {
    let mut table = Table::left(&["", "cycles", "what"]);
    for (name, cycles, what) in [
        (
            "T_net",
            bound.network,
            "a way through the mesh, with all packets that there can be",
        ),
        ("v", bound.visit, "what is done at a heap, in one piece"),
        (
            "S",
            bound.service,
            "a request at a controller, when its turn has come",
        ),
        (
            "R",
            bound.remote_visit,
            "send + 2 T_net + (N - 1) S + receive: another heap",
        ),
        (
            "home",
            bound.home,
            "a request that looks into the own heap alone",
        ),
        ("free", bound.free, "a free"),
        ("T", bound.allocate, "home + (N - 1) R: a request"),
        ("", simulated, "the longest request of a simulated storm"),
    ] {
        table.row(
            anstyle::Style::new(),
            vec![name.to_owned(), grouped(cycles), what.to_owned()],
        );
    }
    output::text(&format!(
        "{} nodes, {} packets at most\n\n{table}\nThe derivation: docs/mesh-platform.md\n",
        bound.nodes, bound.packets
    ))
}

/// `metes mesh run --fabric platform`.
pub(super) fn replay(
    arguments: &MeshRun,
    trace: &metes_mesh_replay::Trace,
    json: bool,
) -> Result<u8, Failure> {
    if !arguments.kill.is_empty() {
        return Err(Failure::input(
            "--kill: on the platform nodes die at cycles; name them by `metes mesh simulate --faults`, or take another --fabric",
        ));
    }
    let heaps = kind(&arguments.kind)?;
    let replayed = metes_mesh_replay::on_platform(trace, arguments.nodes, arguments.heap, heaps);
    let (replayed, run) = replayed.map_err(fail)?;
    if json {
        let mut document = serde_json::to_value(&replayed).map_err(fail)?;
        document["cycles"] = json!(run.cycles);
        document["cycles_an_operation"] = json!(run.cycles_an_event());
        document["longest_cycles"] = json!(longest(&run));
        output::json(&document)?;
    } else {
        output::text(&super::shown(&replayed))?;
        output::text(&format!(
            "\n{} cycles, {:.1} a request or free\n",
            grouped(run.cycles),
            run.cycles_an_event().unwrap_or(0.0)
        ))?;
    }
    Ok(0)
}
