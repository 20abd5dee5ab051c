//! Reading the columns of a results file.
//!
//! Invariant: nothing in the file is believed; room is taken for what was
//! decoded, not for what the file claims to hold. What claims very much is refused before.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use metes_trace::{MOST_PAGE, page_beyond};

use crate::columns::{Column, Columns, Values};
use crate::error::Error;

/// Rows decoded at a time.
const BATCH: usize = 1 << 14;

/// The columns of a file and the text it says about itself.
pub(crate) type Content = (Columns, HashMap<String, String>);

/// Reads all flat columns of numbers, flags and words; others are left out.
pub(crate) fn parquet(path: &Path) -> Result<Content, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    // A foreign decoder meets bytes of unknown origin: should it panic on them,
    // the file is damaged, and that is all there is to say.
    catch_unwind(AssertUnwindSafe(|| decode(file)))
        .unwrap_or_else(|_| Err(general("its pages contradict each other")))
        .map_err(|error| Error::damaged(path, error))
}

fn general(text: &str) -> ParquetError {
    ParquetError::General(text.to_owned())
}

/// Rows that a file of any length may hold; a longer one holds no more than it has bytes.
const MOST_ROWS: u64 = 1_000_000;

fn decode(file: File) -> Result<Content, ParquetError> {
    let own = file.try_clone()?;
    let bytes = file.metadata()?.len();
    let reader = SerializedFileReader::new(file)?;
    let groups = reader.metadata().row_groups().iter();
    let rows = groups.clone().fold(0_u64, |sum, group| {
        sum.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX))
    });
    if rows > bytes.max(MOST_ROWS) {
        return Err(general(&format!("it claims {rows} rows in {bytes} bytes")));
    }
    let chunks = groups.flat_map(|group| group.columns());
    if let Some(bytes) = page_beyond(&own, chunks.map(|chunk| chunk.byte_range()))? {
        return Err(general(&format!(
            "a page of it has {bytes} bytes when decompressed, at most {MOST_PAGE} are read"
        )));
    }
    let metadata = reader.metadata().file_metadata();
    let said = metadata
        .key_value_metadata()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?)))
        .collect();
    let schema = metadata.schema_descr();
    let mut columns = Columns::default();
    for index in 0..schema.num_columns() {
        let column = schema.column(index);
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            continue;
        }
        let mut builder = match column.physical_type() {
            Physical::BOOLEAN | Physical::INT32 | Physical::INT64 => Builder::Integers(Vec::new()),
            Physical::BYTE_ARRAY => Builder::Words(Words::default()),
            _ => continue,
        };
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            builder.read(group.get_column_reader(index)?)?;
        }
        columns.list.push(Column {
            name: column.path().string(),
            values: builder.finish(),
        });
    }
    let rows = columns.rows();
    if columns
        .list
        .iter()
        .any(|column| column.values.len() != rows)
    {
        return Err(general("its columns differ in length"));
    }
    Ok((columns, said))
}

#[derive(Default)]
struct Words {
    dictionary: Vec<String>,
    known: HashMap<Vec<u8>, u32>,
    codes: Vec<Option<u32>>,
}

enum Builder {
    Integers(Vec<Option<u64>>),
    Words(Words),
}

impl Builder {
    fn read(&mut self, column: ColumnReader) -> Result<(), ParquetError> {
        match (self, column) {
            (Builder::Integers(all), ColumnReader::BoolColumnReader(reader)) => {
                cells(reader, |cell| all.push(cell.map(|flag| u64::from(*flag))))
            }
            // The physical types are signed; the logical ones are not.
            (Builder::Integers(all), ColumnReader::Int32ColumnReader(reader)) => {
                cells(reader, |cell| all.push(cell.map(|n| u64::from(*n as u32))))
            }
            (Builder::Integers(all), ColumnReader::Int64ColumnReader(reader)) => {
                cells(reader, |cell| all.push(cell.map(|n| *n as u64)))
            }
            (Builder::Words(words), ColumnReader::ByteArrayColumnReader(reader)) => {
                cells(reader, |cell| {
                    let code = cell.map(|text| words.code(text.data()));
                    words.codes.push(code);
                })
            }
            _ => Err(general("a column changes its type")),
        }
    }

    fn finish(self) -> Values {
        match self {
            Builder::Integers(values) => Values::Integers(values),
            Builder::Words(words) => Values::Words {
                dictionary: words.dictionary,
                codes: words.codes,
            },
        }
    }
}

impl Words {
    fn code(&mut self, text: &[u8]) -> u32 {
        if let Some(&code) = self.known.get(text) {
            return code;
        }
        let code = self.dictionary.len() as u32;
        self.dictionary
            .push(String::from_utf8_lossy(text).into_owned());
        self.known.insert(text.to_owned(), code);
        code
    }
}

/// Gives every cell of a column to `keep`, absent ones as `None`.
fn cells<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    mut keep: impl FnMut(Option<&T::T>),
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    loop {
        values.clear();
        levels.clear();
        let (rows, _, _) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        if levels.is_empty() {
            values.iter().for_each(|value| keep(Some(value)));
            continue;
        }
        let mut present = values.iter();
        for &level in &levels {
            match level {
                0 => keep(None),
                _ => keep(Some(
                    present.next().ok_or_else(|| general("a page is short"))?,
                )),
            }
        }
    }
}
