//! `metes device bench --cuda`: what a real device's driver takes, and our heaps over it.
//!
//! Three questions that no machine without a device answers: how long allocate and free take, ours
//! and the driver's, on the paper's benchmark (`exchange`); how long the driver takes to map and
//! unmap pages (`paging`); and whether that stalls streams that have nothing to do with it
//! (`stall`).
//!
//! Invariant: a time was measured in this run on a device. On the strict model of the driver the
//! same code runs, and gives the number of driver calls, which is exact there, and no time. What
//! was not measured says why.

mod allocators;
mod driver;
mod exchange;
mod meter;
mod paging;
mod stall;

use std::collections::BTreeMap;

use metes_device::backend::Error;
use serde::Serialize;

pub use meter::Distribution;

use super::bench::{Effort, WorkloadFigures};
use super::show::Grid;
use super::workload::{Workload, log_uniform, uniform};
use driver::Device;

/// What the driver's model is called where figures would stand.
pub const MODEL: &str = "the strict model of the driver, not a device: no figures";

/// What was measured of something, or why not.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement<T> {
    /// Of what.
    pub name: String,
    /// What that is.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub about: &'static str,
    /// The figures.
    #[serde(flatten)]
    pub figures: Option<T>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

impl<T> Measurement<T> {
    fn of(name: &str, about: &'static str, figures: Result<T, String>) -> Self {
        let (figures, not_measured) = match figures {
            Ok(figures) => (Some(figures), None),
            Err(why) => (None, Some(why)),
        };
        Measurement {
            name: name.to_owned(),
            about,
            figures,
            not_measured,
        }
    }
}

/// A ratio that was measured several times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Of half of the rounds.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Ratio {
    /// `None` of no values.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Ratio {
            median: *values.get((values.len().max(1) - 1) / 2)?,
            least: *values.first()?,
            most: *values.last()?,
        })
    }
}

/// Allocations and frees of an allocator on a workload. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ExchangeFigures {
    /// How often the workload was served.
    pub rounds: usize,
    /// Of an allocation.
    pub allocate: Option<Distribution>,
    /// Of a free.
    pub free: Option<Distribution>,
    /// Calls of the driver by an allocation; on the model only.
    pub allocate_calls: Option<Distribution>,
    /// Calls of the driver by a free; on the model only.
    pub free_calls: Option<Distribution>,
    /// A call in the mean over one of the first allocator, by rounds.
    pub ratio: Option<Ratio>,
    /// What the device has less at the peak, over the bytes that are live.
    pub memory_ratio: Option<f64>,
    /// Pages created and mapped, of heaps over pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_mapped: Option<u64>,
    /// Pages moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_moved: Option<u64>,
}

/// What the calls on pages take. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct PagingFigures {
    /// Handles; a call is made for each.
    pub handles: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Of all calls of one kind together, by their name.
    pub calls: BTreeMap<String, Distribution>,
    /// How many calls there were; on the model only.
    pub driver_calls: BTreeMap<String, Distribution>,
}

/// What a call does to streams that have nothing to do with it. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct StallFigures {
    /// How often it was made while a kernel ran.
    pub trials: usize,
    /// How often the kernel was done when the call came back.
    pub waited: usize,
    /// How often the kernel was done when work that was issued after the call, to a third stream,
    /// was.
    pub other_held: usize,
    /// Of the call.
    pub call: Option<Distribution>,
    /// Of the work of the third stream.
    pub other: Option<Distribution>,
    /// Of the longest pause of the kernel between two reads of memory.
    pub pause: Option<Distribution>,
}

/// A device as it says it is.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceFigures {
    /// Its name.
    pub name: String,
    /// Its number.
    pub ordinal: u32,
    /// The version of CUDA that the driver has.
    pub cuda: String,
    /// Compute capability.
    pub capability: String,
    /// Bytes of memory.
    pub total: u64,
    /// Bytes that were free at the beginning.
    pub free: u64,
    /// Bytes of the smallest page; none without virtual memory.
    pub page: Option<u64>,
}

