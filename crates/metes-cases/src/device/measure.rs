//! Memory and instructions that a heap takes for a workload.
//!
//! Invariant: a figure depends on the code and the workload alone.

use metes_device::heap::Extent;
use metes_step::{Call, Stepper};

use super::subject::Subject;
use super::workload::{ROUND, Request, Workload};

/// Parts of the peak by which arenas are tried: half a percent each.
const PARTS: u64 = 200;

/// The smallest arena in which the heap serves the whole workload, over its peak, in steps of
/// half a percent from 1 on. `None` above 8. Success need not be monotone in the size: it is
/// the smallest that serves.
pub fn smallest_arena<S: Subject>(workload: &Workload) -> Option<f64> {
    (PARTS..=8 * PARTS)
        .find(|parts| completes::<S>(workload, workload.peak / PARTS * parts))
        .map(|parts| parts as f64 / PARTS as f64)
}

fn extent(workload: &Workload, bytes: u64) -> Extent {
    Extent {
        bytes: bytes.next_multiple_of(ROUND),
        granule: ROUND,
        blocks: workload.blocks + 1,
    }
}

/// Whether an arena of `bytes` bytes serves the whole workload.
pub fn completes<S: Subject>(workload: &Workload, bytes: u64) -> bool {
    let Some(mut heap) = S::make(extent(workload, bytes)) else {
        return false;
    };
    let mut held = vec![None; workload.slots];
    workload.requests.iter().all(|request| match *request {
        Request::Allocate { slot, bytes } => {
            held[slot as usize] = heap.allocate(bytes);
            held[slot as usize].is_some()
        }
        Request::Free { slot } => {
            if let Some(place) = held[slot as usize].take() {
                heap.free(place);
            }
            true
        }
    })
}

/// Instructions of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Instructions of all of them.
    pub total: u64,
    /// Most instructions of one.
    pub most: u64,
}

impl Calls {
    fn add(&mut self, instructions: u64) {
        self.count += 1;
        self.total += instructions;
        self.most = self.most.max(instructions);
    }

    /// Instructions of one in the mean; 0 of none.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }
}

/// Instructions of a heap's calls, the call and the return included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Instructions {
    /// Allocations that were served.
    pub allocate: Calls,
    /// Allocations that were refused.
    pub refuse: Calls,
    /// Frees.
    pub free: Calls,
}

/// A heap whose calls are counted.
struct Counted<'a, S: Subject> {
    heap: S,
    stepper: &'a mut Stepper,
    counted: Instructions,
}

/// Where a call leaves its block.
type Left<S> = Option<<S as Subject>::Place>;

extern "C" fn allocate<S: Subject>(heap: &mut S, bytes: u64, place: &mut Left<S>) {
    *place = heap.allocate(bytes);
}

extern "C" fn free<S: Subject>(heap: &mut S, place: &S::Place) {
    heap.free(*place);
}

impl<S: Subject> Counted<'_, S> {
    fn allocate(&mut self, bytes: u64) -> Left<S> {
        let mut place: Left<S> = None;
        let call = Call {
            function: allocate::<S> as *const () as usize,
            arguments: [
                (&raw mut self.heap).addr(),
                bytes as usize,
                (&raw mut place).addr(),
                0,
                0,
            ],
        };
        // SAFETY: the function's own arguments, exclusive while it runs.
        let (_, instructions) = unsafe { self.stepper.call(call) };
        match place {
            Some(_) => self.counted.allocate.add(instructions),
            None => self.counted.refuse.add(instructions),
        }
        place
    }

    fn free(&mut self, place: S::Place) {
        let call = Call {
            function: free::<S> as *const () as usize,
            arguments: [
                (&raw mut self.heap).addr(),
                (&raw const place).addr(),
                0,
                0,
                0,
            ],
        };
        // SAFETY: the function's own arguments, exclusive while it runs.
        let (_, instructions) = unsafe { self.stepper.call(call) };
        self.counted.free.add(instructions);
    }
}

/// Counts the instructions of the workload's first `requests` requests in an arena of `bytes`
/// bytes, where some may be refused. `None` where the heap cannot be made.
pub fn instructions<S: Subject>(
    stepper: &mut Stepper,
    workload: &Workload,
    bytes: u64,
    requests: usize,
) -> Option<Instructions> {
    let mut counted = Counted::<S> {
        heap: S::make(extent(workload, bytes))?,
        stepper,
        counted: Instructions::default(),
    };
    let mut held = vec![None; workload.slots];
    for request in workload.requests.iter().take(requests) {
        match *request {
            Request::Allocate { slot, bytes } => held[slot as usize] = counted.allocate(bytes),
            Request::Free { slot } => {
                if let Some(place) = held[slot as usize].take() {
                    counted.free(place);
                }
            }
        }
    }
    Some(counted.counted)
}

/// Counts the instructions of a refusal while `blocks` free blocks of the request's own class
/// are one granule too small, the adversary of every list that is searched.
pub fn refusal<S: Subject>(stepper: &mut Stepper, blocks: usize) -> Option<u64> {
    // With 32 classes a power of two the first above 2^10 granules holds 2^10 to 2^10 + 31.
    let small = 1024;
    let bytes = blocks as u64 * (small + 1) * ROUND;
    let heap = S::make(Extent {
        bytes,
        granule: ROUND,
        blocks: 2 * blocks + 1,
    })?;
    let mut counted = Counted::<S> {
        heap,
        stepper,
        counted: Instructions::default(),
    };
    let held: Vec<_> = (0..blocks)
        .map(|_| {
            Some((
                counted.heap.allocate(small * ROUND)?,
                counted.heap.allocate(ROUND)?,
            ))
        })
        .collect();
    for pair in held {
        counted.heap.free(pair?.0);
    }
    counted.allocate((small + 1) * ROUND);
    (counted.counted.refuse.count == 1).then_some(counted.counted.refuse.most)
}
