//! talc as it recommends itself for this target.
#[global_allocator]
static HEAP: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

metes_edge_heap_guests::exports!();
