//! Writes the page of a storm on a mesh one of whose nodes dies, and the recording behind it, for tests of the page
//! and for a look at it: `mesh_page DIR [SIDE [OPERATIONS [EVERY]]]`.

use std::error::Error;
use std::path::Path;

use metes_heap::{IndexKind, Limits};
use metes_mesh_replay::page;
use metes_platform::programs::{Storm, storms};
use metes_platform::{Death, Faults, HeapKind, ManagerKind, Parameters, Setup, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: mesh_page DIR [SIDE [OPERATIONS [EVERY]]]")?;
    let mut number = |otherwise: u64| match arguments.next() {
        Some(text) => text.parse::<u64>(),
        None => Ok(otherwise),
    };
    let (side, operations, every) = (number(4)? as usize, number(300)?, number(1000)?);
    let mut parameters = Parameters::sized(side, side);
    parameters.recovery.timeout = 4000;
    parameters.recovery.detection = 9000;
    let storm = Storm {
        operations,
        gap: 200,
        sizes: (16, 200),
        hungry: 25,
        much: 3 * parameters.heap,
        little: parameters.heap / 4,
        passed_on: 20,
        seed: 1,
    };
    let nodes = parameters.nodes();
    // In the midst of the mesh, where its neighbours' packets pass by.
    let node = (side / 2) * side + side / 2;
    let setup = Setup {
        parameters,
        manager: ManagerKind::Metes,
        heaps: HeapKind {
            index: IndexKind::Classes {
                second_level: 8,
                probes: 0,
            },
            limits: Limits::NONE,
        },
        faults: Faults {
            deaths: vec![Death { node, from: 60_500 }],
            ..Faults::default()
        },
        limit: 1 << 40,
        every,
    };
    let run = run(&setup, storms(storm, nodes))?;
    let title = format!("A storm on {side} × {side} nodes, one of which dies");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("mesh.html"), page(&run.recording, &title))?;
    std::fs::write(
        folder.join("mesh.json"),
        serde_json::to_vec(&run.recording)?,
    )?;
    Ok(())
}
