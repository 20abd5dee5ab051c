//! A raw file as it lies in memory, mapped by chunks as they are read.
//!
//! *Invariant:* no segment beyond the end of the file is looked at, and words are read as the recorder writes them,
//! whole and in order. While somebody reads along, what is done is zeroed before it is handed back.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{
    CHUNK_BYTES, HEADER_BYTES, Header, RING, SEGMENT_BYTES, SEGMENT_WORDS, SEGMENTS_IN_CHUNK,
};
use super::segments::Memory;

/// A part of a file, mapped.
struct Mapping {
    place: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process, whichever thread has it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes from `offset`, for reading and, where `shared`, for writing.
    fn new(file: &File, offset: u64, length: usize) -> io::Result<Mapping> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping where the system likes.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let place = NonNull::new(place.cast()).ok_or_else(|| io::Error::other("mapped at null"))?;
        Ok(Mapping { place, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and what borrowed from it is gone.
        unsafe { libc::munmap(self.place.as_ptr().cast(), self.length) };
    }
}

/// A chunk of segments.
#[derive(Default)]
struct Chunk {
    mapping: Option<Mapping>,
    /// Segments in it that are done.
    done: usize,
}

/// See the module.
pub(super) struct RawFile {
    file: File,
    header: Mapping,
    chunks: Vec<Chunk>,
    /// Segments that were found, and of those handed back those that were found again.
    found: u64,
    found_again: u64,
    /// Whether segments are handed back.
    along: bool,
}

impl RawFile {
    /// Opens the raw file at `path`.
    pub(super) fn open(path: &Path) -> io::Result<RawFile> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() < HEADER_BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let header = Mapping::new(&file, 0, size_of::<Header>())?;
        let mut opened = RawFile {
            file,
            header,
            chunks: Vec::new(),
            found: 0,
            found_again: 0,
            along: false,
        };
        // What was handed back to another reader, and taken since, is found among all.
        opened.found_again = opened.header().taken.load(Ordering::Acquire);
        Ok(opened)
    }

    /// The header.
    pub(super) fn header(&self) -> &Header {
        // SAFETY: mapped for so many bytes, aligned to a page; any bytes are a valid header, of which what the
        // recorder still writes is atomic.
        unsafe { self.header.place.cast::<Header>().as_ref() }
    }

    /// From now on segments are handed back, and there are to be no more than `most`.
    pub(super) fn read_along(&mut self, most: u32) {
        self.along = true;
        let header = self.header();
        header.most_segments.store(most, Ordering::Relaxed);
        header.reader.store(std::process::id(), Ordering::Release);
    }

    /// Segments that are not handed back, of so many that there may be; and whether none can be had.
    pub(super) fn in_use(&self) -> (u64, u64, bool) {
        let header = self.header();
        let most = u64::from(header.most_segments.load(Ordering::Relaxed));
        let taken = header.taken.load(Ordering::Acquire);
        let waiting = header.given.load(Ordering::Relaxed).saturating_sub(taken);
        let all = header.segments.load(Ordering::Acquire);
        (
            all.saturating_sub(waiting),
            most,
            waiting == 0 && all >= most,
        )
    }

    /// Allows so many segments more.
    pub(super) fn allow(&self, more: u32) {
        self.header()
            .most_segments
            .fetch_add(more, Ordering::Relaxed);
    }

    /// Nobody reads along any more.
    pub(super) fn leave(&self) {
        let header = self.header();
        header.most_segments.store(0, Ordering::Relaxed);
        header.reader.store(0, Ordering::Release);
    }

    /// Who reads along, if that process lives.
    pub(super) fn reader(&self) -> Option<u32> {
        let reader = self.header().reader.load(Ordering::Acquire);
        let number = libc::pid_t::try_from(reader).ok().filter(|&own| own > 0)?;
        // SAFETY: signal 0 only asks.
        let lives = unsafe { libc::kill(number, 0) } == 0
            || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
        lives.then_some(reader)
    }

    /// Segments that the file has room for.
    fn room(&self) -> u64 {
        let length = self.file.metadata().map_or(0, |found| found.len());
        length.saturating_sub(HEADER_BYTES as u64) / CHUNK_BYTES as u64 * SEGMENTS_IN_CHUNK as u64
    }
}

impl Memory for RawFile {
    fn words(&mut self, segment: u64) -> Option<&[AtomicU64]> {
        let segment = usize::try_from(segment).ok()?;
        let (number, within) = (segment / SEGMENTS_IN_CHUNK, segment % SEGMENTS_IN_CHUNK);
        let chunk = self.chunks.get_mut(number)?;
        if chunk.mapping.is_none() {
            let offset = HEADER_BYTES as u64 + number as u64 * CHUNK_BYTES as u64;
            chunk.mapping = Mapping::new(&self.file, offset, CHUNK_BYTES).ok();
        }
        let place = chunk.mapping.as_ref()?.place;
        // SAFETY: `begun` told of the segment, so the file has its chunk, which stays mapped as long as this is borrowed;
        // words are aligned, and the recorder writes them by atomic stores.
        Some(unsafe {
            let first = place.add(within * SEGMENT_BYTES).cast::<AtomicU64>();
            std::slice::from_raw_parts(first.as_ptr(), SEGMENT_WORDS)
        })
    }

    fn begun(&mut self, _ended: bool) -> Vec<u64> {
        let segments = self.header().segments.load(Ordering::Acquire);
        let taken = self.header().taken.load(Ordering::Acquire);
        let segments = if segments > self.found {
            segments.min(self.room())
        } else {
            self.found
        };
        let fresh = self.found..segments;
        let mut begun: Vec<u64> = fresh.collect();
        self.found = segments;
        let chunks = usize::try_from(segments).unwrap_or(usize::MAX);
        let chunks = chunks.div_ceil(SEGMENTS_IN_CHUNK);
        if chunks > self.chunks.len() {
            self.chunks.resize_with(chunks, Chunk::default);
        }
        let given = self.header().given.load(Ordering::Relaxed);
        for number in self.found_again..taken.min(given) {
            let place = (number % RING as u64) as usize;
            let again = self
                .header()
                .ring
                .get(place)
                .map(|place| place.load(Ordering::Relaxed));
            begun.extend(again.map(u64::from));
        }
        self.found_again = self.found_again.max(taken.min(given));
        begun
    }

    fn done(&mut self, segment: u64) {
        if self.along {
            let Some(words) = self.words(segment) else {
                return;
            };
            for word in words {
                word.store(0, Ordering::Relaxed);
            }
            let header = self.header();
            let given = header.given.load(Ordering::Relaxed);
            let waiting = given.wrapping_sub(header.taken.load(Ordering::Acquire));
            let place = header.ring.get((given % RING as u64) as usize);
            if let (Some(place), Ok(segment)) = (place, u32::try_from(segment))
                && waiting < RING as u64
            {
                place.store(segment, Ordering::Relaxed);
                header.given.store(given + 1, Ordering::Release);
            }
            return;
        }
        let number = usize::try_from(segment).unwrap_or(usize::MAX) / SEGMENTS_IN_CHUNK;
        if let Some(chunk) = self.chunks.get_mut(number) {
            chunk.done += 1;
            if chunk.done == SEGMENTS_IN_CHUNK {
                chunk.mapping = None;
            }
        }
    }
}
