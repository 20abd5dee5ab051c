//! Parsers of meshes: networks, traces of nodes, platforms.
//!
//! Invariant: what is accepted is made, if it is small, and does what it should.

use metes_mesh_replay::{FabricKind, Trace};
use metes_noc::{Faults, Parameters};
use metes_platform::ManagerKind;
use metes_platform::managers::FIRST_FIT;
use metes_platform::programs::{Storm, storms};

use super::{seeds, text};

/// Parameters and faults of a network, one text for both; a small one is made.
pub(super) fn network(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let (parameters, faults) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let (Ok(parameters), Ok(faults)) = (Parameters::parse(parameters), Faults::parse(faults))
    else {
        return false;
    };
    if parameters.columns * parameters.rows > 64 {
        return true;
    }
    metes_noc::Mesh::new(&parameters, &faults).is_ok()
}

pub(super) fn network_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "columns = 3\nrows = 2\nnetwork = \"buffered\"\nqueue = 1\n---\nlost = [3]\nduplicated = [5]\n",
        "columns = 8\nrows = 8\nnetwork = \"deflection\"\ninterface_in = 2\nhop = 3\noccupancy = 4\n",
    ])
}

/// A mesh trace, run on small heaps.
pub(super) fn mesh_trace(bytes: &[u8]) -> bool {
    const NODES: u32 = 3;
    let Ok(trace) = Trace::read(bytes, NODES) else {
        return false;
    };
    let run = metes_mesh_replay::replay(&trace, NODES, 1 << 12, FabricKind::Sequential, |_| {
        metes_heap::Tlsf::<8>::new()
    });
    let run = run.expect("heaps fit");
    assert_eq!(run.operations, trace.operations().len() as u64);
    assert_eq!((run.spurious, run.lost_blocks), (0, 0));
    true
}

pub(super) fn mesh_trace_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "# blocks go around\na,0,1,100\na,1,2,3000\nf,2,1\n\na,2,1,4000 # refused\nf,0,1\nf,0,2\n",
        "a,2,18446744073709551615,18446744073709551615\na,0,0,0\nf,1,0\n",
    ])
}

/// Parameters and faults of a many-core platform, one text for both; on a small one some requests are made.
pub(super) fn platform(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let (parameters, faults) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let parameters = metes_platform::Parameters::parse(parameters);
    let (Ok(parameters), Ok(faults)) = (parameters, metes_platform::Faults::parse(faults)) else {
        return false;
    };
    let nodes = parameters.nodes();
    if nodes > 9 || parameters.heap > 1 << 16 {
        return true;
    }
    let storm = Storm {
        operations: 5,
        gap: 10,
        sizes: (1, 100),
        hungry: 50,
        much: parameters.heap,
        little: 100,
        passed_on: 30,
        seed: 1,
    };
    let setup = metes_platform::Setup {
        parameters,
        manager: ManagerKind::Metes,
        heaps: FIRST_FIT,
        faults,
        limit: 1_000_000,
        every: 0,
    };
    let Ok(run) = metes_platform::run(&setup, storms(storm, nodes)) else {
        return false;
    };
    assert_eq!(run.unsound, Vec::new());
    assert_eq!(run.lost(), 0);
    true
}

pub(super) fn platform_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "heap = 512\n[network]\ncolumns = 2\nrows = 2\n[core]\ncommand = 9\n---\nlost = [3]\n\
         deaths = [{ node = 1, from = 500 }]\nstalls = [{ node = 0, from = 10, cycles = 90 }]\n",
        "[network]\ncolumns = 3\nrows = 3\nnetwork = \"deflection\"\n[recovery]\ntimeout = 900\ntries = 2\n",
    ])
}
