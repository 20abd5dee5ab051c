//! The course of a tuning of a module: record, search, choose, predict, emit, splice, run, compare.
//!
//! As `metes tune` does with programs of the system: the module is recorded on its own allocator, heaps are replayed
//! with the words of 32 bits that it has, the chosen one is emitted as C and Rust, compiled, and put in the place of
//! the module's own allocator, and the module runs on it. What the recording says of that run (most live bytes, bytes
//! taken, a hash of where every block lies) is compared with what the run shows.
//!
//! Invariant: what is predicted is computed before the module runs on the heap, and what is measured is what the heap
//! inside the module says of itself, and the places that it gave out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use metes_config::Config;
use metes_emit::{Home, Ranges};
use metes_explore::engine::{EXPLORATION, RESULTS};
use metes_explore::report::{DemandFigures, Document};
use metes_explore::{
    Arena, Choice, EventError, Events, Options, Outcome, Preference, Replay, Replayer, Target,
    Wanted, choose, write_whole,
};
use metes_trace::{Inconsistency, Trace, write_parquet};
use metes_tune::ranges::{Places, ranges_of, serves, serving};
use metes_tune::{
    Content, DOCUMENT, Lacking, Measured, PAGE as REPORT_PAGE, Searched, Step, TRACE, Watch, tell,
};

use crate::joined::{self, BEGINNING, BuildError, HEAP};
use crate::outline::{Outline, SpliceError};
use crate::run::{Input, Ran, RunError, run};
use crate::splice::{Change, Heap, PAGE, splice};
use crate::told::{hashes, trace_of};

/// Bytes by which the emitted heap takes of its pool.
const INCREMENT: usize = 1024;
/// The index is laid out for so many times the most live bytes, as a power of two, within limits: the upper one is half
/// of what boundary tags of 32-bit words can say.
const SPAN: (u64, u64, u64) = (16, 1 << 20, 1 << 27);
/// The module with its heap.
pub const MODULE: &str = "tuned.wasm";
/// What a tuning leaves beside the emitted code; `NNN` stands for any number.
pub const FILES: [&str; 8] = [
    TRACE,
    RESULTS,
    EXPLORATION,
    "pareto/NNN.toml",
    DOCUMENT,
    REPORT_PAGE,
    HEAP,
    MODULE,
];

/// A module to be tuned, and how.
#[derive(Debug)]
pub struct Tuning<'a> {
    /// The module.
    pub wasm: &'a [u8],
    /// How it is run.
    pub input: Input,
    /// Seconds of exploration.
    pub seconds: f64,
    /// Replays whole, where that is the limit.
    pub configurations: Option<u64>,
    /// What matters most.
    pub preference: Preference,
    /// Most bytes that the heap may take.
    pub heap_limit: Option<u64>,
    /// What is asked of its guarantee.
    pub guarantee: Wanted,
    /// Ends the search, or a run on the module's own allocator, when set.
    pub stop: Arc<AtomicBool>,
}

