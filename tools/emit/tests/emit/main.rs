//! Emitted heaps against the heaps that they were emitted from.
//!
//! Needs `cc` (gcc), `clang`, `cmake`, `nm`, and for real programs `sqlite3`, `perl`
//! and `python3`. `METES_EMIT_CASES=N` draws more descriptions.

mod code;
mod counts;
mod crates;
mod damaged;
mod decisions;
mod guarded;
mod mapped;
mod narrow;
mod prediction;
mod programs;
mod recorder;
mod reference;
mod sample;
mod support;
