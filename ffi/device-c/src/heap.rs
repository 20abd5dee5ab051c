//! The heap that C holds a pointer to: one lock, no call in a fork.
//!
//! Invariant: the callback for a lack of memory is called with the lock open, so that it may
//! free; the lock is taken only in the process that made the heap, where whoever held it still
//! runs.

use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use metes_device::backend::cuda::Cuda;
#[cfg(target_os = "linux")]
use metes_device::backend::guarded::Guarded;
use metes_device::backend::offsets::Offsets;
use metes_device::backend::{self, Backend};

use crate::failure::{Failure, Status, guarded, status};
use crate::figures::{Block, Holder, Options, Range, Statistics};
use crate::follow::{Done, Follow};
use crate::history::Event;
use crate::plug::{Device, Plug};
use crate::process;
#[cfg(target_os = "linux")]
use crate::watch;

/// `metes_device_reclaim`.
pub type Reclaim = unsafe extern "C" fn(context: *mut c_void, bytes: u64) -> bool;

/// A callback and what it gets.
#[derive(Clone, Copy)]
pub(crate) struct Reclaimer {
    pub(crate) call: Reclaim,
    pub(crate) context: *mut c_void,
}

// SAFETY: whoever gives a callback promises that any thread may call it with its context.
unsafe impl Send for Reclaimer {}

/// `metes_device_heap`.
pub struct Heap {
    made_by: u32,
    pub(crate) range: backend::Range,
    device: Mutex<Box<dyn Device>>,
    reclaimer: Mutex<Option<Reclaimer>>,
}

impl Heap {
    fn new(device: Box<dyn Device>) -> Self {
        Heap {
            made_by: process::number(),
            range: device.range(),
            device: Mutex::new(device),
            reclaimer: Mutex::new(None),
        }
    }

    /// A heap over the memory of a CUDA device.
    pub(crate) fn cuda(ordinal: u32, options: &Options) -> Result<Self, Failure> {
        let backend = Cuda::open(ordinal)?;
        let timeline = |backend: &Cuda, streams| Ok(backend.streams(streams)?);
        let synchronize = |backend: &Cuda| Ok(backend.synchronize()?);
        let name = format!("CUDA device {ordinal}");
        Heap::over(backend, options, &name, timeline, synchronize)
    }

    /// A heap over a backend of the host.
    fn on_host<B: Backend + Send + 'static>(
        backend: B,
        options: &Options,
    ) -> Result<Self, Failure> {
        let name = backend.name();
        let timeline = |_: &B, streams| Ok(Done::new(streams));
        Heap::over(backend, options, name, timeline, |_| Ok(()))
    }

    /// A heap that may be watched under a name, or not.
    fn over<B: Backend + Send + 'static, T: Follow + 'static>(
        backend: B,
        options: &Options,
        name: &str,
        timeline: impl FnOnce(&B, usize) -> Result<T, Failure>,
        synchronize: fn(&B) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        #[cfg(target_os = "linux")]
        if watch::wanted(options)? {
            let device = watch::watched(backend, options, name, timeline, synchronize)?;
            return Ok(Heap::new(device));
        }
        let _ = name;
        let plug = Plug::new(backend, options, timeline, synchronize)?;
        Ok(Heap::new(Box::new(plug)))
    }

    /// The heap, for whom no other call changes it.
    fn locked(&self) -> Result<MutexGuard<'_, Box<dyn Device>>, Failure> {
        if self.made_by != process::number() {
            return Err(Failure::new(
                Status::Forked,
                "the heap was made by another process, of which this one is a fork: a device does \
                 not follow into a fork; start processes anew (spawn), or make a heap here",
            ));
        }
        let device = self.device.lock().map_err(|_| {
            Failure::new(
                Status::Broken,
                "the heap is not used any more after an error of Metes itself",
            )
        })?;
        Ok(device)
    }

    /// Does something with the heap.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut dyn Device) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        work(&mut **self.locked()?)
    }

    /// Allocates; while memory is lacking, and the program gives some back, again.
    pub(crate) fn allocate(&self, bytes: u64, align: u64, stream: u64) -> Result<u64, Failure> {
        loop {
            let failure = match self.with(|heap| heap.allocate(bytes, align, stream)) {
                Err(failure) if failure.status == Status::OutOfMemory => failure,
                done => return done,
            };
            let reclaimer = self.reclaimer.lock().ok().and_then(|reclaimer| *reclaimer);
            let Some(Reclaimer { call, context }) = reclaimer else {
                return Err(failure);
            };
            // SAFETY: a callback and its context, as whoever gave them promised.
            if !unsafe { call(context, bytes) } {
                return Err(failure);
            }
            self.with(|heap| {
                heap.retried();
                Ok(())
            })?;
        }
    }

    /// Keeps so many events from now on.
    pub(crate) fn record(&self, most: usize) -> Result<(), Failure> {
        self.with(|heap| {
            heap.history().keep(most);
            Ok(())
        })
    }

    /// Has the callback asked when memory is lacking.
    pub(crate) fn on_out_of_memory(&self, reclaimer: Option<Reclaimer>) {
        if let Ok(mut own) = self.reclaimer.lock() {
            *own = reclaimer;
        }
    }
}

