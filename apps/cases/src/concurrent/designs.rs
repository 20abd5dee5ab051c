//! The designs that are compared, as threads see them.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use metes_heap::Memory;
use metes_heap::compact::{
    CompactFit, Copying, Granularity, Handle, Instances, Kappa, Member, NonCompacting, Options,
    Partition, Population, SharedCompactFit, Sharing,
};

use super::ConcurrentError;
use super::system::System;
use metes_lab::Random;

/// How threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// A heap without locks for each thread: what the machine allows.
    Unshared,
    /// 1-CF.
    Shared(Granularity),
    /// n-CF: so many threads an instance.
    Instances(usize),
    /// Optimised, non-compacting: plain addresses, one lock around each heap, and so many
    /// threads a heap. κ is ∞.
    Optimised(usize),
}

pub(super) const CLASS_LOCKS: Design = Design::Shared(Granularity::Class);
pub(super) const PAGE_LOCKS: Design = Design::Shared(Granularity::Page);

impl Design {
    pub(super) fn name(self) -> String {
        match self {
            Design::Unshared => "a heap a thread, no locks".into(),
            CLASS_LOCKS => "1-CF, class locks".into(),
            PAGE_LOCKS => "1-CF, page locks".into(),
            Design::Instances(1) => "n-CF, an instance a thread".into(),
            Design::Instances(degree) => format!("n-CF, {degree} threads an instance"),
            Design::Optimised(1) => "optimised, an instance a thread".into(),
            Design::Optimised(degree) => format!("optimised, {degree} threads an instance"),
        }
    }
}

/// What is measured: a design, what its heap decides by, and how many threads use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) design: Design,
    pub(super) kappa: Kappa,
    pub(super) increment: Option<usize>,
    pub(super) threads: usize,
}

impl Setting {
    /// Blocks are moved at once.
    pub(super) fn whole(design: Design, kappa: Kappa, threads: usize) -> Self {
        Setting {
            design,
            kappa,
            increment: None,
            threads,
        }
    }
}

/// Malloc and free; blocks are numbers, and zero is none.
pub(super) trait Heap {
    fn allocate(&mut self, size: usize) -> u64;
    /// Whether the block was one.
    fn free(&mut self, block: u64) -> bool;
}

fn number<E>(handle: Result<Handle, E>) -> u64 {
    handle.map_or(0, Handle::to_bits)
}

impl Heap for CompactFit<Copying> {
    #[inline]
    fn allocate(&mut self, size: usize) -> u64 {
        number(CompactFit::allocate(self, size, 8))
    }

    #[inline]
    fn free(&mut self, block: u64) -> bool {
        CompactFit::free(self, Handle::from_bits(block)).is_ok()
    }
}

impl Heap for &SharedCompactFit<System> {
    #[inline]
    fn allocate(&mut self, size: usize) -> u64 {
        number(SharedCompactFit::allocate(self, size, 8))
    }

    #[inline]
    fn free(&mut self, block: u64) -> bool {
        SharedCompactFit::free(self, Handle::from_bits(block)).is_ok()
    }
}

impl Heap for (&Member<'_, System>, &Instances<System>) {
    #[inline]
    fn allocate(&mut self, size: usize) -> u64 {
        number(self.0.allocate(size, 8))
    }

    #[inline]
    fn free(&mut self, block: u64) -> bool {
        self.1.free(Handle::from_bits(block)).is_ok()
    }
}

/// Each call under the lock: others may use the heap between two.
impl Heap for &Mutex<NonCompacting> {
    #[inline]
    fn allocate(&mut self, size: usize) -> u64 {
        let mut heap = locked(self);
        let block = heap.allocate(size, 8);
        block.map_or(0, |block| block.as_ptr().expose_provenance() as u64)
    }

    #[inline]
    fn free(&mut self, block: u64) -> bool {
        let address = std::ptr::with_exposed_provenance_mut(block as usize);
        let mut heap = locked(self);
        NonNull::new(address).is_some_and(|block| heap.free(block).is_ok())
    }
}

/// A heap of its own cache lines: what neighbours write would slow it down.
#[repr(align(128))]
pub(super) struct Apart<H>(Mutex<H>);

fn alone<H>(heap: &mut Apart<H>) -> &mut H {
    heap.0
        .get_mut()
        .unwrap_or_else(|broken| broken.into_inner())
}

fn locked<H>(heap: &Mutex<H>) -> MutexGuard<'_, H> {
    heap.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// A heap of one of the designs, as one thread sees it.
pub(super) enum View<'a> {
    Unshared(&'a Mutex<CompactFit<Copying>>),
    Shared(&'a SharedCompactFit<System>),
    Member(Member<'a, System>, &'a Instances<System>),
    Optimised(&'a Mutex<NonCompacting>),
}

impl View<'_> {
    /// Runs `body` with malloc and free; the heap without locks is taken for all of it.
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut dyn Heap) -> R) -> R {
        match self {
            View::Unshared(heap) => body(&mut *locked(heap)),
            View::Shared(heap) => body(&mut &**heap),
            View::Member(member, instances) => body(&mut (member, *instances)),
            View::Optimised(heap) => body(&mut &**heap),
        }
    }
}

