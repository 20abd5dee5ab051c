//! Where the tables of a compact-fit heap lie in the memory that it was given.
//!
//! ```text
//! | classes | class by size | records of pages | bitmaps | … | page 0 | page 1 | →   ← | handle 1 | handle 0 |
//! ```
//!
//! Invariant: parts do not overlap, each is aligned for what lies there, and the blocks of
//! page 0 begin at the alignment of the layout.

use core::ptr::NonNull;

use super::automaton::Class;
use super::bits;
use super::handles::ENTRY;
use super::options::{GRANULE, Options, Partition, Unfit};
use super::table::Table;
use crate::store::tagged::Memory;

/// Blocks are aligned to this at most, where the page is as large.
const ALIGN: usize = 4096;

/// Bytes that a moving heap needs beside pages and handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Classes and the class of each size.
    pub fixed: usize,
    /// Record and bitmaps of a page.
    pub page_record: usize,
    /// Most bytes lost to alignment.
    pub alignment: usize,
}

impl Needs {
    /// Bytes of record in each page-block of a moving heap.
    pub const RECORD: usize = super::backing::RECORD;

    /// Bytes of record and bitmaps of a page whose page-blocks have records of `record` bytes.
    pub fn page_record(partition: &Partition, record: usize) -> usize {
        let smallest = partition.classes(record).next();
        Table::record_bytes(smallest.map_or(1, |block| partition.page / block))
    }

    /// What a heap with these options needs on this target.
    pub fn of(options: &Options) -> Self {
        let partition = &options.partition;
        let count = partition.classes(Self::RECORD).count();
        let granules = (partition.largest + Self::RECORD).div_ceil(GRANULE) + 1;
        Needs {
            fixed: count * size_of::<Class>() + granules,
            page_record: Self::page_record(partition, Self::RECORD),
            alignment: partition.page.min(ALIGN) + align_of::<Class>() + 4 * ENTRY,
        }
    }
}

/// The tables, made, and the memory that is left for pages and handles.
pub(super) struct Tables {
    pub(super) classes: &'static mut [Class],
    pub(super) by_size: &'static [u8],
    pub(super) table: Table<'static>,
    /// Record of the first page-block; the block behind it is aligned to `align`.
    pub(super) base: NonNull<u8>,
    /// Bytes from `base` to the end of the handles.
    pub(super) space: usize,
    pub(super) align: usize,
}

/// The class of `bytes` of record and request, which are at most those of the largest.
#[inline(always)]
pub(super) fn class_by_size(by_size: &[u8], bytes: usize) -> usize {
    // A shift: `div_ceil` would guard against an overflow that cannot be.
    let granules = (bytes + GRANULE - 1) >> GRANULE.trailing_zeros();
    debug_assert!(granules < by_size.len());
    // SAFETY: `Tables::new` made an entry for the granules of the largest request and below.
    usize::from(unsafe { *by_size.get_unchecked(granules) })
}

/// Hands out aligned parts of a memory, front to back.
pub(super) struct Cursor {
    at: NonNull<u8>,
    left: usize,
}

impl Cursor {
    pub(super) fn new(memory: Memory) -> Self {
        Cursor {
            at: memory.start(),
            left: memory.bytes(),
        }
    }

    /// Leaves room for `count` values of `T` in front and takes the rest, in `count` equal
    /// parts, which are given by number.
    pub(super) fn divide<T>(
        &mut self,
        count: usize,
    ) -> Result<impl Fn(usize) -> Memory + use<T>, Unfit> {
        let padding = self.at.as_ptr().align_offset(align_of::<T>());
        let front = count
            .checked_mul(size_of::<T>())
            .and_then(|bytes| bytes.checked_add(padding))
            .ok_or(Unfit::TooSmall(usize::MAX))?;
        if front > self.left {
            return Err(Unfit::TooSmall(front - self.left));
        }
        let part = (self.left - front) / count.max(1);
        // SAFETY: that many bytes are left.
        let first = unsafe { self.at.add(front) };
        self.left = front;
        // SAFETY: parts are disjoint and behind what this cursor still hands out.
        Ok(move |index: usize| unsafe {
            Memory::from_raw(first.add(index.min(count - 1) * part), part)
        })
    }