/// Why a module was not tuned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be rewritten.
    #[error("{0}")]
    Splice(#[from] SpliceError),
    /// It does not run.
    #[error("{0}")]
    Run(#[from] RunError),
    /// It does not run on the emitted heap.
    #[error("on the emitted heap {0}")]
    OnHeap(RunError),
    /// It grows its memory by itself.
    #[error(
        "the module grows its memory by itself, by {0} pages of 64 KiB, and not through its allocator: a module with a \
         heap of its own has its memory from the start, so give it what it needs when it is linked \
         (-Wl,--initial-memory=BYTES)"
    )]
    Grows(u64),
    /// Its requests contradict each other.
    #[error(
        "the module's requests contradict each other: {0}; it frees what it does not hold, or the compiler has put part \
         of its allocator into its callers (build without link-time optimisation)"
    )]
    Requests(#[from] Inconsistency),
    /// Its requests are none that a heap could serve.
    #[error("{0}")]
    Events(#[from] EventError),
    /// It asks for nothing.
    #[error("the module made no request through its allocator, so there is nothing to tune")]
    Nothing,
    /// A step that is that of any tuning.
    #[error("{0}")]
    Tune(#[from] metes_tune::Error),
    /// A trace could not be written.
    #[error("{0}")]
    Trace(#[from] metes_trace::TraceError),
    /// A result could not be written.
    #[error("{0}")]
    Output(#[from] metes_explore::OutputError),
    /// The heap was not built.
    #[error("{0}")]
    Build(#[from] BuildError),
}

/// What a run shows of its heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Most requested bytes live at once.
    pub peak_live: u64,
    /// Bytes of the pool that the heap took.
    pub footprint: u64,
    /// Hash of every event with its place.
    pub placements: String,
    /// Hash of the requests alone.
    pub requests: String,
    /// Events in the hashes.
    pub events: u64,
}

/// What a tuning that came to its end found.
#[derive(Debug)]
pub enum Found {
    /// No heap is as was asked for; least footprint of those that serve the module.
    Nothing(Box<Lacking>),
    /// The heap, and all there is to say of it.
    Heap(Box<Tuned>),
}

/// A recorded module.
#[derive(Debug)]
pub struct Recorded {
    /// The module's allocator and numbers.
    pub outline: Outline,
    /// The run on the module's own allocator.
    pub before: Ran,
    /// Its requests.
    pub trace: Trace,
    /// The same, to be replayed.
    pub events: Events,
}

/// A module's run on a heap.
#[derive(Debug)]
pub struct OnHeap {
    /// What was predicted.
    pub predicted: Replay,
    /// What the run showed.
    pub measured: Shown,
    /// Output and status are as before.
    pub output_unchanged: bool,
    /// The run of the module as it is handed back.
    pub after: Ran,
    /// The files that were written.
    pub files: Vec<PathBuf>,
}

/// A tuned module.
#[derive(Debug)]
pub struct Tuned {
    /// Its run on its own allocator.
    pub recorded: Recorded,
    /// The search.
    pub searched: Searched,
    /// The heap.
    pub config: Config,
    /// Why it was chosen.
    pub why: String,
    /// What its replay found.
    pub outcome: Outcome,
    /// Its run on the heap.
    pub run: OnHeap,
    /// The report.
    pub document: Document,
    /// The files of the unbeaten heaps, in their order, where they will lie.
    pub front: Vec<PathBuf>,
    /// The page, where it will lie.
    pub page: PathBuf,
    /// The emitted files and the tuned module, where they will lie.
    pub emitted: Vec<PathBuf>,
}

impl Shown {
    fn of(ran: &Ran, places: &Places) -> Shown {
        let [base, footprint, peak_live] = ran.heap.unwrap_or_default();
        let (hashes, events) = hashes(&ran.told, |place| places.of(place.wrapping_sub(base)));
        Shown {
            peak_live: u64::from(peak_live),
            footprint: u64::from(footprint),
            placements: format!("{:016x}", hashes.placements),
            requests: format!("{:016x}", hashes.requests),
            events,
        }
    }
}

impl OnHeap {
    /// The module asked for the same as when it was recorded.
    pub fn requests_equal(&self) -> bool {
        self.measured.requests == self.predicted.requests
            && self.measured.events == self.predicted.events
    }

    /// Every block lay where it was predicted.
    pub fn placements_equal(&self) -> bool {
        self.requests_equal() && self.measured.placements == self.predicted.placements
    }

    /// Predicted = measured: both figures, and the place of every block.
    pub fn equal(&self) -> bool {
        self.placements_equal()
            && self.measured.peak_live == self.predicted.peak_live
            && self.measured.footprint == self.predicted.footprint
    }

    /// Nothing that was checked is contradicted, and the memory did not grow.
    pub fn holds(&self) -> bool {
        self.equal() && self.output_unchanged && self.after.pages == self.after.first_pages
    }
}

/// What memory heaps have whose module holds so many bytes at the most.
pub fn arena(peak_live: u64) -> Arena {
    let (times, least, most) = SPAN;
    let wanted = peak_live.saturating_mul(times).clamp(least, most);
    Arena {
        increment: INCREMENT,
        span: wanted.next_power_of_two() as usize,
        target: Target::Wasm32,
        ..Arena::HOST
    }
}

impl Tuning<'_> {
    /// Tunes the module. All files are written below `directory`; they will lie in `place`. What the module writes when
    /// it runs first is `heard`.
    ///
    /// # Errors
    /// [`Error`]; [`TRACE`] is there as soon as the module was recorded.
    pub fn run(
        &self,
        directory: &Path,
        place: &Path,
        watch: &mut dyn Watch,
        heard: &mut dyn FnMut(&Ran),
    ) -> Result<Found, Error> {
        let shown = |path: &Path| place.join(path.strip_prefix(directory).unwrap_or(path));
        watch.begins(Step::Record);
        let recorded = self.record(directory, heard)?;
        let Recorded { trace, events, .. } = &recorded;
        let arena = arena(events.peak_live());
        watch.begins(Step::Search);
        let request = metes_tune::Request {
            seconds: self.seconds,
            configurations: self.configurations,
            arena,
            mapped: None,
            pages: None,
            guarantee: (
                self.guarantee,
                DemandFigures::of(&metes_trace::profile(trace)),
            ),
            over: metes_explore::Over::default(),
            fresh: false,
            trace: place.join(TRACE),
            stop: Arc::clone(&self.stop),
        };
        let searched = metes_tune::search(events, &request, place, directory, watch)?;
        let found = &searched.found;
        let front = searched.write_front(&found.pareto, directory)?;
        let choice = choose(
            &serving(found, arena.target, self.heap_limit),
            self.preference,
        );
        watch.begins(Step::Compare);
        let content = Content::new(trace, events, &searched, choice.as_ref());
        metes_tune::write_report(directory, &content.document(None))?;
        let Some(Choice { outcome, why, .. }) = choice.clone() else {
            let joining = { found.outcomes.iter() }.filter(|outcome| serves(outcome, arena.target));
            let least = joining.map(|outcome| outcome.footprint).min();
            let joining = serving(found, arena.target, self.heap_limit);
            return Ok(Found::Nothing(Box::new(Lacking::of(&joining, least))));
        };
        let config = arena.config(outcome.description);
        let run = self.on(&recorded, &config, &searched.options, directory, watch)?;
        let mut document = content.document(Some(true));
        drop(content);
        let mut tuned = Tuned {
            outcome,
            why,
            config,
            emitted: run.files.iter().map(|path| shown(path)).collect(),
            run,
            front: front.iter().map(|path| shown(path)).collect(),
            page: PathBuf::new(),
            document: document.clone(),
            recorded,
            searched,
        };
        let measured = Measured {
            peak_live: tuned.run.measured.peak_live,
            footprint: tuned.run.measured.footprint,
            equal: tuned.run.equal(),
            placements_equal: tuned.run.placements_equal(),
            events: tuned.run.measured.events,
            difference: None,
        };
        tell(
            &mut document,
            &tuned.run.predicted,
            Some(&measured),
            &tuned.emitted,
        );
        tuned.page = shown(&metes_tune::write_report(directory, &document)?);
        tuned.document = document;
        Ok(Found::Heap(Box::new(tuned)))
    }

    /// The module on a heap, whose code is written below `directory`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn on(
        &self,
        recorded: &Recorded,
        config: &Config,
        options: &Options,
        directory: &Path,
        watch: &mut dyn Watch,
    ) -> Result<OnHeap, Error> {
        let (predicted, _) =
            Replayer::new().replay(&config.name(), &config.heap, &recorded.events, options);
        watch.begins(Step::Build);
        let pool = memory(config, &recorded.events, options);
        let places = Places::new(config, pool);
        let code = metes_tune::emit_for(config, Home::Wasi(pool))?.files;
        let mut files = metes_tune::write(&code, directory)?;
        let built = joined::build(
            directory,
            recorded.outline.pages,
            pool.bytes(&config.heap) as u64,
        )?;
        files.push(built.path.clone());
        let change = Change {
            heap: Some(Heap {
                wasm: &built.wasm,
                pages: built.pages,
            }),
            report: false,
            fixed: true,
        };
        let tuned = splice(self.wasm, &change)?;
        let module = directory.join(MODULE);
        write_whole(&module, &tuned)?;
        files.push(module);
        watch.begins(Step::Run);
        let telling = Change {
            report: true,
            fixed: false,
            ..change
        };
        let watched = run(&splice(self.wasm, &telling)?, &self.input).map_err(Error::OnHeap)?;
        let grown = watched.pages - watched.first_pages;
        if grown > 0 {
            return Err(Error::Grows(grown));
        }
        let after = run(&tuned, &self.input).map_err(Error::OnHeap)?;
        let before = &recorded.before;
        let same = |ran: &Ran| ran.stdout == before.stdout && ran.status == before.status;
        Ok(OnHeap {
            predicted,
            measured: Shown::of(&watched, &places),
            output_unchanged: same(&after) && same(&watched),
            after,
            files,
        })
    }

    /// What the module asks of its own allocator; what it writes is `heard`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn record(&self, directory: &Path, heard: &mut dyn FnMut(&Ran)) -> Result<Recorded, Error> {
        let outline = Outline::new(self.wasm)?;
        let input = Input {
            stop: Some(Arc::clone(&self.stop)),
            ..self.input.clone()
        };
        let before = run(self.wasm, &input)?;
        heard(&before);
        let telling = Change {
            report: true,
            ..Change::default()
        };
        let ran = run(&splice(self.wasm, &telling)?, &input)?;
        let trace = trace_of(&ran.told, self.input.arguments.clone())?;
        if trace.is_empty() {
            return Err(Error::Nothing);
        }
        write_parquet(&trace, &directory.join(TRACE))?;
        let events = Events::try_from(&trace)?;
        Ok(Recorded {
            outline,
            before,
            trace,
            events,
        })
    }
}

/// What memory of the module a heap has: what it takes, and the rest of the last page for the last general pool.
fn memory(config: &Config, events: &Events, options: &Options) -> Ranges {
    let beginning = BEGINNING as usize;
    let mut ranges = ranges_of(config, events, options, beginning);
    let bytes = ranges.bytes(&config.heap);
    let spare = bytes.next_multiple_of(PAGE as usize) - bytes;
    ranges.pools[config.heap.general.len() - 1] += spare / beginning * beginning;
    ranges
}
