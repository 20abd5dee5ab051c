//! Why a module is not deployed, a slot not had, or an engine not started.
//!
//! *Invariant:* each message is one line that names the cause and what to change; no input reaches a panic.

/// Why a module cannot be deployed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// It is not a WebAssembly module, or does not verify under the features that are offered.
    #[error(
        "the module does not verify at byte {offset}: {cause}; build it for wasm32-wasip1, without threads, \
         memory64, several memories, tail calls, exceptions and relaxed SIMD"
    )]
    Invalid {
        /// Where in the file.
        offset: usize,
        /// What the verifier says.
        cause: String,
    },
    /// It is larger than the host takes.
    #[error(
        "the module has {bytes} bytes, the host takes {limit}; strip it, or raise `module_bytes`"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The host's limit.
        limit: usize,
    },
    /// What should be called is not exported.
    #[error("the module exports no function {entry:?} (it has {}); name one of them as `entry`, or export it", list(.exported))]
    MissingEntry {
        /// What was asked for.
        entry: String,
        /// The functions that it exports.
        exported: Vec<String>,
    },
    /// What should be called takes or gives something else.
    #[error(
        "{entry:?} has the type {found}; an entry takes nothing and gives nothing or one i32: read the request from stdin"
    )]
    EntryType {
        /// The entry.
        entry: String,
        /// Its type.
        found: String,
    },
    /// An import that the host has not.
    #[error("the import {module}.{name} is not offered ({remedy})")]
    Import {
        /// Module of the import.
        module: String,
        /// Name of the import.
        name: String,
        /// What to do.
        remedy: &'static str,
    },
    /// An import of an offered name with another type.
    #[error(
        "the import {module}.{name} has another type than WASI preview 1 gives it; build against wasm32-wasip1"
    )]
    ImportType {
        /// Module of the import.
        module: String,
        /// Name of the import.
        name: String,
    },
    /// A start function would run before any budget is known.
    #[error(
        "the module has a start function, which would run outside any budget; export it as `_initialize` or `_start` instead"
    )]
    StartFunction,
    /// The function may have less memory than the module declares.
    #[error(
        "the module declares {needed} bytes of memory, the function may have {limit}; raise `memory`, or shrink its stack (-zstack-size) and data"
    )]
    Memory {
        /// What it declares.
        needed: u64,
        /// What it may have.
        limit: u64,
    },
    /// The function asks for more than a slot.
    #[error(
        "the function asks for {asked} bytes of memory, a slot has {slot}; lower `memory`, or start the host with larger slots"
    )]
    Slot {
        /// What it asks for.
        asked: u64,
        /// The host's slots.
        slot: u64,
    },
    /// A data segment lies outside the memory.
    #[error("data segment {index} ends at byte {end}, the memory at {memory}; raise `memory`")]
    Data {
        /// Which segment.
        index: u32,
        /// Where it ends.
        end: u64,
        /// Where the memory ends.
        memory: u64,
    },
    /// More tables, or larger ones, than the host takes.
    #[error(
        "the module has {tables} tables of {elements} elements in all; the host takes {max_tables} of {max_elements}: use fewer indirect functions"
    )]
    Tables {
        /// How many.
        tables: usize,
        /// How many elements they have together.
        elements: u64,
        /// The limit on tables.
        max_tables: usize,
        /// The limit on elements.
        max_elements: u64,
    },
    /// Something that verifies, but that the host has no use for.
    #[error("the module uses {what}, which is not offered; {remedy}")]
    Unsupported {
        /// What.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A compiler refused it.
    #[error("the {tier} compiler refused the module: {cause}; choose another tier")]
    Compile {
        /// Which.
        tier: &'static str,
        /// What it says.
        cause: String,
    },
    /// The initialisation of the module did not end well.
    #[error(
        "`_initialize` did not end well: {cause}; it runs once, at deployment, without a request"
    )]
    Initialise {
        /// What happened.
        cause: String,
    },
    /// No slot could be had.
    #[error(transparent)]
    NoSlot(#[from] SlotError),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Why a slot cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// The pool is used up.
    #[error(
        "the pool has {free} bytes left of {total}, a slot of {asked} is asked for; remove a function, or start the host with more slots"
    )]
    Exhausted {
        /// What is asked for.
        asked: u64,
        /// What is left.
        free: u64,
        /// What there is.
        total: u64,
    },
    /// Not a whole number of WebAssembly pages, or more than 4 GiB.
    #[error(
        "a slot of {asked} bytes is no whole number of pages of 64 KiB up to 4 GiB; round `memory`"
    )]
    Size {
        /// What is asked for.
        asked: u64,
    },
    /// The system gave none.
    #[error(
        "the system gave no memory for a slot of {asked} bytes: {cause}; lower the number of slots"
    )]
    System {
        /// What is asked for.
        asked: u64,
        /// What it says.
        cause: String,
    },
    /// The system does not let it be locked.
    #[error(
        "a slot of {asked} bytes cannot be locked into memory: {cause}; raise `ulimit -l`, or start the host without locking"
    )]
    Lock {
        /// What is asked for.
        asked: u64,
        /// What it says.
        cause: String,
    },
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The compilers refuse this machine or these options.
    #[error("the compilers do not start: {0}; run on x86-64 or AArch64 Linux")]
    Compiler(String),
    /// An option makes no sense.
    #[error("the option {option} is {value}: {remedy}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it is.
        value: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The directory of artefacts cannot be used.
    #[error(
        "the directory of artefacts {path}: {cause}; give one that only you may read and write (mode 0700)"
    )]
    Artefacts {
        /// Which.
        path: String,
        /// Why.
        cause: String,
    },
    /// A thread could not be started.
    #[error("the thread {name} does not start: {cause}; raise the limit on threads")]
    Thread {
        /// Which.
        name: &'static str,
        /// Why.
        cause: String,
    },
}
