//! `metes-bench`: Metes beside its peers, in instructions, ticks, nanoseconds
//! and bytes.
//!
//! Every measurement runs all allocators in one process on the same sequences
//! of requests. Instructions and bytes are exact and repeatable; times are only
//! compared within one run.

mod arena;
mod bounds;
mod device;
mod gate;
mod instructions;
mod listing;
mod misuse;
mod peer;
mod peers;
mod player;
mod random;
mod report;
mod reservation;
mod security;
#[cfg(test)]
mod tests;
mod throughput;
mod ticks;
mod trace;
mod versions;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::json;

use peer::{Kind, Peer};
use reservation::Reservation;
use workload::Workload;

/// What can go wrong; each names the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no heap is named '{name}'; known are {known}")]
    UnknownHeap { name: String, known: String },
    #[error("{0}")]
    Device(String),
    #[error("no workload is named '{name}'; known are mix, emb, lifo, equal")]
    UnknownWorkload { name: String },
    #[error("{}, line {line}: {why}; expected op,block,size[,align[,thread]]", path.display())]
    Trace {
        path: PathBuf,
        line: usize,
        why: String,
    },
    #[error("{}: {why}; `gate --update` writes it anew", path.display())]
    Table { path: PathBuf, why: String },
    #[error("cannot reserve memory: {0}; allow 1 GiB of address space per heap (ulimit -v)")]
    Memory(std::io::Error),
    #[error("cannot catch SIGTRAP: {0}; run outside a debugger")]
    Step(std::io::Error),
    #[error("{heap} on {workload}: {why}; leave that heap or workload out")]
    Lines {
        heap: String,
        workload: String,
        why: metes_step::Untold,
    },
    #[error("ratios are to rlsf, which is not among the heaps chosen; add --heap rlsf")]
    NoBaseline,
    #[error("{heap} cannot play {workload}: {why}; choose another workload")]
    Unplayable {
        heap: String,
        workload: String,
        why: String,
    },
    #[error("cannot disassemble: {why}; install binutils")]
    Disassembly { why: String },
    #[error("this build has no resize and no alignment; build without the feature plain")]
    Plain,
    #[error(
        "the preload library is not at {}; cargo build --release -p metes-preload builds it",
        .0.display()
    )]
    NoLibrary(PathBuf),
    #[error("cannot run this program again: {0}")]
    Program(std::io::Error),
    #[error("there is no program {number}; there are {count}")]
    UnknownProgram { number: usize, count: usize },
    #[error("this build is not optimised, its figures mean nothing; use cargo run --profile bench")]
    Unoptimised,
}

