//! Reading a trace file.
//!
//! Invariant: nothing in the file is believed. Columns are checked by name and
//! type, every event by [`TraceBuilder`], and room is taken for what was
//! decoded, not for what the file claims to hold: pages that claim more than
//! [`MOST_PAGE`] are not decompressed. A small file holds no more events
//! than [`MOST_EVENTS`], unless that is asked for.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::basic::{Compression, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::pages::{MOST_PAGE, page_beyond};
use super::{PROVENANCE_KEY, SCHEMA_VERSION, STACKS_KEY, VERSION_KEY};
use crate::caught::caught;
use crate::error::{RowError, TraceError};
use crate::event::{Event, Op};
use crate::stacks::{self, Stacks};
use crate::trace::{Provenance, Trace, TraceBuilder};

/// The columns: those of numbers in the order of [`Cell::numbers`], `op` last.
const NUMBERS: [&str; 11] = [
    "seq",
    "time_ns",
    "thread",
    "block",
    "size",
    "align",
    "reads",
    "writes",
    "site",
    "read_bytes",
    "write_bytes",
];
/// Columns that a file may lack: traces made before there were such.
const LATER: [&str; 2] = ["read_bytes", "write_bytes"];
/// Columns whose numbers must fit 32 bits.
const NARROW: [&str; 2] = ["thread", "align"];
/// Events that a file of any length may hold: about a gigabyte, when replayed.
pub const MOST_EVENTS: u64 = 6_000_000;
/// Events that it may hold for each byte of it: recordings take some bytes an event.
const EVENTS_A_BYTE: u64 = 4;
/// The variable of the environment that says how many events a file may hold.
pub const MOST_EVENTS_VARIABLE: &str = "METES_MOST_EVENTS";

/// Rows decoded at a time.
const BATCH: usize = 1 << 14;

/// Reads the trace in file `path`. Columns may stand in any order, be nullable
/// and have others beside them, as other tools write them, compressed by Zstandard,
/// Snappy, gzip or LZ4. O(events), mostly in 14 bytes an event, 18 if any has a site, 32 more if any
/// has reads or writes.
///
/// A file of more than [`MOST_EVENTS`] and of less than a quarter of a byte for each is refused: so regular
/// is hardly a program, and memory is taken by the event. What [`MOST_EVENTS_VARIABLE`] says in the
/// environment is read all the same.
///
/// # Errors
/// Each variant of [`TraceError`] but [`TraceError::Line`]; row numbers count
/// from 0.
pub fn read_parquet(path: &Path) -> Result<Trace, TraceError> {
    let file = File::open(path).map_err(|source| TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    // The decoder of a foreign crate meets bytes of unknown origin: should it
    // panic on them, the file is damaged, and that is all there is to say.
    caught(|| read(file, path))
        .unwrap_or_else(|| Err(damaged(path, "its pages contradict each other")))
}

fn damaged(path: &Path, reason: impl ToString) -> TraceError {
    let reason = reason.to_string();
    let reason = reason
        .strip_prefix("Parquet error: ")
        .unwrap_or(&reason)
        .to_owned();
    TraceError::Damaged {
        path: path.to_owned(),
        reason,
    }
}

fn read(file: File, path: &Path) -> Result<Trace, TraceError> {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    if bytes == 0 {
        return Err(TraceError::Empty {
            path: path.to_owned(),
        });
    }
    let own = file.try_clone();
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(path, error))?;
    let columns = columns(&reader, path)?;
    readable(&reader, &columns, path)?;
    plausible(&reader, bytes, path)?;
    small_pages(own, &reader, &columns, path)?;
    let provenance = provenance(&reader, path)?;
    let mut builder = TraceBuilder::new();
    for group in 0..reader.num_row_groups() {
        let group = reader
            .get_row_group(group)
            .map_err(|error| damaged(path, error))?;
        read_group(&*group, &columns, &mut builder, path)?;
    }
    if builder.is_empty() {
        return Err(TraceError::Empty {
            path: path.to_owned(),
        });
    }
    let mut trace = builder.finish(provenance);
    trace.stacks = stacks(&reader, path)?;
    Ok(trace)
}

