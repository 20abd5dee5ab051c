//! Trace files: what is written is read back the same; what is no trace is
//! refused with its reason and place; no bytes make the reader panic.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crate::common::{Scratch, traces};
use metes_trace::{
    Event, Inconsistency, Op, Provenance, Trace, TraceBuilder, TraceError, read_parquet,
    write_parquet,
};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn round_trip(trace in traces(300)) {
        let scratch = Scratch::new();
        let path = scratch.file("a.trace.parquet");
        write_parquet(&trace, &path).unwrap();
        prop_assert_eq!(read_parquet(&path).unwrap(), trace);
    }

    #[test]
    fn damaged_bytes_never_panic(
        trace in traces(200),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let scratch = Scratch::new();
        let path = scratch.file("a.trace.parquet");
        write_parquet(&trace, &path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, &bytes).unwrap();
        // Whatever comes out is a consistent trace or an error with a message.
        if let Err(error) = read_parquet(&path) {
            prop_assert!(error.to_string().contains("a.trace.parquet"));
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let scratch = Scratch::new();
        let path = scratch.file("any");
        fs::write(&path, &bytes).unwrap();
        prop_assert!(read_parquet(&path).is_err());
    }
}

fn small() -> Trace {
    let mut builder = TraceBuilder::new();
    let block = builder.alloc(5, 0, 100, 16).unwrap();
    builder.resize(6, 1, block, 200, 16).unwrap();
    builder.free(7, 1, block).unwrap();
    builder.finish(Provenance::default())
}

#[test]
fn every_truncation_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("a.trace.parquet");
    write_parquet(&small(), &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = read_parquet(&path).unwrap_err();
        let expected = if length == 0 {
            matches!(error, TraceError::Empty { .. })
        } else {
            matches!(error, TraceError::Damaged { .. })
        };
        assert!(expected, "{length}: {error}");
    }
}

