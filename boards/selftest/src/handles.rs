//! The checks for heaps of handles, whose blocks move or are no blocks at all: contents are
//! reached by reading and writing only, and no handle resolves but those that are live.
//! Invariant: as for the other cases, each starts with a new heap and ends by freeing all.

use core::mem::MaybeUninit;

use metes_heap::Memory;
use metes_heap::compact::{self, BadHandle, CompactFit, Copying, Handle, Kappa, Partition};
use metes_heap::fragmented::{self, Fragmented, Shape};

use crate::Arena;
use crate::board::{Board, count};
use crate::fault::Fault;
use crate::random::Random;
use crate::report::Report;
use crate::requests::{self, Played, Requests};

/// Bytes of arena the cases use.
pub const CASE_ARENA: usize = 48 * 1024;
/// Most blocks that a case keeps.
const SLOTS: usize = 96;
/// Bytes compared at once.
const PIECE: usize = 32;

/// A heap under test that gives handles.
pub trait HandleSubject: Sized {
    /// What the report calls it.
    const NAME: &'static str;

    /// A new heap in a region; `None` where it does not take it.
    fn create(region: &'static mut [MaybeUninit<u8>]) -> Option<Self>;
    /// A block, or `None`.
    fn allocate(&mut self, size: usize) -> Option<Handle>;
    /// Frees a block.
    fn free(&mut self, handle: Handle) -> Result<(), BadHandle>;
    /// Resizes a block; false where it is refused.
    fn resize(&mut self, handle: Handle, size: usize) -> bool;
    /// Copies bytes out.
    fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle>;
    /// Copies bytes in.
    fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle>;
    /// Whether the heap's own check holds.
    fn sound(&self) -> bool;
    /// Requested bytes in use.
    fn live(&self) -> usize;
    /// Bytes in use for blocks, whatever is in them.
    fn held(&self) -> usize;
}

/// Compact-fit in pages of so many bytes, for requests of up to half as many, that moves in
/// steps of so many bytes; 0: at once.
pub struct Compact<const PAGE: usize, const INCREMENT: usize>(CompactFit<Copying>);

impl<const PAGE: usize, const INCREMENT: usize> HandleSubject for Compact<PAGE, INCREMENT> {
    const NAME: &'static str = match (PAGE, INCREMENT) {
        (1024, 0) => "compact-fit:kappa=1",
        (4096, 0) => "compact-fit:kappa=1,page=4KiB,largest=2KiB",
        _ => "compact-fit:kappa=1, in steps",
    };

    fn create(region: &'static mut [MaybeUninit<u8>]) -> Option<Self> {
        let options = compact::Options {
            partition: Partition {
                page: PAGE,
                largest: PAGE / 2,
                ..Partition::DEFAULT
            },
            kappa: Kappa::Finite(1),
            increment: (INCREMENT > 0).then_some(INCREMENT),
        };
        let heap = CompactFit::new(&options, Memory::from_static(region));
        heap.ok().map(Compact)
    }

    fn allocate(&mut self, size: usize) -> Option<Handle> {
        self.0.allocate(size, 8).ok()
    }

    /// In steps: all but the last now, so that the next operations find a move under way.
    fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        if INCREMENT == 0 {
            return self.0.free(handle);
        }
        self.0.finish_all();
        let (_, moved) = self.0.begin_free(handle)?;
        let _ = moved.and_then(|moved| self.0.step(moved));
        Ok(())
    }

    fn resize(&mut self, handle: Handle, size: usize) -> bool {
        self.0.resize(handle, size, 8).is_ok()
    }

    fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        self.0.read(handle, offset, bytes)
    }

    fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        self.0.write(handle, offset, bytes)
    }

    fn sound(&self) -> bool {
        self.0.check().is_ok()
    }

    fn live(&self) -> usize {
        self.0.statistics().live
    }

    fn held(&self) -> usize {
        self.0.pages().0 as usize * PAGE
    }
}

/// Objects in blocks of 32 bytes: as trees, or as chains.
pub struct Pieces<const TREE: bool>(Fragmented);

