//! The course of a tuning of an image for a machine without an operating system: record, search, choose, predict, emit,
//! link, run, compare.
//!
//! The image runs on its C library's heap and is recorded; heaps are replayed with the words of 32 bits that the machine
//! has; the chosen one is emitted as C, with memory of a fixed size, and a command of the project's links the image with it,
//! once with the recorder and once without. The addresses of the second recording say where each block lay.
//!
//! Nothing grows on such a machine: the heap has an array that is as large as what its replay took, so that it serves what
//! was recorded and no more; or, where a guarantee was asked for, what is proved to suffice for the demand.
//!
//! *Invariant:* what is predicted is computed before the image runs on the heap, and what is measured is what the heap in
//! the image says of itself, and the addresses that it gave out.

mod build;
mod compare;
mod error;
mod leon3;
mod machine;
mod memory;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metes_config::Config;
use metes_emit::{Home, Ranges};
use metes_explore::engine::{EXPLORATION, RESULTS};
use metes_explore::report::{DemandFigures, Document};
use metes_explore::{Arena, Choice, Events, Outcome, Preference, Replay, Replayer, Wanted, choose};
use metes_trace::write_parquet;

use self::build::Linker;
pub use self::build::{HEAP_CODE, IMAGE, RECORDER};
pub use self::compare::Shown;
use self::compare::{OnHeap, compare};
pub use self::error::Error;
use self::machine::Patience;
pub use self::machine::{Counted, Instructions, Machine, Recording};
use self::memory::memory;
use crate::capture::{Pass, Written, capture};
use crate::emitted;
use crate::ranges::{serves, serving};
use crate::report::{self, Content, Measured, tell};
use crate::search::{Request, Searched, search};
use crate::tuning::{Lacking, Step, TRACE, Watch};

/// Bytes by which the emitted heap takes of its memory.
const INCREMENT: usize = 64;
/// The index is laid out for so many times the most live bytes, as a power of two within limits; without a guarantee, and
/// with one. The upper limit is half of what boundary tags of 32-bit words can say.
const SPAN: (u64, u64) = (4, 16);
const SPANS: (u64, u64) = (1 << 12, 1 << 27);
/// The image with its heap.
pub const TUNED: &str = "tuned.elf";
/// What a tuning leaves beside the emitted code; `NNN` stands for any number.
pub const IMAGE_FILES: [&str; 7] = [
    TRACE,
    RESULTS,
    EXPLORATION,
    "pareto/NNN.toml",
    report::DOCUMENT,
    report::PAGE,
    TUNED,
];

/// An image to be tuned, and how.
#[derive(Debug)]
pub struct ImageTuning<'a> {
    /// The machine.
    pub machine: Machine,
    /// The image, with the recorder where the machine needs one.
    pub image: &'a Path,
    /// What links it with the emitted heap, for the shell. `None`: it is not run on that.
    pub build: Option<&'a str>,
    /// Most time that a run may take.
    pub limit: Duration,
    /// What becomes of the output of the first run.
    pub pass: Pass,
    /// Seconds of exploration.
    pub seconds: f64,
    /// What matters most.
    pub preference: Preference,
    /// Most bytes that the heap may take.
    pub heap_limit: Option<u64>,
    /// What is asked of its guarantee.
    pub guarantee: Wanted,
    /// Ends the search when set.
    pub stop: Arc<AtomicBool>,
}

/// What a tuning that came to its end found.
#[derive(Debug)]
pub enum ImageFound {
    /// No heap is as was asked for.
    Nothing(Box<Lacking>),
    /// The heap, and all there is to say of it.
    Heap(Box<TunedImage>),
}

/// Runs of an image on the emitted heap.
#[derive(Debug)]
pub struct ImageRun {
    /// What the run with the recorder showed.
    pub shown: Shown,
    /// What its heap functions took.
    pub counted: Option<Counted>,
    /// Exit statuses: with the recorder, and of the image that is handed back.
    pub statuses: [i32; 2],
    /// The image that is handed back wrote what the first one did.
    pub output_unchanged: bool,
}

