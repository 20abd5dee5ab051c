//! The command line.
//!
//! Invariant: every verb has one word, an example and `--json`.

mod compare;
mod curve;
mod device;
mod edge;
mod edge_lab;
mod firmware;
mod guarantee;
mod interleave;
mod leon3;
mod mesh;
mod mission;
mod pages;
mod platform;
mod power;
mod power_explore;
mod power_models;
mod sites;
mod worst;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use metes_explore::engine::{Method, ObjectiveSet, Shard};
use metes_explore::{Over, Preference};
use metes_tune::Turns;

pub(crate) use compare::Compare;
pub(crate) use curve::{Curve, CurveAction};
pub(crate) use device::{Device, DeviceAction, DeviceBench, Fit, Watch};
pub(crate) use edge::{Edge, EdgeAction, EdgeCheck, EdgeDeploy, EdgeHost, EdgeInvoke, EdgeServe};
pub(crate) use edge_lab::{EdgeLab, EdgeRunner};
use firmware::Firmware;
pub(crate) use guarantee::Guarantee;
pub(crate) use interleave::Interleave;
pub(crate) use leon3::{
    Leon3, Leon3Action, Leon3Bound, Leon3Cover, Leon3Engine, Leon3Gdb, Leon3Machine, Leon3Model,
    Leon3Profile, Leon3Run, Leon3Stack, Leon3Trace, Leon3Weight,
};
pub(crate) use mesh::{Mesh, MeshAction, MeshFabric, MeshRun};
pub(crate) use mission::{
    Mission, MissionAction, MissionCheck, MissionFit, MissionHeaps, MissionModel, MissionRun,
    MissionServe, MissionStorm, MissionUnit,
};
pub(crate) use pages::{
    Pages, PagesAction, PagesBench, PagesCompare, PagesOperations, PagesReplay,
};
pub(crate) use platform::{MeshBound, MeshLoad, MeshManager, MeshSimulate, PlatformShape};
pub(crate) use power::{Power, PowerAction, PowerCheck, PowerPlan};
pub(crate) use power_explore::PowerExplore;
pub(crate) use power_models::{PowerApply, PowerFit, PowerMeasure, PowerPredict};
pub(crate) use sites::Sites;
pub(crate) use worst::{Target, Worst};

use crate::quantity::{
    MappedFrom, mapped, objectives, positive_size, seconds, shard, slice, turns,
};

/// Dynamic memory with temporal and spatial guarantees: finds the heap that
/// suits a program, gives it as code, and shows that it does what was said.
///
/// Sizes may be written 4096, 4k, 64 KiB or 1.5MiB, times 30, 90s or 2min. Exit status: 0 done, 1 the
/// thing checked does not hold, 2 bad input.
#[derive(Parser)]
#[command(
    name = "metes",
    version,
    after_help = "Example: metes tune -- python3 script.py"
)]
pub(crate) struct Arguments {
    /// Print one JSON document on stdout, everything else on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Replace also files that Metes did not write, or that were changed since
    #[arg(long, global = true)]
    pub(crate) replace: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    Tune(Tune),
    Record(Record),
    Sites(Sites),
    Profile(Profile),
    Replay(Replay),
    Explore(Explore),
    Compare(Compare),
    Interleave(Interleave),
    Evaluate(Evaluate),
    Merge(Merge),
    Bounds(Bounds),
    Worst(Worst),
    Emit(Emit),
    Run(Run),
    Report(Report),
    Serve(Serve),
    Trace(Trace),
    Device(Device),
    Pages(Pages),
    Leon3(Leon3),
    Mesh(Mesh),
    Mission(Mission),
    Edge(Edge),
    Power(Power),
    Curve(Curve),
    Reproduce(Reproduce),
    Completions(Completions),
    Man(Man),
}

