//! What streams work on, and the work.
//!
//! Invariant: bytes that nobody computed are counted, and told to whoever observes, with every copy
//! that gives them to the host.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::device::Settings;
use crate::error::Answer;
use crate::knowledge::{Kept, Knowledge, Touched};
use crate::memory::Memory;
use crate::streams::Work;

thread_local! {
    /// Where the program's block begins that this thread reads from; 0 if that is not known.
    static READER: Cell<u64> = const { Cell::new(0) };
}

/// Where the program's block begins that this thread reads from, if it said so.
fn reader() -> Option<u64> {
    READER.try_with(Cell::get).ok().filter(|block| *block != 0)
}

/// The program says where the block begins that this thread reads from next; 0 takes it back.
pub fn set_reader(block: u64) {
    let _ = READER.try_with(|cell| cell.set(block));
}

/// A function of the program, to be called when the stream comes to it.
#[derive(Clone, Copy, Debug)]
pub struct HostCall {
    /// What to call.
    pub function: unsafe extern "C" fn(*mut c_void),
    /// What to call it with.
    pub data: *mut c_void,
}

// SAFETY: the program gave both to be used by a thread of the driver.
unsafe impl Send for HostCall {}

/// Bytes of the host that a copy wrote and that nobody computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Where they are, on the host.
    pub place: u64,
    /// How many.
    pub size: u64,
    /// Whether they are the first of their copy.
    pub first: bool,
}

/// What the program is told of guesses by.
pub type Observer = unsafe extern "C" fn(place: *mut u8, size: u64, first: bool);

static OBSERVER: Mutex<Option<Observer>> = Mutex::new(None);

pub(crate) fn observer() -> Option<Observer> {
    *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the program told of guesses, of this device and those that come; `None`: of none.
pub fn observe(observer: Option<Observer>) {
    *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner) = observer;
}

/// What streams work on.
#[derive(Debug)]
pub struct Engine {
    /// The memory.
    pub memory: Memory,
    /// What is known of its content.
    pub known: Knowledge,
    /// Functions whose turn has come; called without the lock.
    calls: Vec<HostCall>,
    /// Copies to the host so far, and their bytes: what the program could have looked at.
    pub reads: u64,
    /// See `reads`.
    pub read_bytes: u64,
    /// Those of them that gave bytes which nobody computed, and these bytes.
    pub guesses: u64,
    /// See `guesses`.
    pub guessed_bytes: u64,
    /// Guesses that the observer is still to be told of; it is, without the lock.
    guessed: Vec<Guess>,
}

impl Engine {
    pub(crate) fn new(settings: Settings) -> std::io::Result<Engine> {
        Ok(Engine {
            memory: Memory::new(settings.bytes, settings.kept == Kept::All)?,
            known: Knowledge::new(settings.kept),
            calls: Vec::new(),
            reads: 0,
            read_bytes: 0,
            guesses: 0,
            guessed_bytes: 0,
            guessed: Vec::new(),
        })
    }

    /// Functions whose turn has come, to be called now.
    pub(crate) fn take_calls(&mut self) -> Vec<HostCall> {
        std::mem::take(&mut self.calls)
    }

    /// Guesses that the observer is to be told of now.
    pub(crate) fn take_guesses(&mut self) -> Vec<Guess> {
        std::mem::take(&mut self.guessed)
    }

    /// Ends the context: plain blocks go, and what is still to be called.
    pub(crate) fn end_context(&mut self) {
        self.memory.free_all();
        self.known.forget_all();
        self.calls.clear();
    }

    /// Unmaps whole mappings.
    ///
    /// # Errors
    /// See [`Memory::unmap`].
    pub fn unmap(&mut self, start: u64, size: u64) -> Answer {
        self.memory.unmap(start, size)?;
        self.known.forget(start, size);
        Ok(())
    }

    /// Frees a plain block.
    ///
    /// # Errors
    /// See [`Memory::free`].
    pub fn free(&mut self, start: u64) -> Answer {
        let range = self.memory.range(start);
        self.memory.free(start)?;
        if let Ok((start, size)) = range {
            self.known.forget(start, size);
        }
        Ok(())
    }

