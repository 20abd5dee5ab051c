//! A module with another allocator, or with one that reports: rewritten from its bytes.
//!
//! Who calls an allocator's function calls one of ours instead: a wrapper that tells the host of the request, a
//! function of another heap, or both. The new heap is a module of its own, linked to begin behind the memory that the
//! program has from the start; its functions, globals and data are appended to the program's, and the memory is made
//! larger by what it takes. Code that only the old allocator had stays, and is not called.
//!
//! Invariant: everything but the allocator's functions, the size of the memory and the numbers of functions is as it
//! was; the old allocator's functions are reached through their own old bodies only.

use std::collections::{BTreeMap, HashMap};

use wasm_encoder::{
    DataCountSection, Encode as _, MemorySection, MemoryType, Module, NameMap, NameSection,
    RawSection, SectionId,
};
use wasmparser::{Encoding, ExternalKind, KnownCustom, Parser, Payload, SectionLimited, TableInit};

use crate::outline::{Outline, Request, SpliceError, function_names};
use crate::renumber::Numbers;
use crate::report::{OF_HEAP, Report};

/// Bytes of a page of linear memory.
pub const PAGE: u64 = 1 << 16;

/// Another heap: a module that imports its memory, without tables, linked to lie at [`Outline::pages`]. Its start
/// function is left out: it would clear memory that is new.
#[derive(Clone, Copy, Debug)]
pub struct Heap<'h> {
    /// The module, which exports the functions of [`Request`].
    pub wasm: &'h [u8],
    /// Pages that it takes.
    pub pages: u64,
}

/// How a module is rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change<'h> {
    /// The heap that serves instead of the module's own allocator.
    pub heap: Option<Heap<'h>>,
    /// Requests are told to the host, and what the heap says of itself is exported.
    pub report: bool,
    /// The memory may not grow.
    pub fixed: bool,
}

/// A section that is a list: how many, and their bytes.
#[derive(Default)]
pub(crate) struct Listed {
    count: u32,
    bytes: Vec<u8>,
}

impl Listed {
    /// All of a section, as it is.
    fn copy<T>(&mut self, wasm: &[u8], section: &SectionLimited<'_, T>) {
        let start = section.original_position();
        self.count += section.count();
        self.bytes
            .extend_from_slice(&wasm[start..section.range().end]);
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.count += 1;
        self.bytes.extend_from_slice(bytes);
    }

    fn write(&self, module: &mut Module, id: SectionId) {
        if self.count == 0 {
            return;
        }
        let mut data = Vec::new();
        self.count.encode(&mut data);
        data.extend_from_slice(&self.bytes);
        module.section(&RawSection {
            id: id as u8,
            data: &data,
        });
    }
}

/// The sections of the new module.
#[derive(Default)]
pub(crate) struct Sections {
    pub(crate) types: Listed,
    pub(crate) imports: Listed,
    pub(crate) functions: Listed,
    tables: Listed,
    memory: Option<MemoryType>,
    tags: Listed,
    pub(crate) globals: Listed,
    exports: Listed,
    start: Option<u32>,
    elements: Listed,
    counts_data: bool,
    code: Listed,
    data: Listed,
    names: BTreeMap<u32, String>,
    others: Vec<(String, Vec<u8>)>,
}

