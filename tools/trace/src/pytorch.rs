//! Memory snapshots of PyTorch (`torch.cuda.memory._snapshot()`, pickled) as traces.
//!
//! A snapshot has the history of the caching allocator, device by device: what was asked for and
//! given back, and when. `alloc` begins a block, `free_completed` ends it, when no stream uses it
//! any more; what the allocator itself takes from the device is left out, as that is the heap's
//! business. The block is what the program asked for, before any rounding.
//!
//! Blocks from before the history come first, in the order of their addresses: the snapshot shows
//! them where they are freed, or among the segments if they live on. Streams take the place of
//! threads, numbered by first appearance.
//!
//! Invariant: reading is reading; nothing in the file is run (see [`pickle`]).

mod pickle;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{Inconsistency, TraceError};
use crate::trace::{Provenance, Trace, TraceBuilder};
use pickle::{Fields, Index, Values};

/// Alignment of the allocator's blocks, bytes.
const ALIGN: u32 = 512;

/// What is wrong with a pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickleError {
    /// It does not begin as a pickle of protocol 2 or later does.
    #[error("this is no pickle of protocol 2 or later")]
    NoPickle,
    /// It ends within an instruction, or without the last one.
    #[error("it is cut off")]
    CutOff,
    /// An instruction finds nothing to work on.
    #[error("an instruction finds nothing to work on: it is damaged")]
    EmptyStack,
    /// An instruction finds a value that it cannot work on.
    #[error("an instruction does not suit what it works on: it is damaged")]
    WrongKind,
    /// It names or calls something of Python.
    #[error(
        "instruction {0:#04x} makes an object; a snapshot is plain data, and nothing else is read"
    )]
    Object(u8),
    /// No instruction of protocols 2 to 5 that plain data needs.
    #[error("instruction {0:#04x} is not known")]
    Unknown(u8),
    /// More than 2^32 values.
    #[error("it holds more than 4294967295 values")]
    TooLarge,
}

/// Why a pickle is no snapshot that a trace can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// A part is missing, or of another kind.
    #[error(
        "{0} is missing or of another kind; `torch.cuda.memory._dump_snapshot` writes snapshots"
    )]
    Missing(&'static str),
    /// No device has a history.
    #[error(
        "it has no history: call `torch.cuda.memory._record_memory_history()` before what is to \
         be recorded"
    )]
    NoHistory,
    /// Several devices have one.
    #[error("devices {} have a history: choose one", some(.0))]
    Devices(Vec<usize>),
    /// The device asked for has none.
    #[error("device {device} has no history; these have: {}", some(.known))]
    NoDevice {
        /// The device asked for.
        device: usize,
        /// Those that have one.
        known: Vec<usize>,
    },
    /// Two segments are one, or have one list of blocks.
    #[error("segment {segment} shares its blocks with another: it is damaged")]
    Shared {
        /// Which segment, from 0.
        segment: usize,
    },
    /// An entry of the history is not as it should be.
    #[error("entry {entry} of the history has no {field} that is a number")]
    Field {
        /// Which entry, from 0.
        entry: usize,
        /// What is missing.
        field: &'static str,
    },
    /// An entry that cannot follow those before it.
    #[error("entry {entry} of the history: {cause}")]
    Entry {
        /// Which entry, from 0.
        entry: usize,
        /// What is wrong with it.
        cause: Inconsistency,
    },
}

/// The first few of a list.
fn some(devices: &[usize]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<String> = devices.iter().take(SHOWN).map(usize::to_string).collect();
    let shown = shown.join(", ");
    match devices.len() > SHOWN {
        true => format!("{shown}, … ({} in all)", devices.len()),
        false => shown,
    }
}

