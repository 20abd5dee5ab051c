//! The two compilers: the baseline one at once, the optimising one on a thread of its own.
//!
//! The thread compiles one module at a time under a budget that admission can count with: the deadline
//! class of the kernel holds it to so much time in each period, where the kernel permits. Code that is
//! ready is taken over by workers at a call boundary.
//!
//! *Invariant:* the compiling thread takes no lock that an invocation takes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use wasmtime::{Config, Engine, InstancePre, OperatorCost, OptLevel, Strategy};

use crate::artefact::Artefacts;
use crate::error::EngineError;
use crate::guest::Guest;
use crate::limits::Options;
use crate::module::{Inner, Module};
use crate::schedule;
use crate::slots::{Creator, GUARD, RESERVED};
use crate::wasi;

/// What an engine of wasmtime is for.
pub(crate) enum Kind {
    /// Code at once.
    Baseline,
    /// Code that is fast.
    Optimised,
    /// Code that counts its operators, each by its weight.
    Counting(Box<OperatorCost>),
}

/// An engine of wasmtime.
pub(crate) fn engine(kind: Kind, options: &Options) -> Result<Engine, EngineError> {
    let mut config = Config::new();
    config
        .strategy(if matches!(kind, Kind::Baseline) {
            Strategy::Winch
        } else {
            Strategy::Cranelift
        })
        .cranelift_opt_level(OptLevel::Speed)
        .with_host_memory(Arc::new(Creator))
        .memory_reservation(RESERVED as u64)
        .memory_guard_size(GUARD as u64)
        .memory_init_cow(false)
        .memory_may_move(false)
        .max_wasm_stack(options.stack_bytes)
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false)
        // Threads of a pool would compile outside the reserved budget.
        .parallel_compilation(false);
    match kind {
        Kind::Counting(cost) => config.consume_fuel(true).operator_cost(*cost),
        Kind::Baseline | Kind::Optimised => config.epoch_interruption(true),
    };
    Engine::new(&config).map_err(|error| EngineError::Compiler(format!("{error:#}")))
}

/// Compiles, or takes what was compiled before, and binds what the host offers.
pub(crate) fn build(
    engine: &Engine,
    wasm: &[u8],
    artefacts: Option<&Artefacts>,
) -> Result<InstancePre<Guest>, String> {
    let told = |error: wasmtime::Error| format!("{error:#}");
    let module = match artefacts.and_then(|artefacts| artefacts.load(engine, wasm)) {
        Some(module) => module,
        None => {
            let code = engine.precompile_module(wasm).map_err(told)?;
            if let Some(artefacts) = artefacts {
                artefacts.store(engine, wasm, &code);
            }
            // SAFETY: this is what `precompile_module` of this engine gave a line before.
            unsafe { wasmtime::Module::deserialize(engine, &code) }.map_err(told)?
        }
    };
    wasi::linker(engine, &module)
        .and_then(|linker| linker.instantiate_pre(&module))
        .map_err(told)
}

/// The thread that compiles in the background.
#[derive(Debug)]
pub(crate) struct Compiler {
    queue: Arc<Queue>,
    handle: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<Weak<Inner>>,
    busy: bool,
    ended: bool,
    reserved: bool,
}

impl Compiler {
    pub(crate) fn start(
        engine: Engine,
        artefacts: Option<Arc<Artefacts>>,
        options: &Options,
    ) -> Result<Compiler, EngineError> {
        let queue = Arc::new(Queue::default());
        let (server, processors) = (options.compile_server, options.housekeeping.clone());
        let (name, seen) = ("metes-compile", queue.clone());
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // Not that of the thread that starts the engine, which may be a worker's.
                schedule::ordinary();
                let reserved = server.is_some_and(schedule::reserve);
                // The kernel lets no thread have both a reservation and a processor of its own.
                if !reserved {
                    schedule::on(&processors);
                }
                seen.jobs().reserved = reserved;
                seen.work(&engine, artefacts.as_deref());
            })
            .map_err(|cause| EngineError::Thread {
                name,
                cause: cause.to_string(),
            })?;
        Ok(Compiler {
            queue,
            handle: Some(handle),
        })
    }

    /// Queues a module for the optimising compiler.
    pub(crate) fn submit(&self, module: &Module) {
        self.queue
            .jobs()
            .waiting
            .push_back(Arc::downgrade(module.inner()));
        self.queue.changed.notify_all();
    }

    /// Waits until nothing is queued or compiled.
    pub(crate) fn settle(&self) {
        let mut jobs = self.queue.jobs();
        while jobs.busy || !jobs.waiting.is_empty() {
            jobs = self
                .queue
                .changed
                .wait(jobs)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the kernel holds the thread to its budget.
    pub(crate) fn reserved(&self) -> bool {
        self.queue.jobs().reserved
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        self.queue.jobs().ended = true;
        self.queue.changed.notify_all();
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has nothing to say that was not said.
            let _ = handle.join();
        }
    }
}

impl Queue {
    fn jobs(&self) -> std::sync::MutexGuard<'_, Jobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, engine: &Engine, artefacts: Option<&Artefacts>) {
        loop {
            let mut jobs = self.jobs();
            let job = loop {
                if jobs.ended {
                    return;
                }
                if let Some(job) = jobs.waiting.pop_front() {
                    break job;
                }
                jobs = self
                    .changed
                    .wait(jobs)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            jobs.busy = true;
            drop(jobs);
            // Nobody has it any more where it was removed while it waited.
            if let Some(module) = job.upgrade() {
                match build(engine, &module.wasm, artefacts) {
                    Ok(code) => drop(module.optimised.set(code)),
                    Err(cause) => drop(module.refused.set(cause)),
                }
            }
            self.jobs().busy = false;
            self.changed.notify_all();
        }
    }
}