/// A tuned image.
#[derive(Debug)]
pub struct TunedImage {
    /// Events of the recording.
    pub events: Events,
    /// What heap functions took on the heap that the image had.
    pub counted: Option<Counted>,
    /// The exit status of the recorded run.
    pub status: i32,
    /// The search.
    pub searched: Searched,
    /// The heap.
    pub config: Config,
    /// Why it was chosen.
    pub why: String,
    /// What its replay found.
    pub outcome: Outcome,
    /// What is predicted.
    pub predicted: Replay,
    /// The memory that it has in the image, records of slabs not counted.
    pub memory: u64,
    /// Whether that is what is proved to suffice for the demand, and not only for this run.
    pub guaranteed: bool,
    /// The runs on it, where a command links the image.
    pub run: Option<ImageRun>,
    /// The report.
    pub document: Document,
    /// The files of the unbeaten heaps, in their order, where they will lie.
    pub front: Vec<PathBuf>,
    /// The page, where it will lie.
    pub page: PathBuf,
    /// The emitted files and the tuned image, where they will lie.
    pub emitted: Vec<PathBuf>,
}

impl TunedImage {
    /// Predicted = measured: both figures, and the place of every block.
    pub fn equal(&self) -> Option<bool> {
        let shown = &self.run.as_ref()?.shown;
        Some(shown.placements_equal && shown.figures_equal(&self.predicted))
    }

    /// Nothing that was checked is contradicted.
    pub fn holds(&self) -> bool {
        let Some(run) = &self.run else { return true };
        self.equal() == Some(true) && run.statuses == [self.status; 2]
    }
}

/// What memory heaps have whose image holds so many bytes at the most.
pub fn arena(machine: Machine, peak_live: u64, guarantee: &Wanted) -> Arena {
    let declared = guarantee.declared.map_or(0, |declared| declared.live);
    let (live, times) = match guarantee.asked() {
        true => (peak_live.max(declared), SPAN.1),
        false => (peak_live, SPAN.0),
    };
    let wanted = live.saturating_mul(times).clamp(SPANS.0, SPANS.1);
    Arena {
        increment: INCREMENT,
        span: wanted.next_power_of_two() as usize,
        target: machine.target(),
        ..Arena::HOST
    }
}

