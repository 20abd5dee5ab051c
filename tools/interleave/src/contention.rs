//! What threads have to do with each other's blocks, and with the lock of a heap that they share.
//!
//! Invariant: counts are of the recorded order and times, whatever another run would have.

use metes_explore::Operation;
use metes_explore::report::{Sharing, Taken, ThreadFigures};

use crate::threads::Threads;

/// How long an operation is taken to hold the lock, nanoseconds: a heap of constant time, one that searches, one that asks
/// the system.
pub const WINDOWS_NS: [u64; 4] = [50, 200, 1000, 10_000];

/// Counts over all threads. O(events × windows).
#[must_use]
pub fn sharing(threads: &Threads) -> Sharing {
    let steps = threads.steps();
    let pairs = steps.iter().zip(steps.iter().skip(1));
    let mut sharing = Sharing {
        switches: pairs
            .filter(|(one, next)| one.thread != next.thread)
            .count() as u64,
        ..Sharing::default()
    };
    for step in steps {
        let Some(before) = steps.get(step.before as usize) else {
            continue;
        };
        match step.operation {
            Operation::Free if step.owner != step.thread => {
                sharing.freed_elsewhere += 1;
                sharing.freed_elsewhere_bytes += before.size;
            }
            Operation::Resize if step.owner != step.thread => {
                sharing.resized_elsewhere += 1;
            }
            _ => {}
        }
    }
    if steps.iter().any(|step| step.time_ns > 0) {
        sharing.taken = WINDOWS_NS.map(|window| taken(threads, window)).to_vec();
    }
    sharing
}

/// How often an operation begins while one of another thread, which began before it, holds the lock.
fn taken(threads: &Threads, window: u64) -> Taken {
    let steps = threads.steps();
    // Those that may hold the lock still, from the first on.
    let mut first = 0;
    let mut operations = 0;
    let mut by_thread = vec![0_u32; threads.threads().len()];
    let mut all = 0;
    let mut order: Vec<u32> = (0..steps.len() as u32).collect();
    // Recorded times of different threads need not rise with the order.
    order.sort_by_key(|&event| steps[event as usize].time_ns);
    for (index, &event) in order.iter().enumerate() {
        let step = &steps[event as usize];
        while first < index {
            let old = &steps[order[first] as usize];
            if old.time_ns.saturating_add(window) > step.time_ns {
                break;
            }
            by_thread[old.thread as usize] -= 1;
            all -= 1;
            first += 1;
        }
        let others = all - by_thread[step.thread as usize];
        operations += u64::from(others > 0);
        by_thread[step.thread as usize] += 1;
        all += 1;
    }
    Taken {
        held_ns: window,
        operations,
    }
}

/// What each thread did. O(events).
#[must_use]
pub fn thread_figures(threads: &Threads) -> Vec<ThreadFigures> {
    let steps = threads.steps();
    let mut figures: Vec<ThreadFigures> = (0..)
        .zip(threads.threads())
        .map(|(thread, _)| ThreadFigures {
            thread,
            ..ThreadFigures::default()
        })
        .collect();
    // Bytes that a thread has allocated and nobody has freed, in recorded order.
    let mut live = vec![0_u64; figures.len()];
    for step in steps {
        let owner = step.owner;
        let held = steps
            .get(step.before as usize)
            .map_or(0, |before| before.size);
        let own = &mut figures[step.thread as usize];
        own.events += 1;
        match step.operation {
            Operation::Allocate => own.allocations += 1,
            Operation::Resize => own.resizes += 1,
            Operation::Free => {
                own.frees += 1;
                own.freed_of_others += u64::from(owner != step.thread);
                figures[owner as usize].freed_by_others += u64::from(owner != step.thread);
            }
        }
        let live = &mut live[owner as usize];
        *live = *live + step.size - held;
        let owner = &mut figures[owner as usize];
        owner.peak_live = owner.peak_live.max(*live);
    }
    figures
}
