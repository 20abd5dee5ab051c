//! `Hardened`: boundary tags that carry a keyed check, for heaps that must not
//! obey a bad free.
//!
//! The layout is that of [`Tagged`](super::tagged::Tagged), in words of the target:
//!
//! ```text
//! | (2 words unused) | head 0 next | head 0 previous | head 1 next | … | pad |
//! | header | payload …… guard | header | payload …………… | … | header (sentinel, size 0) |
//! ```
//!
//! With words of 64 bits the header is one word and no block takes a byte more than
//! with `Tagged`: flags (3 bits), size (36), slack (4) and, above them, 24 bits of
//! check, chosen so that `word · k₁ + address · k₂` in 64 bits begins with 24 zeros: a
//! reader needs no more than that sum. With words of 32 bits the check is a second word,
//! the highest 32 bits of the sum. The two odd keys depend on the heap's secret:
//! multiply-shift hashing (Dietzfelbinger et al., J. Algorithms 25, 1997), under which
//! two given (body, address) collide with probability at most 2⁻²³ (2⁻³¹ with words of
//! 32 bits).
//!
//! The bytes between the requested end of a block and its real end hold a *guard*,
//! up to a word of them, none zero, that depends on the address and the keys.
//!
//! Records are verified before anything is changed: the header of a freed block and
//! of the block behind it, its guard, the footer and header of a free block in front,
//! and the links of every free block that an operation takes out or inserts next to,
//! in both directions (*safe unlinking*). Links and footers are read as addresses and
//! made pointers again only if they lie in a region of this heap. What an operation has
//! verified it then reads as it is (the functions `verified_…` of a store): nothing else
//! runs in between.
//!
//! A check of 24 bits can be guessed by who may try again and again, so a store counts what it found forged
//! or overwritten. At [`MOST_DOUBTS`] it is *closed*: from then on it takes no address for a block, so that the
//! heap neither frees nor gives out anything. Only what has found something pays for the count.
//!
//! Invariants:
//! - no word is written or read behind an address that does not lie in a region;
//! - the header word of every block not in use says so, that of a merged block is no
//!   header any more, so that a second free of it is seen.

use core::cell::Cell;
use core::ptr;

mod blocks;
mod verify;

use super::tagged::TaggedBlock;
use super::{BadFree, Geometry, Header, Overwritten, Used};

const WORD: usize = size_of::<usize>();
const GEOMETRY: Geometry = Geometry::hardened(WORD);
const HEADER_WORDS: usize = GEOMETRY.header / WORD;
/// Words of a free block and of a head: the forward and the backward link.
const NEXT: usize = HEADER_WORDS;
const PREVIOUS: usize = HEADER_WORDS + 1;
/// Most regions of one heap: where they lie must not stand in their own memory.
pub const REGIONS: usize = 16;

/// What a store finds forged or overwritten before it is closed: so many guesses of a check of 24 bits
/// pass with probability 2⁻¹³ at most.
pub const MOST_DOUBTS: u32 = 1 << 10;

/// The check is in the header word itself.
const ONE_WORD: bool = HEADER_WORDS == 1;
const SIZE_BITS: u32 = if ONE_WORD { 36 } else { 28 };
/// Bits of the header that hold the slack, above the size.
const SLACK_BITS: u32 = 4;
const BODY: usize = usize::MAX >> (usize::BITS - SIZE_BITS - SLACK_BITS);
/// The slack that says: the requested size is in the last payload word.
const SLACK_ELSEWHERE: usize = (1 << SLACK_BITS) - 1;
/// Larger blocks would run into the slack bits.
const LARGEST: usize = (1 << SIZE_BITS) - 1;
/// log2 of the granule.
const GRANULE_LOG2: u32 = GEOMETRY.granule.trailing_zeros();
/// Bits of the sum that are no check.
const UNKEPT: u32 = if ONE_WORD { SIZE_BITS + SLACK_BITS } else { 32 };
/// Every byte of a guard differs from zero, which ends strings.
const NO_ZERO: usize = usize::MAX / 255;
/// What a header that does not pass its check is read as: not free, no valid size.
const NO_HEADER: Header = Header::new(1, 0);

const _: () = assert!(
    Header::FLAGS < GEOMETRY.granule,
    "flags fit below the granule"
);
const _: () = assert!(
    GEOMETRY.minimum >= GEOMETRY.header + 3 * WORD,
    "header, two links and a footer fit"
);
const _: () = assert!(SLACK_ELSEWHERE > WORD, "a guard lies in front of that word");

