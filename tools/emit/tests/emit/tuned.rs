// A program over the emitted crate: operations in, decisions out, as driver.c.
use std::alloc::Layout;
use std::io::BufRead;
use std::ptr::NonNull;

use metes_heap::{Memory, Sources, Spot};

const ARENA: usize = DRIVER_ARENA;

struct Grown {
    lengths: Vec<usize>,
    slabs: usize,
}

// SAFETY: accounts for memory that `main` reserved behind each region.
unsafe impl Sources for Grown {
    fn increment(&self) -> usize {
        4096
    }

    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let fits = bytes <= ARENA - self.lengths[pool];
        self.lengths[pool] += if fits { bytes } else { 0 };
        fits
    }

    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let fits = bytes <= ARENA - self.slabs;
        self.slabs += if fits { bytes } else { 0 };
        fits
    }
}

fn main() {
    let capacity = ARENA.checked_div(tuned_heap::SLAB).unwrap_or(0);
    let mut memory = vec![0; tuned_heap::SLABS.memory_words(capacity)];
    let mut slack = vec![0; capacity * tuned_heap::SLABS.slots()];
    let mut heap = tuned_heap::heap(tuned_heap::objects(&mut memory, &mut slack));
    let mut grown = Grown {
        lengths: Vec::new(),
        slabs: 0,
    };
    for pool in 0..tuned_heap::POOLS {
        let general = heap.general(pool).unwrap();
        general.reserve_span(1 << 36);
        let bytes = general.smallest_region().next_multiple_of(4096);
        let layout = Layout::from_size_align(ARENA, 1 << 21).unwrap();
        // SAFETY: the layout is not empty; the memory is never given back.
        let memory = unsafe { Memory::from_raw(NonNull::new(std::alloc::alloc(layout)).unwrap(), bytes) };
        general.add_region(memory).unwrap();
        grown.lengths.push(bytes);
    }
    let mut spots = std::collections::HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let operation = words.next().unwrap();
        let mut numbers = words.map(|word| word.parse::<usize>().unwrap());
        let id = numbers.next().unwrap();
        let (size, align) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1));
        // SAFETY: the sources are this heap's, and blocks are named by their id.
        let given = unsafe {
            match operation {
                "a" => heap.allocate(size, align, &mut grown),
                "f" => {
                    if let Some(spot) = spots.remove(&id) {
                        heap.free(spot).unwrap();
                    }
                    None
                }
                _ => spots.get(&id).copied().and_then(|spot| {
                    heap.resize(spot, size, align, &mut grown, |_, _, _| {}).unwrap()
                }),
            }
        };
        let footprint = heap.footprint();
        match given {
            None => println!("- {footprint}"),
            Some(spot) => {
                spots.insert(id, spot);
                let offset = match spot {
                    Spot::Slot(offset) => (1 << 60) + offset,
                    Spot::Block(pool, place) => {
                        (pool << 44) + heap.pools().nth(pool).unwrap().place_offset(place)
                    }
                };
                println!("{offset} {footprint}");
            }
        }
    }
    assert_eq!(heap.check(), Ok(()));
    println!("check 0");
}
