//! From the plug-in's two files to a trace with counts.
//!
//! Invariant: the result is a consistent trace for any content of the files;
//! blocks that were never freed get an access row with what their slot holds.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::layout::{
    ACCESS, ALLOC, CPUS, Cpu, EVENT_FILE, FREE, HEADER_BYTES, Header, MAGIC, RESIZE_END,
    SLOTS_OFFSET, STATE_FILE, Slot, VERSION,
};
use super::{AccessOptions, Plan};
use crate::error::Inconsistency;
use crate::event::{Event, Op};
use crate::record::error::RecordError;
use crate::record::process::host;
use crate::record::run::Ending;
use crate::trace::{Provenance, Trace, TraceBuilder};

/// What the files say.
pub(super) struct Found {
    pub(super) trace: Trace,
    pub(super) allocator_instructions: u64,
    pub(super) forks: u64,
    pub(super) child_programs: u64,
}

/// The state file.
struct State {
    file: File,
    header: Box<Header>,
}

impl State {
    fn open(directory: &Path) -> Result<Option<State>, String> {
        let Ok(file) = File::open(directory.join(STATE_FILE)) else {
            return Ok(None);
        };
        // The counter makes all of it at once, or could not begin.
        if file.metadata().map_err(|error| error.to_string())?.len() < SLOTS_OFFSET as u64 {
            return Ok(None);
        }
        // SAFETY: all-zero bytes are a valid header, and so are any others: it
        // has integers only.
        let header = unsafe { read_plain::<Header>(&file, 0) }?;
        if header.magic.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        if header.magic.load(Ordering::Relaxed) != MAGIC
            || header.version.load(Ordering::Relaxed) != VERSION
        {
            return Err("it is of another version of the access counter".to_owned());
        }
        Ok(Some(State { file, header }))
    }

    /// Instructions outside and in the allocator.
    fn instructions(&self) -> Result<(u64, u64), String> {
        let cpus = (self.header.threads.load(Ordering::Relaxed) as usize).min(CPUS);
        let mut sums = (0u64, 0u64);
        for index in 0..cpus {
            let offset = HEADER_BYTES + index * size_of::<Cpu>();
            // SAFETY: integers only.
            let cpu = unsafe { read_plain::<Cpu>(&self.file, offset as u64) }?;
            sums.0 = sums
                .0
                .wrapping_add(cpu.instructions.load(Ordering::Relaxed));
            let inside = cpu.allocator_instructions.load(Ordering::Relaxed);
            sums.1 = sums.1.wrapping_add(inside);
        }
        Ok(sums)
    }

    /// The counts in slot `slot`.
    fn slot(&self, slot: u64) -> Result<[u64; 4], String> {
        let offset = SLOTS_OFFSET as u64 + slot * size_of::<Slot>() as u64;
        // SAFETY: integers only.
        let slot = unsafe { read_plain::<Slot>(&self.file, offset) }?;
        let [reads, writes] = &slot.words;
        let [read, written] = &slot.bytes;
        Ok([reads, writes, read, written].map(|number| number.load(Ordering::Relaxed)))
    }
}

/// Reads a `T` at `offset`.
///
/// # Safety
/// Any bytes are a valid `T`.
unsafe fn read_plain<T>(file: &File, offset: u64) -> Result<Box<T>, String> {
    // SAFETY: the caller's promise: zeroes are valid.
    let mut value: Box<T> = Box::new(unsafe { std::mem::zeroed() });
    let place: *mut T = &raw mut *value;
    // SAFETY: valid for the bytes of a T, borrowed once; any bytes may be put
    // there, by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), size_of::<T>()) };
    file.read_exact_at(bytes, offset)
        .map_err(|error| error.to_string())?;
    Ok(value)
}

