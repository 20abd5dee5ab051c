//! The backends that heaps are tried on, and a watch over what they are asked.
//!
//! Invariant: [`Seen`] is what a backend has granted and not taken back; it is kept from the
//! answers alone, apart from the backend's own books and from the heap's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

#[cfg(all(feature = "cuda", target_os = "linux"))]
use metes_device::backend::cuda::Cuda;
#[cfg(target_os = "linux")]
use metes_device::backend::guarded::Guarded;
use metes_device::backend::offsets::Offsets;
#[cfg(feature = "opencl")]
use metes_device::backend::opencl::OpenCl;
#[cfg(feature = "vulkan")]
use metes_device::backend::vulkan::{Kind, Vulkan};
use metes_device::backend::{Backend, Capacity, Error, Memory, Range};
#[cfg(all(feature = "cuda", target_os = "linux"))]
use metes_dry_device::library::Library as Model;

/// Bytes of the model of CUDA's driver.
#[cfg(all(feature = "cuda", target_os = "linux"))]
const MODEL: u64 = 1 << 32;

/// A backend, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Offsets,
    Guarded,
    Cuda,
    OpenCl,
    Vulkan,
}

impl Device {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Device::Offsets => "offsets",
            Device::Guarded => "guarded",
            Device::Cuda => "cuda",
            Device::OpenCl => "opencl",
            Device::Vulkan => "vulkan",
        }
    }

    /// Opens it, to map memory to whole ranges or to pages.
    ///
    /// # Errors
    /// What is missing, as the backend says it.
    pub(crate) fn open(self, paged: bool) -> Result<Watched, String> {
        let backend: Box<dyn Backend> = match self {
            Device::Offsets => Box::new(Offsets::new(1 << 44, 1 << 16).map_err(said)?),
            #[cfg(target_os = "linux")]
            Device::Guarded => Box::new(Guarded::new(1 << 44, 1 << 16).map_err(said)?),
            #[cfg(all(feature = "cuda", target_os = "linux"))]
            Device::Cuda => Box::new(cuda()?),
            #[cfg(feature = "opencl")]
            Device::OpenCl => Box::new(OpenCl::open(0).map_err(said)?),
            #[cfg(feature = "vulkan")]
            Device::Vulkan if paged => Box::new(Vulkan::open(0, Kind::Device).map_err(said)?),
            #[cfg(feature = "vulkan")]
            Device::Vulkan => Box::new(Vulkan::open_whole(0, Kind::Device).map_err(said)?),
            #[allow(unreachable_patterns, reason = "of a build with every backend")]
            _ => return Err(format!("{} is not in this build", self.name())),
        };
        if paged && !backend.paged() {
            return Err(format!("{} maps no pages here", self.name()));
        }
        Watched::new(backend).map_err(said)
    }

    /// Whether its memory is made up: ranges can be as long as one likes.
    pub(crate) fn is_free(self) -> bool {
        matches!(self, Device::Offsets | Device::Guarded)
    }
}

/// Where `scripts/setup` laid a lavapipe that binds sparsely, if it did and nobody chose a driver.
pub(crate) fn newer_lavapipe() -> Option<PathBuf> {
    if std::env::var_os("VK_DRIVER_FILES").is_some() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let places = program.ancestors().skip(1).take(3);
    let mut places = places.map(|around| around.join("lavapipe"));
    places.find(|place| place.join("lvp_icd.json").is_file())
}

/// This program again, with that lavapipe: both are looked for before a program begins.
pub(crate) fn again_on(lavapipe: &Path) -> std::io::Result<Command> {
    let mut again = Command::new(std::env::current_exe()?);
    again
        .env("LD_LIBRARY_PATH", lavapipe)
        .env("VK_DRIVER_FILES", lavapipe.join("lvp_icd.json"));
    Ok(again)
}

pub(crate) fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The GPU if it is asked for, else the model of the driver, with a new device.
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(crate) fn cuda() -> Result<Cuda, String> {
    if !on_gpu() {
        let model = Model::load().map_err(said)?;
        model
            .open(MODEL, false)
            .map_err(|code| format!("the model: {code:?}"))?;
    }
    Cuda::open(0).map_err(said)
}

/// Whether CUDA's driver is to be the machine's.
pub(crate) fn on_gpu() -> bool {
    std::env::var_os("METES_CUDA").is_some_and(|on| on == "1")
}

/// What a backend has granted, and whether it is to fail.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Lengths of ranges by their start.
    pub(crate) ranges: BTreeMap<u64, u64>,
    /// Lengths of memories, and where they are mapped.
    memories: BTreeMap<Memory, (u64, Option<u64>)>,
    /// Ends of what is mapped, by address.
    mapped: BTreeMap<u64, u64>,
    /// Bytes of all memories.
    pub(crate) created: u64,
    /// Bytes that are mapped.
    pub(crate) mapped_bytes: u64,
    /// Maps and unmaps so far.
    pub(crate) maps: u64,
    /// Of what streams have surely done, by stream; none where nobody asks.
    pub(crate) ran: Option<Rc<RefCell<Vec<u64>>>>,
    /// By address of what is mapped, by stream: the last work that uses it.
    uses: BTreeMap<u64, Vec<u64>>,
    /// Memory that was taken from work that may not have run.
    pub(crate) taken_early: Option<String>,
    /// Fails the call after so many.
    pub(crate) fails_after: Option<u64>,
    /// Calls that were made to fail.
    pub(crate) failures: u64,
}

