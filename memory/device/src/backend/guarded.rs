//! Guarded host memory: addresses of this process that nothing may read or write.
//!
//! What a heap manages here faults when it is touched, so a heap that passes its tests on it
//! reads none of the memory it manages. Memory costs nothing: it is a number in the books.
//!
//! Invariant: every reserved range is one mapping without access, alive until it is given
//! back or the backend is dropped.

use std::ptr;

use super::books::Books;
use super::{Backend, Capacity, Error, Memory, Range};

/// A device whose addresses are this process's, inaccessible.
#[derive(Debug)]
pub struct Guarded {
    books: Books,
}

/// The kernel maps pages of this many bytes, or of multiples.
const PAGE: u64 = 4096;

impl Guarded {
    /// A device of `total` bytes, whose pages have `granularity` bytes, 4096 at least.
    ///
    /// # Errors
    /// [`Error::Granularity`] unless `granularity` is a power of two and a multiple of 4096.
    pub fn new(total: u64, granularity: u64) -> Result<Self, Error> {
        if granularity < PAGE {
            return Err(Error::Granularity {
                what: "the page",
                value: granularity,
                granularity: PAGE,
            });
        }
        Ok(Guarded {
            books: Books::new(total, granularity)?,
        })
    }
}

impl Backend for Guarded {
    fn name(&self) -> &'static str {
        "guarded"
    }

    fn granularity(&self) -> u64 {
        self.books.granularity
    }

    fn paged(&self) -> bool {
        true
    }

    fn alignment(&self) -> u64 {
        1
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        Ok(self.books.capacity())
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.books.check_length("a range", bytes)?;
        let granularity = self.books.granularity;
        let wanted = Error::Addresses { wanted: bytes };
        // A page more on either side is cut off, so that the range begins at one.
        let wide = bytes
            .checked_add(granularity - PAGE)
            .and_then(|wide| usize::try_from(wide).ok())
            .ok_or(wanted.clone())?;
        // SAFETY: a new mapping wherever the kernel likes; the result is checked.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                wide,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(wanted);
        }
        let first = start as u64;
        let start = first.next_multiple_of(granularity);
        give_back(first, start - first);
        give_back(start + bytes, first + wide as u64 - (start + bytes));
        let range = Range { start, bytes };
        self.books.reserved(range);
        Ok(range)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.books.unreserve(range)?;
        give_back(range.start, range.bytes);
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.books.create(bytes)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.books.map(address, memory).map(drop)
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.books.unmap(address, bytes)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.books.release(memory).map(drop)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        for range in self.books.ranges() {
            give_back(range.start, range.bytes);
        }
    }
}

fn give_back(start: u64, bytes: u64) {
    if bytes > 0 {
        // SAFETY: pages that `reserve` mapped and nobody else knows as memory: nothing may
        // access them, so nothing refers to them.
        unsafe { libc::munmap(start as *mut libc::c_void, bytes as usize) };
    }
}