/// A region: its first block and its sentinel.
#[derive(Clone, Copy, Debug)]
struct Region {
    first: *mut u8,
    sentinel: *mut u8,
}

impl Region {
    const NONE: Region = Region {
        first: ptr::null_mut(),
        sentinel: ptr::null_mut(),
    };

    /// Whether a block of this region can begin at the address.
    #[inline(always)]
    fn holds(&self, address: usize) -> bool {
        granules_from(self.first, address) < granules_from(self.first, self.sentinel.addr())
    }

    /// The pointer to an address of this region.
    #[inline(always)]
    fn pointer(&self, address: usize) -> *mut u8 {
        self.first
            .wrapping_add(address.wrapping_sub(self.first.addr()))
    }
}

/// What a link names: a block of a region, or a head.
#[derive(Clone, Copy)]
struct Linked<'a> {
    block: TaggedBlock,
    region: &'a Region,
    is_head: bool,
}

/// Granules from one address to another; more than there can be where the distance is
/// no multiple of the granule or negative.
#[inline(always)]
fn granules_from(start: *mut u8, address: usize) -> usize {
    address
        .wrapping_sub(start.addr())
        .rotate_right(GRANULE_LOG2)
}

/// Boundary tags with a keyed check. Requested sizes are always kept.
///
/// Its memory must be initialised when it is given (zeroed, mapped, static): the
/// words in front of a place that is no block are read to find that out.
pub struct Hardened {
    regions: [Region; REGIONS],
    count: usize,
    /// Pseudo-block of head 0.
    head: *mut u8,
    heads: usize,
    /// Granules from there to the sentinel of the first region: heads lie a granule apart,
    /// and a whole number of granules before the first block.
    linkable: Cell<usize>,
    /// Those behind the first block. Both are 0 once the store is closed.
    granules: Cell<usize>,
    align: usize,
    footprint: usize,
    keys: [u64; 2],
    /// What the first key has to be multiplied with to give -1.
    inverse: u64,
    fault: Cell<Option<Overwritten>>,
    /// What was found forged or overwritten so far.
    doubts: Cell<u32>,
}

// SAFETY: the store owns the memory of its regions (contract of `Memory`), and
// all access goes through `&self` or `&mut self`.
unsafe impl Send for Hardened {}

impl core::fmt::Debug for Hardened {
    /// Without the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hardened")
            .field("regions", &&self.regions[..self.count])
            .field("footprint", &self.footprint)
            .finish_non_exhaustive()
    }
}

/// Steps of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), odd.
const fn key(secret: u64, step: u64) -> u64 {
    let mut word = secret.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)) | 1
}

/// -1 / `odd` mod 2⁶⁴ (Newton: every step doubles the bits that are right).
const fn negative_inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg()
}

impl Hardened {
    /// A store without a region. `secret` should be random and another for every
    /// heap: who knows it can forge records.
    pub const fn new(secret: u64) -> Self {
        Hardened {
            regions: [Region::NONE; REGIONS],
            count: 0,
            head: ptr::null_mut(),
            heads: 0,
            linkable: Cell::new(0),
            granules: Cell::new(0),
            align: 0,
            footprint: 0,
            keys: [key(secret, 1), key(secret, 2)],
            inverse: negative_inverse(key(secret, 1)),
            fault: Cell::new(None),
            doubts: Cell::new(0),
        }
    }

    /// Whether the address lies in one of the regions. Linear in their number.
    pub fn contains(&self, address: *const u8) -> bool {
        self.regions[..self.count].iter().any(|region| {
            let end = region.sentinel.addr() + GEOMETRY.sentinel;
            (self.start_of(region).addr()..end).contains(&address.addr())
        })
    }

    /// Where offsets in a region count from.
    fn start_of(&self, region: &Region) -> *mut u8 {
        let heads = match ptr::eq(region, &self.regions[0]) {
            true => self.heads,
            false => 0,
        };
        let control = GEOMETRY.first_block(heads, self.align);
        region.first.wrapping_sub(control)
    }

    #[inline(always)]
    fn mix(&self, body: usize, address: usize) -> u64 {
        (body as u64)
            .wrapping_mul(self.keys[0])
            .wrapping_add((address as u64).wrapping_mul(self.keys[1]))
    }

