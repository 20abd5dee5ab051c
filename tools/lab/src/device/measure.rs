//! Memory, instructions and time that a heap takes for a workload.
//!
//! Invariant: figures of memory and instructions depend on the code and the workload alone.

use std::time::Instant;

use metes_device::heap::Extent;
use metes_step::{Call, Stepper, longest_call};

use super::subject::Subject;
use super::workload::{ROUND, Request, Workload};

/// Parts of the peak by which arenas are tried: half a percent each.
const PARTS: u64 = 200;
/// Arenas of up to so many times the peak are tried.
const MOST: u64 = 8;

/// A kind of heap that is measured.
pub trait Measured: Sync {
    /// Its name in tables.
    fn name(&self) -> &str;
    /// Where its records are, or how they are found.
    fn store(&self) -> &str;
    /// Whether every operation takes constant time, so that instructions must not grow.
    fn constant(&self) -> bool {
        false
    }
    /// Whether instructions are counted; not of heaps that take too many.
    fn counted(&self) -> bool {
        true
    }
    /// The smallest arena in bytes that serves the whole workload, in steps of half a percent
    /// of its peak from 1 on; `None` above 8 times the peak. Success need not be monotone in
    /// the size: it is the smallest that serves.
    fn smallest_arena(&self, workload: &Workload) -> Option<u64> {
        (PARTS..=MOST * PARTS)
            .map(|parts| workload.peak / PARTS * parts)
            .find(|&bytes| self.completes(workload, bytes))
    }
    /// Whether an arena of `bytes` bytes serves the whole workload.
    fn completes(&self, workload: &Workload, bytes: u64) -> bool;
    /// Counts instructions of calls in an arena of `bytes` bytes, where some may be refused.
    /// `None` where the heap cannot be made.
    fn instructions(
        &self,
        stepper: &mut Stepper,
        workload: &Workload,
        bytes: u64,
        which: Which,
    ) -> Option<Instructions>;
    /// Counts the instructions of a refusal while `blocks` free blocks are one granule too
    /// small. `None` where that cannot be brought about.
    fn refusal(&self, stepper: &mut Stepper, blocks: usize) -> Option<u64>;
    /// Instructions that no call can exceed, whatever happened before; `None` of heaps whose
    /// code is not looked at.
    fn bounds(&self) -> Option<Bounds> {
        None
    }
    /// Nanoseconds of each request in an arena of `bytes` bytes, two readings of the clock
    /// included; `None` where it does not serve them all.
    fn times(&self, workload: &Workload, bytes: u64) -> Option<Vec<u32>>;
    /// Bytes used and provisioned after each request when the heap has as much as it wants.
    fn provisioned(&self, workload: &Workload) -> Option<Vec<Provisioned>>;
    /// Bytes of host memory that the heap has when most blocks of the workload are live;
    /// `taken` says how many bytes of host memory are taken at all.
    fn host_bytes(&self, workload: &Workload, bytes: u64, taken: fn() -> u64) -> Option<u64>;
    /// What pages do under a cap of `bytes` bytes; `None` of heaps without pages.
    fn moves(&self, _workload: &Workload, _bytes: u64) -> Option<Moves> {
        None
    }
}

/// What the pages of a sparse heap did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moves {
    /// Allocations of the workload.
    pub allocations: u64,
    /// Pages moved.
    pub moved: u64,
    /// Most pages moved by one allocation.
    pub most: u64,
}

/// Bytes at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// Held by the program.
    pub used: u64,
    /// Taken from the device.
    pub provisioned: u64,
}

/// Instructions that no call can exceed: the longest path through its code, the call and the
/// return included. `None` where that has a loop, or goes where data says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of an allocation, served or refused.
    pub allocate: Option<u64>,
    /// Of an allocation at a multiple of any power of two, served or refused.
    pub allocate_aligned: Option<u64>,
    /// Of a free.
    pub free: Option<u64>,
}

/// Which requests of a workload are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// None before this one.
    pub from: usize,
    /// About so many, evenly spread.
    pub most: usize,
}

impl Which {
    /// Requests that follow each other are counted two by two: a free and an allocation.
    fn counts(self, index: usize, requests: usize) -> bool {
        let step = (requests - self.from).div_ceil(self.most).max(1);
        index >= self.from && ((index - self.from) / 2).is_multiple_of(step)
    }
}