/// Reads the snapshot in file `path`. `device` chooses among devices, where several have a
/// history. O(bytes), whatever the pickle shares, in memory of at most 256 times the file: that
/// of a file made for it, snapshots take a few times their bytes.
///
/// # Errors
/// [`TraceError::Pickle`] names the byte at which the file is wrong, [`TraceError::Snapshot`] what
/// of a snapshot it lacks; [`TraceError::Empty`] if nothing was allocated.
pub fn import_pytorch_file(path: &Path, device: Option<usize>) -> Result<Trace, TraceError> {
    let bytes = std::fs::read(path).map_err(|source| TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    import_pytorch(&bytes, path, device)
}

/// Reads a snapshot; `name` is what errors call it. See [`import_pytorch_file`].
///
/// # Errors
/// As [`import_pytorch_file`].
pub fn import_pytorch(
    bytes: &[u8],
    name: &Path,
    device: Option<usize>,
) -> Result<Trace, TraceError> {
    let values = Values::read(bytes).map_err(|(offset, cause)| TraceError::Pickle {
        path: name.to_owned(),
        offset,
        cause,
    })?;
    let built = build(&values, device).map_err(|cause| TraceError::Snapshot {
        path: name.to_owned(),
        cause,
    })?;
    built.ok_or_else(|| TraceError::Empty {
        path: name.to_owned(),
    })
}

/// What happened to an address.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Place in the history.
    entry: usize,
    allocates: bool,
    address: u64,
    size: u64,
    stream: u64,
    time_us: u64,
}

/// The trace; None if it would be empty.
fn build(values: &Values, device: Option<usize>) -> Result<Option<Trace>, SnapshotError> {
    let root = values.root();
    let [histories, segments] = Fields::new(["device_traces", "segments"]).of(values, root);
    let histories = histories.and_then(|found| values.list(found));
    let histories = histories.ok_or(SnapshotError::Missing("device_traces"))?;
    let device = chosen(values, histories, device)?;
    let history = values.list(histories[device]).unwrap_or_default();
    let entries = entries(values, history)?;
    let segments = segments.and_then(|found| values.list(found));
    let before = from_before(values, segments.unwrap_or_default(), device, &entries)?;

    let mut builder = TraceBuilder::new();
    let mut live = HashMap::new();
    let mut streams = Streams::default();
    let start = entries.first().map_or(0, |entry| entry.time_us);
    for (address, size, stream) in before {
        let thread = streams.number(stream);
        let made = builder.alloc(0, thread, size, ALIGN);
        let block = made.map_err(|cause| SnapshotError::Entry { entry: 0, cause })?;
        live.insert(address, block);
    }
    for entry in entries {
        let wrong = |cause| SnapshotError::Entry {
            entry: entry.entry,
            cause,
        };
        let time = entry.time_us.saturating_sub(start).saturating_mul(1000);
        let thread = streams.number(entry.stream);
        if entry.allocates {
            let made = builder.alloc(time, thread, entry.size, ALIGN);
            let block = made.map_err(wrong)?;
            if live.insert(entry.address, block).is_some() {
                let block = entry.address;
                return Err(wrong(Inconsistency::LiveBlock { block }));
            }
        } else {
            // Those of before are live, so this one was freed already.
            let block = live.remove(&entry.address).ok_or_else(|| {
                let block = entry.address;
                wrong(Inconsistency::DoubleFree { block })
            })?;
            builder.free(time, thread, block).map_err(wrong)?;
        }
    }
    if builder.is_empty() {
        return Ok(None);
    }
    Ok(Some(builder.finish(Provenance {
        recorder: "pytorch".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: streams.numbers.len() as u32,
        timed: true,
        ..Provenance::default()
    })))
}

/// Streams by first appearance.
#[derive(Default)]
struct Streams {
    numbers: HashMap<u64, u32>,
}

impl Streams {
    fn number(&mut self, stream: u64) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(stream).or_insert(next)
    }
}

