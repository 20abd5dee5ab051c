//! Recording to files while the program runs, in memory that does not grow with the recording.
//!
//! A thread reads along ([`Merge`](super::segments::Merge)) whatever grows past a few megabytes, and writes it as a
//! trace; what stays small is read at the end. Recording can be paused and taken up again, and a trace be cut into
//! files of a size, each a trace by itself.
//!
//! *Invariant:* whatever ends the program, what it had recorded is in the files. If nothing more can be written, recording
//! is paused, the program goes on, and what was written is kept.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::error::RecordError;
use super::layout::{HEADER_BYTES, PAUSED_FILE, RING};
use super::mapped::RawFile;
use super::parts::{FileFacts, PartWriter};
use super::process::{ProcessTrace, read_header};
use super::raw::Reading;
use super::run::{self, Ending};
use super::{RecordOptions, prepare, prepare_dormant};
use crate::stacks::Stacks;
use crate::trace::Provenance;
use crate::whole::Part;

/// Bytes of a raw file from which on it is read while it grows.
const LARGE: u64 = 4 << 20;
/// Segments that a recording may have on their way to the reader: 64 MiB.
const MOST_SEGMENTS: u32 = RING as u32;
/// Segments that are allowed beyond, wherever threads that live hold all.
const MORE_SEGMENTS: u32 = 256;
/// Time between two looks for threads that are gone, at least.
const RELIEF: Duration = Duration::from_millis(250);
/// Time between two looks, at most and at least.
const SELDOM: Duration = Duration::from_millis(40);
const OFTEN: Duration = Duration::from_millis(4);
/// Added to the time between two looks for large raw files for each that there is: a build has thousands.
const ONE_FILE: Duration = Duration::from_micros(100);
/// For how long a processor may keep to itself what it wrote, nanoseconds: a thousand times what it does.
const SLACK_NS: u64 = 1_000_000;

/// Says whether to record, from whichever thread.
#[derive(Debug)]
pub struct Control {
    on: AtomicBool,
}

impl Control {
    /// On from the beginning, or not yet.
    #[must_use]
    pub fn new(on: bool) -> Control {
        Control {
            on: AtomicBool::new(on),
        }
    }

    /// Begins to record, or stops.
    pub fn toggle(&self) {
        self.on.fetch_xor(true, Ordering::Relaxed);
    }
}

/// How a trace is cut into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes after which the next file begins.
    pub bytes: u64,
    /// How many of the last ones are kept; None for all.
    pub keep: Option<usize>,
}

/// What happens while a program is recorded.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Recording has begun, or goes on.
    Begun,
    /// It has stopped.
    Stopped,
    /// A file is whole.
    Written(&'a RecordedFile),
}

/// Where a recording goes.
pub struct FileOptions<'a> {
    /// The trace of the command itself; those of other processes get numbers.
    pub output: &'a Path,
    /// Traces of more processes are not written, but for those with the most requests.
    pub most_files: usize,
    /// Whether files are cut.
    pub rotation: Option<Rotation>,
    /// Begins and stops; None if all is to be recorded.
    pub control: Option<&'a Control>,
    /// Whether a file may be written there, asked before it is.
    pub may_write: &'a (dyn Fn(&Path) -> bool + Sync),
    /// Gives call stacks their names, and says what is to be said of that. Also told: the processes in which they were
    /// taken, as a forked one goes on with its parent's code.
    pub name: &'a (dyn Fn(&mut Stacks, &[u32]) -> serde_json::Value + Sync),
    /// Is told what happens.
    pub told: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// A trace in its file.
#[derive(Clone, Debug)]
pub struct RecordedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The command line of its process.
    pub command: Vec<String>,
    /// Its events, its peak, and where it begins.
    pub facts: FileFacts,
    /// Threads that made requests so far.
    pub threads: u32,
    /// Events of its process that could not be recorded so far.
    pub lost: u64,
    /// What is to be said of the names of its call stacks; null if it has none.
    pub named: serde_json::Value,
}

