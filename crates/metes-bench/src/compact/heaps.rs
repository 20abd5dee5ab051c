//! The designs that are compared, as threads see them.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use metes_heap::Memory;
use metes_heap::compact::{
    CompactFit, Copying, Granularity, Handle, Instances, Kappa, Member, Options, Partition,
    Population, SharedCompactFit, Sharing,
};
use metes_heap::lock::Lock;

use crate::Error;
use crate::random::Random;

/// The partition of the latency experiment: two of its largest blocks fill a page.
const LARGE: Partition = Partition {
    page: 1 << 16,
    largest: (1 << 15) - 8,
    ..Partition::DEFAULT
};
/// A lock of the operating system: on fewer cores than threads, waiting threads give way.
pub(super) struct System {
    lock: Mutex<()>,
    /// Whether it notes how long it is held.
    timed: bool,
}

thread_local! {
    /// Nanoseconds that this thread held timed locks.
    pub(super) static HELD: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: the guard lives as long as the body runs.
unsafe impl Lock for System {
    #[inline]
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        let guard = self
            .lock
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if !self.timed {
            return body();
        }
        let start = Instant::now();
        let result = body();
        let held = start.elapsed();
        drop(guard);
        HELD.with_borrow_mut(|all| all.push(held.as_nanos() as f64));
        result
    }
}

/// Binds the calling thread to one of the cores that it may use, by its number: threads that
/// share a core would take turns instead of running side by side.
pub(super) fn bind(thread: usize) {
    // SAFETY: a set of zeros is an empty set, and both calls get its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut allowed) != 0 {
            return;
        }
        let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
            .filter(|&core| libc::CPU_ISSET(core, &allowed))
            .collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cores[thread % cores.len()], &mut one);
        libc::sched_setaffinity(0, size, &one);
    }
}

/// Where threads wait for each other without leaving their cores, if there are enough.
pub(super) struct Start {
    pub(super) missing: AtomicUsize,
}

impl Start {
    pub(super) fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        let mut turns = 0u32;
        while self.missing.load(Ordering::Acquire) > 0 {
            turns += 1;
            match turns % 4096 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// How threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// A heap without locks for each thread: what the machine allows.
    Unshared,
    /// 1-CF.
    Shared(Granularity),
    /// n-CF: so many threads an instance.
    Instances(usize),
}

impl Design {
    pub(super) fn name(self) -> String {
        match self {
            Design::Unshared => "a heap a thread, no locks".into(),
            Design::Shared(Granularity::Class) => "1-CF, class locks".into(),
            Design::Shared(Granularity::Page) => "1-CF, page locks".into(),
            Design::Instances(1) => "n-CF, an instance a thread".into(),
            Design::Instances(degree) => format!("n-CF, {degree} threads an instance"),
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

/// A heap of one of the designs, as one thread sees it.
pub(super) enum View<'a> {
    Unshared(&'a Mutex<CompactFit<Copying>>),
    Shared(&'a SharedCompactFit<System>),
    Member(Member<'a, System>, &'a Instances<System>),
}

impl View<'_> {
    /// Runs `body` with malloc and free; the heap without locks is taken for all of it.
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut dyn Heap) -> R) -> R {
        match self {
            View::Unshared(heap) => {
                body(&mut *heap.lock().unwrap_or_else(|broken| broken.into_inner()))
            }
            View::Shared(heap) => body(&mut &**heap),
            View::Member(member, instances) => body(&mut (member, *instances)),
        }
    }
}

pub(super) trait Heap {
    fn allocate(&mut self, size: usize) -> Option<Handle>;
    fn free(&mut self, handle: Handle);
}

impl Heap for CompactFit<Copying> {
    fn allocate(&mut self, size: usize) -> Option<Handle> {
        CompactFit::allocate(self, size, 8).ok()
    }

    fn free(&mut self, handle: Handle) {
        let _ = CompactFit::free(self, handle);
    }
}

impl Heap for &SharedCompactFit<System> {
    fn allocate(&mut self, size: usize) -> Option<Handle> {
        SharedCompactFit::allocate(self, size, 8).ok()
    }

    fn free(&mut self, handle: Handle) {
        let _ = SharedCompactFit::free(self, handle);
    }
}

impl Heap for (&Member<'_, System>, &Instances<System>) {
    fn allocate(&mut self, size: usize) -> Option<Handle> {
        self.0.allocate(size, 8).ok()
    }

    fn free(&mut self, handle: Handle) {
        let _ = self.1.free(handle);
    }
}

/// A heap of one of the designs.
pub(super) enum Built {
    Unshared(Vec<Mutex<CompactFit<Copying>>>),
    Shared(Box<SharedCompactFit<System>>),
    Instances(Instances<System>),
}

impl Built {
    /// In memory that the heap before it has been done with.
    pub(super) fn new(setting: Setting, timed: bool, memory: &mut [u8]) -> Result<Self, Error> {
        let system = || System {
            lock: Mutex::new(()),
            timed,
        };
        let length = memory.len();
        let start: NonNull<u8> = NonNull::from(memory).cast();
        // SAFETY: the caller keeps the memory as long as the heap, and lends it once.
        let memory = unsafe { Memory::from_raw(start, length) };
        let partition = match timed {
            false => Partition::DEFAULT,
            true => LARGE,
        };
        let options = Options {
            partition,
            kappa: setting.kappa,
            increment: setting.increment,
        };
        let threads = setting.threads;
        Ok(match setting.design {
            Design::Unshared => {
                let part = length / threads;
                let heap = |thread: usize| {
                    // SAFETY: as above, in disjoint parts.
                    let memory = unsafe { Memory::from_raw(start.add(thread * part), part) };
                    Ok(Mutex::new(CompactFit::new(&options, memory)?))
                };
                Built::Unshared((0..threads).map(heap).collect::<Result<_, Error>>()?)
            }
            Design::Shared(granularity) => {
                let sharing = Sharing {
                    granularity,
                    threads,
                };
                Built::Shared(Box::new(SharedCompactFit::new(
                    &options, sharing, memory, system,
                )?))
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
        })
    }

    pub(super) fn view(&self, thread: usize) -> Result<View<'_>, Error> {
        Ok(match self {
            Built::Unshared(heaps) => View::Unshared(&heaps[thread]),
            Built::Shared(heap) => View::Shared(heap),
            Built::Instances(heaps) => View::Member(heaps.member(thread)?, heaps),
        })
    }
}

/// A thread's blocks, and its next requests.
pub(super) struct Churn {
    random: Random,
    blocks: Vec<Handle>,
    sizes: (usize, usize),
}

impl Churn {
    pub(super) fn new(seed: u64, live: usize, sizes: (usize, usize), heap: &mut dyn Heap) -> Self {
        let mut random = Random::new(seed);
        let mut request = || sizes.0 + random.below(sizes.1 - sizes.0 + 1);
        let blocks = (0..live).filter_map(|_| heap.allocate(request())).collect();
        Churn {
            random,
            blocks,
            sizes,
        }
    }

    /// Frees a block and allocates another.
    #[inline(always)]
    pub(super) fn turn(&mut self, heap: &mut dyn Heap) {
        let (least, most) = self.sizes;
        let size = least + self.random.below(most - least + 1);
        let which = self.random.below(self.blocks.len().max(1));
        if which < self.blocks.len() {
            heap.free(self.blocks.swap_remove(which));
        }
        self.blocks.extend(heap.allocate(size));
    }
}
