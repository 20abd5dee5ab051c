//! Heaps replayed on the trace of one activation, and what each makes of the task.
//!
//! *Invariant:* what a replay counts becomes cycles and energy as in `metes power predict`; cycles are rounded up.

use metes_config::Config;
use metes_explore::{Events, Options, Replayer};
use metes_power::heaps::Served;
use metes_power::predict::Prediction;
use metes_power::rational::{Rational, of_decimal, whole};
use metes_power::system::Units;
use rayon::prelude::*;
use serde_json::json;

use crate::arguments::PowerExplore;
use crate::error::Failure;
use crate::quantity::grouped;
use crate::{energy, heap, progress, space};

/// Most heaps that are all replayed.
const MOST_HEAPS: u64 = 100_000;

/// The heaps that are asked for.
pub(super) fn configs(arguments: &PowerExplore, events: &Events) -> Result<Vec<Config>, Failure> {
    if let Some(name) = &arguments.space {
        let space = space::read(&space::find(name)?, events)?;
        if space.size() > MOST_HEAPS {
            return Err(Failure::input(format!(
                "{name} has {} heaps, and {} at most are all replayed: explore it by `metes explore --space`, and give \
                 those of its pareto/ by --heap",
                grouped(space.size()),
                grouped(MOST_HEAPS)
            )));
        }
        return Ok((0..space.size())
            .filter_map(|number| space.describe(number))
            .collect());
    }
    if arguments.heap.is_empty() {
        let named = metes_config::named().into_iter();
        return Ok(named.map(|(_, config)| config).collect());
    }
    arguments
        .heap
        .iter()
        .map(|text| heap::resolve(text))
        .collect()
}

/// What `metes replay` answers of each heap, as far as predictions read it; none of a heap that does not serve.
pub(super) fn replays(
    arguments: &PowerExplore,
    configs: &[Config],
    events: &Events,
) -> Result<Vec<Option<String>>, Failure> {
    let wheel = progress::spinner("replaying heaps");
    let replayed = configs
        .par_iter()
        .map_init(Replayer::new, |replayer, config| {
            replay(arguments, config, events, replayer)
        })
        .collect();
    wheel.finish_and_clear();
    replayed
}

fn replay(
    arguments: &PowerExplore,
    config: &Config,
    events: &Events,
    replayer: &mut Replayer,
) -> Result<Option<String>, Failure> {
    let hierarchy = energy::resolve(&arguments.levels, &energy::own_levels(config))?;
    let mut options = Options::of(config);
    let sizes = options.arena.levels;
    hierarchy.pricer(&config.heap, &sizes, events.access_word())?;
    energy::limit(&mut options.arena, &hierarchy)?;
    let name = config.name();
    let (replay, _) = replayer.replay(&name, &config.heap, events, &options);
    if replay.failed > 0 || replay.events < events.len() as u64 {
        return Ok(None);
    }
    let price = energy::price(
        &hierarchy,
        config,
        &sizes,
        events,
        &options,
        &replay,
        arguments.records_only,
    )?;
    let document = json!({"heap": name, "footprint": replay.footprint, "price": price});
    Ok(Some(document.to_string()))
}

/// A prediction in the units of the system; cycles are rounded up to whole ones.
pub(super) fn served(prediction: &Prediction, units: Units) -> Result<Served, Failure> {
    let exact = |value: f64| {
        of_decimal(value)
            .ok_or_else(|| Failure::input(format!("{value} is beyond what is analysed")))
    };
    let million = whole(1_000_000);
    let cycles = |megacycles: f64| -> Result<Rational, Failure> {
        Ok((exact(megacycles)? * &million).ceil() / units.cycles())
    };
    let [cpu, memory] = [0, 1].map(|term| prediction.time.terms[term].1);
    let thousand = whole(1000);
    Ok(Served {
        heap: prediction.heap.clone().unwrap_or_default(),
        footprint: prediction.footprint.unwrap_or(0),
        cpu: cycles(cpu)?,
        memory: cycles(memory)?,
        energy: exact(prediction.access_energy)? / thousand / units.joules(),
        leakage: exact(prediction.leakage)? / units.watts(),
    })
}
