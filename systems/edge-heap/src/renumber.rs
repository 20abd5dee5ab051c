//! Functions, types, globals and data of a module under new numbers, byte for byte otherwise.
//!
//! Operators are read to find where they begin and end; those that name something are written anew, all others are
//! copied as they are.
//!
//! Invariant: what is written differs from what was read in numbers alone.

use std::collections::HashMap;

use wasm_encoder::Encode as _;
use wasmparser::{BlockType, ConstExpr, ElementItems, FunctionBody, Operator, OperatorsReader};

use crate::outline::SpliceError;

/// New numbers for what a module names.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Functions below this are the host's and keep their numbers.
    pub(crate) imported: u32,
    /// What is added to the number of any other function.
    pub(crate) functions: u32,
    pub(crate) types: u32,
    pub(crate) globals: u32,
    pub(crate) data: u32,
    /// Functions that are called instead of others.
    pub(crate) redirected: HashMap<u32, u32>,
}

impl Numbers {
    /// Where a function lies.
    pub(crate) fn place(&self, function: u32) -> u32 {
        match function < self.imported {
            true => function,
            false => function + self.functions,
        }
    }

    /// What is called where a function was.
    pub(crate) fn function(&self, function: u32) -> u32 {
        match self.redirected.get(&function) {
            Some(&other) => other,
            None => self.place(function),
        }
    }

    /// The body of a function, without its length.
    pub(crate) fn body(
        &self,
        wasm: &[u8],
        body: &FunctionBody<'_>,
    ) -> Result<Vec<u8>, SpliceError> {
        let operators = body.get_operators_reader()?;
        let mut out = wasm[body.range().start..operators.original_position()].to_vec();
        self.operators(wasm, operators, &mut out)?;
        Ok(out)
    }

    /// A constant expression, with its end.
    pub(crate) fn constant(
        &self,
        wasm: &[u8],
        expression: &ConstExpr<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        self.operators(wasm, expression.get_operators_reader(), out)
    }

    /// What an element segment that begins at `start` is, with its functions.
    pub(crate) fn element(
        &self,
        wasm: &[u8],
        start: usize,
        items: &ElementItems<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        match items {
            ElementItems::Functions(functions) => {
                out.extend_from_slice(&wasm[start..functions.range().start]);
                functions.count().encode(out);
                for function in functions.clone() {
                    self.function(function?).encode(out);
                }
            }
            ElementItems::Expressions(_, expressions) => {
                out.extend_from_slice(&wasm[start..expressions.range().start]);
                expressions.count().encode(out);
                for expression in expressions.clone() {
                    self.constant(wasm, &expression?, out)?;
                }
            }
        }
        Ok(())
    }

    fn operators(
        &self,
        wasm: &[u8],
        mut reader: OperatorsReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        while !reader.eof() {
            let (operator, start) = reader.read_with_offset()?;
            let end = reader.original_position();
            match operator {
                Operator::Call { function_index } => {
                    out.push(0x10);
                    self.function(function_index).encode(out);
                }
                Operator::ReturnCall { function_index } => {
                    out.push(0x12);
                    self.function(function_index).encode(out);
                }
                Operator::RefFunc { function_index } => {
                    out.push(0xd2);
                    self.function(function_index).encode(out);
                }
                Operator::GlobalGet { global_index } => {
                    out.push(0x23);
                    (global_index + self.globals).encode(out);
                }
                Operator::GlobalSet { global_index } => {
                    out.push(0x24);
                    (global_index + self.globals).encode(out);
                }
                Operator::Block { blockty }
                | Operator::Loop { blockty }
                | Operator::If { blockty } => match blockty {
                    BlockType::FuncType(ty) => {
                        out.push(wasm[start]);
                        i64::from(ty + self.types).encode(out);
                    }
                    _ => out.extend_from_slice(&wasm[start..end]),
                },
                Operator::CallIndirect {
                    type_index,
                    table_index,
                } => {
                    out.push(0x11);
                    (type_index + self.types).encode(out);
                    table_index.encode(out);
                }
                Operator::MemoryInit { data_index, mem } => {
                    out.extend_from_slice(&[0xfc, 0x08]);
                    (data_index + self.data).encode(out);
                    mem.encode(out);
                }
                Operator::DataDrop { data_index } => {
                    out.extend_from_slice(&[0xfc, 0x09]);
                    (data_index + self.data).encode(out);
                }
                _ => out.extend_from_slice(&wasm[start..end]),
            }
        }
        Ok(())
    }
}
