//! Writes result folders for tests of the explorer and for a look at it.
//!
//! `sample DIR` replays a few hundred real configurations on a trace of packets;
//! `sample DIR ROWS` makes up rows, to see how many the page bears.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use metes_config::Config;
use metes_explore::{
    Arena, Events, EventsBuilder, Objectives, Operation, Options, Replayer, catalogue, front,
};
use metes_heap::description::{DedicatedPool, List};
use metes_heap::{Description, Fit, IndexKind, Limits, Links, Order};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

const SCHEMA: &str = "message results {
    REQUIRED INT64 number (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY named (STRING);
    REQUIRED BYTE_ARRAY status (STRING);
    REQUIRED BOOLEAN front;
    REQUIRED INT32 dedicated_pools (INTEGER(8,false));
    REQUIRED BYTE_ARRAY fit (STRING);
    REQUIRED BYTE_ARRAY order (STRING);
    REQUIRED INT32 depth (INTEGER(8,false));
    OPTIONAL INT64 min_split (INTEGER(64,false));
    REQUIRED INT64 scratchpad (INTEGER(64,false));
    REQUIRED INT64 footprint (INTEGER(64,false));
    REQUIRED INT64 accesses (INTEGER(64,false));
    REQUIRED INT64 energy_fj (INTEGER(64,false));
    REQUIRED INT64 cycles_max (INTEGER(64,false));
}";

/// A configuration and its figures, a field a column.
#[derive(Default)]
struct Row {
    named: Option<&'static str>,
    status: &'static str,
    front: bool,
    dedicated: i32,
    fit: &'static str,
    order: &'static str,
    depth: i32,
    min_split: Option<i64>,
    footprint: i64,
    accesses: i64,
    energy: i64,
    cycles_max: i64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (directory, rows) = match &arguments[..] {
        [_, directory] => (directory, None),
        [_, directory, rows] => (directory, Some(rows.parse().expect("a number of rows"))),
        _ => panic!("usage: sample DIR [ROWS]"),
    };
    leave(Path::new(directory), rows);
}

/// Writes a folder.
pub fn leave(directory: &Path, rows: Option<u64>) {
    std::fs::create_dir_all(directory).expect("a directory");
    let (rows, exploration) = match rows {
        None => real(),
        Some(rows) => invented(rows),
    };
    write(&directory.join("results.parquet"), &rows);
    let text = serde_json::to_string(&exploration).expect("a document");
    std::fs::write(directory.join("exploration.json"), text).expect("exploration.json");
    let profile = json!({
        "sizes": [{ "size": 1514, "allocations": 38, "frees": 38, "mean_life_events": 40.0,
            "peak_blocks": 12, "peak_bytes": 18168 }],
        "lifetimes": [{ "upto": 63, "count": 30 }, { "upto": 127, "count": 8 }],
        "bursts": { "bursts": 4, "longest_allocations": 9 },
        "demand": { "live": exploration.get("peak_live"), "largest": 1514, "smallest": 66,
            "alignment": 1, "resizes": false }
    });
    std::fs::write(directory.join("profile.json"), profile.to_string()).expect("profile.json");
}

/// A generator of numbers, the same ones every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Packets that come in bursts and leave in order, some of them late.
fn packets() -> Events {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut builder = EventsBuilder::new();
    let mut waiting = std::collections::VecDeque::new();
    for packet in 0..2000 {
        let size = match numbers.next(100) {
            0..38 => 1514,
            38..60 => 66,
            _ => 66 + numbers.next(1400),
        };
        builder
            .push(Operation::Allocate, packet, size, 0)
            .expect("a new block");
        waiting.push_back(packet);
        let most = if packet % 400 < 200 { 60 } else { 8 };
        while waiting.len() > most {
            let late = numbers.next(8) == 0;
            let gone = if late {
                waiting.pop_back()
            } else {
                waiting.pop_front()
            };
            builder
                .push(Operation::Free, gone.expect("one waits"), 0, 0)
                .expect("a live block");
        }
    }
    builder.finish()
}