/// The device whose history is read.
fn chosen(
    values: &Values,
    histories: &[Index],
    device: Option<usize>,
) -> Result<usize, SnapshotError> {
    let known: Vec<usize> = (0..histories.len())
        .filter(|device| {
            values
                .list(histories[*device])
                .is_some_and(|list| !list.is_empty())
        })
        .collect();
    match (device, known.as_slice()) {
        (_, []) => Err(SnapshotError::NoHistory),
        (None, [only]) => Ok(*only),
        (None, _) => Err(SnapshotError::Devices(known)),
        (Some(device), _) if known.contains(&device) => Ok(device),
        (Some(device), _) => Err(SnapshotError::NoDevice { device, known }),
    }
}

/// Allocations and frees of a history.
fn entries(values: &Values, history: &[Index]) -> Result<Vec<Entry>, SnapshotError> {
    let mut entries = Vec::with_capacity(history.len());
    let mut fields = Fields::new(["action", "addr", "size", "stream", "time_us"]);
    for (entry, &found) in history.iter().enumerate() {
        let [action, address, size, stream, time_us] = fields.of(values, found);
        let action = action.and_then(|action| values.text(action));
        let allocates = match action {
            Some("alloc") => true,
            Some("free_completed") => false,
            // Segments, requests to free, snapshots, refusals: no block begins or ends.
            Some(_) => continue,
            None => {
                let field = "action";
                return Err(SnapshotError::Field { entry, field });
            }
        };
        let known = |value: Option<Index>| value.and_then(|value| values.number(value));
        let number = |value, field| known(value).ok_or(SnapshotError::Field { entry, field });
        entries.push(Entry {
            entry,
            allocates,
            address: number(address, "addr")?,
            size: number(size, "size")?,
            stream: known(stream).unwrap_or(0),
            // Histories of old versions have no times.
            time_us: known(time_us).unwrap_or(0),
        });
    }
    Ok(entries)
}

/// Blocks that were there when the history began: address, size, stream, by address.
fn from_before(
    values: &Values,
    segments: &[Index],
    device: usize,
    entries: &[Entry],
) -> Result<Vec<(u64, u64, u64)>, SnapshotError> {
    let mut blocks = Vec::new();
    // What the history ends with: allocated addresses, and freed ones.
    let mut allocated: HashMap<u64, bool> = HashMap::new();
    for entry in entries {
        let before = allocated.insert(entry.address, entry.allocates);
        if !entry.allocates && before.is_none() {
            blocks.push((entry.address, entry.size, entry.stream));
        }
    }
    let known = |value: Option<Index>| value.and_then(|value| values.number(value));
    let mut of_segment = Fields::new(["device", "stream", "blocks", "address"]);
    let mut of_block = Fields::new(["size", "address", "state", "requested_size"]);
    // Blocks that segments share would be more than the file has.
    let mut lists = HashSet::new();
    for (number, &segment) in segments.iter().enumerate() {
        let [found, stream, list, begin] = of_segment.of(values, segment);
        if known(found).is_some_and(|found| found != device as u64) {
            continue;
        }
        let stream = known(stream).unwrap_or(0);
        if list.is_some_and(|list| !lists.insert(list)) {
            return Err(SnapshotError::Shared { segment: number });
        }
        let mut address = known(begin);
        for &block in list.and_then(|list| values.list(list)).unwrap_or_default() {
            let [size, own, state, requested] = of_block.of(values, block);
            let size = known(size);
            let here = known(own).or(address);
            address = here
                .zip(size)
                .and_then(|(here, size)| here.checked_add(size));
            let state = state.and_then(|state| values.text(state));
            let (Some(here), Some(size)) = (here, known(requested).or(size)) else {
                continue;
            };
            // An address that the history knows is in the trace already.
            if state.is_some_and(|state| state.starts_with("active"))
                && !allocated.contains_key(&here)
            {
                blocks.push((here, size, stream));
            }
        }
    }
    blocks.sort_unstable();
    blocks.dedup_by_key(|block| block.0);
    Ok(blocks)
}
