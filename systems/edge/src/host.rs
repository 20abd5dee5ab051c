//! The host's state: which functions are deployed, where, and what became of their invocations.
//!
//! *Invariant:* the functions that are deployed are a set that was admitted as a whole; whatever a deployment meets, those
//! that were there before stay.

mod error;
mod measured;
mod placement;
mod sampled;
mod told;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use metes_admission::{Certificate, Decision, Scheduling, Set, admit};

use crate::clock;
use crate::cost::Table;
use crate::engine::Engine;
use crate::limits::{Options, Tiers};
use crate::manifest::{Hosted as _, Manifest};
use crate::module::Module;
use crate::outcome::{BudgetClock, Tier};
use crate::overheads::{self, Overheads};
use crate::overrun::Alarm;
use crate::seat::Live;
use crate::slots::{Place, lock_all};
use crate::station::{Command, Job, Response, Start, Station};
use crate::statistics::Statistics;
use crate::worker::Worker;

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
/// A function that is deployed.
pub(crate) struct Deployed {
    pub(crate) manifest: Manifest,
    pub(crate) module: Module,
    core: u32,
    measured: Option<u64>,
    /// What the host takes for each invocation beyond what it takes for all.
    overhead: u64,
    samples: Vec<Sampled>,
    /// Where code that becomes ready goes on, and the alarm of who runs it; none where there is none to come.
    hand_over: Mutex<Option<(Place, Arc<Alarm>)>>,
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

impl Deployed {
    fn new(manifest: Manifest, module: Module, core: u32) -> Deployed {
        Deployed {
            core,
            measured: None,
            overhead: 0,
            samples: Vec::new(),
            hand_over: Mutex::new(None),
            module,
            waiting: AtomicUsize::new(0),
            next: Mutex::new(0),
            statistics: Mutex::new(Statistics::new()),
            manifest,
        }
    }

    /// Memory for a response and for what goes to stderr, touched, so that the worker's first write finds it there.
    pub(crate) fn buffers(&self) -> (Vec<u8>, Vec<u8>) {
        let touched = |bytes: usize| {
            let mut buffer = vec![1; bytes];
            buffer.clear();
            buffer
        };
        let limits = self.module.limits();
        (touched(limits.output), touched(limits.errors))
    }