impl<const TREE: bool> HandleSubject for Pieces<TREE> {
    const NAME: &'static str = match TREE {
        true => "fragmented:shape=tree",
        false => "fragmented:shape=chain",
    };

    fn create(region: &'static mut [MaybeUninit<u8>]) -> Option<Self> {
        let options = fragmented::Options {
            block: 32,
            shape: if TREE { Shape::Tree } else { Shape::Chain },
        };
        let heap = Fragmented::new(&options, Memory::from_static(region));
        heap.ok().map(Pieces)
    }

    fn allocate(&mut self, size: usize) -> Option<Handle> {
        self.0.allocate(size).ok()
    }

    fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        self.0.free(handle)
    }

    fn resize(&mut self, handle: Handle, size: usize) -> bool {
        self.0.resize(handle, size).is_ok()
    }

    fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        self.0.read(handle, offset, bytes)
    }

    fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        self.0.write(handle, offset, bytes)
    }

    fn sound(&self) -> bool {
        self.0.check().is_ok()
    }

    fn live(&self) -> usize {
        self.0.statistics().live
    }

    fn held(&self) -> usize {
        self.0.blocks().0 as usize * 32
    }
}

/// What a case believes of a block.
#[derive(Clone, Copy)]
struct Own {
    handle: Handle,
    size: usize,
    seed: u8,
}

impl Own {
    /// The byte at an offset.
    fn byte(&self, offset: usize) -> u8 {
        self.seed ^ (offset as u8).wrapping_mul(29)
    }

    /// Where it is reported to be: nowhere, so its handle stands for it.
    fn address(&self) -> usize {
        self.handle.to_bits() as usize
    }
}

/// A heap and what should be in it.
struct Shadow<S> {
    heap: S,
    slots: [Option<Own>; SLOTS],
    operations: usize,
}

impl<S: HandleSubject> Shadow<S> {
    fn new(arena: &mut Arena) -> Result<Self, Fault> {
        // SAFETY: the heaps of earlier cases are dead.
        let heap = S::create(unsafe { arena.lend(3, CASE_ARENA - 5) });
        Ok(Shadow {
            heap: heap.ok_or(Fault::RegionRefused)?,
            slots: [None; SLOTS],
            operations: 0,
        })
    }

    fn allocate(&mut self, slot: usize, size: usize) -> Result<bool, Fault> {
        self.operations += 1;
        let Some(handle) = self.heap.allocate(size) else {
            return Ok(false);
        };
        let own = Own {
            handle,
            size,
            seed: self.operations as u8,
        };
        self.fill(own, 0)?;
        self.slots[slot] = Some(own);
        Ok(true)
    }

    /// Writes what belongs into a block, from an offset on.
    fn fill(&mut self, own: Own, from: usize) -> Result<(), Fault> {
        for start in (from..own.size).step_by(PIECE) {
            let mut piece = [0; PIECE];
            let length = PIECE.min(own.size - start);
            for (index, byte) in piece[..length].iter_mut().enumerate() {
                *byte = own.byte(start + index);
            }
            let written = self.heap.write(own.handle, start, &piece[..length]);
            written.map_err(|_| self.lost(own, start))?;
        }
        Ok(())
    }

    fn lost(&self, own: Own, offset: usize) -> Fault {
        Fault::Contents {
            address: own.address(),
            offset,
        }
    }

    /// Whether a block is as it was written.
    fn compare(&self, own: Own) -> Result<(), Fault> {
        for start in (0..own.size).step_by(PIECE) {
            let mut piece = [0; PIECE];
            let length = PIECE.min(own.size - start);
            let read = self.heap.read(own.handle, start, &mut piece[..length]);
            read.map_err(|_| self.lost(own, start))?;
            for (index, &byte) in piece[..length].iter().enumerate() {
                if byte != own.byte(start + index) {
                    return Err(self.lost(own, start + index));
                }
            }
        }
        Ok(())
    }

