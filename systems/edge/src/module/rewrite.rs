//! The module as the host compiles it: memory of a fixed size, no data of its own, and its mutable
//! globals within reach.
//!
//! Active data is taken out: the slot already holds it. An active segment behaves as a dropped one once
//! a module is instantiated, which is what an empty passive segment is. Where the code asks for more
//! memory, a function of ours answers within the slot: the size is a number, the bytes are there from
//! the beginning, and no call of the system is made.
//!
//! *Invariant:* indices of functions, types, globals and segments stay; what is added stands behind.

use std::collections::BTreeMap;

use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, Encode, ExportKind, Function, GlobalType, Instruction,
    MemorySection, MemoryType, Module, RawSection, Section, TableSection, ValType,
};
use wasmparser::{DataKind, Operator, Parser, Payload, SectionLimited};

use super::inspect::{Facts, invalid};
use crate::error::DeployError;

/// Prefix of the names under which mutable globals are exported.
pub(crate) const GLOBAL: &str = "metes.global.";

/// The module without what stands in the slot, and how many globals it exports for us.
pub(crate) fn rewrite(
    wasm: &[u8],
    facts: &Facts,
    pages: u64,
) -> Result<(Vec<u8>, usize), DeployError> {
    if facts.names.iter().any(|name| name.starts_with(GLOBAL)) {
        return Err(DeployError::Unsupported {
            what: format!("an export whose name begins with {GLOBAL:?}"),
            remedy: "give it another name",
        });
    }
    Rewriter {
        wasm,
        facts,
        pages,
        sections: BTreeMap::new(),
        code: Vec::new(),
    }
    .run()
}

struct Rewriter<'a> {
    wasm: &'a [u8],
    facts: &'a Facts,
    pages: u64,
    /// By their place in a module, which is not the order of their numbers.
    sections: BTreeMap<u8, (u8, Vec<u8>)>,
    code: Vec<Vec<u8>>,
}

/// Places of sections: the count of data segments comes between elements and code.
const PLACES: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11];

impl<'a> Rewriter<'a> {
    fn run(mut self) -> Result<(Vec<u8>, usize), DeployError> {
        let (mut types, mut imported, mut defined) = (0, 0, 0);
        for payload in Parser::new(0).parse_all(self.wasm) {
            match payload.map_err(invalid)? {
                Payload::TypeSection(section) => {
                    types = section.clone().into_iter().count_types()?;
                    self.keep(1, section.range());
                }
                Payload::ImportSection(section) => {
                    imported = self
                        .facts
                        .imports
                        .iter()
                        .filter(|import| import.function.is_some())
                        .count();
                    self.keep(2, section.range());
                }
                Payload::FunctionSection(section) => {
                    defined = section.count();
                    self.keep(3, section.range());
                }
                Payload::TableSection(section) => self.tables(section)?,
                Payload::MemorySection(_) => self.memory(),
                Payload::GlobalSection(section) => self.keep(6, section.range()),
                Payload::ExportSection(section) => self.keep(7, section.range()),
                Payload::ElementSection(section) => self.keep(9, section.range()),
                Payload::DataSection(section) => self.data(section)?,
                Payload::CodeSectionEntry(body) => {
                    let range = body.range();
                    self.code.push(self.wasm[range].to_vec());
                    if self.growing() {
                        let size = self.facts.globals;
                        let grow = imported as u32 + defined;
                        let patched = patch(self.wasm, &body, size, grow)?;
                        *self.code.last_mut().expect("just pushed") = patched;
                    }
                }
                _ => {}
            }
        }
        if self.growing() {
            self.add_growth(types, imported as u32, defined);
        }
        let exported = self.export_globals();
        self.write_code();
        let mut module = Module::new();
        for (id, data) in self.sections.values() {
            module.section(&RawSection { id: *id, data });
        }
        Ok((module.finish(), exported))
    }

    fn growing(&self) -> bool {
        self.facts.grows && self.facts.memory.is_some()
    }

    fn keep(&mut self, id: u8, range: std::ops::Range<usize>) {
        self.put(id, self.wasm[range].to_vec());
    }

    fn put(&mut self, id: u8, data: Vec<u8>) {
        let place = PLACES
            .iter()
            .position(|known| *known == id)
            .expect("a section of ours");
        self.sections.insert(place as u8, (id, data));
    }

    /// Tables as they are, but of a fixed size.
    fn tables(
        &mut self,
        section: SectionLimited<'a, wasmparser::Table<'a>>,
    ) -> Result<(), DeployError> {
        let mut tables = TableSection::new();
        for table in section {
            let table = table.map_err(invalid)?;
            let element_type = wasm_encoder::RefType::FUNCREF;
            let (minimum, maximum) = (table.ty.initial, Some(table.ty.initial));
            tables.table(wasm_encoder::TableType {
                element_type,
                table64: false,
                minimum,
                maximum,
                shared: false,
            });
        }
        self.put(4, content(&tables));
        Ok(())
    }

