//! One device: memory, streams, the primary context, and what the environment says about it.
//!
//! | variable | meaning | without it |
//! | --- | --- | --- |
//! | `METES_DEVICE_BYTES` | physical memory, a size as in 24GiB; 0: no device | 24 GiB |
//! | `METES_DEVICE_CONTENT` | `keep` what is written; `host`: only small copies of the host, and fills; `none` | `keep` |
//! | `METES_DEVICE_CAPABILITY` | compute capability, as `8.0` | `9.0` |
//!
//! Invariant: there is at most one device in a process, behind one lock; a thread holds the lock
//! for one call and runs no foreign code under it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::engine::{Engine, Task, observer};
use crate::error::{Answer, Code};
use crate::knowledge::Kept;
use crate::pools;
use crate::streams::{CaptureMode, StreamId, Streams};

/// The primary context's handle: no address.
pub const CONTEXT: usize = 0x6d65_0000_0000_0010;
/// Memory of a device that the environment says nothing about.
const DEFAULT_BYTES: u64 = 24 << 30;
/// More than any address space could map.
const MOST_BYTES: u64 = 1 << 48;
const DEFAULT_CAPABILITY: (i32, i32) = (9, 0);

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Physical memory, bytes.
    pub bytes: u64,
    /// What is kept of what is written.
    pub kept: Kept,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
}

impl Settings {
    /// What the environment says.
    ///
    /// # Errors
    /// Which variable is wrong, and what it may be.
    pub fn from_environment() -> Result<Settings, String> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let bytes = match variable("METES_DEVICE_BYTES") {
            None => DEFAULT_BYTES,
            Some(text) => metes_quantity::read_bytes(&text)
                .ok()
                .filter(|bytes| *bytes <= MOST_BYTES)
                .ok_or_else(|| {
                    format!(
                        "METES_DEVICE_BYTES is {text:?}: give a number of bytes, as 25769803776, \
                         or with a unit, as 24GiB, up to 262144GiB"
                    )
                })?,
        };
        let kept = match variable("METES_DEVICE_CONTENT").as_deref() {
            None | Some("keep") => Kept::All,
            Some("host") => Kept::Host,
            Some("none") => Kept::Nothing,
            Some(text) => {
                return Err(format!(
                    "METES_DEVICE_CONTENT is {text:?}: keep, host and none are known"
                ));
            }
        };
        let capability = match variable("METES_DEVICE_CAPABILITY") {
            None => DEFAULT_CAPABILITY,
            Some(text) => capability_of(&text).ok_or_else(|| {
                format!("METES_DEVICE_CAPABILITY is {text:?}: give it as 9.0 or 8.6")
            })?,
        };
        Ok(Settings {
            bytes,
            kept,
            capability,
        })
    }
}

fn capability_of(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.split_once('.')?;
    let digit = |text: &str| text.parse::<u8>().ok().map(i32::from);
    Some((digit(major)?, digit(minor)?)).filter(|(major, minor)| *major > 0 && *minor < 10)
}

/// The device and its primary context.
#[derive(Debug)]
pub struct Device {
    /// What it is.
    pub settings: Settings,
    /// What streams work on.
    pub engine: Engine,
    /// Streams and events of the context.
    pub streams: Streams<Task>,
    /// How often the primary context was retained.
    pub retained: u64,
    /// Pools of stream-ordered blocks that there are, by their handles.
    pub pools: BTreeSet<usize>,
    /// The handle that the next pool gets.
    pub next_pool: usize,
    /// What ended the context.
    fault: Option<Code>,
}

impl Device {
    /// A device in its first state.
    ///
    /// # Errors
    /// What the host says when it has no memory for it.
    pub fn new(settings: Settings) -> std::io::Result<Device> {
        AGE.fetch_add(1, Ordering::AcqRel);
        Ok(Device {
            settings,
            engine: Engine::new(settings)?,
            streams: Streams::default(),
            retained: 0,
            pools: BTreeSet::from([pools::DEFAULT]),
            next_pool: pools::DEFAULT + 0x1000,
            fault: None,
        })
    }

    /// A device without memory stands for none at all.
    fn exists(&self) -> Answer {
        match self.settings.bytes {
            0 => Err(Code::NoDevice),
            _ => Ok(()),
        }
    }