impl Seen {
    /// Whether memory is mapped to all of these bytes.
    pub(crate) fn covers(&self, address: u64, bytes: u64) -> bool {
        let mut at = address;
        while at < address + bytes {
            match self.mapped.range(..=at).next_back() {
                Some((_, &end)) if end > at => at = end,
                _ => return false,
            }
        }
        true
    }

    /// Notes that work of a stream uses bytes.
    pub(crate) fn used_by(&mut self, address: u64, bytes: u64, stream: usize, work: u64) {
        let Some((&first, _)) = self.mapped.range(..=address).next_back() else {
            return;
        };
        for (_, uses) in self.uses.range_mut(first..address + bytes) {
            uses[stream] = uses[stream].max(work);
        }
    }

    /// Memory is taken from where work used it.
    fn note_unmap(&mut self, address: u64) {
        let (Some(ran), Some(uses)) = (&self.ran, self.uses.remove(&address)) else {
            return;
        };
        for (stream, (work, ran)) in uses.iter().zip(&*ran.borrow()).enumerate() {
            if work > ran {
                self.taken_early = Some(format!(
                    "work {work} of stream {stream} may still use the page at {address:#x} that was unmapped"
                ));
            }
        }
    }

    /// What is left, in words; `None` if nothing is.
    pub(crate) fn left(&self) -> Option<String> {
        let clean = self.ranges.is_empty() && self.memories.is_empty() && self.created == 0;
        (!clean).then(|| {
            format!(
                "{} ranges, {} memories of {} bytes, {} of them mapped",
                self.ranges.len(),
                self.memories.len(),
                self.created,
                self.mapped.len()
            )
        })
    }
}

/// A backend that is watched. Its clones are the same backend, so that its books can be read
/// after the heap that had it is gone.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    inner: Rc<RefCell<Box<dyn Backend>>>,
    pub(crate) seen: Rc<RefCell<Seen>>,
    free: u64,
}

impl Watched {
    pub(crate) fn new(inner: Box<dyn Backend>) -> Result<Self, Error> {
        let free = inner.capacity()?.free;
        Ok(Watched {
            inner: Rc::new(RefCell::new(inner)),
            seen: Rc::default(),
            free,
        })
    }

    /// Nothing of a heap may be left: neither by our account nor by the backend's.
    pub(crate) fn check_empty(&self) -> Result<(), String> {
        if let Some(left) = self.seen.borrow().left() {
            return Err(format!("the backend still has {left}"));
        }
        let capacity = self.capacity().map_err(said)?;
        // What is free of Vulkan and of a GPU is shared with the machine.
        let shared = self.name() == "vulkan" || self.name() == "cuda" && on_gpu();
        if !shared && capacity.free != self.free {
            return Err(format!(
                "{} bytes of the backend are free, {} were",
                capacity.free, self.free
            ));
        }
        Ok(())
    }

    fn may_fail(&self, call: &'static str) -> Result<(), Error> {
        let mut seen = self.seen.borrow_mut();
        match &mut seen.fails_after {
            None => Ok(()),
            Some(0) => {
                seen.fails_after = None;
                seen.failures += 1;
                Err(Error::Device {
                    call,
                    code: 999,
                    text: "made to fail".into(),
                })
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl Backend for Watched {
    fn name(&self) -> &'static str {
        self.inner.borrow().name()
    }

    fn granularity(&self) -> u64 {
        self.inner.borrow().granularity()
    }

    fn paged(&self) -> bool {
        self.inner.borrow().paged()
    }

    fn alignment(&self) -> u64 {
        self.inner.borrow().alignment()
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        self.inner.borrow().capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.may_fail("reserve")?;
        let range = self.inner.borrow_mut().reserve(bytes)?;
        let mut seen = self.seen.borrow_mut();
        seen.ranges.insert(range.start, bytes);
        Ok(range)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.inner.borrow_mut().unreserve(range)?;
        self.seen.borrow_mut().ranges.remove(&range.start);
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.may_fail("create")?;
        let memory = self.inner.borrow_mut().create(bytes)?;
        let mut seen = self.seen.borrow_mut();
        seen.memories.insert(memory, (bytes, None));
        seen.created += bytes;
        Ok(memory)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.may_fail("map")?;
        self.inner.borrow_mut().map(address, memory)?;
        let mut seen = self.seen.borrow_mut();
        seen.maps += 1;
        if let Some((bytes, at)) = seen.memories.get_mut(&memory) {
            *at = Some(address);
            let bytes = *bytes;
            seen.mapped.insert(address, address + bytes);
            seen.mapped_bytes += bytes;
            if let Some(streams) = seen.ran.as_ref().map(|ran| ran.borrow().len()) {
                seen.uses.insert(address, vec![0; streams]);
            }
        }
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.may_fail("unmap")?;
        let memory = self.inner.borrow_mut().unmap(address, bytes)?;
        let mut seen = self.seen.borrow_mut();
        seen.maps += 1;
        seen.mapped.remove(&address);
        seen.mapped_bytes -= bytes;
        seen.note_unmap(address);
        if let Some((_, at)) = seen.memories.get_mut(&memory) {
            *at = None;
        }
        Ok(memory)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.may_fail("release")?;
        self.inner.borrow_mut().release(memory)?;
        let mut seen = self.seen.borrow_mut();
        if let Some((bytes, _)) = seen.memories.remove(&memory) {
            seen.created -= bytes;
        }
        Ok(())
    }
}
