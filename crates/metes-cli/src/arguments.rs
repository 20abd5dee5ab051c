//! The command line.
//!
//! Invariant: every verb has one word, an example and `--json`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use metes_explore::Preference;

use crate::quantity::{positive_size, seconds};

/// Dynamic memory with temporal and spatial guarantees: finds the heap that
/// suits a program, gives it as code, and shows that it does what was said.
///
/// Sizes may be written 4096, 4k, 64KiB or 1MiB. Exit status: 0 done, 1 the
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
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    Tune(Tune),
    Record(Record),
    Profile(Profile),
    Replay(Replay),
    Explore(Explore),
    Bounds(Bounds),
    Emit(Emit),
    Run(Run),
    Report(Report),
    Serve(Serve),
    Trace(Trace),
    Reproduce(Reproduce),
}

/// Find the heap that suits a program, emit it as code, and run the program on it
///
/// Records the program, explores heaps by replay, emits the chosen one as C and
/// Rust, builds it, runs the program once more on it, and compares what was
/// predicted with what was measured. The program runs two times, with pipes for
/// stdout and stderr, and without randomised addresses; a run that differs from the recorded one is recorded and
/// run again, to tell what differs. With --json the program's output goes to
/// stderr. Exit status 1 if what was measured is not what was predicted.
#[derive(Args)]
#[command(after_help = "Example: metes tune --budget 10 -o out -- sqlite3 :memory: 'select 1'")]
pub(crate) struct Tune {
    /// Seconds of exploration
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub(crate) budget: f64,
    /// Directory for trace, report and code
    #[arg(short, long, value_name = "DIR", default_value = "metes-out")]
    pub(crate) output: PathBuf,
    /// Most bytes that the heap may take from the system: heaps above are not chosen
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) heap_limit: Option<u64>,
    /// What matters most
    #[arg(long, value_name = "WHAT", default_value = "balanced")]
    pub(crate) prefer: Prefer,
    /// The process to tune, by number (0 is the command itself, its children
    /// follow) or by program name [default: the command, unless another process
    /// makes more than twice as many requests]
    #[arg(long, value_name = "N|NAME")]
    pub(crate) process: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
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
}

impl From<Prefer> for Preference {
    fn from(prefer: Prefer) -> Preference {
        match prefer {
            Prefer::Balanced => Preference::Balanced,
            Prefer::Footprint => Preference::Footprint,
            Prefer::Speed => Preference::Speed,
            Prefer::Worst => Preference::Worst,
        }
    }
}

/// Record what an unmodified program asks of its heap
///
/// Each process gives a trace of its own: FILE holds that of the command,
/// FILE with a number before its ending those of its children. Exit status is
/// that of the recording, not of the program.
#[derive(Args)]
#[command(after_help = "Example: metes record -o ls.trace.parquet -- ls -l")]
pub(crate) struct Record {
    /// The trace file
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "metes.trace.parquet"
    )]
    pub(crate) output: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
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
  metes replay ls.trace.parquet --heap best-fit:order=fifo --arena 64KiB")]
pub(crate) struct Replay {
    /// A trace file
    pub(crate) trace: PathBuf,
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
    /// One fixed arena of so many bytes instead of one that grows
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) arena: Option<u64>,
}

/// Search for the heaps that suit a trace
///
/// Ctrl-C ends the search and keeps what was found; a second one ends Metes.
#[derive(Args)]
#[command(after_help = "Example: metes explore ls.trace.parquet --budget 10 -o out")]
pub(crate) struct Explore {
    /// A trace file
    pub(crate) trace: PathBuf,
    /// Which heaps: `all`, `constant-time` or `named`
    #[arg(long, value_name = "S", default_value = "all")]
    pub(crate) space: Space,
    /// Seconds
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub(crate) budget: f64,
    /// End after so many configurations; with it, and unless the time runs out
    /// first, results are the same on every machine
    #[arg(long, value_name = "N")]
    pub(crate) configurations: Option<u64>,
    /// Directory for the results
    #[arg(short, long, value_name = "DIR", default_value = "metes-out")]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Space {
    /// Every configuration
    All,
    /// Those in which every operation takes constant time
    ConstantTime,
    /// The named heaps with default parameters
    Named,
}

/// Print the heap size that provably suffices, and the time of each operation
///
/// Exit status 1 if no finite bound is known.
#[derive(Args)]
#[command(
    after_help = "Example: metes bounds --heap tlsf --live 1MiB --max-block 64KiB --min-block 16"
)]
pub(crate) struct Bounds {
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
    /// Most requested bytes live at once (M)
    #[arg(long, value_name = "M", value_parser = positive_size)]
    pub(crate) live: u64,
    /// Largest request (n)
    #[arg(long, value_name = "n", value_parser = positive_size)]
    pub(crate) max_block: u64,
    /// Smallest request (l)
    #[arg(long, value_name = "l", default_value = "1", value_parser = positive_size)]
    pub(crate) min_block: u64,
    /// The program also resizes blocks
    #[arg(long)]
    pub(crate) resizes: bool,
}

/// Write a heap as C and Rust code
#[derive(Args)]
#[command(after_help = "Example: metes emit --heap tlsf:second_level=8 -o out")]
pub(crate) struct Emit {
    /// A heap: a name with parameters, a heap.toml, or a directory with one
    #[arg(long, value_name = "H")]
    pub(crate) heap: String,
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

/// Exchange traces with other tools as text: `op,block,size[,align[,thread]]`
#[derive(Args)]
#[command(after_help = "Example: metes trace export ls.trace.parquet -o ls.csv")]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) action: TraceAction,
}

#[derive(Subcommand)]
pub(crate) enum TraceAction {
    /// Make a trace file of text lines `op,block,size[,align[,thread]]`; op is a, f or r
    #[command(after_help = "Example: metes trace import other.csv -o other.trace.parquet")]
    Import {
        /// The text
        file: PathBuf,
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
}

/// List named experiments, or run one and compare with its paper
///
/// Exit status 1 if a figure contradicts the paper or a bound.
#[derive(Args)]
#[command(after_help = "Example: metes reproduce small-heaps")]
pub(crate) struct Reproduce {
    /// The experiment [default: list them]
    pub(crate) name: Option<String>,
    /// Every case, also those that take minutes
    #[arg(long)]
    pub(crate) full: bool,
}
