//! What is kept a page: which region it was last mapped in, and the stack that says whether that
//! still holds (RTCSA 2014, II-C1 and IV-A, Fig. 3 and 4).
//!
//! | here | paper | what it is |
//! | --- | --- | --- |
//! | record of page `b`: region | `c[b]`, Virtual Regions Cache | first page of the region that `b` was last mapped in |
//! | record of page `b`: position | `h[b] - c[b]` | position of `b` on the stack of that region |
//! | frame | `pt[b]` | the frame that `b` was last mapped to |
//! | slot `i` | `s[i]` | the page at position `i - a` of the stack of the region that begins at `a` |
//! | header of page `a`: count | `sp[a] + 1 - a` | pages on the stack of the region that begins at `a` |
//! | header of page `a`: state | Virtual Region Header | whether the region is allocated, and its rights |
//!
//! Counting the pages of a stack instead of pointing at its last one makes zero mean *empty*, so
//! that zero-filled memory is correct for page 0, too, which the paper excludes (its footnote 5).
//! The list of a region's frames has no head here: its first frame is that of the page at the
//! bottom of the stack, its last that of the page at the top.
//!
//! Invariant: headers of pages where no allocated region begins are zero. Records, slots and
//! frames may hold anything.

use crate::{Error, Frame};

/// What a region allows; bits that any host keeps with a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Nothing but existing.
    pub const NONE: Self = Self(0);
    /// Reading.
    pub const READ: Self = Self(1);
    /// Reading and writing.
    pub const READ_WRITE: Self = Self(3);

    /// Whether all of `wanted` is allowed.
    #[inline]
    pub const fn allow(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// Reads.
    Read = 1,
    /// Writes.
    Write = 2,
}

impl Access {
    /// What a region must allow for this access.
    #[inline]
    pub const fn rights(self) -> Rights {
        Rights(self as u8)
    }
}

/// State of a region: how many of its pages are mapped, whether it is allocated, its rights.
///
/// One word: three bits of state, above them the count. The state says what is *denied*, so that one
/// bit test decides an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header(u32);

impl Header {
    const ALLOCATED: u32 = 4;
    const STATE: u32 = 7;
    const SHIFT: u32 = 3;

    /// A free region's, and that of every page where none begins.
    pub const FREE: Self = Self(0);

    /// An allocated region's, of which no page is mapped.
    #[inline]
    pub const fn allocated(rights: Rights) -> Self {
        Self(Self::ALLOCATED | (rights.0 ^ Rights::READ_WRITE.0) as u32)
    }

    /// Whether the region is allocated.
    #[inline]
    pub const fn is_allocated(self) -> bool {
        self.0 & Self::ALLOCATED != 0
    }

    /// What the region allows.
    #[inline]
    pub const fn rights(self) -> Rights {
        Rights((self.0 & 3) as u8 ^ Rights::READ_WRITE.0)
    }

    /// Whether an access of this kind is allowed, if any is.
    #[inline(always)]
    pub const fn allows(self, access: Access) -> bool {
        self.0 & access as u32 == 0
    }

    /// Pages on the region's stack: those that are mapped.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 >> Self::SHIFT
    }

    /// With one page more on the stack.
    #[inline]
    pub(crate) const fn pushed(self) -> Self {
        Self(self.0 + (1 << Self::SHIFT))
    }
}

/// The tables of a space, in some layout. Page numbers are below [`Tables::PAGES`]; layouts mask
/// them, so a wrong one reads another page's entry, never other memory.
pub trait Tables {
    /// Pages of the space, a power of two.
    const PAGES: usize;

    /// The region that `page` was last mapped in, and its position on that region's stack.
    fn record(&self, page: u32) -> (u32, u32);
    /// The page at `slot` of the stacks.
    fn slot(&self, slot: u32) -> u32;
    /// The frame of a page that is mapped and lies at `slot`.
    fn frame(&self, page: u32, slot: u32) -> Frame;
    /// The header of `start`.
    fn header(&self, start: u32) -> Header;

