//! What of a module matters before it is rewritten: its allocator's functions, by name, and its numbers.
//!
//! Functions are known by what the module's name section or its exports call them: malloc and its like of C, and the
//! functions behind Rust's global allocator, which may or may not call malloc.
//!
//! Invariant: a module that has an outline is a valid one, defines one 32-bit memory, and every function of its
//! allocator has the parameters that its name promises.

use std::collections::BTreeMap;

use wasmparser::{
    CompositeInnerType, Encoding, ExternalKind, KnownCustom, Name, Operator, Parser, Payload,
    TypeRef, ValType, Validator,
};

/// What a program asks of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// `malloc(size)`.
    Malloc,
    /// `calloc(count, size)`.
    Calloc,
    /// `realloc(place, size)`.
    Realloc,
    /// `free(place)`.
    Free,
    /// `aligned_alloc(align, size)`.
    AlignedAlloc,
    /// `posix_memalign(out, align, size)`.
    PosixMemalign,
    /// `malloc_usable_size(place)`: answered, and no request.
    UsableSize,
    /// `__rust_alloc(size, align)`.
    RustAlloc,
    /// `__rust_alloc_zeroed(size, align)`.
    RustAllocZeroed,
    /// `__rust_dealloc(place, size, align)`.
    RustDealloc,
    /// `__rust_realloc(place, old, align, size)`.
    RustRealloc,
}

impl Request {
    /// All of them.
    pub const ALL: [Request; 11] = [
        Request::Malloc,
        Request::Calloc,
        Request::Realloc,
        Request::Free,
        Request::AlignedAlloc,
        Request::PosixMemalign,
        Request::UsableSize,
        Request::RustAlloc,
        Request::RustAllocZeroed,
        Request::RustDealloc,
        Request::RustRealloc,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Request::Malloc => "malloc",
            Request::Calloc => "calloc",
            Request::Realloc => "realloc",
            Request::Free => "free",
            Request::AlignedAlloc => "aligned_alloc",
            Request::PosixMemalign => "posix_memalign",
            Request::UsableSize => "malloc_usable_size",
            Request::RustAlloc => "__rust_alloc",
            Request::RustAllocZeroed => "__rust_alloc_zeroed",
            Request::RustDealloc => "__rust_dealloc",
            Request::RustRealloc => "__rust_realloc",
        }
    }

    /// What a name stands for; Rust's are mangled, with their length before them.
    fn of(name: &str) -> Option<Request> {
        let is = |request: &Request| {
            let own = request.name();
            name == own || request.of_rust() && name.ends_with(&format!("{}_{own}", own.len()))
        };
        Request::ALL.into_iter().find(is)
    }

    /// Of Rust's global allocator, not of C.
    const fn of_rust(self) -> bool {
        self as u8 >= Request::RustAlloc as u8
    }

    /// Words that it is given.
    pub(crate) const fn parameters(self) -> usize {
        match self {
            Request::Malloc | Request::Free | Request::UsableSize => 1,
            Request::Calloc
            | Request::Realloc
            | Request::AlignedAlloc
            | Request::RustAlloc
            | Request::RustAllocZeroed => 2,
            Request::PosixMemalign | Request::RustDealloc => 3,
            Request::RustRealloc => 4,
        }
    }

    /// Whether it gives a word back.
    pub(crate) const fn answers(self) -> bool {
        !matches!(self, Request::Free | Request::RustDealloc)
    }
}

/// Why a module was not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    /// No module, or of a kind that is not understood.
    #[error(
        "the module cannot be read: {0}; give a core module of 32-bit memory that `wasm-validate` accepts"
    )]
    Unreadable(String),
    /// No names, or none of an allocator.
    #[error(
        "no function of the module is called `malloc` or `__rust_alloc`, so its allocator is not found: keep the names \
         (no -s for clang, strip = \"none\" for Rust), or export malloc and free"
    )]
    NoAllocator,
    /// A function of the allocator is not as its name promises.
    #[error(
        "the function `{0}` of the module has other parameters than in C or Rust: give a module of wasi-libc or of \
         Rust's standard library"
    )]
    Mistyped(&'static str),
    /// No memory of its own, or more than one.
    #[error("the module must define one 32-bit memory of its own that no threads share")]
    Memory,
}

impl From<wasmparser::BinaryReaderError> for SpliceError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        SpliceError::Unreadable(error.to_string())
    }
}

/// Parameters and results of a function of words alone.
type Arity = Option<(usize, usize)>;

/// What of a module matters before it is rewritten.
#[derive(Debug, Default)]
pub struct Outline {
    /// The allocator's functions, by their numbers.
    pub allocator: BTreeMap<Request, u32>,
    /// Pages of memory from the start.
    pub pages: u64,
    /// It imports what reads standard input.
    pub reads: bool,
    pub(crate) imported: u32,
    pub(crate) functions: u32,
    pub(crate) types: u32,
    pub(crate) globals: u32,
    pub(crate) data: u32,
    /// Functions that are exported, by name.
    pub(crate) exports: BTreeMap<String, u32>,
    arities: Vec<Arity>,
    type_of: Vec<u32>,
    memories: u32,
    imports_memory: bool,
}

