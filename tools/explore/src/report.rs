//! The document behind the report page, and the page itself.
//!
//! The form of the document is `report.schema.json` of `metes-ui`; the page is one file
//! that holds style, script and data and asks the network for nothing.
//!
//! Invariant: every figure in a document was computed for it.

mod beside;
mod interleaved;

use std::collections::HashSet;
use std::time::SystemTime;

use metes_heap::bounds::Demand;
use metes_trace::{Profile, Trace};
use serde::{Deserialize, Serialize};

use crate::choose::Choice;
use crate::compare::Compared;
use crate::outcome::Outcome;
use crate::pareto;
use crate::proven::{bounded, proven};
use crate::replay::Options;
use crate::search::{Budget, Exploration, Sampled, Unfinished};
use crate::target::Target;
use crate::terms::{Rule, Terms};

pub use beside::{Beside, BesideRow, Missing, Ratios, Took};
pub use interleaved::{HeapOver, Interleaved, LiveOver, Sharing, Spread, Taken, ThreadFigures};

/// Most points of a curve in the page.
const POINTS: usize = 2000;

/// What the page shows. Sizes in bytes, times in seconds, cycles modelled.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Document {
    pub version: u32,
    pub title: String,
    pub command: Vec<String>,
    pub created: String,
    pub host: String,
    pub trace: TraceFigures,
    pub profile: ProfileFigures,
    pub heaps: Vec<HeapFigures>,
    pub configurations: Configurations,
    pub chosen: Option<Chosen>,
    pub guarantee: Option<GuaranteeFigures>,
    pub beside: Option<Beside>,
    pub interleaved: Option<Interleaved>,
    pub curves: Vec<NamedCurve>,
    pub assumptions: Vec<String>,
}

/// Figures of the trace.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct TraceFigures {
    pub events: u64,
    pub allocations: u64,
    pub frees: u64,
    pub resizes: u64,
    pub threads: u32,
    pub peak_live: u64,
    pub peak_blocks: u64,
    pub seconds: f64,
    pub deterministic: Option<bool>,
}

/// Figures of the profile.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct ProfileFigures {
    pub sizes: Vec<SizeFigures>,
    pub live: Vec<(u64, u64)>,
    pub lifetimes: Vec<Lifetimes>,
    pub bursts: Bursts,
    pub demand: DemandFigures,
}

/// What a bound on a heap's memory is of: every program that keeps to this.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct DemandFigures {
    pub live: u64,
    pub largest: u64,
    pub smallest: u64,
    pub alignment: u64,
    pub resizes: bool,
}

impl DemandFigures {
    /// Of a program that asks for nothing.
    pub const NONE: DemandFigures = DemandFigures {
        live: 0,
        largest: 1,
        smallest: 1,
        alignment: 1,
        resizes: false,
    };

    /// The demand of a profile. O(sizes and alignments).
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let smallest = profile.sizes.first().map_or(1, |size| size.size.max(1));
        let aligns = profile.aligns.iter().map(|align| u64::from(align.align));
        DemandFigures {
            live: profile.peak_live,
            largest: profile.largest.max(1),
            smallest,
            alignment: aligns.max().unwrap_or(1).max(1),
            resizes: profile.resizes > 0,
        }
    }

    /// As the bounds take it.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let mut demand = Demand::new(self.live, self.largest, self.smallest);
        demand.alignment = self.alignment;
        demand.resized_in_place = self.resizes;
        demand
    }
}

/// Figures of one size.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct SizeFigures {
    pub size: u64,
    pub allocations: u64,
    pub frees: u64,
    pub mean_life_events: Option<f64>,
    pub peak_blocks: u64,
    pub peak_bytes: u64,
}

/// Blocks that lived up to so many events.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Lifetimes {
    pub upto: Option<u64>,
    pub count: u64,
}

/// Runs of allocations and of frees.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Bursts {
    pub bursts: u64,
    pub longest_allocations: u64,
    pub mean_allocations: Option<f64>,
    pub longest_frees: u64,
    pub mean_frees: Option<f64>,
}

