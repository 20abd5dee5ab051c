//! What is known of a side: of a trace all, of a result what it says.
//!
//! Invariant: what is not known is none, and nothing is compared with it.

use std::collections::{BTreeMap, HashMap};

use metes_explore::{Events, Options, Replayer};
use metes_trace::{Op, Profile, Trace};
use serde_json::Value;

use crate::error::Error;
use metes_config::Config;

/// Most points of a curve of live bytes.
const POINTS: usize = 400;

/// One side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Allocations.
    pub allocations: Option<u64>,
    /// Resizes.
    pub resizes: Option<u64>,
    /// Most bytes live at once.
    pub peak_live: Option<u64>,
    /// Most blocks live at once.
    pub peak_blocks: Option<u64>,
    /// Bytes never freed.
    pub left: Option<u64>,
    /// Blocks never freed.
    pub left_blocks: Option<u64>,
    /// Mean life of the freed blocks, in events.
    pub life: Option<f64>,
    /// The longest burst of allocations.
    pub burst: Option<Burst>,
    /// Each size by its bytes.
    pub sizes: BTreeMap<u64, SizeFacts>,
    /// The heap that footprint and cycles are of.
    pub heap: Option<String>,
    /// Bytes that it takes from the system.
    pub footprint: Option<u64>,
    /// Modelled cycles of a request on it, in the mean.
    pub cycles: Option<f64>,
    /// Live bytes over percent of the events.
    pub curve: Vec<(f64, u64)>,
    /// Of a result of many runs each run.
    pub runs: Vec<RunFacts>,
}

/// A size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeFacts {
    /// Allocations of it, and resizes to it.
    pub requests: u64,
    /// Most blocks of it at once.
    pub peak_blocks: u64,
    /// Blocks of it that were never freed; none where that is not known.
    pub left: Option<u64>,
}

/// A run of allocations without a free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// Allocations.
    pub allocations: u64,
    /// The event that it begins with, if known.
    pub from: Option<u64>,
    /// The size that most of them have, if known.
    pub size: Option<u64>,
}

/// A run of a result of many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// What it is called.
    pub name: String,
    /// Most bytes live at once.
    pub peak_live: Option<u64>,
    /// Footprint on the one heap.
    pub footprint: Option<u64>,
}

/// Why a document says nothing of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// It is another document.
    #[error(
        "it is neither a report of `metes tune` or `metes explore` nor what they print with --json"
    )]
    Foreign,
}

impl Facts {
    /// All that a trace says, and its footprint on a heap. O(events).
    ///
    /// # Errors
    /// [`Error::Events`] for a trace of which no heap could serve the requests.
    pub fn of_trace(trace: &Trace, heap: &Config) -> Result<Self, Error> {
        let profile = metes_trace::profile(trace);
        let events = Events::try_from(trace)?;
        let options = Options::of(heap);
        let name = heap.name();
        let (replay, _) = Replayer::new().replay(&name, &heap.heap, &events, &options);
        let served = replay.failed == 0;
        Ok(Facts {
            burst: burst(trace),
            heap: Some(name),
            footprint: served.then_some(replay.footprint),
            cycles: served.then_some(replay.cycles_mean),
            ..Facts::of_profile(&profile)
        })
    }

    fn of_profile(profile: &Profile) -> Self {
        let sizes = profile.sizes.iter().map(|size| {
            let came = size.allocations + size.resizes_to;
            let facts = SizeFacts {
                requests: came,
                peak_blocks: size.peak_live,
                left: Some(came.saturating_sub(size.frees + size.resizes_from)),
            };
            (size.size, facts)
        });
        let events = profile.events.max(1) as f64;
        let stride = profile.curve.len().div_ceil(POINTS).max(1);
        Facts {
            allocations: Some(profile.allocations),
            resizes: Some(profile.resizes),
            peak_live: Some(profile.peak_live),
            peak_blocks: Some(profile.peak_blocks),
            left: Some(profile.final_live),
            left_blocks: Some(profile.final_blocks),
            life: profile.lifespan_events.mean(),
            sizes: sizes.collect(),
            curve: (profile.curve.chunks(stride))
                // Of each stretch the highest, so that the peak stays.
                .filter_map(|stretch| stretch.iter().max_by_key(|point| point.live))
                .map(|point| (point.seq as f64 * 100.0 / events, point.live))
                .collect(),
            ..Facts::default()
        }
    }

