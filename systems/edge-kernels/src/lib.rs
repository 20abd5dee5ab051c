//! The laboratory's kernels: one source for native code and WebAssembly, with checksums.