/// Figures of one heap.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct HeapFigures {
    pub name: String,
    pub spec: String,
    pub kind: &'static str,
    pub footprint: u64,
    pub smallest_arena: Option<u64>,
    pub failed: u64,
    pub cycles_mean: f64,
    pub cycles_max: u64,
    pub own_cycles_max: u64,
    pub copy_cycles_max: u64,
    pub record_reads: u64,
    pub record_writes: u64,
    pub record_bytes: u64,
    pub pareto: bool,
    pub chosen: bool,
    pub bounds: Option<BoundFigures>,
    pub guarantee: Option<u64>,
}

/// What is proven of a heap.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct BoundFigures {
    pub time: TimeFigures,
    pub heap_bytes: Option<u64>,
    pub formula: Option<String>,
    pub citation: Option<String>,
}

/// What the chosen heap guarantees, and what that costs.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct GuaranteeFigures {
    pub bytes: Option<u64>,
    pub demand: GuaranteeDemand,
    pub useful: bool,
    pub limit: u64,
    pub rule: Rule,
    pub sentence: String,
    pub necessary: u64,
    pub footprint: Option<u64>,
    pub without: Option<WithoutFigures>,
}

/// What a guarantee is of.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct GuaranteeDemand {
    pub live: u64,
    pub max_block: u64,
    pub min_block: u64,
    pub alignment: u64,
    pub resizes: bool,
}

/// The heap that would have been chosen without a guarantee.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct WithoutFigures {
    pub spec: String,
    pub footprint: u64,
    pub cycles_mean: f64,
    pub bytes: Option<u64>,
}

impl GuaranteeFigures {
    /// Of what was searched for under some terms.
    pub fn of(terms: &Terms, choice: Option<&Choice>) -> Self {
        let Demand {
            live,
            largest,
            smallest,
            alignment,
            resized_in_place,
            ..
        } = terms.demand;
        let bytes = choice.and_then(|choice| choice.outcome.guarantee);
        let without = choice.and_then(|choice| choice.without.as_ref());
        GuaranteeFigures {
            bytes,
            demand: GuaranteeDemand {
                live,
                max_block: largest,
                min_block: smallest,
                alignment,
                resizes: resized_in_place,
            },
            useful: terms.useful(bytes),
            limit: terms.limit,
            rule: terms.rule,
            sentence: terms.sentence(),
            necessary: terms.necessary,
            footprint: choice.map(|choice| choice.outcome.footprint),
            without: without.map(|heap| WithoutFigures {
                spec: heap.heap.clone(),
                footprint: heap.footprint,
                cycles_mean: heap.cycles_mean,
                bytes: heap.guarantee,
            }),
        }
    }
}

/// Proven time of each operation.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct TimeFigures {
    pub allocate: String,
    pub free: String,
    pub resize: String,
}

/// All configurations that were replayed to the end.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Configurations {
    pub columns: [&'static str; 3],
    pub rows: Vec<(u64, f64, u64)>,
    pub specs: Vec<String>,
    pub evaluated: u64,
    pub distinct: u64,
    pub space: u64,
    pub seconds: f64,
    pub pareto: Vec<usize>,
    pub bounded: u64,
    pub sampled: Option<Sampled>,
    pub unfinished: Vec<Unfinished>,
}

/// The chosen heap, predicted and, where it was run, measured.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Chosen {
    pub spec: String,
    pub toml: String,
    pub why: String,
    pub curve: Vec<(u64, u64, u64)>,
    pub predicted: Usage,
    pub measured: Option<Usage>,
    pub equal: Option<bool>,
    pub placements: Option<PlacementFigures>,
    pub emitted: Vec<String>,
}

/// Peak of live bytes, and footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct Usage {
    pub peak_live: u64,
    pub footprint: u64,
}

/// Whether every block lay where it was predicted.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct PlacementFigures {
    pub events: u64,
    pub equal: bool,
    pub first_difference: Option<serde_json::Value>,
}

/// A footprint over the events.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "report.schema.json says each field")]
pub struct NamedCurve {
    pub name: String,
    pub points: Vec<(u64, u64)>,
}

/// All that a document is made of.
#[derive(Clone, Copy, Debug)]
pub struct Material<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its profile.
    pub profile: &'a Profile,
    /// Whether two recordings agreed; `None` when not checked.
    pub deterministic: Option<bool>,
    /// What the search found, by which rules.
    pub exploration: &'a Exploration,
    /// Its budget.
    pub budget: &'a Budget,
    /// How the trace was replayed.
    pub options: &'a Options,
    /// The named heaps and the chosen one, compared.
    pub compared: &'a [Compared],
    /// The chosen heap.
    pub choice: Option<&'a Choice>,
}

