//! Writing a trace file.
//!
//! Invariant: the file appears whole or not at all: it is written under another
//! name beside its place and renamed at the end.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{GROUP_ROWS, PROVENANCE_KEY, SCHEMA_VERSION, STACKS_KEY, VERSION_KEY};
use crate::error::TraceError;
use crate::event::{Event, Op};
use crate::numbers::Numbers;
use crate::stacks;
use crate::trace::Trace;
use crate::whole;

/// The schema, in the order of the columns.
const SCHEMA: &str = "message trace {
    REQUIRED INT64 seq (INTEGER(64,false));
    REQUIRED INT64 time_ns (INTEGER(64,false));
    REQUIRED INT32 thread (INTEGER(32,false));
    REQUIRED BYTE_ARRAY op (STRING);
    REQUIRED INT64 block (INTEGER(64,false));
    REQUIRED INT64 size (INTEGER(64,false));
    REQUIRED INT32 align (INTEGER(32,false));
    REQUIRED INT64 reads (INTEGER(64,false));
    REQUIRED INT64 writes (INTEGER(64,false));
    REQUIRED INT64 site (INTEGER(64,false));
    REQUIRED INT64 read_bytes (INTEGER(64,false));
    REQUIRED INT64 write_bytes (INTEGER(64,false));
}";

/// Level of the compression: a tenth smaller than the usual 3, and still faster
/// than most programs make events.
const LEVEL: i32 = 9;

/// Writes `trace` to the file `path`, replacing it. O(events).
///
/// # Errors
/// [`TraceError::Io`] if the file cannot be written; what was at `path` before
/// is untouched then.
pub fn write_parquet(trace: &Trace, path: &Path) -> std::result::Result<(), TraceError> {
    let io_error = |source| TraceError::Io {
        action: "write",
        path: path.to_owned(),
        source,
    };
    whole::replace(path, |part| {
        write_to(trace, File::create(part)?).map_err(into_io)
    })
    .map_err(io_error)
}

fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

fn properties(trace: &Trace) -> Result<WriterProperties> {
    let provenance = serde_json::to_string(&trace.provenance)
        .map_err(|error| ParquetError::General(error.to_string()))?;
    let mut metadata = vec![
        KeyValue::new(VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string()),
        KeyValue::new(PROVENANCE_KEY.to_owned(), provenance),
    ];
    if !trace.stacks.is_empty() {
        let stacks = stacks::encode(&trace.stacks);
        let stacks = stacks.ok_or_else(|| ParquetError::General("too many call stacks".into()))?;
        metadata.push(KeyValue::new(STACKS_KEY.to_owned(), stacks));
    }
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("metes ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(metadata))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(true);
    // Counters and near-counters: their differences are small.
    for name in ["seq", "time_ns", "block"] {
        let column = ColumnPath::from(name);
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(builder.build())
}

fn write_to(trace: &Trace, file: File) -> Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(properties(trace)?);
    let mut writer = SerializedFileWriter::new(BufWriter::new(file), schema, properties)?;
    let mut start = 0;
    while start < trace.len() {
        let end = trace.len().min(start + GROUP_ROWS);
        let mut group = writer.next_row_group()?;
        write_group(trace, start..end, &mut group)?;
        group.close()?;
        start = end;
    }
    let file = writer.into_inner()?;
    file.into_inner()
        .map_err(|error| ParquetError::from(error.into_error()))?;
    Ok(())
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn write_group(trace: &Trace, rows: Range<usize>, group: &mut Group<'_>) -> Result<()> {
    // Parquet keeps unsigned numbers as the signed ones of the same bits.
    longs(group, rows.clone().map(|row| row as i64))?;
    let number = |column: &Numbers, row| column.get(row).unwrap_or_default();
    longs(
        group,
        rows.clone().map(|row| number(trace.times(), row) as i64),
    )?;
    ints(
        group,
        rows.clone().map(|row| number(trace.threads(), row) as i32),
    )?;
    names(group, &trace.ops()[rows.clone()])?;
    longs(
        group,
        trace.blocks()[rows.clone()]
            .iter()
            .map(|&block| i64::from(block)),
    )?;
    longs(
        group,
        rows.clone().map(|row| number(trace.sizes(), row) as i64),
    )?;
    ints(group, rows.clone().map(|row| trace.align(row) as i32))?;
    for field in [
        |event: Event| event.reads,
        |event: Event| event.writes,
        |event: Event| event.site,
        |event: Event| event.read_bytes,
        |event: Event| event.write_bytes,
    ] {
        let value = |row| trace.event(row).map_or(0, field) as i64;
        longs(group, rows.clone().map(value))?;
    }
    Ok(())
}

/// Values handed over at a time.
const BATCH: usize = 1 << 16;

macro_rules! write_column {
    ($group:expr, $kind:ty, $values:expr) => {{
        let mut column = $group
            .next_column()?
            .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
        let values = $values;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.clear();
            batch.extend(values.by_ref().take(BATCH));
            if batch.is_empty() {
                break;
            }
            column.typed::<$kind>().write_batch(&batch, None, None)?;
        }
        column.close()
    }};
}

fn longs(group: &mut Group<'_>, mut values: impl Iterator<Item = i64>) -> Result<()> {
    write_column!(group, Int64Type, &mut values)
}

fn ints(group: &mut Group<'_>, mut values: impl Iterator<Item = i32>) -> Result<()> {
    write_column!(group, Int32Type, &mut values)
}

fn names(group: &mut Group<'_>, ops: &[Op]) -> Result<()> {
    let names: Vec<ByteArray> = [Op::Alloc, Op::Free, Op::Resize, Op::Access]
        .map(|op| ByteArray::from(op.name()))
        .into();
    let mut values = ops.iter().map(|&op| names[op as usize].clone());
    write_column!(group, ByteArrayType, &mut values)
}