impl Sections {
    /// Takes a module in. Of a heap no memory and no exports.
    fn take(&mut self, wasm: &[u8], numbers: &Numbers, program: bool) -> Result<(), SpliceError> {
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::Version { encoding, .. } if encoding != Encoding::Module => {
                    return Err(SpliceError::Unreadable("it is a component".to_owned()));
                }
                Payload::TypeSection(section) => self.types.copy(wasm, &section),
                Payload::ImportSection(section) if program => self.imports.copy(wasm, &section),
                Payload::FunctionSection(section) => {
                    for ty in section {
                        let mut bytes = Vec::new();
                        (ty? + numbers.types).encode(&mut bytes);
                        self.functions.push(&bytes);
                    }
                }
                Payload::TableSection(section) if program => {
                    for table in section.clone() {
                        if let TableInit::Expr(_) = table?.init {
                            let what = "a table of it has a first value";
                            return Err(SpliceError::Unreadable(what.to_owned()));
                        }
                    }
                    self.tables.copy(wasm, &section);
                }
                Payload::MemorySection(section) if program => {
                    for memory in section {
                        let memory = memory?;
                        self.memory = Some(MemoryType {
                            minimum: memory.initial,
                            maximum: memory.maximum,
                            memory64: false,
                            shared: false,
                            page_size_log2: None,
                        });
                    }
                }
                Payload::TagSection(section) if program => self.tags.copy(wasm, &section),
                Payload::GlobalSection(section) => {
                    for global in section.into_iter_with_offsets() {
                        let (start, global) = global?;
                        let value = global.init_expr.get_binary_reader().original_position();
                        let mut bytes = wasm[start..value].to_vec();
                        numbers.constant(wasm, &global.init_expr, &mut bytes)?;
                        self.globals.push(&bytes);
                    }
                }
                Payload::ExportSection(section) if program => {
                    for export in section {
                        self.export(&export?, numbers)?;
                    }
                }
                Payload::StartSection { func, .. } if program => {
                    self.start = Some(numbers.function(func));
                }
                Payload::ElementSection(section) if program => {
                    for element in section.into_iter_with_offsets() {
                        let (start, element) = element?;
                        let mut bytes = Vec::new();
                        numbers.element(wasm, start, &element.items, &mut bytes)?;
                        self.elements.push(&bytes);
                    }
                }
                Payload::ElementSection(section) if section.count() > 0 => {
                    let what = "the heap calls through a table";
                    return Err(SpliceError::Unreadable(what.to_owned()));
                }
                Payload::DataCountSection { .. } => self.counts_data = true,
                Payload::CodeSectionEntry(body) => {
                    let body = numbers.body(wasm, &body)?;
                    self.add_body(&body);
                }
                Payload::DataSection(section) => self.data.copy(wasm, &section),
                Payload::CustomSection(section) => match section.as_known() {
                    KnownCustom::Name(names) => {
                        for (name, number) in function_names(names) {
                            self.names.insert(numbers.place(number), name);
                        }
                    }
                    // What else is said of the heap is not true of the whole; offsets into code are no more.
                    _ if program && !section.name().starts_with(".debug") => {
                        let (name, data) = (section.name(), section.data());
                        self.others.push((name.to_owned(), data.to_vec()));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn export(
        &mut self,
        export: &wasmparser::Export<'_>,
        numbers: &Numbers,
    ) -> Result<(), SpliceError> {
        let (kind, number) = match export.kind {
            ExternalKind::Func => (0, numbers.function(export.index)),
            ExternalKind::Table => (1, export.index),
            ExternalKind::Memory => (2, export.index),
            ExternalKind::Global => (3, export.index),
            ExternalKind::Tag => (4, export.index),
            ExternalKind::FuncExact => {
                let what = format!(
                    "its export `{}` is of a kind that is not known",
                    export.name
                );
                return Err(SpliceError::Unreadable(what));
            }
        };
        let mut bytes = name_bytes(export.name);
        bytes.push(kind);
        number.encode(&mut bytes);
        self.exports.push(&bytes);
        Ok(())
    }

    pub(crate) fn add_body(&mut self, body: &[u8]) {
        let mut bytes = Vec::new();
        (body.len() as u32).encode(&mut bytes);
        bytes.extend_from_slice(body);
        self.code.push(&bytes);
    }

    fn finish(self) -> Vec<u8> {
        let mut module = Module::new();
        self.types.write(&mut module, SectionId::Type);
        self.imports.write(&mut module, SectionId::Import);
        self.functions.write(&mut module, SectionId::Function);
        self.tables.write(&mut module, SectionId::Table);
        if let Some(memory) = self.memory {
            module.section(MemorySection::new().memory(memory));
        }
        self.tags.write(&mut module, SectionId::Tag);
        self.globals.write(&mut module, SectionId::Global);
        self.exports.write(&mut module, SectionId::Export);
        if let Some(function_index) = self.start {
            module.section(&wasm_encoder::StartSection { function_index });
        }
        self.elements.write(&mut module, SectionId::Element);
        if self.counts_data {
            module.section(&DataCountSection {
                count: self.data.count,
            });
        }
        self.code.write(&mut module, SectionId::Code);
        self.data.write(&mut module, SectionId::Data);
        for (name, data) in &self.others {
            module.section(&wasm_encoder::CustomSection {
                name: name.into(),
                data: data.into(),
            });
        }
        let mut functions = NameMap::new();
        for (&number, name) in &self.names {
            functions.append(number, name);
        }
        let mut names = NameSection::new();
        names.functions(&functions);
        module.section(&names);
        module.finish()
    }
}

/// A name as a module has it.
pub(crate) fn name_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    name.encode(&mut bytes);
    bytes
}

/// A changed module.
///
/// # Errors
/// [`SpliceError`].
pub fn splice(wasm: &[u8], change: &Change<'_>) -> Result<Vec<u8>, SpliceError> {
    let outline = Outline::new(wasm)?;
    let heap = match change.heap {
        Some(heap) => Outline::read(heap.wasm)?.0,
        None => Outline::default(),
    };
    // The program, the heap, the wrappers; before them one more import.
    let added = u32::from(change.report);
    let of_heap = outline.functions + added;
    let first_wrapper = of_heap + heap.functions;
    let mut wrapped = Vec::new();
    let mut redirected = HashMap::new();
    for (&request, &own) in &outline.allocator {
        let served = match (change.heap, heap.exports.get(request.name())) {
            (None, _) => own + added,
            (Some(_), Some(number)) => number + of_heap,
            (Some(_), None) => {
                let what = format!("the heap does not export `{}`", request.name());
                return Err(SpliceError::Unreadable(what));
            }
        };
        if change.report && request != Request::UsableSize {
            redirected.insert(own, first_wrapper + wrapped.len() as u32);
            wrapped.push((request, served));
        } else {
            redirected.insert(own, served);
        }
    }
    let mut sections = Sections::default();
    let numbers = Numbers {
        imported: outline.imported,
        functions: added,
        redirected,
        ..Numbers::default()
    };
    sections.take(wasm, &numbers, true)?;
    if let Some(given) = change.heap {
        let numbers = Numbers {
            functions: of_heap,
            types: outline.types,
            globals: outline.globals,
            data: outline.data,
            ..Numbers::default()
        };
        sections.take(given.wasm, &numbers, false)?;
        if let Some(memory) = &mut sections.memory {
            memory.minimum += given.pages;
            memory.maximum = change.fixed.then_some(memory.minimum);
        }
    }
    if change.report {
        for name in OF_HEAP {
            if let Some(number) = heap.exports.get(name) {
                let mut bytes = name_bytes(name);
                bytes.push(0);
                (number + of_heap).encode(&mut bytes);
                sections.exports.push(&bytes);
            }
        }
        let report = Report {
            types: outline.types + heap.types,
            host: outline.imported,
            depth: outline.globals + heap.globals,
        };
        report.add(&mut sections);
        for (number, &(request, served)) in wrapped.iter().enumerate() {
            report.add_wrapper(&mut sections, request, served);
            let name = format!("metes.{}", request.name());
            sections.names.insert(first_wrapper + number as u32, name);
        }
    }
    Ok(sections.finish())
}
