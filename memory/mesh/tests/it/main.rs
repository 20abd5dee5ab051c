//! The mesh from outside: beside a naive model, under threads and processes, and with a node that dies at any step.
//!
//! Invariant: whatever a test does, at its end every block is accounted for in every heap that still serves.

mod deaths;
mod model;
mod mortal;
#[cfg(all(unix, not(miri)))]
mod processes;
mod stress;

use metes_heap::Tlsf;
use metes_mesh::{Audit, HeapSpace, Shared};

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

type Nodes = Shared<Tlsf<8>>;

fn nodes(count: u32, bytes: u64) -> Nodes {
    let space = HeapSpace::new(0x6000_0000, bytes, count).expect("a space");
    Shared::new(space, |_| Tlsf::new()).expect("heaps fit")
}

/// That every heap is whole and holds what its tags say.
fn accounted(audits: &[Audit]) {
    for (node, audit) in audits.iter().enumerate() {
        if !audit.left_out {
            assert!(audit.whole, "node {node}: {audit:?}");
            assert_eq!(
                audit.blocks,
                audit.used + audit.freed,
                "node {node}: {audit:?}"
            );
        }
    }
}
