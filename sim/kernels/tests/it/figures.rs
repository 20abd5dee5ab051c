//! What the kernels allocate, and that heaps over many nodes serve it.
//!
//! *Invariant:* the expected figures are those of the structure, written down by hand: a tile of 16 x 16, its margins, four
//! bytes a word.

use metes_heap::Tlsf;
use metes_kernels::{Figures, NAMES, Picture, master_peak, operations, record_named};
use metes_mesh_replay::{FabricKind, Trace, replay};

fn workload(name: &str) -> metes_platform::Workload {
    let picture = Picture::generated(256, 256, 1);
    let workload = record_named(name, &picture).expect("tiles");
    workload.expect("one of the four")
}

/// Allocations, those of the master, remote frees, sizes, and the master's peaks on 4, 16 and 64 nodes, of 256 x 256
/// pixels; what FAST's corners add, which the picture decides, is left out.
type Row = (u64, u64, u64, Vec<(u32, u64)>, [u64; 3]);

fn expected() -> [(&'static str, Row); 4] {
    // Six, thirty and 126 tasks under way.
    let peaks = |bytes: u64| [6, 30, 126].map(|tasks| tasks * bytes);
    [
        (
            "fast",
            (512, 512, 0, vec![(5, 256), (9, 256)], peaks(32 + 22 * 22)),
        ),
        (
            "gaussian",
            (
                1024,
                512,
                256,
                vec![(5, 256), (8, 256), (9, 256), (10, 256)],
                peaks(32 + 400),
            ),
        ),
        (
            "integral",
            (
                768,
                512,
                256,
                vec![(5, 256), (8, 256), (10, 256)],
                peaks(32 + 256),
            ),
        ),
        (
            "matrix",
            (
                16384,
                12288,
                4096,
                vec![(5, 4096), (10, 12288)],
                peaks(32 + 2048),
            ),
        ),
    ]
}

#[test]
fn blocks_are_those_of_the_structure() {
    for (name, row) in expected() {
        let workload = workload(name);
        assert_eq!(workload.check(), Ok(()), "{name}");
        let mut figures = Figures::of(&workload);
        // A corner is a block of 12 bytes, which the master frees.
        let corners: u64 = figures
            .sizes
            .iter()
            .filter(|(class, _)| *class == 4)
            .map(|(_, count)| *count)
            .sum();
        assert_eq!(corners > 0, name == "fast");
        figures.sizes.retain(|(class, _)| *class != 4);
        let found = (
            figures.allocations - corners,
            figures.master_allocations,
            figures.remote_frees - corners,
            figures.sizes,
            [4, 16, 64].map(|nodes| master_peak(&workload, nodes)),
        );
        assert_eq!(found, row, "{name}");
    }
}

#[test]
fn instructions_follow_the_pixels() {
    for name in NAMES {
        let of = |side| {
            let picture = Picture::generated(side, side, 1);
            Figures::of(
                &record_named(name, &picture)
                    .expect("tiles")
                    .expect("one of the four"),
            )
        };
        let (small, large) = (of(64), of(128));
        assert!(small.master_instructions > 0 && small.slave_instructions > 0);
        if name != "fast" {
            // Four times the pixels, or eight times the products.
            let by = if name == "matrix" { 8 } else { 4 };
            assert_eq!(large.master_instructions, by * small.master_instructions);
            assert_eq!(large.slave_instructions, by * small.slave_instructions);
        }
    }
}

#[test]
fn heaps_of_many_nodes_serve_it() {
    for name in NAMES {
        let workload = workload(name);
        for (nodes, heap) in [(2, 16 << 10), (4, 8 << 10), (16, 8 << 10)] {
            let text = operations(&workload, nodes).expect("a slave");
            let trace = Trace::read(text.as_bytes(), nodes as u32).expect("operations");
            assert_eq!(2 * workload.allocations(), trace.operations().len() as u64);
            let index = |_| Tlsf::<8>::new();
            let replayed = replay(&trace, nodes as u32, heap, FabricKind::Sequential, index);
            let replayed = replayed.expect("it can be replayed");
            let name = format!("{name} on {nodes}: {replayed:?}");
            assert_eq!((replayed.failed, replayed.live_bytes), (0, 0), "{name}");
            assert_eq!((replayed.spurious, replayed.lost_blocks), (0, 0), "{name}");
        }
    }
}

#[test]
fn a_master_alone_has_nobody_to_work() {
    for nodes in [0, 1] {
        assert_eq!(operations(&workload("integral"), nodes), None);
    }
    assert!(
        record_named("sobel", &Picture::generated(16, 16, 1))
            .expect("tiles")
            .is_none()
    );
}
