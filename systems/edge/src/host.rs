//! The host's state: which functions are deployed, where, and what became of their invocations.
//!
//! *Invariant:* the functions that are deployed are a set that was admitted as a whole; whatever a deployment meets, those
//! that were there before stay.

mod deploy;
mod deployed;
mod error;
mod measured;
mod placement;
mod sampled;
mod told;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use metes_admission::Certificate;

use crate::clock;
use crate::cost::Table;
use crate::engine::Engine;
use crate::limits::Options;
use crate::overheads::Overheads;
use crate::slots::lock_all;
use crate::station::{Command, Job, Response, Start, Station};

pub(crate) use deployed::Deployed;
pub use error::HostError;
pub use sampled::{Sampled, SampledTier};
pub use told::{HostTold, Told};

/// What a host is started with.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Workers, each a thread for a core.
    pub cores: u32,
    /// Compilers and slots; one slot is kept for what is being deployed.
    pub engine: Options,
    /// The real-time priority of workers; none leaves them in the ordinary class.
    pub priority: Option<i32>,
    /// What the host is taken to need itself; none has it measured at the start.
    pub overheads: Option<Overheads>,
    /// Most requests of one function that wait.
    pub waiting: usize,
    /// Most functions at once.
    pub functions: usize,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            cores: 1,
            engine: Options::default(),
            priority: None,
            overheads: None,
            waiting: 64,
            functions: 64,
        }
    }
}

/// How often overruns are looked for, unless the engine's options say.
const LOOK: Duration = Duration::from_micros(250);
/// A host. Clones are the same.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    stations: Vec<Station>,
    engine: Engine,
    options: HostOptions,
    overheads: Overheads,
    /// Whether all memory of the process was locked when the last function was deployed.
    locked: AtomicBool,
    functions: RwLock<BTreeMap<String, Arc<Deployed>>>,
    /// Held while the set of functions is changed, compilers included; nobody who answers requests takes it.
    changing: Mutex<()>,
    /// What operators cost here, measured for the first function with samples.
    tables: OnceLock<Vec<Table>>,
    /// Held for as long as it is read or replaced.
    certificate: Mutex<Option<Certificate>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Starts the engine and the workers.
    ///
    /// # Errors
    /// Options that make no sense, or threads that are not to be had.
    pub fn start(options: HostOptions) -> Result<Host, HostError> {
        let mut options = options;
        options.engine.look.get_or_insert(LOOK);
        let engine = Engine::new(options.engine.clone())?;
        let nothing = measured::nothing(&engine)?;
        let mut stations = Vec::new();
        for core in 0..options.cores {
            let start = Start {
                core,
                priority: options.priority,
                seats: options.engine.slots,
                waiting: options.waiting * options.engine.slots,
            };
            let station = Station::start(start, &engine, &nothing);
            stations.push(station.map_err(|error| HostError::Worker {
                core,
                cause: error.to_string(),
            })?);
        }
        let overheads = match options.overheads {
            Some(overheads) => overheads,
            None => measured::overheads(&engine, &stations)?,
        };
        let locked = options.engine.lock && lock_all();
        Ok(Host(Arc::new(Inner {
            stations,
            engine,
            options,
            overheads,
            locked: AtomicBool::new(locked),
            functions: RwLock::default(),
            changing: Mutex::new(()),
            tables: OnceLock::new(),
            certificate: Mutex::new(None),
        })))
    }

    /// Largest module in bytes.
    pub(crate) fn module_bytes(&self) -> usize {
        self.0.options.engine.module_bytes
    }

    fn find(&self, name: &str) -> Result<Arc<Deployed>, HostError> {
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let found = functions.get(name).cloned();
        found.ok_or_else(|| HostError::Unknown(name.to_owned()))
    }

    /// Takes a function away; what waits is served before.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove(&self, name: &str) -> Result<(), HostError> {
        let _changing = lock(&self.0.changing);
        let deployed = self.find(name)?;
        let mut functions = self
            .0
            .functions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        functions.remove(name);
        drop(functions);
        let station = &self.0.stations[deployed.core as usize];
        while deployed.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (send, receive) = std::sync::mpsc::channel();
        // Whoever waits is there.
        let removed = Box::new(move |seat| drop(send.send(seat)));
        station
            .queue
            .command(Command::Remove(deployed.module.clone(), removed));
        let seat = receive.recv().map_err(|_| HostError::Ending)?;
        drop(seat);
        // What is left fits, as it did with one more; its certificate is that of the larger set.
        *lock(&self.0.certificate) = None;
        Ok(())
    }

    /// Largest request of a function in bytes.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn largest(&self, name: &str) -> Result<u64, HostError> {
        Ok(self.find(name)?.manifest.input)
    }

    /// Asks for an invocation, which is released when the period since the one before it is over; `reply` is called by the
    /// worker when it has ended.
    ///
    /// # Errors
    /// An unknown function, a request that is too large, or too many that wait: `reply` is not called then.
    pub fn invoke(
        &self,
        name: &str,
        input: Vec<u8>,
        reply: impl FnOnce(Response) + Send + 'static,
    ) -> Result<(), HostError> {
        // Held until the job waits: whoever removes the function sees it.
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let deployed = functions.get(name).cloned();
        let deployed = deployed.ok_or_else(|| HostError::Unknown(name.to_owned()))?;
        let manifest = &deployed.manifest;
        if input.len() as u64 > manifest.input {
            return Err(HostError::TooLarge {
                name: name.to_owned(),
                limit: manifest.input,
            });
        }
        let limit = self.0.options.waiting;
        let waiting = deployed.waiting.fetch_add(1, Ordering::Relaxed);
        if waiting >= limit {
            deployed.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(HostError::TooMany {
                name: name.to_owned(),
                waiting,
                period: manifest.period,
            });
        }
        let (output, errors) = deployed.buffers();
        let release = {
            let mut next = lock(&deployed.next);
            let release = clock::now().max(*next);
            *next = release.saturating_add(manifest.period);
            release
        };
        let deadline = release.saturating_add(manifest.deadline);
        let core = deployed.core as usize;
        let job = Job {
            input,
            output,
            errors,
            release,
            deadline,
            reply: Box::new(reply),
            deployed,
        };
        self.0.stations[core].queue.job(release, deadline, job);
        Ok(())
    }

    /// What is told of every function, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Told> {
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        functions.values().map(|deployed| deployed.told()).collect()
    }

    /// What is told of one.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn function(&self, name: &str) -> Result<Told, HostError> {
        Ok(self.find(name)?.told())
    }

    /// What is told of the host.
    #[must_use]
    pub fn told(&self) -> HostTold<'_> {
        let slots = self.0.engine.slots();
        HostTold {
            workers: self
                .0
                .stations
                .iter()
                .map(|station| &station.obtained)
                .collect(),
            overruns_real_time: self.0.engine.watch_real_time(),
            compiler_reserved: self.0.engine.compiler_reserved(),
            overheads: self.0.overheads,
            memory_locked: self.0.locked.load(Ordering::Relaxed),
            memory_taken: slots.taken(),
            memory_total: slots.total(),
            certificate: lock(&self.0.certificate).clone(),
        }
    }
}
