//! `metes device bench`: every figure of every heap on the same workloads, in one run.
//!
//! Invariant: what is not measured is `None`, and nothing is printed that was not computed here.

use std::collections::BTreeMap;

use metes_step::Stepper;
use rayon::prelude::*;
use serde::Serialize;

use super::measure::{Calls, Instructions, Measured, Which, clock};
use super::named::BEST_FIT;
use super::workload::{Request, Workload, live, log_uniform, serving, uniform};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Seeds of every generated workload.
    pub seeds: u64,
    /// Exchanges of a block, and half as many steps of serving.
    pub exchanges: usize,
    /// Calls whose instructions are counted, a workload.
    pub counted: usize,
    /// Most live blocks of which calls are counted, from 10 on by factors of ten.
    pub live: u32,
    /// Replays that are timed.
    pub replays: usize,
}

impl Effort {
    /// Minutes.
    pub const WHOLE: Effort = Effort {
        seeds: 24,
        exchanges: 10_000,
        counted: 1000,
        live: 1_000_000,
        replays: 9,
    };
    /// Seconds.
    pub const QUICK: Effort = Effort {
        seeds: 4,
        exchanges: 2000,
        counted: 100,
        live: 10_000,
        replays: 3,
    };
}

/// Caps under which moves of pages are counted, in percent of the peak.
pub const CAPS: [u64; 3] = [102, 108, 115];
/// Free blocks that refuse.
pub const FREE_BLOCKS: [usize; 4] = [100, 1000, 10_000, 50_000];
/// Moments that pictures over time have.
const MOMENTS: usize = 50;

/// A workload as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadFigures {
    /// Its name.
    pub workload: String,
    /// Requests, of the first seed.
    pub requests: usize,
    /// Most blocks live at a time, of the first seed.
    pub blocks: usize,
    /// Most bytes live at a time, of the first seed.
    pub peak_live: u64,
    /// How many were generated; 1 of a recorded program.
    pub seeds: u64,
}

/// Most instructions of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Most {
    /// Of an allocation, served or refused.
    pub allocate: u64,
    /// Of a free.
    pub free: u64,
}

/// Instructions that no call can exceed; none where the code has a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BoundFigures {
    /// Of an allocation, served or refused.
    pub allocate: Option<u64>,
    /// Of an allocation at a multiple of any power of two; none, too, of heaps that take no
    /// alignments.
    pub allocate_aligned: Option<u64>,
    /// Of a free.
    pub free: Option<u64>,
}

/// Instructions of a kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CallFigures {
    /// How many were counted.
    pub counted: u64,
    /// Of one in the mean.
    pub mean: Option<f64>,
    /// Most of one.
    pub most: u64,
}

impl From<Calls> for CallFigures {
    fn from(calls: Calls) -> Self {
        CallFigures {
            counted: calls.count,
            mean: calls.mean(),
            most: calls.most,
        }
    }
}

/// Instructions on the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// Allocations that were served.
    pub allocate: CallFigures,
    /// Allocations that were refused.
    pub refuse: CallFigures,
    /// Frees.
    pub free: CallFigures,
}

/// Most instructions while so many blocks are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ByLive {
    /// Blocks.
    pub live_blocks: u32,
    /// Most of an allocation.
    pub allocate: u64,
    /// Most of a free.
    pub free: u64,
}

/// Instructions of a refusal while so many blocks are free and one granule too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ByFree {
    /// Blocks.
    pub free_blocks: usize,
    /// Of the refusal.
    pub refuse: u64,
}

/// A figure over another's, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Mean of the ratios.
    pub mean: f64,
    /// Of that mean, were the seeds drawn anew; none of one seed.
    pub standard_error: Option<f64>,
}

impl Compared {
    /// `None` of no values, or of different numbers of them.
    fn of(values: &[f64], others: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() || values.len() != others.len() {
            return None;
        }
        let ratios: Vec<f64> = values.iter().zip(others).map(|(a, b)| a / b).collect();
        let mean = ratios.iter().sum::<f64>() / count;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        Some(Compared {
            mean,
            standard_error: (ratios.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()),
        })
    }
}

/// Moves of pages under a cap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveFigures {
    /// On which workload.
    pub workload: String,
    /// The cap over the peak.
    pub cap_ratio: f64,
    /// Moves an allocation; none where the cap does not suffice.
    pub per_allocation: Option<f64>,
    /// Most moves of one allocation.
    pub most: Option<u64>,
}

