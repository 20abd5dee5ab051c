//! Touch traces: what the program's source says, the recorder and an independent Valgrind tool must say the
//! same; and of every access what the first ones are.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_trace::record::access::read_accesses;
use metes_trace::{Op, TouchOperation, TouchProfile, open_touches};

use crate::support::{compile, count, options, oracle, place, tool};

/// The operations on blocks of checked sizes, with the size in place of the block's number.
fn checked(trace: &Path) -> Vec<String> {
    let mut sizes = HashMap::new();
    let mut lines = Vec::new();
    for operation in open_touches(trace).expect("a touch trace") {
        let operation = operation.unwrap_or_else(|error| panic!("{error}"));
        if let TouchOperation::Allocate { block, size, .. } = operation {
            sizes.insert(block, size);
        }
        let size = sizes[&operation.block()];
        if !(20_000..20_100).contains(&size) && size != 65_004 {
            continue;
        }
        let named = match operation {
            TouchOperation::Allocate { align, .. } => TouchOperation::Allocate {
                block: size,
                size,
                align,
            },
            TouchOperation::Free { .. } => TouchOperation::Free { block: size },
            TouchOperation::Read { offset, .. } => TouchOperation::Read {
                block: size,
                offset,
            },
            TouchOperation::Write { offset, .. } => TouchOperation::Write {
                block: size,
                offset,
            },
        };
        lines.push(named.to_string());
    }
    lines
}

/// Records `words` with slices of `slice` bytes; the file is `name` in `place`.
fn record(place: &Path, name: &str, words: &[&str], slice: u64) -> (PathBuf, TouchProfile) {
    let mut options = options(4);
    options.slice = Some(slice);
    let counted = count(words, &options);
    let file = place.join(name);
    let profile = counted.write_touches(&file, slice).expect("a touch trace");
    // What is not told is not even kept.
    let kept = counted.write_every_access(&place.join("kept.parquet"));
    assert!(kept.expect("a stream") <= profile.reads + profile.writes);
    (file, profile)
}

/// What the Valgrind tool says of `words`.
fn of_oracle(place: &Path, words: &[&str]) -> PathBuf {
    let file = place.join("oracle.touches");
    let mut valgrind = Command::new("valgrind");
    valgrind.env("VALGRIND_LIB", oracle(place));
    valgrind.args(["-q", "--tool=accesses"]);
    valgrind.arg(format!("--rows={}", place.join("rows").display()));
    valgrind.arg(format!("--touches={}", file.display()));
    tool("valgrind", valgrind.args(words));
    file
}

#[test]
fn touches_are_those_of_the_source_and_of_the_oracle() {
    let place = place();
    let program = compile("touches", place.path());
    let program = program.to_str().expect("a name");
    let known = tool("gcc", Command::new(program).env("SAY", "1"));
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    let known: Vec<&str> = known.lines().collect();
    assert_eq!(known.len(), 53);
    let (first, profile) = record(place.path(), "first.touches", &[program], 4096);
    assert_eq!(checked(&first), known);
    assert_eq!(
        checked(&of_oracle(place.path(), &[program])),
        known,
        "the oracle"
    );
    // The figures are those of the file, and another run gives the same file.
    let mut read = TouchProfile::default();
    for operation in open_touches(&first).expect("a touch trace") {
        read.take(&operation.expect("an operation"));
    }
    let figures = |profile: &TouchProfile| serde_json::to_value(profile).expect("JSON");
    assert_eq!(figures(&read), figures(&profile));
    let (second, _) = record(place.path(), "second.touches", &[program], 4096);
    let bytes = |path: &Path| std::fs::read(path).expect("a touch trace");
    assert_eq!(bytes(&first), bytes(&second));
}

#[test]
fn a_hundred_patterns_are_touched_as_the_oracle_says() {
    let place = place();
    let program = compile("known", place.path());
    let words = [program.to_str().expect("a name"), "4", "patterns"];
    let (file, _) = record(place.path(), "known.touches", &words, 4096);
    let touches = checked(&file);
    assert_eq!(touches, checked(&of_oracle(place.path(), &words)));
    // A hundred blocks, each made, touched in its first slice alone, and freed.
    assert_eq!(touches.len(), 300);
}

/// First touches of slices, collapsed by hand from all accesses, where no block is resized.
#[test]
fn first_touches_are_the_first_of_every_access() {
    let place = place();
    let program = compile("known", place.path());
    let words = [program.to_str().expect("a name"), "4", "patterns"];
    for slice in [16, 64, 4096] {
        let mut options = options(4);
        (options.every, options.slice) = (true, Some(slice));
        let counted = count(&words, &options);
        let every = place.path().join("every.parquet");
        counted.write_every_access(&every).expect("a stream");
        let mut naive = Vec::new();
        let mut touched = HashSet::new();
        let mut at = 0;
        let mut requests = |until: u64, naive: &mut Vec<String>| {
            while at < until {
                let event = counted.trace.event(at as usize).expect("a row");
                match event.op {
                    Op::Alloc if event.align == 16 => {
                        naive.push(format!("a,{},{}", event.block, event.size));
                    }
                    Op::Alloc => {
                        naive.push(format!("a,{},{},{}", event.block, event.size, event.align));
                    }
                    Op::Free => naive.push(format!("f,{}", event.block)),
                    // Counts of blocks that are never freed.
                    Op::Access => {}
                    Op::Resize => panic!("no block is resized"),
                }
                at += 1;
            }
        };
        let read = read_accesses(&every, |access| {
            requests(access.event, &mut naive);
            for byte in access.offset..access.offset + u64::from(access.bytes) {
                if touched.insert((access.block, byte / slice)) {
                    let way = if access.write { 'w' } else { 'r' };
                    naive.push(format!("{way},{},{byte}", access.block));
                }
            }
        });
        read.expect("a stream");
        requests(counted.trace.len() as u64, &mut naive);
        let both = place.path().join("both.touches");
        counted.write_touches(&both, slice).expect("a touch trace");
        let (alone, _) = record(place.path(), "alone.touches", &words, slice);
        for file in [both, alone] {
            let operations = open_touches(&file).expect("a touch trace");
            let told: Vec<String> = operations
                .map(|operation| operation.expect("an operation").to_string())
                .collect();
            assert_eq!(told, naive, "slices of {slice} bytes");
        }
    }
}
