//! Programs that do one bad thing with a block of one size, and say whether it was
//! obeyed. The idea is that of the security programs of mimalloc-bench (invalid frees,
//! double frees, overflows by size); the programs are our own.
//!
//! Each runs in a process of its own, because what it does is undefined: see
//! [`security`](crate::security). All use malloc and free as they find them.
//!
//! Invariant: after the bad thing nothing allocates but the program itself.

use std::ffi::c_void;
use std::hint::black_box;

/// The process ended because the heap obeyed: a block was given out twice, or one that
/// was never the heap's.
pub(crate) const OBEYED: i32 = 10;
/// The process came to its end and nothing was seen to go wrong.
pub(crate) const UNNOTICED: i32 = 11;
/// The program does not apply to blocks of this size.
pub(crate) const NOT_APPLICABLE: i32 = 12;

/// Blocks in use around the victim.
const AROUND: usize = 8;
/// Most blocks asked for beforehand.
const FILLING: usize = 1000;
/// Blocks asked for afterwards.
const AFTER: usize = 6;

/// A program: its name, whether a hardened heap finds it with certainty (but for the
/// keyed check), and what it does.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// Name.
    pub(crate) name: &'static str,
    /// Whether the outcome does not depend on what a guard byte happens to be.
    pub(crate) certain: bool,
    run: fn(&mut Victim),
}

/// All programs, in the order of the table.
pub(crate) const PROGRAMS: &[Program] = &[
    certain("double free", |v| {
        v.free(v.block);
        v.free(v.block);
    }),
    certain("double free, another in between", |v| {
        v.free(v.block);
        v.free(v.around[5]);
        v.free(v.block);
    }),
    certain("double free, merged in between", |v| {
        v.free(v.block);
        v.free(v.before());
        v.free(v.after());
        v.free(v.block);
    }),
    certain("free after resize moved it", |v| {
        let moved = v.realloc(v.block, 9 * v.size + 4096);
        v.keep(moved);
        if moved == v.block {
            v.leave(NOT_APPLICABLE);
        }
        v.free(v.block);
    }),
    certain("resize after free", |v| {
        v.free(v.block);
        let again = v.realloc(v.block, 2 * v.size);
        v.keep(again);
    }),
    certain("free inside the block", |v| v.free_inside(16)),
    certain("free inside, plain record forged", |v| {
        v.forge();
        v.free_inside(32);
    }),
    certain("free misaligned", |v| v.free(at(v.block, 1))),
    certain("free of the stack", |v| {
        let mut local = [0x41_u128; 64];
        v.forge_at(black_box(local.as_mut_ptr()).cast());
        v.free_foreign(at(local.as_mut_ptr().cast(), 16));
    }),
    certain("free of static memory", |v| {
        static mut MEMORY: [u128; 64] = [0x41; 64];
        let memory = black_box(&raw mut MEMORY).cast();
        v.forge_at(memory);
        v.free_foreign(at(memory, 16));
    }),
    certain("free of the null page", |v| {
        v.free(std::ptr::without_provenance_mut(16))
    }),
    certain("overflow by a zero byte", |v| v.overflow(1, 0)),
    likely("overflow by 1", |v| v.overflow(1, 0x41)),
    certain("overflow by 8", |v| v.overflow(8, 0x41)),
    certain("overflow by 16", |v| v.overflow(16, 0x41)),
    certain("overflow by 64", |v| v.overflow(64, 0x41)),
    certain("overflow, block behind freed", |v| {
        v.write(v.block, v.size as isize, 0x41, 32);
        v.free(v.after());
    }),
    certain("underflow by 1", |v| v.underflow(1)),
    certain("underflow by 8", |v| v.underflow(8)),
    certain("underflow by 16", |v| v.underflow(16)),
    certain("write to free links, then malloc", |v| {
        v.use_after_free(false)
    }),
    certain("write to free links, then free", |v| v.use_after_free(true)),
    certain("free link to the stack, then malloc", |v| v.poison()),
];

const fn certain(name: &'static str, run: fn(&mut Victim)) -> Program {
    Program {
        name,
        certain: true,
        run,
    }
}

const fn likely(name: &'static str, run: fn(&mut Victim)) -> Program {
    Program {
        name,
        certain: false,
        run,
    }
}

/// Runs a program in this process, which then ends.
pub(crate) fn run(program: &Program, size: usize) -> ! {
    let mut victim = Victim::new(size);
    (program.run)(&mut victim);
    victim.finish()
}

type Block = *mut u8;

fn at(block: Block, offset: isize) -> Block {
    block.wrapping_offset(offset)
}

/// A block between others, all in use, and the blocks given out since.
struct Victim {
    size: usize,
    block: Block,
    around: [Block; AROUND],
    kept: [Block; AFTER],
    count: usize,
}

impl Victim {
    fn new(size: usize) -> Self {
        let mut victim = Victim {
            size,
            block: std::ptr::null_mut(),
            around: [std::ptr::null_mut(); AROUND],
            kept: [std::ptr::null_mut(); AFTER],
            count: 0,
        };
        // The holes that the process had are filled first, so that these lie in a row: in as
        // many tries as it takes, though not every heap has rows.
        for tried in 0..FILLING {
            victim.around.rotate_left(1);
            victim.around[AROUND - 1] = victim.malloc();
            if tried > 200 && victim.in_a_row() {
                break;
            }
        }
        victim.block = victim.around[2];
        victim
    }

