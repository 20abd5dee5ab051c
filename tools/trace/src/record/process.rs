//! The recorded processes, each with its raw file.
//!
//! Invariant: a raw file is read only when its trace is asked for: a build may
//! have thousands of processes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::error::RecordError;
use super::layout::{CHUNK_BYTES, HEADER_BYTES, Header, MAGIC, SEGMENT_WORDS, VERSION};
use super::mapped::RawFile;
use super::raw::{self, Clock};
use super::run::Run;
use super::tables::Tables;
use crate::trace::{Provenance, Trace};

/// A process that recorded something.
#[derive(Clone, Debug)]
pub struct ProcessTrace {
    /// Number of the process.
    pub pid: u32,
    /// Number of its parent.
    pub parent: u32,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments; a very long line is cut.
    pub command: Vec<String>,
    /// It came from `fork` and ran on in its parent's program and heap.
    pub forked: bool,
    /// The file name of the program that it replaced itself by (`exec`): then
    /// its heap ended without a last word.
    pub replaced_by: Option<String>,
    /// Words of raw recording: some 1.5 for an event.
    pub raw_words: u64,
    /// Events that found no place (disk full, file size limit, no access to
    /// the directory).
    pub lost: u64,
    /// Its call stacks were recorded.
    pub sited: bool,
    pub(super) path: PathBuf,
    pub(super) clock: Clock,
}

/// A trace out of a raw file, and what did not fit into it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The trace.
    pub trace: Trace,
    /// Frees of blocks from before the recording; in a forked process, of
    /// blocks it inherited. They are not in the trace.
    pub unknown_frees: u64,
    /// Resizes of such blocks; in the trace they are allocations.
    pub unknown_resizes: u64,
    /// Records that were begun and not finished when the process died.
    pub unfinished: u64,
}

impl ProcessTrace {
    /// The process, and the one whose program it goes on with, if it was forked.
    #[must_use]
    pub fn with_parent(&self) -> Vec<u32> {
        match self.forked {
            true => vec![self.pid, self.parent],
            false => vec![self.pid],
        }
    }

    /// File name of the executable.
    #[must_use]
    pub fn name(&self) -> &str {
        self.program
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("")
    }

    /// Reads the trace. O(events). The raw file lives as long as the
    /// [`Recording`](super::Recording).
    ///
    /// # Errors
    /// [`RecordError::Raw`] if the file is damaged.
    pub fn load(&self) -> Result<Loaded, RecordError> {
        let error = |reason: String| RecordError::Raw {
            path: self.path.clone(),
            reason,
        };
        let memory = RawFile::open(&self.path).map_err(|source| error(source.to_string()))?;
        raw::load(memory, self.clock, self.tables(), self.provenance())
            .map_err(|inconsistency| error(inconsistency.to_string()))
    }