    fn free(&mut self, slot: usize) -> Result<(), Fault> {
        self.operations += 1;
        let Some(own) = self.slots[slot].take() else {
            return Ok(());
        };
        self.compare(own)?;
        let bad = Fault::BadFree {
            address: own.address(),
        };
        self.heap.free(own.handle).map_err(|_| bad)?;
        // From now on the handle names nothing.
        match self.heap.free(own.handle) {
            Err(_) => Ok(()),
            Ok(()) => Err(bad),
        }
    }

    fn resize(&mut self, slot: usize, size: usize) -> Result<(), Fault> {
        self.operations += 1;
        if let Some(own) = &mut self.slots[slot]
            && self.heap.resize(own.handle, size)
        {
            let before = own.size.min(size);
            own.size = size;
            let own = *own;
            return self.fill(own, before);
        }
        Ok(())
    }

    fn audit(&self) -> Result<(), Fault> {
        let mut expected = 0;
        for own in self.slots.iter().flatten() {
            self.compare(*own)?;
            expected += own.size;
        }
        let found = self.heap.live();
        if found != expected {
            return Err(Fault::Accounting { expected, found });
        }
        match self.heap.sound() {
            true => Ok(()),
            false => Err(Fault::Corrupt {
                operations: self.operations,
            }),
        }
    }

    /// Frees all; then nothing is held any more.
    fn end(&mut self) -> Result<(), Fault> {
        for slot in 0..SLOTS {
            self.free(slot)?;
        }
        self.audit()?;
        match self.heap.held() {
            0 => Ok(()),
            now => Err(Fault::NotCoalesced { fresh: 0, now }),
        }
    }
}

/// Random operations; all blocks are compared every 32 of them.
fn random_operations<S: HandleSubject>(shadow: &mut Shadow<S>) -> Result<(), Fault> {
    let mut random = Random::new(0x4D65_7465);
    for operation in 0..3000 {
        let slot = random.below(SLOTS);
        let size = match random.below(8) {
            0 => random.below(500),
            _ => random.below(100),
        };
        match (shadow.slots[slot].is_some(), random.below(4)) {
            (false, _) => drop(shadow.allocate(slot, size)?),
            (true, 0) => shadow.resize(slot, size)?,
            (true, _) => shadow.free(slot)?,
        }
        if operation % 32 == 0 {
            shadow.audit()?;
        }
    }
    shadow.end()
}

/// Blocks of one size, of which few stay: what is held shrinks with them, wherever they are.
fn thinned<S: HandleSubject>(shadow: &mut Shadow<S>) -> Result<(), Fault> {
    const SIZE: usize = 100;
    for slot in 0..SLOTS {
        if !shadow.allocate(slot, SIZE)? {
            return Err(Fault::Refused {
                size: SIZE,
                align: 1,
            });
        }
    }
    let full = shadow.heap.held();
    for slot in (0..SLOTS).filter(|slot| slot % 12 != 0) {
        shadow.free(slot)?;
        shadow.audit()?;
    }
    // A twelfth is left, in at most two pages or a few blocks more.
    let now = shadow.heap.held();
    if now > full / 12 + 2048 {
        return Err(Fault::NotCoalesced { fresh: full, now });
    }
    shadow.end()
}

/// Handles that were made up, cut short, or are of another heap; accesses past the end.
fn bad_handles<S: HandleSubject>(shadow: &mut Shadow<S>) -> Result<(), Fault> {
    for slot in 0..4 {
        shadow.allocate(slot, 50)?;
    }
    shadow.free(2)?;
    let Some(own) = shadow.slots[1] else {
        return Ok(());
    };
    let bits = own.handle.to_bits();
    let live = |bits| {
        let mut live = shadow.slots.iter().flatten();
        live.any(|own| own.handle.to_bits() == bits)
    };
    // Each bit flipped; and entries and generations that were used, and that come next.
    let flipped = (0..64).map(|bit| bits ^ (1 << bit));
    let near = (0..64).map(|near| (bits >> 48 << 48) | ((near % 8) << 24) | (near / 8));
    for made_up in flipped.chain(near) {
        if !live(made_up) && shadow.heap.free(Handle::from_bits(made_up)).is_ok() {
            return Err(Fault::BadFree {
                address: made_up as usize,
            });
        }
    }
    for (offset, length) in [(50, 1), (0, 51), (usize::MAX, 1), (usize::MAX - 1, 60)] {
        let mut bytes = [0; 60];
        if shadow
            .heap
            .read(own.handle, offset, &mut bytes[..length])
            .is_ok()
        {
            return Err(Fault::Outside {
                address: own.address(),
                size: length,
            });
        }
    }
    shadow.audit()?;
    shadow.end()
}