/// Find the heap that suits a program, emit it as code, and run the program on it
///
/// Records the program, explores heaps by replay, emits the chosen one as C and
/// Rust, builds it, runs the program once more on it, and compares what was
/// predicted with what was measured. The program runs two times, with pipes for
/// stdout and stderr, and without randomised addresses; a run that differs from the recorded one is recorded and
/// run again, to tell what differs. A program that is quick runs on today's allocators, too (--beside). With --json the program's output goes to
/// stderr. Exit status 1 if what was measured is not what was predicted.
///
/// A WebAssembly module (wasm32-wasip1) is tuned likewise: it is rewritten so that it tells of its requests, heaps are
/// replayed with words of 32 bits, and the chosen one takes the place of the module's own allocator, in DIR/tuned.wasm.
///
/// With --target the program is an image for a machine without an operating system; one for a Cortex-M3 has the recorder
/// in it (metes emit --recorder). --build CMD links it with the emitted heap: the shell runs CMD in the current directory, once to
/// try it and then for the heap. It compiles bare.c and heap.c of the folder $METES_HEAP_CODE, with the recorder in the folder $METES_RECORDER
/// unless that is empty, and leaves the image in the file $METES_IMAGE; the one without the recorder is DIR/tuned.elf.
#[derive(Args)]
#[command(after_help = "Examples:
  metes tune --budget 10 -o out -- sqlite3 :memory: 'select 1'
  metes tune --guarantee 8x --live 1MiB --max-block 4KiB -- ./program
  metes tune --beside 9 -- ./program
  metes tune --budget 10 -o out -- module.wasm ARGUMENT
  metes tune --target cortex-m3 --build 'examples/firmware/make newlib' -- words.elf
  metes tune --budget 60 -o out --commands suite.txt
  metes tune --budget 60 -o out traces/")]