    /// Puts work into a stream. A fault of work that is done now or later ends the context.
    ///
    /// # Errors
    /// See [`Streams::submit`].
    pub fn submit(&mut self, stream: StreamId, task: Task) -> Answer {
        let answer = self.streams.submit(stream, task, &mut self.engine);
        self.noticed(answer)
    }

    /// Remembers a fault.
    pub fn noticed<T>(&mut self, answer: Answer<T>) -> Answer<T> {
        if matches!(answer, Err(Code::IllegalAddress)) {
            self.fault = Some(Code::IllegalAddress);
        }
        answer
    }

    /// Ends the context: streams, events and plain blocks go, the fault is forgotten. Handles and
    /// reservations stay, as they belong to no context.
    pub fn end_context(&mut self) {
        AGE.fetch_add(1, Ordering::AcqRel);
        self.streams = Streams::default();
        self.engine.end_context();
        self.fault = None;
        self.retained = 0;
    }
}

#[derive(Default)]
struct Process {
    device: Option<Device>,
    /// Calls so far by name.
    calls: BTreeMap<&'static str, u64>,
}

/// How many contexts there have been.
static AGE: AtomicU64 = AtomicU64::new(0);

/// The number of the present context, from 1; another one after a reset.
pub fn age() -> u64 {
    AGE.load(Ordering::Acquire)
}

static PROCESS: Mutex<Process> = Mutex::new(Process {
    device: None,
    calls: BTreeMap::new(),
});

thread_local! {
    /// Contexts that the thread pushed, the current one last.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static MODE: Cell<CaptureMode> = const { Cell::new(CaptureMode::Global) };
}

fn process() -> MutexGuard<'static, Process> {
    // A panic under the lock would be a defect of the model; its state is consistent between
    // calls all the same, as a refused call changes nothing.
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The context that is current in this thread, 0 for none.
pub fn current() -> usize {
    CONTEXTS
        .try_with(|contexts| contexts.borrow().last().copied().unwrap_or(0))
        .unwrap_or(0)
}

/// Makes a context current in this thread, in place of the one that was.
pub fn set_current(context: usize) {
    let _ = CONTEXTS.try_with(|contexts| {
        let mut contexts = contexts.borrow_mut();
        contexts.pop();
        if context != 0 {
            contexts.push(context);
        }
    });
}

/// Makes a context current in this thread, before the one that was.
pub fn push_current(context: usize) {
    let _ = CONTEXTS.try_with(|contexts| contexts.borrow_mut().push(context));
}

/// Takes the current context away, which gives way to the one before.
pub fn pop_current() -> Option<usize> {
    CONTEXTS
        .try_with(|contexts| contexts.borrow_mut().pop())
        .ok()
        .flatten()
}

/// How this thread's calls are treated while a stream records.
pub fn capture_mode() -> CaptureMode {
    MODE.try_with(Cell::get).unwrap_or_default()
}

/// Changes that; what it was.
pub fn exchange_capture_mode(mode: CaptureMode) -> CaptureMode {
    MODE.try_with(|cell| cell.replace(mode)).unwrap_or_default()
}

/// Whether this process is a fork of the one that made the device, which it cannot use: neither
/// can a real one be used there.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Asked before the lock is taken, which another thread may have held at the fork.
fn is_forked() -> bool {
    FORKED.load(Ordering::Acquire)
}

extern "C" fn notice_fork() {
    FORKED.store(true, Ordering::Release);
}

/// Has forks noticed, once.
fn watch_forks() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: the function only stores a word, which is allowed in a child. If there is no
        // memory for the registration, forks stay unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(notice_fork)) };
    });
}

/// Makes the device as the environment describes it, unless there is one.
///
/// # Errors
/// [`Code::NotInitialized`] in a fork of a process that has one, [`Code::InvalidValue`] if the environment is wrong, which is also said on stderr.
pub fn initialize() -> Answer {
    if is_forked() {
        return Err(Code::NotInitialized);
    }
    let mut process = process();
    if let Some(device) = &process.device {
        return device.exists();
    }
    let settings = Settings::from_environment().map_err(|wrong| {
        eprintln!("metes dry device: {wrong}");
        Code::InvalidValue
    })?;
    let device = made(settings)?;
    let exists = device.exists();
    process.device = Some(device);
    exists
}

fn made(settings: Settings) -> Answer<Device> {
    watch_forks();
    FORKED.store(false, Ordering::Release);
    Device::new(settings).map_err(|error| {
        eprintln!("metes dry device: no file in memory for its content: {error}");
        Code::OutOfMemory
    })
}

