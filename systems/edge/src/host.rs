//! The host's state: which functions are deployed, where, and what became of their invocations.
//!
//! *Invariant:* the functions that are deployed are a set that was admitted as a whole; whatever a deployment meets, those
//! that were there before stay.

mod error;
mod told;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use metes_admission::{Certificate, Decision, Scheduling, Server, Set, admit};

use crate::clock;
use crate::engine::Engine;
use crate::limits::Options;
use crate::manifest::{Hosted as _, Manifest};
use crate::module::Module;
use crate::outcome::Outcome;
use crate::station::{Command, Job, Response, Station};
use crate::statistics::Statistics;
use crate::worker::Worker;

pub use error::HostError;
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
    /// What the host is taken to need itself, in nanoseconds.
    pub overheads: metes_admission::Overheads,
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
            overheads: metes_admission::Overheads::default(),
            waiting: 64,
            functions: 64,
        }
    }
}

/// A function that is deployed.
pub(crate) struct Deployed {
    pub(crate) manifest: Manifest,
    pub(crate) module: Module,
    core: u32,
    measured: Option<u64>,
    waiting: AtomicUsize,
    /// When the next request may be released.
    next: Mutex<u64>,
    statistics: Mutex<Statistics>,
}

/// A host. Clones are the same.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    stations: Vec<Station>,
    engine: Engine,
    options: HostOptions,
    functions: RwLock<BTreeMap<String, Arc<Deployed>>>,
    /// Held while the set of functions is changed, compilers included; nobody who answers requests takes it.
    changing: Mutex<()>,
    /// Held for as long as it is read or replaced.
    certificate: Mutex<Option<Certificate>>,
}

impl Deployed {
    /// Memory for a response.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        Vec::with_capacity(self.module.limits().output)
    }

    /// Counts an invocation that has ended.
    pub(crate) fn ended(&self, response: &Response) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let mut statistics = lock(&self.statistics);
        statistics.take(&response.invocation, response.response_ns, response.missed);
    }

    fn told(&self) -> Told {
        let statistics = lock(&self.statistics);
        Told {
            name: self.manifest.name.clone(),
            core: self.core,
            period_ns: self.manifest.period,
            deadline_ns: self.manifest.deadline,
            budget_ns: self.manifest.budget,
            memory: self.module.memory(),
            tier: self.module.best().name().to_owned(),
            measured_ns: self.measured,
            notes: self.module.notes().to_vec(),
            counts: statistics.counts(),
            time_ns: statistics.time(),
            response_ns: statistics.response(),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
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
        let engine = Engine::new(options.engine.clone())?;
        let mut stations = Vec::new();
        for core in 0..options.cores {
            let station = Station::start(core, &engine, options.priority);
            stations.push(station.map_err(|error| HostError::Worker {
                core,
                cause: error.to_string(),
            })?);
        }
        Ok(Host(Arc::new(Inner {
            stations,
            engine,
            options,
            functions: RwLock::default(),
            changing: Mutex::new(()),
            certificate: Mutex::new(None),
        })))
    }

    /// Compiles, measures and admits a function, and makes it ready on its core.
    ///
    /// # Errors
    /// Why it is not deployed; the host is as before then.
    pub fn deploy(&self, manifest: &str, wasm: &[u8]) -> Result<Told, HostError> {
        let manifest = Manifest::parse(manifest)?;
        let _changing = lock(&self.0.changing);
        if self.find(&manifest.name).is_ok() {
            return Err(HostError::Exists(manifest.name));
        }
        let limit = self.0.options.functions;
        let functions = self.0.functions.read();
        if functions.unwrap_or_else(PoisonError::into_inner).len() >= limit {
            return Err(HostError::Full { limit });
        }
        let module = self.0.engine.compile(wasm, &manifest.limits())?;
        let measured = self.measure(&manifest, &module)?;
        let admitted = self.admit(&manifest, module.memory())?;
        let core = admitted.core_of(&manifest.name).unwrap_or(0);
        let (send, receive) = std::sync::mpsc::channel();
        let station = &self.0.stations[core as usize];
        let prepared = Box::new(move |prepared| drop(send.send(prepared)));
        station
            .queue
            .command(Command::Prepare(module.clone(), prepared));
        receive.recv().map_err(|_| HostError::Ending)??;
        let deployed = Arc::new(Deployed {
            core,
            measured,
            module,
            waiting: AtomicUsize::new(0),
            next: Mutex::new(0),
            statistics: Mutex::new(Statistics::new()),
            manifest,
        });
        let told = deployed.told();
        let mut functions = self
            .0
            .functions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        functions.insert(told.name.clone(), deployed);
        *lock(&self.0.certificate) = Some(admitted);
        Ok(told)
    }

    /// The longest that an empty request took of ten, on this thread; none is made of a function that keeps its state.
    fn measure(&self, manifest: &Manifest, module: &Module) -> Result<Option<u64>, HostError> {
        if manifest.kept {
            return Ok(None);
        }
        let mut worker = Worker::new(&self.0.engine);
        let mut output = Vec::with_capacity(module.limits().output);
        worker.prepare(module)?;
        let time = Duration::from_nanos(manifest.budget);
        let mut longest = None;
        let mut late = true;
        // A thread of the ordinary class may be held up, which is not the function's fault.
        for _ in 0..10 {
            let invocation = worker.invoke(module, &[], &mut output, time);
            if !matches!(invocation.outcome, Outcome::Overrun { .. }) {
                late = false;
                longest = longest.max(Some(invocation.time_ns));
            }
        }
        match late {
            true => Err(HostError::Budget {
                budget: manifest.budget,
            }),
            false => Ok(longest),
        }
    }

    /// Admits the functions that are there, where they are, and one more.
    fn admit(&self, manifest: &Manifest, memory: u64) -> Result<Certificate, HostError> {
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let there = functions.values().map(|deployed| {
            let function = deployed.manifest.function(deployed.module.memory());
            function.on(deployed.core)
        });
        let options = &self.0.options;
        let mut host = metes_admission::Host::new(options.cores, self.memory());
        host.scheduling = Scheduling::NonPreemptive;
        host.overheads = options.overheads;
        host.compile_server = options.engine.compile_server.map(|server| Server {
            budget: clock::nanoseconds(server.budget),
            period: clock::nanoseconds(server.period),
            memory: 0,
            core: None,
        });
        let set = Set {
            functions: there.chain([manifest.function(memory)]).collect(),
            host,
        };
        match admit(&set) {
            Decision::Admitted(certificate) => match certificate.check(&set) {
                Ok(()) => Ok(certificate),
                Err(flaw) => Err(HostError::NotAdmitted(flaw.to_string())),
            },
            Decision::Refused(refusal) => Err(HostError::NotAdmitted(refusal.to_string())),
        }
    }

    /// Bytes for functions: all slots but the one in which functions are measured.
    fn memory(&self) -> u64 {
        let engine = &self.0.options.engine;
        (engine.slots as u64 - 1) * engine.slot_bytes
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
        let removed = Box::new(move || {
            // Whoever waits is there.
            let _ = send.send(());
        });
        station
            .queue
            .command(Command::Remove(deployed.module.clone(), removed));
        // What is left fits, as it did with one more; its certificate is that of the larger set.
        *lock(&self.0.certificate) = None;
        receive.recv().map_err(|_| HostError::Ending)
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
            memory_taken: slots.taken(),
            memory_total: slots.total(),
            certificate: lock(&self.0.certificate).clone(),
        }
    }
}
