//! A few windows of a long trace, each a short trace of its own.
//!
//! A heap met in the middle of a program is not empty. So a window begins with
//! the blocks that live where it starts: they are allocated first, in the order
//! in which the program allocated them, each with the size and the alignment that
//! it has by then. What that costs is not counted; what it takes is.
//!
//! Such a beginning is plausible, but has no holes: what a heap loses to holes over
//! millions of requests, windows do not show. So they choose which heaps are worth
//! a whole replay, and nothing is claimed by them.
//!
//! Invariant: one window holds the peak of live bytes; windows depend on the
//! trace and the number of events asked for alone.

use crate::events::{Event, Events, EventsBuilder, Operation};

/// Most windows; more of them are shorter, and begin less often where a heap has
/// got into trouble.
const MOST: usize = 8;

/// Windows of about `sample` events together, those that set a heap up included.
/// `None` where they would not be much less work than the whole trace: where it
/// is short, or lives of blocks that it keeps. O(events).
pub(crate) fn windows(events: &Events, sample: usize) -> Option<Vec<Events>> {
    let all = events.as_slice();
    if sample == 0 || sample > all.len() / 2 {
        return None;
    }
    let Lives { peak, mean_blocks } = Lives::of(events);
    let count = (sample / 2 / mean_blocks.max(1)).clamp(1, MOST);
    let length = sample.saturating_sub(count * mean_blocks).max(sample / 2) / count;
    let stretch = all.len() / count;
    let last = all.len() - length;
    let starts = (0..count).map(|number| {
        let from = number * stretch;
        let start = if (from..from + stretch).contains(&peak) || number == count - 1 && peak >= from
        {
            // Mostly what leads to the peak, and some of what follows.
            peak.saturating_sub(length / 4 * 3)
        } else {
            from + (stretch - length) / 2
        };
        start.min(last)
    });
    let starts: Vec<usize> = starts.collect();
    let cut = cut(events, &starts, length);
    let work: usize = cut.iter().map(Events::len).sum();
    (work <= all.len() / 2).then_some(cut)
}

/// Where most bytes are live, and how many blocks in the mean.
struct Lives {
    peak: usize,
    mean_blocks: usize,
}

impl Lives {
    fn of(events: &Events) -> Self {
        let mut sizes = vec![0_u64; events.slots()];
        let (mut live, mut most, mut peak) = (0_u64, 0, 0);
        let (mut blocks, mut sum) = (0_u64, 0_u64);
        for (index, event) in events.as_slice().iter().enumerate() {
            let held = &mut sizes[event.slot() as usize];
            live -= *held;
            match event.operation() {
                Operation::Allocate => blocks += 1,
                Operation::Free => blocks -= 1,
                Operation::Resize => {}
            }
            *held = event.size() as u64;
            live += *held;
            sum += blocks;
            if live > most {
                (most, peak) = (live, index);
            }
        }
        Lives {
            peak,
            mean_blocks: (sum / events.len().max(1) as u64) as usize,
        }
    }
}

/// Windows of `length` events from each of some starts, which rise.
fn cut(events: &Events, starts: &[usize], length: usize) -> Vec<Events> {
    let all = events.as_slice();
    let mut held: Vec<Option<(usize, Event)>> = vec![None; events.slots()];
    let mut windows = Vec::with_capacity(starts.len());
    let mut at = 0;
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    for start in starts {
        for (index, event) in all.iter().enumerate().take(start).skip(at) {
            let entry = &mut held[event.slot() as usize];
            *entry = match event.operation() {
                Operation::Allocate => Some((index, *event)),
                Operation::Free => None,
                // As old as it was, of another size.
                Operation::Resize => entry.map(|(born, _)| (born, *event)),
            };
        }
        at = start;
        windows.push(window(&held, &all[start..start + length]));
    }
    windows
}

/// One window, after the blocks that live where it starts.
fn window(held: &[Option<(usize, Event)>], events: &[Event]) -> Events {
    let mut living: Vec<(usize, Event)> = held.iter().copied().flatten().collect();
    living.sort_unstable_by_key(|&(born, _)| born);
    let mut builder = EventsBuilder::new();
    let mut add = |operation, event: &Event| {
        // A slot holds one block at a time, so that it names it.
        let (block, size) = (u64::from(event.slot()), event.size() as u64);
        builder.push(operation, block, size, event.align() as u64)
    };
    for (_, event) in &living {
        let added = add(Operation::Allocate, event);
        debug_assert!(added.is_ok(), "a slot holds one block");
    }
    for event in events {
        let added = add(event.operation(), event);
        debug_assert!(added.is_ok(), "events agree with those before them");
    }
    builder.finish().counted_from(living.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(builder: &mut EventsBuilder, operation: Operation, block: u64, size: u64) {
        builder.push(operation, block, size, 0).unwrap();
    }

    /// Ten blocks that stay, the last ones in another order than by slot, then
    /// short lives; the peak lies in the last tenth.
    fn long() -> Events {
        let mut builder = EventsBuilder::new();
        for block in 0..10 {
            push(&mut builder, Operation::Allocate, block, 100 + block);
        }
        push(&mut builder, Operation::Free, 3, 0);
        push(&mut builder, Operation::Allocate, 10, 110);
        push(&mut builder, Operation::Resize, 5, 777);
        for block in 100..1100 {
            let size = if block == 1000 { 9000 } else { 40 };
            push(&mut builder, Operation::Allocate, block, size);
            push(&mut builder, Operation::Free, block, 0);
        }
        builder.finish()
    }

    #[test]
    fn a_window_begins_with_what_lives_in_the_order_of_birth() {
        let windows = windows(&long(), 400).unwrap();
        assert_eq!(windows.len(), MOST);
        for window in &windows {
            let setup = &window.as_slice()[..window.counted()];
            let sizes: Vec<usize> = setup.iter().map(|event| event.size()).collect();
            let last = setup.len();
            let stays = [100, 101, 102, 104, 777, 106, 107, 108, 109, 110];
            assert_eq!(sizes[..10], stays);
            // And one of the short-lived, where it starts between two of its events.
            assert!(last == 10 || last == 11 && matches!(sizes[10], 40 | 9000));
            assert!(
                setup
                    .iter()
                    .all(|event| event.operation() == Operation::Allocate)
            );
        }
        let peaks = windows.iter().map(Events::peak_live);
        assert_eq!(peaks.max(), Some(long().peak_live()), "the peak is in one");
        let work: usize = windows.iter().map(Events::len).sum();
        assert!((300..=500).contains(&work), "{work}");
    }

    #[test]
    fn what_windows_would_not_shorten_is_replayed_whole() {
        assert_eq!(windows(&long(), 1100), None, "more than half of it");
        let mut keeps = EventsBuilder::new();
        for block in 0..1000 {
            push(&mut keeps, Operation::Allocate, block, 16);
        }
        assert_eq!(windows(&keeps.finish(), 400), None, "all lives at the end");
        assert_eq!(windows(&Events::default(), 0), None);
    }
}