/// Reads what a run left in `directory`.
pub(super) fn read(
    directory: &Path,
    plan: &Plan,
    ending: Ending,
    options: &AccessOptions,
) -> Result<Found, RecordError> {
    let damaged = |reason: String| RecordError::Raw {
        path: directory.join(STATE_FILE),
        reason,
    };
    let cannot = |reason: String| RecordError::CannotCount {
        path: plan.program.clone(),
        reason,
    };
    let Some(state) = State::open(directory).map_err(damaged)? else {
        return Err(cannot(format!(
            "{} ended with status {} before the program began; what it said is above. It must be \
             QEMU 7.2 or later of the program's machine, built with plug-ins",
            plan.qemu.display(),
            ending.shell_status()
        )));
    };
    let load = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    if load(&state.header.replaced) != 0 {
        return Err(cannot(
            "it replaced itself by another program (exec), which does not run in QEMU: give the \
             command of that program itself"
                .to_owned(),
        ));
    }
    let (instructions, allocator_instructions) = state.instructions().map_err(damaged)?;
    let file =
        File::open(directory.join(EVENT_FILE)).map_err(|error| damaged(error.to_string()))?;
    let mut reader = Reader::default();
    for record in Records::new(file) {
        reader
            .record(&record)
            .map_err(|error| damaged(error.to_string()))?;
    }
    if reader.builder.is_empty() {
        return Err(if plan.native {
            RecordError::NothingRecorded {
                program: plan.program.clone(),
            }
        } else {
            cannot(
                "it announced no block: link it with announce.c of crate metes-access, malloc and \
                 its kin wrapped (docs/accesses.md)"
                    .to_owned(),
            )
        });
    }
    reader.remaining(&state).map_err(damaged)?;
    let command = plan.command.iter();
    let provenance = Provenance {
        command: command
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        recorder: plan
            .qemu
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        host: host(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: reader.threads.len() as u32,
        unknown_blocks: load(&state.header.unknown_frees) + load(&state.header.unknown_resizes),
        lost_events: load(&state.header.lost),
        access_word: options.word,
        instructions,
        ..Provenance::default()
    };
    Ok(Found {
        trace: reader.builder.finish(provenance),
        allocator_instructions,
        forks: load(&state.header.forks),
        child_programs: load(&state.header.child_programs),
    })
}

/// One record of the event file.
pub(super) enum Record {
    Alloc {
        thread: u32,
        slot: u64,
        address: u64,
        size: u64,
        align: u32,
    },
    Free {
        thread: u32,
        slot: u64,
        counts: [u64; 4],
    },
    Resize {
        thread: u32,
        slot: u64,
        address: u64,
        size: u64,
        align: u32,
        counts: [u64; 4],
    },
    Access {
        address: u64,
        bytes: u64,
        write: bool,
    },
}

/// The records of an event file, to its end or the first that is none.
pub(super) struct Records {
    input: BufReader<File>,
}

impl Records {
    pub(super) fn new(file: File) -> Records {
        Records {
            input: BufReader::with_capacity(1 << 20, file),
        }
    }

    fn words<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            let mut bytes = [0u8; 8];
            self.input.read_exact(&mut bytes).ok()?;
            *word = u64::from_le_bytes(bytes);
        }
        Some(words)
    }
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let [head] = self.words()?;
        let thread = (head >> 3 & 0x1fff_ffff) as u32;
        let align = 1u32
            .checked_shl((head >> 32 & 0x3f) as u32)
            .unwrap_or(1 << 31);
        Some(match head & 7 {
            ALLOC => {
                let [slot, address, size] = self.words()?;
                Record::Alloc {
                    thread,
                    slot,
                    address,
                    size,
                    align,
                }
            }
            FREE => {
                let [slot, counts @ ..] = self.words::<5>()?;
                Record::Free {
                    thread,
                    slot,
                    counts,
                }
            }
            RESIZE_END => {
                let [slot, address, size, counts @ ..] = self.words::<7>()?;
                Record::Resize {
                    thread,
                    slot,
                    address,
                    size,
                    align,
                    counts,
                }
            }
            ACCESS => Record::Access {
                address: head >> 11 & 0xffff_ffff_ffff,
                bytes: head >> 4 & 0x7f,
                write: head >> 3 & 1 != 0,
            },
            _ => return None,
        })
    }
}

/// Makes the trace.
#[derive(Default)]
struct Reader {
    builder: TraceBuilder,
    /// The block in each slot.
    blocks: HashMap<u64, u64>,
    /// Number by first appearance of each thread.
    threads: HashMap<u32, u32>,
}

impl Reader {
    fn record(&mut self, record: &Record) -> Result<(), Inconsistency> {
        let (op, thread, slot, size, align, counts) = match *record {
            Record::Alloc {
                thread,
                slot,
                size,
                align,
                ..
            } => (Op::Alloc, thread, slot, size, align, [0; 4]),
            Record::Free {
                thread,
                slot,
                counts,
            } => (Op::Free, thread, slot, 0, 0, counts),
            Record::Resize {
                thread,
                slot,
                size,
                align,
                counts,
                ..
            } => (Op::Resize, thread, slot, size, align, counts),
            Record::Access { .. } => return Ok(()),
        };
        let next = self.threads.len() as u32;
        let thread = *self.threads.entry(thread).or_insert(next);
        let block = match op {
            Op::Alloc => self.builder.blocks(),
            // A slot that the file does not know: the file is cut off there.
            _ => match self.blocks.get(&slot) {
                Some(&block) => block,
                None => return Ok(()),
            },
        };
        self.push(op, thread, block, size, align, counts)?;
        if op == Op::Free {
            self.blocks.remove(&slot);
        } else {
            self.blocks.insert(slot, block);
        }
        Ok(())
    }

    fn push(
        &mut self,
        op: Op,
        thread: u32,
        block: u64,
        size: u64,
        align: u32,
        counts: [u64; 4],
    ) -> Result<(), Inconsistency> {
        let [reads, writes, read_bytes, write_bytes] = counts;
        self.builder.push(Event {
            seq: self.builder.len() as u64,
            time_ns: 0,
            thread,
            op,
            block,
            size,
            align,
            reads,
            writes,
            read_bytes,
            write_bytes,
            site: 0,
        })
    }

    /// Adds what the slots of the blocks hold that were never freed.
    fn remaining(&mut self, state: &State) -> Result<(), String> {
        let mut live: Vec<(u64, u64)> = self.blocks.iter().map(|(&s, &b)| (b, s)).collect();
        live.sort_unstable();
        for (block, slot) in live {
            let counts = state.slot(slot)?;
            if counts != [0; 4] {
                self.push(Op::Access, 0, block, 0, 0, counts)
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}
