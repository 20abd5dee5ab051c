//! Tests of the bench as a whole.

mod page;
mod qemu;