/// What a recording to files gave.
#[derive(Debug)]
pub struct RecordedFiles {
    /// The files, those of the command itself first.
    pub files: Vec<RecordedFile>,
    /// Files that were removed again, as newer ones took their place.
    pub removed: u64,
    /// Processes that were not written, as so many were.
    pub left_out: usize,
    /// Processes that found no room for a single request, and are missing.
    pub without_room: u64,
    /// Seconds for which the program's threads waited for what they had recorded to be written.
    pub waited_seconds: f64,
    /// There was no more room for this file: it ends before the program did.
    pub full: Option<PathBuf>,
    /// How the program ended.
    pub ending: Ending,
    /// Processor time, user and system, of the program and the children it
    /// waited for, seconds.
    pub cpu_seconds: f64,
    /// Time that passed, seconds.
    pub wall_seconds: f64,
}

/// `path` with a word before its ending: `a.trace.parquet` becomes `a.1.trace.parquet`.
#[must_use]
pub fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path
        .file_name()
        .map_or(&b"trace"[..], |name| name.as_bytes());
    // The first dot but for one at the beginning.
    let dot = name.iter().skip(1).position(|&byte| byte == b'.');
    let (stem, ending) = name.split_at(dot.map_or(name.len(), |dot| dot + 1));
    let name = [stem, b".", word.as_bytes(), ending].concat();
    path.with_file_name(OsString::from_vec(name))
}

/// The `number`th file of a trace that is cut.
#[must_use]
pub fn part_of(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!("part{number:04}"))
}

/// Runs `command`, with the standard streams of this process, and records it to files, meanwhile. Otherwise as
/// [`record`](super::record).
///
/// # Errors
/// [`RecordError`], as there, and what cannot be written.
pub fn record_files(
    command: &[OsString],
    options: &RecordOptions,
    files: &FileOptions<'_>,
) -> Result<RecordedFiles, RecordError> {
    let (program, stage) = prepare(command, options)?;
    let mut follower = Follower::new(stage.directory(), files)?;
    let (over, main) = (AtomicBool::new(false), AtomicU32::new(0));
    let (run, followed) = std::thread::scope(|scope| {
        let following = scope.spawn(|| follower.follow(&over, &main));
        let started = |pid| main.store(pid, Ordering::Relaxed);
        let run = run::run(
            &program.path,
            command,
            &stage,
            &options.environment,
            &started,
        );
        over.store(true, Ordering::Release);
        let followed = following.join();
        (run, followed)
    });
    let run = run?;
    if let Err(panic) = followed {
        std::panic::resume_unwind(panic);
    }
    let without_room = follower.end((run.ticks, run.monotonic), run.pid)?;
    if follower.files.is_empty() && follower.full.is_none() {
        if files.control.is_some() && follower.met {
            return Err(RecordError::NeverBegun {
                program: program.path,
            });
        }
        if without_room > 0 {
            let path = stage.directory().parent().unwrap_or(stage.directory());
            return Err(RecordError::NoRoom {
                path: path.to_owned(),
            });
        }
        return Err(RecordError::NothingRecorded {
            program: program.path,
        });
    }
    Ok(RecordedFiles {
        files: follower.files.into(),
        removed: follower.removed,
        left_out: follower.left_out,
        without_room,
        waited_seconds: follower.waited as f64 / 1e9,
        full: follower.full,
        ending: run.ending,
        cpu_seconds: run.cpu_seconds,
        wall_seconds: run.wall_seconds,
    })
}

/// Has this process become the program of `command`, with a recorder that records nothing until somebody
/// [attaches](attach_files) to it. Returns only if that cannot be.
pub fn become_dormant(command: &[OsString], options: &RecordOptions) -> RecordError {
    let prepared = prepare_dormant(command, options);
    let (program, stage) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let mut become_it = std::process::Command::new(&program.path);
    become_it
        .arg0(&command[0])
        .args(&command[1..])
        .envs(options.environment.iter().cloned())
        .envs(stage.environment());
    // The directory stays: this process, under another name, needs it.
    stage.leave();
    RecordError::Run {
        path: program.path,
        source: become_it.exec(),
    }
}