    /// An instance of optimised code, if it has become ready since the function answered by the other; once.
    pub(crate) fn other_code(&self, response: &Response) -> Option<(Live, Tier)> {
        if response.invocation.tier != Tier::Baseline || !self.module.has(Tier::Optimised) {
            return None;
        }
        let (place, alarm) = lock(&self.hand_over).take()?;
        // The old instance goes on where a new one cannot be made.
        let live = Live::over(&self.module, Tier::Optimised, place, &alarm).ok()?;
        Some((live, Tier::Optimised))
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
            overhead_ns: self.overhead,
            samples: self.samples.clone(),
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

    /// Compiles, measures and admits a function, and makes it ready on its core.
    ///
    /// # Errors
    /// Why it is not deployed; the host is as before then.
    pub fn deploy(&self, manifest: &str, wasm: &[u8]) -> Result<Told, HostError> {
        self.deploy_with(manifest, &[], wasm)
    }

    /// As [`Host::deploy`], with the contents of the files that the manifest names as samples, in their order.
    ///
    /// # Errors
    /// As of [`Host::deploy`]; other samples than are named, or one that is larger than a request may be.
    pub fn deploy_with(
        &self,
        manifest: &str,
        samples: &[Vec<u8>],
        wasm: &[u8],
    ) -> Result<Told, HostError> {
        let manifest = Manifest::parse(manifest)?;
        if samples.len() != manifest.samples.len() {
            return Err(HostError::Samples {
                named: manifest.samples.len(),
                came: samples.len(),
            });
        }
        if samples
            .iter()
            .any(|sample| sample.len() as u64 > manifest.input)
        {
            return Err(HostError::TooLarge {
                name: manifest.name,
                limit: manifest.input,
            });
        }
        let _changing = lock(&self.0.changing);
        if self.find(&manifest.name).is_ok() {
            return Err(HostError::Exists(manifest.name));
        }
        let limit = self.0.options.functions;
        let functions = self.0.functions.read();
        if functions.unwrap_or_else(PoisonError::into_inner).len() >= limit {
            return Err(HostError::Full { limit });
        }
        let least = self.least_budget();
        if manifest.budget < least {
            return Err(HostError::ShortBudget {
                budget: manifest.budget,
                least,
            });
        }
        let module = self.0.engine.compile(wasm, &manifest.limits())?;
        let samples = self.sample(&manifest, samples, wasm);
        // Made ready and measured here, so that the worker is kept from nothing.
        let mut worker = Worker::new(&self.0.engine);
        // Others may hold this thread up, which is not the function's fault.
        worker.set_clock(BudgetClock::Processor);
        worker.prepare(&module)?;
        let measured = measured::longest(&mut worker, &manifest, &module)?;
        let overhead = overheads::of_function(worker.set_back_ns(&module));
        let seat = worker.unseat(&module).ok_or(HostError::Ending)?;
        let admitted = self.admit(&manifest, module.memory(), overhead)?;
        // Its code and its instance are new.
        let locked = self.0.options.engine.lock && lock_all();
        self.0.locked.store(locked, Ordering::Relaxed);
        let core = admitted.core_of(&manifest.name).unwrap_or(0);
        let station = &self.0.stations[core as usize];
        let later = module.inner().limits.tiers == Tiers::Both && seat.tier == Tier::Baseline;
        let hand_over = later.then(|| (seat.place(), station.alarm()));
        let (send, receive) = std::sync::mpsc::channel();
        // Whoever waits is there.
        let installed = Box::new(move || {
            let _ = send.send(());
        });
        station
            .queue
            .command(Command::Install(Box::new(seat), installed));
        receive.recv().map_err(|_| HostError::Ending)?;
        let deployed = Arc::new(Deployed {
            measured,
            overhead,
            samples,
            hand_over: Mutex::new(hand_over),
            ..Deployed::new(manifest, module, core)
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

    /// What samples take; the slot that is kept for deployments is free again then.
    fn sample(&self, manifest: &Manifest, samples: &[Vec<u8>], wasm: &[u8]) -> Vec<Sampled> {
        if samples.is_empty() {
            return Vec::new();
        }
        let engine = &self.0.engine;
        let tables = self.0.tables.get_or_init(|| sampled::tables(engine));
        sampled::sample(engine, tables, manifest, samples, wasm)
    }

    /// The shortest budget whose end is looked for in time.
    fn least_budget(&self) -> u64 {
        let look = self.0.options.engine.look;
        2 * look.map_or(0, clock::nanoseconds)
    }

    /// Admits the functions that are there, where they are, and one more.
    fn admit(
        &self,
        manifest: &Manifest,
        memory: u64,
        overhead: u64,
    ) -> Result<Certificate, HostError> {
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let there = functions.values().map(|deployed| {
            let function = deployed.manifest.function(deployed.module.memory());
            metes_admission::Function {
                overhead: deployed.overhead,
                ..function.on(deployed.core)
            }
        });
        let options = &self.0.options;
        let overheads = &self.0.overheads;
        let mut host = metes_admission::Host::new(options.cores, self.memory());
        host.scheduling = Scheduling::NonPreemptive;
        host.overheads.release = overheads.release_ns;
        host.overheads.blocking = overheads.blocking_ns;
        host.interference = overheads.interference(options.engine.compile_server);
        let function = metes_admission::Function {
            overhead,
            ..manifest.function(memory)
        };
        let mut set = Set {
            functions: there.chain([function]).collect(),
            host,
        };
        let mut refused = HostError::NotAdmitted(placement::NO_CORE.to_owned());
        for core in placement::cores(manifest, options.cores, functions.values())? {
            if let Some(function) = set.functions.last_mut() {
                function.core = core;
            }
            match admit(&set) {
                Decision::Admitted(certificate) => {
                    let checked = certificate.check(&set);
                    return match checked {
                        Ok(()) => Ok(certificate),
                        Err(flaw) => Err(HostError::NotAdmitted(flaw.to_string())),
                    };
                }
                Decision::Refused(refusal) => {
                    refused = HostError::NotAdmitted(refusal.to_string());
                }
            }
        }
        Err(refused)
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
