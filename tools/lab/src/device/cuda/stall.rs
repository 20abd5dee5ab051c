//! Whether calls on memory stall streams that have nothing to do with it.
//!
//! A kernel keeps stream B busy for a time. While it runs, the host makes one call on memory of
//! stream A, whose work is done, and then issues work to stream C. Three answers: did the call come
//! back before B's kernel ended; did C's work run before it ended; and how long was the longest
//! pause of B's kernel, which reads memory all the time, beside that of trials without a call.
//!
//! Invariant: a trial counts only if B was busy when the call began. On the model of the driver,
//! which runs no kernels, B is held instead, and only the first two answers are looked at: they are
//! rules of the model.

use std::ffi::CString;
use std::thread;
use std::time::Duration;

use cudarc::driver::sys::{CUdeviceptr, CUmemGenericAllocationHandle};
use metes_device::backend::Error;

use super::super::bench::Effort;
use super::driver::{Device, Kernel, Stream};
use super::meter::{Distribution, Meter};
use super::{Measurement, StallFigures};

/// How long B is kept busy: far longer than any call takes that does not wait for it.
const BUSY: Duration = Duration::from_millis(20);
/// Until B's kernel has begun for sure.
const BEGIN: Duration = Duration::from_millis(1);
/// The kernel.
const BUSY_KERNEL: &str = include_str!("busy.ptx");

/// A call on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// None, to compare with.
    Nothing,
    Create,
    Map,
    Unmap,
    Release,
    Allocate,
    Free,
    AllocateAsync,
    FreeAsync,
}

use Operation::{Allocate, AllocateAsync, Create, Free, FreeAsync, Map, Nothing, Release, Unmap};

const OPERATIONS: [(Operation, &str, &str); 9] = [
    (Nothing, "(nothing)", "no call, to compare with"),
    (Create, "cuMemCreate", "a page"),
    (Map, "cuMemMap, cuMemSetAccess", "a page"),
    (Unmap, "cuMemUnmap", "a page"),
    (Release, "cuMemRelease", "a page"),
    (Allocate, "cuMemAlloc", "as many bytes"),
    (Free, "cuMemFree", "as many bytes"),
    (AllocateAsync, "cuMemAllocAsync", "as many bytes, for A"),
    (FreeAsync, "cuMemFreeAsync", "as many bytes, for A"),
];

/// What a trial gave.
struct Trial {
    /// What the call took, and C's work from issue to end.
    call: u64,
    other: u64,
    /// Whether B was done when the call, or C's work, was.
    waited: bool,
    held: bool,
    /// Nanoseconds of the longest pause of B's kernel.
    pause: u64,
}

/// Every call, trial by trial in turn.
pub(super) fn stall(device: &Device, effort: Effort) -> Vec<Measurement<StallFigures>> {
    let mut found: Vec<Result<Vec<Trial>, String>> =
        OPERATIONS.iter().map(|_| Ok(Vec::new())).collect();
    match Rig::new(device) {
        Err(error) => {
            for all in &mut found {
                *all = Err(error.to_string());
            }
        }
        Ok(rig) => {
            for _ in 0..4 * super::rounds(effort) {
                for ((operation, ..), all) in OPERATIONS.iter().zip(&mut found) {
                    let Ok(done) = all else { continue };
                    match rig.trial(*operation) {
                        Ok(trial) => done.push(trial),
                        Err(error) => *all = Err(error.to_string()),
                    }
                }
            }
        }
    }
    let meter = Meter::of(device);
    let each = OPERATIONS.iter().zip(found);
    each.map(|((_, name, about), trials)| {
        Measurement::of(name, about, trials.map(|trials| figures(&meter, &trials)))
    })
    .collect()
}

fn figures(meter: &Meter, trials: &[Trial]) -> StallFigures {
    let all = |of: fn(&Trial) -> u64| Distribution::of(trials.iter().map(of).collect());
    let pause = all(|trial| trial.pause).filter(|_| meter.is_clock());
    StallFigures {
        trials: trials.len(),
        waited: trials.iter().filter(|trial| trial.waited).count(),
        other_held: trials.iter().filter(|trial| trial.held).count(),
        call: meter.seconds(all(|trial| trial.call)),
        other: meter.seconds(all(|trial| trial.other)),
        pause: pause.map(|pause| pause.map(|nanoseconds| nanoseconds * 1e-9)),
    }
}

/// A range with a page under it, if the driver has any.
struct Page {
    range: CUdeviceptr,
    bytes: usize,
}

/// Streams, the kernel and its memory.
struct Rig<'a> {
    device: &'a Device,
    a: Stream<'a>,
    b: Stream<'a>,
    c: Stream<'a>,
    kernel: Kernel<'a>,
    /// A word that kernels read, and what they write down: one for B, one for C.
    words: CUdeviceptr,
    page: Result<Page, Error>,
}

