//! Small files that would become large: memory in proportion to the file, and time.
//!
//! *Invariant:* no test measures time; what would take the square of a file's length would not end.

use std::path::Path;

use metes_peak::{Counting, peak};
use metes_trace::{SnapshotError, TraceError, import_pytorch};

#[global_allocator]
static COUNTED: Counting = Counting;

/// Bytes of memory for a byte of a pickle, as documented.
const BYTES: usize = 256;

fn imported(pickle: &[u8]) -> Result<usize, TraceError> {
    let (trace, bytes) = peak(|| import_pytorch(pickle, Path::new("x.pickle"), None));
    assert!(
        bytes <= BYTES * pickle.len() + (1 << 16),
        "{bytes} bytes of {}",
        pickle.len()
    );
    trace.map(|trace| trace.len())
}

fn text(text: &str) -> Vec<u8> {
    [
        b"X",
        &(text.len() as u32).to_le_bytes()[..],
        text.as_bytes(),
    ]
    .concat()
}

/// `{key: value, …}` of what makes the values.
fn dict(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries = entries
        .iter()
        .flat_map(|(key, value)| [text(key), value.to_vec()].concat());
    [b"}(".to_vec(), entries.collect(), b"u".to_vec()].concat()
}

/// A list of the same value, which was remembered as the first, so many times.
fn again(value: &[u8], count: usize) -> Vec<u8> {
    // Protocol 4 remembers by 0x94, recalls by h.
    [b"](", value, b"\x94", &b"h\0".repeat(count - 1), b"e"].concat()
}

fn event(action: &str, junk: usize) -> Vec<u8> {
    let junk = [text("junk"), b"N".to_vec()].concat().repeat(junk);
    let entry = dict(&[
        ("action", &text(action)),
        ("addr", b"K\x07"),
        ("size", b"K\x40"),
    ]);
    [&entry[..2], &junk, &entry[2..]].concat()
}

fn snapshot(history: &[u8], segments: &[u8]) -> Vec<u8> {
    let root = dict(&[
        ("device_traces", &[b"](", history, b"e"].concat()),
        ("segments", segments),
    ]);
    [b"\x80\x04", &root[..], b"."].concat()
}

#[test]
fn segments_that_share_their_blocks_are_refused() {
    let block = dict(&[
        ("state", &text("active")),
        ("size", b"K\x40"),
        ("address", b"K\x07"),
    ]);
    let blocks = [b"](".to_vec(), block.repeat(20_000), b"e".to_vec()].concat();
    let segment = dict(&[("blocks", &blocks), ("device", b"K\0")]);
    let history = [b"](".to_vec(), event("alloc", 0), b"e".to_vec()].concat();
    let shared = imported(&snapshot(&history, &again(&segment, 20_000)));
    assert!(
        matches!(
            &shared,
            Err(TraceError::Snapshot {
                cause: SnapshotError::Shared { segment: 1 },
                ..
            })
        ),
        "{shared:?}"
    );
    assert_eq!(
        imported(&snapshot(&history, &again(&segment, 1))).ok(),
        Some(1)
    );
}

#[test]
fn an_entry_that_is_shared_is_looked_through_once() {
    // Of 100 000 entries, 100 000 times: 10^10 keys, were each looked at.
    let history = again(&event("snapshot", 100_000), 100_000);
    assert!(matches!(
        imported(&snapshot(&history, b"]")),
        Err(TraceError::Empty { .. })
    ));
}

#[test]
fn values_of_one_byte_take_no_more_than_is_documented() {
    for value in [&b"N"[..], b"]", b"}", b")", b"2", b"(", b"\x94"] {
        let pickle = [b"\x80\x04N", &value.repeat(1 << 20)[..], b"."].concat();
        let _ = imported(&pickle);
    }
    // Each device that has a history is named, but not all of them in one line.
    let devices = [b"](".to_vec(), event("alloc", 0), b"e".to_vec()]
        .concat()
        .repeat(1_000);
    let error = imported(&snapshot(&devices, b"]")).unwrap_err().to_string();
    assert!(
        error.contains("1000 in all") && error.len() < 300,
        "{error}"
    );
}
