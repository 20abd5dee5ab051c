//! wasmer with its compilers.
//!
//! *Invariant:* nothing is cached: a module is compiled as often as it is loaded.

use std::num::NonZero;

use wasmer::sys::{CompilerConfig, Cranelift, EngineBuilder, Singlepass};
use wasmer::{
    Engine, Extern, Function, FunctionEnv, FunctionEnvMut, Imports, Instance, Memory, Module,
    RuntimeError, Store, Value,
};

use crate::wasi::{Answer, System};

/// Which compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The optimising one.
    Cranelift,
    /// That of one pass.
    Singlepass,
}

impl Mode {
    /// By its name.
    pub(crate) fn named(name: &str) -> Option<Mode> {
        match name {
            "cranelift" => Some(Mode::Cranelift),
            "singlepass" => Some(Mode::Singlepass),
            _ => None,
        }
    }

    /// An engine; on one thread where the usual variable asks for it.
    fn engine(self) -> Engine {
        let alone = std::env::var_os("RAYON_NUM_THREADS").is_some_and(|threads| threads == "1");
        let one = NonZero::<usize>::MIN;
        let compiler: Box<dyn CompilerConfig> = match self {
            Mode::Cranelift => {
                let mut compiler = Cranelift::default();
                if alone {
                    compiler.num_threads(one);
                }
                Box::new(compiler)
            }
            Mode::Singlepass => {
                let mut compiler = Singlepass::default();
                if alone {
                    compiler.num_threads(one);
                }
                Box::new(compiler)
            }
        };
        EngineBuilder::new(compiler).engine().into()
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its status.
    pub(crate) status: i32,
    /// What it wrote to standard output.
    pub(crate) output: Vec<u8>,
    /// What it wrote to standard error.
    pub(crate) complaints: Vec<u8>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The engine does not take the module.
    #[error("wasmer does not take the module: {0}")]
    Refused(String),
    /// The module was stopped.
    #[error("the module was stopped: {0}")]
    Stopped(String),
    /// Code is not kept.
    #[error(
        "this runner keeps no code: run the module, or make an instance for each of several runs"
    )]
    Kept,
}

/// A module that the engine has taken.
pub(crate) trait Loaded {
    /// Makes an instance, runs its `_start`, and drops it.
    fn run(&self, arguments: &[String]) -> Result<Ended, EngineError>;
}

/// Has an engine take a module.
///
/// # Safety
/// Any bytes will do: it is the other runner that takes code.
pub(crate) unsafe fn load(mode: Mode, bytes: &[u8]) -> Result<Box<dyn Loaded>, EngineError> {
    let engine = mode.engine();
    let refused = |error: wasmer::CompileError| EngineError::Refused(error.to_string());
    let module = Module::new(&engine, bytes).map_err(refused)?;
    Ok(Box::new(Compiled { engine, module }))
}

/// There is no code to keep.
pub(crate) fn compiled(_bytes: &[u8]) -> Result<Vec<u8>, EngineError> {
    Err(EngineError::Kept)
}

struct Compiled {
    engine: Engine,
    module: Module,
}

/// What calls of the system need.
struct Context {
    system: System,
    memory: Option<Memory>,
}

/// The guest asked to end; no error, but the only way out of it.
#[derive(Debug, thiserror::Error)]
#[error("the program has ended with status {0}")]
struct Exit(i32);

fn call(
    mut context: FunctionEnvMut<'_, Context>,
    name: &str,
    given: &[Value],
) -> Result<Vec<Value>, RuntimeError> {
    let parameters: Vec<u64> = given
        .iter()
        .map(|value| match value {
            Value::I32(value) => u64::from(value.cast_unsigned()),
            Value::I64(value) => value.cast_unsigned(),
            _ => 0,
        })
        .collect();
    let (own, store) = context.data_and_store_mut();
    let answer = match &own.memory {
        Some(memory) => {
            let view = memory.view(&store);
            // SAFETY: the instance has one thread, which is in this call: nobody else reads or writes its memory until the
            // system has answered, and it does not grow meanwhile.
            let bytes = unsafe { view.data_unchecked_mut() };
            own.system.call(name, &parameters, bytes)
        }
        None => own.system.call(name, &parameters, &mut []),
    };
    match answer {
        Answer::Number(number) => Ok(vec![Value::I32(number.cast_signed())]),
        Answer::Exit(status) => Err(RuntimeError::user(Box::new(Exit(status)))),
    }
}

