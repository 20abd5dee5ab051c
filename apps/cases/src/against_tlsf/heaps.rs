//! The two heaps whose calls are counted: TLSF, and optimised, non-compacting compact-fit with
//! TLSF behind it for what exceeds the largest class.
//!
//! Invariant: blocks are addresses and never zero; neither heap keeps statistics.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use metes_heap::compact::{ClassState, NonCompacting, Partition};
use metes_heap::{Heap, Memory, Tagged, Tlsf};
use metes_step::Call;
use metes_worst::Range;

/// What malloc aligns to.
pub(super) const ALIGN: usize = 16;

/// Malloc and free.
pub(super) trait Serves {
    /// A block aligned to a power of two, or zero.
    fn allocate(&mut self, size: usize, align: usize) -> usize;

    /// Takes a block back; zero if it was none.
    ///
    /// # Safety
    /// The block came from this heap and is live.
    unsafe fn free(&mut self, block: usize) -> usize;

    /// Bytes of free page-blocks in pages in use.
    fn size_class_fragmentation(&self) -> u64;
}

/// Plain TLSF.
pub(super) type Plain = Heap<Tlsf<32>, Tagged<false>>;

fn address(block: Option<NonNull<u8>>) -> usize {
    block.map_or(0, |block| block.as_ptr().expose_provenance())
}

fn block(address: usize) -> Option<NonNull<u8>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

impl Serves for Plain {
    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> usize {
        address(Heap::allocate(self, size, align))
    }

    #[inline(always)]
    unsafe fn free(&mut self, address: usize) -> usize {
        // SAFETY: the trait's contract.
        let freed = block(address).map(|block| unsafe { Heap::free(self, block) });
        usize::from(matches!(freed, Some(Ok(()))))
    }

    fn size_class_fragmentation(&self) -> u64 {
        0
    }
}

/// Size classes, and TLSF for what they do not serve.
pub(super) struct Classes {
    small: NonCompacting<false>,
    /// Addresses of the classes.
    begin: usize,
    bytes: usize,
    large: Plain,
}

impl Classes {
    // What seldom happens is a call at the very end, so that the common way needs no stack.
    #[inline(never)]
    fn allocate_large(&mut self, size: usize, align: usize) -> usize {
        address(self.large.allocate(size, align))
    }

    /// # Safety
    /// The block came from this heap, not from its classes, and is live.
    #[inline(never)]
    unsafe fn free_large(&mut self, block: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        usize::from(unsafe { self.large.free(block) }.is_ok())
    }
}

impl Serves for Classes {
    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> usize {
        match self.small.allocate(size, align) {
            Some(block) => block.as_ptr().expose_provenance(),
            None => self.allocate_large(size, align),
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, address: usize) -> usize {
        let Some(block) = block(address) else {
            return 0;
        };
        if address.wrapping_sub(self.begin) < self.bytes {
            return usize::from(self.small.free(block).is_ok());
        }
        // SAFETY: the trait's contract.
        unsafe { self.free_large(block) }
    }

    fn size_class_fragmentation(&self) -> u64 {
        let free = |class: ClassState| u64::from(class.pages * class.blocks - class.used);
        let states = self.small.states();
        states.map(|class| free(class) * class.block as u64).sum()
    }
}

/// A heap by its calls, in memory that it borrows.
pub(super) struct Running<'m, S> {
    heap: Box<S>,
    memory: PhantomData<&'m mut Range>,
}

#[inline(never)]
unsafe extern "C" fn allocate<S: Serves>(size: usize, heap: *mut c_void) -> usize {
    // SAFETY: `Running` passes the heap that it holds, and holds no reference meanwhile.
    unsafe { (*heap.cast::<S>()).allocate(size, ALIGN) }
}

#[inline(never)]
unsafe extern "C" fn allocate_aligned<S: Serves>(
    size: usize,
    align: usize,
    heap: *mut c_void,
) -> usize {
    // SAFETY: as above.
    unsafe { (*heap.cast::<S>()).allocate(size, align) }
}

#[inline(never)]
unsafe extern "C" fn free<S: Serves>(block: usize, heap: *mut c_void) -> usize {
    // SAFETY: as above; only live blocks are freed.
    unsafe { (*heap.cast::<S>()).free(block) }
}

/// One half of a range.
fn half(memory: &mut Range, upper: bool) -> Memory {
    let length = memory.length() / 2;
    let offset = if upper { length } else { 0 };
    // SAFETY: within the range, which is borrowed for as long as the heap runs; the halves are
    // disjoint, and each is lent once.
    unsafe { Memory::from_raw(memory.base().add(offset), length) }
}

fn plain(memory: Memory) -> Option<Plain> {
    let mut heap = Heap::new(Tlsf::new(), Tagged::new());
    heap.add_region(memory).ok()?;
    Some(heap)
}

impl<'m> Running<'m, Plain> {
    /// TLSF in one half of the memory; none if it is too small.
    pub(super) fn plain(memory: &'m mut Range) -> Option<Self> {
        Some(Running {
            heap: Box::new(plain(half(memory, true))?),
            memory: PhantomData,
        })
    }
}

impl<'m> Running<'m, Classes> {
    /// Classes in one half of the memory, TLSF in the other; none if it is too small or the
    /// partition contradicts itself.
    pub(super) fn classes(partition: &Partition, memory: &'m mut Range) -> Option<Self> {
        let heap = Classes {
            begin: memory.base().addr().get(),
            bytes: memory.length() / 2,
            small: NonCompacting::new(partition, half(memory, false)).ok()?,
            large: plain(half(memory, true))?,
        };
        Some(Running {
            heap: Box::new(heap),
            memory: PhantomData,
        })
    }
}

impl<S: Serves> Running<'_, S> {
    fn pointer(&mut self) -> usize {
        (&raw mut *self.heap).expose_provenance()
    }

    /// The call that allocates: malloc, or one that aligns to more.
    pub(super) fn allocation(&mut self, size: usize, align: usize) -> Call {
        match align <= ALIGN {
            true => Call {
                function: allocate::<S> as *const () as usize,
                arguments: [size, self.pointer(), 0, 0, 0],
            },
            false => Call {
                function: allocate_aligned::<S> as *const () as usize,
                arguments: [size, align, self.pointer(), 0, 0],
            },
        }
    }

    /// The call that frees a live block of this heap.
    pub(super) fn release(&mut self, block: usize) -> Call {
        Call {
            function: free::<S> as *const () as usize,
            arguments: [block, self.pointer(), 0, 0, 0],
        }
    }

    /// Bytes of free page-blocks in pages in use.
    pub(super) fn size_class_fragmentation(&self) -> u64 {
        self.heap.size_class_fragmentation()
    }
}
