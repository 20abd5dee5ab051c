//! The simulator from outside.

mod gdb;
mod sleep;
