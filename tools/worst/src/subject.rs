//! Heaps that run: the code whose instructions are counted.
//!
//! Each named heap with its usual parameters is compiled for these parameters,
//! as a program that contains it would be; others choose them at run time. The
//! two measured functions are never inlined into the laboratory.
//!
//! Invariant: a [`Running`] heap owns its range until it is dropped.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

mod composite;
pub(crate) mod library;

use metes_config::{Config, StoreKind};
use metes_heap::index::first_fit::{FirstFitClasses, FirstFitTree};
use metes_heap::index::list::ConstantList;
use metes_heap::index::{Index, Limits};
use metes_heap::store::tagged::TaggedBlock;
use metes_heap::{
    AnyIndex, AnyPool, Buddy, Description, Fit, FixedSizes, HalfFit, Hardened, Heap, IndexKind,
    Kingsley, Lea, Links, ListFit, Memory, Order, SegregatedFit, Store, Tagged, Tlsf,
};
use metes_step::Call;

use crate::memory::Range;

/// A heap that can be run in one range of memory. Blocks are words, never zero;
/// what they stand for is the heap's business, so a heap that moves blocks hands
/// out handles.
pub trait Subject: Sized {
    /// A block of `size` bytes, or zero.
    fn allocate(&mut self, size: usize) -> usize;

    /// Takes a block back.
    ///
    /// # Safety
    /// `block` came from this heap and is live.
    unsafe fn free(&mut self, block: usize);

    /// Reads the byte at `at` of a block: a dereference.
    ///
    /// # Safety
    /// `block` came from this heap and is live, and `at` is below its requested size.
    unsafe fn read(&mut self, block: usize, at: usize) -> u8;
}

/// The measured calls of a running heap.
#[derive(Clone, Copy)]
pub struct Calls {
    allocate: unsafe extern "C" fn(usize, *mut c_void) -> usize,
    free: unsafe extern "C" fn(usize, *mut c_void),
    read: unsafe extern "C" fn(usize, usize, *mut c_void) -> usize,
    close: unsafe fn(*mut c_void),
}

impl Calls {
    /// Those of a kind of heap.
    pub const fn of<S: Subject>() -> Calls {
        Calls {
            allocate: allocate::<S>,
            free: free::<S>,
            read: read::<S>,
            close: close::<S>,
        }
    }
}

/// A running heap. It borrows the memory that it lies in.
pub struct Running<'m> {
    heap: *mut c_void,
    calls: Calls,
    /// Whether the code was compiled for the heap's parameters.
    pub specialised: bool,
    memory: PhantomData<&'m mut ()>,
}

impl Running<'_> {
    /// Runs a heap. Its memory must outlive `'m`.
    pub fn new<S: Subject>(heap: S, specialised: bool) -> Self {
        Running {
            heap: Box::into_raw(Box::new(heap)).cast(),
            calls: Calls::of::<S>(),
            specialised,
            memory: PhantomData,
        }
    }

    /// The call that allocates.
    pub(crate) fn allocation(&self, size: usize) -> Call {
        Call {
            function: self.calls.allocate as usize,
            arguments: [size, self.heap.expose_provenance(), 0, 0, 0],
        }
    }

    /// The call that reads the byte at `at` of a block.
    pub(crate) fn access(&self, block: usize, at: usize) -> Call {
        Call {
            function: self.calls.read as usize,
            arguments: [block, at, self.heap.expose_provenance(), 0, 0],
        }
    }

    /// The call that frees.
    pub(crate) fn release(&self, block: usize) -> Call {
        Call {
            function: self.calls.free as usize,
            arguments: [block, self.heap.expose_provenance(), 0, 0, 0],
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: `heap` came from a box of the kind that `calls` is for, once.
        unsafe { (self.calls.close)(self.heap) }
    }
}

#[inline(never)]
unsafe extern "C" fn allocate<S: Subject>(size: usize, heap: *mut c_void) -> usize {
    // SAFETY: `Running` passes the heap that it holds.
    unsafe { (*heap.cast::<S>()).allocate(size) }
}

#[inline(never)]
unsafe extern "C" fn free<S: Subject>(block: usize, heap: *mut c_void) {
    // SAFETY: as above; the laboratory frees live blocks only.
    unsafe { (*heap.cast::<S>()).free(block) }
}

#[inline(never)]
unsafe extern "C" fn read<S: Subject>(block: usize, at: usize, heap: *mut c_void) -> usize {
    // SAFETY: as above, for bytes of live blocks only.
    usize::from(unsafe { (*heap.cast::<S>()).read(block, at) })
}

unsafe fn close<S: Subject>(heap: *mut c_void) {
    // SAFETY: the caller passes what `Box::into_raw` gave, once.
    drop(unsafe { Box::from_raw(heap.cast::<S>()) });
}

/// A heap of Metes with its records inside the memory, statistics kept, as malloc uses it.
struct Inside<I, S: Store>(Heap<I, S>);

impl<I, S> Subject for Inside<I, S>
where
    S: Store<Place = NonNull<u8>>,
    I: Index<S>,
{
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> usize {
        self.0.allocate(size, 1).map_or(0, exposed)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: usize) {
        // SAFETY: blocks of this heap are not zero; the rest is the trait's contract.
        let _ = unsafe { self.0.free(of_word(block)) };
    }

    #[inline(always)]
    unsafe fn read(&mut self, block: usize, at: usize) -> u8 {
        // SAFETY: the trait's contract.
        unsafe { byte(block, at) }
    }
}

/// An address as a word.
fn exposed(place: NonNull<u8>) -> usize {
    place.as_ptr().expose_provenance()
}

