//! Device addresses: ranges of the host's address space that no host access survives.
//!
//! Invariant: every range is inaccessible (`PROT_NONE`) from the moment it is given out until it
//! is given back, so a host that reads or writes device memory faults, as it would with a GPU.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Answer, Code};

/// The least and the end of all addresses that were ever given out.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);
static END: AtomicU64 = AtomicU64::new(0);

/// Words of `bytes` that could be device addresses, at multiples of eight.
pub(crate) fn among(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (least, end) = (LEAST.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    let words = bytes.chunks_exact(8).map(|word| {
        let word: [u8; 8] = word.try_into().unwrap_or_default();
        u64::from_ne_bytes(word)
    });
    words.filter(move |word| (least..end).contains(word))
}

/// Inaccessible addresses, given back when dropped.
#[derive(Debug)]
pub(crate) struct Addresses {
    start: u64,
    size: u64,
}

impl Addresses {
    /// `size` bytes at a multiple of `align`, a power of two; at `hint` if that is free.
    pub(crate) fn reserve(size: u64, align: u64, hint: u64) -> Answer<Addresses> {
        let length = size.checked_add(align).ok_or(Code::OutOfMemory)?;
        let begin = map(hint, length).ok_or(Code::OutOfMemory)?;
        let start = begin.next_multiple_of(align);
        unmap(begin, start - begin);
        unmap(start + size, begin + length - (start + size));
        LEAST.fetch_min(start, Ordering::Relaxed);
        END.fetch_max(start + size, Ordering::Relaxed);
        Ok(Addresses { start, size })
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether `size` bytes from `address` lie within.
    pub(crate) fn contains(&self, address: u64, size: u64) -> bool {
        address
            .checked_sub(self.start)
            .and_then(|offset| offset.checked_add(size))
            .is_some_and(|end| end <= self.size)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        unmap(self.start, self.size);
    }
}

fn map(hint: u64, length: u64) -> Option<u64> {
    // SAFETY: a new mapping of no memory; the hint is not binding, so nothing is replaced.
    let start = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(hint as usize),
            length as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (start != libc::MAP_FAILED).then(|| start.addr() as u64)
}

fn unmap(start: u64, length: u64) {
    if length > 0 {
        // SAFETY: a part of a mapping of ours that nothing refers to any more. It holds no
        // memory, so that a failure would lose addresses only.
        unsafe { libc::munmap(ptr::without_provenance_mut(start as usize), length as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_aligned_and_apart() {
        let ranges: Vec<Addresses> = (0..64)
            .map(|power| Addresses::reserve(4096 << (power % 8), 1 << 21, 0).unwrap())
            .collect();
        for (number, range) in ranges.iter().enumerate() {
            assert!(range.start().is_multiple_of(1 << 21));
            for other in &ranges[number + 1..] {
                assert!(
                    range.start() + range.size() <= other.start()
                        || other.start() + other.size() <= range.start()
                );
            }
        }
    }

    #[test]
    fn too_much_is_refused() {
        assert_eq!(
            Addresses::reserve(u64::MAX - 4096, 1 << 21, 0).unwrap_err(),
            Code::OutOfMemory
        );
        assert_eq!(
            Addresses::reserve(1 << 60, 1 << 21, 0).unwrap_err(),
            Code::OutOfMemory
        );
    }

    #[test]
    fn what_lies_within() {
        let range = Addresses::reserve(1 << 21, 1 << 21, 0).unwrap();
        assert!(range.contains(range.start(), 1 << 21));
        assert!(!range.contains(range.start(), (1 << 21) + 1));
        assert!(!range.contains(range.start() - 1, 1));
        assert!(!range.contains(range.start() + 1, u64::MAX));
    }
}
