//! The simulator as a whole: any words, QEMU beside it, many cores, and the manual's arithmetic.
//!
//! Invariant: nothing here is skipped. Where the compiler or QEMU is missing, its tests fail and name `scripts/setup`.

mod any;
mod arithmetic;
mod cores;
mod differential;
mod images;
mod qemu;
mod quirk;
mod stream;
mod timer;
