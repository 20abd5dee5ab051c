//! The simulator from outside.

mod devices;
mod gdb;
mod sleep;
