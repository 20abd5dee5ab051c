//! Tests of constant-time virtual memory.

mod exhaustive;
mod index;
mod model;
mod random;