    /// Puts `page` with `frame` on top of the stack of the region at `start`, whose header is
    /// `header`: record, slot and frame first, the header last. That word is what makes the page
    /// valid, for a walker beside this processor, too.
    fn push(&mut self, start: u32, header: Header, page: u32, frame: Frame);
    /// Sets the header of `start`.
    fn set_header(&mut self, start: u32, header: Header);
    /// Uses the slot of the first page of a free region, whose stack is empty, for its last page.
    fn set_slot(&mut self, slot: u32, page: u32);

    /// The last page of the free region that begins at `start`, where that is kept.
    #[inline(always)]
    fn free_last(&self, start: u32) -> Option<u32> {
        Some(self.slot(start))
    }

    /// Before a region is made: what it takes to have a header at its start.
    ///
    /// # Errors
    /// [`Error::NoFrame`] where there is no memory for it; everything is as it was.
    #[inline(always)]
    fn cover(&mut self, _start: u32, _pages: u32) -> Result<(), Error> {
        Ok(())
    }

    /// After a region was freed: takes back what [`Tables::cover`] and [`Tables::reserve`] took.
    #[inline(always)]
    fn uncover(&mut self, _start: u32, _pages: u32) {}

    /// Before a page is mapped: what it takes to have its record and its slot.
    ///
    /// # Errors
    /// [`Error::NoFrame`] where there is no memory for it.
    #[inline(always)]
    fn reserve(&mut self, _page: u32, _slot: u32) -> Result<(), Error> {
        Ok(())
    }
}

/// What an access reads of its page.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Record {
    region: u32,
    position: u32,
}

/// What an access reads of its slot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u32,
    frame: Frame,
}

/// Words for everything: the fewest instructions an access.
///
/// 20 bytes a page: 5 times a page table of words.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Wide<const PAGES: usize> {
    records: [Record; PAGES],
    slots: [Slot; PAGES],
    headers: [Header; PAGES],
}

impl<const PAGES: usize> Wide<PAGES> {
    /// Tables of a space without a mapped page.
    pub const fn new() -> Self {
        const { assert!(PAGES.is_power_of_two() && PAGES <= 1 << 28) };
        Self {
            records: [Record {
                region: 0,
                position: 0,
            }; PAGES],
            slots: [Slot { page: 0, frame: 0 }; PAGES],
            headers: [Header::FREE; PAGES],
        }
    }

    /// Writes words that no operation would into what is never initialised, for tests.
    #[doc(hidden)]
    pub fn scribble(&mut self, at: usize, [region, position, page, frame]: [u32; 4]) {
        self.records[at] = Record { region, position };
        self.slots[at] = Slot { page, frame };
    }
}

impl<const PAGES: usize> Default for Wide<PAGES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PAGES: usize> Tables for Wide<PAGES> {
    const PAGES: usize = PAGES;

    #[inline(always)]
    fn record(&self, page: u32) -> (u32, u32) {
        let Record { region, position } = self.records[page as usize & (PAGES - 1)];
        (region, position)
    }

    #[inline(always)]
    fn slot(&self, slot: u32) -> u32 {
        self.slots[slot as usize & (PAGES - 1)].page
    }

    #[inline(always)]
    fn frame(&self, _: u32, slot: u32) -> Frame {
        self.slots[slot as usize & (PAGES - 1)].frame
    }

    #[inline(always)]
    fn header(&self, start: u32) -> Header {
        self.headers[start as usize & (PAGES - 1)]
    }

    #[inline(always)]
    fn push(&mut self, start: u32, header: Header, page: u32, frame: Frame) {
        let position = header.count();
        self.records[page as usize & (PAGES - 1)] = Record {
            region: start,
            position,
        };
        let slot = (start + position) as usize & (PAGES - 1);
        self.slots[slot] = Slot { page, frame };
        self.set_header(start, header.pushed());
    }

    #[inline(always)]
    fn set_header(&mut self, start: u32, header: Header) {
        self.headers[start as usize & (PAGES - 1)] = header;
    }

