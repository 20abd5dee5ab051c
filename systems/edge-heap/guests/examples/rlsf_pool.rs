//! rlsf on a static pool.
use std::alloc::GlobalAlloc;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

const BYTES: usize = 8 << 20;

#[repr(align(16))]
struct Pool(UnsafeCell<MaybeUninit<[u8; BYTES]>>);

struct Heap {
    tlsf: UnsafeCell<rlsf::Tlsf<'static, u32, u32, 24, 16>>,
    pool: Pool,
    ready: UnsafeCell<bool>,
}

// SAFETY: the module has one thread.
unsafe impl Sync for Heap {}

impl Heap {
    #[allow(clippy::mut_from_ref)]
    fn tlsf(&self) -> &mut rlsf::Tlsf<'static, u32, u32, 24, 16> {
        // SAFETY: one thread, and no call within another.
        let (tlsf, ready) = unsafe { (&mut *self.tlsf.get(), &mut *self.ready.get()) };
        if !*ready {
            *ready = true;
            // SAFETY: the pool is given once.
            tlsf.insert_free_block(unsafe {
                &mut *self.pool.0.get().cast::<[MaybeUninit<u8>; BYTES]>()
            });
        }
        tlsf
    }
}

// SAFETY: as rlsf's own.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        self.tlsf()
            .allocate(layout)
            .map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: std::alloc::Layout) {
        if let Some(place) = NonNull::new(place) {
            // SAFETY: the caller's contract.
            unsafe { self.tlsf().deallocate(place, layout.align()) }
        }
    }
}

#[global_allocator]
static HEAP: Heap = Heap {
    tlsf: UnsafeCell::new(rlsf::Tlsf::new()),
    pool: Pool(UnsafeCell::new(MaybeUninit::uninit())),
    ready: UnsafeCell::new(false),
};

metes_edge_heap_guests::exports!();
