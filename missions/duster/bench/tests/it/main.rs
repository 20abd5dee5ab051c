//! Tests of the bench as a whole.

mod flight;
mod page;
mod qemu;
