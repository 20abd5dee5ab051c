//! The heap over the cores of a LEON3 from outside, and what the mesh makes its memory cost.

mod controlled;
mod image;
mod memory;
mod nodes;
mod platform;
mod qemu;
mod table;
