//! Interleavings drawn at random.
//!
//! A scheduler is imitated: a thread runs for a while, then another. How long, and how fast each thread is, is drawn anew
//! for each interleaving, over powers of two: drawing a thread for each event would give interleavings that are all alike,
//! each with all threads half way at its middle.
//!
//! Invariant: every interleaving can be drawn; the same seed draws the same.

use metes_random::{Random, mix};

use crate::threads::{NONE, Order, Threads};

/// Speeds differ up to two to this.
const SPEEDS: u64 = 7;

/// How far from the recorded order interleavings go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Within {
    /// As far as they can.
    #[default]
    All,
    /// No event comes before one that was recorded more than so many events earlier.
    Events(u64),
}

/// The interleaving of a seed. O(events × threads).
#[must_use]
pub fn shuffled(threads: &Threads, seed: u64, within: Within) -> Order {
    let mut random = Random::new(mix(seed));
    let all = threads.threads();
    let events = threads.steps().len();
    let longest = (events / all.len().max(1)).max(1) as u64;
    let burst = 1_u64 << random.below(u64::from(longest.ilog2()) + 1);
    let speeds: Vec<u64> = all.iter().map(|_| 1 << random.below(SPEEDS)).collect();
    let mut run = Run {
        threads,
        so_far: vec![0; all.len()],
        order: Order::with_capacity(events),
        done: vec![false; events],
        first: 0,
        reach: match within {
            Within::All => u64::from(NONE),
            Within::Events(events) => events,
        },
    };
    let mut ready: Vec<usize> = Vec::new();
    while run.order.len() < events {
        ready.clear();
        ready.extend((0..all.len()).filter(|&thread| run.next(thread).is_some()));
        let total: u64 = ready.iter().map(|&thread| speeds[thread]).sum();
        let mut drawn = random.below(total);
        let chosen = ready.iter().find(|&&thread| {
            let own = speeds[thread];
            let here = drawn < own;
            drawn = drawn.wrapping_sub(own);
            here
        });
        let Some(&thread) = chosen else { break };
        // One event is among the lengths, so that no order is beyond reach.
        for _ in 0..=random.below(2 * burst - 1) {
            let Some(event) = run.next(thread) else { break };
            run.take(thread, event);
        }
    }
    run.order
}

/// An interleaving under way.
struct Run<'t> {
    threads: &'t Threads,
    so_far: Vec<u32>,
    order: Order,
    done: Vec<bool>,
    /// The first event that is not done, as recorded.
    first: usize,
    reach: u64,
}

impl Run<'_> {
    /// The next event of a thread, if it may be next of all. That of the first event that is not done always may: what it
    /// needs was recorded before it.
    fn next(&self, thread: usize) -> Option<u32> {
        let own = &self.threads.threads()[thread];
        let event = *own.get(self.so_far[thread] as usize)?;
        let near = u64::from(event) <= self.first as u64 + self.reach;
        (near && self.threads.may_follow(event, &self.so_far)).then_some(event)
    }

    fn take(&mut self, thread: usize, event: u32) {
        self.so_far[thread] += 1;
        self.order.push(event);
        self.done[event as usize] = true;
        while self.done.get(self.first).is_some_and(|done| *done) {
            self.first += 1;
        }
    }
}