pub(crate) struct Tune {
    /// Traces, or directories of them, instead of a program: one heap for all is chosen and emitted
    #[arg(value_name = "TRACE", conflicts_with_all = ["commands", "process"])]
    pub(crate) traces: Vec<PathBuf>,
    /// A file with one command a line: one heap for all is chosen and emitted, and each runs on it.
    /// Words are split as by a shell, `< FILE` gives an input; what needs more is written sh -c '…'
    #[arg(long, value_name = "FILE", conflicts_with = "process")]
    pub(crate) commands: Option<PathBuf>,
    /// Also record the call stack of each request: who allocates, for `metes sites DIR/program.trace.parquet`
    #[arg(long, conflicts_with_all = ["traces", "commands"])]
    pub(crate) sites: bool,
    /// Which memory of several runs counts
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub(crate) over: WhichMemory,
    /// Seconds of exploration: all replays; recording, building and running the
    /// program take their own time
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub(crate) budget: f64,
    /// Directory for trace, report and code
    #[arg(short, long, value_name = "DIR", default_value = "metes-out")]
    pub(crate) output: PathBuf,
    /// Most bytes that the heap may take from the system: heaps above are not chosen
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) heap_limit: Option<u64>,
    /// Blocks of at least so many bytes have pages of their own, in every heap that is
    /// compared and in the one that is emitted; `no`: none has
    #[arg(long, value_name = "SIZE|no", default_value = "128KiB", value_parser = mapped)]
    pub(crate) mapped: MappedFrom,
    /// When pages of freed blocks that have pages of their own go back: retain, bounded(PAGES),
    /// graveyard, immediate. Written into the chosen heap, for `metes run`; decides nothing
    #[arg(long, value_name = "POLICY")]
    pub(crate) pages: Option<metes_config::Pages>,
    /// What matters most
    #[arg(long, value_name = "WHAT", default_value = "balanced")]
    pub(crate) prefer: Prefer,
    /// What heaps are searched for: footprint,cycles,worst, and guarantee beside them
    /// [default: footprint,cycles,worst]
    #[arg(long, value_name = "LIST", value_parser = objectives)]
    pub(crate) objectives: Option<ObjectiveSet>,
    #[command(flatten)]
    pub(crate) guarantee: Guarantee,
    /// Runs on glibc's allocator, the chosen heap, and whatever of jemalloc, mimalloc, tcmalloc and snmalloc is
    /// installed, each, by turns: 1 to 99; `no`: none [default: 5, 3 or 1, within a third of the exploration's time]
    #[arg(long, value_name = "N|no", value_parser = turns, conflicts_with_all = ["traces", "commands"])]
    pub(crate) beside: Option<Turns>,
    /// The process to tune, by number (0 is the command itself, its children
    /// follow) or by program name [default: the command, unless another process
    /// makes more than twice as many requests]
    #[arg(long, value_name = "N|NAME")]
    pub(crate) process: Option<String>,
    /// The machine that the program is for
    #[arg(long, value_enum, value_name = "TARGET", default_value = "host")]
    pub(crate) target: TuneTarget,
    /// What links an image with the emitted heap, for the shell; without it the heap is emitted and not run
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) build: Option<String>,
    /// Most seconds that an image may run, each time
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds)]
    pub(crate) run_seconds: f64,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present_any = ["traces", "commands"],
        conflicts_with_all = ["traces", "commands"],
        value_name = "CMD"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TuneTarget {
    /// This machine
    Host,
    /// Arm Cortex-M3, under QEMU
    CortexM3,
    /// LEON3, SPARC V8, in the simulator
    Leon3,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhichMemory {
    /// The mean footprint, of heaps whose largest is at most 5 % above the least
    Both,
    /// The largest footprint
    Worst,
    /// The mean footprint
    Mean,
}

impl From<WhichMemory> for Over {
    fn from(which: WhichMemory) -> Over {
        match which {
            WhichMemory::Both => Over::Both,
            WhichMemory::Worst => Over::Worst,
            WhichMemory::Mean => Over::Mean,
        }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Prefer {
    /// Little memory in constant time, at most half as slow again as the fastest
    Balanced,
    /// Little memory, whatever the time
    Footprint,
    /// Little time in the mean, whatever the memory
    Speed,
    /// The least time of the slowest operation
    Worst,
    /// The least memory that is proved to suffice
    Guarantee,
}

impl From<Prefer> for Preference {
    fn from(prefer: Prefer) -> Preference {
        match prefer {
            Prefer::Balanced => Preference::Balanced,
            Prefer::Footprint => Preference::Footprint,
            Prefer::Speed => Preference::Speed,
            Prefer::Worst => Preference::Worst,
            Prefer::Guarantee => Preference::Guarantee,
        }
    }
}

/// Record what an unmodified program asks of its heap
///
/// Each process gives a trace of its own: FILE holds that of the command,
/// FILE with a number before its ending those of its children. Exit status is
/// that of the recording, not of the program: also of one that was ended by a
/// signal sent to Metes, which is passed on. What it did until then is written.
#[derive(Args)]
#[command(after_help = "Examples:
  metes record -o ls.trace.parquet -- ls -l
  metes record --sites -o ls.trace.parquet -- ls -l
  metes record --seconds 60 -o server.trace.parquet -- ./server
  metes record --accesses -o ls.trace.parquet -- ls -l
  metes record --accesses --touches ls.touches -o ls.trace.parquet -- ls -l
  metes record --target leon3 -o firmware.trace.parquet -- firmware.elf
  metes record --target cortex-m3 -o firmware.trace.parquet -- firmware.elf")]
pub(crate) struct Record {
    /// The trace file
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "metes.trace.parquet"
    )]
    pub(crate) output: PathBuf,
    /// Also record the call stack of each request: who allocates, for `metes sites`
    #[arg(long, conflicts_with = "accesses")]
    pub(crate) sites: bool,
    /// Also count the program's reads and writes of each block, in a second,
    /// some 15 to 80 times slower run under QEMU (package qemu-user)
    #[arg(long)]
    pub(crate) accesses: bool,
    /// Bytes of the words that accesses are counted in: 4 or 8
    #[arg(long, value_name = "W", default_value = "4", requires = "accesses", value_parser = ["4", "8"])]
    pub(crate) word: String,
    /// Write every single access to a file, too
    #[arg(long, value_name = "FILE", requires = "accesses")]
    pub(crate) every_access: Option<PathBuf>,
    /// Write requests and the first access to each slice of each block to a file,
    /// too: a touch trace (docs/accesses.md)
    #[arg(long, value_name = "FILE", requires = "accesses")]
    pub(crate) touches: Option<PathBuf>,
    /// Bytes of a slice: a power of two from 16 to 1 GiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", requires = "touches", value_parser = slice)]
    pub(crate) slice: u64,
    /// The emulator [default: the one of the program's machine, as qemu-x86_64]
    #[arg(long, value_name = "PROGRAM", requires = "accesses")]
    pub(crate) qemu: Option<OsString>,
    /// Run the program under QEMU alone: nothing checks the count, and the
    /// trace has no times
    #[arg(long, requires = "accesses")]
    pub(crate) once: bool,
    /// Ask the program to end, by SIGTERM, when so many seconds have passed: a server, say.
    /// One that has not ended ten seconds later is killed; what it did until then is written
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "accesses")]
    pub(crate) seconds: Option<f64>,
    /// Record nothing until this signal comes to the process of metes, and stop when it comes again, and so on: USR1 or USR2.
    /// Each time is a file of its own: FILE with part0001, part0002 and so on in its name
    #[arg(
        long,
        value_name = "SIGNAL",
        ignore_case = true,
        conflicts_with = "accesses"
    )]
    pub(crate) on_signal: Option<ToggleSignal>,
    /// Begin another file, a trace by itself, whenever one has reached this size: FILE with part0001 and so on in its name
    #[arg(long, value_name = "SIZE", value_parser = positive_size, conflicts_with = "accesses")]
    pub(crate) rotate: Option<u64>,
    /// Keep only the last N of those files
    #[arg(long, value_name = "N", requires = "rotate", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Become the program, with a recorder that records nothing until a `metes record --attach` asks for it
    #[arg(long, conflicts_with_all = ["accesses", "attach", "seconds", "on_signal", "rotate", "output"])]
    pub(crate) dormant: bool,
    /// Record the process with this number, which was started with --dormant, until it ends, --seconds are over, or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with_all = ["accesses", "sites", "on_signal", "command"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attach: Option<u32>,
    /// Where CMD runs: `host`; `leon3`, for an image (ELF, SPARC) that a simulator
    /// runs; times are cycles as nanoseconds then, threads are cores; `cortex-m3`, for an image that has the recorder of
    /// `metes emit --recorder` in it, under QEMU
    #[arg(long, value_name = "TARGET", default_value = "host")]
    pub(crate) target: RecordTarget,
    #[command(flatten)]
    pub(crate) firmware: Firmware,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "attach", value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A signal that begins and stops a recording.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToggleSignal {
    Usr1,
    Usr2,
}