    /// Where its trace comes from, as far as it is known before it is read.
    pub(super) fn provenance(&self) -> Provenance {
        Provenance {
            command: self.command.clone(),
            recorder: "preload".to_owned(),
            host: host(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            forked: self.forked,
            lost_events: self.lost,
            timed: true,
            ..Provenance::default()
        }
    }

    /// Empty tables of its call stacks, if those were recorded.
    pub(super) fn tables(&self) -> Option<Tables> {
        self.sited.then(|| Tables::new(self.program.clone()))
    }
}

/// What a directory of raw files holds.
pub(super) struct Processes {
    /// In the order in which they began.
    pub(super) recorded: Vec<ProcessTrace>,
    /// Processes that found no room for a single request.
    pub(super) without_room: u64,
}

/// The processes recorded in `directory`.
pub(super) fn find(directory: &Path, run: &Run) -> Result<Processes, RecordError> {
    let bad = |error: std::io::Error| RecordError::Directory {
        path: directory.to_owned(),
        reason: error.to_string(),
    };
    let mut found = Vec::new();
    let mut without_room = 0;
    for entry in std::fs::read_dir(directory).map_err(bad)? {
        let path = entry.map_err(bad)?.path();
        if path.extension().is_none_or(|extension| extension != "raw") {
            continue;
        }
        match read_header(&path, (run.ticks, run.monotonic))? {
            Some(process) => found.push(process),
            // The recorder takes room for the first requests at once.
            None => {
                let length = path.metadata().map_err(bad)?.len();
                without_room += u64::from(length < HEADER_BYTES as u64);
            }
        }
    }
    found.sort_by_key(|(start, process)| (*start, process.pid));
    let mut recorded: Vec<ProcessTrace> = found.into_iter().map(|(_, process)| process).collect();
    for index in 0..recorded.len() {
        let next = next_image(&recorded, index).map(|next| next.name().to_owned());
        recorded[index].replaced_by = next;
    }
    Ok(Processes {
        recorded,
        without_room,
    })
}

/// The program that ran in a process after this one: `exec` keeps the number,
/// and nothing that comes from `fork` goes before another with it.
fn next_image(processes: &[ProcessTrace], index: usize) -> Option<&ProcessTrace> {
    let own = &processes[index];
    let mut later = processes[index + 1..].iter();
    later.find(|later| later.pid == own.pid && !later.forked && later.parent == own.parent)
}

/// The process of a raw file and when it began, as it is at a look at the counter and the monotonic clock; None if it died before its
/// first record.
pub(super) fn read_header(
    path: &Path,
    (ticks, monotonic): (u64, u64),
) -> Result<Option<(u64, ProcessTrace)>, RecordError> {
    let error = |reason: String| RecordError::Raw {
        path: path.to_owned(),
        reason,
    };
    let mut file = File::open(path).map_err(|source| error(source.to_string()))?;
    // SAFETY: all-zero bytes are a valid header.
    let mut header: Box<Header> = Box::new(unsafe { std::mem::zeroed() });
    let place: *mut Header = &raw mut *header;
    // SAFETY: `place` is valid for the bytes of a header, borrowed once; the
    // structure has integers only, so any bytes are a valid value.
    let bytes = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), size_of::<Header>()) };
    if file.read_exact(bytes).is_err() || header.magic == 0 {
        return Ok(None);
    }
    if header.magic != MAGIC || header.version != VERSION {
        return Err(error("it is of another version of the recorder".to_owned()));
    }
    let length = file
        .metadata()
        .map_err(|source| error(source.to_string()))?
        .len();
    // The recorder takes room for whole chunks.
    let room = length.saturating_sub(HEADER_BYTES as u64) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
    let segments = header.segments.load(Ordering::Relaxed);
    let words = match segments {
        0..FEW_SEGMENTS => {
            written(&mut file, segments).map_err(|source| error(source.to_string()))?
        }
        // Those that were handed back were written before.
        _ => (segments + header.taken.load(Ordering::Relaxed)) * SEGMENT_WORDS as u64,
    };
    let words = match header.taken.load(Ordering::Relaxed) {
        0 => words.min(room / 8),
        _ => words,
    };
    let cut = |bytes: &[u8], length: u32| bytes[..bytes.len().min(length as usize)].to_vec();
    let arguments = cut(&header.command, header.command_length);
    let arguments = arguments.strip_suffix(b"\0").unwrap_or(&arguments);
    let program = cut(&header.program, header.program_length);
    let process = ProcessTrace {
        pid: header.pid,
        parent: header.parent,
        program: PathBuf::from(String::from_utf8_lossy(&program).into_owned()),
        command: arguments
            .split(|&byte| byte == 0)
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect(),
        forked: header.forked != 0,
        replaced_by: None,
        raw_words: words,
        lost: header.lost.load(Ordering::Relaxed),
        sited: header.sites != 0,
        path: path.to_owned(),
        clock: Clock::new(
            header.clock_shift,
            (header.clock_start, 0),
            (ticks, monotonic.saturating_sub(header.monotonic_start)),
        ),
    };
    Ok(Some((header.monotonic_start, process)))
}

/// Of fewer segments words are counted one by one: threads that ask for little leave most of theirs empty.
const FEW_SEGMENTS: u64 = 64;

/// Words in the first segments that were written.
fn written(file: &mut File, segments: u64) -> std::io::Result<u64> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
    file.take(segments * (SEGMENT_WORDS as u64) * 8)
        .read_to_end(&mut bytes)?;
    let written = bytes.chunks_exact(8).filter(|word| **word != [0; 8]);
    Ok(written.count() as u64)
}

/// System and processor.
pub(super) fn host() -> String {
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the answer.
    unsafe { libc::uname(&raw mut name) };
    let text = |field: &[libc::c_char]| {
        let bytes = field
            .iter()
            .map(|&c| c as u8)
            .take_while(|&byte| byte != 0)
            .collect();
        String::from_utf8(bytes).unwrap_or_default()
    };
    format!(
        "{} {} {}",
        text(&name.sysname),
        text(&name.release),
        text(&name.machine)
    )
}
