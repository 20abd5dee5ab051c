//! Any sequence of operations on a hardened heap whose memory is written to in between:
//! nothing is read or written outside it, nothing loops or panics, and what is given
//! out never overlaps.
#![no_main]

use std::ptr::NonNull;

use libfuzzer_sys::fuzz_target;
use metes_heap::index::dedicated::{ChosenKeeping, UNLIMITED};
use metes_heap::{
    AnyIndex, Dedicated, Fit, Hardened, Heap, IndexKind, Limits, Memory, Order, SizeTable,
};

const ARENA: usize = 16 << 10;
const SECRET: u64 = 0x5eed_0002;

fn kind(byte: u8) -> IndexKind {
    let fits = [Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact];
    let orders = [Order::Lifo, Order::Fifo, Order::Address];
    match byte % 25 {
        0 => IndexKind::tlsf(1),
        1 => IndexKind::tlsf(32),
        2 => IndexKind::Classes { second_level: 4, probes: usize::MAX },
        3 => IndexKind::Kingsley,
        4 => IndexKind::Buddy { lowest: false },
        5 => IndexKind::Buddy { lowest: true },
        6 => IndexKind::Lea { keep_up_to: 128 },
        7 => IndexKind::FixedSizes { sizes: SizeTable::DEFAULT },
        8 => IndexKind::FirstFit { by_class: false, span: None },
        9 => IndexKind::FirstFit { by_class: true, span: None },
        other => {
            let other = usize::from(other - 10);
            IndexKind::list(fits[other % 5], orders[other / 5])
        }
    }
}

#[repr(align(4096))]
struct Bytes([u8; ARENA]);

fuzz_target!(|data: &[u8]| {
    let [first, second, steps @ ..] = data else { return };
    let mut bytes = Box::new(Bytes([0; ARENA]));
    let start = NonNull::from(&mut bytes.0).cast::<u8>();
    // SAFETY: the box outlives the heap, and is used through this pointer alone.
    let memory = unsafe { Memory::from_raw(start, ARENA) };
    let sizes = if second % 2 == 0 { [48, 112, 0] } else { [0; 3] };
    let limits = match second / 2 % 3 {
        0 => Limits::NONE,
        1 => Limits { coalesce_up_to: 512, split_down_to: 64 },
        _ => Limits { coalesce_up_to: 0, split_down_to: 0 },
    };
    let keeping = ChosenKeeping {
        limit: [[UNLIMITED, 2][usize::from(second / 6 % 2)]; 3],
        ..ChosenKeeping::DEFAULT
    };
    let index = Dedicated::with(sizes, keeping, AnyIndex::new(kind(*first), limits));
    let mut heap = Heap::new(index, Hardened::new(SECRET));
    heap.add_region(memory).unwrap();
    let mut held: Vec<(NonNull<u8>, usize)> = vec![];
    for step in steps.chunks_exact(4).take(300) {
        let value = usize::from(step[1]) | usize::from(step[2]) << 8;
        let given = match step[0] % 8 {
            0..=2 => heap.allocate(value % 2000, 1 << (step[0] / 8 % 8)).map(|place| (place, value % 2000)),
            3 | 4 if !held.is_empty() => {
                let which = value % held.len();
                // SAFETY: any address may be tried; what was freed is forgotten.
                if unsafe { heap.free(held[which].0) }.is_ok() {
                    held.swap_remove(which);
                }
                None
            }
            5 if !held.is_empty() => {
                let which = value % held.len();
                let size = usize::from(step[3]) * 9;
                // SAFETY: as above.
                match unsafe { heap.resize(held[which].0, size, 1) } {
                    Ok(Some(place)) => {
                        held.swap_remove(which);
                        Some((place, size))
                    }
                    Ok(None) | Err(_) => None,
                }
            }
            6 => {
                // SAFETY: inside the memory.
                unsafe { start.add(value % ARENA).write(step[3]) };
                None
            }
            _ => {
                // A word from one place to another: a stale or foreign record.
                let (from, to) = (usize::from(step[3]) * 8 % ARENA, value % (ARENA / 8) * 8);
                // SAFETY: words inside the memory.
                unsafe { start.add(to).cast::<u64>().write(start.add(from).cast::<u64>().read()) };
                None
            }
        };
        if let Some((place, size)) = given {
            let (begin, end) = (place.addr().get(), place.addr().get() + size);
            assert!(begin >= start.addr().get() && end <= start.addr().get() + ARENA);
            for &(other, length) in &held {
                let other = other.addr().get();
                assert!(end <= other || other + length <= begin, "blocks overlap");
            }
            // SAFETY: the heap gave these bytes.
            unsafe { place.write_bytes(0x55, size) };
            held.push((place, size));
        }
    }
    let _ = heap.check();
    let _ = heap.statistics();
});
