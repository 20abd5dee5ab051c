//! Several heaps on one trace, each with all there is to know about it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use metes_heap::Description;

use crate::arena::smallest_arena_while;
use crate::clock::Timer;
use crate::events::Events;
use crate::replay::{Curve, Options, Replay, Replayer};

/// A heap and what its replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The heap.
    pub description: Description,
    /// What its replay found, its smallest arena where that was searched for.
    pub replay: Replay,
    /// Footprint and live bytes over the events.
    pub curve: Curve,
}

/// Replays that the smallest arena of a heap takes.
pub(crate) const REPLAYS: u32 = 20;
/// The smallest arena is searched for only where its replays together cost at most
/// this many times one replay of the fastest.
const PATIENCE: u64 = 200;

/// Whether the smallest arena of a heap of so many cycles is worth its time beside
/// that of the fastest.
pub(crate) fn worth_an_arena(cycles: u64, fastest: u64) -> bool {
    cycles.saturating_mul(u64::from(REPLAYS)) <= fastest.saturating_mul(PATIENCE)
}

/// Replays a trace on several heaps, on all cores, and finds the smallest arena
/// of each whose replays are cheap enough, the cheapest first, until the time is
/// over. Results in the order of the heaps. What is `known` of a heap is not
/// replayed again; one of which nothing is known is replayed whatever the time.
pub fn compare(
    heaps: &[(String, Description)],
    events: &Events,
    options: &Options,
    known: &[Compared],
    timer: &Timer<'_>,
) -> Vec<Compared> {
    let whole = |replayer: &mut Replayer, index: usize| {
        let (name, description) = &heaps[index];
        if let Some(known) = known.iter().find(|known| known.description == *description) {
            let mut known = known.clone();
            known.replay.heap.clone_from(name);
            return known;
        }
        let (replay, curve) = replayer.replay(name, description, events, options);
        Compared {
            description: *description,
            replay,
            curve,
        }
    };
    let mut compared = each((0..heaps.len()).collect(), whole);
    compared.sort_by_key(|&(index, _)| index);
    let mut compared: Vec<Compared> = compared.into_iter().map(|(_, one)| one).collect();
    let fastest = compared.iter().map(|one| one.replay.cycles).min();
    let mut worth: Vec<usize> = (0..compared.len())
        .filter(|&index| worth_an_arena(compared[index].replay.cycles, fastest.unwrap_or(0)))
        .collect();
    worth.sort_by_key(|&index| compared[index].replay.cycles);
    let go_on = || !timer.past(timer.end());
    let arenas = each(worth, |replayer, index| {
        let description = &compared[index].description;
        let found = smallest_arena_while(replayer, description, events, options, &go_on);
        found.map(|found| found.bytes)
    });
    for (index, bytes) in arenas {
        compared[index].replay.smallest_arena = bytes;
    }
    compared
}

/// Does work on all cores, begun in order; each core with arrays of its own.
fn each<T: Send>(
    order: Vec<usize>,
    work: impl Fn(&mut Replayer, usize) -> T + Sync,
) -> Vec<(usize, T)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    rayon::broadcast(|_| {
        let mut replayer = Replayer::new();
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let one = work(&mut replayer, index);
            if let Ok(mut done) = done.lock() {
                done.push((index, one));
            }
        }
    });
    done.into_inner().unwrap_or_default()
}
