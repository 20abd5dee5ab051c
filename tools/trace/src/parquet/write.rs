//! Writing a trace file.
//!
//! Invariant: the file appears whole or not at all: it is written under another
//! name beside its place and renamed at the end.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{
    SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::dictionary::{self, Encoded};
use super::{GROUP_ROWS, PROVENANCE_KEY, SCHEMA_VERSION, STACKS_KEY, VERSION_KEY};
use crate::blocks::Numbered;
use crate::error::TraceError;
use crate::event::{Event, Op};
use crate::stacks::{self, Stacks};
use crate::trace::{Provenance, Trace};
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

/// Level of the compression: 9 makes files a twentieth to a tenth smaller, and takes half as long again, which is
/// what a recording costs beside the program.
pub(super) const LEVEL: i32 = 3;

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

fn properties() -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("metes ", env!("CARGO_PKG_VERSION")).to_owned())
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
    let mut writer = TraceWriter::with_rows(file, GROUP_ROWS.min(trace.len()))?;
    for event in trace.iter() {
        writer.push(&event)?;
    }
    writer.finish(&trace.provenance, &trace.stacks)
}

/// Most bytes of a row in a file where no two columns agree; most take two.
const BYTES_OF_ROW: u64 = 16;

/// Writes a trace event by event, in memory that does not grow with it.
pub(crate) struct TraceWriter {
    writer: SerializedFileWriter<BufWriter<File>>,
    rows: Rows,
    /// Rows of a group.
    most: usize,
    /// Events in the groups before.
    before: u64,
    same: SameColumns,
}