    /// Whether the blocks around lie one behind the other, equally far from each other.
    fn in_a_row(&self) -> bool {
        let mut distances =
            (self.around.windows(2)).map(|pair| pair[1].addr().wrapping_sub(pair[0].addr()));
        let first = distances.next().unwrap_or(0);
        (self.size..2 * self.size + 64).contains(&first) && distances.all(|next| next == first)
    }

    fn before(&self) -> Block {
        self.around[1]
    }

    fn after(&self) -> Block {
        self.around[3]
    }

    fn malloc(&self) -> Block {
        // The compiler must not know that this is malloc.
        let malloc: unsafe extern "C" fn(usize) -> *mut c_void = black_box(libc::malloc);
        // SAFETY: has no precondition.
        let block = unsafe { malloc(self.size) }.cast::<u8>();
        if !block.is_null() {
            // SAFETY: a block of that size.
            unsafe { block.write_bytes(0x41, self.size) };
        }
        block
    }

    fn free(&self, block: Block) {
        let free: unsafe extern "C" fn(*mut c_void) = black_box(libc::free);
        // SAFETY: none: that is what is tried, in a process of its own.
        unsafe { free(black_box(block).cast()) };
    }

    fn realloc(&self, block: Block, size: usize) -> Block {
        let realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void =
            black_box(libc::realloc);
        // SAFETY: as in `free`.
        unsafe { realloc(black_box(block).cast(), size) }.cast()
    }

    fn write(&self, block: Block, offset: isize, value: u8, bytes: usize) {
        for index in 0..bytes as isize {
            // SAFETY: as in `free`.
            unsafe { at(black_box(block), offset + index).write_volatile(value) };
        }
    }

    fn keep(&mut self, block: Block) {
        if self.count < AFTER {
            self.kept[self.count] = block;
            self.count += 1;
        }
    }

    fn leave(&self, status: i32) -> ! {
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(status) }
    }

    /// Words that are a record of plain boundary tags, in front of each place.
    fn forge_at(&self, memory: Block) {
        let words = memory.cast::<usize>();
        for word in 0..16 {
            // A block of 64 bytes in use, also for glibc.
            // SAFETY: as in `free`.
            unsafe {
                words
                    .wrapping_add(word)
                    .write_volatile(if word % 2 == 1 { 0x40 } else { 0 })
            };
        }
    }

    fn forge(&self) {
        if self.size < 160 {
            self.leave(NOT_APPLICABLE);
        }
        self.forge_at(self.block);
    }

    fn free_inside(&mut self, offset: isize) {
        if self.size <= offset as usize {
            self.leave(NOT_APPLICABLE);
        }
        self.free_foreign(at(self.block, offset));
    }

    /// Frees what is no block; obeyed if it is given out.
    fn free_foreign(&mut self, place: Block) {
        self.free(place);
        for size in [24, 40, 56, 64, self.size] {
            let own = std::mem::replace(&mut self.size, size);
            let given = self.malloc();
            self.size = own;
            if given == place {
                self.leave(OBEYED);
            }
        }
    }

    fn overflow(&mut self, bytes: usize, value: u8) {
        self.write(self.block, self.size as isize, value, bytes);
        self.free(self.block);
    }

    fn underflow(&mut self, bytes: usize) {
        for index in 1..=bytes as isize {
            let byte = at(black_box(self.block), -index);
            // Another value, whatever it was: what a key made of the record may be any byte.
            // SAFETY: as in `free`.
            unsafe { byte.write_volatile(!byte.read_volatile()) };
        }
        self.free(self.block);
    }

    fn use_after_free(&mut self, then_free: bool) {
        self.free(self.block);
        self.write(self.block, 0, 0x41, self.size.min(16));
        if then_free {
            self.free(self.before());
            self.free(self.after());
        }
    }

    /// The link of a free block is made to name memory that is not the heap's.
    fn poison(&mut self) {
        let mut local = [0_u128; 16];
        let target = black_box(local.as_mut_ptr()).cast::<u8>();
        self.forge_at(target);
        self.free(self.around[5]);
        self.free(self.block);
        // SAFETY: as in `free`.
        unsafe {
            self.block
                .cast::<usize>()
                .write_volatile(at(target, 16).addr())
        };
        for _ in 0..AFTER {
            let given = self.malloc();
            if (0..256).contains(&given.addr().wrapping_sub(target.addr())) {
                self.leave(OBEYED);
            }
        }
        // Where the block was not asked for, it is merged.
        self.free(self.before());
        self.free(self.after());
    }

    /// Uses the heap on, and looks for blocks that lie over each other.
    fn finish(&mut self) -> ! {
        while self.count < AFTER {
            let block = self.malloc();
            self.keep(block);
        }
        for (number, &block) in self.kept.iter().enumerate() {
            if block.is_null() {
                continue;
            }
            let overlaps = |&other: &Block| {
                !other.is_null() && other.addr().abs_diff(block.addr()) < self.size
            };
            if self.kept[..number].iter().any(overlaps) {
                self.leave(OBEYED);
            }
        }
        for &block in &self.kept {
            self.free(block);
        }
        self.leave(UNNOTICED)
    }
}
