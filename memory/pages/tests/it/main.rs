//! Tests of constant-time virtual memory.

mod index;
mod model;
mod random;