/// Seconds of a call: the least of all replays, without what reading the clock takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Of half of the calls.
    pub median: f64,
    /// Of 99 of 100.
    pub percentile_99: f64,
    /// Of all.
    pub most: f64,
    /// In the mean.
    pub mean: f64,
}

/// Times on the paper's benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeFigures {
    /// Of allocations.
    pub allocate: Latency,
    /// Of frees.
    pub free: Latency,
    /// Both means together over those of the first heap.
    pub ratio: Option<f64>,
    /// Medians of allocations of equal parts of the run, from its beginning.
    pub allocate_over_time: Vec<f64>,
    /// Medians of frees of equal parts of the run, from its beginning.
    pub free_over_time: Vec<f64>,
}

/// Bytes over the paper's benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProvisionedFigures {
    /// Most bytes provisioned over most bytes used.
    pub ratio: f64,
    /// Bytes used, over time.
    pub used: Vec<u64>,
    /// Bytes provisioned, over time.
    pub provisioned: Vec<u64>,
}

/// All figures of a heap.
#[derive(Clone, Debug, Serialize)]
pub struct HeapFigures {
    /// Its name.
    pub heap: String,
    /// Where its records are.
    pub store: String,
    /// Most instructions of all calls that were counted, refusals included.
    pub instructions_max: Option<Most>,
    /// The longest paths through the code: a bound over every history.
    pub instructions_bound: Option<BoundFigures>,
    /// Instructions on the workloads.
    pub instructions: Option<Counts>,
    /// Most instructions by live blocks.
    pub by_live: Vec<ByLive>,
    /// Instructions of a refusal by free blocks.
    pub by_free: Vec<ByFree>,
    /// Smallest arena (of pages: smallest cap) over the peak: mean over the seeds. None where 8
    /// times the peak did not suffice for one of them.
    pub arena_ratio: BTreeMap<String, Option<f64>>,
    /// Smallest arena over the peak, of the worst seed. None where 8 times the peak did not suffice
    /// for one.
    pub arena_ratio_worst: BTreeMap<String, Option<f64>>,
    /// Smallest arena over the peak, of every seed; empty where one is none.
    #[serde(skip)]
    pub arena_ratios: BTreeMap<String, Vec<f64>>,
    /// Its arenas over those of best fit, seed by seed; empty where that is not measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arena_over_best_fit: BTreeMap<String, Compared>,
    /// What pages do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MoveFigures>,
    /// Times.
    pub time: Option<TimeFigures>,
    /// Bytes over time.
    pub provisioned: Option<ProvisionedFigures>,
    /// Host memory for each block at the peak of the paper's benchmark; none where it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_bytes_per_block: Option<f64>,
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// On what.
    pub workloads: Vec<WorkloadFigures>,
    /// Of what.
    pub heaps: Vec<HeapFigures>,
    /// What reading the clock twice takes, in seconds; it is subtracted.
    pub clock: f64,
    /// What was checked and does not hold.
    pub contradicted: Vec<String>,
    /// What a reader must know.
    pub assumptions: Vec<String>,
}

/// A workload of every seed.
type Seeds = Vec<Workload>;
/// The smallest arenas of the first seed of every workload.
type Arenas = Vec<Option<u64>>;

/// Generated workloads, and recorded ones behind them.
fn workloads(effort: Effort, recorded: Vec<Workload>) -> Vec<Seeds> {
    let Effort {
        seeds, exchanges, ..
    } = effort;
    let all = |make: &(dyn Fn(u64) -> Workload + Sync)| -> Seeds {
        (1..=seeds).into_par_iter().map(make).collect()
    };
    let mut found = vec![
        all(&|seed| uniform(100, exchanges, seed)),
        all(&|seed| log_uniform(1000, exchanges, seed)),
        all(&|seed| serving(exchanges / 2, true, seed)),
        all(&|seed| serving(exchanges / 2, false, seed)),
    ];
    found.extend(recorded.into_iter().map(|workload| vec![workload]));
    found
}

