//! `results.parquet`: a row for every configuration, by number.
//!
//! Invariant: the bytes depend on the rows and on what the exploration is of,
//! not on who computed them in which order. At most one row group of rows is in
//! memory at a time.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use metes_config::Config;
use metes_heap::Description;
use metes_trace::whole::Part;

use super::UNIT;
use super::folder::{EngineError, Folder, Manifest};
use super::objective::Front;
use super::objective::{ObjectiveSet, Point};
use super::row::{Metrics, NO_GUARANTEE, Row, Status};
use crate::outcome::constant_time;
use crate::space::{Parameters, Space};

/// Version of the columns and of what the file says of the exploration: 2 has
/// options and levels as JSON.
pub const SCHEMA_VERSION: u32 = 2;

const SCHEMA: &str = "message results {
    REQUIRED INT64 number (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY named (STRING);
    REQUIRED BYTE_ARRAY status (STRING);
    REQUIRED BOOLEAN front;
    REQUIRED INT32 general_pools (INTEGER(8,false));
    REQUIRED INT32 dedicated_pools (INTEGER(8,false));
    REQUIRED INT32 object_pools (INTEGER(8,false));
    REQUIRED BYTE_ARRAY fit (STRING);
    REQUIRED BYTE_ARRAY order (STRING);
    REQUIRED BYTE_ARRAY links (STRING);
    REQUIRED INT32 depth (INTEGER(8,false));
    REQUIRED INT32 max_fit (INTEGER(16,false));
    REQUIRED INT32 coalescing_pools (INTEGER(8,false));
    REQUIRED INT32 splitting_pools (INTEGER(8,false));
    OPTIONAL INT64 max_coalesced (INTEGER(64,false));
    OPTIONAL INT64 min_split (INTEGER(64,false));
    REQUIRED INT64 scratchpad (INTEGER(64,false));
    REQUIRED INT64 footprint (INTEGER(64,false));
    REQUIRED INT64 accesses (INTEGER(64,false));
    REQUIRED INT64 record_reads (INTEGER(64,false));
    REQUIRED INT64 record_writes (INTEGER(64,false));
    REQUIRED INT64 energy_fj (INTEGER(64,false));
    REQUIRED INT64 time_ps (INTEGER(64,false));
    REQUIRED INT64 cycles (INTEGER(64,false));
    REQUIRED INT64 cycles_max (INTEGER(64,false));
    REQUIRED INT64 failed (INTEGER(64,false));
";

/// Further columns where the space is one that the trace suggests, whose pools have an index each.
const SUGGESTED: &str = "
    REQUIRED BYTE_ARRAY general (STRING);
    REQUIRED BOOLEAN constant_time;
";

/// A further column where it was asked what heaps guarantee; absent for heaps of which nothing finite is proved.
const GUARANTEED: &str = "
    OPTIONAL INT64 guarantee (INTEGER(64,false));
";

/// Rows of a row group: whole units.
const GROUP_ROWS: u64 = 64 * UNIT;

/// What all rows together say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Configurations evaluated.
    pub configurations: u64,
    /// Of them, replayed to the end.
    pub complete: u64,
    /// Ended early because they were beaten.
    pub beaten: u64,
    /// Those in which requests failed.
    pub failed: u64,
    /// Those that guarantee less than was asked for.
    pub beyond: u64,
    /// Numbers of those that failed, ascending.
    pub failures: Vec<u64>,
    /// Different points among the complete ones.
    pub distinct: u64,
    /// Rows that nothing beats, one for each point, by rising objectives.
    pub front: Vec<Row>,
    /// Rows of the heaps to compare with.
    pub named: Vec<Row>,
    /// Configurations so far, and the front at that time.
    pub course: Vec<(u64, Front)>,
}

