//! The prediction experiment (`dm-prediction`): heaps sampled from the paper's
//! space, emitted as C, built, and run under the packet program.
//!
//! Invariant: which heaps are taken depends on their number alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use metes_config::Config;
use metes_explore::{PAPER, Space, SpaceDescription, SpaceError};
use rayon::prelude::*;

use crate::packets;
use crate::prediction::{Bench, Compared, PredictionError};
use metes_lab::{Figure, Report};

/// Why the experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum PredictedError {
    /// A heap was not run.
    #[error(transparent)]
    Run(#[from] PredictionError),
    /// The space is refused.
    #[error(transparent)]
    Space(Box<SpaceError>),
    /// Its text is.
    #[error(transparent)]
    Text(#[from] metes_config::Error),
}

impl From<SpaceError> for PredictedError {
    fn from(error: SpaceError) -> Self {
        PredictedError::Space(Box::new(error))
    }
}

/// Runs so many heaps, spread over the space; two seconds each and core, which
/// the compiler takes. `tell` hears how far it is.
///
/// # Errors
/// [`PredictedError`] without a C compiler, or when the program fails on a heap.
pub fn reproduce(heaps: usize, tell: &dyn Fn(&str)) -> Result<Report, PredictedError> {
    let packets = packets::packets(&packets::Options::default());
    let bench = Bench::new(&packets)?;
    let name = "the paper's space";
    let description = SpaceDescription::parse(PAPER, name)?;
    let space = Space::new(&description, bench.events(), PAPER, name)?;
    let own = space.size() - space.baselines();
    // The middle of each of so many equal parts of the space.
    let chosen: Vec<(u64, Config)> = (0..heaps as u64)
        .map(|part| space.baselines() + own * (2 * part + 1) / (2 * heaps as u64))
        .filter_map(|number| Some((number, space.describe(number)?)))
        .collect();
    tell(&format!("building and running {} heaps", chosen.len()));
    let done = AtomicUsize::new(0);
    let compared: Vec<Result<Vec<Compared>, PredictionError>> = chosen
        .par_iter()
        .map(|(number, config)| {
            let compared = bench.compare(*number, config);
            done.fetch_add(1, Ordering::Relaxed);
            compared
        })
        .collect();
    let mut equal: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    let mut contradicted = Vec::new();
    for ((number, config), compared) in chosen.iter().zip(compared) {
        for metric in compared? {
            let (same, all) = equal.entry(metric.metric).or_default();
            *all += 1;
            *same += usize::from(metric.equal());
            if !metric.equal() {
                contradicted.push(format!(
                    "{} of heap {number} ({}): predicted {}, measured {}",
                    metric.metric,
                    config.name(),
                    metric.predicted,
                    metric.measured
                ));
            }
        }
    }
    let rows = equal
        .into_iter()
        .map(|(metric, (same, all))| {
            Figure::new(format!("heaps whose {metric} are as predicted"), "")
                .ours(same as f64)
                .note(format!("of {all}"))
        })
        .collect();
    Ok(Report {
        experiment: "dm-prediction",
        rows,
        assumptions: vec![
            format!(
                "{} of {own} different heaps of the paper's space, evenly spread; each emitted as C, \
                 built with the compiler of this machine, and preloaded into the packet program \
                 (`examples/cases/packets`), which forwards the 12 000 generated packets",
                chosen.len()
            ),
            "predicted: by replay of the generated trace, before anything ran; placements and \
             requests are hashes over every event"
                .to_owned(),
            "the paper shows no such comparison: it ran every heap".to_owned(),
        ],
        contradicted,
        plots: Vec::new(),
    })
}
