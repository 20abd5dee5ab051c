//! Several heaps on one trace, each with all there is to know about it.

use std::collections::HashMap;
use std::sync::Mutex;

use metes_heap::Description;
use rayon::prelude::*;

use crate::arena::smallest_arena;
use crate::events::Events;
use crate::replay::{Curve, Options, Replay, Replayer};

/// A heap and what its replay found.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The heap.
    pub description: Description,
    /// What its replay found, its smallest arena where that was searched for.
    pub replay: Replay,
    /// Footprint and live bytes over the events.
    pub curve: Curve,
}

/// The smallest arena of a heap takes some 20 replays; it is searched for only
/// where these together cost at most this many times one replay of the fastest.
const PATIENCE: u64 = 200;

/// Replays a trace on several heaps, on all cores, and finds the smallest arena
/// of each whose replays are cheap enough. Results in the order of the heaps.
pub fn compare(
    heaps: &[(String, Description)],
    events: &Events,
    options: &Options,
) -> Vec<Compared> {
    let spare: Mutex<Vec<Replayer>> = Mutex::new(Vec::new());
    let with = |work: &mut dyn FnMut(&mut Replayer)| {
        let mut replayer = take(&spare);
        work(&mut replayer);
        give(&spare, replayer);
    };
    let mut compared: Vec<Compared> = heaps
        .par_iter()
        .map(|(name, description)| {
            let mut found = None;
            with(&mut |replayer| found = Some(replayer.replay(name, description, events, options)));
            let (replay, curve) =
                found.unwrap_or_else(|| Replayer::new().replay(name, description, events, options));
            Compared {
                description: *description,
                replay,
                curve,
            }
        })
        .collect();
    let fastest = compared
        .iter()
        .map(|one| one.replay.cycles)
        .min()
        .unwrap_or(0);
    let arenas: HashMap<usize, u64> = compared
        .par_iter()
        .enumerate()
        .filter(|(_, one)| one.replay.cycles.saturating_mul(20) <= fastest.saturating_mul(PATIENCE))
        .filter_map(|(index, one)| {
            let mut found = None;
            with(&mut |replayer| {
                found = smallest_arena(replayer, &one.description, events, options);
            });
            Some((index, found?.bytes))
        })
        .collect();
    for (index, one) in compared.iter_mut().enumerate() {
        one.replay.smallest_arena = arenas.get(&index).copied();
    }
    compared
}

fn take(spare: &Mutex<Vec<Replayer>>) -> Replayer {
    match spare.lock() {
        Ok(mut replayers) => replayers.pop().unwrap_or_default(),
        Err(_) => Replayer::default(),
    }
}

fn give(spare: &Mutex<Vec<Replayer>>, replayer: Replayer) {
    if let Ok(mut replayers) = spare.lock() {
        replayers.push(replayer);
    }
}