/// Where rows come from, in ascending order of their numbers.
#[derive(Clone, Copy, Debug)]
pub enum Source<'r> {
    /// The units of a folder, all there, and the seed phase.
    Units(&'r Folder),
    /// Rows of a search in the order of evaluation.
    Rows(&'r [Row]),
}

impl Source<'_> {
    /// The rows of a row group.
    fn group(
        &self,
        group: u64,
        space: &Space,
        sorted: &[Row],
    ) -> std::result::Result<Vec<Row>, EngineError> {
        match self {
            Source::Rows(_) => {
                let start = (group * GROUP_ROWS) as usize;
                let end = sorted.len().min(start + GROUP_ROWS as usize);
                Ok(sorted.get(start..end).unwrap_or_default().to_vec())
            }
            Source::Units(folder) => {
                let units = space.size().div_ceil(UNIT);
                let per_group = GROUP_ROWS / UNIT;
                let mut rows = Vec::new();
                for unit in group * per_group..units.min((group + 1) * per_group) {
                    let found = folder.rows(Some(unit));
                    rows.extend(found.ok_or(EngineError::Missing {
                        missing: 1,
                        units,
                        first: unit,
                    })?);
                }
                Ok(rows)
            }
        }
    }

    fn sorted(&self) -> Vec<Row> {
        match self {
            Source::Units(_) => Vec::new(),
            Source::Rows(rows) => {
                let mut rows = rows.to_vec();
                rows.sort_unstable_by_key(|row| row.number);
                rows
            }
        }
    }
}

/// Reads all rows once, then writes them to `path`, whole or not at all.
/// O(rows) time; memory for one row group, 16 bytes a complete configuration and
/// 8 a failed one.
///
/// # Errors
/// [`EngineError`] for a missing unit and where the file cannot be written.
pub fn write_results(
    path: &Path,
    manifest: &Manifest,
    space: &Space,
    objectives: ObjectiveSet,
    source: Source<'_>,
) -> std::result::Result<Summary, EngineError> {
    let sorted = source.sorted();
    let groups = || {
        (0..)
            .map(|group| source.group(group, space, &sorted))
            .take_while(|rows| !matches!(rows, Ok(rows) if rows.is_empty()))
    };
    let mut count = Counting::new(objectives, space.baselines());
    match source {
        // The course of a search is that of its evaluations.
        Source::Rows(rows) => rows.chunks(32).for_each(|rows| count.add(rows)),
        Source::Units(folder) => {
            if let Some(rows) = folder.rows(None) {
                rows.chunks(32).for_each(|rows| count.seed(rows));
            }
            for rows in groups() {
                rows?.chunks(UNIT as usize).for_each(|rows| count.add(rows));
            }
        }
    }
    let summary = count.finish();
    let failed = |message: String| EngineError::Parquet {
        path: path.to_owned(),
        message,
    };
    let front: HashSet<u64> = summary.front.iter().map(|row| row.number).collect();
    let part = Part::begin(path).map_err(|error| failed(error.to_string()))?;
    let written = (|| {
        let file = File::create(part.path()).map_err(|error| failed(error.to_string()))?;
        let table = Table {
            space,
            front,
            guaranteed: !manifest.guarantee.is_null(),
        };
        let mut writer =
            writer(file, manifest, space).map_err(|error| failed(error.to_string()))?;
        for rows in groups() {
            let rows = rows?;
            let result = writer.next_row_group().and_then(|mut group| {
                table.write(&rows, &mut group)?;
                group.close().map(drop)
            });
            result.map_err(|error| failed(error.to_string()))?;
        }
        let file = writer
            .into_inner()
            .map_err(|error| failed(error.to_string()))?;
        let file = file
            .into_inner()
            .map_err(|error| failed(error.to_string()))?;
        file.sync_all().map_err(|error| failed(error.to_string()))?;
        part.put().map_err(|error| failed(error.to_string()))
    })();
    written.map(|()| summary)
}

/// Adds up rows.
struct Counting {
    baselines: u64,
    objectives: ObjectiveSet,
    summary: Summary,
    front: Front,
    /// Of the rows by number: of equal points, the lowest number stands for all.
    by_number: Vec<(Point, Row)>,
    points: HashSet<u128>,
    evaluated: u64,
}

impl Counting {
    fn new(objectives: ObjectiveSet, baselines: u64) -> Self {
        Counting {
            baselines,
            objectives,
            summary: Summary::default(),
            front: Front::new(),
            by_number: Vec::new(),
            points: HashSet::new(),
            evaluated: 0,
        }
    }

    /// Rows of the seed phase, which are in units again.
    fn seed(&mut self, rows: &[Row]) {
        self.evaluated += rows.len() as u64;
        self.enter(rows);
    }