/// A heap that `make` makes over an extent, `None` where it cannot.
#[derive(Debug)]
pub struct Candidate<F> {
    /// Its name in tables.
    pub name: String,
    /// Where its records are, or how they are found.
    pub store: &'static str,
    /// Whether every operation takes constant time.
    pub constant: bool,
    /// Whether instructions are counted.
    pub counted: bool,
    /// Makes one.
    pub make: F,
}

impl<S: Subject, F: Fn(Extent) -> Option<S> + Sync> Measured for Candidate<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn store(&self) -> &str {
        self.store
    }

    fn constant(&self) -> bool {
        self.constant
    }

    fn counted(&self) -> bool {
        self.counted
    }

    fn completes(&self, workload: &Workload, bytes: u64) -> bool {
        let heap = (self.make)(extent(workload, bytes));
        heap.is_some_and(|mut heap| play(&mut heap, workload, |_, _| {}))
    }

    fn instructions(
        &self,
        stepper: &mut Stepper,
        workload: &Workload,
        bytes: u64,
        which: Which,
    ) -> Option<Instructions> {
        let heap = (self.make)(extent(workload, bytes))?;
        Some(instructions(heap, stepper, workload, which))
    }

    fn refusal(&self, stepper: &mut Stepper, blocks: usize) -> Option<u64> {
        let heap = (self.make)(adversary(blocks))?;
        refusal(heap, stepper, blocks)
    }

    fn bounds(&self) -> Option<Bounds> {
        // SAFETY: functions of this program, which is loaded as a whole.
        let longest = |function| unsafe { longest_call(function) }.ok();
        Some(Bounds {
            allocate: longest(allocate::<S> as *const () as usize),
            allocate_aligned: longest(allocate_aligned::<S> as *const () as usize)
                .filter(|_| S::ALIGNS),
            free: longest(free::<S> as *const () as usize),
        })
    }

    fn times(&self, workload: &Workload, bytes: u64) -> Option<Vec<u32>> {
        let heap = (self.make)(extent(workload, bytes))?;
        times(heap, workload)
    }

    fn provisioned(&self, workload: &Workload) -> Option<Vec<Provisioned>> {
        let mut heap = (self.make)(extent(workload, MOST * workload.peak))?;
        let mut moments = Vec::with_capacity(workload.requests.len());
        let (mut used, mut provisioned) = (0, 0);
        play(&mut heap, workload, |heap, step| {
            match step {
                Step::Allocated(place, bytes) => {
                    used += bytes;
                    provisioned = provisioned.max(heap.offset(place) + bytes);
                }
                Step::Freed(bytes) => used -= bytes,
            }
            moments.push(Provisioned { used, provisioned });
        })
        .then_some(moments)
    }

    fn host_bytes(&self, workload: &Workload, bytes: u64, taken: fn() -> u64) -> Option<u64> {
        let before = taken();
        let mut heap = (self.make)(extent(workload, bytes))?;
        // The books of `play` are not the heap's.
        let books = (workload.slots * size_of::<Option<(S::Place, u64)>>()) as u64;
        let (mut live, mut most) = (0, 0);
        play(&mut heap, workload, |_, step| match step {
            Step::Allocated(..) => {
                live += 1;
                if live == workload.blocks && most == 0 {
                    most = taken().saturating_sub(before + books);
                }
            }
            Step::Freed(_) => live -= 1,
        })
        .then_some(most)
    }
}

/// What a heap is made for.
pub(super) fn extent(workload: &Workload, bytes: u64) -> Extent {
    Extent {
        bytes: bytes.next_multiple_of(ROUND),
        granule: ROUND,
        blocks: workload.blocks + 1,
    }
}

/// What the heap has just done.
pub(super) enum Step<P> {
    /// Where, and how many bytes.
    Allocated(P, u64),
    /// How many bytes.
    Freed(u64),
}

/// Has the heap serve the workload, and `see` what it does; whether it served all of it.
pub(super) fn play<S: Subject>(
    heap: &mut S,
    workload: &Workload,
    mut see: impl FnMut(&S, Step<S::Place>),
) -> bool {
    let mut held: Vec<Option<(S::Place, u64)>> = vec![None; workload.slots];
    workload.requests.iter().all(|request| match *request {
        Request::Allocate { slot, bytes } => match heap.allocate(bytes) {
            Some(place) => {
                held[slot as usize] = Some((place, bytes));
                see(heap, Step::Allocated(place, bytes));
                true
            }
            None => false,
        },
        Request::Free { slot } => {
            if let Some((place, bytes)) = held[slot as usize].take() {
                heap.free(place);
                see(heap, Step::Freed(bytes));
            }
            true
        }
    })
}

