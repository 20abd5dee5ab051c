//! rlsf as it recommends itself for this target.
#[global_allocator]
static HEAP: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

metes_edge_heap_guests::exports!();
