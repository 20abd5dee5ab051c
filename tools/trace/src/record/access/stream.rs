//! Every access of a run, as a Parquet file beside the trace: one row an access
//! to a block, in their order, zstd.
//!
//! | column | |
//! | --- | --- |
//! | `event` | rows of the trace that came before |
//! | `block` | serial number of the block |
//! | `offset` | first byte, from the beginning of the block |
//! | `page` | page of 4096 bytes that it lies in, as the program saw it |
//! | `bytes` | bytes of the block that it touches |
//! | `write` | 1 if it writes |
//!
//! Accesses outside live blocks (stack, globals, the allocator's own) are not
//! in it. One of more words than one is one row.
//!
//! Invariant: memory is bounded by a row group and the live blocks.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::map::{Map, Step};
use super::raw::Records;
use crate::error::TraceError;

const SCHEMA: &str = "message accesses {
    REQUIRED INT64 event (INTEGER(64,false));
    REQUIRED INT64 block (INTEGER(64,false));
    REQUIRED INT64 offset (INTEGER(64,false));
    REQUIRED INT64 page (INTEGER(64,false));
    REQUIRED INT32 bytes (INTEGER(32,false));
    REQUIRED INT32 write (INTEGER(32,false));
}";
const COLUMNS: [&str; 6] = ["event", "block", "offset", "page", "bytes", "write"];
/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// One access of the program to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Rows of the trace that came before.
    pub event: u64,
    /// Serial number of the block.
    pub block: u64,
    /// First byte, from the beginning of the block.
    pub offset: u64,
    /// Page of 4096 bytes, as the program saw it: its address over 4096.
    pub page: u64,
    /// Bytes of the block that it touches.
    pub bytes: u32,
    /// It writes; else it reads.
    pub write: bool,
}

/// Writes the accesses in the plug-in's file `events` to `path`; their number.
pub(super) fn write(events: &Path, path: &Path, word: u32) -> std::result::Result<u64, TraceError> {
    let io_error = |action: &'static str, path: &Path, source| TraceError::Io {
        action,
        path: path.to_owned(),
        source,
    };
    let input = File::open(events).map_err(|source| io_error("read", events, source))?;
    let output = File::create(path).map_err(|source| io_error("write", path, source))?;
    write_to(Records::new(input), output, word)
        .map_err(|error| io_error("write", path, io::Error::other(error)))
}

fn write_to(records: Records, output: File, word: u32) -> Result<u64> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("metes ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "metes.access_word".to_owned(),
            word.to_string(),
        )]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
    // Near-counters; the others repeat, and take a dictionary.
    for name in ["event", "block"] {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(BufWriter::new(output), schema, properties)?;
    let mut map = Map::default();
    let mut rows: Vec<Access> = Vec::new();
    let mut written = 0;
    for record in records {
        if let Some(Step::Access(access)) = map.follow(&record) {
            rows.push(access);
        }
        if rows.len() == GROUP_ROWS {
            written += write_group(&mut writer, &rows)?;
            rows.clear();
        }
    }
    written += write_group(&mut writer, &rows)?;
    writer
        .into_inner()?
        .into_inner()
        .map_err(|error| ParquetError::from(error.into_error()))?;
    Ok(written)
}

fn write_group(writer: &mut SerializedFileWriter<BufWriter<File>>, rows: &[Access]) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut group = writer.next_row_group()?;
    for name in COLUMNS {
        let mut column = group
            .next_column()?
            .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
        let number = |access: &Access| match name {
            "event" => access.event,
            "block" => access.block,
            "offset" => access.offset,
            "page" => access.page,
            "bytes" => u64::from(access.bytes),
            _ => u64::from(access.write),
        };
        // Parquet keeps unsigned numbers as the signed ones of the same bits.
        if matches!(name, "bytes" | "write") {
            let values: Vec<i32> = rows.iter().map(|access| number(access) as i32).collect();
            column
                .typed::<Int32Type>()
                .write_batch(&values, None, None)?;
        } else {
            let values: Vec<i64> = rows.iter().map(|access| number(access) as i64).collect();
            column
                .typed::<Int64Type>()
                .write_batch(&values, None, None)?;
        }
        column.close()?;
    }
    group.close()?;
    Ok(rows.len() as u64)
}

/// Reads the accesses in file `path`, and gives each to `each`, in order; their
/// number. O(accesses).
///
/// # Errors
/// [`TraceError::Io`], [`TraceError::Damaged`], [`TraceError::Foreign`] if the
/// file is no such stream.
pub fn read_accesses(
    path: &Path,
    mut each: impl FnMut(Access),
) -> std::result::Result<u64, TraceError> {
    let file = File::open(path).map_err(|source| TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let damaged = |error: ParquetError| TraceError::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    if names != COLUMNS {
        return Err(TraceError::Foreign {
            path: path.to_owned(),
            reason: format!("every access has the columns {}", COLUMNS.join(", ")),
        });
    }
    let mut read = 0;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(damaged)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut columns: [Vec<u64>; COLUMNS.len()] = Default::default();
        for (index, values) in columns.iter_mut().enumerate() {
            let column = group.get_column_reader(index).map_err(damaged)?;
            *values = numbers(column, rows).map_err(damaged)?;
        }
        for (row, &event) in columns[0].iter().enumerate() {
            each(Access {
                event,
                block: columns[1][row],
                offset: columns[2][row],
                page: columns[3][row],
                bytes: columns[4][row] as u32,
                write: columns[5][row] != 0,
            });
        }
        read += rows as u64;
    }
    Ok(read)
}

/// All `rows` numbers of a column.
fn numbers(column: ColumnReader, rows: usize) -> Result<Vec<u64>> {
    let mut long = Vec::new();
    let mut short = Vec::new();
    let mut read = 0;
    let (mut longs, mut shorts) = match column {
        ColumnReader::Int64ColumnReader(reader) => (Some(reader), None),
        ColumnReader::Int32ColumnReader(reader) => (None, Some(reader)),
        _ => {
            return Err(ParquetError::General(
                "a column has another type".to_owned(),
            ));
        }
    };
    while read < rows {
        let (more, ..) = match (&mut longs, &mut shorts) {
            (Some(reader), _) => reader.read_records(rows - read, None, None, &mut long)?,
            (_, Some(reader)) => reader.read_records(rows - read, None, None, &mut short)?,
            _ => (0, 0, 0),
        };
        if more == 0 {
            return Err(ParquetError::General("rows are missing".to_owned()));
        }
        read += more;
    }
    let short = short.into_iter().map(|value: i32| u64::from(value as u32));
    Ok(long
        .into_iter()
        .map(|value| value as u64)
        .chain(short)
        .collect())
}
