//! Sequences of requests that somebody else thought of, counted call by call.
//!
//! `metes worst --target` looks for sequences with slow calls, builds them into the
//! board (feature `requests`, file named by `METES_REQUESTS`), and reads what this
//! module prints. Each sequence begins on a new heap over the whole arena.
//!
//! Invariant: only the heap's own code (call and return included) runs between the two
//! readings of the counter, as in the churn.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::Arena;
use crate::board::Board;
use crate::churn::{counted_allocate, counted_free};
use crate::report::Report;
use crate::subject::Subject;

/// A heap that requests are played on, whatever it gives for a block. Both calls are counted.
pub(crate) trait Played: Sized {
    /// What stands for a block.
    type Block: Copy;
    /// The heap's name.
    const NAME: &'static str;

    /// A new heap in a region; `None` where it does not take it.
    fn begin(region: &'static mut [MaybeUninit<u8>]) -> Option<Self>;

    /// A block of `size` bytes, and what the call cost.
    fn allocate(&mut self, board: &mut impl Board, size: usize) -> (u32, Option<Self::Block>);

    /// Takes a block back; what the call cost.
    ///
    /// # Safety
    /// `block` came from this heap and is live.
    unsafe fn free(&mut self, board: &mut impl Board, block: Self::Block) -> u32;

    /// True if the heap's records are consistent.
    fn sound(&self) -> bool;
}

/// A heap that gives addresses.
pub(crate) struct Addresses<S>(S);

impl<S: Subject> Played for Addresses<S> {
    type Block = NonNull<u8>;
    const NAME: &'static str = S::NAME;

    fn begin(region: &'static mut [MaybeUninit<u8>]) -> Option<Self> {
        let mut heap = S::create();
        heap.add_region(region).then_some(Self(heap))
    }

    #[inline(always)]
    fn allocate(&mut self, board: &mut impl Board, size: usize) -> (u32, Option<NonNull<u8>>) {
        counted_allocate(&mut self.0, board, size)
    }

    #[inline(always)]
    unsafe fn free(&mut self, board: &mut impl Board, block: NonNull<u8>) -> u32 {
        // SAFETY: the caller's promise is the same.
        unsafe { counted_free(&mut self.0, board, block) }.0
    }

    fn sound(&self) -> bool {
        self.0.sound()
    }
}

/// What to play: the heap's name in the catalogue, and words. The lowest two bits of a
/// word are what to do (0 allocate, 1 free, 2 begin anew), the others with how many
/// bytes, or with which allocation of the sequence.
pub struct Requests {
    /// The heap.
    pub heap: &'static str,
    /// The requests.
    pub words: &'static [u32],
}

/// Allocations of a sequence at most.
pub const BLOCKS: usize = 4096;

/// The most instructions of one kind of call, and where: word counted from zero.
#[derive(Clone, Copy, Default)]
struct Most {
    instructions: u32,
    word: usize,
}

impl Most {
    fn enter(&mut self, instructions: u32, word: usize) {
        if instructions > self.instructions {
            *self = Most { instructions, word };
        }
    }
}

/// Plays `words` on heaps of type `S` and prints the most instructions of an
/// allocation and of a free. `overhead` is what reading the counter costs.
pub(crate) fn play<S: Played>(
    words: &[u32],
    arena: &mut Arena,
    board: &mut impl Board,
    overhead: u32,
    report: &mut Report<'_>,
) {
    let (mut allocate, mut free) = (Most::default(), Most::default());
    let (mut calls, mut sound) = (0_u32, true);
    let mut heap: Option<S> = None;
    let mut blocks: [Option<S::Block>; BLOCKS] = [None; BLOCKS];
    let mut next = 0;
    for (place, word) in words.iter().enumerate() {
        let value = (word >> 2) as usize;
        match (word & 3, &mut heap) {
            (2, _) => {
                sound &= heap.as_ref().is_none_or(S::sound);
                let all = arena.len();
                // SAFETY: the heap before is dead: its blocks are forgotten here.
                heap = S::begin(unsafe { arena.lend(0, all) });
                sound &= heap.is_some();
                blocks = [None; BLOCKS];
                next = 0;
            }
            (0, Some(heap)) => {
                let (cost, block) = heap.allocate(board, value);
                allocate.enter(cost - overhead, place);
                calls += 1;
                if let Some(entry) = blocks.get_mut(next) {
                    *entry = block;
                }
                next += 1;
            }
            (1, Some(heap)) => {
                // Refused before: nothing to free.
                let Some(block) = blocks.get_mut(value).and_then(Option::take) else {
                    continue;
                };
                // SAFETY: a block of this heap, taken out of the live ones.
                let cost = unsafe { heap.free(board, block) };
                free.enter(cost - overhead, place);
                calls += 1;
            }
            _ => sound = false,
        }
    }
    sound &= heap.as_ref().is_some_and(S::sound);
    report.check(
        S::NAME,
        "the requests can be played and leave the records intact",
        if sound { Ok(()) } else { Err("they do not") },
    );
    for (name, most) in [("allocate", allocate), ("free", free)] {
        report.line(format_args!(
            "worst {name}: {} instructions at word {} of {calls} calls",
            most.instructions, most.word
        ));
    }
}