/// Where in `words` B's and C's kernels write.
const RESULTS: [u64; 2] = [64, 128];

impl<'a> Rig<'a> {
    fn new(device: &'a Device) -> Result<Self, Error> {
        let text = CString::new(BUSY_KERNEL).unwrap_or_default();
        let kernel = device.kernel(&text, c"metes_busy")?;
        let mut rig = Rig {
            device,
            a: device.stream()?,
            b: device.stream()?,
            c: device.stream()?,
            kernel,
            words: 0,
            page: reserved(device),
        };
        rig.words = device.allocate(256)?;
        rig.c.clear(rig.words, 256)?;
        rig.c.synchronize()?;
        // Drivers load a kernel at its first launch, for which some wait for the whole device.
        rig.busy(&rig.b, Duration::ZERO, 0)?;
        rig.b.synchronize()?;
        Ok(rig)
    }

    /// Keeps a stream busy.
    fn busy(&self, stream: &Stream<'_>, time: Duration, result: usize) -> Result<(), Error> {
        let nanoseconds = time.as_nanos() as u64;
        let arguments = [nanoseconds, self.words, self.words + RESULTS[result]];
        // SAFETY: what the kernel takes; the words live as long as the rig, which waits for all
        // of its streams.
        unsafe { self.kernel.launch(stream, arguments) }
    }

    fn trial(&self, operation: Operation) -> Result<Trial, Error> {
        let mut subject = Subject::prepare(self, operation)?;
        self.device.synchronize()?;
        let model = self.device.model();
        if let Some(model) = model {
            model.hold(self.b.raw);
        }
        self.busy(&self.b, BUSY, 0)?;
        if model.is_none() {
            thread::sleep(BEGIN);
        }
        let began = self.b.busy()?;
        let meter = Meter::of(self.device);
        let begin = meter.read();
        let done = subject.act(self, operation);
        let call = meter.since(begin);
        let waited = !self.b.busy()?;
        let begin = meter.read();
        self.busy(&self.c, Duration::ZERO, 1)?;
        self.c.synchronize()?;
        let other = meter.since(begin);
        let held = !self.b.busy()?;
        if let Some(model) = model {
            model.release(self.b.raw);
        }
        self.device.synchronize()?;
        subject.finish(self)?;
        done?;
        if !began {
            return Err(Error::Absent {
                what: "a kernel that keeps a stream busy".into(),
                remedy: format!("it ended before {} ms", BUSY.as_millis()),
            });
        }
        Ok(Trial {
            call,
            other,
            waited,
            held,
            pause: match model {
                None => self.pause()?,
                Some(_) => 0,
            },
        })
    }

    /// The longest pause of B's kernel, by the clock that it counted.
    fn pause(&self) -> Result<u64, Error> {
        let mut found = [0_u64; 5];
        let to = found.as_mut_ptr().cast();
        // SAFETY: room for so many bytes, which the kernel wrote.
        let code = unsafe {
            (self.device.base().cuMemcpyDtoH_v2)(to, self.words + RESULTS[0], size_of_val(&found))
        };
        self.device.check("cuMemcpyDtoH", code)?;
        let [reads, longest, ticks, nanoseconds, _] = found;
        if reads == 0 || ticks == 0 {
            return Err(Error::Absent {
                what: "what the kernel writes down".into(),
                remedy: "it ran without result: report the device and its driver".into(),
            });
        }
        Ok((longest as f64 * nanoseconds as f64 / ticks as f64) as u64)
    }
}

impl Drop for Rig<'_> {
    fn drop(&mut self) {
        let _ = self.device.synchronize();
        let _ = self.device.free(self.words);
        if let (Ok(page), Ok(paging)) = (&self.page, self.device.paging()) {
            // SAFETY: addresses of ours, in which nothing is mapped between trials.
            unsafe { (paging.cuMemAddressFree)(page.range, page.bytes) };
        }
    }
}

/// Addresses for a page.
fn reserved(device: &Device) -> Result<Page, Error> {
    let bytes = device.granularity()? as usize;
    let mut range = 0;
    // SAFETY: a place for one address.
    let code =
        unsafe { (device.paging()?.cuMemAddressReserve)(&raw mut range, bytes, bytes, 0, 0) };
    device.check("cuMemAddressReserve", code)?;
    Ok(Page { range, bytes })
}

/// What an operation is made on, and what is to be given back after it.
#[derive(Default)]
struct Subject {
    handle: Option<CUmemGenericAllocationHandle>,
    mapped: bool,
    block: Option<CUdeviceptr>,
    /// A block of a pool.
    pooled: Option<CUdeviceptr>,
}