#[derive(Parser)]
#[command(name = "metes-bench", version, about = "Metes beside its peers")]
struct Arguments {
    /// Print one JSON document instead of tables.
    #[arg(long, global = true)]
    json: bool,
    /// Only these heaps (repeatable); all if absent.
    #[arg(long = "heap", global = true)]
    heaps: Vec<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Exact instructions and cache lines per call, by single-stepping.
    Instructions {
        /// Only these workloads (repeatable): mix, emb, lifo.
        #[arg(long = "workload")]
        workloads: Vec<String>,
        /// Allocations measured per workload, and as many frees.
        #[arg(long, default_value_t = 1000)]
        operations: usize,
        /// Instructions stepped per heap and workload before giving up.
        #[arg(long, default_value_t = 600_000)]
        budget: u64,
        /// Bytes of the arena, for heaps whose depth follows it.
        #[arg(long, default_value_t = reservation::LENGTH)]
        arena: usize,
    },
    /// Instructions that no call can exceed, by the longest path through the code.
    Bounds,
    /// The longest calls of a heap, instruction by instruction.
    Path {
        /// The heap.
        heap: String,
        /// The workload: mix, emb or lifo.
        workload: String,
        /// Allocations played, and as many frees.
        #[arg(long, default_value_t = 2000)]
        operations: usize,
    },
    /// Ticks of the time-stamp counter per call.
    Ticks {
        /// Allocations per workload, and as many frees.
        #[arg(long, default_value_t = 5000)]
        operations: usize,
        /// Replays, of which each call keeps its minimum.
        #[arg(long, default_value_t = 9)]
        replays: usize,
    },
    /// Nanoseconds per call, heaps taking turns.
    Throughput {
        /// Allocations per round, and as many frees.
        #[arg(long, default_value_t = 10_000)]
        operations: usize,
        /// Turns of each heap.
        #[arg(long, default_value_t = 15)]
        rounds: usize,
    },
    /// Smallest arena that completes a workload or trace.
    Arena {
        /// Traces in CSV: `op,block,size[,align[,thread]]`.
        traces: Vec<PathBuf>,
    },
    /// Fails (exit 1) if a figure of our heaps has grown.
    Gate {
        /// Write the table instead.
        #[arg(long)]
        update: bool,
        /// The committed table.
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/arena-ratios.toml"))]
        table: PathBuf,
        /// Directory of the committed traces.
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/traces"))]
        traces: PathBuf,
    },
    /// Plays a workload and nothing else, for an outside instrument.
    Play {
        /// The heap.
        heap: String,
        /// The workload: mix, emb or lifo.
        workload: String,
        /// Allocations measured, and as many frees.
        #[arg(long, default_value_t = 2000)]
        operations: usize,
        /// Stop after the setup.
        #[arg(long)]
        setup_only: bool,
    },
    /// Programs that do one bad thing: found, obeyed or crashed, by heap (exit 1 if the
    /// hardened heap misses one that it always finds).
    Security {
        /// The preload library; that beside this program if absent.
        #[arg(long)]
        library: Option<PathBuf>,
    },
    /// Device heaps: arenas, instructions, refusals, times, host memory. `--heap` takes the
    /// names of `metes device bench` and of the peers offset-allocator and range-alloc.
    Device {
        /// A trace file to measure on, too (repeatable).
        #[arg(long = "trace", value_name = "FILE")]
        traces: Vec<PathBuf>,
        /// Only so much as takes seconds.
        #[arg(long)]
        quick: bool,
    },
    /// Does one bad thing, with whatever malloc there is.
    #[command(hide = true)]
    Misuse {
        /// Number of the program.
        number: usize,
        /// Bytes of the block.
        size: usize,
    },
    /// The allocators of this build and their versions.
    Heaps,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("metes-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let json = arguments.json;
    let peers = match arguments.command {
        // Has heaps of its own.
        Command::Device { .. } => Vec::new(),
        _ => peers::named(&arguments.heaps)?,
    };
    match arguments.command {
        Command::Instructions {
            workloads,
            operations,
            budget,
            arena,
        } => {
            let workloads = chosen(&workloads, operations)?;
            instructions_command(json, &peers, &workloads, budget, arena)
        }
        Command::Bounds => {
            let bounds: Vec<_> = peers.iter().map(bounds::of).collect();
            if json {
                println!(
                    "{}",
                    json!({ "heaps": versions::origins(&peers), "bounds": bounds })
                );
            } else {
                print_origins(&peers);
                print!("{}", bounds::table(&bounds).render());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Path {
            heap,
            workload,
            operations,
        } => {
            let mut memory = Reservation::new().map_err(Error::Memory)?;
            let peer = one(&heap)?;
            let workload = &chosen(&[workload], operations)?[0];
            let (paths, visits) = instructions::paths(&peer, workload, &mut memory)?;
            print!("{}", listing::render(&paths, &visits)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Ticks {
            operations,
            replays,
        } => ticks_command(json, &peers, operations, replays),
        Command::Throughput { operations, rounds } => {
            throughput_command(json, &peers, operations, rounds)
        }
        Command::Arena { traces } => arena_command(json, &peers, &traces),
        Command::Gate {
            update,
            table,
            traces,
        } => gate_command(update, &table, &traces),
        Command::Play {
            heap,
            workload,
            operations,
            setup_only,
        } => play_command(
            &one(&heap)?,
            &chosen(&[workload], operations)?[0],
            setup_only,
        ),
        Command::Security { library } => security_command(json, library),
        Command::Device { traces, quick } => {
            device::command(json, &arguments.heaps, &traces, quick)
        }
        Command::Misuse { number, size } => match misuse::PROGRAMS.get(number) {
            Some(program) => misuse::run(program, size),
            None => Err(Error::UnknownProgram {
                number,
                count: misuse::PROGRAMS.len(),
            }),
        },
        Command::Heaps => {
            if json {
                println!("{}", json!({ "heaps": versions::origins(&peers) }));
            } else {
                print_origins(&peers);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn one(name: &str) -> Result<Peer, Error> {
    Ok(peers::named(&[name.to_owned()])?[0])
}

/// The timed workloads of these names; all if none.
fn chosen(names: &[String], operations: usize) -> Result<Vec<Workload>, Error> {
    let workloads = workload::timed(operations);
    if let Some(name) = names
        .iter()
        .find(|name| !workloads.iter().any(|w| w.name == **name))
    {
        return Err(Error::UnknownWorkload { name: name.clone() });
    }
    Ok(workloads
        .into_iter()
        .filter(|w| names.is_empty() || names.contains(&w.name))
        .collect())
}

fn print_origins(peers: &[Peer]) {
    println!("Allocators\n");
    for origin in versions::origins(peers) {
        println!("- {}: {} ({})", origin.heap, origin.origin, origin.kind);
    }
    println!();
}

fn instructions_command(
    json: bool,
    peers: &[Peer],
    workloads: &[Workload],
    budget: u64,
    arena: usize,
) -> Result<ExitCode, Error> {
    let mut memory = Reservation::new().map_err(Error::Memory)?;
    memory.shorten(arena);
    let mut measurements = Vec::new();
    for peer in peers {
        for workload in workloads {
            measurements.push(instructions::measure(peer, workload, budget, &mut memory)?);
        }
    }
    if json {
        println!(
            "{}",
            json!({ "heaps": versions::origins(peers), "instructions": measurements })
        );
    } else {
        print_origins(peers);
        let names: Vec<&str> = workloads.iter().map(|w| w.name.as_str()).collect();
        for table in instructions::tables(&measurements, &names) {
            println!("{}", table.render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ticks_command(
    json: bool,
    peers: &[Peer],
    operations: usize,
    replays: usize,
) -> Result<ExitCode, Error> {
    let mut memory = Reservation::new().map_err(Error::Memory)?;
    let overhead = ticks::overhead();
    let workloads = workload::timed(operations);
    let mut measurements = Vec::new();
    for workload in &workloads {
        for peer in peers {
            measurements.extend(ticks::measure(
                peer,
                workload,
                replays,
                overhead,
                &mut memory,
            ));
        }
    }
    if json {
        println!(
            "{}",
            json!({ "heaps": versions::origins(peers), "overhead": overhead, "ticks": measurements })
        );
    } else {
        print_origins(peers);
        println!("Timer overhead subtracted: {overhead} ticks\n");
        for workload in &workloads {
            println!("{}", ticks::table(&workload.name, &measurements).render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn throughput_command(
    json: bool,
    peers: &[Peer],
    operations: usize,
    rounds: usize,
) -> Result<ExitCode, Error> {
    let rounds = rounds.max(1);
    let workloads = workload::timed(operations * rounds);
    let mut measurements = Vec::new();
    for workload in &workloads {
        measurements.extend(throughput::measure(peers, workload, rounds)?);
    }
    if json {
        println!(
            "{}",
            json!({ "heaps": versions::origins(peers), "throughput": measurements })
        );
    } else {
        print_origins(peers);
        let names: Vec<&str> = workloads.iter().map(|w| w.name.as_str()).collect();
        print!(
            "{}",
            throughput::table(peers, &names, &measurements).render()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Arena ratios of the peers on the synthetic workloads and the traces; those of `known` are tried,
/// too.
fn arena_measurements(
    peers: &[Peer],
    traces: &[Workload],
    known: &gate::Figures,
) -> Result<(Vec<String>, Vec<arena::Measurement>), Error> {
    let mut memory = Reservation::new().map_err(Error::Memory)?;
    let mut workloads = workload::spatial();
    workloads.extend_from_slice(traces);
    let mut measurements = Vec::new();
    for peer in peers.iter().filter(|peer| arena::applies(peer.kind)) {
        for workload in &workloads {
            let known = known.arena_ratio(peer.name, &workload.name);
            measurements.push(arena::measure(peer, workload, known, &mut memory));
        }
        let known = known.arena_ratio(peer.name, "robson");
        measurements.push(arena::measure_robson(peer, known, &mut memory));
    }
    let mut names: Vec<String> = workloads.into_iter().map(|w| w.name).collect();
    names.push("robson".to_owned());
    Ok((names, measurements))
}

fn arena_command(json: bool, peers: &[Peer], traces: &[PathBuf]) -> Result<ExitCode, Error> {
    if cfg!(feature = "plain") && !traces.is_empty() {
        return Err(Error::Plain);
    }
    let traces: Vec<Workload> = traces
        .iter()
        .map(|path| trace::read(path))
        .collect::<Result<_, _>>()?;
    let (names, measurements) = arena_measurements(peers, &traces, &gate::Figures::default())?;
    if json {
        let general: Vec<&str> = peers
            .iter()
            .filter(|peer| peer.kind == Kind::General)
            .map(|peer| peer.name)
            .collect();
        println!(
            "{}",
            json!({
                "heaps": versions::origins(peers),
                "arena": measurements,
                "not_a_fixed_arena_heap": general,
            })
        );
    } else {
        print_origins(peers);
        print!("{}", arena::table(peers, &names, &measurements).render());
    }
    Ok(ExitCode::SUCCESS)
}

/// The committed traces, in the order of their names.
fn committed_traces(directory: &std::path::Path) -> Result<Vec<Workload>, Error> {
    let entries = std::fs::read_dir(directory).map_err(|error| Error::Trace {
        path: directory.to_owned(),
        line: 0,
        why: error.to_string(),
    })?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    paths.sort();
    paths.iter().map(|path| trace::read(path)).collect()
}

fn gate_command(
    update: bool,
    table: &std::path::Path,
    traces: &std::path::Path,
) -> Result<ExitCode, Error> {
    if cfg!(debug_assertions) {
        return Err(Error::Unoptimised);
    }
    if cfg!(feature = "plain") {
        return Err(Error::Plain);
    }
    let peers: Vec<Peer> = peers::all().into_iter().filter(|peer| peer.ours).collect();
    let committed = match gate::Figures::read(table) {
        Err(_) if update => gate::Figures::default(),
        read => read?,
    };
    let (_, arenas) = arena_measurements(&peers, &committed_traces(traces)?, &committed)?;
    let mut memory = Reservation::new().map_err(Error::Memory)?;
    let mut counts = Vec::new();
    for peer in peers.iter().filter(|peer| peer.constant_time) {
        for workload in &workload::timed(1000) {
            counts.push(instructions::measure(
                peer,
                workload,
                u64::MAX,
                &mut memory,
            )?);
        }
    }
    let bounds = device::bounds();
    let bounded = bounds.len();
    let figures = gate::Figures::new(&arenas, &counts, bounds);
    if update {
        figures.write(table)?;
        println!("{} written", table.display());
        return Ok(ExitCode::SUCCESS);
    }
    let growth = figures.growth(&committed);
    for line in &growth {
        println!("{line}");
    }
    println!(
        "{} heaps, {} arena ratios, {} pairs of ceilings, {bounded} device heaps: {}",
        peers.len(),
        arenas.len(),
        counts.len(),
        if growth.is_empty() {
            "none has grown"
        } else {
            "grown"
        }
    );
    Ok(ExitCode::from(u8::from(!growth.is_empty())))
}

fn security_command(json: bool, library: Option<PathBuf>) -> Result<ExitCode, Error> {
    let detectors = security::detectors(&security::library(library)?);
    let scores = security::measure(&detectors)?;
    if json {
        println!("{}", json!({ "security": scores }));
    } else {
        print!("{}", security::table(&detectors, &scores).render());
    }
    let hardened = &detectors[0].name;
    let own = scores.iter().filter(|score| score.heap == *hardened);
    let missed = own.filter(|score| score.certain && !score.full()).count();
    Ok(ExitCode::from(u8::from(missed > 0)))
}

fn play_command(peer: &Peer, workload: &Workload, setup_only: bool) -> Result<ExitCode, Error> {
    let mut memory = Reservation::new().map_err(Error::Memory)?;
    let unplayable = |why: String| Error::Unplayable {
        heap: peer.name.to_owned(),
        workload: workload.name.clone(),
        why,
    };
    let session = peer
        .start(&mut memory, reservation::LENGTH)
        .ok_or_else(|| unplayable("the heap does not start".to_owned()))?;
    let mut player = player::Player::new(workload.slots);
    let measured: &[workload::Event] = if setup_only { &[] } else { &workload.measured };
    for events in [&workload.setup, measured] {
        player
            .play(&session, events)
            .map_err(|refused| unplayable(format!("event {} was refused", refused.0)))?;
    }
    println!("{} events", measured.len());
    Ok(ExitCode::SUCCESS)
}