impl Document {
    /// The document of an exploration. What was measured and emitted afterwards
    /// is filled into [`chosen`](Document::chosen), [`beside`](Document::beside) and
    /// [`interleaved`](Document::interleaved) by who did it.
    pub fn new(material: &Material<'_>) -> Self {
        let Material { trace, profile, .. } = *material;
        let provenance = &trace.provenance;
        let program = match provenance.command.first() {
            Some(program) => program.rsplit('/').next().unwrap_or(program).to_owned(),
            None => "an imported trace".to_owned(),
        };
        Document {
            version: 1,
            title: format!("A heap for {program}"),
            command: provenance.command.clone(),
            created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            host: provenance.host.clone(),
            trace: TraceFigures {
                events: profile.allocations + profile.frees + profile.resizes,
                allocations: profile.allocations,
                frees: profile.frees,
                resizes: profile.resizes,
                threads: profile.threads,
                peak_live: profile.peak_live,
                peak_blocks: profile.peak_blocks,
                seconds: profile.duration_ns as f64 / 1e9,
                deterministic: material.deterministic,
            },
            profile: ProfileFigures::of(profile),
            heaps: material.heaps(),
            configurations: Configurations::of(
                material.exploration,
                profile,
                material.options.arena.target,
            ),
            chosen: material.chosen(),
            guarantee: (material.budget.terms)
                .map(|terms| GuaranteeFigures::of(&terms, material.choice)),
            beside: None,
            interleaved: None,
            curves: material.curves(),
            assumptions: material.assumptions(),
        }
    }

    /// The page: one file that opens from disk.
    ///
    /// # Errors
    /// When the document cannot be written as JSON (a number that is none).
    pub fn page(&self) -> serde_json::Result<String> {
        Ok(page_of(&serde_json::to_string(self)?))
    }
}

/// Why there is no page of a document.
#[derive(Debug, thiserror::Error)]
pub enum NoPage {
    /// It is something else.
    #[error("it is no report document of version 1")]
    Version,
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The page of a document that was written before, from its text. O(bytes).
///
/// # Errors
/// [`NoPage`] for what is no document of this version.
pub fn page_again(json: &str) -> Result<String, NoPage> {
    let document: serde_json::Value = serde_json::from_str(json)?;
    match document.get("version").and_then(serde_json::Value::as_u64) {
        Some(1) => Ok(page_of(json)),
        _ => Err(NoPage::Version),
    }
}

/// The page around a document that is JSON text already.
fn page_of(json: &str) -> String {
    metes_ui::REPORT.fill(json)
}

impl ProfileFigures {
    /// Those of a profile.
    pub fn of(profile: &Profile) -> Self {
        let sizes = profile.sizes.iter().map(|size| SizeFigures {
            size: size.size,
            allocations: size.allocations,
            frees: size.frees,
            mean_life_events: size.mean_lifespan_events,
            peak_blocks: size.peak_live,
            peak_bytes: size.peak_live.saturating_mul(size.size),
        });
        let buckets = profile.lifespan_events.buckets.iter();
        let lifetimes = buckets
            .filter(|bucket| bucket.count > 0)
            .map(|bucket| Lifetimes {
                // A bucket holds the values from its own up to twice that.
                upto: Some((2 * bucket.from).saturating_sub(1)),
                count: bucket.count,
            });
        let (allocations, frees) = (&profile.allocation_bursts, &profile.free_bursts);
        ProfileFigures {
            sizes: sizes.collect(),
            live: profile
                .curve
                .iter()
                .map(|point| (point.seq, point.live))
                .collect(),
            lifetimes: lifetimes.collect(),
            bursts: Bursts {
                bursts: allocations.count,
                longest_allocations: allocations.longest,
                mean_allocations: allocations.mean(),
                longest_frees: frees.longest,
                mean_frees: frees.mean(),
            },
            demand: DemandFigures::of(profile),
        }
    }
}

impl Configurations {
    fn of(exploration: &Exploration, profile: &Profile, target: Target) -> Self {
        let able: Vec<&Outcome> = exploration
            .outcomes
            .iter()
            .filter(|outcome| outcome.failed == 0)
            .collect();
        let points: Vec<_> = able.iter().map(|outcome| outcome.objectives()).collect();
        // Of equal outcomes the first stands for all, as everywhere they are counted.
        let mut met = HashSet::new();
        let mut front = pareto::front(&points);
        front.retain(|&index| met.insert(points[index]));
        Configurations {
            columns: ["footprint", "cycles", "cycles_max"],
            rows: able
                .iter()
                .map(|outcome| (outcome.footprint, outcome.cycles_mean, outcome.cycles_max))
                .collect(),
            specs: able.iter().map(|outcome| outcome.heap.clone()).collect(),
            evaluated: exploration.configurations,
            distinct: exploration.distinct,
            space: exploration.space,
            seconds: exploration.seconds,
            pareto: front,
            bounded: bounded(&exploration.pareto, profile, target) as u64,
            sampled: exploration.sampled,
            unfinished: exploration.unfinished.clone(),
        }
    }
}

impl Material<'_> {
    fn is_chosen(&self, heap: &Compared) -> bool {
        self.choice
            .is_some_and(|choice| choice.outcome.description == heap.description)
    }