    fn enter(&mut self, rows: &[Row]) {
        let mut changed = false;
        for row in rows.iter().filter(|row| row.status == Status::Complete) {
            let point = self.objectives.point(&row.metrics);
            changed |= self.front.enter(point, row.number);
        }
        if changed {
            self.summary
                .course
                .push((self.evaluated, self.front.clone()));
        }
    }

    fn add(&mut self, rows: &[Row]) {
        self.summary.configurations += rows.len() as u64;
        self.evaluated = self.evaluated.max(self.summary.configurations);
        self.enter(rows);
        for row in rows {
            if row.number < self.baselines {
                self.summary.named.push(*row);
            }
            match row.status {
                Status::Complete => {
                    self.summary.complete += 1;
                    let point = self.objectives.point(&row.metrics);
                    self.points.insert(fold(&point));
                    if !self.front.beats(&point) {
                        self.by_number.push((point, *row));
                    }
                }
                Status::Beaten | Status::Slow => self.summary.beaten += 1,
                Status::Failed => {
                    self.summary.failed += 1;
                    self.summary.failures.push(row.number);
                }
                Status::Beyond => self.summary.beyond += 1,
            }
        }
    }

    fn finish(mut self) -> Summary {
        let front = &self.front;
        self.by_number.retain(|(point, _)| !front.beats(point));
        self.by_number
            .sort_unstable_by_key(|(point, row)| (*point, row.number));
        self.by_number.dedup_by_key(|(point, _)| *point);
        let rows = self.by_number.into_iter();
        self.summary.front = rows.map(|(_, row)| row).collect();
        self.summary.distinct = self.points.len() as u64;
        self.summary.failures.sort_unstable();
        self.summary
    }
}

/// 128 bits of a point, to tell points apart.
fn fold(point: &Point) -> u128 {
    point
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &word| {
            (hash ^ u128::from(word)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        })
}

type Writer = SerializedFileWriter<BufWriter<File>>;
type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn writer(file: File, manifest: &Manifest, space: &Space) -> Result<Writer> {
    let describe = serde_json::to_string(manifest)
        .map_err(|error| ParquetError::General(error.to_string()))?;
    let metadata = vec![
        KeyValue::new(
            "metes.results_version".to_owned(),
            SCHEMA_VERSION.to_string(),
        ),
        KeyValue::new("metes.exploration".to_owned(), describe),
    ];
    let number = ColumnPath::from("number");
    let properties = WriterProperties::builder()
        .set_created_by(concat!("metes ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(metadata))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(true)
        .set_column_dictionary_enabled(number.clone(), false)
        .set_column_encoding(number, Encoding::DELTA_BINARY_PACKED)
        .build();
    let further = if space.is_suggested() { SUGGESTED } else { "" };
    let guaranteed = match manifest.guarantee.is_null() {
        true => "",
        false => GUARANTEED,
    };
    let schema = format!("{SCHEMA}{further}{guaranteed}}}");
    let schema = Arc::new(parse_message_type(&schema)?);
    SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties))
}

struct Table<'s> {
    space: &'s Space,
    front: HashSet<u64>,
    guaranteed: bool,
}

macro_rules! column {
    ($group:expr, $kind:ty, $values:expr, $levels:expr) => {{
        let mut column = $group
            .next_column()?
            .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
        column
            .typed::<$kind>()
            .write_batch(&$values, $levels, None)?;
        column.close()?;
    }};
}

