//! Every run as a row, in CSV and in Parquet.
//!
//! *Invariant:* both hold the same rows in the same order; what was not measured is empty, never zero.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::measure::Measured;
use crate::process::Cost;

/// Columns of words.
const WORDS: [&str; 10] = [
    "section",
    "subject",
    "engine",
    "mode",
    "layer",
    "start",
    "allocator",
    "vectors",
    "kernel",
    "size",
];
/// Columns of numbers.
const NUMBERS: [&str; 8] = [
    "run",
    "ns",
    "kernel_ns",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "system_calls",
];

/// A run.
struct Row<'a> {
    words: [&'a str; 10],
    numbers: [Option<u64>; 8],
    checksum: String,
}

/// How the first line of our CSV begins.
pub const CSV_BEGINNING: &str = "section,subject,engine,mode,layer,";

fn rows(measured: &Measured) -> Vec<Row<'_>> {
    let size = measured.options.size.name();
    let mut rows = Vec::new();
    for cell in &measured.cells {
        let Some(subject) = measured
            .subjects
            .iter()
            .find(|subject| subject.name == cell.subject)
        else {
            continue;
        };
        let words = |section| {
            let layer = subject.layer.name();
            [
                section,
                subject.name,
                subject.engine,
                subject.mode,
                layer,
                subject.start,
                subject.allocator,
                subject.vectors,
                cell.kernel.as_str(),
                size,
            ]
        };
        let checksum = cell
            .checksum
            .map_or_else(String::new, |checksum| format!("{checksum:016x}"));
        let costs = |cost: &Cost| {
            [
                cost.minor_faults,
                cost.major_faults,
                cost.voluntary,
                cost.involuntary,
            ]
            .map(Some)
        };
        for (run, cost) in cell.cold.costs.iter().enumerate() {
            let [minor, major, voluntary, involuntary] = costs(cost);
            // System calls were counted in a run of their own, but are the same in each.
            let inside = cell.cold.inside.get(run).copied();
            rows.push(Row {
                words: words("cold"),
                numbers: [
                    Some(run as u64),
                    Some(cost.ns),
                    inside,
                    minor,
                    major,
                    voluntary,
                    involuntary,
                    cell.cold.calls,
                ],
                checksum: checksum.clone(),
            });
        }
        let Some(prolonged) = &cell.prolonged else {
            continue;
        };
        for (run, ns) in prolonged.times.iter().enumerate() {
            rows.push(Row {
                words: words("prolonged"),
                numbers: [
                    Some(run as u64),
                    None,
                    Some(*ns),
                    None,
                    None,
                    None,
                    None,
                    None,
                ],
                checksum: checksum.clone(),
            });
        }
        let [minor, major, voluntary, involuntary] = costs(&prolonged.cost);
        let inside = prolonged.times.iter().sum();
        rows.push(Row {
            words: words("prolonged, all"),
            numbers: [
                Some(prolonged.times.len() as u64),
                Some(prolonged.cost.ns),
                Some(inside),
                minor,
                major,
                voluntary,
                involuntary,
                None,
            ],
            checksum,
        });
    }
    for warm in &measured.warm {
        let name = warm.mode.name();
        let words = [
            "instance",
            name,
            name,
            "",
            "WebAssembly",
            "warm",
            "dlmalloc",
            "none",
            warm.kernel.as_str(),
            size,
        ];
        for (run, (ns, faults)) in warm.times.iter().zip(&warm.faults).enumerate() {
            rows.push(Row {
                words,
                numbers: [
                    Some(run as u64),
                    Some(*ns),
                    None,
                    Some(*faults),
                    None,
                    None,
                    None,
                    None,
                ],
                checksum: String::new(),
            });
        }
    }
    rows
}

/// All rows as CSV.
#[must_use]
pub fn csv(measured: &Measured) -> String {
    let heads: Vec<&str> = WORDS
        .into_iter()
        .chain(NUMBERS)
        .chain(["checksum"])
        .collect();
    let mut text = heads.join(",") + "\n";
    for row in rows(measured) {
        for word in row.words {
            match word.contains([',', '"']) {
                true => _ = write!(text, "\"{}\",", word.replace('"', "\"\"")),
                false => _ = write!(text, "{word},"),
            }
        }
        for number in row.numbers {
            match number {
                Some(number) => _ = write!(text, "{number},"),
                None => text.push(','),
            }
        }
        text += &row.checksum;
        text.push('\n');
    }
    text
}

/// All rows as a Parquet file.
///
/// # Errors
/// None is known: what is written lies in memory.
pub fn parquet(measured: &Measured) -> Result<Vec<u8>> {
    let mut schema = "message run {".to_owned();
    for word in WORDS {
        let _ = write!(schema, " REQUIRED BYTE_ARRAY {word} (UTF8);");
    }
    for number in NUMBERS {
        let _ = write!(schema, " OPTIONAL INT64 {number};");
    }
    schema += " OPTIONAL BYTE_ARRAY checksum (UTF8); }";
    let properties = WriterProperties::builder()
        .set_created_by(concat!("metes ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(9)?))
        .build();
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let rows = rows(measured);
    let mut group = writer.next_row_group()?;
    for column in 0..WORDS.len() {
        let all = rows
            .iter()
            .map(|row| Some(ByteArray::from(row.words[column])));
        column_of::<ByteArrayType>(&mut group, all, false)?;
    }
    for column in 0..NUMBERS.len() {
        let all = rows
            .iter()
            .map(|row| row.numbers[column].map(u64::cast_signed));
        column_of::<Int64Type>(&mut group, all, true)?;
    }
    let checksums = rows.iter().map(|row| {
        let text = row.checksum.as_str();
        (!text.is_empty()).then(|| ByteArray::from(text))
    });
    column_of::<ByteArrayType>(&mut group, checksums, true)?;
    group.close()?;
    writer.into_inner()
}

fn column_of<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
    optional: bool,
) -> Result<()> {
    let mut there = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        levels.push(i16::from(value.is_some()));
        there.extend(value);
    }
    let Some(mut column) = group.next_column()? else {
        return Ok(());
    };
    let levels = optional.then_some(levels.as_slice());
    column.typed::<T>().write_batch(&there, levels, None)?;
    column.close()
}