type Case<S> = fn(&mut Shadow<S>) -> Result<(), Fault>;

/// Runs every case on a heap of type `S`; one check of the report per case.
pub fn all<S: HandleSubject>(arena: &mut Arena, report: &mut Report<'_>) {
    let before = report.tally().1;
    let cases: [(&str, Case<S>); 3] = [
        ("random operations", random_operations),
        ("thinned", thinned),
        ("bad handles", bad_handles),
    ];
    let mut passed = 0;
    for (name, case) in cases {
        let outcome = Shadow::new(arena).and_then(|mut shadow| case(&mut shadow));
        passed += usize::from(report.check(S::NAME, name, outcome));
    }
    if report.tally().1 == before {
        report.line(format_args!("ok {}: {passed} cases", S::NAME));
    }
}

/// Runs every case on every heap of handles.
pub(crate) fn test_all(arena: &mut Arena, report: &mut Report<'_>) {
    all::<Compact<1024, 0>>(arena, report);
    all::<Compact<1024, 16>>(arena, report);
    all::<Pieces<true>>(arena, report);
    all::<Pieces<false>>(arena, report);
}

/// A heap of handles that requests are played on.
struct Handles<S>(S);

impl<S: HandleSubject> Played for Handles<S> {
    type Block = Handle;
    const NAME: &'static str = S::NAME;

    fn begin(region: &'static mut [MaybeUninit<u8>]) -> Option<Self> {
        S::create(region).map(Self)
    }

    #[inline(always)]
    fn allocate(&mut self, board: &mut impl Board, size: usize) -> (u32, Option<Handle>) {
        counted_allocate(&mut self.0, board, size)
    }

    #[inline(always)]
    unsafe fn free(&mut self, board: &mut impl Board, block: Handle) -> u32 {
        counted_free(&mut self.0, board, block)
    }

    fn sound(&self) -> bool {
        self.0.sound()
    }
}

// Out of line, as in the churn: what is counted is one call as a program makes it.

#[inline(never)]
fn counted_allocate<S: HandleSubject>(
    heap: &mut S,
    board: &mut impl Board,
    size: usize,
) -> (u32, Option<Handle>) {
    count(board, || allocate(heap, size))
}

#[inline(never)]
fn counted_free<S: HandleSubject>(heap: &mut S, board: &mut impl Board, block: Handle) -> u32 {
    count(board, || free(heap, block)).0
}

#[inline(never)]
fn allocate<S: HandleSubject>(heap: &mut S, size: usize) -> Option<Handle> {
    heap.allocate(size)
}

#[inline(never)]
fn free<S: HandleSubject>(heap: &mut S, block: Handle) -> bool {
    heap.free(block).is_ok()
}

/// Plays requests on the heap of handles that they name; false if there is none.
pub(crate) fn play(
    requests: &Requests,
    arena: &mut Arena,
    board: &mut impl Board,
    overhead: u32,
    report: &mut Report<'_>,
) -> bool {
    macro_rules! heaps {
        ($($heap:ty)+) => {
            $(if requests.heap == <$heap>::NAME {
                requests::play::<Handles<$heap>>(requests.words, arena, board, overhead, report);
                return true;
            })+
        };
    }
    heaps! { Compact<4096, 0> Pieces<true> Pieces<false> }
    false
}