/// Measures `heaps` on the generated workloads and the `recorded` ones. `taken` says how many
/// bytes of host memory are taken, where that is known; `tell` is told what is done.
pub fn bench(
    heaps: &[Box<dyn Measured>],
    recorded: Vec<Workload>,
    effort: Effort,
    taken: Option<fn() -> u64>,
    tell: &dyn Fn(&str),
) -> Bench {
    tell("generating workloads");
    let workloads = workloads(effort, recorded);
    let (mut figures, arenas): (Vec<HeapFigures>, Vec<Arenas>) = heaps
        .iter()
        .map(|heap| {
            tell(&format!("{}: memory", heap.name()));
            of_memory(&**heap, &workloads, taken)
        })
        .unzip();
    compare(&mut figures);
    let mut assumptions = assumptions(effort);
    match Stepper::new() {
        Err(error) => assumptions.push(format!("no instructions were counted: {error}")),
        Ok(mut stepper) => {
            for ((heap, arenas), figures) in heaps.iter().zip(&arenas).zip(&mut figures) {
                if heap.counted() {
                    tell(&format!("{}: instructions", heap.name()));
                    count(&**heap, &mut stepper, (&workloads, arenas), effort, figures);
                }
            }
        }
    }
    tell("times");
    let clock = clock();
    let arenas: Vec<Option<u64>> = arenas.iter().map(|arenas| arenas[0]).collect();
    let benchmark = (&workloads[0][0], &arenas[..]);
    time(heaps, benchmark, effort.replays, clock, &mut figures);
    Bench {
        contradicted: contradictions(heaps, &figures),
        workloads: workloads.iter().map(shown).collect(),
        heaps: figures,
        clock: f64::from(clock) * 1e-9,
        assumptions,
    }
}

fn assumptions(effort: Effort) -> Vec<String> {
    vec![
        "heaps for devices: records outside the memory, granules of 256 bytes; `tlsf` tries 4 blocks of the \
         request's own class first. The `tlsf` of `metes replay` is the host's, with boundary tags and granules \
         of 16 bytes, and tries none: its figures are other ones"
            .to_owned(),
        format!(
            "generated workloads: {} seeds each; requests are multiples of 256 bytes",
            effort.seeds
        ),
        "arena: the smallest in steps of half a percent that serves the whole workload, over the \
         peak of live bytes; of pages the smallest cap, exactly"
            .to_owned(),
        format!(
            "instructions: the call and its return included, by single-stepping; about {} calls a \
             workload, half in the smallest arena and half in half the peak, where \
             some are refused",
            effort.counted
        ),
        format!(
            "times: of each request the least of {} replays, heaps in turn, without what reading \
             the clock takes; compare them within a run only",
            effort.replays
        ),
        "provisioned: the bytes up to the highest block so far, when the heap may grow as it \
         likes; of pages those that were created at the smallest cap"
            .to_owned(),
    ]
}

fn shown(seeds: &Seeds) -> WorkloadFigures {
    WorkloadFigures {
        workload: seeds[0].name.clone(),
        requests: seeds[0].requests.len(),
        blocks: seeds[0].blocks,
        peak_live: seeds[0].peak,
        seeds: seeds.len() as u64,
    }
}

fn of_memory(
    heap: &dyn Measured,
    workloads: &[Seeds],
    taken: Option<fn() -> u64>,
) -> (HeapFigures, Arenas) {
    let mut first = Vec::new();
    let mut arena_ratio = BTreeMap::new();
    let mut arena_ratio_worst = BTreeMap::new();
    let mut arena_ratios = BTreeMap::new();
    let mut moves = Vec::new();
    for seeds in workloads {
        let arenas: Vec<Option<u64>> = seeds
            .par_iter()
            .map(|workload| heap.smallest_arena(workload))
            .collect();
        first.push(arenas[0]);
        let ratio = |(bytes, workload): (Option<u64>, &Workload)| {
            Some(bytes? as f64 / workload.peak as f64)
        };
        let ratios: Option<Vec<f64>> = arenas.into_iter().zip(seeds).map(ratio).collect();
        let name = &seeds[0].name;
        let mean = ratios
            .as_ref()
            .map(|all| all.iter().sum::<f64>() / all.len() as f64);
        let all = ratios.as_deref().unwrap_or_default();
        let worst = all.iter().copied().reduce(f64::max);
        arena_ratio.insert(name.clone(), mean);
        arena_ratio_worst.insert(name.clone(), worst);
        arena_ratios.insert(name.clone(), all.to_vec());
        moves.extend(of_pages(heap, &seeds[0]));
    }
    let benchmark = &workloads[0][0];
    let host = taken
        .zip(first[0])
        .and_then(|(taken, bytes)| heap.host_bytes(benchmark, bytes, taken));
    let figures = HeapFigures {
        heap: heap.name().to_owned(),
        store: heap.store().to_owned(),
        instructions_max: None,
        instructions_bound: heap.bounds().map(|bounds| BoundFigures {
            allocate: bounds.allocate,
            allocate_aligned: bounds.allocate_aligned,
            free: bounds.free,
        }),
        instructions: None,
        by_live: Vec::new(),
        by_free: Vec::new(),
        arena_ratio,
        arena_ratio_worst,
        arena_ratios,
        arena_over_best_fit: BTreeMap::new(),
        moves,
        time: None,
        provisioned: provisioned(heap, benchmark),
        host_bytes_per_block: host.map(|bytes| bytes as f64 / benchmark.blocks as f64),
    };
    (figures, first)
}

