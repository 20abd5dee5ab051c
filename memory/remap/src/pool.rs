//! The pool of page frames and the range of addresses: all system calls of the crate.
//!
//! Invariant: what is mapped lies within the reservation, and is either inaccessible or frames
//! of the pool.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use crate::{Error, FRAME};

/// Mappings that the kernel allows a process.
pub(crate) fn mappings() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65_530)
}

fn refused(what: &'static str) -> Error {
    Error::System {
        what,
        cause: io::Error::last_os_error(),
    }
}

/// Page frames: a file in memory, all of it present.
#[derive(Debug)]
pub(crate) struct Pool {
    file: OwnedFd,
    frames: usize,
}

impl Pool {
    pub(crate) fn new(frames: usize) -> Result<Self, Error> {
        // SAFETY: the name is a C string; the result is checked.
        let descriptor = unsafe { libc::memfd_create(c"metes-remap".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(refused("a file in memory"));
        }
        // SAFETY: a new descriptor that nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let bytes = (frames * FRAME) as libc::off_t;
        // SAFETY: a descriptor of ours.
        if unsafe { libc::ftruncate(file.as_raw_fd(), bytes) } != 0
            // SAFETY: as above.
            || unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) } != 0
        {
            return Err(refused("the memory of the pool"));
        }
        Ok(Pool { file, frames })
    }

    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Maps `run` neighbouring frames at a page of the addresses, and zeroes them.
    pub(crate) fn map(
        &self,
        addresses: &Reservation,
        page: usize,
        frame: u32,
        run: usize,
    ) -> Result<(), Error> {
        debug_assert!(page + run <= addresses.pages && frame as usize + run <= self.frames);
        let at = addresses.address(page);
        let offset = (frame as usize * FRAME) as libc::off_t;
        // SAFETY: the range lies within the reservation, where nothing else is mapped.
        let mapped = unsafe {
            libc::mmap(
                at.as_ptr().cast(),
                run * FRAME,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.file.as_raw_fd(),
                offset,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(refused("a mapping"));
        }
        // SAFETY: just mapped, and no block yet.
        unsafe { at.as_ptr().write_bytes(0, run * FRAME) };
        Ok(())
    }
}

/// A range of addresses.
#[derive(Debug)]
pub(crate) struct Reservation {
    start: NonNull<u8>,
    pages: usize,
}

// SAFETY: addresses; what is mapped there is shared by its blocks' users as they see fit.
unsafe impl Send for Reservation {}

impl Reservation {
    pub(crate) fn new(pages: usize) -> Result<Self, Error> {
        let length = pages
            .checked_mul(FRAME)
            .ok_or(Error::Addresses(usize::MAX))?;
        // SAFETY: a new mapping wherever the kernel likes; the result is checked.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Reservation { start, pages })
            }
            _ => Err(refused("addresses")),
        }
    }

    pub(crate) fn address(&self, page: usize) -> NonNull<u8> {
        debug_assert!(page < self.pages);
        // SAFETY: within the reservation.
        unsafe { self.start.add(page * FRAME) }
    }

    /// The offset of an address within the reservation.
    pub(crate) fn offset(&self, address: NonNull<u8>) -> Option<usize> {
        let offset = (address.as_ptr() as usize).checked_sub(self.start.as_ptr() as usize)?;
        (offset < self.pages * FRAME).then_some(offset)
    }

    /// Makes pages inaccessible.
    pub(crate) fn close(&self, page: usize, count: usize) -> Result<(), Error> {
        // SAFETY: the range lies within the reservation; the block there is gone.
        let closed = unsafe {
            libc::mmap(
                self.address(page).as_ptr().cast(),
                count * FRAME,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        match closed == libc::MAP_FAILED {
            true => Err(refused("a range made inaccessible")),
            false => Ok(()),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the whole reservation, which ends here.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.pages * FRAME) };
    }
}
