//! `worst`: all that the laboratory finds about one heap.
//!
//! Invariant: a figure of a [`Worst`] was measured in this run, or is a bound
//! and says so.

use std::path::Path;

use metes_explore::Events;
use metes_heap::bounds::{Bound, Demand};
use metes_trace::{Trace, write_parquet};
use serde::Serialize;

use crate::cache::{Ticks, ticks};
use crate::error::WorstError;
use crate::heap::{Heap, PerCall};
use crate::sequence::Sequence;
use crate::space::{Row, Space, SpaceSearch};
use crate::time::{Slowest, Time, TimeSearch};

/// Most blocks of an attack.
const MOST_BLOCKS: u64 = 1 << 22;
/// Most live bytes of an attack: arenas stay within what indexes are laid out for.
const MOST_LIVE: u64 = 1 << 31;

/// What is asked of the laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// M: most requested bytes live at once.
    pub live: u64,
    /// n: largest request.
    pub largest: u64,
    /// l: smallest request.
    pub smallest: u64,
    /// Requests of the search for space.
    pub operations: u64,
    /// Instructions that breeding may count, one trap each; 0 leaves time out.
    pub counted: u64,
    /// Whether the slowest calls are timed hot and cold.
    pub ticks: bool,
    /// What chance decides.
    pub seed: u64,
}

impl Request {
    /// A common demand: 1 MiB live, requests of 64 to 4096 bytes.
    pub const ON_HOST: Request = Request {
        live: 1 << 20,
        largest: 4096,
        smallest: 64,
        operations: 20_000_000,
        counted: 500_000,
        ticks: false,
        seed: 1,
    };
    /// That of the boards' churn, which has 128 KiB.
    pub const ON_BOARD: Request = Request {
        live: 24 << 10,
        largest: 1536,
        smallest: 24,
        ..Request::ON_HOST
    };

    /// Checks what is asked, and gives it as a demand.
    ///
    /// # Errors
    /// [`WorstError`] names what is wrong.
    pub fn demand(&self) -> Result<Demand, WorstError> {
        let Request {
            live,
            largest,
            smallest,
            ..
        } = *self;
        for (name, value) in [
            ("the live bytes", live),
            ("the largest request", largest),
            ("the smallest request", smallest),
            ("the number of operations", self.operations),
        ] {
            if value == 0 {
                return Err(WorstError::Zero { name });
            }
        }
        if smallest > largest {
            return Err(WorstError::Sizes { smallest, largest });
        }
        if live < largest {
            return Err(WorstError::Live { live, largest });
        }
        if live > MOST_LIVE {
            return Err(WorstError::Large {
                live,
                most: MOST_LIVE,
            });
        }
        if live / smallest > MOST_BLOCKS {
            return Err(WorstError::Blocks {
                live,
                smallest,
                most: MOST_BLOCKS,
            });
        }
        Ok(Demand::new(live, largest, smallest))
    }
}

/// Instructions of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// Most of one allocation; `None` where they cannot be counted.
    pub allocate: Option<u64>,
    /// Most of one free.
    pub free: Option<u64>,
}

/// What the declarations of the heap say of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Declared {
    /// Of an allocation.
    pub allocate: &'static str,
    /// Of a free.
    pub free: &'static str,
}

/// Ticks of the slowest calls, hot and cold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlowestTicks {
    /// Of the slowest allocation.
    pub allocate: Option<Ticks>,
    /// Of the slowest free.
    pub free: Option<Ticks>,
}

/// The requests behind the figures.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The largest footprint.
    pub space: Sequence,
    /// The slowest allocation, which is the last request.
    pub allocate: Sequence,
    /// The slowest free, likewise.
    pub free: Sequence,
}

/// What was found. Bytes and instructions are integers.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// The heap.
    pub heap: String,
    /// M, n and l.
    pub live: u64,
    /// n.
    pub max_block: u64,
    /// l.
    pub min_block: u64,
    /// Most instructions of one call, measured.
    pub instructions: Instructions,
    /// What is declared of them.
    pub declared: Declared,
    /// What found them.
    pub instructions_found_by: [&'static str; 2],
    /// M at which they were measured: less than `live` where calls would take
    /// too long to be counted.
    pub instructions_live: u64,
    /// Most that one call does to blocks, where the demand bounds that.
    pub per_call: Option<PerCall>,
    /// The code that was measured, as `metes_heap` calls it.
    pub code: &'static str,
    /// Whether the measured code was compiled for the heap's parameters.
    pub specialised: bool,
    /// Smallest arena that serves the worst trace, over its peak of live bytes.
    pub arena_ratio: f64,
    /// Bytes of the bound over M; `None` where no finite bound is proven.
    pub bound_ratio: Option<f64>,
    /// Found over bound.
    pub tightness: Option<f64>,
    /// Requests made, of both searches.
    pub operations: u64,
    /// Requests made to heaps in exactly the bytes of their bound.
    pub operations_in_bound: u64,
    /// Those that were refused: any contradicts the bound.
    pub refused_in_bound: u64,
    /// Most bytes taken from the system by a heap that grows.
    pub footprint: u64,
    /// Most requested bytes live at once in that attack.
    pub peak_live: u64,
    /// Smallest arena that serves the worst trace.
    pub smallest_arena: Option<u64>,
    /// The bound in bytes.
    pub bound_bytes: Option<u64>,
    /// How well it is founded.
    pub bound_standing: Option<&'static str>,
    /// Robson's lower bound for any heap that does not move blocks.
    pub necessary_bytes: u64,
    /// The program behind the footprint.
    pub space_found_by: &'static str,
    /// Its numbers.
    pub program: String,
    /// By kind of program.
    pub programs: Vec<Row>,
    /// Hot and cold.
    pub ticks: Option<SlowestTicks>,
    /// What chance decided.
    pub seed: u64,
    /// Whether everything that was checked holds: the bound, and that the trace
    /// replays to the same footprint.
    pub holds: bool,
    /// The requests.
    #[serde(skip)]
    pub traces: Traces,
}