    #[inline(always)]
    fn set_slot(&mut self, slot: u32, page: u32) {
        self.slots[slot as usize & (PAGES - 1)].page = page;
    }
}

/// Fields of 20 bits, packed: the fewest bytes.
///
/// 13 bytes a page, for up to 2^20 pages and 2^20 frames: with [links](crate::PackedLinks) of two
/// and a half bytes a frame and the index, less than 4 times a page table of words.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Packed<const PAGES: usize> {
    /// From the lowest bit: region (20 bits), position (20), frame (20), of the header: state (3)
    /// and whether the count is above zero (1).
    records: [u64; PAGES],
    /// From the lowest bit: page of the slot (20 bits), and of the header: the count less one (20).
    stacks: [[u8; 5]; PAGES],
}

const FIELD: u64 = (1 << 20) - 1;

impl<const PAGES: usize> Packed<PAGES> {
    /// Tables of a space without a mapped page.
    pub const fn new() -> Self {
        const { assert!(PAGES.is_power_of_two() && PAGES <= 1 << 20) };
        Self {
            records: [0; PAGES],
            stacks: [[0; 5]; PAGES],
        }
    }

    #[inline(always)]
    fn stack(&self, at: usize) -> u64 {
        let [a, b, c, d, e] = self.stacks[at & (PAGES - 1)];
        u64::from(u32::from_le_bytes([a, b, c, d])) | u64::from(e) << 32
    }

    #[inline(always)]
    fn set_stack(&mut self, at: usize, value: u64) {
        let [a, b, c, d, e, ..] = value.to_le_bytes();
        self.stacks[at & (PAGES - 1)] = [a, b, c, d, e];
    }
}

impl<const PAGES: usize> Default for Packed<PAGES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PAGES: usize> Tables for Packed<PAGES> {
    const PAGES: usize = PAGES;

    #[inline(always)]
    fn record(&self, page: u32) -> (u32, u32) {
        let record = self.records[page as usize & (PAGES - 1)];
        ((record & FIELD) as u32, (record >> 20 & FIELD) as u32)
    }

    #[inline(always)]
    fn slot(&self, slot: u32) -> u32 {
        let [a, b, c, ..] = self.stacks[slot as usize & (PAGES - 1)];
        u32::from_le_bytes([a, b, c, 0]) & FIELD as u32
    }

    #[inline(always)]
    fn frame(&self, page: u32, _: u32) -> Frame {
        (self.records[page as usize & (PAGES - 1)] >> 40 & FIELD) as Frame
    }

    #[inline(always)]
    fn header(&self, start: u32) -> Header {
        let bits = self.records[start as usize & (PAGES - 1)] >> 60;
        let below = self.stack(start as usize) >> 20;
        let count = if bits & 8 != 0 { below as u32 + 1 } else { 0 };
        Header(count << Header::SHIFT | bits as u32 & Header::STATE)
    }

    #[inline(always)]
    fn push(&mut self, start: u32, header: Header, page: u32, frame: Frame) {
        let position = u64::from(header.count());
        let record = &mut self.records[page as usize & (PAGES - 1)];
        *record = *record & 15 << 60 | u64::from(frame) << 40 | position << 20 | u64::from(start);
        self.set_slot(start + position as u32, page);
        self.set_header(start, header.pushed());
    }

    #[inline(always)]
    fn set_header(&mut self, start: u32, header: Header) {
        let (count, state) = (
            u64::from(header.count()),
            u64::from(header.0 & Header::STATE),
        );
        let at = start as usize & (PAGES - 1);
        self.set_stack(
            at,
            self.stack(at) & FIELD | (count.wrapping_sub(1) & FIELD) << 20,
        );
        let bits = u64::from(count != 0) << 63 | state << 60;
        self.records[at] = self.records[at] & u64::MAX >> 4 | bits;
    }

    #[inline(always)]
    fn set_slot(&mut self, slot: u32, page: u32) {
        let at = slot as usize & (PAGES - 1);
        self.set_stack(at, self.stack(at) & !FIELD | u64::from(page) & FIELD);
    }
}