/// Puts every heap beside best fit, where that is measured.
fn compare(figures: &mut [HeapFigures]) {
    let best = figures.iter().find(|heap| heap.heap == BEST_FIT);
    let Some(best) = best.map(|heap| heap.arena_ratios.clone()) else {
        return;
    };
    for heap in figures.iter_mut().filter(|heap| heap.heap != BEST_FIT) {
        for (workload, ratios) in &heap.arena_ratios {
            if let Some(compared) = Compared::of(ratios, &best[workload]) {
                heap.arena_over_best_fit.insert(workload.clone(), compared);
            }
        }
    }
}

/// What pages do under each cap; nothing of heaps without.
fn of_pages(heap: &dyn Measured, workload: &Workload) -> Vec<MoveFigures> {
    if heap.moves(workload, 2 * workload.peak).is_none() {
        return Vec::new();
    }
    CAPS.map(|percent| {
        let moves = heap.moves(workload, workload.peak / 100 * percent);
        MoveFigures {
            workload: workload.name.clone(),
            cap_ratio: percent as f64 / 100.0,
            per_allocation: moves.map(|moves| moves.moved as f64 / moves.allocations as f64),
            most: moves.map(|moves| moves.most),
        }
    })
    .to_vec()
}

fn provisioned(heap: &dyn Measured, workload: &Workload) -> Option<ProvisionedFigures> {
    let moments = heap.provisioned(workload)?;
    let used = moments.iter().map(|moment| moment.used);
    let provisioned = moments.iter().map(|moment| moment.provisioned);
    let ratio = provisioned.max()? as f64 / used.max()? as f64;
    let shown = moments.chunks(moments.len().div_ceil(MOMENTS));
    let last: Vec<_> = shown.filter_map(|chunk| chunk.last()).collect();
    Some(ProvisionedFigures {
        ratio,
        used: last.iter().map(|moment| moment.used).collect(),
        provisioned: last.iter().map(|moment| moment.provisioned).collect(),
    })
}

fn count(
    heap: &dyn Measured,
    stepper: &mut Stepper,
    (workloads, arenas): (&[Seeds], &Arenas),
    effort: Effort,
    figures: &mut HeapFigures,
) {
    let mut on_workloads = Instructions::default();
    for (seeds, &tight) in workloads.iter().zip(arenas) {
        let workload = &seeds[0];
        let which = Which {
            from: 0,
            most: effort.counted.div_ceil(2),
        };
        for bytes in [tight, Some(workload.peak / 2)].into_iter().flatten() {
            if let Some(counted) = heap.instructions(stepper, workload, bytes, which) {
                on_workloads.join(counted);
            }
        }
    }
    let mut all = on_workloads;
    let sizes = (1..).map(|power| 10_u32.pow(power));
    for blocks in sizes.take_while(|&blocks| blocks <= effort.live) {
        let exchanges = effort.counted.div_ceil(8);
        let workload = live(blocks, exchanges, 1);
        let which = Which {
            from: blocks as usize,
            most: 2 * exchanges,
        };
        if let Some(counted) = heap.instructions(stepper, &workload, 2 * workload.peak, which) {
            figures.by_live.push(ByLive {
                live_blocks: blocks,
                allocate: counted.allocate.most.max(counted.refuse.most),
                free: counted.free.most,
            });
            all.join(counted);
        }
    }
    let mut most = Most {
        allocate: all.allocate.most.max(all.refuse.most),
        free: all.free.most,
    };
    for free_blocks in FREE_BLOCKS {
        if let Some(refuse) = heap.refusal(stepper, free_blocks) {
            figures.by_free.push(ByFree {
                free_blocks,
                refuse,
            });
            most.allocate = most.allocate.max(refuse);
        }
    }
    figures.instructions_max = Some(most);
    figures.instructions = Some(Counts {
        allocate: on_workloads.allocate.into(),
        refuse: on_workloads.refuse.into(),
        free: on_workloads.free.into(),
    });
}