fn grid() -> Vec<(Row, Description)> {
    let fits = [
        (Fit::First, "first"),
        (Fit::Best, "best"),
        (Fit::Worst, "worst"),
        (Fit::Exact, "exact"),
    ];
    let orders = [
        (Order::Lifo, "lifo"),
        (Order::Fifo, "fifo"),
        (Order::Address, "address"),
    ];
    let mut all = Vec::new();
    for (fit, fit_name) in fits {
        for (order, order_name) in orders {
            for depth in [100, 50, 10] {
                for min_split in [None, Some(64), Some(512)] {
                    for dedicated in 0..3 {
                        let mut heap = Description::of(IndexKind::List {
                            fit,
                            order,
                            depth_percent: depth,
                            max_fit_percent: 0,
                            links: Links::Double,
                        });
                        let mut pool = heap.general.iter().next().expect("one pool");
                        pool.limits = Limits {
                            split_down_to: min_split.unwrap_or(usize::MAX),
                            ..pool.limits
                        };
                        heap.general = List::EMPTY;
                        heap.general.push(pool);
                        for size in [66, 1514].into_iter().take(dedicated) {
                            heap.dedicated.push(DedicatedPool {
                                size,
                                level: 0,
                                links: Links::Double,
                                order: Order::Lifo,
                                limit: None,
                            });
                        }
                        let row = Row {
                            fit: fit_name,
                            order: order_name,
                            depth: depth as i32,
                            min_split: min_split.map(|size| size as i64),
                            dedicated: dedicated as i32,
                            ..Row::default()
                        };
                        all.push((row, heap));
                    }
                }
            }
        }
    }
    all
}

fn real() -> (Vec<Row>, Value) {
    let events = packets();
    let options = Options {
        arena: Arena {
            increment: 256,
            ..Arena::HOST
        },
        ..Options::default()
    };
    let mut replayer = Replayer::new();
    let named = catalogue().into_iter().map(|named| {
        let row = Row {
            named: Some(named.name),
            fit: "other",
            order: "other",
            depth: 100,
            ..Row::default()
        };
        (row, named.description)
    });
    let mut all: Vec<_> = named.chain(grid()).collect();
    let mut points: Vec<Objectives> = Vec::new();
    for (number, (row, heap)) in all.iter_mut().enumerate() {
        let (replay, _) = replayer.replay("", heap, &events, &options);
        row.status = if replay.failed > 0 {
            "failed"
        } else {
            "complete"
        };
        row.footprint = replay.footprint as i64;
        row.accesses = (replay.record_reads + replay.record_writes) as i64;
        row.cycles_max = replay.cycles_max as i64;
        if number % 7 == 3 && row.named.is_none() {
            row.status = "beaten";
            row.footprint /= 2;
        }
        points.push([replay.footprint, row.accesses as u64, 0]);
        if row.status != "complete" {
            points[number] = [u64::MAX; 3];
        }
    }
    let best = front(&points);
    for &index in &best {
        all[index].0.front = true;
    }
    let heap = |index: usize| {
        let (row, heap) = &all[index];
        let config = Config::of(*heap);
        json!({ "number": index, "named": row.named, "heap": config.name(), "toml": config.to_toml() })
    };
    let named: Vec<_> = (0..all.len())
        .filter(|&index| all[index].0.named.is_some())
        .collect();
    let mut detailed = best.clone();
    detailed.extend(named.iter().filter(|index| !best.contains(index)));
    let mut inside = Replayer::new();
    let detail: Vec<_> = detailed
        .iter()
        .take(20)
        .map(|&index| {
            let detail = inside.inspect(&all[index].1, &events, &options);
            let levels: Vec<_> = detail.levels.iter().take(1).map(|counts| {
                json!({ "record_reads": counts.record_reads, "record_writes": counts.record_writes,
                    "application_reads": 0, "application_writes": 0, "footprint": counts.footprint })
            }).collect();
            json!({ "number": index, "memory": detail.curve, "levels": levels, "parts": detail.parts })
        })
        .collect();
    let exploration = json!({
        "version": 1, "space": all.len(), "configurations": all.len(), "peak_live": events.peak_live(),
        "front": best.iter().map(|&index| heap(index)).collect::<Vec<_>>(),
        "named": named.iter().map(|&index| heap(index)).collect::<Vec<_>>(),
        "hypervolume": [{ "evaluations": 10, "hypervolume": 0.4 }, { "evaluations": 100, "hypervolume": 0.9 },
            { "evaluations": all.len(), "hypervolume": 0.93 }],
        "detail": detail,
    });
    (all.into_iter().map(|(row, _)| row).collect(), exploration)
}