#[test]
fn another_version_is_named() {
    let scratch = Scratch::new();
    let path = scratch.file("a.trace.parquet");
    write_parquet(&small(), &path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let key = b"metes.schema_version";
    let at = bytes
        .windows(key.len())
        .position(|window| window == key)
        .unwrap()
        + key.len();
    let digit = at + bytes[at..].iter().position(|&byte| byte == b'1').unwrap();
    bytes[digit] = b'9';
    fs::write(&path, &bytes).unwrap();
    let error = read_parquet(&path).unwrap_err();
    assert!(
        matches!(&error, TraceError::Version { found, .. } if found == "9"),
        "{error}"
    );
}

/// Writes rows as another tool would: nullable columns, in another order.
fn write_foreign(path: &Path, rows: &[(&str, Event)], null: Option<usize>) {
    write_compressed(path, rows, null, Compression::UNCOMPRESSED);
}

fn write_compressed(
    path: &Path,
    rows: &[(&str, Event)],
    null: Option<usize>,
    compression: Compression,
) {
    let schema = "message other {
        OPTIONAL BYTE_ARRAY op (STRING);
        REQUIRED INT64 extra;
        REQUIRED INT64 seq; REQUIRED INT64 time_ns; REQUIRED INT64 thread;
        OPTIONAL INT64 block; REQUIRED INT64 size; REQUIRED INT32 align;
        REQUIRED INT64 reads; REQUIRED INT64 writes; REQUIRED INT64 site;
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(compression);
    let properties = Arc::new(properties.build());
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let names: Vec<_> = rows.iter().map(|row| ByteArray::from(row.0)).collect();
    let levels = vec![1; rows.len()];
    column
        .typed::<ByteArrayType>()
        .write_batch(&names, Some(&levels), None)
        .unwrap();
    column.close().unwrap();
    type Field = fn(&Event) -> u64;
    let before: [Field; 4] = [|_| 7, |e| e.seq, |e| e.time_ns, |e| u64::from(e.thread)];
    for field in before {
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<_> = rows.iter().map(|row| field(&row.1) as i64).collect();
        column
            .typed::<Int64Type>()
            .write_batch(&values, None, None)
            .unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = (0..rows.len())
        .map(|row| i16::from(Some(row) != null))
        .collect();
    let values: Vec<_> = rows
        .iter()
        .enumerate()
        .filter(|(row, _)| Some(*row) != null)
        .map(|(_, row)| row.1.block as i64)
        .collect();
    column
        .typed::<Int64Type>()
        .write_batch(&values, Some(&levels), None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row.1.size as i64).collect();
    column
        .typed::<Int64Type>()
        .write_batch(&sizes, None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let aligns: Vec<_> = rows.iter().map(|row| row.1.align as i32).collect();
    column
        .typed::<Int32Type>()
        .write_batch(&aligns, None, None)
        .unwrap();
    column.close().unwrap();
    let after: [Field; 3] = [|e| e.reads, |e| e.writes, |e| e.site];
    for field in after {
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<_> = rows.iter().map(|row| field(&row.1) as i64).collect();
        column
            .typed::<Int64Type>()
            .write_batch(&values, None, None)
            .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn rows(trace: &Trace) -> Vec<(&'static str, Event)> {
    trace.iter().map(|event| (event.op.name(), event)).collect()
}

#[test]
fn files_rewritten_by_other_tools_are_read() {
    let scratch = Scratch::new();
    let path = scratch.file("other.parquet");
    let trace = small();
    write_foreign(&path, &rows(&trace), None);
    assert_eq!(read_parquet(&path).unwrap(), trace);
}

#[test]
fn what_other_tools_compress_by_is_read_or_named() {
    let scratch = Scratch::new();
    let path = scratch.file("other.parquet");
    let trace = small();
    for codec in [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        write_compressed(&path, &rows(&trace), None, codec);
        assert_eq!(read_parquet(&path).unwrap(), trace, "{codec:?}");
    }
    // The footer says of the first column that it is compressed by Brotli instead of Snappy.
    write_compressed(&path, &rows(&trace), None, Compression::SNAPPY);
    let mut bytes = fs::read(&path).unwrap();
    let said = b"\x19\x18\x02op\x15\x02";
    let place = bytes.windows(said.len()).rposition(|found| found == said);
    bytes[place.unwrap() + said.len() - 1] = 8;
    fs::write(&path, &bytes).unwrap();
    let error = read_parquet(&path).unwrap_err().to_string();
    assert!(
        error.contains("compressed by BROTLI") && error.contains("zstd"),
        "{error}"
    );
}

#[test]
fn impossible_rows_are_named() {
    let scratch = Scratch::new();
    let path = scratch.file("other.parquet");
    let expect = |rows: &[(&str, Event)], null, wanted: &str, row: u64| {
        write_foreign(&path, rows, null);
        let error = read_parquet(&path).unwrap_err();
        assert!(
            matches!(&error, TraceError::Row { row: found, .. } if *found == row),
            "{error}"
        );
        assert!(
            error.to_string().contains(wanted),
            "{error} should say {wanted}"
        );
        assert!(error.to_string().contains("metes trace import"), "{error}");
    };
    let good = rows(&small());
    let change = |row: usize, change: fn(&mut Event)| {
        let mut rows = good.clone();
        change(&mut rows[row].1);
        rows
    };
    expect(
        &change(2, |event| event.block = 4),
        None,
        "never allocated",
        2,
    );
    expect(
        &change(0, |event| event.block = 4),
        None,
        "serial number 0 is due",
        0,
    );
    expect(
        &change(1, |event| event.seq = 9),
        None,
        "sequence number 9",
        1,
    );
    expect(
        &change(1, |event| event.size = u64::MAX),
        None,
        "larger than any object",
        1,
    );
    expect(
        &change(0, |event| event.align = 24),
        None,
        "no power of two",
        0,
    );
    expect(&good, Some(1), "column block", 1);
    let mut unknown = good.clone();
    unknown[1].0 = "shrink";
    expect(&unknown, None, "unknown op \"shrink\"", 1);
    let mut twice = good.clone();
    twice[1].0 = "free";
    expect(&twice, None, "freed a second time", 2);
    let mut live = good.clone();
    live[1].0 = "alloc";
    expect(&live, None, "while it is live", 1);
}

#[test]
fn other_parquet_files_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("fruit.parquet");
    let schema = Arc::new(parse_message_type("message x { REQUIRED INT64 apples; }").unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let writer =
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    writer.close().unwrap();
    let error = read_parquet(&path).unwrap_err();
    assert!(
        error.to_string().contains("column seq is missing"),
        "{error}"
    );
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let scratch = Scratch::new();
    let path = scratch.file("a.trace.parquet");
    write_parquet(&small(), &path).unwrap();
    let error = write_parquet(&small(), &path.join("below")).unwrap_err();
    assert!(
        matches!(
            error,
            TraceError::Io {
                action: "write",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(read_parquet(&path).unwrap(), small());
    assert_eq!(
        fs::read_dir(scratch.path()).unwrap().count(),
        1,
        "no partial file stays"
    );
}

#[test]
fn the_builder_refuses_and_stays_as_it_was() {
    let mut builder = TraceBuilder::new();
    let block = builder.alloc(0, 0, 1, 1).unwrap();
    builder.free(0, 0, block).unwrap();
    assert_eq!(
        builder.resize(0, 0, block, 2, 16),
        Err(Inconsistency::DeadBlock {
            op: Op::Resize,
            block
        })
    );
    assert_eq!(
        builder.free(0, 0, 1),
        Err(Inconsistency::UnknownBlock {
            op: Op::Free,
            block: 1
        })
    );
    assert_eq!(builder.len(), 2);
}
