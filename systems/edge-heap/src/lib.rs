//! Allocators inside WebAssembly modules.
//!
//! A module carries its allocator, so what a request costs is a number of operators, the same on every machine. This
//! crate drives the allocator of a module from outside and [counts](fuel) them under [requests](traffic) of chance, of
//! [adversaries](adversary) and of recorded programs, finds the [longest path](longest) through the allocator's functions, and [runs](mod@run) whole
//! programs to compare what they say on one allocator and on another. It [tunes](tune) a module: [finds](outline) its
//! allocator, records what it is asked for, and [splices](mod@splice) in the heap that suits it, [emitted](joined) as C.
//!
//! Invariant: no figure depends on time or machine.

pub mod adversary;
pub mod fuel;
pub mod joined;
pub mod longest;
pub mod outline;
mod renumber;
mod report;
pub mod run;
pub mod splice;
mod told;
pub mod traffic;
pub mod tune;
mod wasi;