/// The address that a word stands for.
///
/// # Safety
/// It is not zero.
unsafe fn of_word(word: usize) -> NonNull<u8> {
    // SAFETY: the caller's contract.
    unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(word)) }
}

/// A byte of the block at an address.
///
/// # Safety
/// It is a byte of a live block.
#[inline(always)]
unsafe fn byte(block: usize, at: usize) -> u8 {
    // SAFETY: nobody need have written it, but the memory is mapped, so it is read as the
    // machine has it.
    unsafe { std::ptr::with_exposed_provenance::<u8>(block + at).read_volatile() }
}

/// What can be run in memory.
pub trait Runnable {
    /// Runs a new heap in all of `memory`. `None` where there is no code to count
    /// in, or the memory is too small.
    fn open<'m>(&self, memory: &'m mut Range) -> Option<Running<'m>>;
}

impl Runnable for Config {
    /// `None` where records lie outside the memory, or blocks move: then [`Make`] runs them.
    ///
    /// [`Make`]: crate::Make
    fn open<'m>(&self, memory: &'m mut Range) -> Option<Running<'m>> {
        if !self.store.inside() {
            return None;
        }
        let heap = &self.heap;
        if heap.general.len() > 1 || !heap.slabs().is_empty() {
            return composite::open(self, memory);
        }
        match self.store {
            StoreKind::Hardened => {
                let store = Hardened::new(composite::KEY);
                at_run_time(heap, store, memory)
            }
            _ => open(heap, memory),
        }
    }
}

fn open<'m>(heap: &Description, memory: &'m mut Range) -> Option<Running<'m>> {
    let pool = heap.general.iter().next()?;
    if !heap.dedicated.is_empty() || pool.limits != Limits::NONE {
        return at_run_time(heap, Tagged::<true>::new(), memory);
    }
    match pool.index {
        IndexKind::Classes {
            second_level: 32,
            probes: 0,
        } => run(Tlsf::<32>::new(), true, memory),
        IndexKind::Classes {
            second_level: 8,
            probes: 0,
        } => run(Tlsf::<8>::new(), true, memory),
        IndexKind::Classes {
            second_level: 1,
            probes: 0,
        } => run(<HalfFit>::new(), true, memory),
        IndexKind::Classes {
            second_level: 1,
            probes: usize::MAX,
        } => run(<SegregatedFit>::new(), true, memory),
        IndexKind::Kingsley => run(Kingsley::new(), true, memory),
        IndexKind::Lea { keep_up_to } => run(Lea::new(keep_up_to), true, memory),
        IndexKind::FixedSizes { sizes } => run(FixedSizes::new(sizes), true, memory),
        IndexKind::FirstFit {
            by_class: false, ..
        } => run(FirstFitTree::new(), true, memory),
        IndexKind::FirstFit { by_class: true, .. } => run(FirstFitClasses::new(), true, memory),
        IndexKind::Buddy { lowest: false } => run(Buddy::<false>::new(), true, memory),
        IndexKind::Buddy { lowest: true } => run(Buddy::<true>::new(), true, memory),
        IndexKind::List {
            fit,
            order,
            depth_percent: 100,
            max_fit_percent: 0,
            links: Links::Double,
        } => list(fit, order, memory),
        IndexKind::Classes { .. } | IndexKind::List { .. } => {
            at_run_time(heap, Tagged::<true>::new(), memory)
        }
    }
}

/// An index of one list, compiled for its fit and order.
type List<const FIT: usize, const ORDER: usize> = ListFit<ConstantList<FIT, ORDER>, TaggedBlock>;

fn list<'m>(fit: Fit, order: Order, memory: &'m mut Range) -> Option<Running<'m>> {
    macro_rules! lists {
        ($($fit:ident $order:ident)+) => {
            match (fit, order) {
                $((Fit::$fit, Order::$order) => {
                    const FIT: usize = Fit::$fit as usize;
                    const ORDER: usize = Order::$order as usize;
                    run(List::<FIT, ORDER>::new(), true, memory)
                })+
            }
        };
    }
    lists! {
        First Lifo First Fifo First Address
        Next Lifo Next Fifo Next Address
        Best Lifo Best Fifo Best Address
        Worst Lifo Worst Fifo Worst Address
        Exact Lifo Exact Fifo Exact Address
    }
}

/// A heap whose parameters are chosen at run time.
fn at_run_time<'m, S>(heap: &Description, store: S, memory: &'m mut Range) -> Option<Running<'m>>
where
    S: Store<Place = NonNull<u8>, Region = Memory> + 'static,
    AnyIndex<S::Block>: Index<S> + 'static,
{
    let pool = heap.general.iter().next()?;
    let index = AnyIndex::new(pool.index, pool.limits);
    if heap.dedicated.is_empty() {
        return run_in(index, store, false, memory);
    }
    let dedicated = AnyPool::describe::<S>(heap.dedicated.iter(), store.geometry(), index);
    run_in(dedicated, store, false, memory)
}

fn run<'m, I: Index<Tagged> + 'static>(
    index: I,
    specialised: bool,
    memory: &'m mut Range,
) -> Option<Running<'m>> {
    run_in(index, Tagged::new(), specialised, memory)
}

fn run_in<'m, I, S>(
    index: I,
    store: S,
    specialised: bool,
    memory: &'m mut Range,
) -> Option<Running<'m>>
where
    S: Store<Place = NonNull<u8>, Region = Memory> + 'static,
    I: Index<S> + 'static,
{
    let mut heap = Heap::new(index, store);
    // SAFETY: the range is borrowed for as long as the heap runs.
    let region = unsafe { Memory::from_raw(memory.base(), memory.length()) };
    heap.add_region(region).ok()?;
    Some(Running::new(Inside(heap), specialised))
}
