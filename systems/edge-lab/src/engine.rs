//! Engines in this process: wasmtime in its modes, and wasmi.
//!
//! *Invariant:* every engine gives a module the same system (`wasi`), so that what differs between two of them is the
//! engine.

mod interpreted;
mod translated;

use std::fmt;

/// The variable, and its value, by which a process is asked to compile on one thread.
pub(crate) const ONE_THREAD: (&str, &str) = ("RAYON_NUM_THREADS", "1");

/// An engine, and how it makes code of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// wasmtime with its optimising compiler.
    Cranelift,
    /// wasmtime with its compiler of one pass.
    Winch,
    /// wasmtime with what its optimising compiler made before.
    Ahead,
    /// wasmi, an interpreter.
    Interpreter,
}

impl Mode {
    /// All.
    pub const ALL: [Mode; 4] = [Mode::Cranelift, Mode::Winch, Mode::Ahead, Mode::Interpreter];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Cranelift => "cranelift",
            Mode::Winch => "winch",
            Mode::Ahead => "ahead",
            Mode::Interpreter => "interpreter",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its status.
    pub status: i32,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// What it wrote to standard error.
    pub complaints: Vec<u8>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine does not take the module.
    #[error("{mode} does not take the module: {why}")]
    Refused {
        /// Which engine.
        mode: &'static str,
        /// What it says.
        why: String,
    },
    /// The module was stopped.
    #[error("the module was stopped: {0}")]
    Stopped(String),
}

impl EngineError {
    fn refused(mode: Mode, why: impl fmt::Display) -> EngineError {
        let why = format!("{why:#}");
        EngineError::Refused {
            mode: mode.name(),
            why,
        }
    }
}

/// A module that an engine has taken.
pub trait Loaded {
    /// Makes an instance, runs its `_start`, and drops it.
    ///
    /// # Errors
    /// When there is no instance, or it traps.
    fn run(&self, arguments: &[String]) -> Result<Ended, EngineError>;
}

/// Has an engine take a module: its bytes, or with [`Mode::Ahead`] what [`compiled`] made of them.
///
/// # Safety
/// With [`Mode::Ahead`], `bytes` must come unchanged from [`compiled`].
///
/// # Errors
/// When the engine does not take it.
pub unsafe fn load(mode: Mode, bytes: &[u8]) -> Result<Box<dyn Loaded>, EngineError> {
    match mode {
        Mode::Interpreter => interpreted::load(bytes),
        // SAFETY: what the caller promises.
        _ => unsafe { translated::load(mode, bytes) },
    }
}

/// What [`Mode::Ahead`] takes: the code of a module.
///
/// # Errors
/// When the engine does not take it.
pub fn compiled(bytes: &[u8]) -> Result<Vec<u8>, EngineError> {
    translated::compiled(bytes)
}