impl ImageTuning<'_> {
    /// Tunes the image. All files are written below `directory`; they will lie in `place`.
    ///
    /// # Errors
    /// [`Error`]; [`TRACE`] is there as soon as the image was recorded.
    pub fn run(
        &self,
        directory: &Path,
        place: &Path,
        watch: &mut dyn Watch,
    ) -> Result<ImageFound, Error> {
        let shown = |path: &Path| place.join(path.strip_prefix(directory).unwrap_or(path));
        watch.begins(Step::Record);
        let record = || self.machine.record(self.image, self.patience());
        let (recording, written) = capture(self.pass, record)?;
        let recording = heeded(recording, watch)?;
        write_parquet(&recording.trace, &directory.join(TRACE))?;
        let linker = self.build.map(Linker::new).transpose()?;
        if let Some(linker) = &linker {
            watch.begins(Step::Build);
            heeded(linker.attempt(self.machine.has_recorder()), watch)?;
        }
        let events = Events::try_from(&recording.trace)?;
        let arena = arena(self.machine, events.peak_live(), &self.guarantee);
        watch.begins(Step::Search);
        let demand = DemandFigures::of(&metes_trace::profile(&recording.trace));
        let request = Request {
            seconds: self.seconds,
            configurations: None,
            arena,
            mapped: None,
            pages: None,
            guarantee: (self.guarantee, demand),
            over: metes_explore::Over::default(),
            fresh: false,
            trace: place.join(TRACE),
            stop: Arc::clone(&self.stop),
        };
        let searched = search(&events, &request, place, directory, watch)?;
        let found = &searched.found;
        let front = searched.write_front(&found.pareto, directory)?;
        let joining = serving(found, arena.target, self.heap_limit);
        let choice = choose(&joining, self.preference);
        watch.begins(Step::Compare);
        let content = Content::new(&recording.trace, &events, &searched, choice.as_ref());
        report::write(directory, &content.document(None))?;
        let Some(Choice { outcome, why, .. }) = choice.clone() else {
            let served = found.outcomes.iter();
            let served = served.filter(|outcome| serves(outcome, arena.target));
            let least = served.map(|outcome| outcome.footprint).min();
            return Ok(ImageFound::Nothing(Box::new(Lacking::of(&joining, least))));
        };
        let config = arena.config(outcome.description);
        let (predicted, _) =
            Replayer::new().replay(&config.name(), &config.heap, &events, &searched.options);
        let ranges = memory(&config, &events, &searched, &self.guarantee)?;
        let code = emitted::emit_for(&config, Home::Bare(ranges.ranges))?.files;
        let mut files = emitted::write(&code, directory)?;
        let before = Before {
            events: &events,
            written: &written,
        };
        let run = match &linker {
            None => None,
            Some(linker) => {
                let heap = (&config, &searched.options, ranges.ranges);
                let run = self.on(linker, &before, heap, &predicted, directory, watch)?;
                files.push(directory.join(TUNED));
                Some(run)
            }
        };
        let mut document = content.document(run.as_ref().map(|_| true));
        drop(content);
        let files: Vec<PathBuf> = files.iter().map(|path| shown(path)).collect();
        let measured = run.as_ref().map(|run| Measured {
            peak_live: run.shown.peak_live,
            footprint: run.shown.footprint,
            equal: run.shown.placements_equal && run.shown.figures_equal(&predicted),
            placements_equal: run.shown.placements_equal,
            events: run.shown.events,
            difference: run.shown.difference.as_ref(),
        });
        tell(&mut document, &predicted, measured.as_ref(), &files);
        let page = shown(&report::write(directory, &document)?);
        Ok(ImageFound::Heap(Box::new(TunedImage {
            memory: ranges.ranges.bytes(&config.heap) as u64,
            guaranteed: ranges.guaranteed,
            counted: recording.counted,
            status: recording.status,
            events,
            searched,
            config,
            why,
            outcome,
            predicted,
            run,
            document,
            front: front.iter().map(|path| shown(path)).collect(),
            page,
            emitted: files,
        })))
    }

    fn patience(&self) -> Patience<'_> {
        Patience {
            limit: self.limit,
            stop: &self.stop,
        }
    }

    /// The image on the heap: linked and run, with the recorder and without, and compared.
    fn on(
        &self,
        linker: &Linker<'_>,
        before: &Before<'_>,
        heap: (&Config, &metes_explore::Options, Ranges),
        predicted: &Replay,
        directory: &Path,
        watch: &mut dyn Watch,
    ) -> Result<ImageRun, Error> {
        watch.begins(Step::Build);
        let tuned = directory.join(TUNED);
        heeded(linker.link(directory, false, &tuned), watch)?;
        let recorder = self.machine.has_recorder();
        let recorded = match recorder {
            true => linker.recorded(),
            false => tuned.clone(),
        };
        if recorder {
            heeded(linker.link(directory, true, &recorded), watch)?;
        }
        watch.begins(Step::Run);
        let on_heap = |error| Error::OnHeap(Box::new(error));
        let record = || self.machine.record(&recorded, self.patience());
        let (now, mut written) = capture(Pass::Away, record)?;
        let now = heeded(now, watch).map_err(on_heap)?;
        let mut status = now.status;
        if recorder {
            let run = || self.machine.run(&tuned, self.patience());
            let (ended, again) = capture(Pass::Away, run)?;
            status = heeded(ended, watch).map_err(on_heap)?;
            written = again;
        }
        let state = now.heap.ok_or(Error::NotLinked)?;
        let (config, _, ranges) = heap;
        let emitted = ranges.bytes(&config.heap) as u64;
        if u64::from(state.bytes) != emitted {
            return Err(Error::OtherHeap {
                linked: u64::from(state.bytes),
                emitted,
            });
        }
        let events = Events::try_from(&now.trace)?;
        let run = OnHeap {
            events: &events,
            places: &now.places,
            state,
        };
        Ok(ImageRun {
            shown: compare(heap, before.events, predicted, &run),
            counted: now.counted,
            statuses: [now.status, status],
            output_unchanged: written == *before.written,
        })
    }
}

/// The run on the heap that the image had.
struct Before<'a> {
    events: &'a Events,
    written: &'a Written,
}

/// What came of a step, unless a signal asked for the end meanwhile.
fn heeded<T>(result: Result<T, Error>, watch: &dyn Watch) -> Result<T, Error> {
    match watch.asked_to_end() {
        Some(signal) => Err(Error::Tune(crate::Error::Ended(signal))),
        None => result,
    }
}
