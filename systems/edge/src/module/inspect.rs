//! What a module is, read once: entry, imports, memory, data, globals, and what its code can change.
//!
//! *Invariant:* everything that an instance can change is named here. A module whose features are
//! [`FEATURES`] has no other mutable state than its memory, its mutable globals, its tables and the
//! dropping of segments; so what is set back is all there is.

use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, ExternalKind, FunctionBody,
    Operator, Parser, Payload, TypeRef, ValType, Validator, WasmFeatures,
};

use crate::error::DeployError;
use crate::limits::{Limits, PAGE};

/// What a module may use: the second edition of WebAssembly.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::WASM2.difference(WasmFeatures::GC_TYPES);
/// Tables, and elements of all of them.
const TABLES: usize = 4;
const ELEMENTS: u64 = 65536;

/// An import.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) module: String,
    pub(crate) name: String,
    /// Type of the function, as parameters and results; `None` is no function.
    pub(crate) function: Option<(Vec<ValType>, Vec<ValType>)>,
}

/// What is known of a module.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) imports: Vec<Import>,
    /// Types, as parameters and results.
    types: Vec<(Vec<ValType>, Vec<ValType>)>,
    /// Type of each function, imported ones first.
    functions: Vec<u32>,
    /// Names of exported functions, and their index.
    exported: Vec<(String, u32)>,
    /// All names of exports.
    pub(crate) names: Vec<String>,
    /// Pages that the module declares, and at most.
    pub(crate) memory: Option<(u64, Option<u64>)>,
    /// Index of each mutable global.
    pub(crate) mutable: Vec<u32>,
    pub(crate) globals: u32,
    pub(crate) tables: Vec<u64>,
    /// Active data, by place and content.
    pub(crate) data: Vec<(u64, Vec<u8>)>,
    pub(crate) start: bool,
    /// Whether its code asks for more memory, or how much there is.
    pub(crate) grows: bool,
    /// Whether its code changes a table or drops a segment.
    pub(crate) changes_tables: bool,
    /// Whether its code names data segments.
    pub(crate) names_data: bool,
}

