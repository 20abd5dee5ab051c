//! o1heap, in C, through the bindings of the registry.

use std::ffi::c_void;

use crate::peer::{FixedArena, Handle};

/// A heap whose instance lies at the start of its own arena.
pub(crate) struct O1Heap(*mut o1heap::O1HeapInstance);

impl FixedArena for O1Heap {
    const RECORD: usize = 32;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        // SAFETY: the arena is ours alone and its base aligned beyond 32.
        let instance = unsafe { o1heap::o1heapInit(base.cast(), length) };
        (!instance.is_null()).then_some(O1Heap(instance))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        if align > o1heap::ALIGNMENT {
            return 0;
        }
        // SAFETY: the instance is live.
        unsafe { o1heap::o1heapAllocate(self.0, size) }.expose_provenance()
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        // SAFETY: the trait's contract.
        unsafe {
            o1heap::o1heapFree(
                self.0,
                std::ptr::with_exposed_provenance_mut::<c_void>(handle),
            );
        }
    }
}
