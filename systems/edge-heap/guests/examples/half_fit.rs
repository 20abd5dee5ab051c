//! As `tlsf`, with one class a power of two.
use metes_heap::{HalfFit, global::StaticHeap, lock::Single};

#[global_allocator]
static HEAP: StaticHeap<Single, HalfFit, { 8 << 20 }, false> =
    // SAFETY: the module has one thread.
    StaticHeap::new(unsafe { Single::new() }, HalfFit::new());

metes_edge_heap_guests::exports!();
