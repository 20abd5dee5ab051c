//! A trace on a heap that runs, with the instructions of its calls counted.
//!
//! Invariant: a resize is a malloc of the new size and a free of the old block, on either heap,
//! as in the implementation of 2013, which knows no other; so both heaps get the same calls.

use metes_explore::{Event, Events, Operation};
use metes_step::{Call, Stepper};

use super::heaps::{ALIGN, Running, Serves};

/// Instructions of the calls of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) calls: u64,
    pub(super) total: u64,
    pub(super) most: u64,
}

impl Count {
    fn add(&mut self, instructions: u64) {
        self.calls += 1;
        self.total += instructions;
        self.most = self.most.max(instructions);
    }

    pub(super) fn mean(&self) -> f64 {
        self.total as f64 / self.calls as f64
    }

    /// Of both kinds.
    pub(super) fn with(&self, other: &Count) -> Count {
        Count {
            calls: self.calls + other.calls,
            total: self.total + other.total,
            most: self.most.max(other.most),
        }
    }
}

/// What a heap did with a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Of blocks that size classes serve.
    pub(super) malloc: Count,
    /// Of the same blocks.
    pub(super) free: Count,
    /// Of all other blocks: larger, or aligned to more than malloc does.
    pub(super) other: Count,
    /// Requests that got no block, and frees that were not accepted.
    pub(super) refused: u64,
    /// Bytes of free page-blocks when most bytes were live.
    pub(super) size_class: u64,
}

/// The first event after which as many bytes are live as ever.
pub(super) fn peak(events: &[Event]) -> usize {
    let mut sizes: Vec<usize> = Vec::new();
    let (mut live, mut most, mut at) = (0, 0, 0);
    for (index, event) in events.iter().enumerate() {
        let slot = event.slot() as usize;
        if slot >= sizes.len() {
            sizes.resize(slot + 1, 0);
        }
        let size = match event.operation() {
            Operation::Free => 0,
            Operation::Allocate | Operation::Resize => event.size(),
        };
        live = live - sizes[slot] + size;
        sizes[slot] = size;
        if live > most {
            (most, at) = (live, index);
        }
    }
    at
}

/// Plays a trace, in which classes serve blocks of up to `largest` bytes. With a stepper, the
/// calls of every `every`-th event are counted.
pub(super) fn play<S: Serves>(
    events: &Events,
    heap: &mut Running<'_, S>,
    largest: usize,
    mut stepper: Option<&mut Stepper>,
    every: usize,
) -> Counted {
    // The block of a slot, and whether it is one for classes.
    let mut blocks = vec![(0_usize, false); events.slots()];
    let mut counted = Counted::default();
    let peak = peak(events.as_slice());
    for (index, event) in events.as_slice().iter().enumerate() {
        let mut make = |call: Call, count: &mut Count| match &mut stepper {
            Some(stepper) if index % every == 0 => {
                // SAFETY: of this heap, as below.
                let (result, instructions) = unsafe { stepper.call(call) };
                count.add(instructions);
                result
            }
            // SAFETY: calls of this heap, which free blocks that are live.
            _ => unsafe { call.invoke() },
        };
        let slot = &mut blocks[event.slot() as usize];
        let (old, was_small) = std::mem::take(slot);
        if event.operation() != Operation::Free {
            let small = event.size() <= largest && event.align() <= ALIGN;
            let call = heap.allocation(event.size(), event.align());
            let count = if small {
                &mut counted.malloc
            } else {
                &mut counted.other
            };
            *slot = (make(call, count), small);
            counted.refused += u64::from(slot.0 == 0);
        }
        if old != 0 {
            let count = if was_small {
                &mut counted.free
            } else {
                &mut counted.other
            };
            let freed = make(heap.release(old), count);
            counted.refused += u64::from(freed != 1);
        }
        if index == peak {
            counted.size_class = heap.size_class_fragmentation();
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::super::heaps::Running;
    use super::*;
    use metes_explore::EventsBuilder;
    use metes_heap::compact::Partition;
    use metes_worst::Range;

    fn events() -> Events {
        let mut builder = EventsBuilder::new();
        let mut event = |operation, block, size, align| {
            builder.push(operation, block, size, align).unwrap();
        };
        for block in 0..40 {
            event(Operation::Allocate, block, 100 + block, 1);
        }
        event(Operation::Allocate, 40, 50_000, 1);
        event(Operation::Allocate, 41, 100, 1024);
        event(Operation::Resize, 3, 7000, 1);
        for block in 0..42 {
            event(Operation::Free, block, 0, 0);
        }
        builder.finish()
    }

    #[test]
    fn both_heaps_get_the_same_calls_and_accept_them() {
        let events = events();
        let mut memory = Range::new(1 << 24).unwrap();
        let mut stepper = Stepper::new().unwrap();
        let partition = Partition::DEFAULT;
        let mut heap = Running::classes(&partition, &mut memory).unwrap();
        let compact = play(&events, &mut heap, partition.largest, Some(&mut stepper), 1);
        drop(heap);
        let mut heap = Running::plain(&mut memory).unwrap();
        let tlsf = play(&events, &mut heap, partition.largest, Some(&mut stepper), 1);
        for counted in [compact, tlsf] {
            let calls = [
                counted.malloc.calls,
                counted.free.calls,
                counted.other.calls,
            ];
            assert_eq!((calls, counted.refused), ([41, 41, 4], 0));
            assert!(counted.malloc.most < 400 && counted.malloc.mean() > 10.0);
        }
        assert!(compact.size_class > 0);
        assert_eq!(tlsf.size_class, 0);
    }

    #[test]
    fn the_peak_is_the_first_event_with_most_live() {
        // 40 blocks, the large one, the aligned one, and the one that grows.
        assert_eq!(peak(events().as_slice()), 42);
    }

    #[test]
    fn what_is_not_stepped_is_played_all_the_same() {
        let events = events();
        let mut memory = Range::new(1 << 24).unwrap();
        let mut heap = Running::plain(&mut memory).unwrap();
        let played = play(&events, &mut heap, 8192, None, 1);
        assert_eq!((played.malloc.calls, played.refused), (0, 0));
    }
}