impl Table<'_> {
    fn write(&self, rows: &[Row], group: &mut Group<'_>) -> Result<()> {
        let parameters: Vec<Parameters> = rows
            .iter()
            .map(|row| {
                let found = self.space.parameters(row.number);
                found
                    .ok_or_else(|| ParquetError::General("a number is not of the space".to_owned()))
            })
            .collect::<Result<_>>()?;
        let longs = |of: fn(&Metrics) -> u64| -> Vec<i64> {
            // Parquet keeps unsigned numbers as the signed ones of the same bits.
            rows.iter().map(|row| of(&row.metrics) as i64).collect()
        };
        let text = |of: fn(&Parameters) -> &'static str| -> Vec<ByteArray> {
            let words = parameters.iter().map(|own| ByteArray::from(of(own)));
            words.collect()
        };
        let small = |of: fn(&Parameters) -> u16| -> Vec<i32> {
            parameters.iter().map(|own| i32::from(of(own))).collect()
        };
        let numbers: Vec<i64> = rows.iter().map(|row| row.number as i64).collect();
        column!(group, Int64Type, numbers, None);
        let names = rows.iter().map(|row| self.space.named(row.number));
        let levels: Vec<i16> = names
            .clone()
            .map(|name| i16::from(name.is_some()))
            .collect();
        let names: Vec<ByteArray> = names.flatten().map(ByteArray::from).collect();
        column!(group, ByteArrayType, names, Some(&levels));
        let status = rows.iter().map(|row| ByteArray::from(row.status.name()));
        column!(group, ByteArrayType, status.collect::<Vec<_>>(), None);
        let front = rows.iter().map(|row| self.front.contains(&row.number));
        column!(group, BoolType, front.collect::<Vec<_>>(), None);
        column!(group, Int32Type, small(|p| p.general_pools.into()), None);
        column!(group, Int32Type, small(|p| p.dedicated_pools.into()), None);
        column!(group, Int32Type, small(|p| p.object_pools.into()), None);
        column!(group, ByteArrayType, text(|p| p.fit), None);
        column!(group, ByteArrayType, text(|p| p.order), None);
        column!(group, ByteArrayType, text(|p| p.links), None);
        column!(group, Int32Type, small(|p| p.depth.into()), None);
        column!(group, Int32Type, small(|p| p.max_fit), None);
        column!(group, Int32Type, small(|p| p.coalescing_pools.into()), None);
        column!(group, Int32Type, small(|p| p.splitting_pools.into()), None);
        for of in [
            |p: &Parameters| p.max_coalesced,
            |p: &Parameters| p.min_split,
        ] {
            let values = parameters.iter().map(of);
            let levels: Vec<i16> = values.clone().map(|own| i16::from(own.is_some())).collect();
            let values: Vec<i64> = values.flatten().map(|own| own as i64).collect();
            column!(group, Int64Type, values, Some(&levels));
        }
        let scratchpads = parameters.iter().map(|own| own.scratchpad as i64);
        column!(group, Int64Type, scratchpads.collect::<Vec<_>>(), None);
        for of in [
            |m: &Metrics| m.footprint,
            |m: &Metrics| m.accesses,
            |m: &Metrics| m.record_reads,
            |m: &Metrics| m.record_writes,
            |m: &Metrics| m.energy_fj,
            |m: &Metrics| m.time_ps,
            |m: &Metrics| m.cycles,
            |m: &Metrics| m.cycles_max,
            |m: &Metrics| m.failed,
        ] {
            column!(group, Int64Type, longs(of), None);
        }
        if self.space.is_suggested() {
            let heaps = rows
                .iter()
                .filter_map(|row| self.space.describe(row.number));
            let heaps: Vec<Description> = heaps.map(|config| config.heap).collect();
            let general = heaps
                .iter()
                .map(|heap| ByteArray::from(general(heap).as_str()));
            column!(group, ByteArrayType, general.collect::<Vec<_>>(), None);
            let constant = heaps.iter().map(constant_time);
            column!(group, BoolType, constant.collect::<Vec<_>>(), None);
        }
        if self.guaranteed {
            let bytes = rows.iter().map(|row| row.metrics.guarantee);
            let known = |bytes: &u64| *bytes != NO_GUARANTEE && *bytes != 0;
            let levels: Vec<i16> = { bytes.clone() }
                .map(|own| i16::from(known(&own)))
                .collect();
            let bytes: Vec<i64> = bytes.filter(known).map(|own| own as i64).collect();
            column!(group, Int64Type, bytes, Some(&levels));
        }
        Ok(())
    }
}

/// The indexes of the general pools, without their parameters.
fn general(heap: &Description) -> String {
    let words = heap.general.iter().map(|pool| {
        let alone = Config::of(Description::of(pool.index));
        let name = alone.name();
        name.split([':', ' ']).next().unwrap_or_default().to_owned()
    });
    words.collect::<Vec<_>>().join(" + ")
}