    /// What was not handed out.
    pub(super) fn rest(self) -> Memory {
        // SAFETY: the end of a memory whose user this is.
        unsafe { Memory::from_raw(self.at, self.left) }
    }

    fn skip(&mut self, bytes: usize) -> Result<NonNull<u8>, Unfit> {
        if bytes > self.left {
            return Err(Unfit::TooSmall(bytes - self.left));
        }
        let at = self.at;
        // SAFETY: `bytes` more are left of the memory behind `at`.
        self.at = unsafe { at.add(bytes) };
        self.left -= bytes;
        Ok(at)
    }

    fn align(&mut self, align: usize) -> Result<NonNull<u8>, Unfit> {
        self.skip(self.at.as_ptr().align_offset(align))
    }

    /// A slice of `count` values.
    pub(super) fn slice<T>(
        &mut self,
        count: usize,
        mut value: impl FnMut(usize) -> T,
    ) -> Result<&'static mut [T], Unfit> {
        self.try_slice(count, |index| Ok(value(index)))
    }

    /// As [`slice`](Cursor::slice), of values that may not fit.
    pub(super) fn try_slice<T>(
        &mut self,
        count: usize,
        mut value: impl FnMut(usize) -> Result<T, Unfit>,
    ) -> Result<&'static mut [T], Unfit> {
        self.align(align_of::<T>())?;
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(Unfit::TooSmall(usize::MAX))?;
        let first = self.skip(bytes)?.cast::<T>();
        for index in 0..count {
            // SAFETY: within the part that was just taken, aligned for T.
            unsafe { first.add(index).write(value(index)?) };
        }
        // SAFETY: `count` values were written; the memory is the heap's for ever.
        Ok(unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), count) })
    }
}

impl Tables {
    /// Lays out the tables for pages of page-blocks with records of `record` bytes, each
    /// page with `behind` bytes of memory.
    pub(super) fn new(
        options: &Options,
        memory: Memory,
        record: usize,
        behind: usize,
    ) -> Result<Self, Unfit> {
        options.validate(record)?;
        let partition = &options.partition;
        let mut cursor = Cursor::new(memory);
        let count = partition.classes(record).count();
        let kappa = options.kappa.limit();
        let mut sizes = [0u32; super::options::CLASSES];
        for (size, block) in sizes.iter_mut().zip(partition.classes(record)) {
            *size = block as u32;
        }
        let classes = cursor.slice(count, |index| {
            Class::new(index as u8, sizes[index] as usize, partition.page, kappa)
        })?;
        let granules = (partition.largest + record).div_ceil(GRANULE);
        let by_size = cursor.slice(granules + 1, |granules| {
            let bytes = (granules * GRANULE) as u32;
            sizes[..count].partition_point(|&size| size < bytes) as u8
        })?;
        let most = classes.iter().map(|class| class.blocks).max().unwrap_or(1) as usize;
        debug_assert!(most <= bits::MOST);
        let record_bytes = Table::record_bytes(most);
        cursor.align(align_of::<usize>())?;
        let pages = cursor.left / (behind + record_bytes);
        let records = cursor.skip(pages * record_bytes)?;
        // SAFETY: just taken, aligned, and the heap's for ever.
        let table = unsafe { Table::new(records, pages as u32, most) };
        // A page's worth of alignment only where it is cheap.
        let align = match pages {
            64.. => partition.page.min(ALIGN),
            _ => GRANULE,
        };
        let padding = cursor.at.as_ptr().wrapping_add(record).align_offset(align);
        let base = cursor.skip(padding).map(|_| cursor.at)?;
        let end = (base.as_ptr() as usize + cursor.left) & !(ENTRY - 1);
        let space = end.saturating_sub(base.as_ptr() as usize);
        if space < behind + ENTRY {
            return Err(Unfit::TooSmall(behind + ENTRY - space));
        }
        // Blocks are read as bytes before the program wrote all of them.
        // SAFETY: `space` bytes from `base` are the heap's.
        unsafe { base.write_bytes(0, space) };
        Ok(Tables {
            classes,
            by_size,
            table,
            base,
            space,
            align,
        })
    }
}