/// How far a search has come, between 0 and 1, and what it does.
pub type Progress<'p> = &'p mut dyn FnMut(&'static str, f64);

/// Attacks a heap.
///
/// # Errors
/// [`WorstError`] where the request contradicts itself or the machine does not
/// do what is needed.
pub fn worst<'c>(
    heap: impl Into<Heap<'c>>,
    request: &Request,
    progress: Progress<'_>,
) -> Result<Worst, WorstError> {
    let heap = heap.into();
    let demand = request.demand()?;
    heap.check()?;
    let bound = heap.bound(&demand)?;
    let (mut victim, suffices) = heap.attacked(&demand, &bound)?;
    let space = SpaceSearch {
        victim: victim.as_mut(),
        demand,
        bound: suffices,
        operations: request.operations,
        seed: request.seed,
    }
    .run(&mut |done| progress("space", done as f64 / request.operations as f64))
    .ok_or_else(|| WorstError::Unservable { heap: heap.name() })?;
    let (arena, ran) = (heap.arena(&demand), heap.run(&demand));
    let time = match request.counted {
        0 => None,
        budget => TimeSearch {
            victim: heap.guide(&demand).as_mut(),
            runnable: &ran,
            demand,
            arena,
            budget,
            seed: request.seed,
        }
        .run(&mut |counted| progress("time", counted as f64 / budget as f64))
        .map_err(WorstError::Count)?,
    };
    let ticks = time.as_ref().filter(|_| request.ticks).map(|time| {
        let of = |slowest: &Slowest| ticks(&ran, arena, &slowest.sequence);
        SlowestTicks {
            allocate: of(&time.allocate),
            free: of(&time.free),
        }
    });
    let mut worst = report(heap, request, &demand, &bound, space, time)?;
    worst.code = ran.code();
    worst.ticks = ticks;
    Ok(worst)
}

/// Puts together what both searches found, and checks it.
fn report(
    heap: Heap<'_>,
    request: &Request,
    demand: &Demand,
    bound: &Bound,
    space: Space,
    time: Option<Time>,
) -> Result<Worst, WorstError> {
    let sequence = space.outcome.sequence.unwrap_or_default();
    let peak_live = space.outcome.peak_live;
    let footprint = space.outcome.footprint;
    let trace = trace_of(&sequence, &heap.name())?;
    let events = Events::try_from(&trace).map_err(|error| {
        // A sequence frees live blocks only.
        WorstError::Failed(error.to_string())
    })?;
    let ending = heap.replay(&events)?;
    let bound_bytes = bound.heap_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let least = ending.arena.unwrap_or(footprint);
    let time = time.unwrap_or_default();
    let known = |slowest: &Slowest| Some(slowest.instructions).filter(|&count| count > 0);
    let in_bound = ending.in_bound.unwrap_or(footprint);
    let above = bound_bytes.is_some_and(|bound| ending.in_bound.is_some_and(|own| own > bound));
    Ok(Worst {
        heap: heap.name(),
        live: request.live,
        max_block: request.largest,
        min_block: request.smallest,
        instructions: Instructions {
            allocate: known(&time.allocate),
            free: known(&time.free),
        },
        declared: heap.declares(bound),
        instructions_found_by: [time.allocate.found_by, time.free.found_by],
        instructions_live: time.live,
        per_call: heap.per_call(demand),
        code: "",
        specialised: time.specialised,
        arena_ratio: ratio(least, peak_live),
        bound_ratio: bound_bytes.map(|bytes| ratio(bytes, request.live)),
        tightness: bound_bytes.map(|bytes| ratio(in_bound, bytes)),
        operations: space.operations + time.operations,
        operations_in_bound: space.operations_in_bound,
        refused_in_bound: space.refused_in_bound,
        footprint,
        peak_live,
        smallest_arena: ending.arena,
        bound_bytes,
        bound_standing: bound.used.map(|used| used.standing.name()),
        necessary_bytes: u64::try_from(bound.necessary_bytes).unwrap_or(u64::MAX),
        space_found_by: space.program.name(),
        program: format!("{:?}", space.program),
        programs: space.rows,
        ticks: None,
        seed: request.seed,
        holds: space.refused_in_bound == 0 && ending.footprint == footprint && !above,
        traces: Traces {
            space: sequence,
            allocate: time.allocate.sequence,
            free: time.free.sequence,
        },
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn trace_of(sequence: &Sequence, heap: &str) -> Result<Trace, WorstError> {
    let command = ["metes", "worst", "--heap", heap].map(str::to_owned);
    sequence
        .trace(command.to_vec())
        .map_err(|error| WorstError::Failed(error.to_string()))
}

impl Worst {
    /// Writes the traces into a directory, which is made; their names.
    ///
    /// # Errors
    /// [`WorstError`] where a file cannot be written.
    pub fn save(&self, directory: &Path) -> Result<Vec<&'static str>, WorstError> {
        std::fs::create_dir_all(directory).map_err(|source| WorstError::Write {
            path: directory.to_owned(),
            source,
        })?;
        let mut written = Vec::new();
        for (name, sequence) in [
            ("space.trace.parquet", &self.traces.space),
            ("allocate.trace.parquet", &self.traces.allocate),
            ("free.trace.parquet", &self.traces.free),
        ] {
            if !sequence.steps().is_empty() {
                write_parquet(&trace_of(sequence, &self.heap)?, &directory.join(name))?;
                written.push(name);
            }
        }
        Ok(written)
    }
}
