//! Allocators in modules: what they cost, and whether programs see a difference.
//!
//! Needs the target wasm32-wasip1 and, for C, clang-14, lld-14 and wasi-libc (`scripts/setup`).

mod limits;
mod programs;
mod programs_of_rust;
mod support;
mod tune;
