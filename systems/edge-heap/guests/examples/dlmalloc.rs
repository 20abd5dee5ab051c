//! dlmalloc in Rust.
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

metes_edge_heap_guests::exports!();