impl ToggleSignal {
    /// Its number.
    pub(crate) fn number(self) -> i32 {
        match self {
            ToggleSignal::Usr1 => libc::SIGUSR1,
            ToggleSignal::Usr2 => libc::SIGUSR2,
        }
    }

    /// Its name, as `kill` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ToggleSignal::Usr1 => "USR1",
            ToggleSignal::Usr2 => "USR2",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RecordTarget {
    /// This machine
    Host,
    /// LEON3, SPARC V8
    Leon3,
    /// Arm Cortex-M3
    CortexM3,
}

/// Show what a trace asks of a heap: sizes, lifespans, bursts, live bytes
#[derive(Args)]
#[command(after_help = "Example: metes profile ls.trace.parquet")]
pub(crate) struct Profile {
    /// A trace file
    pub(crate) trace: PathBuf,
}

/// Predict what a heap makes of a trace, without touching memory
///
/// Exit status 1 if a request fails.
#[derive(Args)]
#[command(after_help = "Examples:
  metes replay ls.trace.parquet --heap tlsf
  metes replay ls.trace.parquet --heap best-fit:order=fifo --arena 64KiB
  metes replay ls.trace.parquet --heap heap.toml --levels scratchpad=64KiB,main=1MiB..8MiB")]
pub(crate) struct Replay {
    /// A trace file
    pub(crate) trace: PathBuf,
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
    /// One fixed arena of so many bytes instead of one that grows
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) arena: Option<u64>,
    /// Memory levels, the nearest first, for energy and time (else those of a
    /// heap.toml that gives their energies): NAME=SIZE or NAME=SIZE..SIZE, each with @TABLE for other figures than those of an SRAM
    /// at 130 nm; or a file (docs/energy.md)
    #[arg(long, value_name = "LEVELS", conflicts_with = "arena")]
    pub(crate) levels: Option<String>,
    /// Energy and time of the heap's records alone, without the program's accesses
    #[arg(long, conflicts_with = "arena")]
    pub(crate) records_only: bool,
}

