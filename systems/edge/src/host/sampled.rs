//! What requests that the user names take: counted and timed when their function is deployed, by each compiler's code.
//!
//! *Invariant:* nothing here is admitted or enforced. Operators are exact for that request; the estimate is between two
//! rates of this machine; times are observed, and the longest is a maximum of what was seen.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::cost::{Cost, Counts, Table};
use crate::engine::Engine;
use crate::limits::{Limits, Tiers};
use crate::manifest::{Hosted as _, Manifest};
use crate::outcome::{BudgetClock, Outcome, Tier};
use crate::statistics::{Statistics, Times};
use crate::worker::Worker;

/// How often a request is timed by each compiler's code.
const RUNS: u64 = 25;
/// No further run is begun after so long.
const LONG: Duration = Duration::from_secs(1);

/// What a request that the manifest names takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// What the manifest calls it.
    pub name: String,
    /// Its size.
    pub bytes: usize,
    /// Operators of this request, exact; none where it takes more than its budget permits, or cannot be counted.
    pub operators: Option<Counts>,
    /// Whether counting again counted the same; not so for functions that look at the clock.
    pub repeatable: bool,
    /// How it ended as it was counted.
    pub ended: String,
    /// By each compiler's code.
    pub tiers: Vec<SampledTier>,
}

/// What a request takes by one compiler's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledTier {
    /// Whose code.
    pub tier: String,
    /// An estimate from the operators: between all at their least and all at their most on this machine, in nanoseconds.
    pub estimate_ns: Option<[u64; 2]>,
    /// What was observed.
    pub observed_ns: Times,
    /// Runs that were timed.
    pub runs: u64,
    /// Runs that were stopped at the end of their budget.
    pub overruns: u64,
}

/// What operators cost on this machine, by tier; what cannot be measured is left out.
pub(super) fn tables(engine: &Engine) -> Vec<Table> {
    let tiers = [Tier::Baseline, Tier::Optimised];
    let tables = tiers.map(|tier| Table::measure(engine, tier).ok());
    tables.into_iter().flatten().collect()
}

/// Counts and times requests of a module that is to be deployed, in slots of their own.
pub(super) fn sample(
    engine: &Engine,
    tables: &[Table],
    manifest: &Manifest,
    requests: &[Vec<u8>],
    wasm: &[u8],
) -> Vec<Sampled> {
    let compiled = |tiers| {
        let limits = Limits {
            tiers,
            ..manifest.limits()
        };
        engine.compile(wasm, &limits).ok()
    };
    // One of them may not take the module, as it may not answer by it then either.
    let modules = [
        (Tier::Baseline, compiled(Tiers::Baseline)),
        (Tier::Optimised, compiled(Tiers::Optimised)),
    ];
    // No machine does so much in its budget.
    let limit = (manifest.budget.saturating_mul(8)).clamp(1 << 20, 1 << 32);
    let one = |(name, request): (&std::path::PathBuf, &Vec<u8>)| {
        let any = modules.iter().find_map(|(_, module)| module.as_ref());
        let counted = any.map(|module| engine.count(module, request, limit));
        let (cost, ended) = match counted {
            Some(Ok(cost)) => {
                let ended = ended(&cost.outcome);
                (Some(cost), ended)
            }
            Some(Err(error)) => (None, error.to_string()),
            None => (None, "no compiler takes the module".to_owned()),
        };
        let tiers = modules.iter().filter_map(|(tier, module)| {
            let (statistics, runs) = timed(engine, module.as_ref()?, manifest, request);
            let table = tables.iter().find(|table| table.tier == *tier);
            let estimate = |cost: &Cost| {
                let span = table?.span(&cost.counts);
                Some([span.least.floor() as u64, span.most.ceil() as u64])
            };
            Some(SampledTier {
                tier: tier.name().to_owned(),
                estimate_ns: cost.as_ref().and_then(estimate),
                observed_ns: statistics.time(),
                runs,
                overruns: statistics.counts().overrun,
            })
        });
        Sampled {
            name: name.display().to_string(),
            bytes: request.len(),
            tiers: tiers.collect(),
            repeatable: cost.as_ref().is_some_and(|cost| cost.repeatable),
            operators: cost.map(|cost| cost.counts),
            ended,
        }
    };
    manifest.samples.iter().zip(requests).map(one).collect()
}

/// Times a request on this thread, and counts the runs.
fn timed(
    engine: &Engine,
    module: &crate::module::Module,
    manifest: &Manifest,
    request: &[u8],
) -> (Statistics, u64) {
    let mut statistics = Statistics::new();
    let mut worker = Worker::new(engine);
    // Others may hold this thread up, which is not the function's fault.
    worker.set_clock(BudgetClock::Processor);
    let mut output = Vec::with_capacity(module.limits().output);
    let begin = Instant::now();
    let mut runs = 0;
    while runs < RUNS && begin.elapsed() < LONG {
        let processor = clock::processor();
        let mut invocation = worker.invoke(
            module,
            request,
            &mut output,
            Duration::from_nanos(manifest.budget),
        );
        // What others took of the processor meanwhile is in the time that passed, and not in this.
        let own = clock::processor() - processor;
        invocation.time_ns = invocation.time_ns.min(own);
        let time = invocation.time_ns;
        statistics.take(&invocation, time, false);
        if matches!(invocation.outcome, Outcome::Refused(_)) {
            break;
        }
        runs += 1;
    }
    worker.remove(module);
    (statistics, runs)
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { exit: 0 } => "done".to_owned(),
        Outcome::Done { exit } => format!("exit {exit}"),
        Outcome::Trap(trap) => format!("trap: {trap}"),
        Outcome::Overrun { .. } => "overrun".to_owned(),
        Outcome::Refused(refusal) => refusal.to_string(),
    }
}
