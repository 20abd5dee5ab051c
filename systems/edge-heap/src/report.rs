//! Functions that tell the host of requests, put around those that serve them.
//!
//! Invariant: a wrapper gives back what it was given, and tells of the outermost request alone.

use wasm_encoder::{BlockType, Encode as _, Function, GlobalType, Instruction, MemArg, ValType};

use crate::outline::Request;
use crate::splice::{Sections, name_bytes};

/// The import through which requests are told: number, three arguments (0 where there are fewer), result.
pub(crate) const REPORT: (&str, &str) = ("metes", "request");
/// Words of a report.
pub(crate) const TOLD: usize = 5;
/// Functions without parameters by which a heap says where its pool begins, how many bytes it has taken, and how many
/// were live at the most.
pub(crate) const OF_HEAP: [&str; 3] = [
    "metes_heap_base",
    "metes_heap_footprint",
    "metes_heap_peak_live",
];

/// What wrappers need.
pub(crate) struct Report {
    /// The first type that is not the program's or the heap's.
    pub(crate) types: u32,
    /// The import.
    pub(crate) host: u32,
    /// The global that says how many requests are being served.
    pub(crate) depth: u32,
}

/// Parameters and results of wrappers, in the order of their types.
const ARITIES: [(usize, usize); 6] = [(1, 1), (2, 1), (3, 1), (4, 1), (1, 0), (3, 0)];

impl Report {
    /// The import, the types, and the global.
    pub(crate) fn add(&self, sections: &mut Sections) {
        let mut ty = |parameters: usize, results: usize| {
            let mut bytes = vec![0x60];
            for words in [parameters, results] {
                bytes.push(words as u8);
                bytes.extend(std::iter::repeat_n(0x7f, words));
            }
            sections.types.push(&bytes);
        };
        ty(TOLD, 0);
        for (parameters, results) in ARITIES {
            ty(parameters, results);
        }
        let mut bytes = name_bytes(REPORT.0);
        bytes.extend(name_bytes(REPORT.1));
        bytes.push(0);
        self.types.encode(&mut bytes);
        sections.imports.push(&bytes);
        let mut bytes = Vec::new();
        let kind = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        kind.encode(&mut bytes);
        wasm_encoder::ConstExpr::i32_const(0).encode(&mut bytes);
        sections.globals.push(&bytes);
    }

    /// A function that serves a request as `served` does and, unless it was made in the course of another one (malloc
    /// by Rust's allocator), tells the host of it.
    pub(crate) fn add_wrapper(&self, sections: &mut Sections, request: Request, served: u32) {
        let parameters = request.parameters();
        let arity = (parameters, usize::from(request.answers()));
        let ty = ARITIES.iter().position(|one| *one == arity).unwrap_or(0) as u32;
        let mut bytes = Vec::new();
        (self.types + 1 + ty).encode(&mut bytes);
        sections.functions.push(&bytes);
        let result = parameters as u32;
        let mut body = Function::new([(1, ValType::I32)]);
        let deeper = |body: &mut Function, by: i32| {
            body.instruction(&Instruction::GlobalGet(self.depth));
            body.instruction(&Instruction::I32Const(by));
            body.instruction(&Instruction::I32Add);
            body.instruction(&Instruction::GlobalSet(self.depth));
        };
        deeper(&mut body, 1);
        for parameter in 0..result {
            body.instruction(&Instruction::LocalGet(parameter));
        }
        body.instruction(&Instruction::Call(served));
        if request.answers() {
            body.instruction(&Instruction::LocalSet(result));
        }
        deeper(&mut body, -1);
        body.instruction(&Instruction::GlobalGet(self.depth));
        body.instruction(&Instruction::I32Eqz);
        body.instruction(&Instruction::If(BlockType::Empty));
        body.instruction(&Instruction::I32Const(request as i32));
        for parameter in told(request) {
            match parameter {
                Some(parameter) => body.instruction(&Instruction::LocalGet(parameter)),
                None => body.instruction(&Instruction::I32Const(0)),
            };
        }
        match request {
            // The block, or 0 where there is none.
            Request::PosixMemalign => {
                body.instruction(&Instruction::LocalGet(result));
                body.instruction(&Instruction::If(BlockType::Result(ValType::I32)));
                body.instruction(&Instruction::I32Const(0));
                body.instruction(&Instruction::Else);
                body.instruction(&Instruction::LocalGet(0));
                body.instruction(&Instruction::I32Load(MemArg {
                    offset: 0,
                    align: 2,
                    memory_index: 0,
                }));
                body.instruction(&Instruction::End);
            }
            _ => {
                body.instruction(&Instruction::LocalGet(result));
            }
        }
        body.instruction(&Instruction::Call(self.host));
        body.instruction(&Instruction::End);
        if request.answers() {
            body.instruction(&Instruction::LocalGet(result));
        }
        body.instruction(&Instruction::End);
        sections.add_body(&body.into_raw_body());
    }
}

/// The parameters of a request that are told: place, size, alignment.
fn told(request: Request) -> [Option<u32>; 3] {
    match request {
        Request::Malloc => [None, Some(0), None],
        // Both factors: the product may be none.
        Request::Calloc => [Some(0), Some(1), None],
        Request::Realloc => [Some(0), Some(1), None],
        Request::Free | Request::UsableSize | Request::RustDealloc => [Some(0), None, None],
        Request::AlignedAlloc => [None, Some(1), Some(0)],
        Request::PosixMemalign => [None, Some(2), Some(1)],
        Request::RustAlloc | Request::RustAllocZeroed => [None, Some(0), Some(1)],
        Request::RustRealloc => [Some(0), Some(3), Some(2)],
    }
}
