//! One for a process: compilers, slots, the thread that ends overruns.
//!
//! *Invariant:* [`Engine::compile`] answers every sequence of bytes with a module or an error that names
//! the remedy, and leaves the engine as it was after an error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use wasmtime::Engine as Code;

use crate::artefact::Artefacts;
use crate::clock;
use crate::cost::Meter;
use crate::error::{DeployError, EngineError};
use crate::guest::{Run, Strings};
use crate::limits::{Limits, Options, PAGE, State, Tiers};
use crate::module::image::Image;
use crate::module::inspect::Facts;
use crate::module::{Inner, Module, Reset, rewrite};
use crate::outcome::{Policy, Tier};
use crate::overrun::{Alarm, Watch};
use crate::seat::Seat;
use crate::slots::Slots;
use crate::tier::{self, Compiler, Kind};
use crate::wasi;

/// Compilers, slots and the thread that ends overruns. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    id: u64,
    options: Options,
    slots: Slots,
    baseline: Code,
    optimised: Code,
    meter: OnceLock<Meter>,
    artefacts: Option<Arc<Artefacts>>,
    compiler: Compiler,
    watch: Watch,
    modules: AtomicU64,
}

static ENGINES: AtomicU64 = AtomicU64::new(0);

impl Engine {
    /// Starts the compilers and the two threads.
    ///
    /// # Errors
    ///
    /// An option that makes no sense, a machine that the compilers do not know, a directory of artefacts
    /// that others can reach, or no more threads.
    pub fn new(options: Options) -> Result<Engine, EngineError> {
        check(&options)?;
        let baseline = tier::engine(Kind::Baseline, &options)?;
        let optimised = tier::engine(Kind::Optimised, &options)?;
        let artefacts = options
            .artefacts
            .as_deref()
            .map(Artefacts::open)
            .transpose()?
            .map(Arc::new);
        let compiler = Compiler::start(optimised.clone(), artefacts.clone(), &options)?;
        let rung = [baseline.clone(), optimised.clone()];
        let watch = Watch::start(&options, move || {
            for code in &rung {
                code.increment_epoch();
            }
        })?;
        let slots = Slots::new(options.slots as u64 * options.slot_bytes, options.lock);
        Ok(Engine(Arc::new(Parts {
            id: ENGINES.fetch_add(1, Ordering::Relaxed),
            slots,
            baseline,
            optimised,
            meter: OnceLock::new(),
            artefacts,
            compiler,
            watch,
            modules: AtomicU64::new(0),
            options,
        })))
    }

    /// Verifies, rewrites and compiles a module, and runs its `_initialize` once if it has one.
    ///
    /// With both tiers this returns when the baseline code is there; the optimising compiler follows in the
    /// background. A module that the baseline compiler does not take waits for the optimising one.
    ///
    /// # Errors
    ///
    /// See [`DeployError`].
    pub fn compile(&self, wasm: &[u8], limits: &Limits) -> Result<Module, DeployError> {
        let options = &self.0.options;
        if wasm.len() > options.module_bytes {
            return Err(DeployError::TooLarge {
                bytes: wasm.len(),
                limit: options.module_bytes,
            });
        }
        let facts = Facts::of(wasm)?;
        if facts.start {
            return Err(DeployError::StartFunction);
        }
        wasi::check(&facts.imports, limits.absent)?;
        let status = facts.entry(&limits.entry)?;
        let pages = facts.pages(limits, options.slot_bytes)?;
        let image = Image::of(&facts, pages * PAGE)?;
        let (wasm, globals) = rewrite::rewrite(wasm, &facts, pages)?;
        let reset = if facts.changes_tables {
            Reset::Instantiate
        } else {
            Reset::Restore
        };
        let mut notes = notes(&facts, pages, reset);
        let tiers = match (limits.tiers, limits.state, reset) {
            (Tiers::Both, State::Kept, Reset::Instantiate) => {
                notes.push("its tables cannot be handed over with kept state: compiled by the optimising compiler alone".to_owned());
                Tiers::Optimised
            }
            (tiers, _, _) => tiers,
        };
        let module = Module::new(Inner {
            id: self.0.modules.fetch_add(1, Ordering::Relaxed),
            owner: self.0.id,
            wasm,
            limits: limits.clone(),
            image,
            initialised: OnceLock::new(),
            reset,
            initialises: limits.entry != "_start" && facts.exports("_initialize"),
            status,
            globals,
            arguments: Arc::new(Strings::new(&limits.arguments)),
            environment: Arc::new(Strings::new(&limits.environment)),
            baseline: OnceLock::new(),
            optimised: OnceLock::new(),
            refused: OnceLock::new(),
            notes,
        });
        self.first_tier(&module, tiers)?;
        self.initialise(&module)?;
        Ok(module)
    }

    /// Waits until the compiling thread has nothing to do.
    pub fn settle(&self) {
        self.0.compiler.settle();
    }

    /// The pool of slots.
    pub fn slots(&self) -> &Slots {
        &self.0.slots
    }

