//! Plain offsets: no memory at all, of any size.
//!
//! For whoever has the memory already (a file, a partition, the aperture of an FPGA, a buffer
//! of a library that we do not know) and wants to know where in it; and to try heaps on.
//!
//! Invariant: there is nothing but the books.

use super::books::Books;
use super::{Backend, Capacity, Error, Memory, Range};

/// A device whose memory nobody has.
#[derive(Debug)]
pub struct Offsets {
    books: Books,
}

impl Offsets {
    /// A device of `total` bytes, whose pages have `granularity` bytes.
    ///
    /// # Errors
    /// [`Error::Granularity`] unless `granularity` is a power of two.
    pub fn new(total: u64, granularity: u64) -> Result<Self, Error> {
        Ok(Offsets {
            books: Books::new(total, granularity)?,
        })
    }
}

impl Backend for Offsets {
    fn name(&self) -> &'static str {
        "offsets"
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
        self.books.reserve_behind_all(bytes)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.books.unreserve(range)
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