    /// Where the device's segment around an address begins.
    fn segment(&self, address: u64) -> u64 {
        self.memory
            .range(address)
            .map_or(address, |(start, _)| start)
    }

    fn copy_in(&mut self, destination: u64, source: u64, size: u64) -> Answer {
        self.memory.copy_in(destination, source, size)?;
        self.known.copied(destination, size, || {
            let mut bytes = vec![0; size as usize];
            (crate::process::read(source, &mut bytes) == bytes.len()).then_some(bytes)
        });
        Ok(())
    }

    /// Copies to the host what is known, and of the rest what the content holds.
    fn copy_out(&mut self, destination: u64, source: u64, size: u64) -> Answer {
        self.reads += 1;
        self.read_bytes += size;
        self.memory.copy_out(destination, source, size)?;
        let block = reader().filter(|block| *block <= source);
        let segment = self.segment(source);
        let mut first = true;
        for run in self.known.look(source, size, block, segment) {
            let place = destination + (run.start - source);
            let known = run.value.map(|value| value.bytes(run.start, run.size));
            match known {
                Some(Some(bytes)) if crate::process::write(place, &bytes) => continue,
                Some(None) => continue,
                Some(Some(_)) | None => {}
            }
            self.guesses += u64::from(first);
            self.guessed_bytes += run.size;
            if observer().is_some() {
                self.guessed.push(Guess {
                    place,
                    size: run.size,
                    first,
                });
            }
            first = false;
        }
        Ok(())
    }

    fn copy_within(&mut self, destination: u64, source: u64, size: u64) -> Answer {
        self.memory.copy_within(destination, source, size)?;
        let segment = self.segment(source);
        self.known.moved(destination, source, size, segment);
        Ok(())
    }

    fn fill(&mut self, destination: u64, pattern: [u8; 4], unit: usize, size: u64) -> Answer {
        self.memory.fill(destination, &pattern[..unit], size)?;
        self.known.filled(destination, size, pattern, unit);
        Ok(())
    }
}

/// Work of a stream on memory.
#[derive(Debug)]
pub enum Task {
    /// A copy from the host.
    CopyIn {
        /// Where to, on the device.
        destination: u64,
        /// Where from, on the host.
        source: u64,
        /// Bytes.
        size: u64,
    },
    /// A copy from bytes of the host that were taken when the copy was asked for.
    CopyStaged {
        /// Where to, on the device.
        destination: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A copy to the host.
    CopyOut {
        /// Where to, on the host.
        destination: u64,
        /// Where from, on the device.
        source: u64,
        /// Bytes.
        size: u64,
    },
    /// A copy within the device.
    CopyWithin {
        /// Where to.
        destination: u64,
        /// Where from.
        source: u64,
        /// Bytes.
        size: u64,
    },
    /// A pattern, repeated.
    Fill {
        /// Where to.
        destination: u64,
        /// The pattern, of `unit` bytes.
        pattern: [u8; 4],
        /// Bytes of the pattern: 1, 2 or 4.
        unit: usize,
        /// Bytes to fill.
        size: u64,
    },
    /// A function of the program.
    Call(HostCall),
    /// A plain block's end, in the order of the stream.
    Free(u64),
    /// A kernel: it does nothing, in its turn, but what it could have written to is not known
    /// from there on.
    Kernel(Touched),
}

impl Work for Task {
    type On = Engine;

    fn perform(self, engine: &mut Engine) -> Answer {
        match self {
            Task::CopyIn {
                destination,
                source,
                size,
            } => engine.copy_in(destination, source, size),
            Task::CopyStaged { destination, bytes } => {
                let source = bytes.as_ptr().expose_provenance() as u64;
                engine.copy_in(destination, source, bytes.len() as u64)
            }
            Task::CopyOut {
                destination,
                source,
                size,
            } => engine.copy_out(destination, source, size),
            Task::CopyWithin {
                destination,
                source,
                size,
            } => engine.copy_within(destination, source, size),
            Task::Fill {
                destination,
                pattern,
                unit,
                size,
            } => engine.fill(destination, pattern, unit, size),
            Task::Call(call) => {
                engine.calls.push(call);
                Ok(())
            }
            Task::Free(block) => engine.free(block),
            Task::Kernel(touched) => {
                engine.known.touched(touched);
                Ok(())
            }
        }
    }
}