fn invented(count: u64) -> (Vec<Row>, Value) {
    let mut numbers = Numbers(42);
    let mut rows: Vec<Row> = (0..count)
        .map(|_| {
            let spread = numbers.next(1 << 20) as f64 / f64::from(1 << 20);
            let noise = 1.0 + numbers.next(1000) as f64 / 400.0;
            let footprint = 100_000.0 * (11_f64).powf(spread) * noise;
            let accesses = 5e6 * (54_f64).powf(1.0 - spread) * noise;
            Row {
                status: if numbers.next(3) > 0 {
                    "beaten"
                } else {
                    "complete"
                },
                fit: ["first", "next", "best", "worst", "exact"][numbers.next(5) as usize],
                order: ["lifo", "fifo", "address"][numbers.next(3) as usize],
                depth: 5 * (1 + numbers.next(20) as i32),
                dedicated: numbers.next(5) as i32,
                min_split: (numbers.next(4) > 0).then(|| 16 << numbers.next(15)),
                footprint: footprint as i64 / 64 * 64,
                accesses: accesses as i64,
                energy: (accesses * 3e4) as i64 + numbers.next(1_000_000_000) as i64,
                cycles_max: 200 + numbers.next(100_000) as i64,
                ..Row::default()
            }
        })
        .collect();
    let key = |row: &Row| match row.status {
        "complete" => [row.footprint as u64, row.accesses as u64],
        _ => [u64::MAX; 2],
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| key(&rows[row]));
    let mut least = u64::MAX;
    for row in order {
        if key(&rows[row])[1] < least {
            least = key(&rows[row])[1];
            rows[row].front = true;
        }
    }
    (
        rows,
        json!({ "version": 1, "front": [], "named": [], "hypervolume": [], "detail": [] }),
    )
}

macro_rules! column {
    ($group:expr, $kind:ty, $values:expr) => {{
        let mut column = $group.next_column().expect("a column").expect("one more");
        let values: Vec<_> = $values.collect();
        let levels: Vec<i16> = values
            .iter()
            .map(|value| i16::from(value.is_some()))
            .collect();
        let values: Vec<_> = values.into_iter().flatten().collect();
        column
            .typed::<$kind>()
            .write_batch(&values, Some(&levels), None)
            .expect("values");
        column.close().expect("a column ends");
    }};
}

fn write(path: &Path, rows: &[Row]) {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let said = vec![
        KeyValue::new("metes.results_version".to_owned(), "2".to_owned()),
        KeyValue::new(
            "metes.exploration".to_owned(),
            "{\"trace\":\"packets\"}".to_owned(),
        ),
    ];
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(said))
        .build();
    let file = File::create(path).expect("results.parquet");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let text = |text: &str| Some(ByteArray::from(text));
    column!(group, Int64Type, (0..rows.len() as i64).map(Some));
    column!(
        group,
        ByteArrayType,
        rows.iter().map(|row| row.named.map(ByteArray::from))
    );
    column!(
        group,
        ByteArrayType,
        rows.iter().map(|row| text(row.status))
    );
    column!(group, BoolType, rows.iter().map(|row| Some(row.front)));
    column!(group, Int32Type, rows.iter().map(|row| Some(row.dedicated)));
    column!(group, ByteArrayType, rows.iter().map(|row| text(row.fit)));
    column!(group, ByteArrayType, rows.iter().map(|row| text(row.order)));
    column!(group, Int32Type, rows.iter().map(|row| Some(row.depth)));
    column!(group, Int64Type, rows.iter().map(|row| row.min_split));
    column!(group, Int64Type, rows.iter().map(|_| Some(0)));
    column!(group, Int64Type, rows.iter().map(|row| Some(row.footprint)));
    column!(group, Int64Type, rows.iter().map(|row| Some(row.accesses)));
    column!(group, Int64Type, rows.iter().map(|row| Some(row.energy)));
    column!(
        group,
        Int64Type,
        rows.iter().map(|row| Some(row.cycles_max))
    );
    group.close().expect("a group ends");
    writer.close().expect("a file ends");
}
