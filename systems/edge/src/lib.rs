//! The host of functions at the edge: WebAssembly modules in slots, with budgets and deadlines.