    /// What a result says: `report.json`, or what `--json` printed.
    ///
    /// # Errors
    /// [`FactsError`] for anything else.
    pub fn of_document(text: &str) -> Result<Self, FactsError> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| FactsError::Json(error.to_string()))?;
        if document.get("kind").and_then(Value::as_str) == Some(crate::runs::RUNS_KIND) {
            return Ok(of_runs(&document));
        }
        if document.get("trace").is_some_and(Value::is_object) {
            return Ok(of_report(&document));
        }
        if document.get("predicted").is_some_and(Value::is_object) {
            return Ok(Facts {
                peak_live: number(&document, "/predicted/peak_live"),
                footprint: number(&document, "/predicted/footprint"),
                heap: text_of(&document, "/heap"),
                ..Facts::default()
            });
        }
        // What `explore` prints: the heap is one of its front.
        let heap = text_of(&document, "/heap");
        let front = document.get("pareto").and_then(Value::as_array);
        match (heap, front) {
            (Some(heap), Some(front)) => {
                let mut front = front.iter();
                let own = front.find(|one| text_of(one, "/heap").as_ref() == Some(&heap));
                Ok(Facts {
                    // What has constant time, or a guarantee, need be on no front.
                    footprint: own
                        .and_then(|one| number(one, "/footprint"))
                        .or_else(|| number(&document, "/guarantee/footprint")),
                    cycles: own.and_then(|one| one.get("cycles_mean")?.as_f64()),
                    heap: Some(heap),
                    ..Facts::default()
                })
            }
            _ => Err(FactsError::Foreign),
        }
    }
}

fn number(document: &Value, path: &str) -> Option<u64> {
    document.pointer(path)?.as_u64()
}

fn text_of(document: &Value, path: &str) -> Option<String> {
    document.pointer(path)?.as_str().map(str::to_owned)
}

fn of_report(document: &Value) -> Facts {
    let sizes = document.pointer("/profile/sizes").and_then(Value::as_array);
    let resized = number(document, "/trace/resizes").unwrap_or(1) > 0;
    let size = |value: &Value| {
        let (requests, frees) = (number(value, "/allocations")?, number(value, "/frees")?);
        let facts = SizeFacts {
            requests,
            peak_blocks: number(value, "/peak_blocks")?,
            // Resizes from and to it are not said.
            left: (!resized).then(|| requests.saturating_sub(frees)),
        };
        Some((number(value, "/size")?, facts))
    };
    let events = number(document, "/trace/events").unwrap_or(1).max(1) as f64;
    let live = document.pointer("/profile/live").and_then(Value::as_array);
    let curve: Vec<(f64, u64)> = (live.into_iter().flatten())
        .filter_map(|point| {
            let at = point.get(0)?.as_u64()? as f64;
            Some((at * 100.0 / events, point.get(1)?.as_u64()?))
        })
        .collect();
    let allocations = number(document, "/trace/allocations");
    let freed = number(document, "/trace/frees");
    Facts {
        allocations,
        resizes: number(document, "/trace/resizes"),
        peak_live: number(document, "/trace/peak_live"),
        peak_blocks: number(document, "/trace/peak_blocks"),
        left_blocks: allocations
            .zip(freed)
            .map(|(all, freed)| all.saturating_sub(freed)),
        burst: number(document, "/profile/bursts/longest_allocations").map(|allocations| Burst {
            allocations,
            ..Burst::default()
        }),
        sizes: sizes.into_iter().flatten().filter_map(size).collect(),
        heap: text_of(document, "/chosen/spec"),
        footprint: number(document, "/chosen/predicted/footprint"),
        curve,
        ..Facts::default()
    }
}

fn of_runs(document: &Value) -> Facts {
    let runs = document.get("runs").and_then(Value::as_array);
    let run = |value: &Value| {
        Some(RunFacts {
            name: text_of(value, "/name")?,
            peak_live: number(value, "/peak_live"),
            footprint: number(value, "/footprint"),
        })
    };
    Facts {
        heap: text_of(document, "/heap"),
        // Of the run that takes most.
        footprint: number(document, "/largest/footprint"),
        runs: runs.into_iter().flatten().filter_map(run).collect(),
        ..Facts::default()
    }
}

/// The first of the longest bursts. O(events).
fn burst(trace: &Trace) -> Option<Burst> {
    let (mut from, mut length) = (0, 0_u64);
    let mut longest: Option<(u64, u64)> = None;
    for event in trace.iter() {
        match event.op {
            Op::Alloc => {
                if length == 0 {
                    from = event.seq;
                }
                length += 1;
                if longest.is_none_or(|(_, most)| length > most) {
                    longest = Some((from, length));
                }
            }
            Op::Free => length = 0,
            Op::Resize | Op::Access => {}
        }
    }
    let (from, allocations) = longest?;
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut left = allocations;
    for event in trace.iter().skip(from as usize) {
        if left == 0 {
            break;
        }
        if event.op == Op::Alloc {
            *counts.entry(event.size).or_default() += 1;
            left -= 1;
        }
    }
    let most = counts
        .into_iter()
        .max_by_key(|&(size, count)| (count, std::cmp::Reverse(size)));
    Some(Burst {
        allocations,
        from: Some(from),
        size: most.map(|(size, _)| size),
    })
}