/// Something with the heap behind a pointer.
///
/// # Safety
/// `heap` is null or a heap.
unsafe fn with(
    heap: *const Heap,
    work: impl FnOnce(&mut dyn Device) -> Result<(), Failure>,
) -> Status {
    status(|| {
        // SAFETY: the caller's contract.
        unsafe { known(heap) }?.with(work)
    })
}

/// # Safety
/// `heap` is null or a heap.
unsafe fn known<'a>(heap: *const Heap) -> Result<&'a Heap, Failure> {
    // SAFETY: the caller's contract.
    let heap = unsafe { heap.as_ref() };
    heap.ok_or_else(|| Failure::invalid("the heap is NULL: make one first"))
}

/// Writes a result, unless there is nowhere to write it.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::invalid("the place for the result is NULL"));
    }
    // SAFETY: the caller's contract.
    unsafe { to.write(value) };
    Ok(())
}

/// The options behind a pointer, or none.
///
/// # Safety
/// `options` is null or points to options.
pub(crate) unsafe fn read(options: *const Options) -> Options {
    // SAFETY: the caller's contract.
    unsafe { options.as_ref() }.copied().unwrap_or_default()
}

fn made(heap: impl FnOnce() -> Result<Heap, Failure>) -> *mut Heap {
    match guarded(heap) {
        Ok(heap) => Box::into_raw(Box::new(heap)),
        Err(_) => core::ptr::null_mut(),
    }
}

/// See `metes_device.h`.
///
/// # Safety
/// `options` is null or points to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_create_cuda(
    ordinal: u32,
    options: *const Options,
) -> *mut Heap {
    // SAFETY: the caller's contract.
    let options = unsafe { read(options) };
    made(|| Heap::cuda(ordinal, &options))
}

/// See `metes_device.h`.
///
/// # Safety
/// `options` is null or points to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_create_guarded(
    total: u64,
    granularity: u64,
    options: *const Options,
) -> *mut Heap {
    // SAFETY: the caller's contract.
    let options = unsafe { read(options) };
    #[cfg(target_os = "linux")]
    let heap = || Heap::on_host(Guarded::new(total, granularity)?, &options);
    #[cfg(not(target_os = "linux"))]
    let heap = || {
        let _ = (total, granularity, options);
        Err(Failure::invalid("guarded memory needs Linux"))
    };
    made(heap)
}