fn time(
    heaps: &[Box<dyn Measured>],
    (workload, arenas): (&Workload, &[Option<u64>]),
    replays: usize,
    clock: u32,
    figures: &mut [HeapFigures],
) {
    let mut least: Vec<Option<Vec<u32>>> = vec![None; heaps.len()];
    for _ in 0..replays {
        for ((heap, arena), least) in heaps.iter().zip(arenas).zip(&mut least) {
            let times = arena.and_then(|bytes| heap.times(workload, bytes));
            match (least.as_mut(), times) {
                (Some(least), Some(times)) => least
                    .iter_mut()
                    .zip(times)
                    .for_each(|(least, time)| *least = (*least).min(time)),
                (None, Some(times)) => *least = Some(times),
                (_, None) => {}
            }
        }
    }
    for (figures, least) in figures.iter_mut().zip(least) {
        figures.time = least.map(|times| time_figures(workload, &times, clock));
    }
    let mean = |time: &TimeFigures| time.allocate.mean + time.free.mean;
    let first = figures
        .first()
        .and_then(|first| first.time.as_ref().map(mean));
    for figures in figures {
        if let Some(time) = &mut figures.time {
            time.ratio = first.map(|first| mean(time) / first);
        }
    }
}

fn time_figures(workload: &Workload, times: &[u32], clock: u32) -> TimeFigures {
    let of = |allocations: bool| -> Vec<f64> {
        let both = workload.requests.iter().zip(times);
        both.filter(|(request, _)| matches!(request, Request::Allocate { .. }) == allocations)
            .map(|(_, &time)| f64::from(time.saturating_sub(clock)) * 1e-9)
            .collect()
    };
    let (allocate, free) = (of(true), of(false));
    TimeFigures {
        allocate: latency(&allocate),
        free: latency(&free),
        ratio: None,
        allocate_over_time: over_time(&allocate),
        free_over_time: over_time(&free),
    }
}

