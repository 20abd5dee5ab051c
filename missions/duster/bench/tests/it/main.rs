//! Tests of the bench as a whole.

mod flight;
mod flip;
mod page;
mod qemu;
