//! Instructions of single calls, over sequences that make them long. Apart, as the processor traps after each instruction.
//!
//! Invariant: what is counted depends on code and data alone, so a maximum is the same in each run of a build.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::mpsc;

use metes_random::Random;
use metes_step::{Call, Stepper};
use metes_threads::ThreadAlloc;

static HEAP: ThreadAlloc = ThreadAlloc::new();

extern "C" fn allocate(size: usize) -> *mut u8 {
    // SAFETY: a size and an alignment that there are.
    unsafe { HEAP.alloc(Layout::from_size_align_unchecked(size, 16)) }
}

extern "C" fn free(place: *mut u8, size: usize) {
    // SAFETY: a block of that layout, which the caller is done with.
    unsafe { HEAP.dealloc(place, Layout::from_size_align_unchecked(size, 16)) }
}

/// A block by its address, to be passed on.
type Block = (usize, usize);

/// What calls of one kind took, sorted in the end.
#[derive(Default)]
struct Counts(Vec<u64>);

impl Counts {
    /// Prints median and maximum; the maximum.
    fn tell(&mut self, what: &str) -> u64 {
        self.0.sort_unstable();
        let (median, most) = (self.0[self.0.len() / 2], self.0[self.0.len() - 1]);
        println!("| {what} | {} | {median} | {most} |", self.0.len());
        most
    }
}

struct Counter(Stepper);

impl Counter {
    fn allocate(&mut self, size: usize, counts: &mut Counts) -> Block {
        let call = Call {
            function: allocate as *const () as usize,
            arguments: [size, 0, 0, 0, 0],
        };
        // SAFETY: it takes a word, and there are so many blocks of that size.
        let (place, count) = unsafe { self.0.call(call) };
        assert_ne!(place, 0);
        counts.0.push(count);
        (place, size)
    }

    fn free(&mut self, (place, size): Block, counts: &mut Counts) {
        let call = Call {
            function: free as *const () as usize,
            arguments: [place, size, 0, 0, 0],
        };
        // SAFETY: a block in use of that size.
        counts.0.push(unsafe { self.0.call(call) }.1);
    }
}

/// Blocks that another thread has allocated, which goes on: of sizes up to `most`.
fn of_another(count: usize, most: u64) -> (Vec<Block>, mpsc::Sender<()>) {
    let (sender, receiver) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let mut random = Random::new(3);
        let mut next = || {
            let size = random.between(1, most) as usize;
            (allocate(size).expose_provenance(), size)
        };
        let blocks: Vec<Block> = (0..count).map(|_| next()).collect();
        sender.send(blocks).expect("somebody waits");
        let _ = ended.recv();
    });
    (receiver.recv().expect("blocks"), end)
}

/// So many in a release, fewer where each takes ten times as long.
fn few(release: usize) -> usize {
    match cfg!(debug_assertions) {
        true => release / 10,
        false => release,
    }
}

/// Has another thread free blocks of this one.
fn freed_by_another(blocks: Vec<Block>) {
    let freed = std::thread::spawn(move || {
        for (place, size) in blocks {
            free(std::ptr::with_exposed_provenance_mut(place), size);
        }
    });
    freed.join().expect("a thread");
}

#[test]
fn no_call_takes_more_than_so_many() {
    println!("| calls | how many | median | maximum |");
    let mut counter = Counter(Stepper::new().expect("a handler of traps"));
    let mut random = Random::new(1);

    // Churn of a thread by itself.
    let (mut allocations, mut frees) = (Counts::default(), Counts::default());
    let mut blocks: Vec<Block> = (0..1000)
        .map(|_| (allocate(64).expose_provenance(), 64))
        .collect();
    for _ in 0..few(2000) {
        let place = random.below(blocks.len() as u64) as usize;
        let block = blocks.swap_remove(place);
        counter.free(block, &mut frees);
        blocks.push(counter.allocate(random.between(1, 1024) as usize, &mut allocations));
    }
    let own = [
        allocations.tell("allocate, own churn"),
        frees.tell("free, own churn"),
    ];

    // Pages begin and end.
    let (mut begins, mut ends) = (Counts::default(), Counts::default());
    for size in [16, 24, 200, 1000, 8000, 30_000, 120_000] {
        let many: Vec<Block> = (0..few(1000).min(8_000_000 / size))
            .map(|_| counter.allocate(size, &mut begins))
            .collect();
        many.into_iter()
            .for_each(|block| counter.free(block, &mut ends));
    }
    let pages = [
        begins.tell("allocate, pages begin"),
        ends.tell("free, pages end"),
    ];

    // Another's blocks.
    let mut others = Counts::default();
    let (foreign, _end) = of_another(few(2000), 1024);
    foreign
        .into_iter()
        .for_each(|block| counter.free(block, &mut others));
    let others = others.tell("free, of another's");

    // What others have freed is taken back.
    let mut drains = Counts::default();
    for size in [16, 64, 512] {
        let many: Vec<Block> = (0..8000)
            .map(|_| (allocate(size).expose_provenance(), size))
            .collect();
        freed_by_another(many);
        let again: Vec<Block> = (0..1000)
            .map(|_| counter.allocate(size, &mut drains))
            .collect();
        // Of many threads that sleep, too.
        freed_by_another(again);
    }
    let drains = drains.tell("allocate, others have freed");

    // An unoptimised build takes some ten times as many.
    let times = if cfg!(debug_assertions) { 20 } else { 1 };
    for (most, limit) in [
        (own[0], 2000),
        (own[1], 200),
        (pages[0], 2000),
        (pages[1], 400),
        (others, 200),
        (drains, 4000),
    ] {
        assert!(most <= times * limit, "{most} instructions, of {limit}");
    }
}