/// Puts a new device in the place of the one that is, as if the process had just begun.
///
/// # Errors
/// [`Code::InvalidValue`] beyond 256 TiB, [`Code::OutOfMemory`] if the host has no memory for it.
pub fn replace(settings: Option<Settings>) -> Answer {
    if settings.is_some_and(|settings| settings.bytes > MOST_BYTES) {
        return Err(Code::InvalidValue);
    }
    let device = settings.map(made).transpose()?;
    let mut process = process();
    process.device = device;
    process.calls.clear();
    Ok(())
}

/// Counts a call.
pub fn count(name: &'static str) {
    if !is_forked() {
        *process().calls.entry(name).or_default() += 1;
    }
}

/// Calls of that name so far.
pub fn calls(name: &str) -> u64 {
    process().calls.get(name).copied().unwrap_or(0)
}

/// All calls so far, by name.
pub fn all_calls() -> Vec<(&'static str, u64)> {
    let process = process();
    process.calls.iter().map(|(n, c)| (*n, *c)).collect()
}

/// Something of the device that needs no context.
///
/// # Errors
/// [`Code::NotInitialized`] before `cuInit`, [`Code::NoDevice`] if there is none, the fault of the context, or what `action` says.
pub fn with_device<T>(action: impl FnOnce(&mut Device) -> Answer<T>) -> Answer<T> {
    if is_forked() {
        return Err(Code::NotInitialized);
    }
    let (answer, calls, guessed) = {
        let mut process = process();
        let device = process.device.as_mut().ok_or(Code::NotInitialized)?;
        device.exists()?;
        if let Some(fault) = device.fault {
            return Err(fault);
        }
        let answer = action(device);
        (
            device.noticed(answer),
            device.engine.take_calls(),
            device.engine.take_guesses(),
        )
    };
    for guess in guessed {
        if let Some(observer) = observer() {
            let place = std::ptr::with_exposed_provenance_mut(guess.place as usize);
            // SAFETY: the copy wrote there just now, and is not over for the program; the observer
            // is what the program gave to be called so.
            unsafe { observer(place, guess.size, guess.first) };
        }
    }
    for call in calls {
        // SAFETY: the program gave function and data to be called together, once.
        unsafe { (call.function)(call.data) };
    }
    answer
}

/// Something of the device that needs a current context.
///
/// # Errors
/// As [`with_device`]; [`Code::InvalidContext`] if no context is current in this thread, or it
/// was ended.
pub fn with_context<T>(action: impl FnOnce(&mut Device) -> Answer<T>) -> Answer<T> {
    with_device(|device| match current() == CONTEXT && device.retained > 0 {
        true => action(device),
        false => Err(Code::InvalidContext),
    })
}

/// Something of the device whatever state it is in; `None` before `cuInit`.
pub fn inspect<T>(action: impl FnOnce(&mut Device) -> T) -> Option<T> {
    process().device.as_mut().map(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_read() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.bytes, 24 << 30);
        assert_eq!(settings.kept, Kept::All);
        for (text, bytes) in [("4096", 4096), (" 7 GiB ", 7 << 30)] {
            assert_eq!(read(&[("METES_DEVICE_BYTES", text)]).unwrap().bytes, bytes);
        }
        let settings = read(&[
            ("METES_DEVICE_CONTENT", "none"),
            ("METES_DEVICE_CAPABILITY", "8.6"),
        ])
        .unwrap();
        assert_eq!(settings.kept, Kept::Nothing);
        assert_eq!(settings.capability, (8, 6));
        let settings = read(&[("METES_DEVICE_CONTENT", "host")]).unwrap();
        assert_eq!(settings.kept, Kept::Host);
    }

    #[test]
    fn a_wrong_environment_is_named() {
        for (name, text) in [
            ("METES_DEVICE_BYTES", ""),
            ("METES_DEVICE_BYTES", "24 gigs"),
            ("METES_DEVICE_BYTES", "-1"),
            ("METES_DEVICE_BYTES", "99999999999 GiB"),
            ("METES_DEVICE_BYTES", "262145GiB"),
            ("METES_DEVICE_CONTENT", "some"),
            ("METES_DEVICE_CAPABILITY", "9"),
            ("METES_DEVICE_CAPABILITY", "9.x"),
            ("METES_DEVICE_CAPABILITY", "0.1"),
        ] {
            let error = read(&[(name, text)]).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
