//! A heap of Metes on a static pool: nothing is locked, as the target has one thread.
use metes_heap::{Tlsf, global::StaticHeap, lock::Single};

#[global_allocator]
static HEAP: StaticHeap<Single, Tlsf<16>, { 8 << 20 }, false> =
    // SAFETY: the module has one thread.
    StaticHeap::new(unsafe { Single::new() }, Tlsf::new());

metes_edge_heap_guests::exports!();
