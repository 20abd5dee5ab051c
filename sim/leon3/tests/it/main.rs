//! The simulator from outside.

mod calls;
mod devices;
mod gdb;
mod looks;
mod sleep;