    /// The header of a block: flags, size and slack; `None` where the check fails.
    #[inline(always)]
    fn read(&self, block: TaggedBlock) -> Option<usize> {
        // SAFETY: `block` lies in a region (module invariant), whose memory is
        // initialised; with two words, the second lies in the smallest block and in
        // the sentinel.
        let word = unsafe { *block.word(0) };
        let sum = self.mix(word, block.address());
        let right = if ONE_WORD {
            sum >> UNKEPT == 0
        } else {
            // SAFETY: as above.
            word & BODY == word && unsafe { *block.word(1) } == (sum >> UNKEPT) as usize
        };
        right.then_some(word & BODY)
    }

    /// The header of a block whose check was verified: flags, size and slack.
    #[inline(always)]
    fn read_verified(&self, block: TaggedBlock) -> usize {
        debug_assert!(self.read(block).is_some(), "verified");
        // SAFETY: as in `read`.
        unsafe { *block.word(0) & BODY }
    }

    /// Writes the header of a block with its check.
    #[inline(always)]
    fn write(&mut self, block: TaggedBlock, body: usize) {
        let check = self.mix(body, block.address()) >> UNKEPT;
        // SAFETY: as in `read`; the words belong to the record of the block.
        unsafe {
            if ONE_WORD {
                // The sum of the whole word is greater by `(x << UNKEPT) · k₁` for a
                // check x: by -check, so that the highest bits are zero.
                *block.word(0) = body | (check.wrapping_mul(self.inverse) << UNKEPT) as usize;
            } else {
                *block.word(0) = body;
                *block.word(1) = check as usize;
            }
        }
    }

    #[inline(always)]
    const fn size_of(body: usize) -> usize {
        body & (LARGEST & !(GEOMETRY.granule - 1))
    }

    /// Remembers the first fault of an operation.
    #[cold]
    fn note(&self, what: Overwritten) {
        self.doubt();
        if self.fault.get().is_none() {
            self.fault.set(Some(what));
        }
    }

    /// Counts something forged or overwritten, and closes the store when that is enough.
    #[cold]
    fn doubt(&self) {
        let doubts = self.doubts.get().saturating_add(1);
        self.doubts.set(doubts);
        if doubts >= MOST_DOUBTS {
            self.linkable.set(0);
            self.granules.set(0);
        }
    }

    /// Whether the store takes no address for a block any more, because it has found [`MOST_DOUBTS`] times
    /// something forged or overwritten.
    pub const fn closed(&self) -> bool {
        self.doubts.get() >= MOST_DOUBTS
    }

    /// The block at an address, if one can begin there.
    #[inline(always)]
    fn block_at(&self, address: usize) -> Option<(TaggedBlock, &Region)> {
        let first = &self.regions[0];
        if granules_from(first.first, address) < self.granules.get() {
            return Some((TaggedBlock(first.pointer(address)), first));
        }
        self.block_elsewhere(address)
    }

    #[cold]
    fn block_elsewhere(&self, address: usize) -> Option<(TaggedBlock, &Region)> {
        if self.closed() {
            return None;
        }
        let regions = self.regions[..self.count].iter();
        let region = regions.skip(1).find(|region| region.holds(address))?;
        Some((TaggedBlock(region.pointer(address)), region))
    }

    /// The block or head that a link names. (The pad between heads and first block is
    /// neither, and passes here: what lies there has no header that passes its check.)
    #[inline(always)]
    fn linked(&self, address: usize) -> Option<Linked<'_>> {
        let position = granules_from(self.head, address);
        let region = &self.regions[0];
        if position < self.linkable.get() {
            return Some(Linked {
                block: TaggedBlock(region.pointer(address)),
                region,
                is_head: position < self.heads,
            });
        }
        let (block, region) = self.block_elsewhere(address)?;
        Some(Linked {
            block,
            region,
            is_head: false,
        })
    }

    /// The block or head at an address that an operation has verified to be one.
    #[inline(always)]
    fn verified(&self, address: usize) -> TaggedBlock {
        debug_assert!(self.closed() || self.linked(address).is_some(), "verified");
        // The memory of every region was exposed when it was laid.
        TaggedBlock(ptr::with_exposed_provenance_mut(address))
    }

    #[inline(always)]
    fn is_head(&self, block: TaggedBlock) -> bool {
        granules_from(self.head, block.address()) < self.heads
    }

    #[inline(always)]
    fn payload(block: TaggedBlock) -> *mut u8 {
        block.0.wrapping_add(GEOMETRY.header)
    }

    /// The last word in front of what follows a block.
    #[inline(always)]
    fn last_word(block: TaggedBlock, size: usize) -> *mut usize {
        block.0.wrapping_add(size - WORD).cast()
    }
}
