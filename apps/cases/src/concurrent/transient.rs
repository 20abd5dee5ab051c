//! What memory moves under way take, by the compaction increment ι: exact bytes.
//!
//! Threads are played by one: each in turn makes one atomic transition of the automaton, an
//! allocation, a free with the first increment of the move that follows, or a further
//! increment. So the same figures come out in every run, on any machine.

use metes_heap::Memory;
use metes_heap::bounds::{self, Demand};
use metes_heap::compact::{
    CompactFit, Compaction, Copying, Fragmentation, Handle, Options, Partition,
};

use std::ptr::NonNull;

use super::{ConcurrentError, Effort, FULL, LIVE, SIZES, increment_text};
use metes_lab::Random;
use metes_lab::{Figure, Plot, Report, Series};

const THREADS: usize = 8;
const INCREMENTS: [Option<usize>; 8] = [
    None,
    Some(1024),
    Some(512),
    Some(256),
    Some(128),
    Some(64),
    Some(32),
    Some(16),
];
/// Bytes of memory; what is not used costs nothing.
const MEMORY: usize = 64 << 20;

/// A played thread.
struct Actor {
    random: Random,
    blocks: Vec<Handle>,
    moving: Option<Compaction>,
    /// Allocations and frees made.
    requests: usize,
}

impl Actor {
    fn size(&mut self) -> usize {
        self.random.between(SIZES.0 as u64, SIZES.1 as u64) as usize
    }

    /// One atomic transition; whether it was refused.
    fn act(&mut self, heap: &mut CompactFit<Copying>) -> bool {
        if let Some(compaction) = self.moving.take() {
            self.moving = heap.step(compaction);
            return false;
        }
        self.requests += 1;
        if self.requests.is_multiple_of(2) {
            let size = self.size();
            let block = heap.allocate(size, 8);
            self.blocks.extend(block);
            return block.is_err();
        }
        let which = self.random.below(self.blocks.len() as u64) as usize;
        let begun = heap.begin_free(self.blocks.swap_remove(which));
        let refused = begun.is_err();
        let begun = begun.ok().and_then(|(_, compaction)| compaction);
        self.moving = begun.and_then(|compaction| heap.step(compaction));
        refused
    }
}

/// What was found at one ι.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Page-blocks that moves under way are leaving: mean and most bytes.
    mean: f64,
    most: usize,
    /// The most free page-blocks of pages in use, and those being left: bytes.
    size_class: usize,
    /// Bytes taken.
    footprint: usize,
    /// The most requested bytes.
    live: usize,
    refused: u64,
}

fn options(increment: Option<usize>) -> Options {
    Options {
        partition: Partition::DEFAULT,
        kappa: FULL,
        increment,
    }
}

/// Plays rounds of transitions of all threads, looking after each, until every thread has made
/// `requests`.
fn play(increment: Option<usize>, requests: usize, live: usize) -> Result<Found, ConcurrentError> {
    // Blocks are copied: the bytes have to have values.
    let mut memory = vec![0_u8; MEMORY];
    let start = NonNull::from(memory.as_mut_slice()).cast();
    // SAFETY: the memory outlives the heap, and nothing else uses it.
    let region = unsafe { Memory::from_raw(start, MEMORY) };
    let mut heap = CompactFit::new(&options(increment), region)?;
    let mut found = Found::default();
    let mut actors: Vec<Actor> = (0..THREADS)
        .map(|thread| Actor {
            random: Random::new(thread as u64 + 1),
            blocks: Vec::new(),
            moving: None,
            requests: 0,
        })
        .collect();
    for actor in &mut actors {
        for _ in 0..live {
            let size = actor.size();
            let block = heap.allocate(size, 8);
            found.refused += u64::from(block.is_err());
            actor.blocks.extend(block);
        }
    }
    let (mut transient, mut rounds) = (0, 0);
    while actors.iter().any(|actor| actor.requests < requests) {
        rounds += 1;
        for actor in &mut actors {
            found.refused += u64::from(actor.act(&mut heap));
        }
        let Fragmentation {
            live,
            transient: leaving,
            size_class,
            ..
        } = heap.fragmentation();
        transient += leaving;
        found.most = found.most.max(leaving);
        found.size_class = found.size_class.max(size_class + leaving);
        found.live = found.live.max(live);
    }
    found.mean = transient as f64 / rounds as f64;
    found.footprint = heap.footprint();
    let sound = heap.check();
    sound.map_err(|corruption| ConcurrentError::Unsound {
        design: format!("ι = {}", increment_text(increment)),
        threads: THREADS,
        corruption,
    })?;
    Ok(found)
}

/// What contradicts what is proven of the heap.
fn contradictions(increment: Option<usize>, found: &Found) -> Vec<String> {
    let mut all = Vec::new();
    let iota = increment_text(increment);
    let options = options(increment);
    let record = metes_heap::compact::Needs::RECORD;
    let classes = options.partition.classes(record);
    let block = classes.into_iter().find(|&block| block >= SIZES.1 + record);
    let most = match increment {
        None => 0,
        Some(_) => THREADS * block.unwrap_or(options.partition.page),
    };
    if found.most > most {
        all.push(format!(
            "ι = {iota}: {} bytes are left by moves, {THREADS} threads leave at most {most}",
            found.most
        ));
    }
    if found.refused > 0 {
        all.push(format!(
            "ι = {iota}: {} requests were refused",
            found.refused
        ));
    }
    let demand = Demand::new(found.live as u64, SIZES.1 as u64, SIZES.0 as u64);
    let bound = bounds::compact::compact_fit(&options, THREADS as u64, &demand);
    match bound {
        Ok(bound) if (found.footprint as u128) <= bound.heap_bytes => {}
        Ok(bound) => all.push(format!(
            "ι = {iota}: {} bytes taken, {} are proven to suffice",
            found.footprint, bound.heap_bytes
        )),
        Err(error) => all.push(format!("ι = {iota}: no bound: {error}")),
    }
    all
}

