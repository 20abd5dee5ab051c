//! Small files that would become large: memory in proportion to the file, and time.
//!
//! *Invariant:* no test measures time; what would take the square of a file's length would not end.

use std::io::BufReader;
use std::path::Path;

use metes_peak::{Counting, peak};
use metes_trace::{SnapshotError, TouchReader, TraceError, import_pytorch, read_parquet};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

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

/// A trace of one event whose `op` is so many spaces.
fn spaces(path: &Path, count: usize) {
    let mut schema = "message m { REQUIRED BYTE_ARRAY op (STRING);".to_owned();
    let numbers = [
        "seq", "time_ns", "thread", "block", "size", "align", "reads", "writes", "site",
    ];
    for name in numbers {
        schema += &format!(" REQUIRED INT64 {name};");
    }
    let schema = parse_message_type(&(schema + " }")).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema.into(), properties.into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let name = ByteArray::from(vec![b' '; count]);
    let written = column
        .typed::<ByteArrayType>()
        .write_batch(&[name], None, None);
    assert_eq!(written.unwrap(), 1);
    column.close().unwrap();
    for _ in numbers {
        let mut column = group.next_column().unwrap().unwrap();
        let written = column.typed::<Int64Type>().write_batch(&[1], None, None);
        assert_eq!(written.unwrap(), 1);
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn pages_that_would_become_long_are_not_decompressed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    spaces(&path, 40 << 20);
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 16);
    let (read, bytes) = peak(|| read_parquet(&path));
    assert!(
        matches!(read, Err(TraceError::LongPage { bytes, .. }) if bytes > 40 << 20),
        "{read:?}"
    );
    assert!(bytes < 1 << 20, "{bytes}");
    // A page of a usual length is decompressed, and told for what it holds.
    spaces(&path, 40 << 10);
    let read = read_parquet(&path);
    assert!(matches!(read, Err(TraceError::Row { .. })), "{read:?}");
}

#[test]
fn dictionaries_that_claim_very_many_values_are_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    let trace = metes_trace::import_csv(&b"a,1,64\na,2,64\nf,1\nf,2\n"[..], Path::new("x.csv"));
    metes_trace::write_parquet(&trace.unwrap(), &path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // In the header of a dictionary 4c is its structure, 15 a number of 32 bits, here how many values there are.
    // The last one, as offsets in the file are from its beginning.
    let is_count = |at: &usize| bytes[*at..].starts_with(&[0x4c, 0x15]) && bytes[at + 2] <= 8;
    let at = (0..bytes.len() - 8).rfind(is_count).expect("a dictionary");
    bytes.splice(at + 2..at + 3, [0xf0, 0xff, 0xff, 0xff, 0x03]);
    std::fs::write(&path, &bytes).unwrap();
    let (read, taken) = peak(|| read_parquet(&path));
    assert!(read.is_err());
    assert!(taken < 1 << 20, "{taken}");
}

/// A line without an end, and blocks that come and go.
#[test]
fn touch_traces_take_memory_for_the_live_blocks() {
    let endless = BufReader::new(std::io::repeat(b'1'));
    let mut reader = TouchReader::new(endless, Path::new("x.touches"));
    let error = reader.next().expect("an error").expect_err("no operation");
    assert!(error.to_string().contains("longer than"), "{error}");
    let churn: String = (0..100_000)
        .map(|block| format!("a,{block},8\nw,{block},7\nf,{block}\n"))
        .collect();
    let (count, bytes) =
        peak(|| TouchReader::new(churn.as_bytes(), Path::new("x.touches")).count());
    assert_eq!(count, 300_000);
    assert!(bytes < 1 << 14, "{bytes} bytes");
}
