//! wasmi.
//!
//! *Invariant:* the module is translated to the interpreter's code when it is loaded, all of it.

use wasmi::errors::HostError;
use wasmi::{Caller, CompilationMode, Config, Engine, Extern, Linker, Module, Store, Val};

use super::{Ended, EngineError, Loaded, Mode};
use crate::wasi::{Answer, System};

/// The guest asked to end.
#[derive(Debug)]
struct Exit(i32);

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program has ended with status {}", self.0)
    }
}

impl HostError for Exit {}

pub(super) fn load(bytes: &[u8]) -> Result<Box<dyn Loaded>, EngineError> {
    let mut config = Config::default();
    config.compilation_mode(CompilationMode::Eager);
    let engine = Engine::new(&config);
    let refused = |error| EngineError::refused(Mode::Interpreter, error);
    let module = Module::new(&engine, bytes).map_err(refused)?;
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let Some(function) = import.ty().func().cloned() else {
            continue;
        };
        let name = import.name().to_owned();
        linker
            .func_new(
                import.module(),
                import.name(),
                function,
                move |caller, given, results| call(caller, &name, given, results),
            )
            .map_err(|error| EngineError::refused(Mode::Interpreter, error))?;
    }
    Ok(Box::new(Interpreted {
        engine,
        module,
        linker,
    }))
}

fn call(
    mut caller: Caller<'_, System>,
    name: &str,
    given: &[Val],
    results: &mut [Val],
) -> Result<(), wasmi::Error> {
    match answered!(caller, name, given, results) {
        Some(status) => Err(wasmi::Error::host(Exit(status))),
        None => Ok(()),
    }
}

struct Interpreted {
    engine: Engine,
    module: Module,
    linker: Linker<System>,
}

impl Loaded for Interpreted {
    fn run(&self, arguments: &[String]) -> Result<Ended, EngineError> {
        let mut store = Store::new(&self.engine, System::new(arguments));
        let stopped = |error: wasmi::Error| EngineError::Stopped(error.to_string());
        let instance = self
            .linker
            .instantiate_and_start(&mut store, &self.module)
            .map_err(stopped)?;
        let start = instance
            .get_typed_func::<(), ()>(&store, "_start")
            .map_err(stopped)?;
        let called = start.call(&mut store, ());
        over!(called, store, stopped)
    }
}