    fn heaps(&self) -> Vec<HeapFigures> {
        let named = crate::catalogue();
        self.compared
            .iter()
            .map(|heap| {
                let Compared {
                    description,
                    replay,
                    ..
                } = heap;
                let objectives = [replay.footprint, replay.cycles, replay.cycles_max];
                let found = &self.exploration.pareto;
                HeapFigures {
                    name: replay.heap.clone(),
                    spec: self.options.arena.config(*description).name(),
                    kind: match named.iter().any(|own| own.description == *description) {
                        true => "named",
                        false => "explored",
                    },
                    footprint: replay.footprint,
                    smallest_arena: replay.smallest_arena,
                    failed: replay.failed,
                    cycles_mean: replay.cycles_mean,
                    cycles_max: replay.cycles_max,
                    own_cycles_max: replay.own_cycles_max,
                    copy_cycles_max: replay.copy_cycles_max,
                    record_reads: replay.record_reads,
                    record_writes: replay.record_writes,
                    record_bytes: replay.record_bytes,
                    pareto: found
                        .iter()
                        .any(|outcome| outcome.objectives() == objectives),
                    chosen: self.is_chosen(heap),
                    bounds: self.bounds(heap),
                    guarantee: self
                        .budget
                        .terms
                        .and_then(|terms| terms.guarantee(description)),
                }
            })
            .collect()
    }

    /// What is proven for the demand that the trace makes.
    fn bounds(&self, heap: &Compared) -> Option<BoundFigures> {
        let control = heap.replay.control_bytes;
        let bound = proven(
            &heap.description,
            control,
            self.profile,
            self.options.arena.target,
        )?;
        Some(BoundFigures {
            time: TimeFigures {
                allocate: bound.time.allocate.to_string(),
                free: bound.time.free.to_string(),
                resize: bound.time.resize.to_string(),
            },
            heap_bytes: bound
                .heap_bytes
                .map(|pools| self.with_mapped(pools))
                .and_then(|bytes| u64::try_from(bytes).ok()),
            formula: Some(bound.formula().as_str().to_owned()).filter(|text| !text.is_empty()),
            citation: Some(bound.citation().to_owned()),
        })
    }

    /// The bound on all that a heap takes, from that on its pools.
    fn with_mapped(&self, pools: u128) -> u128 {
        match self.options.arena.mapped() {
            Some(from) if self.profile.largest >= from as u64 => {
                metes_heap::mapped::most(from, pools, self.profile.peak_live)
            }
            _ => pools,
        }
    }

    fn chosen(&self) -> Option<Chosen> {
        let choice = self.choice?;
        let heap = self.compared.iter().find(|heap| self.is_chosen(heap))?;
        Some(Chosen {
            spec: self.options.arena.config(heap.description).name(),
            toml: self.options.arena.config(heap.description).to_toml(),
            why: choice.why.clone(),
            curve: thin(&heap.curve),
            predicted: Usage {
                peak_live: heap.replay.peak_live,
                footprint: heap.replay.footprint,
            },
            measured: None,
            equal: None,
            placements: None,
            emitted: Vec::new(),
        })
    }

