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
    let mut parameters = [0; 9];
    for (parameter, value) in parameters.iter_mut().zip(given) {
        *parameter = match value {
            Val::I32(value) => u64::from(value.cast_unsigned()),
            Val::I64(value) => value.cast_unsigned(),
            _ => 0,
        };
    }
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let answer = match memory {
        Some(memory) => {
            let (bytes, system) = memory.data_and_store_mut(&mut caller);
            system.call(name, &parameters, bytes)
        }
        None => caller.data_mut().call(name, &parameters, &mut []),
    };
    match answer {
        Answer::Exit(status) => Err(wasmi::Error::host(Exit(status))),
        Answer::Number(number) => {
            for result in results {
                *result = Val::I32(number.cast_signed());
            }
            Ok(())
        }
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
        let status = match start.call(&mut store, ()) {
            Ok(()) => 0,
            Err(error) => match error.downcast_ref::<Exit>() {
                Some(Exit(status)) => *status,
                None => return Err(stopped(error)),
            },
        };
        let System {
            output, complaints, ..
        } = store.into_data();
        Ok(Ended {
            status,
            output,
            complaints,
        })
    }
}