/// Search for the heaps that suit a trace
///
/// A space of its own is described by a TOML file; `paper` is the one of the
/// paper's packet study. Such a space is explored whole where the budget lets
/// it, in units that are kept as they are done: Ctrl-C loses nothing, and the
/// same command goes on where it was. The results are in results.parquet,
/// exploration.json and pareto/.
#[derive(Args)]
#[command(after_help = "Examples:
  metes explore ls.trace.parquet --budget 10 -o out
  metes explore ls.trace.parquet --space paper -o out
  metes explore ls.trace.parquet --space my.toml --objectives footprint,worst
  metes explore ls.trace.parquet --space my.toml --objectives footprint,guarantee --guarantee 16x
  metes explore ls.trace.parquet --space my.toml --search nsga2 --configurations 2000
  metes explore ls.trace.parquet --space paper --shard 1/4 -o part1
  metes explore small.trace.parquet large.trace.parquet -o out
  metes explore traces/ --over worst -o out")]
pub(crate) struct Explore {
    /// A trace file; of several, or of a directory of them, one heap for all is searched for
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Which memory of several runs counts
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub(crate) over: WhichMemory,
    /// Which heaps: `all`, `constant-time`, `named`, `paper`, or a space.toml
    #[arg(long, value_name = "S", default_value = "all")]
    pub(crate) space: String,
    /// Seconds [default: 30; 600 for a described space]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) budget: Option<f64>,
    /// End after so many configurations; with it, and unless the time runs out
    /// first, results are the same on every machine
    #[arg(long, value_name = "N")]
    pub(crate) configurations: Option<u64>,
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", default_value = "metes-out")]
    pub(crate) output: PathBuf,
    /// Blocks of at least so many bytes have pages of their own, as on a host; `no`: none has,
    /// as where there is no system that maps. Described spaces have none [default: 128KiB]
    #[arg(long, value_name = "SIZE|no", value_parser = mapped)]
    pub(crate) mapped: Option<MappedFrom>,
    /// What heaps are searched for: footprint, accesses, energy, time, cycles,
    /// worst, guarantee [default: footprint,accesses, with --levels also energy and
    /// time, with what is asked of guarantees also guarantee]. Without a described space
    /// footprint,cycles,worst, and guarantee beside them
    #[arg(long, value_name = "LIST", value_parser = objectives)]
    pub(crate) objectives: Option<ObjectiveSet>,
    #[command(flatten)]
    pub(crate) guarantee: Guarantee,
    /// Memory levels, for energy and time: NAME=SIZE, ... or a file
    #[arg(long, value_name = "LEVELS")]
    pub(crate) levels: Option<String>,
    /// How a described space is explored [default: exhaustive where the budget
    /// lets it, else local]
    #[arg(long, value_name = "HOW")]
    pub(crate) search: Option<Search>,
    /// What chance decides in a search
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Worker threads [default: one a core]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Do the units of one of n parts only, for `metes merge`
    #[arg(long, value_name = "i/n", value_parser = shard)]
    pub(crate) shard: Option<Shard>,
    /// Forget what another exploration left in the directory
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Replay every configuration to its end, also those that are beaten
    #[arg(long)]
    pub(crate) to_the_end: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Search {
    /// Every configuration
    Exhaustive,
    /// Pareto local search
    Local,
    /// NSGA-II
    Nsga2,
    /// Anywhere
    Random,
}

impl From<Search> for Method {
    fn from(search: Search) -> Method {
        match search {
            Search::Exhaustive => Method::Exhaustive,
            Search::Local => Method::Local,
            Search::Nsga2 => Method::Nsga2,
            Search::Random => Method::Random,
        }
    }
}

/// Replay single configurations of a described space, for searches of your own
///
/// Without numbers, shows the parameters of the space and their values. With
/// --lines, each line of standard input asks for a configuration, by number (17)
/// or by values ({"values": {"list.fit": "best"}}; what is left out has its first
/// value), and each line of standard output answers with its values and metrics,
/// after a first one about the space. A question without an answer gets a line
/// with `error`, and makes the exit status 2.
#[derive(Args)]
#[command(after_help = "Examples:
  metes evaluate ls.trace.parquet --space paper
  metes evaluate ls.trace.parquet --space my.toml 17 42
  echo 17 | metes evaluate ls.trace.parquet --space my.toml --lines")]
pub(crate) struct Evaluate {
    /// A trace file
    pub(crate) trace: PathBuf,
    /// Numbers of configurations
    #[arg(value_name = "N")]
    pub(crate) numbers: Vec<u64>,
    /// Which heaps: `paper`, or a space.toml
    #[arg(long, value_name = "S")]
    pub(crate) space: String,
    /// Memory levels, for energy and time: NAME=SIZE, ... or a file
    #[arg(long, value_name = "LEVELS")]
    pub(crate) levels: Option<String>,
    /// Answer a line of JSON for each line of standard input
    #[arg(long, conflicts_with = "numbers")]
    pub(crate) lines: bool,
    #[command(flatten)]
    pub(crate) guarantee: Guarantee,
}

/// Join the parts of an exploration that was done in shards
///
/// The results are those of one run, byte for byte.
#[derive(Args)]
#[command(after_help = "Example: metes merge part1 part2 part3 -o out")]
pub(crate) struct Merge {
    /// Directories that `metes explore --shard` wrote
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", default_value = "metes-out")]
    pub(crate) output: PathBuf,
    /// The trace file [default: where it was]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Forget what another exploration left in the directory
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// Print the heap size that provably suffices, and the time of each operation; or bound the live
/// memory of a trace, or delay and backlog of flows through servers
///
/// With --trace the least bound on the live bytes that the arrivals, releases and lifetimes of the
/// trace support: it holds for this trace. With --declared it is of every program that keeps to
/// what is declared. Exit status 1 if no finite bound is known, or the trace does not keep to what is
/// declared.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  metes bounds --heap tlsf --live 1MiB --max-block 64KiB --min-block 16\n  \
                  metes bounds --tables\n  \
                  metes bounds --trace out/trace.parquet --heap tlsf\n  \
                  metes bounds --tandem network.toml"
)]
pub(crate) struct Bounds {
    /// The declared time of every heap instead, as in the tables of compact-fit's slides
    #[arg(long, conflicts_with_all = ["heap", "live", "max_block", "min_block", "resizes", "trace", "tandem"])]
    pub(crate) tables: bool,
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H", required_unless_present_any = ["tables", "trace", "tandem"])]
    pub(crate) heap: Option<String>,
    /// Most requested bytes live at once (M)
    #[arg(long, value_name = "M", value_parser = positive_size, required_unless_present_any = ["tables", "trace", "tandem"])]
    pub(crate) live: Option<u64>,
    /// Largest request (n)
    #[arg(long, value_name = "n", value_parser = positive_size, required_unless_present_any = ["tables", "trace", "tandem"])]
    pub(crate) max_block: Option<u64>,
    /// Smallest request (l)
    #[arg(long, value_name = "l", default_value = "1", value_parser = positive_size)]
    pub(crate) min_block: u64,
    /// The program also resizes blocks
    #[arg(long)]
    pub(crate) resizes: bool,
    /// A trace file, of which to bound the live bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["live", "max_block", "min_block", "resizes", "tandem"])]
    pub(crate) trace: Option<PathBuf>,
    /// What time is in the trace [default: events, or what --declared says]
    #[arg(long, value_enum, value_name = "AXIS", requires = "trace")]
    pub(crate) axis: Option<BoundsAxis>,
    /// How requests are divided into classes
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "powers",
        requires = "trace"
    )]
    pub(crate) classes: BoundsClasses,
    /// Window lengths tried in each doubling, where there are too many for all
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u64).range(1..=1024), requires = "trace")]
    pub(crate) resolution: u64,
    /// A contract in TOML: burst, rate and lifetime of each class
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(crate) declared: Option<PathBuf>,
    /// Write the contract that the trace just keeps
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(crate) declare: Option<PathBuf>,
    /// Write arrival and release curves as JSON
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(crate) curves: Option<PathBuf>,
    /// Servers and the flows that cross them, in TOML: bound their delay and backlog
    #[arg(long, value_name = "FILE", conflicts_with_all = ["heap", "live", "max_block", "min_block", "resizes"])]
    pub(crate) tandem: Option<PathBuf>,
    /// Most pieces of curves, or pairs of them, that one operation on --tandem may look at; a larger
    /// one is refused before it begins
    #[arg(long, value_name = "N", requires = "tandem", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
}

