//! Memory for a heap that runs: one range, aligned to its own length, so that
//! heaps which depend on addresses behave the same in every run.
//!
//! Invariant: the range stays mapped until drop.

use std::io;
use std::ptr::{self, NonNull};

/// A mapped range; pages cost nothing until touched.
pub struct Range {
    mapping: *mut libc::c_void,
    base: NonNull<u8>,
    length: usize,
}

impl Range {
    /// Maps `length` bytes, a power of two of at least a page.
    ///
    /// # Errors
    /// What the system says where it gives none.
    pub fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                2 * length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skip = mapping.addr().next_multiple_of(length) - mapping.addr();
        // Calls carry blocks as integers, so the provenance of the whole range is
        // exposed once, here.
        mapping.expose_provenance();
        let base = mapping.cast::<u8>().wrapping_add(skip);
        NonNull::new(base)
            .map(|base| Range {
                mapping,
                base,
                length,
            })
            .ok_or_else(|| io::Error::other("mapped at address zero"))
    }

    /// First byte; a multiple of the length.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, unmapped once.
        unsafe { libc::munmap(self.mapping, 2 * self.length) };
    }
}