    fn curves(&self) -> Vec<NamedCurve> {
        let curve = |heap: &Compared| NamedCurve {
            name: heap.replay.heap.clone(),
            points: thin(&heap.curve)
                .into_iter()
                .map(|(event, footprint, _)| (event, footprint))
                .collect(),
        };
        self.compared.iter().map(curve).collect()
    }

    fn assumptions(&self) -> Vec<String> {
        let Options { arena, cost } = self.options;
        let Exploration { beaten, slow, .. } = self.exploration;
        let mut list = vec![
            cost.sentence(),
            format!(
                "Footprint: each general pool grows by multiples of {} bytes and never shrinks; \
                 slabs and their table are counted.",
                arena.increment
            ),
            match arena.mapped() {
                Some(from) => format!(
                    "Blocks of {from} bytes and more are mappings of their own: footprint counts \
                     their pages and the table of them, cycles the system calls and the first use of \
                     pages. The smallest arena has none."
                ),
                None => "No block is a mapping of its own.".to_owned(),
            },
            "Requests of size 0 are served as size 1; payloads are aligned to 16 bytes or more."
                .to_owned(),
            "The smallest arena is the smallest found by bisection, each pool alone; it was \
             replayed with success, and is not proven smallest."
                .to_owned(),
            format!(
                "Of the configurations, {beaten} were beaten in all three metrics before their \
                 replay ended and are not drawn."
            ),
        ];
        if *slow > 0 {
            list.push(format!(
                "{slow} configurations cost more than {} times the cycles of the fastest named \
                 heap and were given up.",
                self.budget.patience
            ));
        }
        list.push(
            "Cycles of an operation include the copy of a block that a resize moves; \
             copying takes time in proportion to the block, whatever the heap."
                .to_owned(),
        );
        let front = self.exploration.pareto.len();
        list.push(format!(
            "{} of {front} unbeaten heaps have a finite proven bound on their memory; of the others \
             none is known.",
            bounded(&self.exploration.pareto, self.profile, arena.target),
        ));
        if arena
            .mapped()
            .is_some_and(|from| self.profile.largest >= from as u64)
        {
            list.push(
                "Proven bounds on memory count the pages of mapped blocks beside those of the pools, \
                 which a formula is of; no bound on time holds for calls that map, move or unmap pages."
                    .to_owned(),
            );
        }
        if let Some(sampled) = self.exploration.sampled {
            list.push(format!(
                "The trace was too long to replay every heap whole in the budget: {} configurations \
                 were replayed on {} windows of it, {} events with what sets a heap up, and {} whole. \
                 Every figure shown is of a whole replay; of the {} that nothing beats on the windows, \
                 {} were replayed whole.",
                sampled.configurations,
                sampled.windows,
                sampled.events,
                self.exploration.configurations,
                sampled.unbeaten,
                sampled.confirmed,
            ));
        }
        list.extend(self.exploration.unfinished.iter().map(Unfinished::sentence));
        let without = self
            .compared
            .iter()
            .filter(|one| one.replay.smallest_arena.is_none());
        if without.clone().next().is_some() {
            let names: Vec<&str> = without.map(|one| one.replay.heap.as_str()).collect();
            list.push(format!(
                "The smallest arena was not found in the budget, or not looked for because it \
                 takes long, of: {}.",
                names.join(", ")
            ));
        }
        if self.exploration.interrupted {
            list.push(
                "The search was stopped by hand; it shows what was found by then.".to_owned(),
            );
        }
        if self.profile.threads > 1 {
            list.push(format!(
                "{} threads made requests; their order differs from run to run, so placements \
                 and footprint of a run may differ from the prediction.",
                self.profile.threads
            ));
        }
        let unknown = self.trace.provenance.unknown_blocks;
        if unknown > 0 {
            list.push(format!(
                "{unknown} frees and resizes of blocks from before the recording were left out."
            ));
        }
        list
    }
}

/// A step function with fewer points: of each stretch the last one, which for a
/// footprint is also the largest.
fn thin(curve: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
    let stride = curve.len().div_ceil(POINTS).max(1);
    curve
        .chunks(stride)
        .filter_map(|stretch| stretch.last().copied())
        .collect()
}