impl TraceWriter {
    /// A trace to be written to `file`, with groups of `most` rows.
    pub(crate) fn with_rows(file: File, most: usize) -> Result<TraceWriter> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = Arc::new(properties()?);
        let (buffer, known) = (BufWriter::new(file), Arc::clone(&properties));
        let writer = SerializedFileWriter::new(buffer, Arc::clone(&schema), properties)?;
        Ok(TraceWriter {
            same: SameColumns {
                properties: known,
                schema: SchemaDescriptor::new(Arc::clone(&schema)),
                encoded: Vec::new(),
            },
            writer,
            rows: Rows::default(),
            most: most.max(1),
            before: 0,
        })
    }

    /// Whether the next event ends a group, which is then written.
    pub(crate) fn is_group_full(&self) -> bool {
        self.rows.ops.len() + 1 >= self.most
    }

    /// Bytes that a group may take: what its rows are, not compressed.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.most as u64 * BYTES_OF_ROW
    }

    /// Forgets the events that are not written yet; how many they were.
    pub(crate) fn forget(&mut self) -> u64 {
        let events = self.rows.ops.len() as u64;
        self.rows.clear();
        events
    }

    /// Bytes in the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Adds the next event; its place in the order is the number of those before it.
    pub(crate) fn push(&mut self, event: &Event) -> Result<()> {
        self.rows.push(event);
        if self.rows.ops.len() >= self.most {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what there is as a group.
    fn write_group(&mut self) -> Result<()> {
        if self.rows.ops.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        write_group(&self.rows, self.before, &mut self.same, &mut group)?;
        group.close()?;
        self.before += self.rows.ops.len() as u64;
        self.rows.clear();
        Ok(())
    }

    /// Ends the trace, of which more is known now.
    pub(crate) fn finish(mut self, provenance: &Provenance, stacks: &Stacks) -> Result<()> {
        self.write_group()?;
        let provenance = serde_json::to_string(provenance)
            .map_err(|error| ParquetError::General(error.to_string()))?;
        let mut add = |key: &str, value: String| {
            let value = KeyValue::new(key.to_owned(), value);
            self.writer.append_key_value_metadata(value);
        };
        add(VERSION_KEY, SCHEMA_VERSION.to_string());
        add(PROVENANCE_KEY, provenance);
        if !stacks.is_empty() {
            let stacks = stacks::encode(stacks);
            let stacks =
                stacks.ok_or_else(|| ParquetError::General("too many call stacks".into()))?;
            add(STACKS_KEY, stacks);
        }
        let file = self.writer.into_inner()?;
        file.into_inner()
            .map_err(|error| ParquetError::from(error.into_error()))?;
        Ok(())
    }
}

/// Rows that are not written yet, by columns; but for `seq`, which counts.
#[derive(Default)]
struct Rows {
    // Parquet keeps unsigned numbers as the signed ones of the same bits.
    times: Vec<i64>,
    threads: Vec<i32>,
    ops: Vec<Op>,
    blocks: Vec<i64>,
    sizes: Vec<i64>,
    aligns: Vec<i32>,
    /// Reads, writes, site, bytes read, bytes written: none while all are zero.
    rare: [Vec<i64>; 5],
}

impl Rows {
    fn push(&mut self, event: &Event) {
        let rows = self.ops.len();
        let rare = [
            event.reads,
            event.writes,
            event.site,
            event.read_bytes,
            event.write_bytes,
        ];
        for (column, value) in self.rare.iter_mut().zip(rare) {
            if !column.is_empty() {
                column.push(value as i64);
            } else if value != 0 {
                column.resize(rows, 0);
                column.push(value as i64);
            }
        }
        self.times.push(event.time_ns as i64);
        self.threads.push(event.thread as i32);
        self.ops.push(event.op);
        self.blocks.push(event.block as i64);
        self.sizes.push(event.size as i64);
        self.aligns.push(event.align as i32);
    }

    fn clear(&mut self) {
        self.times.clear();
        self.threads.clear();
        self.ops.clear();
        self.blocks.clear();
        self.sizes.clear();
        self.aligns.clear();
        self.rare.iter_mut().for_each(Vec::clear);
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn write_group(
    rows: &Rows,
    before: u64,
    same: &mut SameColumns,
    group: &mut Group<'_>,
) -> Result<()> {
    let count = rows.ops.len();
    longs(group, (before as i64..).take(count))?;
    longs(group, rows.times.iter().copied())?;
    let threads = || rows.threads.iter().map(|&thread| i64::from(thread));
    if !few(&same.schema, group, THREAD, threads(), i32_bytes)? {
        ints(group, rows.threads.iter().copied())?;
    }
    names(&same.schema, group, &rows.ops)?;
    longs(group, rows.blocks.iter().copied())?;
    if !few(
        &same.schema,
        group,
        SIZE,
        rows.sizes.iter().copied(),
        i64_bytes,
    )? {
        longs(group, rows.sizes.iter().copied())?;
    }
    let aligns = || rows.aligns.iter().map(|&align| i64::from(align));
    if !few(&same.schema, group, ALIGN, aligns(), i32_bytes)? {
        ints(group, rows.aligns.iter().copied())?;
    }
    for (number, column) in (FIRST_RARE..).zip(&rows.rare) {
        match column.is_empty() {
            true => same.write_zeros(group, number, count)?,
            false => longs(group, column.iter().copied())?,
        }
    }
    Ok(())
}

/// Columns that are zero throughout a group, encoded once: a light recording has five.
struct SameColumns {
    properties: WriterPropertiesPtr,
    schema: SchemaDescriptor,
    encoded: Vec<Same>,
}

/// A column of zeros.
struct Same {
    column: usize,
    rows: usize,
    bytes: Bytes,
    result: ColumnCloseResult,
}

/// Columns that are kept encoded.
const MOST_SAME: usize = 32;

/// Places of columns.
const THREAD: usize = 2;
const OP: usize = 3;
const SIZE: usize = 5;
const ALIGN: usize = 6;
/// The first of the columns that are mostly zero.
const FIRST_RARE: usize = 7;

impl SameColumns {
    /// Writes the group's next column, number `column`: `rows` zeros.
    fn write_zeros(&mut self, group: &mut Group<'_>, column: usize, rows: usize) -> Result<()> {
        let known = self
            .encoded
            .iter()
            .position(|same| (same.column, same.rows) == (column, rows));
        let known = match known {
            Some(known) => known,
            None => {
                if self.encoded.len() >= MOST_SAME {
                    self.encoded.clear();
                }
                let same = self.encode(column, rows)?;
                self.encoded.push(same);
                self.encoded.len() - 1
            }
        };
        let Same { bytes, result, .. } = &self.encoded[known];
        group.append_column(bytes, result.clone())
    }

    fn encode(&self, column: usize, rows: usize) -> Result<Same> {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let description = self.schema.column(column);
        let writer = get_column_writer(description, Arc::clone(&self.properties), pages);
        let mut writer = get_typed_column_writer::<Int64Type>(writer);
        writer.write_batch(&vec![0; rows], None, None)?;
        let result = writer.close()?;
        Ok(Same {
            column,
            rows,
            bytes: sink.into_inner()?.into(),
            result,
        })
    }
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

fn names(schema: &SchemaDescriptor, group: &mut Group<'_>, ops: &[Op]) -> Result<()> {
    let ordered = [Op::Alloc, Op::Free, Op::Resize, Op::Access];
    let mut dictionary = Vec::new();
    for name in ordered.map(Op::name) {
        dictionary.extend((name.len() as u32).to_le_bytes());
        dictionary.extend(name.as_bytes());
    }
    let places: Vec<u16> = ops.iter().map(|&op| op as u16).collect();
    let Encoded { bytes, result } =
        dictionary::encode(&schema.column(OP), dictionary, ordered.len(), &places)?;
    group.append_column(&bytes, result)
}

fn i32_bytes(value: i64, bytes: &mut Vec<u8>) {
    bytes.extend((value as i32).to_le_bytes());
}

fn i64_bytes(value: i64, bytes: &mut Vec<u8>) {
    bytes.extend(value.to_le_bytes());
}

/// Writes the group's next column, number `column`, if it has few different values; whether it has.
fn few(
    schema: &SchemaDescriptor,
    group: &mut Group<'_>,
    column: usize,
    values: impl Iterator<Item = i64>,
    plain: fn(i64, &mut Vec<u8>),
) -> Result<bool> {
    let mut known: Numbered<u16> = Numbered::default();
    let (mut dictionary, mut places) = (Vec::new(), Vec::with_capacity(values.size_hint().0));
    let mut last = None;
    for value in values {
        if let Some((before, place)) = last
            && before == value
        {
            places.push(place);
            continue;
        }
        let next = known.len();
        // The table hashes what stands above the low bits of an address.
        let place = *known
            .entry((value as u64).rotate_left(4))
            .or_insert(next as u16);
        if known.len() > next {
            if next >= dictionary::MOST_VALUES {
                return Ok(false);
            }
            plain(value, &mut dictionary);
        }
        last = Some((value, place));
        places.push(place);
    }
    let description = schema.column(column);
    let Encoded { bytes, result } =
        dictionary::encode(&description, dictionary, known.len(), &places)?;
    group.append_column(&bytes, result)?;
    Ok(true)
}