    /// What it was started with.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Whether the kernel holds the compiling thread to its budget.
    pub fn compiler_reserved(&self) -> bool {
        self.0.compiler.reserved()
    }

    /// Whether the thread that ends overruns has its real-time priority.
    pub fn watch_real_time(&self) -> bool {
        self.0.watch.real_time()
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// What counts operators; made when it is first asked for.
    pub(crate) fn meter(&self) -> Result<&Meter, EngineError> {
        if let Some(meter) = self.0.meter.get() {
            return Ok(meter);
        }
        let meter = Meter::new(&self.0.options)?;
        Ok(self.0.meter.get_or_init(|| meter))
    }

    pub(crate) fn artefacts(&self) -> Option<&Artefacts> {
        self.0.artefacts.as_deref()
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.0.watch
    }

    fn first_tier(&self, module: &Module, tiers: Tiers) -> Result<(), DeployError> {
        let artefacts = self.0.artefacts.as_deref();
        let wasm = &module.inner().wasm;
        let mut refused = String::new();
        if tiers != Tiers::Optimised {
            match tier::build(&self.0.baseline, wasm, artefacts) {
                Ok(code) => {
                    drop(module.inner().baseline.set(code));
                    if tiers == Tiers::Both {
                        self.0.compiler.submit(module);
                    }
                    return Ok(());
                }
                Err(cause) => refused = cause,
            }
        }
        if tiers == Tiers::Baseline {
            return Err(DeployError::Compile {
                tier: Tier::Baseline.name(),
                cause: refused,
            });
        }
        let code = tier::build(&self.0.optimised, wasm, artefacts).map_err(|cause| {
            DeployError::Compile {
                tier: Tier::Optimised.name(),
                cause,
            }
        })?;
        drop(module.inner().optimised.set(code));
        Ok(())
    }

    /// Makes an instance, which shows that there can be one, and keeps what `_initialize` leaves.
    fn initialise(&self, module: &Module) -> Result<(), DeployError> {
        let slot = match module.memory() {
            0 => None,
            bytes => Some(self.0.slots.take(bytes)?),
        };
        let alarm: Arc<Alarm> = self.0.watch.alarm();
        let budget = clock::nanoseconds(self.0.options.initialise);
        self.0.watch.expect(budget);
        let failed = |error: wasmtime::Error| DeployError::Initialise {
            cause: format!("{:#}", error),
        };
        let mut seat = Seat::begin(
            module,
            module.best(),
            slot,
            &alarm,
            Run::starting(budget, Policy::Stop),
        )
        .map_err(failed)?;
        if module.inner().initialises && module.reset() == Reset::Restore {
            let (memory, globals) = seat.initialise().map_err(failed)?;
            let memory = memory.unwrap_or_default();
            let image = Image::from_memory(memory, memory.len());
            drop(module.inner().initialised.set((image, globals)));
        }
        alarm.clear();
        Ok(())
    }
}

/// How often overruns may be looked for.
const LOOKS: std::ops::RangeInclusive<std::time::Duration> =
    std::time::Duration::from_micros(25)..=std::time::Duration::from_millis(10);

fn check(options: &Options) -> Result<(), EngineError> {
    let wrong = |option, value: String, remedy| {
        Err(EngineError::Option {
            option,
            value,
            remedy,
        })
    };
    if options.slot_bytes == 0
        || !options.slot_bytes.is_multiple_of(PAGE)
        || options.slot_bytes > 4 << 30
    {
        return wrong(
            "slot_bytes",
            options.slot_bytes.to_string(),
            "give a whole number of pages of 65536 bytes, up to 4 GiB",
        );
    }
    if options.slots == 0 || options.slots > 4096 {
        return wrong("slots", options.slots.to_string(), "give 1 to 4096");
    }
    if !(16 << 10..=1 << 20).contains(&options.stack_bytes) {
        return wrong(
            "stack_bytes",
            options.stack_bytes.to_string(),
            "give 16 KiB to 1 MiB",
        );
    }
    if let Some(look) = options.look
        && !LOOKS.contains(&look)
    {
        return wrong("look", format!("{look:?}"), "give 25 us to 10 ms");
    }
    if let Some(server) = options.compile_server
        && (server.budget.is_zero() || server.budget > server.period)
    {
        return wrong(
            "compile_server",
            format!("{:?} in {:?}", server.budget, server.period),
            "give a budget of at most its period",
        );
    }
    Ok(())
}

fn notes(facts: &Facts, pages: u64, reset: Reset) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((initial, maximum)) = facts.memory {
        if facts.grows {
            notes.push(format!(
                "no growth of memory: {pages} pages are there from the beginning, and memory.grow answers from {initial} up to them"
            ));
        } else if maximum != Some(initial) {
            notes.push(format!(
                "no growth of memory: its maximum is now its minimum, {pages} pages"
            ));
        }
    }
    if reset == Reset::Instantiate {
        notes.push("its code changes tables or drops segments: each invocation gets a new instance, made after the one before".to_owned());
    }
    notes
}