/// That the file holds no more events than its bytes may.
fn plausible(
    reader: &SerializedFileReader<File>,
    bytes: u64,
    path: &Path,
) -> Result<(), TraceError> {
    let most = most_events(bytes, std::env::var(MOST_EVENTS_VARIABLE).ok().as_deref());
    let groups = reader.metadata().row_groups().iter();
    let events = groups.fold(0_u64, |sum, group| {
        sum.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX))
    });
    match events > most {
        true => Err(TraceError::TooManyEvents {
            path: path.to_owned(),
            bytes,
            events,
            most,
        }),
        false => Ok(()),
    }
}

/// That no page of the columns is longer than what is decompressed.
fn small_pages(
    file: io::Result<File>,
    reader: &SerializedFileReader<File>,
    columns: &Columns,
    path: &Path,
) -> Result<(), TraceError> {
    let places = columns.numbers.iter().flatten().chain([&columns.op]);
    let chunks = places.flat_map(|place| {
        let groups = reader.metadata().row_groups().iter();
        groups.filter_map(|group| Some(group.columns().get(*place)?.byte_range()))
    });
    match file.and_then(|file| page_beyond(&file, chunks)) {
        Ok(None) => Ok(()),
        Ok(Some(bytes)) => Err(TraceError::LongPage {
            path: path.to_owned(),
            bytes,
            most: MOST_PAGE,
        }),
        Err(error) => Err(damaged(path, error)),
    }
}

/// How many events a file of so many bytes may hold, by what is asked for if that is a number.
fn most_events(bytes: u64, asked: Option<&str>) -> u64 {
    let asked = asked.and_then(|most| most.trim().parse().ok());
    asked.unwrap_or(MOST_EVENTS.max(bytes.saturating_mul(EVENTS_A_BYTE)))
}

