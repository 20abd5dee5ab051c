//! First fit by a tree beside the list whose decisions it takes: `first_fit [OPERATIONS] [SEED]`, by default 10⁸.
//!
//! Programs of random sizes, lifetimes and phases run on both heaps, over tags and hardened tags. Ends with status 1 at the
//! first block that lies elsewhere.
//!
//! Invariant: what is printed was counted in this run.

use std::process::ExitCode;
use std::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::index::first_fit::FirstFitTree;
use metes_heap::index::list::ConstantList;
use metes_heap::store::tagged::{Memory, TaggedBlock};
use metes_heap::{Fit, Hardened, Heap, ListFit, Order, Store, Tagged};
use metes_random::Random;

/// Bytes of each heap's blocks.
const BYTES: usize = 4 << 20;
/// Operations of a program.
const PROGRAM: u64 = 1_000_000;

type List =
    ListFit<ConstantList<{ Fit::First as usize }, { Order::Address as usize }>, TaggedBlock>;

/// A heap, and where its blocks begin.
struct Side<I, S: Store> {
    heap: Heap<I, S>,
    begin: usize,
}

impl<I: Index<S>, S: Store<Region = Memory, Place = NonNull<u8>>> Side<I, S> {
    fn new(index: I, store: S) -> Self {
        let mut heap = Heap::new(index, store);
        heap.reserve_span(2 * BYTES);
        let control = heap.smallest_region() - heap.store().geometry().minimum;
        let memory = metes_oracle::memory(control + BYTES);
        // Hardened records are read before they are written.
        // SAFETY: fresh memory of that length.
        unsafe { memory.start().as_ptr().write_bytes(0, memory.bytes()) };
        if heap.add_region(memory).is_err() {
            unreachable!("the memory has room for the control structure");
        }
        let mut first = usize::MAX;
        let walked = heap.walk(|info| first = first.min(info.offset));
        assert_eq!(walked, Ok(()));
        let begin = memory.start().as_ptr().addr() + first;
        Side { heap, begin }
    }

    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.heap.allocate(size, 1)
    }

    fn offset(&self, place: NonNull<u8>) -> usize {
        place.as_ptr().addr() - self.begin
    }
}

/// Runs a program on both; what it did.
fn program<S>(store: impl Fn() -> S, seed: u64, operations: u64) -> Result<Counts, String>
where
    S: Store<Region = Memory, Place = NonNull<u8>, Block = TaggedBlock>,
{
    let mut random = Random::new(seed);
    let mut tree = Side::new(FirstFitTree::new(), store());
    let mut list = Side::new(List::new(), store());
    let mut held: Vec<(NonNull<u8>, NonNull<u8>)> = Vec::new();
    let mut counts = Counts::default();
    // Sizes up to 2^most, and how many blocks are aimed at; both change from phase to phase.
    let (mut most, mut aim) = (10, 500);
    for operation in 0..operations {
        if operation % 20_000 == 0 {
            most = random.between(5, 17);
            aim = random.between(4, 4000);
        }
        if random.below(2 * aim) >= held.len() as u64 {
            let widest = random.between(0, most);
            let size = random.below(1 << widest) as usize;
            let both = (tree.allocate(size), list.allocate(size));
            let offsets = (
                both.0.map(|place| tree.offset(place)),
                both.1.map(|place| list.offset(place)),
            );
            if offsets.0 != offsets.1 {
                return Err(format!(
                    "seed {seed}, operation {operation}: {size} bytes at {offsets:?}"
                ));
            }
            match both.0.zip(both.1) {
                Some(both) => {
                    counts.allocated += 1;
                    held.push(both);
                }
                None => counts.refused += 1,
            }
        } else {
            let (one, two) = held.swap_remove(random.below(held.len() as u64) as usize);
            // SAFETY: both are in use, and forgotten.
            let freed = unsafe { (tree.heap.free(one), list.heap.free(two)) };
            assert_eq!(freed, (Ok(()), Ok(())));
            counts.freed += 1;
        }
    }
    assert_eq!(tree.heap.check(), Ok(()));
    Ok(counts)
}

#[derive(Default)]
struct Counts {
    allocated: u64,
    refused: u64,
    freed: u64,
}

fn number(word: Option<String>, default: u64) -> u64 {
    word.map_or(default, |word| {
        word.parse().unwrap_or_else(|_| {
            eprintln!("first_fit: `{word}` is no number: give OPERATIONS and SEED");
            std::process::exit(2);
        })
    })
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let operations = number(words.next(), 100_000_000);
    let seed = number(words.next(), 1);
    let mut total = Counts::default();
    let mut left = operations;
    let mut programs = 0;
    while left > 0 {
        let length = left.min(PROGRAM);
        let seed = seed.wrapping_mul(1 << 32).wrapping_add(programs);
        let ran = match programs % 4 {
            0 => program(|| Hardened::new(5), seed, length),
            _ => program(Tagged::<false>::new, seed, length),
        };
        match ran {
            Ok(counts) => {
                total.allocated += counts.allocated;
                total.refused += counts.refused;
                total.freed += counts.freed;
            }
            Err(difference) => {
                println!("{difference}");
                return ExitCode::FAILURE;
            }
        }
        programs += 1;
        left -= length;
    }
    println!(
        "{operations} operations in {programs} programs, {} blocks allocated, {} requests refused, {} blocks freed: every \
         block where the list puts it",
        total.allocated, total.refused, total.freed
    );
    ExitCode::SUCCESS
}