/// The experiment `compact-fit-transient`.
///
/// # Errors
/// [`ConcurrentError`] if a heap cannot be made or is not sound afterwards.
pub fn transient(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, ConcurrentError> {
    let (requests, live) = match effort {
        Effort::Quick => (600, LIVE),
        Effort::Whole => (5000, LIVE),
        #[cfg(test)]
        Effort::Trial => (200, 300),
    };
    let mut found = Vec::new();
    let mut contradicted = Vec::new();
    for increment in INCREMENTS {
        tell(&format!("ι = {}", increment_text(increment)));
        let one = play(increment, requests, live)?;
        contradicted.extend(contradictions(increment, &one));
        found.push(one);
    }
    let mut rows = Vec::new();
    for (increment, one) in INCREMENTS.into_iter().zip(&found) {
        let iota = increment_text(increment);
        let share = |bytes: f64| 100.0 * bytes / one.footprint as f64;
        rows.push(
            Figure::new(format!("ι = {iota}: transient, mean"), "B")
                .ours(one.mean)
                .note(format!("{:.3} % of the memory taken", share(one.mean))),
        );
        rows.push(
            Figure::new(format!("ι = {iota}: transient, most"), "B")
                .ours(one.most as f64)
                .note(format!("{:.3} %", share(one.most as f64))),
        );
        rows.push(
            Figure::new(format!("ι = {iota}: size-class and transient, most"), "B")
                .ours(one.size_class as f64)
                .note(format!(
                    "{:.2} %; memory taken {} B",
                    share(one.size_class as f64),
                    one.footprint
                )),
        );
    }
    let bytes = |name: &str, of: &dyn Fn(&Found) -> f64| {
        Series::measured(name, found.iter().map(|one| of(one) / 1e3))
    };
    Ok(Report {
        experiment: "compact-fit-transient",
        rows,
        assumptions: vec![
            format!(
                "{THREADS} threads of {live} blocks of {} to {} bytes, uniform, κ = 1; each frees \
                 one at random for each that it allocates",
                SIZES.0, SIZES.1
            ),
            format!(
                "threads are played, until each has made {requests} requests: in each round every \
                 thread makes one atomic transition, and a free includes the first increment of \
                 its move, as in the slides' automaton; so an increment takes as long as an \
                 allocation; bytes are counted after each round"
            ),
            "transient: page-blocks that moves under way are leaving, as \
             CompactFit::fragmentation accounts for them; exact bytes, the same in every run"
                .to_owned(),
            "slides: incremental compaction creates transient size-class fragmentation, O(n π β) \
             for n threads; their picture is not public"
                .to_owned(),
        ],
        contradicted,
        plots: vec![
            Plot {
                title: "Transient size-class fragmentation by compaction increment, 8 threads"
                    .to_owned(),
                x: "ι in bytes".to_owned(),
                names: INCREMENTS.map(increment_text).to_vec(),
                y: "kB of page-blocks being left".to_owned(),
                joined: true,
                series: vec![
                    bytes("most", &|one| one.most as f64),
                    bytes("mean", &|one| one.mean),
                ],
            },
            Plot {
                title: "Size-class fragmentation with what is transient, most".to_owned(),
                x: "ι in bytes".to_owned(),
                names: INCREMENTS.map(increment_text).to_vec(),
                y: "kB free in pages in use, or being left".to_owned(),
                joined: true,
                series: vec![bytes("most", &|one| one.size_class as f64)],
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_moves_leave_nothing_and_small_increments_more() {
        let whole = play(None, 300, 300).unwrap();
        let some = play(Some(512), 300, 300).unwrap();
        let small = play(Some(32), 300, 300).unwrap();
        assert_eq!((whole.most, whole.refused), (0, 0));
        assert!(0.0 < some.mean && some.mean < small.mean);
        assert!(small.most <= THREADS * 1200, "{small:?}");
    }

    #[test]
    fn the_same_figures_come_out_again_and_hold() {
        let first = transient(Effort::Trial, &|_| {}).unwrap();
        assert!(first.holds(), "{:?}", first.contradicted);
        assert_eq!(first, transient(Effort::Trial, &|_| {}).unwrap());
        assert_eq!(first.rows.len(), 3 * INCREMENTS.len());
    }

    #[test]
    fn more_than_the_threads_can_leave_is_a_contradiction() {
        let found = Found {
            most: THREADS * 1200 + 1200,
            live: 1 << 20,
            footprint: 1 << 20,
            ..Found::default()
        };
        assert_eq!(contradictions(Some(32), &found).len(), 1);
        assert_eq!(contradictions(None, &found).len(), 1);
        let taken = Found {
            footprint: 1 << 30,
            most: 0,
            ..found
        };
        assert_eq!(contradictions(Some(32), &taken).len(), 1);
    }
}
