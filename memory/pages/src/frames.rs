//! Frames: what pages are mapped to, in lists that are spliced in constant time.
//!
//! A region's frames are linked in the order in which they were mapped, so that all of them join
//! a free list by one link (RTCSA 2014, IV-A1, requirement 2). Each protection domain has a free
//! list of its own: a frame taken from it has held nothing but what the domain wrote itself, any
//! other must be cleared first, and [`Origin`] says which.
//!
//! Invariant: a frame is never used, on one free list, or in one region. Links of frames that were
//! never used hold anything.

/// Number of a frame.
pub type Frame = u32;

/// Whose content a frame may still hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// What memory held when the system began: clear it.
    Fresh,
    /// What this domain wrote: clearing is a matter of taste.
    Own,
    /// What another domain wrote: clear it before this one sees it.
    Foreign,
}

/// Links of frames to each other, in some layout.
pub trait Links {
    /// How many frames there can be.
    fn capacity(&self) -> u32;
    /// The frame behind `frame`.
    fn get(&self, frame: Frame) -> Frame;
    /// Links `next` behind `frame`.
    fn set(&mut self, frame: Frame, next: Frame);
}

/// A word a frame, on the heap of a host.
#[cfg(feature = "alloc")]
impl Links for alloc::boxed::Box<[u32]> {
    fn capacity(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn get(&self, frame: Frame) -> Frame {
        self[frame as usize]
    }

    #[inline(always)]
    fn set(&mut self, frame: Frame, next: Frame) {
        self[frame as usize] = next;
    }
}

/// A word a frame.
impl<const FRAMES: usize> Links for [u32; FRAMES] {
    fn capacity(&self) -> u32 {
        FRAMES as u32
    }

    #[inline(always)]
    fn get(&self, frame: Frame) -> Frame {
        self[frame as usize % FRAMES]
    }

    #[inline(always)]
    fn set(&mut self, frame: Frame, next: Frame) {
        self[frame as usize % FRAMES] = next;
    }
}

/// Five bytes for two frames, of which there are at most 2^20; `PAIRS` is half their number.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct PackedLinks<const PAIRS: usize>([[u8; 5]; PAIRS]);

impl<const PAIRS: usize> PackedLinks<PAIRS> {
    /// Links of frames that were never used.
    pub const fn new() -> Self {
        const { assert!(PAIRS <= 1 << 19) };
        Self([[0; 5]; PAIRS])
    }
}

impl<const PAIRS: usize> Default for PackedLinks<PAIRS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PAIRS: usize> Links for PackedLinks<PAIRS> {
    fn capacity(&self) -> u32 {
        2 * PAIRS as u32
    }

    #[inline(always)]
    fn get(&self, frame: Frame) -> Frame {
        let [a, b, c, d, e] = self.0[frame as usize / 2 % PAIRS];
        if frame & 1 == 0 {
            u32::from_le_bytes([a, b, c & 15, 0])
        } else {
            u32::from_le_bytes([c, d, e, 0]) >> 4
        }
    }

    #[inline(always)]
    fn set(&mut self, frame: Frame, next: Frame) {
        let pair = &mut self.0[frame as usize / 2 % PAIRS];
        if frame & 1 == 0 {
            let [a, b, c, _] = next.to_le_bytes();
            (pair[0], pair[1], pair[2]) = (a, b, pair[2] & 0xf0 | c & 15);
        } else {
            let [c, d, e, _] = (next << 4).to_le_bytes();
            (pair[2], pair[3], pair[4]) = (pair[2] & 15 | c & 0xf0, d, e);
        }
    }
}

/// Protection domains that can share frames.
pub const DOMAINS: usize = 64;

/// The frames of a system, shared by its spaces.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Frames<L: Links> {
    /// First frames of the free lists, by domain.
    heads: [Frame; DOMAINS],
    /// Frames on the free lists, by domain.
    free: [u32; DOMAINS],
    /// Domains whose free list is not empty.
    stocked: u64,
    /// Frames from here on were never used.
    fresh: Frame,
    /// How many frames there are.
    frames: u32,
    links: L,
}

impl<L: Links> Frames<L> {
    /// Frames `0..frames`, all of them free; `None` if there are more than links.
    pub fn new(links: L, frames: u32) -> Option<Self> {
        let mut none = Self {
            heads: [0; DOMAINS],
            free: [0; DOMAINS],
            stocked: 0,
            fresh: 0,
            frames: 0,
            links,
        };
        none.open(frames).then_some(none)
    }
}

impl<L: Links> Frames<L> {
    /// Gives a system that has none, which is all zero, its frames; `false`: it has some, or there
    /// are to be more than links. O(1).
    pub fn open(&mut self, frames: u32) -> bool {
        let opens = self.frames == 0 && frames <= self.links.capacity();
        if opens {
            self.frames = frames;
        }
        opens
    }

    /// Frames that nothing is mapped to. O(1).
    pub fn available(&self) -> u32 {
        self.frames - self.fresh + self.free.iter().sum::<u32>()
    }

    /// Frames that a page is mapped to. O(1).
    pub fn used(&self) -> u32 {
        self.frames - self.available()
    }

    /// How many frames there are.
    pub fn total(&self) -> u32 {
        self.frames
    }

    /// Takes a frame for `domain`: one of its own, else one never used, else another domain's.
    /// `None`: there is none. O(1).
    #[inline]
    pub(crate) fn take(&mut self, domain: Domain) -> Option<(Frame, Origin)> {
        let own = self.stocked >> domain.0 & 1 != 0;
        let (from, origin) = if own {
            (domain.0, Origin::Own)
        } else if self.fresh < self.frames {
            let frame = self.fresh;
            self.fresh += 1;
            return Some((frame, Origin::Fresh));
        } else if self.stocked != 0 {
            (self.stocked.trailing_zeros() as u8, Origin::Foreign)
        } else {
            return None;
        };
        let from = from as usize % DOMAINS;
        let frame = self.heads[from];
        self.free[from] -= 1;
        if self.free[from] == 0 {
            self.stocked &= !(1 << from);
        } else {
            self.heads[from] = self.links.get(frame);
        }
        Some((frame, origin))
    }

    /// Links `next` behind `frame`, the last one of its region.
    #[inline]
    pub(crate) fn link(&mut self, frame: Frame, next: Frame) {
        self.links.set(frame, next);
    }

    /// Puts the linked frames `first` to `last`, `count` of them, on the free list of `domain`. O(1).
    #[inline]
    pub(crate) fn splice(&mut self, domain: Domain, first: Frame, last: Frame, count: u32) {
        let to = domain.0 as usize % DOMAINS;
        self.links.set(last, self.heads[to]);
        self.heads[to] = first;
        self.free[to] += count;
        self.stocked |= 1 << to;
    }
}

/// A protection domain: spaces of one domain may see each other's leavings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain(u8);

impl Domain {
    /// Domain 0.
    pub const FIRST: Self = Self(0);

    /// The domain of this number, below [`DOMAINS`].
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < DOMAINS {
            Some(Self(number))
        } else {
            None
        }
    }
}