/// A heap of one of the designs.
pub(super) enum Built {
    Unshared(Vec<Apart<CompactFit<Copying>>>),
    Shared(Box<SharedCompactFit<System>>),
    Instances(Instances<System>),
    Optimised(Vec<Apart<NonCompacting>>, usize),
}

impl Built {
    /// In memory that nothing else uses as long as what is built lives.
    pub(super) fn new(
        setting: Setting,
        partition: Partition,
        timed: bool,
        memory: &mut [u8],
    ) -> Result<Self, ConcurrentError> {
        let system = || System::new(timed);
        let length = memory.len();
        let start: NonNull<u8> = NonNull::from(memory).cast();
        // SAFETY: the caller keeps the memory as long as the heap, and lends it once.
        let memory = unsafe { Memory::from_raw(start, length) };
        let parts = |count: usize| {
            let part = length / count;
            // SAFETY: as above, in disjoint parts.
            (0..count).map(move |index| unsafe { Memory::from_raw(start.add(index * part), part) })
        };
        let options = Options {
            partition,
            kappa: setting.kappa,
            increment: setting.increment,
        };
        let threads = setting.threads;
        Ok(match setting.design {
            Design::Unshared => {
                let heap = |memory| Ok(Apart(Mutex::new(CompactFit::new(&options, memory)?)));
                let heaps = parts(threads).map(heap);
                Built::Unshared(heaps.collect::<Result<_, ConcurrentError>>()?)
            }
            Design::Shared(granularity) => {
                let sharing = Sharing {
                    granularity,
                    threads,
                };
                let heap = SharedCompactFit::new(&options, sharing, memory, system)?;
                Built::Shared(Box::new(heap))
            }
            Design::Instances(degree) => {
                let population = Population {
                    threads,
                    instances: threads.div_ceil(degree),
                    degree,
                    spill: true,
                };
                let granularity = Granularity::Class;
                let heaps = Instances::new(&options, granularity, population, memory, system)?;
                Built::Instances(heaps)
            }
            Design::Optimised(degree) => {
                let heap = |memory| Ok(Apart(Mutex::new(NonCompacting::new(&partition, memory)?)));
                let heaps = parts(threads.div_ceil(degree)).map(heap);
                Built::Optimised(heaps.collect::<Result<_, ConcurrentError>>()?, degree)
            }
        })
    }

    pub(super) fn view(&self, thread: usize) -> Result<View<'_>, ConcurrentError> {
        Ok(match self {
            Built::Unshared(heaps) => View::Unshared(&heaps[thread].0),
            Built::Shared(heap) => View::Shared(heap),
            Built::Instances(heaps) => View::Member(heaps.member(thread)?, heaps),
            Built::Optimised(heaps, degree) => View::Optimised(&heaps[thread / degree].0),
        })
    }

    /// Whether every invariant of the heap holds.
    pub(super) fn check(&mut self, setting: Setting) -> Result<(), ConcurrentError> {
        let sound = match self {
            Built::Unshared(heaps) => heaps.iter_mut().try_for_each(|heap| alone(heap).check()),
            Built::Shared(heap) => heap.check(),
            Built::Instances(heaps) => heaps.check(),
            Built::Optimised(heaps, _) => heaps.iter_mut().try_for_each(|heap| alone(heap).check()),
        };
        sound.map_err(|corruption| ConcurrentError::Unsound {
            design: setting.design.name(),
            threads: setting.threads,
            corruption,
        })
    }
}

/// A thread's blocks, and its next requests.
pub(super) struct Churn {
    random: Random,
    blocks: Vec<u64>,
    sizes: (usize, usize),
    /// Requests that were refused, and frees.
    pub(super) refused: u64,
}

impl Churn {
    pub(super) fn new(seed: u64, live: usize, sizes: (usize, usize), heap: &mut dyn Heap) -> Self {
        let mut churn = Churn {
            random: Random::new(seed),
            blocks: Vec::with_capacity(live),
            sizes,
            refused: 0,
        };
        for _ in 0..live {
            churn.allocate(heap);
        }
        churn
    }

    #[inline(always)]
    fn allocate(&mut self, heap: &mut dyn Heap) {
        let (least, most) = self.sizes;
        let size = self.random.between(least as u64, most as u64) as usize;
        match heap.allocate(size) {
            0 => self.refused += 1,
            block => self.blocks.push(block),
        }
    }

    /// Frees a block and allocates another.
    #[inline(always)]
    pub(super) fn turn(&mut self, heap: &mut dyn Heap) {
        if !self.blocks.is_empty() {
            let which = self.random.below(self.blocks.len() as u64) as usize;
            let freed = heap.free(self.blocks.swap_remove(which));
            self.refused += u64::from(!freed);
        }
        self.allocate(heap);
    }
}
