//! `metes-heap` as malloc of WebAssembly modules.
//!
//! Built for `wasm32-wasip1` this is a static library that takes the place of wasi-libc's
//! allocator at link time. Its pool is what the module's memory has behind data and stack when
//! the first request comes; it never asks for more, so a module whose memory is linked with
//! `--initial-memory` equal to `--max-memory` has all of it from the beginning. Every request takes
//! constant time: no loop depends on what the heap holds. On other targets the crate has the
//! [heap](arena::Arena) alone, for its tests, and exports nothing.
//!
//! Invariant: a block begins at a multiple of [`ALIGNMENT`](arena::ALIGNMENT), and what it holds is what was
//! asked for or more.
#![cfg_attr(target_family = "wasm", no_std)]

pub mod arena;
#[cfg(target_family = "wasm")]
mod exports;
