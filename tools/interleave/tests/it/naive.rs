//! The naive model: every interleaving of a small recording, found by trying each thread at each step; and recordings drawn
//! at random.

use std::collections::HashSet;

use metes_explore::Operation;
use metes_interleave::{Order, Threads};
use metes_trace::{Provenance, Trace, TraceBuilder};
use proptest::prelude::*;

/// A recording, an event a word: `0+5` is an allocation of 5 bytes by thread 0, `1-0` a free of block 0 by thread 1, `1:0=7`
/// its resize to 7 bytes. Blocks are numbered as allocated; each event is a nanosecond after the one before.
pub(crate) fn recording(text: &str) -> Threads {
    Threads::of(&trace(text)).expect("a recording")
}

pub(crate) fn trace(text: &str) -> Trace {
    let mut builder = TraceBuilder::new();
    for (time, word) in (1..).zip(text.split_whitespace()) {
        let at = word.find(['+', '-', ':']).expect("an operation");
        let (thread, rest) = (number(&word[..at]) as u32, &word[at + 1..]);
        let done = match word.as_bytes()[at] {
            b'+' => builder.alloc(time, thread, number(rest), 16).map(drop),
            b'-' => builder.free(time, thread, number(rest)),
            _ => {
                let (block, size) = rest.split_once('=').expect("a size");
                builder.resize(time, thread, number(block), number(size), 16)
            }
        };
        done.expect("a recording");
    }
    builder.finish(Provenance::default())
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Every interleaving.
pub(crate) fn all(threads: &Threads) -> HashSet<Order> {
    let mut found = HashSet::new();
    let mut so_far = Vec::new();
    extend(threads, &mut so_far, &mut found);
    found
}

fn extend(threads: &Threads, so_far: &mut Order, found: &mut HashSet<Order>) {
    if so_far.len() == threads.steps().len() {
        found.insert(so_far.clone());
        return;
    }
    for own in threads.threads() {
        let next = own.iter().find(|event| !so_far.contains(event));
        let Some(&event) = next else { continue };
        // On its block nothing that was recorded before may be left.
        let block = threads.steps()[event as usize].block;
        let earlier = (0..event).filter(|&other| threads.steps()[other as usize].block == block);
        if { earlier }.all(|other| so_far.contains(&other)) {
            so_far.push(event);
            extend(threads, so_far, found);
            so_far.pop();
        }
    }
}

/// Most live bytes of an order, by a table of blocks.
pub(crate) fn peak(threads: &Threads, order: &[u32]) -> u64 {
    let mut held = vec![0; threads.steps().len()];
    let mut most = 0;
    for &event in order {
        let step = &threads.steps()[event as usize];
        held[step.block as usize] = match step.operation {
            Operation::Free => 0,
            _ => step.size,
        };
        most = most.max(held.iter().sum());
    }
    most
}

/// Recordings of up to three threads and some events.
pub(crate) fn small(events: usize) -> impl Strategy<Value = Trace> {
    let event = (0_u32..3, 0_u8..4, 1_u64..40, any::<prop::sample::Index>());
    prop::collection::vec(event, 1..=events).prop_map(|events| {
        let mut builder = TraceBuilder::new();
        let mut live: Vec<u64> = Vec::new();
        for (time, (thread, what, size, which)) in (0..).zip(events) {
            let time = 10 * time;
            if what < 2 || live.is_empty() {
                live.push(builder.alloc(time, thread, size, 16).expect("fresh"));
                continue;
            }
            let at = which.index(live.len());
            match what {
                2 => builder.free(time, thread, live.swap_remove(at)),
                _ => builder.resize(time, thread, live[at], size, 16),
            }
            .expect("live");
        }
        builder.finish(Provenance::default())
    })
}