/// That the columns are compressed by a method that is known here.
fn readable(
    reader: &SerializedFileReader<File>,
    columns: &Columns,
    path: &Path,
) -> Result<(), TraceError> {
    let places = columns.numbers.iter().flatten().chain([&columns.op]);
    for place in places {
        for group in reader.metadata().row_groups() {
            let codec = group
                .columns()
                .get(*place)
                .map(|column| column.compression());
            if let Some(codec @ (Compression::BROTLI(_) | Compression::LZO)) = codec {
                let codec = format!("{codec:?}");
                return Err(TraceError::Codec {
                    path: path.to_owned(),
                    codec: codec.split('(').next().unwrap_or_default().to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Where the columns stand in the file.
struct Columns {
    numbers: [Option<usize>; NUMBERS.len()],
    op: usize,
}

fn columns(reader: &SerializedFileReader<File>, path: &Path) -> Result<Columns, TraceError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let foreign = |reason| TraceError::Foreign {
        path: path.to_owned(),
        reason,
    };
    let find = |name: &str, kinds: &[Physical]| {
        let found = schema
            .columns()
            .iter()
            .position(|column| column.path().string() == name);
        let index = found.ok_or_else(|| foreign(format!("column {name} is missing")))?;
        let column = schema.column(index);
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(foreign(format!("column {name} is nested")));
        }
        if !kinds.contains(&column.physical_type()) {
            return Err(foreign(format!(
                "column {name} is of type {}",
                column.physical_type()
            )));
        }
        Ok(index)
    };
    let mut numbers = [None; NUMBERS.len()];
    for (place, name) in numbers.iter_mut().zip(NUMBERS) {
        let there = |column: &parquet::schema::types::ColumnDescPtr| column.path().string() == name;
        if LATER.contains(&name) && !schema.columns().iter().any(there) {
            continue;
        }
        *place = Some(find(name, &[Physical::INT64, Physical::INT32])?);
    }
    Ok(Columns {
        numbers,
        op: find("op", &[Physical::BYTE_ARRAY])?,
    })
}

/// What the description of the file says under a key.
fn described<'a>(reader: &'a SerializedFileReader<File>, key: &str) -> Option<&'a str> {
    let pairs = reader.metadata().file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

/// The call stacks; none where none were recorded.
fn stacks(reader: &SerializedFileReader<File>, path: &Path) -> Result<Stacks, TraceError> {
    match described(reader, STACKS_KEY) {
        None => Ok(Stacks::default()),
        Some(text) => stacks::decode(text)
            .map_err(|error| damaged(path, format!("its call stacks cannot be read: {error}"))),
    }
}

fn provenance(reader: &SerializedFileReader<File>, path: &Path) -> Result<Provenance, TraceError> {
    let value = |key: &str| described(reader, key);
    let version = |found: &str| TraceError::Version {
        path: path.to_owned(),
        found: found.to_owned(),
        supported: SCHEMA_VERSION,
    };
    // Tools that rewrite a file may drop what they do not know; the columns
    // have been checked, so that is no reason to refuse it.
    if let Some(found) = value(VERSION_KEY)
        && found.parse() != Ok(SCHEMA_VERSION)
    {
        return Err(version(found));
    }
    match value(PROVENANCE_KEY) {
        None => Ok(Provenance::default()),
        Some(json) => serde_json::from_str(json).map_err(|error| damaged(path, error)),
    }
}

/// One column of a row group, decoded batch by batch.
struct Cells {
    name: &'static str,
    reader: Reader,
    nullable: bool,
}

/// The decoders of the physical types.
enum Reader {
    Long(ColumnReaderImpl<parquet::data_type::Int64Type>),
    Int(ColumnReaderImpl<parquet::data_type::Int32Type>),
    Name(ColumnReaderImpl<parquet::data_type::ByteArrayType>),
}

impl Cells {
    fn new(
        group: &dyn RowGroupReader,
        index: usize,
        name: &'static str,
    ) -> Result<Cells, ParquetError> {
        let nullable = group
            .metadata()
            .column(index)
            .column_descr()
            .max_def_level()
            > 0;
        let reader = match group.get_column_reader(index)? {
            ColumnReader::Int64ColumnReader(reader) => Reader::Long(reader),
            ColumnReader::Int32ColumnReader(reader) => Reader::Int(reader),
            ColumnReader::ByteArrayColumnReader(reader) => Reader::Name(reader),
            _ => {
                return Err(ParquetError::General(format!(
                    "column {name} changes its type"
                )));
            }
        };
        Ok(Cells {
            name,
            reader,
            nullable,
        })
    }

    /// The next numbers, at most [`BATCH`].
    fn numbers(&mut self, place: &mut Vec<u64>) -> Result<Batch, ParquetError> {
        place.clear();
        match &mut self.reader {
            Reader::Long(reader) => {
                let mut values = Vec::new();
                let batch = next(reader, self.nullable, &mut values)?;
                place.extend(values.into_iter().map(|value| value as u64));
                Ok(batch)
            }
            Reader::Int(reader) => {
                let mut values = Vec::new();
                let batch = next(reader, self.nullable, &mut values)?;
                place.extend(values.into_iter().map(|value| u64::from(value as u32)));
                Ok(batch)
            }
            Reader::Name(_) => Err(ParquetError::General("names for numbers".to_owned())),
        }
    }

    /// The next names, at most [`BATCH`].
    fn names(&mut self, place: &mut Vec<ByteArray>) -> Result<Batch, ParquetError> {
        place.clear();
        match &mut self.reader {
            Reader::Name(reader) => next(reader, self.nullable, place),
            _ => Err(ParquetError::General("numbers for names".to_owned())),
        }
    }
}

/// What one step of a column gave.
struct Batch {
    rows: usize,
    /// First null among them.
    null: Option<usize>,
}

fn next<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    nullable: bool,
    values: &mut Vec<T::T>,
) -> Result<Batch, ParquetError> {
    let mut levels = Vec::new();
    let (mut rows, mut null) = (0, None);
    // One call may stop early, at the end of a page.
    while rows < BATCH {
        levels.clear();
        let wanted = nullable.then_some(&mut levels);
        let (records, ..) = reader.read_records(BATCH - rows, wanted, None, values)?;
        if records == 0 {
            break;
        }
        let missing = levels.iter().position(|&level| level == 0);
        null = null.or(missing.map(|within| rows + within));
        rows += records;
    }
    Ok(Batch { rows, null })
}

fn read_group(
    group: &dyn RowGroupReader,
    columns: &Columns,
    builder: &mut TraceBuilder,
    path: &Path,
) -> Result<(), TraceError> {
    let mut cells = Vec::new();
    for (&index, name) in columns.numbers.iter().zip(NUMBERS) {
        let cell = index
            .map(|index| Cells::new(group, index, name))
            .transpose();
        cells.push(cell.map_err(|error| damaged(path, error))?);
    }
    let mut ops = Cells::new(group, columns.op, "op").map_err(|error| damaged(path, error))?;
    let mut numbers: [Vec<u64>; NUMBERS.len()] = Default::default();
    let mut names = Vec::new();
    let mut read = 0u64;
    loop {
        let first = builder.len() as u64;
        let at = |row: u64, cause: RowError| TraceError::Row {
            path: path.to_owned(),
            row,
            cause,
        };
        let batch = ops
            .names(&mut names)
            .map_err(|error| damaged(path, error))?;
        if let Some(null) = batch.null {
            return Err(at(first + null as u64, RowError::BadValue("op")));
        }
        for (cells, numbers) in cells.iter_mut().zip(&mut numbers) {
            let Some(cells) = cells else {
                numbers.clear();
                numbers.resize(names.len(), 0);
                continue;
            };
            let other = cells
                .numbers(numbers)
                .map_err(|error| damaged(path, error))?;
            if let Some(null) = other.null {
                return Err(at(first + null as u64, RowError::BadValue(cells.name)));
            }
            if other.rows != batch.rows || numbers.len() != names.len() {
                return Err(damaged(path, "its columns differ in length"));
            }
        }
        if batch.rows == 0 {
            break;
        }
        read += batch.rows as u64;
        if read > group.metadata().num_rows() as u64 {
            return Err(damaged(path, "it holds more rows than it says"));
        }
        for within in 0..names.len() {
            let row = |place: usize| numbers[place][within];
            event(names[within].data(), row)
                .and_then(|event| Ok(builder.push(event)?))
                .map_err(|cause| at(first + within as u64, cause))?;
        }
    }
    if read != group.metadata().num_rows() as u64 {
        return Err(damaged(path, "rows are missing"));
    }
    Ok(())
}

/// The event of a row; `number` gives the cell of a column of [`NUMBERS`].
fn event(op: &[u8], number: impl Fn(usize) -> u64) -> Result<Event, RowError> {
    let op = Op::from_name(op).ok_or_else(|| {
        RowError::UnknownOp(String::from_utf8_lossy(op.get(..40).unwrap_or(op)).into_owned())
    })?;
    let narrow =
        |place: usize, name| u32::try_from(number(place)).map_err(|_| RowError::BadValue(name));
    Ok(Event {
        seq: number(0),
        time_ns: number(1),
        thread: narrow(2, NARROW[0])?,
        op,
        block: number(3),
        size: number(4),
        align: narrow(5, NARROW[1])?,
        reads: number(6),
        writes: number(7),
        site: number(8),
        read_bytes: number(9),
        write_bytes: number(10),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_hold_few_events_unless_asked() {
        // 20 million in 823 kB are refused, the 30 million of a recording of 118 MB are not.
        assert_eq!(most_events(823_000, None), MOST_EVENTS);
        assert!(most_events(118_000_000, None) > 30_000_000);
        assert_eq!(most_events(823_000, Some(" 20000000 ")), 20_000_000);
        assert_eq!(most_events(1 << 40, Some("7")), 7);
        assert_eq!(most_events(u64::MAX, Some("many")), u64::MAX);
    }
}