/// How often it is looked whether a process ended, or who attached wants no more.
const ATTENTIVE: Duration = Duration::from_millis(50);

/// Records process `pid`, which began as [dormant](become_dormant), to files until it ends or `enough` says so.
///
/// # Errors
/// [`RecordError::Attach`] says why not; the others are those of [`record_files`].
pub fn attach_files(
    pid: u32,
    files: &FileOptions<'_>,
    enough: &dyn Fn() -> bool,
) -> Result<RecordedFiles, RecordError> {
    let start = Instant::now();
    let directory = super::stage::directory_of(pid)?;
    let mut follower = Follower::new(&directory, files)?;
    follower.only = Some(pid);
    follower.on = false;
    for path in follower.raw_files() {
        let reader = RawFile::open(&path).ok().and_then(|file| file.reader());
        if let Some(reader) = reader {
            return Err(RecordError::Attach {
                pid,
                reason: format!("process {reader} records it already: end that first"),
            });
        }
        follower.tap(&path, pid)?;
    }
    let over = AtomicBool::new(false);
    let process = PathBuf::from(format!("/proc/{pid}"));
    let main = AtomicU32::new(pid);
    std::thread::scope(|scope| {
        let following = scope.spawn(|| follower.follow(&over, &main));
        while process.exists() && !enough() && !following.is_finished() {
            std::thread::sleep(ATTENTIVE);
        }
        over.store(true, Ordering::Release);
    });
    if follower.on && follower.failed.is_none() {
        follower.turn(false, pid)?;
    }
    for tap in &follower.taps {
        follower.waited += tap
            .reading
            .merge
            .memory
            .header()
            .waited
            .load(Ordering::Relaxed);
    }
    follower.stop_recorders();
    if let Some(error) = follower.failed.take() {
        return Err(error);
    }
    if follower.files.is_empty() && follower.full.is_none() {
        return Err(RecordError::Attach {
            pid,
            reason: "it asked for nothing meanwhile".to_owned(),
        });
    }
    Ok(RecordedFiles {
        files: follower.files.into(),
        removed: follower.removed,
        left_out: 0,
        without_room: 0,
        waited_seconds: follower.waited as f64 / 1e9,
        full: follower.full,
        ending: Ending::Exit(0),
        cpu_seconds: 0.0,
        wall_seconds: start.elapsed().as_secs_f64(),
    })
}

/// A process that is read.
struct Tap {
    process: ProcessTrace,
    /// The counter and the monotonic clock at its start.
    start: (u64, u64),
    reading: Reading<RawFile, PartWriter>,
    /// Whether a file is begun.
    writes: bool,
    /// When threads that are gone were looked for.
    relieved: Instant,
}

/// A process of which something is left once it is over.
enum Left {
    /// It is read already.
    Tapped(Box<Tap>),
    /// It is not.
    Untouched(ProcessTrace),
}

impl Left {
    fn process(&self) -> &ProcessTrace {
        match self {
            Left::Tapped(tap) => &tap.process,
            Left::Untouched(process) => process,
        }
    }
}

/// Reads along.
struct Follower<'a> {
    directory: &'a Path,
    options: &'a FileOptions<'a>,
    /// The one process that is recorded, if others of its directory are not.
    only: Option<u32>,
    taps: Vec<Tap>,
    /// Raw files that are tapped.
    known: HashSet<PathBuf>,
    /// Files begun for each process that has several.
    parts: BTreeMap<u32, u32>,
    /// Files that are whole.
    files: VecDeque<RecordedFile>,
    removed: u64,
    left_out: usize,
    waited: u64,
    on: bool,
    /// When it was looked for raw files, and how long that is left then.
    scanned: Instant,
    rest: Duration,
    /// Whether a process was seen.
    met: bool,
    full: Option<PathBuf>,
    failed: Option<RecordError>,
}

