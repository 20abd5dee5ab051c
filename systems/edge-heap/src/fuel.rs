//! An allocator inside a module, driven from outside and counted operator by operator.
//!
//! The engine's fuel is one unit for each operator that is executed, one for each call of a function, nothing for
//! those that make no code (`block`, `loop`, `end`, `else`, `return`, `drop`, `nop`, `unreachable`), and one for
//! each byte that a bulk operator copies or fills. So what a call costs is a number that every machine
//! counts alike.
//!
//! Invariant: counts are of the exported function as it is, its own entry included; nothing is subtracted.

use wasmtime::{
    AsContextMut, Config, Engine, Instance, Linker, Memory, Module, Store, TypedFunc, WasmParams,
    WasmResults,
};

/// What an instance may use before it is taken for one that does not end.
const ENOUGH: u64 = u64::MAX >> 2;

/// Why a module cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The engine refuses it, or it traps.
    #[error("the module does not run: {0}")]
    Engine(String),
    /// It exports no allocator.
    #[error(
        "the module exports neither `malloc` and `free` nor `allocate` and `release`: export one of the pairs \
         (clang: -Wl,--export=malloc -Wl,--export=free)"
    )]
    NoAllocator,
}

fn engine_error(error: impl std::fmt::Display) -> GuestError {
    GuestError::Engine(format!("{error:#}"))
}

/// How the allocator is called.
enum Calls {
    /// As C calls it.
    C {
        malloc: TypedFunc<u32, u32>,
        free: TypedFunc<u32, ()>,
        realloc: Option<TypedFunc<(u32, u32), u32>>,
    },
    /// As Rust does, with sizes and alignments.
    Rust {
        allocate: TypedFunc<(u32, u32), u32>,
        release: TypedFunc<(u32, u32, u32), ()>,
        resize: TypedFunc<(u32, u32, u32, u32), u32>,
    },
}

/// A module with an allocator, of which instances are made.
pub struct Allocator {
    engine: Engine,
    module: Module,
}

impl Allocator {
    /// A module that the engine has taken.
    ///
    /// # Errors
    /// [`GuestError::Engine`].
    pub fn new(wasm: &[u8]) -> Result<Allocator, GuestError> {
        let mut config = Config::new();
        config.consume_fuel(true);
        let engine = Engine::new(&config).map_err(engine_error)?;
        let module = Module::new(&engine, wasm).map_err(engine_error)?;
        Ok(Allocator { engine, module })
    }

    /// A new instance, with whatever it imports trapping when it is called.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn guest(&self) -> Result<Guest, GuestError> {
        Guest::of(&self.engine, &self.module)
    }
}

/// An instance of a module whose allocator is called from outside.
pub struct Guest {
    store: Store<()>,
    calls: Calls,
    memory: Memory,
    first_pages: u64,
}

/// Operators that requests took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operators(pub u64);

/// Alignment with which blocks are asked for.
const ALIGN: u32 = 8;

impl Guest {
    /// The only instance of a module.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn new(wasm: &[u8]) -> Result<Guest, GuestError> {
        Allocator::new(wasm)?.guest()
    }

    fn of(engine: &Engine, module: &Module) -> Result<Guest, GuestError> {
        let mut store = Store::new(engine, ());
        store.set_fuel(ENOUGH).map_err(engine_error)?;
        let mut linker = Linker::new(engine);
        linker
            .define_unknown_imports_as_traps(module)
            .map_err(engine_error)?;
        let instance = linker
            .instantiate(&mut store, module)
            .map_err(engine_error)?;
        if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut store, "_initialize") {
            initialize.call(&mut store, ()).map_err(engine_error)?;
        }
        let calls = Self::calls(&instance, &mut store).ok_or(GuestError::NoAllocator)?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or(GuestError::NoAllocator)?;
        let first_pages = memory.size(&store);
        Ok(Guest {
            store,
            calls,
            memory,
            first_pages,
        })
    }

    fn calls(instance: &Instance, store: &mut Store<()>) -> Option<Calls> {
        if let Ok(allocate) = instance.get_typed_func(&mut *store, "allocate") {
            return Some(Calls::Rust {
                allocate,
                release: instance.get_typed_func(&mut *store, "release").ok()?,
                resize: instance.get_typed_func(&mut *store, "resize").ok()?,
            });
        }
        Some(Calls::C {
            malloc: instance.get_typed_func(&mut *store, "malloc").ok()?,
            free: instance.get_typed_func(&mut *store, "free").ok()?,
            realloc: instance.get_typed_func(&mut *store, "realloc").ok(),
        })
    }

    /// Asks for a block; its address, or 0, and what that took.
    ///
    /// # Errors
    /// [`GuestError::Engine`] when the allocator traps.
    pub fn allocate(&mut self, size: u32) -> Result<(u32, Operators), GuestError> {
        match &self.calls {
            Calls::C { malloc, .. } => counted(&mut self.store, malloc, size),
            Calls::Rust { allocate, .. } => {
                counted(&mut self.store, allocate, (size.max(1), ALIGN))
            }
        }
    }

    /// Gives a block of `size` bytes back; what that took.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn free(&mut self, place: u32, size: u32) -> Result<Operators, GuestError> {
        let ((), operators) = match &self.calls {
            Calls::C { free, .. } => counted(&mut self.store, free, place)?,
            Calls::Rust { release, .. } => {
                counted(&mut self.store, release, (place, size.max(1), ALIGN))?
            }
        };
        Ok(operators)
    }

    /// Resizes a block of `old` bytes; its address, or 0, and what that took.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn resize(
        &mut self,
        place: u32,
        old: u32,
        size: u32,
    ) -> Result<(u32, Operators), GuestError> {
        match &self.calls {
            Calls::C { realloc: None, .. } => Err(GuestError::NoAllocator),
            Calls::C {
                realloc: Some(realloc),
                ..
            } => counted(&mut self.store, realloc, (place, size)),
            Calls::Rust { resize, .. } => counted(
                &mut self.store,
                resize,
                (place, old.max(1), ALIGN, size.max(1)),
            ),
        }
    }

    /// Pages by which the module's memory has grown since it was instantiated.
    pub fn grown(&self) -> u64 {
        self.memory.size(&self.store) - self.first_pages
    }

    /// The memory, to look at blocks.
    pub fn memory(&mut self) -> &mut [u8] {
        self.memory.data_mut(&mut self.store)
    }
}

fn counted<P: WasmParams, R: WasmResults>(
    store: &mut Store<()>,
    function: &TypedFunc<P, R>,
    parameters: P,
) -> Result<(R, Operators), GuestError> {
    let before = store.get_fuel().map_err(engine_error)?;
    let result = function
        .call(store.as_context_mut(), parameters)
        .map_err(engine_error)?;
    let after = store.get_fuel().map_err(engine_error)?;
    Ok((result, Operators(before - after)))
}