impl Loaded for Compiled {
    fn run(&self, arguments: &[String]) -> Result<Ended, EngineError> {
        let mut store = Store::new(self.engine.clone());
        let context = Context {
            system: System::new(arguments),
            memory: None,
        };
        let context = FunctionEnv::new(&mut store, context);
        let mut imports = Imports::new();
        for import in self.module.imports().functions() {
            let (module, name) = (import.module().to_owned(), import.name().to_owned());
            let called = name.clone();
            // A function without results, as `proc_exit`, must have none.
            let results = import.ty().results().len();
            let function =
                Function::new_with_env(&mut store, &context, import.ty(), move |context, given| {
                    let mut answer = call(context, &called, given)?;
                    answer.truncate(results);
                    Ok(answer)
                });
            imports.define(&module, &name, function);
        }
        let stopped = |error: &dyn std::fmt::Display| EngineError::Stopped(error.to_string());
        let instance =
            Instance::new(&mut store, &self.module, &imports).map_err(|error| stopped(&error))?;
        let memory = instance
            .exports
            .iter()
            .find_map(|(name, export)| match export {
                Extern::Memory(memory) if name == "memory" => Some(memory.clone()),
                _ => None,
            });
        context.as_mut(&mut store).memory = memory;
        let start = instance
            .exports
            .get_typed_function::<(), ()>(&store, "_start")
            .map_err(|error| stopped(&error))?;
        let status = match start.call(&mut store) {
            Ok(()) => 0,
            Err(error) => match error.downcast::<Exit>() {
                Ok(Exit(status)) => status,
                Err(error) => return Err(stopped(&error)),
            },
        };
        let system = &mut context.as_mut(&mut store).system;
        Ok(Ended {
            status,
            output: std::mem::take(&mut system.output),
            complaints: std::mem::take(&mut system.complaints),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes its argument's bytes in all to standard output as one byte, and ends with status 7.
    const PROGRAM: &str = r#"(module
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start")
            (drop (call $sizes (i32.const 0) (i32.const 4)))
            (i32.store (i32.const 8) (i32.const 4))
            (i32.store (i32.const 12) (i32.const 1))
            (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16)))
            (call $exit (i32.const 7))))"#;

    #[test]
    fn programs_end_with_their_status_and_their_words() {
        let bytes = wat::parse_str(PROGRAM).expect("text of the test");
        for mode in [Mode::Cranelift, Mode::Singlepass] {
            // SAFETY: any bytes will do.
            let loaded = unsafe { load(mode, &bytes) }.expect("a module");
            for _ in 0..2 {
                let ended = loaded.run(&["abc".to_owned()]).expect("it runs");
                // `kernel` and `abc`, each with its zero.
                assert_eq!((ended.status, ended.output), (7, vec![11]));
            }
        }
    }

    #[test]
    fn traps_and_what_is_no_module_are_errors() {
        // SAFETY: any bytes will do.
        let refused = unsafe { load(Mode::Singlepass, b"\0asm") };
        assert!(matches!(refused.err(), Some(EngineError::Refused(_))));
        let trap = wat::parse_str("(module (func (export \"_start\") unreachable))").expect("text");
        // SAFETY: as above.
        let loaded = unsafe { load(Mode::Cranelift, &trap) }.expect("a module");
        assert!(matches!(loaded.run(&[]), Err(EngineError::Stopped(_))));
    }
}