impl<'a> Follower<'a> {
    fn new(directory: &'a Path, options: &'a FileOptions<'a>) -> Result<Follower<'a>, RecordError> {
        let on = options
            .control
            .is_none_or(|control| control.on.load(Ordering::Relaxed));
        let mut follower = Follower {
            directory,
            options,
            only: None,
            taps: Vec::new(),
            known: HashSet::new(),
            parts: BTreeMap::new(),
            files: VecDeque::new(),
            removed: 0,
            left_out: 0,
            waited: 0,
            on,
            scanned: Instant::now(),
            rest: Duration::ZERO,
            met: false,
            full: None,
            failed: None,
        };
        if !on {
            follower.pause_later(true)?;
        }
        Ok(follower)
    }

    /// Has processes that begin from now on be paused, or not. Where it is attached to one, others are as they are.
    fn pause_later(&mut self, paused: bool) -> Result<(), RecordError> {
        if self.only.is_some() {
            return Ok(());
        }
        let path = self.directory.join(PAUSED_FILE);
        let done = match paused {
            true => fs::write(&path, []),
            false => fs::remove_file(&path),
        };
        done.map_err(|error| self.bad_directory(&error))
    }

    fn bad_directory(&self, error: &std::io::Error) -> RecordError {
        RecordError::Directory {
            path: self.directory.to_owned(),
            reason: error.to_string(),
        }
    }

    /// The raw files that are of interest.
    fn raw_files(&self) -> Vec<PathBuf> {
        let mut files = raw_files(self.directory);
        if let Some(only) = self.only {
            let prefix = format!("{only}.");
            files.retain(|path| {
                let name = path.file_name().map(|name| name.as_bytes());
                name.is_some_and(|name| name.starts_with(prefix.as_bytes()))
            });
        }
        files
    }

    /// Whether a trace may have several files.
    fn of_many(&self) -> bool {
        self.options.rotation.is_some() || self.options.control.is_some()
    }

    /// Reads along until the program is over.
    fn follow(&mut self, over: &AtomicBool, main: &AtomicU32) {
        let mut wait = OFTEN;
        while !over.load(Ordering::Acquire) && self.failed.is_none() {
            std::thread::sleep(wait);
            match self.look(main.load(Ordering::Relaxed)) {
                Ok(busy) => wait = if busy { OFTEN } else { (wait * 2).min(SELDOM) },
                Err(error) => self.fail(error),
            }
        }
    }

    /// Nothing can be written any more: the program goes on by itself.
    fn fail(&mut self, error: RecordError) {
        self.stop_recorders();
        self.failed.get_or_insert(error);
    }

    fn stop_recorders(&mut self) {
        let _ = self.pause_later(true);
        self.pause_all(true);
        for tap in &self.taps {
            tap.reading.merge.memory.leave();
        }
    }

    /// Pauses all processes that there are, or has them go on.
    fn pause_all(&self, paused: bool) {
        for path in self.raw_files() {
            if let Ok(file) = RawFile::open(&path) {
                let word = &file.header().paused;
                word.store(u32::from(paused), Ordering::Relaxed);
            }
        }
    }

    /// Reads what there is; whether that was much.
    fn look(&mut self, main: u32) -> Result<bool, RecordError> {
        let wanted = self
            .options
            .control
            .is_none_or(|control| control.on.load(Ordering::Relaxed));
        if wanted != self.on && self.full.is_none() {
            self.turn(wanted, main)?;
        }
        if self.scanned.elapsed() >= self.rest {
            self.tap_large(main)?;
        }
        let mut busy = false;
        for index in 0..self.taps.len() {
            busy |= self.read(index, main)?;
        }
        Ok(busy)
    }

    /// Begins to record, or stops.
    fn turn(&mut self, on: bool, main: u32) -> Result<(), RecordError> {
        self.pause_later(!on)?;
        if on {
            self.on = true;
            for index in 0..self.taps.len() {
                self.begin_next(index, main, false);
            }
            self.pause_all(false);
            (self.options.told)(&Progress::Begun);
            return Ok(());
        }
        self.pause_all(true);
        // What is under way gets there.
        std::thread::sleep(OFTEN);
        for path in self.raw_files() {
            self.tap(&path, main)?;
        }
        self.on = false;
        for index in 0..self.taps.len() {
            self.read(index, main)?;
            self.write(index)?;
            // What is freed meanwhile is not seen.
            self.taps[index].reading.requests.blocks.forget();
        }
        (self.options.told)(&Progress::Stopped);
        Ok(())
    }

    /// Begins to read what has become large.
    fn tap_large(&mut self, main: u32) -> Result<(), RecordError> {
        let files = self.raw_files();
        self.rest = SELDOM + ONE_FILE * u32::try_from(files.len()).unwrap_or(u32::MAX);
        self.scanned = Instant::now();
        for path in files {
            let length = path.metadata().map_or(0, |found| found.len());
            self.met |= length >= HEADER_BYTES as u64;
            if length >= LARGE {
                self.tap(&path, main)?;
            }
        }
        Ok(())
    }

    /// Begins to read a raw file, unless it is read.
    fn tap(&mut self, path: &Path, main: u32) -> Result<(), RecordError> {
        if self.known.contains(path) {
            return Ok(());
        }
        let (ticks, monotonic) = run::clocks();
        let Some((start, process)) = read_header(path, (ticks, monotonic))? else {
            return Ok(());
        };
        let memory = RawFile::open(path).map_err(|error| RecordError::Raw {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        self.met = true;
        self.known.insert(path.to_owned());
        let start = (memory.header().clock_start, start);
        let writer = if self.on {
            PartWriter::begin(&self.place(&process, main), self.of_many())
        } else {
            PartWriter::none_yet(self.of_many())
        };
        let mut reading = Reading::new(memory, process.clock, process.tables(), writer);
        reading.requests.blocks.sink.most = self.options.rotation.map(|rotation| rotation.bytes);
        if !self.on {
            reading.pass();
        }
        reading.merge.memory.read_along(MOST_SEGMENTS);
        self.taps.push(Tap {
            process,
            start,
            reading,
            writes: self.on,
            relieved: Instant::now(),
        });
        Ok(())
    }

    /// Where the next file of a process is to be, unless that is said at the end.
    fn place(&mut self, process: &ProcessTrace, main: u32) -> PathBuf {
        let is_main = process.pid == main && !process.forked;
        let own = beside(self.options.output, &format!("pid{}", process.pid));
        if !self.of_many() {
            return if is_main {
                self.options.output.to_owned()
            } else {
                own
            };
        }
        let part = self.parts.entry(process.pid).or_insert(0);
        *part += 1;
        let part = *part;
        part_of(if is_main { self.options.output } else { &own }, part)
    }

    /// Reads what a process has recorded; whether that was much.
    fn read(&mut self, index: usize, main: u32) -> Result<bool, RecordError> {
        let (ticks, monotonic) = run::clocks();
        let Some(tap) = self.taps.get_mut(index) else {
            return Ok(false);
        };
        let before = tap.reading.requests.blocks.sink.events();
        let number = self.parts.get(&tap.process.pid).copied();
        let passed = monotonic.saturating_sub(tap.start.1).max(1);
        let in_ticks = u128::from(ticks.saturating_sub(tap.start.0)) * u128::from(SLACK_NS);
        let slack = u64::try_from(in_ticks / u128::from(passed)).unwrap_or(u64::MAX);
        let shift = tap.reading.merge.memory.header().clock_shift.min(63);
        tap.reading.requests.clock.look(ticks, passed);
        self.read_before(index, main, Some(ticks.saturating_sub(slack) >> shift))?;
        self.taps[index].relieve();
        let cut = self.parts.get(&self.taps[index].process.pid).copied() != number;
        let sink = &mut self.taps[index].reading.requests.blocks.sink;
        let busy = cut || sink.events() - before > 10_000;
        if let Some(error) = sink.failure() {
            return Err(RecordError::Output {
                path: sink.place().to_owned(),
                reason: error.to_string(),
            });
        }
        if sink.found_no_room() && self.full.is_none() {
            self.full = Some(sink.place().to_owned());
            self.stop_recorders();
        }
        Ok(busy)
    }

    /// Reads all before `horizon`, and cuts the trace wherever its file has become large enough.
    fn read_before(
        &mut self,
        index: usize,
        main: u32,
        horizon: Option<u64>,
    ) -> Result<(), RecordError> {
        loop {
            let tap = &mut self.taps[index];
            let read = tap.reading.read(horizon);
            if read.map_err(|error| bad_raw(&tap.process, &error))? {
                return Ok(());
            }
            self.write(index)?;
            self.begin_next(index, main, true);
        }
    }

    /// Goes on with the next file of a process.
    fn begin_next(&mut self, index: usize, main: u32, with_live: bool) {
        let process = self.taps[index].process.clone();
        let place = self.place(&process, main);
        let number = self.parts.get(&process.pid).copied().unwrap_or(1);
        let tap = &mut self.taps[index];
        tap.writes = true;
        let requests = &mut tap.reading.requests;
        let time = requests.last_time();
        let (sink, live) = requests.blocks.live();
        let mut live: Vec<_> = if with_live {
            live.collect()
        } else {
            Vec::new()
        };
        sink.next(&place, number, time, &mut live);
    }

    /// Ends the file of a process and puts it in its place, unless there is nothing in it.
    fn write(&mut self, index: usize) -> Result<(), RecordError> {
        let tap = &mut self.taps[index];
        if !std::mem::replace(&mut tap.writes, false) {
            return Ok(());
        }
        let place = tap.reading.requests.blocks.sink.place().to_owned();
        let may_be_empty = self.options.control.is_none() && self.only.is_none();
        if tap.reading.requests.blocks.sink.events() == 0 && !may_be_empty {
            // Nothing was asked for while it was recorded.
            return Ok(());
        }
        if let Some((part, file)) = finish(tap, self.options)? {
            self.put(part, file, &place)?;
        }
        Ok(())
    }

    /// Puts a file in its place, and removes what is too old.
    fn put(
        &mut self,
        part: Option<Part>,
        mut file: RecordedFile,
        place: &Path,
    ) -> Result<(), RecordError> {
        if !(self.options.may_write)(place) {
            return Err(RecordError::Refused);
        }
        if let Some(part) = part {
            part.put_at(place).map_err(|error| RecordError::Output {
                path: place.to_owned(),
                reason: error.to_string(),
            })?;
        }
        file.path = place.to_owned();
        (self.options.told)(&Progress::Written(&file));
        self.files.push_back(file);
        if let Some(keep) = self.options.rotation.and_then(|rotation| rotation.keep) {
            while self.files.len() > keep.max(1) {
                if let Some(old) = self.files.pop_front() {
                    // It was written a while ago; whoever took it away need not have left it.
                    let _ = fs::remove_file(&old.path);
                    self.removed += 1;
                }
            }
        }
        Ok(())
    }

    /// Reads what is left, once the program is over; how many processes found no room.
    fn end(&mut self, now: (u64, u64), main: u32) -> Result<u64, RecordError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut without_room = 0;
        let mut rest = Vec::new();
        for path in self.raw_files() {
            if self.known.contains(&path) {
                continue;
            }
            match read_header(&path, now)? {
                Some((start, process)) => rest.push((start, process)),
                // The recorder takes room for the first requests at once.
                None => {
                    let length = path.metadata().map_or(0, |found| found.len());
                    without_room += u64::from(length < HEADER_BYTES as u64);
                }
            }
        }
        self.met |= !rest.is_empty();
        let tapped = std::mem::take(&mut self.taps).into_iter();
        let tapped = tapped.map(|tap| (tap.start.1, Left::Tapped(Box::new(tap))));
        let rest = rest.into_iter();
        let rest = rest.map(|(start, process)| (start, Left::Untouched(process)));
        let mut left: Vec<(u64, Left)> = tapped.chain(rest).collect();
        left.sort_by_key(|(start, left)| (*start, left.process().pid));
        let mut left: Vec<Left> = left.into_iter().map(|(_, left)| left).collect();
        let is_main = |left: &Left| left.process().pid == main && !left.process().forked;
        // Of the programs that ran in the main process the last one counts.
        let last = left.iter().rposition(is_main);
        let main_left = last.map(|index| left.remove(index));
        let mut numbered: Vec<(usize, Left)> = left.into_iter().enumerate().collect();
        if numbered.len() > self.options.most_files {
            numbered.sort_by_key(|(_, left)| std::cmp::Reverse(left.process().raw_words));
            self.left_out = numbered.len() - self.options.most_files;
            numbered.truncate(self.options.most_files);
        }
        if main_left.is_none() && !self.of_many() && !numbered.is_empty() {
            self.nothing_of_main()?;
        }
        let main_left = main_left.into_iter().map(|left| (None, left));
        let numbered = numbered.into_iter().map(|(n, left)| (Some(n + 1), left));
        for (number, left) in main_left.chain(numbered) {
            let tap = match left {
                Left::Tapped(tap) => Some(*tap),
                Left::Untouched(process) => self.late(process, main)?,
            };
            if let Some(tap) = tap {
                self.taps.push(tap);
                self.last_of(main, number)?;
            }
        }
        Ok(without_room)
    }

    /// A process that was not read until now; None if there is nothing of it.
    fn late(&mut self, process: ProcessTrace, main: u32) -> Result<Option<Tap>, RecordError> {
        let memory = RawFile::open(&process.path).map_err(|error| RecordError::Raw {
            path: process.path.clone(),
            reason: error.to_string(),
        })?;
        let nothing = memory.header().segments.load(Ordering::Relaxed) == 0;
        if nothing && self.options.control.is_some() {
            return Ok(None);
        }
        let place = self.place(&process, main);
        let writer = PartWriter::begin(&place, self.of_many());
        let mut reading = Reading::new(memory, process.clock, process.tables(), writer);
        reading.requests.blocks.sink.most = self.options.rotation.map(|rotation| rotation.bytes);
        Ok(Some(Tap {
            start: (0, 0),
            process,
            reading,
            writes: true,
            relieved: Instant::now(),
        }))
    }

    /// The rest of a process, and its last file; `number` is that of a process other than the main one.
    fn last_of(&mut self, main: u32, number: Option<usize>) -> Result<(), RecordError> {
        let (ticks, monotonic) = run::clocks();
        let tap = &mut self.taps[0];
        if tap.start != (0, 0) {
            let passed = monotonic.saturating_sub(tap.start.1);
            tap.reading.requests.clock.look(ticks, passed);
        }
        self.read_before(0, main, None)?;
        let mut tap = self.taps.remove(0);
        let header = tap.reading.merge.memory.header();
        self.waited += header.waited.load(Ordering::Relaxed);
        if !tap.writes {
            return Ok(());
        }
        let sink = &mut tap.reading.requests.blocks.sink;
        if let Some(error) = sink.failure() {
            return Err(RecordError::Output {
                path: sink.place().to_owned(),
                reason: error.to_string(),
            });
        }
        if sink.found_no_room() && self.full.is_none() {
            self.full = Some(sink.place().to_owned());
        }
        let place = match number {
            Some(number) if !self.of_many() => beside(self.options.output, &number.to_string()),
            _ => sink.place().to_owned(),
        };
        let empty = sink.events() == 0;
        if empty && (number.is_some() || self.options.control.is_some()) {
            return Ok(());
        }
        match finish(&mut tap, self.options)? {
            Some((part, file)) => self.put(part, file, &place),
            None => Ok(()),
        }
    }

    /// The command itself made no request, only others did.
    fn nothing_of_main(&mut self) -> Result<(), RecordError> {
        let place = self.options.output.to_owned();
        let mut writer = PartWriter::begin(&place, false);
        let ended = writer.end(Provenance::default(), &Stacks::default());
        match (ended, writer.failure()) {
            (Some((part, facts)), _) => {
                let file = RecordedFile {
                    path: place.clone(),
                    command: Vec::new(),
                    facts,
                    threads: 0,
                    lost: 0,
                    named: serde_json::Value::Null,
                };
                self.put(part, file, &place)
            }
            (None, error) => Err(RecordError::Output {
                path: place,
                reason: error.map_or_else(String::new, |error| error.to_string()),
            }),
        }
    }
}

impl Tap {
    /// Hands back what threads hold that are gone, once it is much. If threads that live hold all there is, more is allowed:
    /// each has a segment of its own.
    fn relieve(&mut self) {
        let (in_use, most, none_left) = self.reading.merge.memory.in_use();
        if in_use < most / 2 || self.relieved.elapsed() < RELIEF {
            return;
        }
        self.relieved = Instant::now();
        let living = living(self.process.pid);
        // Whoever is looked for elsewhere (in a namespace of its own) is not found at all.
        let relieved = match living.contains(&self.process.pid) {
            true => self.reading.relieve(|thread| living.contains(&thread)),
            false => 0,
        };
        if relieved == 0 && none_left {
            self.reading.merge.memory.allow(MORE_SEGMENTS);
        }
    }
}

/// The threads of a process, by the system's numbers.
fn living(process: u32) -> HashSet<u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).collect()
}

