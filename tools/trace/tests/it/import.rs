//! Foreign files: a snapshot that PyTorch wrote, replay logs, and no panic on any bytes.

use std::path::Path;

use crate::common::{Scratch, traces};
use metes_trace::{
    Format, LogError, Op, PickleError, SnapshotError, Trace, TraceError, import_file,
    import_pytorch, import_rmm,
};
use proptest::prelude::*;

/// Written by PyTorch 2.15; `data/snapshot.py` made it and says what is in it.
const SNAPSHOT: &[u8] = include_bytes!("../../../../examples/traces/snapshot.pickle");

fn snapshot(bytes: &[u8]) -> Result<Trace, TraceError> {
    import_pytorch(bytes, Path::new("x.pickle"), None)
}

fn log(lines: &str) -> Result<Trace, TraceError> {
    let text = format!("Thread,Time,Action,Pointer,Size,Stream\n{lines}");
    import_rmm(text.as_bytes(), Path::new("x.csv"))
}

fn log_error(lines: &str) -> (u64, LogError) {
    match log(lines) {
        Err(TraceError::Log { line, cause, .. }) => (line, cause),
        other => panic!("{other:?}"),
    }
}

/// Live bytes after each event.
fn live(trace: &Trace) -> Vec<u64> {
    let mut sizes = vec![0; trace.block_count()];
    let mut sum = 0;
    trace
        .iter()
        .map(|event| {
            let size = &mut sizes[event.block as usize];
            match event.op {
                Op::Alloc => *size = event.size,
                _ => *size = 0,
            }
            match event.op {
                Op::Alloc => sum += event.size,
                _ => sum = sizes.iter().sum(),
            }
            sum
        })
        .collect()
}

#[test]
fn a_snapshot_is_what_the_script_did() {
    let trace = snapshot(SNAPSHOT).unwrap();
    // Two blocks from before, one of them freed; a shared one and its end; 20 blocks of which 10
    // are freed. The refused request is no block.
    assert_eq!(trace.len(), 2 + 1 + 2 + 20 + 10);
    assert_eq!(trace.block_count(), 23);
    let sizes: Vec<u64> = trace.sizes().iter().collect();
    let mut before: Vec<u64> = sizes[..2].to_vec();
    before.sort_unstable();
    assert_eq!(before, [12_000, 20_000]);
    assert_eq!(trace.ops()[2], Op::Free);
    assert_eq!(sizes[trace.blocks()[2] as usize], 20_000);
    assert_eq!(sizes[3], 4 << 20);
    let kept = |index: u32| 100_u64 << index;
    assert_eq!(sizes[5..25], (0..20).map(kept).collect::<Vec<_>>());
    let live = live(&trace);
    assert_eq!(
        live.iter().max(),
        Some(&(12_000 + (0..20).map(kept).sum::<u64>()))
    );
    let odd: u64 = (1..20).step_by(2).map(kept).sum();
    assert_eq!(live.last(), Some(&(12_000 + odd)));
    assert_eq!(trace.threads().get(3), Some(1));
    assert_eq!(trace.provenance.threads, 2);
    assert_eq!(trace.align(3), 512);
    assert!(trace.times().iter().is_sorted());
    assert!(trace.times().last() > Some(0));
}

#[test]
fn a_snapshot_cut_off_anywhere_is_refused() {
    for end in 0..SNAPSHOT.len() {
        assert!(
            matches!(snapshot(&SNAPSHOT[..end]), Err(TraceError::Pickle { .. })),
            "{end}"
        );
    }
}

#[test]
fn devices_are_chosen() {
    let choose = |device| import_pytorch(SNAPSHOT, Path::new("x"), device);
    assert_eq!(choose(Some(0)).unwrap(), choose(None).unwrap());
    let error = choose(Some(3)).unwrap_err();
    assert!(error.to_string().contains("these have: 0"), "{error}");
}

/// A pickle of `{"device_traces": [HISTORY, …]}`.
fn pickled(histories: &[&[u8]]) -> Vec<u8> {
    let key = b"X\x0d\0\0\0device_traces";
    [&b"\x80\x04}"[..], key, b"](", &histories.concat(), b"es."].concat()
}