impl Facts {
    /// Verifies and reads. Linear in the module.
    pub(crate) fn of(wasm: &[u8]) -> Result<Facts, DeployError> {
        Validator::new_with_features(FEATURES)
            .validate_all(wasm)
            .map_err(invalid)?;
        let mut facts = Facts::default();
        let mut elements: Vec<(u32, u64, u64)> = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.map_err(invalid)? {
                Payload::TypeSection(section) => {
                    for group in section {
                        for ty in group.map_err(invalid)?.into_types() {
                            let CompositeInnerType::Func(function) = ty.composite_type.inner else {
                                return Err(unsupported("a type that is no function's"));
                            };
                            facts
                                .types
                                .push((function.params().to_vec(), function.results().to_vec()));
                        }
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        facts.import(&import.map_err(invalid)?)?;
                    }
                }
                Payload::FunctionSection(section) => {
                    for ty in section {
                        facts.functions.push(ty.map_err(invalid)?);
                    }
                }
                Payload::TableSection(section) => {
                    for table in section {
                        facts.tables.push(table.map_err(invalid)?.ty.initial);
                    }
                }
                Payload::MemorySection(section) => {
                    for memory in section {
                        let memory = memory.map_err(invalid)?;
                        facts.memory = Some((memory.initial, memory.maximum));
                    }
                }
                Payload::GlobalSection(section) => {
                    for global in section {
                        let global = global.map_err(invalid)?;
                        if global.ty.mutable {
                            if matches!(global.ty.content_type, ValType::Ref(_)) {
                                return Err(unsupported("a mutable global that holds a reference"));
                            }
                            facts.mutable.push(facts.globals);
                        }
                        facts.globals += 1;
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export.map_err(invalid)?;
                        facts.names.push(export.name.to_owned());
                        if export.kind == ExternalKind::FuncExact {
                            return Err(unsupported("an exact function"));
                        }
                        if export.kind == ExternalKind::Func {
                            facts.exported.push((export.name.to_owned(), export.index));
                        }
                    }
                }
                Payload::StartSection { .. } => facts.start = true,
                Payload::ElementSection(section) => {
                    for element in section {
                        let element = element.map_err(invalid)?;
                        let count = match &element.items {
                            ElementItems::Functions(items) => items.count(),
                            ElementItems::Expressions(_, items) => items.count(),
                        };
                        if let ElementKind::Active {
                            table_index,
                            offset_expr,
                        } = element.kind
                        {
                            let at = constant(&offset_expr)?;
                            elements.push((
                                table_index.unwrap_or(0),
                                u64::from(at),
                                u64::from(count),
                            ));
                        }
                    }
                }
                Payload::DataSection(section) => {
                    for data in section {
                        let data = data.map_err(invalid)?;
                        if let DataKind::Active { offset_expr, .. } = data.kind {
                            facts
                                .data
                                .push((u64::from(constant(&offset_expr)?), data.data.to_vec()));
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => facts.code(&body)?,
                _ => {}
            }
        }
        facts.check_tables(&elements)?;
        Ok(facts)
    }

    fn import(&mut self, import: &wasmparser::Import<'_>) -> Result<(), DeployError> {
        let function = match import.ty {
            TypeRef::FuncExact(_) => return Err(unsupported("an exact function")),
            TypeRef::Func(ty) => {
                self.functions.push(ty);
                self.types.get(ty as usize).cloned()
            }
            _ => None,
        };
        self.imports.push(Import {
            module: import.module.to_owned(),
            name: import.name.to_owned(),
            function,
        });
        Ok(())
    }

    fn code(&mut self, body: &FunctionBody<'_>) -> Result<(), DeployError> {
        for operator in body.get_operators_reader().map_err(invalid)? {
            match operator.map_err(invalid)? {
                Operator::MemoryGrow { .. } | Operator::MemorySize { .. } => self.grows = true,
                Operator::MemoryInit { .. } => self.names_data = true,
                Operator::DataDrop { .. } => {
                    self.names_data = true;
                    self.changes_tables = true;
                }
                Operator::TableSet { .. }
                | Operator::TableGrow { .. }
                | Operator::TableFill { .. }
                | Operator::TableCopy { .. }
                | Operator::TableInit { .. }
                | Operator::ElemDrop { .. } => self.changes_tables = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn check_tables(&self, elements: &[(u32, u64, u64)]) -> Result<(), DeployError> {
        let all = self
            .tables
            .iter()
            .fold(0u64, |sum, size| sum.saturating_add(*size));
        if self.tables.len() > TABLES || all > ELEMENTS {
            return Err(DeployError::Tables {
                tables: self.tables.len(),
                elements: all,
                max_tables: TABLES,
                max_elements: ELEMENTS,
            });
        }
        for (table, at, count) in elements {
            if at + count > self.tables.get(*table as usize).copied().unwrap_or(0) {
                return Err(unsupported(
                    "an element segment that does not fit into its table",
                ));
            }
        }
        Ok(())
    }

    /// Whether a function of that name is exported.
    pub(crate) fn exports(&self, name: &str) -> bool {
        self.exported.iter().any(|(known, _)| known == name)
    }

    /// Whether the entry gives a status; an error if there is none, or it has another type.
    pub(crate) fn entry(&self, entry: &str) -> Result<bool, DeployError> {
        let Some((_, index)) = self.exported.iter().find(|(known, _)| known == entry) else {
            let exported = self
                .exported
                .iter()
                .take(8)
                .map(|(name, _)| name.clone())
                .collect();
            return Err(DeployError::MissingEntry {
                entry: entry.to_owned(),
                exported,
            });
        };
        let wrong = |found: String| DeployError::EntryType {
            entry: entry.to_owned(),
            found,
        };
        let ty = self
            .functions
            .get(*index as usize)
            .and_then(|ty| self.types.get(*ty as usize));
        match ty {
            Some((parameters, results)) if parameters.is_empty() => match results.as_slice() {
                [] => Ok(false),
                [ValType::I32] => Ok(true),
                _ => Err(wrong(format!("() -> {results:?}"))),
            },
            Some((parameters, results)) => Err(wrong(format!("{parameters:?} -> {results:?}"))),
            None => Err(wrong("nothing known".to_owned())),
        }
    }

    /// Pages of the instance's memory: what the function may have, or what the module declares.
    pub(crate) fn pages(&self, limits: &Limits, slot: u64) -> Result<u64, DeployError> {
        if limits.memory > slot {
            return Err(DeployError::Slot {
                asked: limits.memory,
                slot,
            });
        }
        let Some((initial, maximum)) = self.memory else {
            return Ok(0);
        };
        let needed = initial.saturating_mul(PAGE);
        let limit = if limits.memory == 0 {
            slot
        } else {
            limits.memory
        };
        if needed > limit {
            return Err(DeployError::Memory { needed, limit });
        }
        if limits.memory == 0 || !self.grows {
            return Ok(initial);
        }
        Ok((limits.memory / PAGE).min(maximum.unwrap_or(u64::MAX)))
    }
}

/// A byte offset in the error, and the verifier's sentence.
pub(crate) fn invalid(error: wasmparser::BinaryReaderError) -> DeployError {
    DeployError::Invalid {
        offset: error.offset(),
        // Some messages have several lines; an error has one.
        cause: error
            .message()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    }
}

fn unsupported(what: &str) -> DeployError {
    DeployError::Unsupported {
        what: what.to_owned(),
        remedy: "build it for wasm32-wasip1",
    }
}

/// The value of an offset, which can only be a number: there is no imported global.
fn constant(expression: &ConstExpr<'_>) -> Result<u32, DeployError> {
    match expression.get_operators_reader().read().map_err(invalid)? {
        Operator::I32Const { value } => Ok(value.cast_unsigned()),
        _ => Err(unsupported("an offset that is no constant")),
    }
}
