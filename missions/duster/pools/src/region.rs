//! The memory of a pool, in words at offsets.
//!
//! *Invariant:* nothing outside the memory is touched; whoever asks for a word outside it has a fault of this crate, and
//! panics. The memory is initialised from the beginning, so any word may be read.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::ALIGNMENT;

/// Memory that belongs to a pool alone, but for the blocks it gives out.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is the only way to its memory, so it may be owned by any thread; nothing is reached by `&Region` but
// words, which are changed by `&mut Region` alone.
unsafe impl Send for Region {}

impl Region {
    /// Memory that is nobody else's any more.
    pub fn from_static(memory: &'static mut [MaybeUninit<u8>]) -> Region {
        let bytes = memory.len();
        let start = NonNull::from(memory).cast();
        // SAFETY: an exclusive reference for ever: valid, and reached by nobody else.
        unsafe { Region::new(start, bytes) }
    }

    /// The `bytes` bytes from `start` on; those before the first multiple of [`ALIGNMENT`] are not used. All are zeroed.
    ///
    /// # Safety
    /// They are valid for reads and writes as long as the region or a block of its pool is in use, and nobody else
    /// reaches them meanwhile. Into blocks only initialised bytes are written: records are looked for there when a
    /// pointer is freed that no allocation gave.
    pub unsafe fn new(start: NonNull<u8>, bytes: usize) -> Region {
        // SAFETY: valid for writes by this function's contract.
        unsafe { start.write_bytes(0, bytes) };
        let skipped = start.align_offset(ALIGNMENT).min(bytes);
        // SAFETY: not beyond the end.
        let start = unsafe { start.add(skipped) };
        Region {
            start,
            bytes: bytes - skipped,
        }
    }

    /// Bytes that are used.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn word(&self, offset: u32) -> u32 {
        // SAFETY: `at` gives valid memory of a word, aligned to it; initialised by `new`, and by the contract of `new` since.
        unsafe { self.at(offset, 4).cast::<u32>().read() }
    }

    pub(crate) fn set_word(&mut self, offset: u32, word: u32) {
        // SAFETY: `at` gives valid memory of a word, aligned to it, and `&mut self` is the only way to it.
        unsafe { self.at(offset, 4).cast::<u32>().write(word) }
    }

    /// Where the `bytes` bytes at `offset` lie; a multiple of four.
    pub(crate) fn at(&self, offset: u32, bytes: u32) -> NonNull<u8> {
        let end = u64::from(offset) + u64::from(bytes);
        assert!(
            offset.is_multiple_of(4) && end <= self.bytes as u64,
            "within the memory, at a word"
        );
        // SAFETY: `offset` is at most `bytes`, which were valid from `start` on.
        unsafe { self.start.add(offset as usize) }
    }

    /// The offset of a pointer into the memory.
    pub(crate) fn offset(&self, place: NonNull<u8>) -> Option<u32> {
        let offset = place.addr().get().checked_sub(self.start.addr().get())?;
        if offset >= self.bytes {
            return None;
        }
        u32::try_from(offset).ok()
    }
}
