//! Replays a trace on a heap over the ranks that `mpirun` has started, this process being one of them.
//!
//! Invariant: one rank speaks: the first, of what cannot be; the first that lives, of what came of it.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use metes_heap::AnyIndex;
use metes_mesh::HeapSpace;
use metes_mesh_mpi::{Index, NotJoined, Ranks, Stopwatch, die};
use metes_mesh_replay::{FabricKind, Kill, Life, Lists, Setting, Trace, check};
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// One heap over ranks of MPI: do what a trace says that nodes ask for and free
#[derive(Parser)]
#[command(
    name = "metes-mesh-mpi",
    after_help = "Example: mpirun -n 4 --mca osc sm metes-mesh-mpi operations.txt --heap 64KiB"
)]
struct Arguments {
    /// The operations: a,NODE,BLOCK,SIZE and f,NODE,BLOCK
    trace: PathBuf,
    /// Bytes of each heap, its records included
    #[arg(long, value_name = "SIZE", value_parser = metes_config::read_size)]
    heap: usize,
    /// Nodes that the trace is for: as many as ranks
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    /// The kind of each heap: a name such as tlsf or best-fit:order=fifo
    #[arg(long, value_name = "HEAP", default_value = "tlsf")]
    kind: String,
    /// A node that dies there; may be given for several
    #[arg(long, value_name = "NODE@OPERATION[.STEP]")]
    kill: Vec<Kill>,
}

fn main() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        eprintln!("metes-mesh-mpi: MPI cannot be initialised: start it by mpirun");
        return ExitCode::from(2);
    };
    let world = universe.world();
    let read = Arguments::try_parse().map_err(|error| {
        let status = if error.use_stderr() { 2 } else { 0 };
        (error.render().to_string(), status)
    });
    let told = |error: String| (format!("metes-mesh-mpi: {error}\n"), 2);
    let input = read.and_then(|arguments| Input::read(&world, arguments).map_err(told));
    // If one rank cannot, none goes on: the first says why.
    let mine = if input.is_ok() {
        i32::MAX
    } else {
        world.rank()
    };
    let mut first = i32::MAX;
    world.all_reduce_into(&mine, &mut first, SystemOperation::min());
    let input = match input {
        Ok(input) if first == i32::MAX => input,
        Ok(_) => return ExitCode::from(2),
        Err((text, status)) => {
            if world.rank() == first {
                eprint!("{text}");
            }
            return ExitCode::from(status);
        }
    };
    match run(&world, &input) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The heaps are all of one size, so none could be laid.
            if world.rank() == 0 {
                eprintln!("metes-mesh-mpi: --heap: {error}");
            }
            ExitCode::from(2)
        }
    }
}

/// What a rank needs, read and verified.
struct Input {
    lists: Lists,
    space: HeapSpace,
    index: Index,
    kill: Option<Kill>,
}

impl Input {
    fn read(world: &SimpleCommunicator, arguments: Arguments) -> Result<Input, String> {
        let nodes = world.size() as u32;
        if let Some(asked) = arguments.nodes.filter(|&asked| asked != nodes) {
            return Err(format!(
                "--nodes {asked}: mpirun has started {nodes} ranks: give mpirun -n {asked}"
            ));
        }
        let path = arguments.trace.display();
        let file = File::open(&arguments.trace).map_err(|error| format!("{path}: {error}"))?;
        let trace = Trace::read(BufReader::new(file), nodes);
        let trace = trace.map_err(|error| format!("{path}: {error}"))?;
        let config = metes_config::resolve(&arguments.kind).map_err(|error| error.to_string())?;
        let (index, limits) = config.one_pool().ok_or_else(|| {
            format!(
                "--kind {}: a node's heap is one pool with boundary tags; name one such as tlsf or best-fit",
                arguments.kind
            )
        })?;
        let lists = Lists::new(&trace, nodes);
        let setting = Setting {
            nodes,
            heap: arguments.heap as u64,
            fabric: FabricKind::Processes,
            kills: &arguments.kill,
        };
        let space = check(&lists, setting).map_err(|error| error.to_string())?;
        let mut kills = arguments.kill.into_iter();
        Ok(Input {
            lists,
            space,
            index: AnyIndex::new(index, limits),
            kill: kills.find(|kill| kill.node == world.rank() as u32),
        })
    }
}

/// Does this rank's part.
fn run(world: &SimpleCommunicator, input: &Input) -> Result<(), NotJoined> {
    let Input {
        lists,
        space,
        index,
        kill,
    } = input;
    let ranks = Ranks::new(world, *space, lists, index.clone())?;
    let life = Life {
        fabric: &ranks,
        board: &ranks,
        lists,
        node: world.rank() as u32,
    };
    let mut watch = Stopwatch::new();
    life.live(*kill, die, &mut watch);
    let ended = ranks.end(lists, &watch);
    match &ended {
        Ok(Some(timed)) => {
            let text = serde_json::to_string_pretty(timed).unwrap_or_default();
            let mut stdout = std::io::stdout().lock();
            let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        }
        Ok(None) => {}
        Err(error) => eprintln!("metes-mesh-mpi: {error}"),
    }
    if ranks.some_died() || ended.is_err() {
        // What MPI ends, it ends with all ranks.
        // SAFETY: all is said, and the system takes back what this process has.
        unsafe { libc::_exit(if ended.is_err() { 2 } else { 0 }) };
    }
    Ok(())
}