/// The workload of allocations and frees, and what was measured on it.
#[derive(Clone, Debug, Serialize)]
pub struct Exchanged {
    /// The workload.
    #[serde(flatten)]
    pub workload: WorkloadFigures,
    /// Of every allocator.
    pub allocators: Vec<Measurement<ExchangeFigures>>,
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct CudaBench {
    /// On what.
    pub device: DeviceFigures,
    /// Whether that is a device: no time stands here otherwise.
    pub measured: bool,
    /// Allocations and frees.
    pub exchange: Vec<Exchanged>,
    /// Calls on pages.
    pub paging: Vec<Measurement<PagingFigures>>,
    /// Stalls.
    pub stall: Vec<Measurement<StallFigures>>,
    /// What a reader must know.
    pub assumptions: Vec<String>,
}

/// How often a workload is served, and its multiples other things.
fn rounds(effort: Effort) -> usize {
    match effort == Effort::QUICK {
        true => 2,
        false => 5,
    }
}

/// Measures device `ordinal` on the generated workloads and the `recorded` ones; `tell` is told
/// what is done.
///
/// # Errors
/// [`Error::Absent`] without a driver or that device; [`Error::Device`].
pub fn bench(
    ordinal: u32,
    recorded: Vec<Workload>,
    effort: Effort,
    tell: &dyn Fn(&str),
) -> Result<CudaBench, Error> {
    let device = Device::open(ordinal)?;
    let (free, total) = device.memory()?;
    let found = DeviceFigures {
        name: device.name()?,
        ordinal,
        cuda: device.version()?,
        capability: device.capability()?,
        total,
        free,
        page: device.granularity().ok(),
    };
    let mut workloads = vec![
        uniform(100, effort.exchanges, 1),
        log_uniform(1000, effort.exchanges, 1),
    ];
    workloads.extend(recorded);
    tell("pages");
    let paging = paging::paging(&device, effort);
    tell("streams");
    let stall = stall::stall(&device, effort);
    let exchange = workloads.iter().map(|workload| Exchanged {
        workload: WorkloadFigures {
            workload: workload.name.clone(),
            requests: workload.requests.len(),
            blocks: workload.blocks,
            peak_live: workload.peak,
            seeds: 1,
        },
        allocators: exchange::exchange(&device, workload, effort, tell),
    });
    Ok(CudaBench {
        exchange: exchange.collect(),
        measured: device.model().is_none(),
        device: found,
        paging,
        stall,
        assumptions: assumptions(device.model().is_some()),
    })
}

fn assumptions(model: bool) -> Vec<String> {
    let mut found = match model {
        true => vec![
            format!("{MODEL}; what is counted are calls of the driver, which are exact"),
            "what stalls and what does not are the model's rules, and say nothing of a driver"
                .to_owned(),
        ],
        false => vec![
            "times are the host's, of the call alone, without what reading the clock takes; \
             compare them within a run only"
                .to_owned(),
            "a ratio is that of the means of all calls of a round; allocators take turns round by \
             round, each made anew and alone on the device"
                .to_owned(),
            "memory: what the device has less free at the workload's peak; another program on the \
             device would be counted"
                .to_owned(),
            "calls on pages: all calls of one kind together, after the device wrote the pages"
                .to_owned(),
            "stall: a kernel runs for 20 ms on another stream; the pause is the longest between \
             two of its reads of memory"
                .to_owned(),
        ],
    };
    found.push("no work of the program was on the device while allocations were timed".to_owned());
    found
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1e-6 => format!("{:.0} ns", seconds * 1e9),
        _ if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        _ => format!("{:.2} ms", seconds * 1e3),
    }
}

fn three(found: &Option<Distribution>) -> String {
    found.map_or_else(
        || "-".to_owned(),
        |of| {
            let [median, percentile, most] = [of.median, of.percentile_99, of.most].map(time);
            format!("{median} / {percentile} / {most}")
        },
    )
}

fn counts(found: &Option<Distribution>) -> String {
    found.map_or_else(
        || "-".to_owned(),
        |of| format!("{:.2} / {:.0}", of.mean, of.most),
    )
}

