//! Compact-fit and objects in pieces, run: the calls that a program makes that holds handles.
//!
//! Parameters of these heaps lie in tables, so that no code is compiled for them.
//!
//! Invariant: a word stands for a handle, bit for bit; no handle is zero.

use metes_heap::Memory;
use metes_heap::compact::backing::Backing;
use metes_heap::compact::{CompactFit, Handle, NonCompacting, Unfit};
use metes_heap::fragmented::Fragmented;

use super::{Runnable, Running, Subject, byte, exposed, of_word};
use crate::library::Make;
use crate::memory::Range;

impl Runnable for Make {
    /// `None` also where handles do not fit words, and where the program has made as many
    /// heaps of handles as can be told apart.
    fn open<'m>(&self, memory: &'m mut Range) -> Option<Running<'m>> {
        // SAFETY: the range is borrowed for as long as the heap runs.
        let region = unsafe { Memory::from_raw(memory.base(), memory.length()) };
        if let Make::Still(partition) = *self {
            let heap = NonCompacting::<true>::new(&partition, region).ok()?;
            return Some(Running::new(Still(heap), false));
        }
        if usize::BITS < u64::BITS {
            return None;
        }
        match *self {
            Make::Moving(options) => {
                let heap = CompactFit::new(&options, region);
                moving(heap, options.increment.is_some())
            }
            Make::Table(options) => {
                let heap = CompactFit::with_block_table(&options, region);
                moving(heap, options.increment.is_some())
            }
            Make::Pieces(options) => {
                let heap = Fragmented::new(&options, region).ok()?;
                Some(Running::new(Handles(heap), false))
            }
            Make::Still(_) => None,
        }
    }
}

/// Compact-fit whose frees move at once, or step by step.
fn moving<'m, B: Backing>(heap: Result<CompactFit<B>, Unfit>, steps: bool) -> Option<Running<'m>> {
    let heap = heap.ok()?;
    Some(match steps {
        true => Running::new(Handles(InSteps(heap)), false),
        false => Running::new(Handles(heap), false),
    })
}

/// A heap of handles, whose numbers are the blocks.
pub(crate) struct Handles<H>(pub(crate) H);

/// What is called of a heap of handles.
pub(crate) trait ByHandle {
    fn allocate(&mut self, size: usize) -> Option<Handle>;
    fn free(&mut self, handle: Handle);
    fn read(&mut self, handle: Handle, at: usize, byte: &mut [u8]);
}

impl<H: ByHandle> Subject for Handles<H> {
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> usize {
        self.0
            .allocate(size)
            .map_or(0, |handle| handle.to_bits() as usize)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: usize) {
        self.0.free(Handle::from_bits(block as u64));
    }

    #[inline(always)]
    unsafe fn read(&mut self, block: usize, at: usize) -> u8 {
        let mut byte = [0];
        self.0.read(Handle::from_bits(block as u64), at, &mut byte);
        byte[0]
    }
}

/// Has a heap called by its own free and read.
macro_rules! by_handle {
    ($heap:ty $(, $backing:ident)?, |$it:ident, $size:ident| $allocate:expr) => {
        impl$(<$backing: Backing>)? ByHandle for $heap {
            #[inline(always)]
            fn allocate(&mut self, $size: usize) -> Option<Handle> {
                let $it = self;
                $allocate.ok()
            }

            #[inline(always)]
            fn free(&mut self, handle: Handle) {
                let _ = <$heap>::free(self, handle);
            }

            #[inline(always)]
            fn read(&mut self, handle: Handle, at: usize, byte: &mut [u8]) {
                let _ = <$heap>::read(self, handle, at, byte);
            }
        }
    };
}
pub(crate) use by_handle;

by_handle!(CompactFit<B>, B, |heap, size| CompactFit::allocate(
    heap, size, 1
));
by_handle!(Fragmented, |heap, size| Fragmented::allocate(heap, size));

/// Compact-fit all steps of whose moves are in the free that begins them.
struct InSteps<B>(CompactFit<B>);

impl<B: Backing> ByHandle for InSteps<B> {
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> Option<Handle> {
        self.0.allocate(size, 1).ok()
    }

    #[inline(always)]
    fn free(&mut self, handle: Handle) {
        if let Ok((_, mut moved)) = self.0.begin_free(handle) {
            while let Some(step) = moved {
                moved = self.0.step(step);
            }
        }
    }

    #[inline(always)]
    fn read(&mut self, handle: Handle, at: usize, byte: &mut [u8]) {
        let _ = self.0.read(handle, at, byte);
    }
}

struct Still(NonCompacting);

impl Subject for Still {
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> usize {
        self.0.allocate(size, 1).map_or(0, exposed)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: usize) {
        // SAFETY: blocks of this heap are not zero (the trait's contract).
        let _ = self.0.free(unsafe { of_word(block) });
    }

    #[inline(always)]
    unsafe fn read(&mut self, block: usize, at: usize) -> u8 {
        // SAFETY: the trait's contract.
        unsafe { byte(block, at) }
    }
}