/// See `metes_device.h`.
///
/// # Safety
/// `options` is null or points to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_create_offsets(
    total: u64,
    granularity: u64,
    options: *const Options,
) -> *mut Heap {
    // SAFETY: the caller's contract.
    let options = unsafe { read(options) };
    made(|| Heap::on_host(Offsets::new(total, granularity)?, &options))
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_destroy(heap: *mut Heap) {
    if heap.is_null() {
        return;
    }
    // SAFETY: made by `made`, and given back once.
    let heap = unsafe { Box::from_raw(heap) };
    if heap.made_by != process::number() {
        // It is the other process's; this one's copy of its books is left alone.
        Box::leak(heap);
        return;
    }
    let _ = guarded(|| {
        drop(heap);
        Ok(())
    });
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `address` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_allocate(
    heap: *const Heap,
    bytes: u64,
    align: u64,
    stream: u64,
    address: *mut u64,
) -> Status {
    status(|| {
        // SAFETY: the caller's contract.
        let heap = unsafe { known(heap) }?;
        // SAFETY: as before. Nothing is allocated that could not be told of.
        unsafe { give(address, 0) }?;
        if bytes == 0 {
            return Ok(());
        }
        let block = heap.allocate(bytes, align, stream)?;
        // SAFETY: as before.
        unsafe { give(address, block) }
    })
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_free(heap: *const Heap, address: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.free(address)) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_use_on(
    heap: *const Heap,
    address: u64,
    stream: u64,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.use_on(address, stream)) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_leave(heap: *const Heap, stream: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.leave(stream)) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_forget(heap: *const Heap, stream: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.forget(stream)) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `given` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_trim(
    heap: *const Heap,
    keep: u64,
    given: *mut u64,
) -> Status {
    let work = |heap: &mut dyn Device| {
        let bytes = heap.trim(keep)?;
        if given.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's contract.
        unsafe { give(given, bytes) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_sleep(heap: *const Heap) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.sleep()) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_wake(heap: *const Heap) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.wake()) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_limit(heap: *const Heap, cap: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.limit(cap)) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap; any thread may call `reclaim` with `context` while the heap lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_on_out_of_memory(
    heap: *const Heap,
    reclaim: Option<Reclaim>,
    context: *mut c_void,
) -> Status {
    status(|| {
        let reclaimer = reclaim.map(|call| Reclaimer { call, context });
        // SAFETY: the caller's contract.
        unsafe { known(heap) }?.on_out_of_memory(reclaimer);
        Ok(())
    })
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `requested` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_requested(
    heap: *const Heap,
    address: u64,
    requested: *mut u64,
) -> Status {
    let work = |heap: &mut dyn Device| {
        let bytes = heap.requested(address)?;
        // SAFETY: the caller's contract.
        unsafe { give(requested, bytes) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `statistics` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_get_statistics(
    heap: *const Heap,
    statistics: *mut Statistics,
) -> Status {
    let work = |heap: &mut dyn Device| {
        // SAFETY: the caller's contract.
        unsafe { give(statistics, heap.statistics()) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `free` and `total` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_capacity(
    heap: *const Heap,
    free: *mut u64,
    total: *mut u64,
) -> Status {
    let work = |heap: &mut dyn Device| {
        let capacity = heap.capacity()?;
        // SAFETY: the caller's contract.
        unsafe {
            give(free, capacity.0)?;
            give(total, capacity.1)
        }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_reset_peaks(heap: *const Heap) -> Status {
    let work = |heap: &mut dyn Device| {
        heap.reset_peaks();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_reset_totals(heap: *const Heap) -> Status {
    let work = |heap: &mut dyn Device| {
        heap.reset_totals();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// Writes what is visited, as far as there is room; how many there are.
struct Listing<T> {
    to: *mut T,
    most: usize,
    count: usize,
}

impl<T> Listing<T> {
    /// # Safety
    /// `to` is null or has room for `most`.
    unsafe fn new(to: *mut T, most: usize) -> Self {
        Listing {
            to,
            most: if to.is_null() { 0 } else { most },
            count: 0,
        }
    }

    fn add(&mut self, value: T) {
        if self.count < self.most {
            // SAFETY: there is room for so many, by the contract of `new`.
            unsafe { self.to.add(self.count).write(value) };
        }
        self.count += 1;
    }
}

/// Lists something of a heap.
///
/// # Safety
/// `heap` is null or a heap, `to` null or with room for `most`, `count` null or valid for a
/// write.
unsafe fn list<T>(
    heap: *const Heap,
    to: *mut T,
    most: usize,
    count: *mut usize,
    visit: impl FnOnce(&mut dyn Device, &mut Listing<T>),
) -> Status {
    let work = |heap: &mut dyn Device| {
        // SAFETY: the caller's contract.
        let mut listing = unsafe { Listing::new(to, most) };
        visit(heap, &mut listing);
        // SAFETY: the caller's contract.
        unsafe { give(count, listing.count) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap, `holders` null or with room for `most`, `count` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_holders(
    heap: *const Heap,
    holders: *mut Holder,
    most: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        list(heap, holders, most, count, |heap, listing| {
            heap.holders(&mut |holder| listing.add(holder));
        })
    }
}

/// See `metes_device.h`.
///
/// # Safety
/// As [`metes_device_holders`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_blocks(
    heap: *const Heap,
    blocks: *mut Block,
    most: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        list(heap, blocks, most, count, |heap, listing| {
            heap.blocks(&mut |block| listing.add(block));
        })
    }
}

/// See `metes_device.h`.
///
/// # Safety
/// As [`metes_device_holders`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_mapped(
    heap: *const Heap,
    ranges: *mut Range,
    most: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        list(heap, ranges, most, count, |heap, listing| {
            heap.mapped(&mut |range| listing.add(range));
        })
    }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_record(heap: *const Heap, most: usize) -> Status {
    status(|| {
        // SAFETY: the caller's contract.
        unsafe { known(heap) }?.record(most)
    })
}

/// See `metes_device.h`.
///
/// # Safety
/// As [`metes_device_holders`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_events(
    heap: *const Heap,
    events: *mut Event,
    most: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        list(heap, events, most, count, |heap, listing| {
            for event in heap.history().events() {
                listing.add(*event);
            }
        })
    }
}

/// See `metes_device.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_device_check(heap: *const Heap) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| heap.check()) }
}