/// Ends the file of a process.
fn finish(
    tap: &mut Tap,
    options: &FileOptions<'_>,
) -> Result<Option<(Option<Part>, RecordedFile)>, RecordError> {
    let reading = &mut tap.reading;
    let mut stacks = reading
        .tables
        .as_ref()
        .map_or_else(Stacks::default, |tables| tables.stacks());
    let named = match stacks.is_empty() {
        true => serde_json::Value::Null,
        false => (options.name)(&mut stacks, &tap.process.with_parent()),
    };
    let lost = reading.merge.memory.header().lost.load(Ordering::Relaxed);
    let threads = reading.requests.threads();
    let blocks = &mut reading.requests.blocks;
    let provenance = Provenance {
        threads,
        lost_events: lost,
        unknown_blocks: blocks.unknown_frees + blocks.unknown_resizes,
        ..tap.process.provenance()
    };
    let ended = blocks.sink.end(provenance, &stacks);
    let Some((part, facts)) = ended else {
        return match blocks.sink.failure() {
            Some(error) => Err(RecordError::Output {
                path: blocks.sink.place().to_owned(),
                reason: error.to_string(),
            }),
            None => Ok(None),
        };
    };
    let file = RecordedFile {
        path: PathBuf::new(),
        command: tap.process.command.clone(),
        facts,
        threads,
        lost,
        named,
    };
    Ok(Some((part, file)))
}

fn bad_raw(process: &ProcessTrace, error: &crate::error::Inconsistency) -> RecordError {
    RecordError::Raw {
        path: process.path.clone(),
        reason: error.to_string(),
    }
}

/// The raw files in a directory.
fn raw_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "raw"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_parts_get_numbers() {
        let cases = [
            ("a.trace.parquet", "a.3.trace.parquet"),
            ("dir.d/a", "dir.d/a.3"),
            (".hidden", ".hidden.3"),
        ];
        for (path, expected) in cases {
            assert_eq!(beside(Path::new(path), "3"), Path::new(expected));
        }
        let part = part_of(Path::new("a.trace.parquet"), 12);
        assert_eq!(part, Path::new("a.part0012.trace.parquet"));
    }
}