fn grid(title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Grid {
    Grid {
        title: title.to_owned(),
        head: head.iter().map(|text| (*text).to_owned()).collect(),
        rows,
    }
}

/// A row with what was measured, or without.
fn row<T>(
    of: &Measurement<T>,
    columns: usize,
    cells: impl FnOnce(&T) -> Vec<String>,
) -> Vec<String> {
    let mut row = vec![of.name.clone()];
    match &of.figures {
        Some(figures) => row.extend(cells(figures)),
        None => row.extend(vec!["not measured".to_owned(); columns - 1]),
    }
    row
}

/// Every table.
pub fn tables(bench: &CudaBench) -> Vec<Grid> {
    match bench.measured {
        true => measured(bench),
        false => counted(bench),
    }
}

/// Why what is not measured is not, once each.
pub fn reasons(bench: &CudaBench) -> Vec<String> {
    fn of<T>(part: &str, all: &[Measurement<T>], found: &mut Vec<String>) {
        for one in all {
            if let Some(why) = &one.not_measured {
                found.push(format!("{part}, {}: {why}", one.name));
            }
        }
    }
    let mut found = Vec::new();
    for exchanged in &bench.exchange {
        let name = &exchanged.workload.workload;
        of(name, &exchanged.allocators, &mut found);
    }
    of("pages", &bench.paging, &mut found);
    of("stall", &bench.stall, &mut found);
    found
}

fn measured(bench: &CudaBench) -> Vec<Grid> {
    let mut grids = Vec::new();
    for exchanged in &bench.exchange {
        let head = [
            "allocator",
            "allocate",
            "free",
            "ratio (least to most)",
            "memory",
        ];
        let cells = |of: &ExchangeFigures| {
            let ratio = of.ratio.map_or_else(
                || "-".to_owned(),
                |of| format!("{:.2} ({:.2} to {:.2})", of.median, of.least, of.most),
            );
            let memory = of
                .memory_ratio
                .map_or_else(|| "-".to_owned(), |of| format!("{of:.3}"));
            vec![three(&of.allocate), three(&of.free), ratio, memory]
        };
        let rows = exchanged.allocators.iter();
        grids.push(grid(
            &format!(
                "Allocate and free on {}: median / 99 % / maximum of a call; mean over that of the \
                 first; memory of the device / live at the peak",
                exchanged.workload.workload
            ),
            &head,
            rows.map(|of| row(of, head.len(), cells)).collect(),
        ));
    }
    let head = ["pages", "create", "map", "set access", "unmap", "release"];
    let cells = |of: &PagingFigures| {
        head[1..]
            .iter()
            .map(|call| three(&of.calls.get(entry(call)).copied()))
            .collect()
    };
    let rows = bench.paging.iter();
    grids.push(grid(
        "Pages: median / 99 % / maximum of all calls of a kind together",
        &head,
        rows.map(|of| row(of, head.len(), cells)).collect(),
    ));
    let head = [
        "call while a kernel runs",
        "took",
        "waited for it",
        "held a third stream",
        "third stream's work took",
        "kernel's longest pause",
    ];
    let cells = |of: &StallFigures| {
        vec![
            three(&of.call),
            format!("{} of {}", of.waited, of.trials),
            format!("{} of {}", of.other_held, of.trials),
            three(&of.other),
            three(&of.pause),
        ]
    };
    let rows = bench.stall.iter();
    grids.push(grid(
        "Stalls: median / 99 % / maximum",
        &head,
        rows.map(|of| row(of, head.len(), cells)).collect(),
    ));
    grids
}

/// The driver's call of a column.
fn entry(column: &str) -> &'static str {
    match column {
        "create" => "cuMemCreate",
        "map" => "cuMemMap",
        "set access" => "cuMemSetAccess",
        "unmap" => "cuMemUnmap",
        _ => "cuMemRelease",
    }
}

fn counted(bench: &CudaBench) -> Vec<Grid> {
    let mut grids = Vec::new();
    for exchanged in &bench.exchange {
        let head = ["allocator", "allocate", "free", "pages mapped", "moved"];
        let cells = |of: &ExchangeFigures| {
            let number = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), |of| of.to_string());
            vec![
                counts(&of.allocate_calls),
                counts(&of.free_calls),
                number(of.pages_mapped),
                number(of.pages_moved),
            ]
        };
        let rows = exchanged.allocators.iter();
        grids.push(grid(
            &format!(
                "Driver calls of an allocation and a free on {}: mean / most (the model)",
                exchanged.workload.workload
            ),
            &head,
            rows.map(|of| row(of, head.len(), cells)).collect(),
        ));
    }
    grids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        for (seconds, text) in [
            (0.0, "0 ns"),
            (42e-9, "42 ns"),
            (1.25e-6, "1.2 µs"),
            (0.000_999, "999.0 µs"),
            (0.0205, "20.50 ms"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn ratios_keep_their_extremes() {
        let ratio = Ratio::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((ratio.median, ratio.least, ratio.most), (2.0, 1.0, 3.0));
        assert_eq!(Ratio::of(Vec::new()), None);
    }
}
