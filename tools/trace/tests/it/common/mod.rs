//! Random consistent traces, and a directory of its own for each test.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use metes_trace::{Event, Op, Provenance, Trace, TraceBuilder};
use proptest::prelude::*;

/// A directory, removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "metes-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One random choice of a step: what, which block, size, alignment, thread,
/// time, and whether it carries accesses.
type Step = (
    u8,
    prop::sample::Index,
    u64,
    u32,
    u32,
    u64,
    Option<(u64, u64, u64)>,
);

fn step() -> impl Strategy<Value = Step> {
    (
        0u8..8,
        any::<prop::sample::Index>(),
        prop_oneof![8 => 0u64..64, 2 => 0u64..100_000, 1 => Just(isize::MAX as u64)],
        0u32..32,
        prop_oneof![6 => Just(0u32), 3 => 0u32..4, 1 => any::<u32>()],
        0u64..1000,
        prop::option::weighted(0.1, any::<(u64, u64, u64)>()),
    )
}

/// Consistent traces of up to `most` events.
pub(crate) fn traces(most: usize) -> impl Strategy<Value = Trace> {
    (prop::collection::vec(step(), 1..most), any::<bool>()).prop_map(|(steps, detailed)| {
        let mut builder = TraceBuilder::new();
        let mut live: Vec<u64> = Vec::new();
        let (mut time, mut blocks) = (0, 0);
        for (what, which, size, align_log2, thread, later, detail) in steps {
            time += later;
            let op = match what {
                _ if live.is_empty() => Op::Alloc,
                0..3 => Op::Alloc,
                3..6 => Op::Free,
                6 => Op::Resize,
                _ => Op::Access,
            };
            let block = match op {
                Op::Alloc => {
                    live.push(blocks);
                    blocks += 1;
                    blocks - 1
                }
                Op::Free => live.swap_remove(which.index(live.len())),
                Op::Resize | Op::Access => *which.get(&live),
            };
            let (reads, writes, site) = detail.filter(|_| detailed).unwrap_or_default();
            let aligned = matches!(op, Op::Alloc | Op::Resize);
            let event = Event {
                seq: builder.len() as u64,
                time_ns: time,
                thread,
                op,
                block,
                size: if op == Op::Free { 0 } else { size },
                align: if aligned { 1 << align_log2 } else { 0 },
                reads,
                writes,
                read_bytes: reads.wrapping_mul(3),
                write_bytes: writes.wrapping_mul(5),
                site,
            };
            builder.push(event).unwrap();
        }
        builder.finish(Provenance {
            command: vec!["a program".into(), "with \"quotes\" and \u{0}".into()],
            recorder: "test".into(),
            lost_events: 3,
            ..Provenance::default()
        })
    })
}
