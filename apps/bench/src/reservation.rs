//! The memory that measured heaps live in: one reserved range, aligned to its
//! own size, so that address-dependent heaps (buddies) behave the same in every
//! run.
//!
//! Invariant: `base` is a multiple of [`LENGTH`] and the range stays mapped
//! until drop.

use std::ptr;

/// Bytes of one reservation, and the alignment of its base.
pub(crate) const LENGTH: usize = 512 << 20;

/// A mapped range of [`LENGTH`] bytes; pages cost nothing until touched.
pub(crate) struct Reservation {
    mapping: *mut libc::c_void,
    base: *mut u8,
    used: usize,
}

impl Reservation {
    /// Maps a new range, or says why the system would not.
    pub(crate) fn new() -> std::io::Result<Self> {
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                2 * LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let skip = mapping.addr().next_multiple_of(LENGTH) - mapping.addr();
        // Address-only peers carry handles as integers, so the provenance of
        // the whole range is exposed once, here.
        mapping.expose_provenance();
        Ok(Reservation {
            mapping,
            base: mapping.cast::<u8>().wrapping_add(skip),
            used: LENGTH,
        })
    }

    /// Lets heaps have the first `bytes` only, or all there are.
    pub(crate) fn shorten(&mut self, bytes: usize) {
        self.used = bytes.min(LENGTH);
    }

    /// Bytes that heaps may have.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// First byte; a multiple of [`LENGTH`].
    pub(crate) fn base(&mut self) -> *mut u8 {
        self.base
    }

    /// Backs the first `bytes` with huge pages where the system has them and
    /// writes to each page, so that neither page faults nor the translation of
    /// addresses fall into what is timed: embedded systems have neither.
    pub(crate) fn touch(&mut self, bytes: usize) {
        // SAFETY: advice on our own mapping; its refusal is harmless.
        unsafe { libc::madvise(self.base.cast(), LENGTH, libc::MADV_HUGEPAGE) };
        for offset in (0..bytes.min(LENGTH)).step_by(4096) {
            // SAFETY: inside the mapping, which is ours to write.
            unsafe { self.base.add(offset).write_volatile(0) };
        }
    }

    /// Usable bytes from the base.
    pub(crate) fn length(&self) -> usize {
        LENGTH
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped, unmapped once.
        unsafe { libc::munmap(self.mapping, 2 * LENGTH) };
    }
}
