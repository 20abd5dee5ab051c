//! Engines in this process: wasmtime in its modes, and wasmi.
//!
//! *Invariant:* every engine gives a module the same system (`wasi`), so that what differs between two of them is the
//! engine.

/// A call of the system by a program, in an engine whose values and callers are named as wasmtime's: the number goes to
/// the results, and the status of a program that ends itself is left.
macro_rules! answered {
    ($caller:expr, $name:expr, $given:expr, $results:expr) => {{
        let mut parameters = [0; 9];
        for (parameter, value) in parameters.iter_mut().zip($given) {
            *parameter = match value {
                Val::I32(value) => u64::from(value.cast_unsigned()),
                Val::I64(value) => value.cast_unsigned(),
                _ => 0,
            };
        }
        let memory = $caller.get_export("memory").and_then(Extern::into_memory);
        let answer = match memory {
            Some(memory) => {
                let (bytes, system) = memory.data_and_store_mut(&mut $caller);
                system.call($name, &parameters, bytes)
            }
            None => $caller.data_mut().call($name, &parameters, &mut []),
        };
        match answer {
            Answer::Exit(status) => Some(status),
            Answer::Number(number) => {
                $results.fill(Val::I32(number.cast_signed()));
                None
            }
        }
    }};
}

/// What a call of `_start` came to, with what the system has kept.
macro_rules! over {
    ($called:expr, $store:expr, $stopped:expr) => {{
        let status = match $called {
            Ok(()) => 0,
            Err(error) => match error.downcast_ref::<Exit>() {
                Some(Exit(status)) => *status,
                None => return Err($stopped(error)),
            },
        };
        let system = $store.into_data();
        Ok(Ended {
            status,
            output: system.output,
            complaints: system.complaints,
        })
    }};
}

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
