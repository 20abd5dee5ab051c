//! What Rust has on this target: malloc of wasi-libc, which is dlmalloc in C.

metes_edge_heap_guests::exports!();
