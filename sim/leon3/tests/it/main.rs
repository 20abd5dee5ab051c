//! The simulator from outside: any words, QEMU beside it, many cores, debuggers and tools.
//!
//! Invariant: nothing here is skipped. What lacks its compiler, QEMU or gdb fails and names `scripts/setup`.

mod any;
mod arithmetic;
mod calls;
mod cores;
mod devices;
mod differential;
mod gdb;
mod images;
mod looks;
mod qemu;
mod quirk;
mod sleep;
mod stream;
mod timer;
#[cfg(feature = "translate")]
mod translate;
mod unit;
