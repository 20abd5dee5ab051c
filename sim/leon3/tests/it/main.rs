//! The simulator from outside.

mod devices;
mod gdb;
mod looks;
mod sleep;
