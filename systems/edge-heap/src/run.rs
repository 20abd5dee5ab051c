//! A whole module run once, under WASI as far as a program without files needs it.
//!
//! A run is a function of module, arguments and input: the clock counts how often it was read, chance has a
//! fixed seed. So two runs ask for the same unless the program looks at addresses.
//!
//! Invariant: whatever the module passes, the answer is a number of WASI or a trap, never a panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metes_random::Random;
use wasmtime::{Config, Engine, Error, Linker, Module, Store, Trap, UpdateDeadline};

use crate::report::{OF_HEAP, TOLD};
use crate::wasi;

/// A request as a module told it: number, place, size, alignment, result; as [`splice`](crate::splice) says it.
pub type Told = [u32; TOLD];

/// How a module was run.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Its name and arguments.
    pub arguments: Vec<String>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Ends the run when set.
    pub stop: Option<Arc<AtomicBool>>,
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The status that it ended with.
    pub status: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained of.
    pub stderr: Vec<u8>,
    /// Its requests, where it tells of them.
    pub told: Vec<Told>,
    /// Of a heap that was spliced in, if it tells: where its pool begins, bytes taken, most bytes live.
    pub heap: Option<[u32; 3]>,
    /// Pages of its memory at the end.
    pub pages: u64,
    /// Pages from the start.
    pub first_pages: u64,
    /// Operators that it executed.
    pub operators: u64,
}

/// What a run may use before it is taken for one that does not end.
const ENOUGH: u64 = u64::MAX >> 2;

/// Why a module was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine refuses it.
    #[error(
        "the module does not run: {0}; it must be a WASI command (wasm32-wasip1) that exports `_start`"
    )]
    Refused(String),
    /// It trapped.
    #[error("the module trapped: {trap}{}", last(.words))]
    Trapped {
        /// How.
        trap: String,
        /// The end of what it wrote to stderr.
        words: String,
    },
    /// It was asked to end.
    #[error("the run of the module was ended before the module was")]
    Stopped,
}

/// The end of what a module wrote, as an error says it.
fn last(words: &str) -> String {
    match words.trim_end() {
        "" => String::new(),
        words => format!("; its last words:\n{words}"),
    }
}

/// How often a run looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Passed through a trap when a run is to end.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the run was ended")
    }
}

impl std::error::Error for Stopped {}

/// Makes an engine look up from time to time until dropped.
struct Ticks {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticks {
    fn begin(engine: &Engine) -> Ticks {
        let over = Arc::new(AtomicBool::new(false));
        let (engine, ended) = (engine.clone(), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK);
                engine.increment_epoch();
            }
        });
        Ticks {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

pub(crate) struct State {
    pub(crate) input: Input,
    pub(crate) read: usize,
    pub(crate) ran: Ran,
    pub(crate) clock: u64,
    pub(crate) random: Random,
}

pub(crate) fn refused(error: impl std::fmt::Display) -> RunError {
    RunError::Refused(format!("{error:#}"))
}

/// Runs a module's `_start` to its end.
///
/// # Errors
/// [`RunError`].
pub fn run(wasm: &[u8], input: &Input) -> Result<Ran, RunError> {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.epoch_interruption(input.stop.is_some());
    let engine = Engine::new(&config).map_err(refused)?;
    let module = Module::new(&engine, wasm).map_err(refused)?;
    let mut linker = Linker::new(&engine);
    wasi::offer(&mut linker).map_err(refused)?;
    let state = State {
        input: input.clone(),
        read: 0,
        ran: Ran::default(),
        clock: 0,
        random: Random::new(1),
    };
    let mut store = Store::new(&engine, state);
    store.set_fuel(ENOUGH).map_err(refused)?;
    let _ticks = input.stop.clone().map(|stop| {
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| match stop.load(Ordering::Relaxed) {
            true => Err(Error::from(Stopped)),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        Ticks::begin(&engine)
    });
    wasi::deny(&mut linker, &module)?;
    let instance = linker.instantiate(&mut store, &module).map_err(refused)?;
    let memory = instance.get_memory(&mut store, "memory");
    let memory = memory.ok_or_else(|| refused("it exports no `memory`"))?;
    store.data_mut().ran.first_pages = memory.size(&store);
    let start = instance
        .get_typed_func::<(), ()>(&mut store, "_start")
        .map_err(refused)?;
    if let Err(error) = start.call(&mut store, ())
        && !error.is::<wasi::Exit>()
    {
        if error.is::<Stopped>() {
            return Err(RunError::Stopped);
        }
        let stderr = &store.data().ran.stderr;
        let words = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(400)..]);
        let trap = match error.downcast_ref::<Trap>() {
            Some(trap) => trap.to_string(),
            None => format!("{error:#}"),
        };
        return Err(RunError::Trapped {
            trap,
            words: words.into_owned(),
        });
    }
    store.data_mut().ran.operators = ENOUGH - store.get_fuel().map_err(refused)?;
    let mut heap = [0; OF_HEAP.len()];
    let mut all = true;
    for (value, name) in heap.iter_mut().zip(OF_HEAP) {
        match instance.get_typed_func::<(), u32>(&mut store, name) {
            Ok(function) => *value = function.call(&mut store, ()).map_err(refused)?,
            Err(_) => all = false,
        }
    }
    store.data_mut().ran.heap = all.then_some(heap);
    store.data_mut().ran.pages = memory.size(&store);
    Ok(store.into_data().ran)
}
