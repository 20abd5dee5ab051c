//! Heaps of threads from outside: beside a naive model, under threads, and to the last byte.
//!
//! Invariant: whatever a test does, at its end no slot is in use.

mod ground;
mod limits;
mod model;
mod stress;

/// So many in a release, fewer where checks are slow.
fn few(release: u64) -> u64 {
    if cfg!(miri) {
        release.div_ceil(1000)
    } else if cfg!(debug_assertions) {
        release.div_ceil(20)
    } else {
        release
    }
}