/// An entry of a history.
fn entry(action: &str, address: u8, size: u8) -> Vec<u8> {
    let text = |text: &str| [&[0x8c, text.len() as u8], text.as_bytes()].concat();
    [
        b"}(".to_vec(),
        text("action"),
        text(action),
        text("addr"),
        vec![b'K', address],
        text("size"),
        vec![b'K', size],
        b"u".to_vec(),
    ]
    .concat()
}

/// A history of these entries.
fn history(entries: &[Vec<u8>]) -> Vec<u8> {
    [b"](".to_vec(), entries.concat(), b"e".to_vec()].concat()
}

fn cause(pickle: &[u8]) -> SnapshotError {
    match snapshot(pickle) {
        Err(TraceError::Snapshot { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_snapshot_is_named() {
    assert!(matches!(
        snapshot(b"\x80\x04K\x01."),
        Err(TraceError::Snapshot {
            cause: SnapshotError::Missing("device_traces"),
            ..
        })
    ));
    assert_eq!(cause(&pickled(&[b"]"])), SnapshotError::NoHistory);
    let one = history(&[entry("alloc", 1, 8)]);
    assert_eq!(
        cause(&pickled(&[b"]", &one, &one])),
        SnapshotError::Devices(vec![1, 2])
    );
    let no_size = history(&[b"}(\x8c\x06action\x8c\x05allocu".to_vec()]);
    assert_eq!(
        cause(&pickled(&[&no_size])),
        SnapshotError::Field {
            entry: 0,
            field: "addr"
        }
    );
    let twice = history(&[entry("alloc", 1, 8), entry("alloc", 1, 8)]);
    let error = snapshot(&pickled(&[&twice])).unwrap_err().to_string();
    assert!(error.contains("entry 1"), "{error}");
    let freed = history(&[
        entry("alloc", 1, 8),
        entry("free_completed", 1, 8),
        entry("free_completed", 1, 8),
    ]);
    let error = snapshot(&pickled(&[&freed])).unwrap_err().to_string();
    assert!(error.contains("entry 2"), "{error}");
    let nothing = history(&[entry("oom", 1, 8)]);
    assert!(matches!(
        snapshot(&pickled(&[&nothing])),
        Err(TraceError::Empty { .. })
    ));
}

#[test]
fn a_pickle_that_would_run_something_is_refused() {
    let error = snapshot(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.").unwrap_err();
    assert!(matches!(
        error,
        TraceError::Pickle {
            cause: PickleError::Object(0x93),
            offset: 14,
            ..
        }
    ));
    assert!(error.to_string().contains("byte 14"), "{error}");
}

#[test]
fn a_replay_log() {
    let trace = log("1979932,14:21:19.998533,allocate,0x30a000000,256,0x2\n\
         1980043,14:21:20.000000,allocate,0x30b000000,1024,0x2\r\n\
         1979932,14:21:20.5,allocate failure,(nil),99999999999,0x2\n\
         \n\
         1979932,14:21:32:661875,free,0x30a000000,256,0x2\n\
         1979932,14:21:33.0,deallocate,0x30b000000,1024,0\n")
    .unwrap();
    assert_eq!(trace.ops(), [Op::Alloc, Op::Alloc, Op::Free, Op::Free]);
    assert!(trace.sizes().iter().eq([256, 1024, 0, 0]));
    assert_eq!(trace.blocks(), [0, 1, 0, 1]);
    assert!(trace.threads().iter().eq([0, 1, 0, 0]));
    assert!(trace.times().iter().take(2).eq([0, 1_467_000]));
    assert_eq!(trace.align(0), 256);
    assert_eq!(trace.provenance.threads, 2);
}

#[test]
fn lines_that_are_no_events_are_named() {
    assert_eq!(log_error("1,2,allocate,0x1,5\n"), (2, LogError::Fields(5)));
    assert_eq!(
        log_error("1,2,grow,0x1,5,0\n"),
        (2, LogError::Action("grow".to_owned()))
    );
    assert_eq!(
        log_error("\n1,x,allocate,0x1,5,0\n"),
        (3, LogError::Time("x".to_owned()))
    );
    for (line, field) in [
        ("-1,2,allocate,0x1,5,0", "Thread"),
        ("1,2,allocate,0xg,5,0", "Pointer"),
        ("1,2,allocate,0x1,5.5,0", "Size"),
        ("1,2,allocate,0x1,5,?", "Stream"),
    ] {
        let (_, error) = log_error(line);
        assert!(
            matches!(error, LogError::Number { field: found, .. } if found == field),
            "{error}"
        );
    }
    for wrong in [
        "1,2,free,0x1,5,0",
        "1,2,allocate,0x1,5,0\n1,2,allocate,0x1,5,0",
        "1,2,allocate,0x1,99999999999999999,0\n1,2,allocate,0x2,9999999999999999999,0",
    ] {
        assert!(
            matches!(log_error(wrong).1, LogError::Inconsistent(_)),
            "{wrong}"
        );
    }
    let long = "1".repeat(2000);
    assert!(matches!(log_error(&long), (2, LogError::TooLong(_))));
    let headless = import_rmm(&b"1,2,allocate,0x1,5,0\n"[..], Path::new("x"));
    assert!(matches!(
        headless,
        Err(TraceError::Log {
            line: 1,
            cause: LogError::Header,
            ..
        })
    ));
    assert!(matches!(log(""), Err(TraceError::Empty { .. })));
}

#[test]
fn files_are_known_by_how_they_begin() {
    let scratch = Scratch::new();
    let files = [
        ("a", &b"a,1,8\n"[..], Format::Text),
        ("b", SNAPSHOT, Format::PyTorch),
        (
            "c",
            &b"Thread,Time,Action,Pointer,Size,Stream\n1,2,allocate,1,8,0\n"[..],
            Format::Rmm,
        ),
    ];
    for (name, bytes, format) in files {
        let path = scratch.file(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Format::of(bytes), format);
        let found = import_file(&path, None, None).unwrap();
        assert_eq!(found, import_file(&path, Some(format), None).unwrap());
    }
    assert!(import_file(&scratch.file("b"), Some(Format::Text), None).is_err());
    assert!(import_file(&scratch.file("none"), None, None).is_err());
}

proptest! {
    #[test]
    fn any_bytes_give_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = snapshot(&bytes);
        let _ = snapshot(&[&b"\x80\x04"[..], &bytes].concat());
        let _ = import_rmm(&bytes[..], Path::new("x"));
    }

    /// Most damage leaves a pickle; what it means must not break the import.
    #[test]
    fn any_damage_to_a_snapshot_gives_a_trace_or_an_error(
        damage in prop::collection::vec((0..SNAPSHOT.len(), any::<u8>()), 1..8)
    ) {
        let mut bytes = SNAPSHOT.to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        if let Err(error) = snapshot(&bytes) {
            prop_assert!(error.to_string().starts_with("x.pickle"), "{}", error);
        }
    }

    #[test]
    fn any_line_gives_a_trace_or_an_error(line in "[0-9a-zx,.: ]{0,60}") {
        if let Err(error) = log(&line) {
            prop_assert!(error.to_string().starts_with("x.csv"), "{}", error);
        }
    }

    #[test]
    fn a_trace_as_a_log_is_the_same_trace(trace in traces(100)) {
        let mut lines = String::new();
        let mut expected = Vec::new();
        for event in trace.iter() {
            let action = match event.op {
                Op::Alloc => "allocate",
                Op::Free => "free",
                // A log has no other events.
                _ => continue,
            };
            // A pointer may be anything but null.
            let pointer = event.block + 1;
            lines += &format!("7,1.0,{action},{pointer:#x},{},0\n", event.size);
            expected.push((event.op, event.size));
        }
        let Ok(back) = log(&lines) else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let found: Vec<_> = back.iter().map(|event| (event.op, event.size)).collect();
        prop_assert_eq!(found, expected);
    }
}
