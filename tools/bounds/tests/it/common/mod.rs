//! Random traces, and the recorded ones of the repository.
#![allow(dead_code, reason = "not every test binary takes all of it")]

use std::path::Path;

use metes_trace::{Provenance, Trace, TraceBuilder, import_csv_file};
use proptest::prelude::*;

/// What a random program does next.
#[derive(Clone, Debug)]
enum Step {
    Alloc(u64),
    /// A live block, by its place among them.
    Free(usize),
    Resize(usize, u64),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let size = || prop_oneof![0_u64..20, 0_u64..5000, Just(64_u64)];
    let step = prop_oneof![
        3 => size().prop_map(Step::Alloc),
        2 => any::<usize>().prop_map(Step::Free),
        1 => (any::<usize>(), size()).prop_map(|(block, size)| Step::Resize(block, size)),
    ];
    (prop_oneof![Just(0_u64), 0_u64..4, 0_u64..200], step)
}

/// Traces of random programs, with times that may coincide.
pub(crate) fn traces(longest: usize) -> impl Strategy<Value = Trace> {
    prop::collection::vec(step(), 1..longest).prop_map(|steps| {
        let mut builder = TraceBuilder::new();
        let (mut time, mut live) = (0, Vec::new());
        // A trace without an allocation has no bound.
        live.push(builder.alloc(0, 0, 24, 8).unwrap());
        for (wait, step) in steps {
            time += wait;
            match step {
                Step::Alloc(size) => live.push(builder.alloc(time, 0, size, 8).unwrap()),
                Step::Free(which) if !live.is_empty() => {
                    let block = live.swap_remove(which % live.len());
                    builder.free(time, 0, block).unwrap();
                }
                Step::Resize(which, size) if !live.is_empty() => {
                    let block = live[which % live.len()];
                    builder.resize(time, 0, block, size, 8).unwrap();
                }
                Step::Free(_) | Step::Resize(..) => {}
            }
        }
        builder.finish(Provenance::default())
    })
}

/// The traces of the benchmarks: sqlite, perl, python and a C compiler.
pub(crate) fn recorded() -> Vec<(String, Trace)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/bench/traces");
    let mut found: Vec<_> = std::fs::read_dir(&directory)
        .expect("the traces of the benchmarks")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .map(|path| {
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (
                name,
                import_csv_file(&path).unwrap_or_else(|error| panic!("{error}")),
            )
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found.len(), 4, "all traces are there");
    found
}
