//! Sequences of requests that somebody else thought of, counted call by call.
//!
//! `metes worst --target` looks for sequences with slow calls, builds them into the
//! board (feature `requests`, file named by `METES_REQUESTS`), and reads what this
//! module prints. Each sequence begins on a new heap over the whole arena.
//!
//! Invariant: only the heap's own code (call and return included) runs between the two
//! readings of the counter, as in the churn.

use core::ptr::NonNull;

use crate::Arena;
use crate::board::Board;
use crate::churn::{counted_allocate, counted_free};
use crate::report::Report;
use crate::subject::Subject;

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
pub(crate) fn play<S: Subject>(
    words: &[u32],
    arena: &mut Arena,
    board: &mut impl Board,
    overhead: u32,
    report: &mut Report<'_>,
) {
    let (mut allocate, mut free) = (Most::default(), Most::default());
    let (mut calls, mut sound) = (0_u32, true);
    let mut heap: Option<S> = None;
    let mut blocks: [Option<NonNull<u8>>; BLOCKS] = [None; BLOCKS];
    let mut next = 0;
    for (place, word) in words.iter().enumerate() {
        let value = (word >> 2) as usize;
        match (word & 3, &mut heap) {
            (2, _) => {
                sound &= heap.as_ref().is_none_or(Subject::sound);
                let mut new = S::create();
                let all = arena.len();
                // SAFETY: the heap before is dead: its blocks are forgotten here.
                sound &= new.add_region(unsafe { arena.lend(0, all) });
                blocks = [None; BLOCKS];
                next = 0;
                heap = Some(new);
            }
            (0, Some(heap)) => {
                let (cost, block) = counted_allocate(heap, board, value);
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
                let (cost, ()) = unsafe { counted_free(heap, board, block) };
                free.enter(cost - overhead, place);
                calls += 1;
            }
            _ => sound = false,
        }
    }
    sound &= heap.as_ref().is_some_and(Subject::sound);
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