fn sorted(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn latency(times: &[f64]) -> Latency {
    let sorted = sorted(times);
    let at = |part: f64| match sorted.len() {
        0 => 0.0,
        length => sorted[((length - 1) as f64 * part) as usize],
    };
    Latency {
        median: at(0.5),
        percentile_99: at(0.99),
        most: at(1.0),
        mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
    }
}

fn over_time(times: &[f64]) -> Vec<f64> {
    let chunks = times.chunks(times.len().div_ceil(MOMENTS).max(1));
    chunks
        .map(|chunk| sorted(chunk)[(chunk.len() - 1) / 2])
        .collect()
}

/// Heaps that say constant time and take longer to refuse with more free blocks, or whose calls
/// grow with the live blocks by more than a tenth.
fn contradictions(heaps: &[Box<dyn Measured>], figures: &[HeapFigures]) -> Vec<String> {
    let mut found = Vec::new();
    for (heap, figures) in heaps.iter().zip(figures) {
        if !heap.constant() {
            continue;
        }
        if let (Some(first), Some(last)) = (figures.by_free.first(), figures.by_free.last())
            && last.refuse > first.refuse
        {
            found.push(format!(
                "{}: a refusal takes {} instructions with {} free blocks, {} with {}",
                figures.heap, first.refuse, first.free_blocks, last.refuse, last.free_blocks
            ));
        }
        if let Some(longer) = longer_with_more_live(figures) {
            found.push(longer);
        }
        if let Some(longer) = longer_than_bound(figures) {
            found.push(longer);
        }
    }
    found
}

/// Says so when a call took more instructions than the longest path has: the bound is wrong.
fn longer_than_bound(figures: &HeapFigures) -> Option<String> {
    let (most, bound) = (figures.instructions_max?, figures.instructions_bound?);
    let longer = bound.allocate.is_some_and(|bound| most.allocate > bound)
        || bound.free.is_some_and(|bound| most.free > bound);
    longer.then(|| {
        format!(
            "{}: calls took {} / {} instructions, more than the longest paths through the code",
            figures.heap, most.allocate, most.free
        )
    })
}

/// Says so when calls with the most live blocks take longer by more than a tenth than with fewer.
/// The longest path need not be met with many blocks, but no longer one may be.
fn longer_with_more_live(figures: &HeapFigures) -> Option<String> {
    let (last, fewer) = figures.by_live.split_last()?;
    let Counts {
        allocate,
        refuse,
        free,
    } = figures.instructions?;
    let allocate = allocate.most.max(refuse.most);
    let allocate = fewer
        .iter()
        .fold(allocate, |most, row| most.max(row.allocate));
    let free = fewer.iter().fold(free.most, |most, row| most.max(row.free));
    (last.allocate * 10 > allocate * 11 || last.free * 10 > free * 11).then(|| {
        format!(
            "{}: with {} live blocks calls take up to {} / {} instructions, elsewhere {allocate} / \
             {free}",
            figures.heap, last.live_blocks, last.allocate, last.free
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::named::named;
    use super::*;

    #[test]
    fn calls_that_grow_with_live_blocks_are_found() {
        let calls = CallFigures {
            counted: 1,
            mean: Some(100.0),
            most: 100,
        };
        let row = |live_blocks, allocate| ByLive {
            live_blocks,
            allocate,
            free: 90,
        };
        let heap = named("best-fit").unwrap();
        let workload = [vec![uniform(5, 20, 1)]];
        let (mut figures, _) = of_memory(&*heap, &workload, None);
        figures.instructions = Some(Counts {
            allocate: calls,
            refuse: calls,
            free: calls,
        });
        figures.by_live = vec![row(10, 80), row(100, 110)];
        assert_eq!(longer_with_more_live(&figures), None);
        figures.by_live = vec![row(10, 80), row(100, 111)];
        assert!(longer_with_more_live(&figures).is_some());
        figures.by_live = vec![row(10, 111), row(100, 111)];
        assert_eq!(longer_with_more_live(&figures), None);
    }

    #[test]
    fn means_are_compared_seed_by_seed() {
        let found = Compared::of(&[2.0, 6.0], &[2.0, 3.0]).unwrap();
        assert_eq!((found.mean, found.standard_error), (1.5, Some(0.5)));
        let one = Compared::of(&[3.0], &[2.0]).unwrap();
        assert_eq!((one.mean, one.standard_error), (1.5, None));
        assert_eq!(Compared::of(&[1.0], &[]), None);
    }

    const TRIAL: Effort = Effort {
        seeds: 2,
        exchanges: 300,
        counted: 60,
        live: 100,
        replays: 2,
    };

    #[test]
    fn every_heap_is_measured_on_every_workload() {
        let names = ["tlsf", "segregated-fit", "hybrid", "sparse", "best-fit"];
        let heaps: Vec<_> = names.map(|name| named(name).unwrap()).into();
        let recorded = uniform(20, 200, 9);
        let bench = bench(&heaps, vec![recorded], TRIAL, None, &|_| {});
        assert_eq!(bench.contradicted, Vec::<String>::new());
        assert_eq!(bench.workloads.len(), 5);
        for figures in &bench.heaps {
            assert_eq!(figures.arena_ratio.len(), 5);
            for (name, ratio) in &figures.arena_ratio {
                let worst = figures.arena_ratio_worst[name];
                assert!(*ratio >= Some(1.0) && worst >= *ratio, "{name}");
            }
            let time = figures.time.as_ref().unwrap();
            assert!(time.allocate.most >= time.allocate.median);
            let provisioned = figures.provisioned.as_ref().unwrap();
            assert!(provisioned.ratio >= 1.0);
            assert_eq!(
                figures.instructions_max.is_some(),
                figures.heap != "sparse" && figures.heap != "best-fit"
            );
        }
        let tlsf = &bench.heaps[0];
        assert_eq!(tlsf.by_free.len(), FREE_BLOCKS.len());
        assert_eq!(tlsf.by_live.len(), 2);
        let counts = tlsf.instructions.unwrap();
        assert!(counts.refuse.counted > 0 && counts.allocate.counted > counts.refuse.counted);
        let compared = tlsf.arena_over_best_fit["uniform-100"];
        assert!((0.9..1.1).contains(&compared.mean) && compared.standard_error.is_some());
        assert!(bench.heaps[4].arena_over_best_fit.is_empty());
        let ratio = |heap: usize| bench.heaps[heap].arena_ratio["uniform-100"];
        assert!(
            ratio(3) < ratio(0) && ratio(0) < ratio(1),
            "pages, lists, the paper"
        );
        assert_eq!(bench.heaps[3].moves.len(), 5 * CAPS.len());
    }
}
