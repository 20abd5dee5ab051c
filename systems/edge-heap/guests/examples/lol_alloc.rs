//! lol_alloc's free list.
use lol_alloc::{AssumeSingleThreaded, FreeListAllocator};

#[global_allocator]
static HEAP: AssumeSingleThreaded<FreeListAllocator> =
    // SAFETY: the module has one thread.
    unsafe { AssumeSingleThreaded::new(FreeListAllocator::new()) };

metes_edge_heap_guests::exports!();