/// Nanoseconds of each request, two readings of the clock included.
pub(super) fn times<S: Subject>(mut heap: S, workload: &Workload) -> Option<Vec<u32>> {
    let mut held: Vec<Option<S::Place>> = vec![None; workload.slots];
    let mut times = Vec::with_capacity(workload.requests.len());
    for request in &workload.requests {
        let begin = Instant::now();
        match *request {
            Request::Allocate { slot, bytes } => held[slot as usize] = Some(heap.allocate(bytes)?),
            Request::Free { slot } => {
                if let Some(place) = held[slot as usize].take() {
                    heap.free(place);
                }
            }
        }
        times.push(begin.elapsed().as_nanos() as u32);
    }
    Some(times)
}

/// The median of two readings of the clock with nothing in between, in nanoseconds.
pub fn clock() -> u32 {
    let mut times: Vec<u32> = (0..10_001)
        .map(|_| Instant::now().elapsed().as_nanos() as u32)
        .collect();
    let middle = times.len() / 2;
    *times.select_nth_unstable(middle).1
}

/// Instructions of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many were counted.
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

    /// With others of the same kind.
    pub fn join(&mut self, other: Calls) {
        self.count += other.count;
        self.total += other.total;
        self.most = self.most.max(other.most);
    }

    /// Instructions of one in the mean; `None` of none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }
}

/// Instructions of a heap's calls, the call and the return included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Allocations that were served.
    pub allocate: Calls,
    /// Allocations that were refused.
    pub refuse: Calls,
    /// Frees.
    pub free: Calls,
}

impl Instructions {
    /// With others.
    pub fn join(&mut self, other: Instructions) {
        self.allocate.join(other.allocate);
        self.refuse.join(other.refuse);
        self.free.join(other.free);
    }
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

extern "C" fn allocate_aligned<S: Subject>(
    heap: &mut S,
    bytes: u64,
    align: u64,
    place: &mut Left<S>,
) {
    *place = heap.allocate_aligned(bytes, align);
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

fn instructions<S: Subject>(
    heap: S,
    stepper: &mut Stepper,
    workload: &Workload,
    which: Which,
) -> Instructions {
    let mut counted = Counted {
        heap,
        stepper,
        counted: Instructions::default(),
    };
    let mut held: Vec<Option<S::Place>> = vec![None; workload.slots];
    for (index, request) in workload.requests.iter().enumerate() {
        let counts = which.counts(index, workload.requests.len());
        match *request {
            Request::Allocate { slot, bytes } => {
                held[slot as usize] = match counts {
                    true => counted.allocate(bytes),
                    false => counted.heap.allocate(bytes),
                };
            }
            Request::Free { slot } => match held[slot as usize].take() {
                Some(place) if counts => counted.free(place),
                Some(place) => counted.heap.free(place),
                None => {}
            },
        }
    }
    counted.counted
}

/// With 32 classes a power of two the first above 2^10 granules holds 2^10 to 2^10 + 31.
const SMALL: u64 = 1024 * ROUND;
/// What keeps free blocks apart: more than pools serve.
const APART: u64 = 64 * ROUND;

fn adversary(blocks: usize) -> Extent {
    Extent {
        bytes: blocks as u64 * (SMALL + APART),
        granule: ROUND,
        blocks: 2 * blocks + 1,
    }
}

/// The adversary of every list that is searched: all free blocks have the request's own class
/// and are one granule too small.
fn refusal<S: Subject>(heap: S, stepper: &mut Stepper, blocks: usize) -> Option<u64> {
    let mut counted = Counted {
        heap,
        stepper,
        counted: Instructions::default(),
    };
    let held: Vec<_> = (0..blocks)
        .map(|_| {
            let small = counted.heap.allocate(SMALL)?;
            counted.heap.allocate(APART)?;
            Some(small)
        })
        .collect();
    for place in held {
        counted.heap.free(place?);
    }
    counted.allocate(SMALL + ROUND);
    (counted.counted.refuse.count == 1).then_some(counted.counted.refuse.most)
}
