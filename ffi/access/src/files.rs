//! The two files of the plug-in, mapped shared: what was written is in them
//! however the process ends.
//!
//! Invariant: memory handed out has disk space behind it, so that no write
//! faults; what finds no room is refused, never written.

use core::ptr::{self, NonNull};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::layout::{Header, SLOTS, SLOTS_OFFSET, Slot};

/// Bytes by which the event file grows.
const CHUNK: usize = 8 << 20;
/// Slots by which the state file grows.
const SLOT_STEP: usize = 1 << 14;

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

/// Makes sure that `length` bytes from `offset` are there.
fn reserve(file: &File, offset: usize, length: usize) -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a valid place; where it fails there is no limit known.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    // Growing past the limit would raise a signal in the program.
    if (offset + length) as u64 > limit.rlim_cur {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    // SAFETY: plain values of an open file.
    let result = unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as i64, length as i64) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

/// Maps `length` bytes from `offset`, which need not be there yet.
fn map(file: &File, offset: usize, length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at a place that the system chooses.
    let place = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            offset as i64,
        )
    };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(place.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// The state file.
pub(crate) struct State {
    file: File,
    place: NonNull<u8>,
    /// Slots that have room.
    reserved: usize,
}

// SAFETY: the mapping belongs to no thread; what is in it is atomic.
unsafe impl Send for State {}

impl State {
    pub(crate) fn create(path: &Path) -> io::Result<State> {
        let file = create(path)?;
        reserve(&file, 0, SLOTS_OFFSET)?;
        let place = map(&file, 0, SLOTS_OFFSET + SLOTS * size_of::<Slot>())?;
        Ok(State {
            file,
            place,
            reserved: 0,
        })
    }

    /// The header; it stays mapped for the life of the process.
    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: mapped, aligned to a page, and never unmapped.
        unsafe { self.place.cast().as_ref() }
    }

    /// Where the virtual processors and the slots lie.
    pub(crate) fn place(&self) -> *mut u8 {
        self.place.as_ptr()
    }

    /// Whether slot `slot` has room, made if need be.
    pub(crate) fn has_room(&mut self, slot: usize) -> bool {
        if slot < self.reserved {
            return true;
        }
        if slot >= SLOTS {
            return false;
        }
        let offset = SLOTS_OFFSET + self.reserved * size_of::<Slot>();
        let step = SLOT_STEP.min(SLOTS - self.reserved);
        if reserve(&self.file, offset, step * size_of::<Slot>()).is_err() {
            return false;
        }
        self.reserved += step;
        true
    }
}

/// The event file.
pub(crate) struct Events {
    file: File,
    chunk: NonNull<u8>,
    /// Bytes of the file before the chunk.
    before: usize,
    /// Bytes written to the chunk.
    used: usize,
    full: bool,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Events {}

impl Events {
    pub(crate) fn create(path: &Path) -> io::Result<Events> {
        let file = create(path)?;
        reserve(&file, 0, CHUNK)?;
        let chunk = map(&file, 0, CHUNK)?;
        Ok(Events {
            file,
            chunk,
            before: 0,
            used: 0,
            full: false,
        })
    }

    /// Appends a record; false if there is no room for it.
    #[inline]
    pub(crate) fn put<const WORDS: usize>(&mut self, words: [u64; WORDS]) -> bool {
        // All of a record or nothing: make room for its last word first.
        if self.used + WORDS * 8 > CHUNK && !self.put_across(words.len()) {
            return false;
        }
        for word in words {
            // SAFETY: the chunk has room for all words of the record.
            unsafe { self.chunk.as_ptr().add(self.used).cast::<u64>().write(word) };
            self.used += 8;
        }
        true
    }

    /// Turns to a chunk that begins at the next word and has room for `words`.
    #[cold]
    fn put_across(&mut self, words: usize) -> bool {
        debug_assert!(words * 8 <= PAGE);
        if self.full {
            return false;
        }
        // A mapping begins at a page: the last page is mapped again.
        let at = self.before + self.used;
        let start = at / PAGE * PAGE;
        let moved = reserve(&self.file, start, CHUNK).and_then(|()| map(&self.file, start, CHUNK));
        let Ok(chunk) = moved else {
            self.full = true;
            return false;
        };
        // SAFETY: nobody else has the old chunk; the file keeps its data.
        unsafe { libc::munmap(self.chunk.as_ptr().cast(), CHUNK) };
        self.chunk = chunk;
        self.before = start;
        self.used = at - start;
        true
    }
}

/// A multiple of every page size in use.
const PAGE: usize = 65_536;
