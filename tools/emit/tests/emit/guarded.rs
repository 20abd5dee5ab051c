// A hardened heap under operations of which some are bad: what it decides and reports,
// a line an operation. The test plays them on the library's heap, an example of the
// emitted crate on the emitted one.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::{Composite, Hardened, Memory, Sources, Spot};

struct Grown {
    arena: usize,
    lengths: Vec<usize>,
    slabs: usize,
}

// SAFETY: accounts for memory that `play` reserved behind each region.
unsafe impl Sources for Grown {
    fn increment(&self) -> usize {
        4096
    }

    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let fits = bytes <= self.arena - self.lengths[pool];
        self.lengths[pool] += if fits { bytes } else { 0 };
        fits
    }

    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.arena - self.slabs;
        self.slabs += if fits { bytes } else { 0 };
        fits
    }
}

/// Zeroed memory, which is never given back.
fn reserved(arena: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(arena, 1 << 21).unwrap();
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap()
}

/// Operations: `a ID SIZE ALIGN`, `r ID SIZE ALIGN`, `f ID`, also of what is free;
/// `m ID BYTES` frees so far behind the block's beginning; `w ID BYTES COUNT` overwrites so
/// many bytes there, of blocks in general pools: with zeros, and with ones what was zero.
/// (A byte of a link may be zero already, which depends on where the memory lies: what is
/// reported must not.)
pub(crate) fn play<I: Index<Hardened>, const POOLS: usize>(
    heap: &mut Composite<'_, I, Hardened, POOLS>,
    pools: usize,
    arena: usize,
    operations: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut grown = Grown {
        arena,
        lengths: Vec::new(),
        slabs: 0,
    };
    let slabs = reserved(arena);
    for pool in 0..pools {
        let general = heap.general(pool).unwrap();
        general.reserve_span(1 << 36);
        let bytes = general.smallest_region().next_multiple_of(4096);
        // SAFETY: so many bytes were just reserved, for this pool alone.
        general
            .add_region(unsafe { Memory::from_raw(reserved(arena), bytes) })
            .unwrap();
        grown.lengths.push(bytes);
    }
    let mut lines = Vec::new();
    let mut spots: HashMap<i128, Spot<NonNull<u8>>> = HashMap::new();
    let address = |spot: Spot<NonNull<u8>>| match spot {
        Spot::Block(_, place) => place.as_ptr(),
        Spot::Slot(offset) => slabs.as_ptr().wrapping_add(offset),
    };
    for operation in operations {
        let mut words = operation.split(' ');
        let kind = words.next().unwrap();
        let numbers: Vec<i128> = words.map(|word| word.parse().unwrap()).collect();
        let id = numbers[0];
        let [first, second] = [1, 2].map(|at| numbers.get(at).copied().unwrap_or(0));
        let known = spots.get(&id).copied();
        // SAFETY: the sources are this heap's, whose records are verified; what is not
        // in use is refused, and what is overwritten lies in its memory.
        let told = unsafe {
            match (kind, known) {
                ("a", _) => {
                    let spot = heap.allocate(first as usize, second as usize, &mut grown);
                    Ok(spot.inspect(|&spot| {
                        address(spot).write_bytes(0, first as usize);
                        spots.insert(id, spot);
                    }))
                }
                (_, None) => Ok(None),
                ("r", Some(spot)) => heap
                    .resize(
                        spot,
                        first as usize,
                        second as usize,
                        &mut grown,
                        |from, to, bytes| {
                            address(from).copy_to_nonoverlapping(address(to), bytes);
                        },
                    )
                    .inspect(|moved| {
                        moved.map(|moved| spots.insert(id, moved));
                    }),
                ("w", Some(Spot::Block(_, place))) => {
                    for offset in first..first + second {
                        let byte = place.as_ptr().wrapping_offset(offset as isize);
                        byte.write(u8::from(byte.read() == 0));
                    }
                    Ok(None)
                }
                ("w", Some(Spot::Slot(_))) => Ok(None),
                (_, Some(Spot::Block(pool, place))) => {
                    let place =
                        NonNull::new(place.as_ptr().wrapping_offset(first as isize)).unwrap();
                    heap.free(Spot::Block(pool, place)).map(|_| None)
                }
                (_, Some(Spot::Slot(offset))) => {
                    let offset = offset.wrapping_add_signed(first as isize);
                    heap.free(Spot::Slot(offset)).map(|_| None)
                }
            }
        };
        let told = told.map(|spot| {
            spot.map(|spot| match spot {
                Spot::Slot(offset) => (1 << 60) + offset,
                Spot::Block(pool, place) => {
                    (pool << 44) + heap.pools().nth(pool).unwrap().place_offset(place)
                }
            })
        });
        lines.push(format!(
            "{told:?} {:?} {}",
            heap.take_fault(),
            heap.footprint()
        ));
    }
    lines.push(format!("{:?}", heap.check().is_ok()));
    lines
}
