//! wasmtime.
//!
//! *Invariant:* nothing is cached: a module is compiled as often as it is loaded, unless code is given.

use wasmtime::{Caller, Config, Engine, Extern, InstancePre, Linker, Module, Store, Strategy, Val};

use super::{Ended, EngineError, Loaded, Mode};
use crate::wasi::{Answer, System};

/// The guest asked to end; no error, but the only way out of it.
#[derive(Debug, thiserror::Error)]
#[error("the program has ended with status {0}")]
struct Exit(i32);

fn engine(mode: Mode) -> Result<Engine, EngineError> {
    let mut config = Config::new();
    config.strategy(match mode {
        Mode::Winch => Strategy::Winch,
        _ => Strategy::Cranelift,
    });
    config.parallel_compilation(!compiles_alone());
    Engine::new(&config).map_err(|error| EngineError::refused(mode, error))
}

/// Whether the usual variable asks for one thread: threads that compile wait for each other by system calls, more of them
/// or fewer each time.
fn compiles_alone() -> bool {
    std::env::var_os(super::ONE_THREAD.0).is_some_and(|threads| threads == super::ONE_THREAD.1)
}

pub(super) fn compiled(bytes: &[u8]) -> Result<Vec<u8>, EngineError> {
    let engine = engine(Mode::Ahead)?;
    engine
        .precompile_module(bytes)
        .map_err(|error| EngineError::refused(Mode::Ahead, error))
}

/// # Safety
/// As [`super::load`].
pub(super) unsafe fn load(mode: Mode, bytes: &[u8]) -> Result<Box<dyn Loaded>, EngineError> {
    let engine = engine(mode)?;
    let refused = |error| EngineError::refused(mode, error);
    let module = match mode {
        // SAFETY: it is what `compiled` made, as the caller promises.
        Mode::Ahead => unsafe { Module::deserialize(&engine, bytes) },
        _ => Module::new(&engine, bytes),
    }
    .map_err(refused)?;
    let linker = linker(&engine, &module).map_err(refused)?;
    let instance = linker.instantiate_pre(&module).map_err(refused)?;
    Ok(Box::new(Translated { engine, instance }))
}

/// A linker of what the module asks for, and no more.
fn linker(engine: &Engine, module: &Module) -> wasmtime::Result<Linker<System>> {
    let mut linker = Linker::new(engine);
    for import in module.imports() {
        let Some(function) = import.ty().func().cloned() else {
            continue;
        };
        let name = import.name().to_owned();
        linker.func_new(
            import.module(),
            import.name(),
            function,
            move |caller, given, results| call(caller, &name, given, results),
        )?;
    }
    Ok(linker)
}

fn call(
    mut caller: Caller<'_, System>,
    name: &str,
    given: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    match answered!(caller, name, given, results) {
        Some(status) => Err(Exit(status).into()),
        None => Ok(()),
    }
}

struct Translated {
    engine: Engine,
    instance: InstancePre<System>,
}

impl Loaded for Translated {
    fn run(&self, arguments: &[String]) -> Result<Ended, EngineError> {
        let mut store = Store::new(&self.engine, System::new(arguments));
        let stopped = |error: wasmtime::Error| EngineError::Stopped(format!("{error:#}"));
        let instance = self.instance.instantiate(&mut store).map_err(stopped)?;
        let start = instance
            .get_typed_func::<(), ()>(&mut store, "_start")
            .map_err(stopped)?;
        let called = start.call(&mut store, ());
        over!(called, store, stopped)
    }
}
