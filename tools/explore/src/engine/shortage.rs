//! Levels that are too small for heaps of the space.
//!
//! Invariant: a function of the failed rows alone. Where more heaps fail than
//! are looked at, those looked at are spread evenly over their numbers.

use metes_heap::description::LEVELS;
use rayon::prelude::*;
use serde::Serialize;

use super::evaluate::Evaluator;
use crate::arena::shortages;
use crate::replay::Replayer;

/// Most failed heaps that are looked at; each takes a few replays.
const LOOKED_AT: usize = 256;

/// A level of some size that is too small for some heaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelShortage {
    /// Its name.
    pub level: String,
    /// Bytes that it has.
    pub size: u64,
    /// Heaps among those looked at that fail for it.
    pub heaps: u64,
    /// Heaps looked at.
    pub looked_at: u64,
    /// Heaps on which requests fail, for whatever reason.
    pub failed: u64,
    /// Bytes that it lacks at least, over these heaps.
    pub least: u64,
    /// Bytes that it lacks at most.
    pub most: u64,
    /// Number of the first heap that lacks the least.
    pub number: u64,
    /// That heap in words.
    pub heap: String,
}

/// What one heap lacks: level, its size, bytes.
type Lack = (usize, u64, u64);

/// Which levels are too small for the heaps of these numbers, on which requests
/// fail. By level and size; empty where that is not why they fail. A few replays
/// a heap, on all workers of the pool it is called in.
pub fn level_shortages(evaluator: &Evaluator<'_>, failed: &[u64]) -> Vec<LevelShortage> {
    let names = evaluator.space().levels();
    if failed.is_empty() || (names.is_empty() && evaluator.hierarchy().is_none()) {
        return Vec::new();
    }
    let count = failed.len().min(LOOKED_AT);
    let chosen: Vec<u64> = (0..count)
        .map(|place| failed[place * failed.len() / count])
        .collect();
    let lacks: Vec<(u64, Vec<Lack>)> = chosen
        .into_par_iter()
        .map(|number| (number, lacking(evaluator, number)))
        .collect();
    let mut found: Vec<(usize, LevelShortage)> = Vec::new();
    for (number, lacks) in &lacks {
        for &(level, size, lacks) in lacks {
            let known = |(own, shortage): &&mut (usize, LevelShortage)| {
                *own == level && shortage.size == size
            };
            if let Some((_, shortage)) = found.iter_mut().find(known) {
                shortage.heaps += 1;
                shortage.most = shortage.most.max(lacks);
                if lacks < shortage.least {
                    (shortage.least, shortage.number) = (lacks, *number);
                }
                continue;
            }
            let shortage = LevelShortage {
                level: name(evaluator, level),
                size,
                heaps: 1,
                looked_at: count as u64,
                failed: failed.len() as u64,
                least: lacks,
                most: lacks,
                number: *number,
                heap: String::new(),
            };
            found.push((level, shortage));
        }
    }
    found.sort_by_key(|(level, shortage)| (*level, shortage.size));
    for (_, shortage) in &mut found {
        let config = evaluator.space().describe(shortage.number);
        shortage.heap = config.map_or(String::new(), |config| config.name());
    }
    found.into_iter().map(|(_, shortage)| shortage).collect()
}

/// What the levels of one heap lack.
fn lacking(evaluator: &Evaluator<'_>, number: u64) -> Vec<Lack> {
    let Some(config) = evaluator.space().describe(number) else {
        return Vec::new();
    };
    let options = evaluator.options(&config);
    if options.arena.levels == [None; LEVELS] {
        return Vec::new();
    }
    let mut replayer = Replayer::new();
    let found = shortages(&mut replayer, &config.heap, evaluator.events(), &options);
    let found = found.into_iter();
    found
        .map(|own| (own.level, own.size as u64, own.needed - own.size as u64))
        .collect()
}

/// The name of a level: the space's, else the hierarchy's.
fn name(evaluator: &Evaluator<'_>, level: usize) -> String {
    let own = evaluator.space().levels().get(level).cloned();
    let other = || {
        let levels = evaluator.hierarchy()?.levels();
        Some(levels.get(level)?.name().to_owned())
    };
    own.or_else(other).unwrap_or_default()
}