impl Subject {
    /// As far as it must be before the call; A has written to memory that is there.
    fn prepare(rig: &Rig<'_>, operation: Operation) -> Result<Self, Error> {
        let mut subject = Subject::default();
        match operation {
            Nothing | Create | Allocate => {}
            Map | Release => subject.create(rig)?,
            Unmap => {
                subject.create(rig)?;
                subject.map(rig)?;
                let page = rig.page.as_ref().map_err(Clone::clone)?;
                rig.a.clear(page.range, page.bytes as u64)?;
            }
            Free => {
                subject.allocate(rig)?;
                rig.a.clear(subject.block.unwrap_or(0), bytes(rig))?;
            }
            AllocateAsync => drop(rig.device.pools()?),
            FreeAsync => {
                subject.allocate_async(rig)?;
                rig.a.clear(subject.pooled.unwrap_or(0), bytes(rig))?;
            }
        }
        Ok(subject)
    }

    /// The call.
    fn act(&mut self, rig: &Rig<'_>, operation: Operation) -> Result<(), Error> {
        match operation {
            Nothing => Ok(()),
            Create => self.create(rig),
            Map => self.map(rig),
            Unmap => self.unmap(rig),
            Release => self.release(rig),
            Allocate => self.allocate(rig),
            Free => self.free(rig),
            AllocateAsync => self.allocate_async(rig),
            FreeAsync => self.free_async(rig),
        }
    }

    /// Gives back what is left.
    fn finish(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        self.unmap(rig)?;
        self.release(rig)?;
        self.free(rig)?;
        self.free_async(rig)
    }

    fn create(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        let (paging, about) = (rig.device.paging()?, rig.device.properties());
        let page = rig.page.as_ref().map_err(Clone::clone)?;
        let mut handle = 0;
        // SAFETY: a place for one handle, and properties that outlive the call.
        let code =
            unsafe { (paging.cuMemCreate)(&raw mut handle, page.bytes, &raw const about, 0) };
        rig.device.check("cuMemCreate", code)?;
        self.handle = Some(handle);
        Ok(())
    }

    fn map(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        let (paging, access) = (rig.device.paging()?, rig.device.access());
        let page = rig.page.as_ref().map_err(Clone::clone)?;
        let Some(handle) = self.handle else {
            return Ok(());
        };
        // SAFETY: addresses that are reserved and free, and a handle of just that length.
        let code = unsafe { (paging.cuMemMap)(page.range, page.bytes, 0, handle, 0) };
        rig.device.check("cuMemMap", code)?;
        self.mapped = true;
        // SAFETY: what was mapped just now, and one description.
        let code = unsafe { (paging.cuMemSetAccess)(page.range, page.bytes, &raw const access, 1) };
        rig.device.check("cuMemSetAccess", code)
    }

    fn unmap(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        if !std::mem::take(&mut self.mapped) {
            return Ok(());
        }
        let page = rig.page.as_ref().map_err(Clone::clone)?;
        // SAFETY: a mapping, whole, which no work uses any more.
        let code = unsafe { (rig.device.paging()?.cuMemUnmap)(page.range, page.bytes) };
        rig.device.check("cuMemUnmap", code)
    }

    fn release(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        let Some(handle) = self.handle.take() else {
            return Ok(());
        };
        // SAFETY: a handle of ours, released once.
        let code = unsafe { (rig.device.paging()?.cuMemRelease)(handle) };
        rig.device.check("cuMemRelease", code)
    }

    fn allocate(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        self.block = Some(rig.device.allocate(bytes(rig))?);
        Ok(())
    }

    fn free(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        match self.block.take() {
            Some(block) => rig.device.free(block),
            None => Ok(()),
        }
    }

    fn allocate_async(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        let mut address = 0;
        // SAFETY: a place for one address, and a stream of ours.
        let code = unsafe {
            (rig.device.pools()?.cuMemAllocAsync)(&raw mut address, bytes(rig) as usize, rig.a.raw)
        };
        rig.device.check("cuMemAllocAsync", code)?;
        self.pooled = Some(address);
        Ok(())
    }

    fn free_async(&mut self, rig: &Rig<'_>) -> Result<(), Error> {
        let Some(address) = self.pooled.take() else {
            return Ok(());
        };
        // SAFETY: a block of the pool, freed once, behind A's work.
        let code = unsafe { (rig.device.pools()?.cuMemFreeAsync)(address, rig.a.raw) };
        rig.device.check("cuMemFreeAsync", code)
    }
}

/// Bytes of a plain block: those of a page, where there are pages.
fn bytes(rig: &Rig<'_>) -> u64 {
    rig.page.as_ref().map_or(2 << 20, |page| page.bytes as u64)
}