/// What time is in a trace.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum BoundsAxis {
    /// The number of the event
    Events,
    /// The recorded time
    Nanoseconds,
}

/// How requests are divided.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum BoundsClasses {
    /// By the next power of two
    Powers,
    /// Each size apart
    Sizes,
    /// By the size of the block with boundary tags
    Blocks,
}

/// Write a heap as C and Rust code
#[derive(Args)]
#[command(after_help = "Example: metes emit --heap tlsf:second_level=8 -o out")]
pub(crate) struct Emit {
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H", required_unless_present = "recorder")]
    pub(crate) heap: Option<String>,
    /// Write the recorder for firmware, one C file and ports of it, instead of a heap
    #[arg(long, conflicts_with_all = ["heap", "build"])]
    pub(crate) recorder: bool,
    /// Directory for the code
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Build the emitted C as a library that replaces malloc
    #[arg(long)]
    pub(crate) build: bool,
}

/// Run a program on a heap
///
/// The program keeps its streams; exit status is the program's. What its heap
/// took is printed to stderr. With --json the program's stdout goes to stderr.
#[derive(Args)]
#[command(after_help = "Example: metes run --heap best-fit -- ls -l")]
pub(crate) struct Run {
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
    /// Say what the program frees wrongly, and go on instead of ending it
    #[arg(long)]
    pub(crate) ignore_bad_frees: bool,
    /// Say nothing of a heap whose operations take no constant time
    #[arg(long)]
    pub(crate) any_time: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Render the report of an earlier `tune` or `explore` again, or export its results
#[derive(Args)]
#[command(after_help = "Examples:
  metes report metes-out
  metes report metes-out --explorer -o explorer.html
  metes report metes-out --export xlsx")]
pub(crate) struct Report {
    /// The directory that it wrote
    pub(crate) directory: PathBuf,
    /// Write the explorer of all configurations as one HTML file
    #[arg(long, conflicts_with = "export")]
    pub(crate) explorer: bool,
    /// Write all configurations for another tool
    #[arg(long, value_name = "FORM")]
    pub(crate) export: Option<Export>,
    /// The file to write [default: explorer.html or results.FORM in the directory]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Export {
    /// Comma-separated values
    Csv,
    /// A script and its data
    Gnuplot,
    /// A workbook
    Xlsx,
}

/// Show the explorer of an exploration's results on this machine
///
/// Prints the address and answers until Ctrl-C. Only this machine is answered.
#[derive(Args)]
#[command(after_help = "Example: metes serve metes-out --port 8080")]
pub(crate) struct Serve {
    /// The directory that `explore` wrote
    pub(crate) directory: PathBuf,
    /// Port to listen on; 0 takes any free one
    #[arg(long, value_name = "N", default_value = "4700")]
    pub(crate) port: u16,
}

/// Generate traces, or exchange them with other tools as text
#[derive(Args)]
#[command(after_help = "Example: metes trace export ls.trace.parquet -o ls.csv")]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) action: TraceAction,
}