impl Outline {
    /// The outline of a program: a module with an allocator.
    ///
    /// # Errors
    /// [`SpliceError`].
    pub fn new(wasm: &[u8]) -> Result<Outline, SpliceError> {
        let (mut outline, mut named) = Outline::read(wasm)?;
        if outline.memories != 1 || outline.imports_memory {
            return Err(SpliceError::Memory);
        }
        let exports = outline.exports.iter();
        named.extend(exports.map(|(name, number)| (name.clone(), *number)));
        let known = named
            .iter()
            .filter_map(|(name, number)| Some((Request::of(name)?, *number)));
        let known: Vec<(Request, u32)> = known
            .filter(|(_, number)| *number >= outline.imported)
            .collect();
        let has = |request| known.iter().any(|(other, _)| *other == request);
        let of_c = has(Request::Malloc) && has(Request::Free);
        let of_rust = has(Request::RustAlloc) && has(Request::RustDealloc);
        if !of_c && !of_rust {
            return Err(SpliceError::NoAllocator);
        }
        for (request, number) in known {
            if outline.allocator.contains_key(&request) {
                continue;
            }
            if outline.arity(number) != Some((request.parameters(), usize::from(request.answers())))
            {
                return Err(SpliceError::Mistyped(request.name()));
            }
            outline.allocator.insert(request, number);
        }
        Ok(outline)
    }

    /// The outline of any module, and what its functions are called.
    pub(crate) fn read(wasm: &[u8]) -> Result<(Outline, Vec<(String, u32)>), SpliceError> {
        Validator::new().validate_all(wasm)?;
        let mut outline = Outline::default();
        let mut named = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            outline.note(&payload?, &mut named)?;
        }
        outline.types = outline.arities.len() as u32;
        outline.functions = outline.type_of.len() as u32;
        Ok((outline, named))
    }

    fn arity(&self, function: u32) -> Arity {
        let ty = *self.type_of.get(function as usize)?;
        *self.arities.get(ty as usize)?
    }

    fn note(
        &mut self,
        payload: &Payload<'_>,
        named: &mut Vec<(String, u32)>,
    ) -> Result<(), SpliceError> {
        match payload {
            Payload::Version { encoding, .. } if *encoding != Encoding::Module => {
                return Err(SpliceError::Unreadable("it is a component".to_owned()));
            }
            Payload::TypeSection(section) => {
                for group in section.clone() {
                    self.arities
                        .extend(group?.types().map(|ty| match &ty.composite_type.inner {
                            CompositeInnerType::Func(function) => {
                                let mut all = function.params().iter().chain(function.results());
                                let words = all.all(|ty| *ty == ValType::I32);
                                words.then_some((function.params().len(), function.results().len()))
                            }
                            _ => None,
                        }));
                }
            }
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    let import = import?;
                    match import.ty {
                        TypeRef::Func(ty) => {
                            self.reads |= import.name == "fd_read";
                            self.imported += 1;
                            self.type_of.push(ty);
                        }
                        TypeRef::Global(_) => self.globals += 1,
                        TypeRef::Memory(_) => self.imports_memory = true,
                        _ => {}
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section.clone() {
                    self.type_of.push(ty?);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section.clone() {
                    let memory = memory?;
                    let odd = memory.memory64 || memory.shared || memory.page_size_log2.is_some();
                    self.memories += if odd { 2 } else { 1 };
                    self.pages = memory.initial;
                }
            }
            Payload::GlobalSection(section) => self.globals += section.count(),
            Payload::DataSection(section) => self.data = section.count(),
            Payload::ExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        self.exports.insert(export.name.to_owned(), export.index);
                    }
                }
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    named.extend(function_names(names));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What functions are called; names are for people, and what of them cannot be read is left out.
pub(crate) fn function_names(names: wasmparser::NameSectionReader<'_>) -> Vec<(String, u32)> {
    let mut named = Vec::new();
    for subsection in names.into_iter().flatten() {
        if let Name::Function(functions) = subsection {
            let functions = functions.into_iter().flatten();
            named.extend(functions.map(|naming| (naming.name.to_owned(), naming.index)));
        }
    }
    named
}

/// The value of an exported global that is a constant.
pub(crate) fn exported_constant(wasm: &[u8], name: &str) -> Option<u32> {
    let mut globals: Vec<Option<u32>> = Vec::new();
    let mut at = None;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.ok()? {
            Payload::GlobalSection(section) => {
                for global in section {
                    let value = global.ok()?.init_expr.get_operators_reader().read().ok()?;
                    globals.push(match value {
                        Operator::I32Const { value } => Some(value.cast_unsigned()),
                        _ => None,
                    });
                }
            }
            Payload::ExportSection(section) => {
                let mut exports = section.into_iter().flatten();
                let named =
                    exports.find(|one| one.kind == ExternalKind::Global && one.name == name);
                at = named.map(|export| export.index);
            }
            _ => {}
        }
    }
    globals.get(at? as usize).copied().flatten()
}
