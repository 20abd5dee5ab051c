//! What the host offers, and what one function may have.
//!
//! *Invariant:* all memory that functions can ever have is known when the engine starts.

use std::path::PathBuf;
use std::time::Duration;

/// A page of WebAssembly.
pub const PAGE: u64 = 65536;

/// What the host offers to all functions together.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many slots of the largest size there is memory for.
    pub slots: usize,
    /// The largest memory of one instance, in bytes.
    pub slot_bytes: u64,
    /// Whether slots are locked into memory; where they cannot be, no slot is given.
    pub lock: bool,
    /// How much stack a function may use, in bytes; each worker touches it once, when it begins.
    pub stack_bytes: usize,
    /// The largest module, in bytes.
    pub module_bytes: usize,
    /// Where compiled artefacts are kept, readable by the host alone; none keeps none.
    pub artefacts: Option<PathBuf>,
    /// The budget of the thread that compiles in the background: so much time in each period.
    pub compile_server: Option<CompileServer>,
    /// The real-time priority of the thread that ends overruns; none leaves it in the ordinary class.
    pub deadline_priority: Option<i32>,
    /// How often the thread that ends overruns looks; none has it look twice in the shortest budget that it hears of.
    pub look: Option<Duration>,
    /// Processors of the host's own two threads; none leaves them where the engine is started.
    pub housekeeping: Vec<usize>,
    /// How long `_initialize` may take.
    pub initialise: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            slots: 64,
            slot_bytes: 4 << 20,
            lock: true,
            stack_bytes: 256 << 10,
            module_bytes: 32 << 20,
            artefacts: None,
            compile_server: None,
            deadline_priority: Some(80),
            look: None,
            housekeeping: Vec::new(),
            initialise: Duration::from_secs(1),
        }
    }
}

/// A reserved budget of the compiling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileServer {
    /// Time in each period.
    pub budget: Duration,
    /// The period.
    pub period: Duration,
}

/// What one function may have, and how it is run.
#[derive(Debug, Clone)]
pub struct Limits {
    /// What is called: `_start` of a command, or a function of a reactor.
    pub entry: String,
    /// Memory of the instance in bytes, rounded down to pages; zero takes what the module declares.
    pub memory: u64,
    /// Largest request in bytes.
    pub input: usize,
    /// Largest response in bytes.
    pub output: usize,
    /// How much of stderr is kept, in bytes.
    pub errors: usize,
    /// Whether an invocation finds what the one before it left.
    pub state: State,
    /// Which compilers.
    pub tiers: Tiers,
    /// What becomes of imports of files and sockets.
    pub absent: Absent,
    /// Arguments; the first is the program's name.
    pub arguments: Vec<String>,
    /// Environment, as `NAME=value`.
    pub environment: Vec<String>,
    /// Seed of `random_get`; invocations get distinct sequences from it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            entry: "_start".to_owned(),
            memory: 0,
            input: 64 << 10,
            output: 64 << 10,
            errors: 4 << 10,
            state: State::Fresh,
            tiers: Tiers::Both,
            absent: Absent::Refuse,
            arguments: vec!["function".to_owned()],
            environment: Vec::new(),
            seed: 0,
        }
    }
}

/// Whether an invocation finds what the one before it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Each invocation begins as the module was deployed.
    Fresh,
    /// Memory and globals live on; a trap or an overrun sets them back.
    Kept,
}

/// Which compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiers {
    /// The baseline compiler at once, the optimising one in the background.
    Both,
    /// The optimising compiler, before `compile` returns.
    Optimised,
    /// The baseline compiler alone.
    Baseline,
}

/// What becomes of imports that WASI knows and a host of functions does not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The module is refused.
    Refuse,
    /// They are there and answer that nothing is permitted (`ENOTCAPABLE`).
    Deny,
}