/// A foreign form of traces.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Foreign {
    /// Lines of operations
    Text,
    /// A memory snapshot of PyTorch
    Pytorch,
    /// A replay log of RMM
    Rmm,
    /// What the recorder of `metes emit --recorder` sent from a target, or memory that its ring lies in
    Target,
}

#[derive(Subcommand)]
pub(crate) enum TraceAction {
    /// Make a trace file of a foreign one
    ///
    /// Known are text lines `op,block,size[,align[,thread[,reads,writes]]]` with op a, f, r or x;
    /// memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`); replay logs of RMM; what
    /// the recorder for firmware sent, or a dump of the memory that its ring lies in.
    #[command(after_help = "Example: metes trace import snapshot.pickle -o training.trace.parquet")]
    Import {
        /// The file
        file: PathBuf,
        /// What it is [default: what it begins like]
        #[arg(long, value_name = "FORM")]
        format: Option<Foreign>,
        /// The device of a snapshot, where several have a history
        #[arg(long, value_name = "N")]
        device: Option<usize>,
        /// The trace file
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write a trace as text
    #[command(after_help = "Example: metes trace export ls.trace.parquet -o ls.csv")]
    Export {
        /// A trace file
        trace: PathBuf,
        /// The text [default: stdout]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check a touch trace, and say what is in it
    #[command(after_help = "Example: metes trace touches ls.touches")]
    Touches {
        /// A touch trace: lines `a,BLOCK,SIZE[,ALIGN]`, `f,BLOCK`, `r,BLOCK,OFFSET` and `w,BLOCK,OFFSET`
        file: PathBuf,
    },
    /// Make the trace of a case study, with the program's accesses
    #[command(after_help = "Examples:
  metes trace generate packets -o packets.trace.parquet --capture packets.pcap
  metes trace generate touches -o synthetic.touches --actions 100000 --largest 256KiB")]
    Generate {
        /// Which
        case: Case,
        /// The trace file
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Also write the packets as a capture, for a program to forward
        #[arg(long, value_name = "FILE")]
        capture: Option<PathBuf>,
        /// How many packets
        #[arg(long, value_name = "N", default_value = "12000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        packets: u32,
        /// What orders the packets' sizes and draws their bursts, or draws actions
        #[arg(long, value_name = "N", default_value = "1")]
        seed: u64,
        /// How many actions there are in touches [default: 1000000]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        actions: Option<u64>,
        /// Largest block of touches; sizes are drawn evenly from 1 B on [default: 4MiB]
        #[arg(long, value_name = "SIZE", value_parser = positive_size)]
        largest: Option<u64>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Network packets, buffered first in, first out
    Packets,
    /// A still image, decoded by wavelets
    Texture,
    /// Random allocations, frees, reads and writes: a touch trace, as text
    Touches,
}

/// List named experiments, or run one and compare with its paper
///
/// Exit status 1 if something that is checked does not hold: a bound, an order of
/// heaps, what a paper concludes. A figure that differs from a paper's stands beside
/// it, with the ratio.
#[derive(Args)]
#[command(after_help = "Example: metes reproduce small-heaps")]
pub(crate) struct Reproduce {
    /// The experiment [default: list them]
    pub(crate) name: Option<String>,
    /// Every case, also those that take minutes
    #[arg(long)]
    pub(crate) full: bool,
    /// Only so much as takes seconds: a part of the space, fewer requests
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Also write rows and pictures as a page that opens from disk
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Measurements of `dvfs`: cpu_mhz, memory_mhz, power_w, and energy_j or time_s
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) data: Option<PathBuf>,
}

/// Print what makes a shell complete verbs and options
#[derive(Args)]
#[command(
    after_help = "Example: metes completions bash > ~/.local/share/bash-completion/completions/metes"
)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages, one a verb
#[derive(Args)]
#[command(after_help = "Example: metes man -o ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The directory for them
    #[arg(short, long, value_name = "DIR", default_value = "man1")]
    pub(crate) output: PathBuf,
}
