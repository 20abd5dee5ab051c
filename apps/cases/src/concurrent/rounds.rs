//! Rounds: threads on a heap, timed from the first that begins to the last that ends.

use std::time::{Duration, Instant};

use metes_heap::compact::Partition;

use super::designs::{Built, Churn, Setting};
use super::system::{LONGEST, Start, bind};
use super::{ConcurrentError, Effort, LIVE, SIZES};

/// What a thread sleeps before it is timed.
const REST: Duration = Duration::from_millis(1);

/// Bytes of memory for so many threads.
fn bytes(threads: usize) -> usize {
    (64 << 20).max(threads * (16 << 20))
}

/// Memory for heaps of up to so many threads, one after another.
pub(super) fn memory(threads: usize) -> Vec<u8> {
    // Not zero: every page is there before anything is measured.
    vec![1; bytes(threads)]
}

/// What a thread does with its blocks; and what it gives back.
struct Load {
    partition: Partition,
    timed: bool,
    live: usize,
    sizes: (usize, usize),
    operations: usize,
}

/// A thread's run: when it began and ended, and how long a lock was held at the longest in each
/// turn, if that is timed.
struct Ran {
    start: Instant,
    end: Instant,
    held: Vec<f64>,
    refused: u64,
}

fn run(setting: Setting, load: &Load, memory: &mut [u8]) -> Result<Vec<Ran>, ConcurrentError> {
    let bytes = memory.len();
    let mut heap = Built::new(setting, load.partition, load.timed, memory)?;
    let start_line = Start::of(setting.threads);
    let one = |thread: usize, heap: &mut dyn super::designs::Heap| {
        // One block more than fills pages: where all are full, no free has to move a block.
        let live = load.live + usize::from(thread == 0);
        let mut churn = Churn::new(thread as u64 + 1, live, load.sizes, heap);
        // Who has slept gets its core at once, also from other programs.
        std::thread::sleep(REST);
        start_line.wait();
        LONGEST.set(0.0);
        let mut held = Vec::with_capacity(if load.timed { load.operations } else { 0 });
        let start = Instant::now();
        for _ in 0..load.operations {
            churn.turn(heap);
            if load.timed {
                held.push(LONGEST.replace(0.0));
            }
        }
        Ran {
            start,
            end: Instant::now(),
            held,
            refused: churn.refused,
        }
    };
    let views: Vec<_> = (0..setting.threads)
        .map(|thread| heap.view(thread))
        .collect::<Result<_, _>>()?;
    let ran: Vec<Ran> = std::thread::scope(|scope| {
        let threads: Vec<_> = views
            .into_iter()
            .enumerate()
            .map(|(thread, view)| {
                let one = &one;
                scope.spawn(move || {
                    bind(thread);
                    view.with(|heap| one(thread, heap))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(ran) => ran,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    heap.check(setting)?;
    match ran.iter().map(|ran| ran.refused).sum() {
        0 => Ok(ran),
        refused => Err(ConcurrentError::Refused {
            design: setting.design.name(),
            refused,
            bytes,
            threads: setting.threads,
        }),
    }
}

/// Calls of malloc and free per second of each setting, all its threads together: the best of
/// the rounds, in which the settings take turns.
pub(super) fn best(
    settings: &[Setting],
    effort: Effort,
    memory: &mut [u8],
) -> Result<Vec<f64>, ConcurrentError> {
    let load = Load {
        partition: Partition::DEFAULT,
        timed: false,
        live: LIVE,
        sizes: SIZES,
        operations: effort.operations(),
    };
    let mut best = vec![0_f64; settings.len()];
    for _ in 0..effort.rounds() {
        for (setting, best) in settings.iter().zip(&mut best) {
            let ran = run(*setting, &load, memory)?;
            let first = ran.iter().map(|ran| ran.start).min();
            let last = ran.iter().map(|ran| ran.end).max();
            let elapsed = last
                .zip(first)
                .map_or(f64::NAN, |(last, first)| (last - first).as_secs_f64());
            let calls = 2 * load.operations * setting.threads;
            *best = best.max(calls as f64 / elapsed);
        }
    }
    Ok(best)
}

/// Nanoseconds that a lock is held at the longest in a turn, a free and a malloc, of each turn in
/// ascending order; threads churn blocks of one size and keep up to `live_bytes` each.
pub(super) fn held(
    setting: Setting,
    partition: Partition,
    block: usize,
    live_bytes: usize,
    operations: usize,
    memory: &mut [u8],
) -> Result<Vec<f64>, ConcurrentError> {
    let load = Load {
        partition,
        timed: true,
        live: (live_bytes / block).min(LIVE),
        sizes: (block, block),
        operations,
    };
    let ran = run(setting, &load, memory)?;
    let mut times = ran.into_iter().flat_map(|ran| ran.held).collect::<Vec<_>>();
    times.sort_by(f64::total_cmp);
    Ok(times)
}