    fn memory(&mut self) {
        let mut memories = MemorySection::new();
        let (minimum, maximum) = (self.pages, Some(self.pages));
        memories.memory(MemoryType {
            minimum,
            maximum,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        self.put(5, content(&memories));
    }

    /// Nothing of what is active; and nothing at all where the code names no segment.
    fn data(
        &mut self,
        section: SectionLimited<'a, wasmparser::Data<'a>>,
    ) -> Result<(), DeployError> {
        if !self.facts.names_data {
            return Ok(());
        }
        let mut segments = DataSection::new();
        for data in section {
            let data = data.map_err(invalid)?;
            match data.kind {
                DataKind::Passive => segments.passive(data.data.iter().copied()),
                DataKind::Active { .. } => segments.passive([]),
            };
        }
        let mut count = Vec::new();
        segments.len().encode(&mut count);
        self.put(12, count);
        self.put(11, content(&segments));
        Ok(())
    }

    /// Adds the size of the memory in pages, and the function that raises it.
    fn add_growth(&mut self, types: u32, imported: u32, defined: u32) {
        let mut ty = Vec::new();
        ty.extend([0x60, 1, 0x7f, 1, 0x7f]);
        self.append(1, 1, &ty);
        let mut index = Vec::new();
        types.encode(&mut index);
        self.append(3, 1, &index);
        debug_assert!(imported.checked_add(defined).is_some());
        let size = self.facts.globals;
        let initial = self.facts.memory.map_or(0, |(initial, _)| initial);
        let mut global = Vec::new();
        GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        }
        .encode(&mut global);
        ConstExpr::i32_const(initial as i32).encode(&mut global);
        self.append(6, 1, &global);
        let mut function = Function::new([]);
        let limit = self.pages as i32;
        for instruction in [
            Instruction::LocalGet(0),
            Instruction::I32Const(limit),
            Instruction::GlobalGet(size),
            Instruction::I32Sub,
            Instruction::I32GtU,
            Instruction::If(wasm_encoder::BlockType::Empty),
            Instruction::I32Const(-1),
            Instruction::Return,
            Instruction::End,
            Instruction::GlobalGet(size),
            Instruction::GlobalGet(size),
            Instruction::LocalGet(0),
            Instruction::I32Add,
            Instruction::GlobalSet(size),
            Instruction::End,
        ] {
            function.instruction(&instruction);
        }
        self.code.push(function.into_raw_body());
    }

    /// Exports each mutable global, and gives how many there are.
    fn export_globals(&mut self) -> usize {
        let mut mutable = self.facts.mutable.clone();
        if self.growing() {
            mutable.push(self.facts.globals);
        }
        let mut exports = Vec::new();
        for (number, index) in mutable.iter().enumerate() {
            format!("{GLOBAL}{number}").encode(&mut exports);
            ExportKind::Global.encode(&mut exports);
            index.encode(&mut exports);
        }
        if !mutable.is_empty() {
            self.append(7, mutable.len() as u32, &exports);
        }
        mutable.len()
    }

    fn write_code(&mut self) {
        if self.code.is_empty() {
            return;
        }
        let mut code = CodeSection::new();
        for body in &self.code {
            code.raw(body);
        }
        self.put(10, content(&code));
    }

    /// Appends items to a section, which may not be there yet.
    fn append(&mut self, id: u8, count: u32, items: &[u8]) {
        let place = PLACES
            .iter()
            .position(|known| *known == id)
            .expect("a section of ours") as u8;
        let old = self
            .sections
            .remove(&place)
            .map(|(_, data)| data)
            .unwrap_or_else(|| vec![0]);
        let (before, length) = leb(&old);
        let mut data = Vec::with_capacity(old.len() + items.len() + 4);
        (before + count).encode(&mut data);
        data.extend_from_slice(&old[length..]);
        data.extend_from_slice(items);
        self.sections.insert(place, (id, data));
    }
}

/// A body whose questions for the size of the memory go to our global, and whose wishes to our function.
fn patch(
    wasm: &[u8],
    body: &wasmparser::FunctionBody<'_>,
    size: u32,
    grow: u32,
) -> Result<Vec<u8>, DeployError> {
    let range = body.range();
    let mut patched = Vec::with_capacity(range.len() + 16);
    let mut copied = range.start;
    let mut reader = body.get_operators_reader().map_err(invalid)?;
    while !reader.eof() {
        let (operator, at) = reader.read_with_offset().map_err(invalid)?;
        let (code, index) = match operator {
            Operator::MemorySize { .. } => (0x23, size),
            Operator::MemoryGrow { .. } => (0x10, grow),
            _ => continue,
        };
        patched.extend_from_slice(&wasm[copied..at]);
        patched.push(code);
        index.encode(&mut patched);
        copied = reader.original_position();
    }
    patched.extend_from_slice(&wasm[copied..range.end]);
    Ok(patched)
}

/// A section's bytes without their length.
fn content(section: &impl Section) -> Vec<u8> {
    let mut bytes = Vec::new();
    section.encode(&mut bytes);
    let (_, length) = leb(&bytes);
    bytes.split_off(length)
}

/// A number, and how many bytes it takes.
fn leb(bytes: &[u8]) -> (u32, usize) {
    let (mut value, mut length) = (0u32, 0);
    for byte in bytes {
        value |= u32::from(byte & 0x7f) << (7 * length);
        length += 1;
        if byte & 0x80 == 0 || length == 5 {
            break;
        }
    }
    (value, length)
}

trait CountTypes {
    fn count_types(self) -> Result<u32, DeployError>;
}

impl<I: Iterator<Item = wasmparser::Result<wasmparser::RecGroup>>> CountTypes for I {
    fn count_types(self) -> Result<u32, DeployError> {
        let mut types = 0;
        for group in self {
            types += group.map_err(invalid)?.types().len() as u32;
        }
        Ok(types)
    }
}
