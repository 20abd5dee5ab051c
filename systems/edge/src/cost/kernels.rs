//! Loops whose time is known by what they do: one class of operators each, in a form that a processor
//! likes and in one that it does not.
//!
//! *Invariant:* a kernel repeats its body so often that the loop around it does not show.

use wasm_encoder::{
    BlockType, CodeSection, ElementSection, Elements, ExportKind, ExportSection, Function,
    FunctionSection, Instruction as I, MemArg, MemorySection, MemoryType, Module, RefType,
    TableSection, TableType, TypeSection, ValType,
};

/// What a kernel shows the price of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Other,
    Memory,
    Division,
    Call,
    Bytes,
}

/// How often a body stands in its loop, and how often the loop goes around.
const COPIES: usize = 32;
const ROUNDS: i32 = 400;

/// Locals of a kernel: the counter of the loop, four integers of 64 bits, two numbers with fractions, an address.
const COUNTER: u32 = 0;
const A: u32 = 1;
const B: u32 = 2;
const C: u32 = 3;
const D: u32 = 4;
const X: u32 = 5;
const Y: u32 = 6;
const P: u32 = 7;

fn at(offset: u64, align: u32) -> MemArg {
    MemArg {
        offset,
        align,
        memory_index: 0,
    }
}

/// The kernels, each with its class.
pub(crate) fn all() -> Vec<(Class, Vec<u8>)> {
    let chain = [
        I::LocalGet(A),
        I::I64Const(7),
        I::I64Add,
        I::LocalGet(A),
        I::I64Rotl,
        I::LocalSet(A),
    ];
    let wide = [
        [I::LocalGet(A), I::I64Const(3), I::I64Add, I::LocalSet(A)],
        [I::LocalGet(B), I::I64Const(5), I::I64Xor, I::LocalSet(B)],
        [I::LocalGet(C), I::I64Const(7), I::I64Sub, I::LocalSet(C)],
        [I::LocalGet(D), I::LocalGet(A), I::I64Or, I::LocalSet(D)],
    ]
    .concat();
    let product = [I::LocalGet(A), I::LocalGet(B), I::I64Mul, I::LocalSet(A)];
    let fractions = [
        I::LocalGet(X),
        I::LocalGet(Y),
        I::F64Mul,
        I::LocalGet(Y),
        I::F64Add,
        I::LocalSet(X),
    ];
    let branch = [
        I::LocalGet(A),
        I::I64Const(0x9e37_79b9),
        I::I64Mul,
        I::LocalTee(A),
        I::I64Const(1 << 31),
        I::I64And,
        I::I64Eqz,
        I::If(BlockType::Empty),
        I::LocalGet(B),
        I::I64Const(1),
        I::I64Add,
        I::LocalSet(B),
        I::End,
    ];
    let stream = [
        I::LocalGet(P),
        I::LocalGet(P),
        I::I64Load(at(8, 3)),
        I::I64Store(at(1024, 3)),
        I::LocalGet(P),
        I::I64Load(at(64, 3)),
        I::LocalSet(A),
    ];
    // A load whose address is what the load before gave.
    let chase = [I::LocalGet(P), I::I32Load(at(0, 2)), I::LocalSet(P)];
    let quotient = [
        I::LocalGet(A),
        I::LocalGet(B),
        I::I64Const(1),
        I::I64Or,
        I::I64DivU,
        I::I64Const(-1),
        I::I64Xor,
        I::LocalSet(A),
    ];
    let small_quotient = [
        I::LocalGet(COUNTER),
        I::I32Const(5),
        I::LocalGet(COUNTER),
        I::I32Or,
        I::I32RemU,
        I::LocalSet(P),
    ];
    let root = [
        I::LocalGet(X),
        I::LocalGet(Y),
        I::F64Div,
        I::F64Sqrt,
        I::LocalSet(X),
    ];
    let call = [I::LocalGet(A), I::Call(1), I::LocalSet(A)];
    let indirect = [
        I::LocalGet(A),
        I::I32Const(0),
        I::CallIndirect {
            type_index: 1,
            table_index: 0,
        },
        I::LocalSet(A),
    ];
    let fill = [
        I::I32Const(64),
        I::I32Const(0),
        I::I32Const(4096),
        I::MemoryFill(0),
    ];
    let copy = [
        I::I32Const(64),
        I::I32Const(8192),
        I::I32Const(300),
        I::MemoryCopy {
            src_mem: 0,
            dst_mem: 0,
        },
    ];
    [
        (Class::Other, chain.to_vec()),
        (Class::Other, wide),
        (Class::Other, product.to_vec()),
        (Class::Other, fractions.to_vec()),
        (Class::Other, branch.to_vec()),
        (Class::Memory, stream.to_vec()),
        (Class::Memory, chase.to_vec()),
        (Class::Division, quotient.to_vec()),
        (Class::Division, small_quotient.to_vec()),
        (Class::Division, root.to_vec()),
        (Class::Call, call.to_vec()),
        (Class::Call, indirect.to_vec()),
        (Class::Bytes, fill.to_vec()),
        (Class::Bytes, copy.to_vec()),
    ]
    .into_iter()
    .map(|(class, body)| (class, module(&body)))
    .collect()
}

/// A module whose `_start` repeats `body`, and whose function 1 is called by it.
fn module(body: &[I<'_>]) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([ValType::I64], [ValType::I64]);
    let mut functions = FunctionSection::new();
    functions.function(0).function(1);
    let mut tables = TableSection::new();
    let (minimum, maximum) = (1, Some(1));
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum,
        maximum,
        shared: false,
    });
    let mut memories = MemorySection::new();
    let (minimum, maximum) = (2, Some(2));
    memories.memory(MemoryType {
        minimum,
        maximum,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export("_start", ExportKind::Func, 0);
    let mut elements = ElementSection::new();
    let callee = [1];
    elements.active(
        None,
        &wasm_encoder::ConstExpr::i32_const(0),
        Elements::Functions((&callee).into()),
    );
    let mut code = CodeSection::new();
    code.function(&repeated(body));
    let mut function = Function::new([]);
    for instruction in [I::LocalGet(0), I::I64Const(3), I::I64Add, I::End] {
        function.instruction(&instruction);
    }
    code.function(&function);
    let mut module = Module::new();
    module
        .section(&types)
        .section(&functions)
        .section(&tables)
        .section(&memories);
    module.section(&exports).section(&elements).section(&code);
    module.finish()
}

fn repeated(body: &[I<'_>]) -> Function {
    let mut function = Function::new([
        (1, ValType::I32),
        (4, ValType::I64),
        (2, ValType::F64),
        (1, ValType::I32),
    ]);
    for instruction in [
        I::I64Const(0x1234_5678_9abc),
        I::LocalSet(B),
        I::F64Const(1.25.into()),
        I::LocalSet(Y),
        I::I32Const(ROUNDS),
        I::LocalSet(COUNTER),
        I::Loop(BlockType::Empty),
    ] {
        function.instruction(&instruction);
    }
    for _ in 0..COPIES {
        for instruction in body {
            function.instruction(instruction);
        }
    }
    for instruction in [
        I::LocalGet(COUNTER),
        I::I32Const(1),
        I::I32Sub,
        I::LocalTee(COUNTER),
        I::BrIf(0),
        I::End,
        // Results that nobody reads would be left out.
        I::I32Const(0),
        I::LocalGet(A),
        I::LocalGet(B),
        I::I64Add,
        I::LocalGet(C),
        I::I64Add,
        I::LocalGet(D),
        I::I64Add,
        I::LocalGet(P),
        I::I64ExtendI32U,
        I::I64Add,
        I::I64Store(at(0, 3)),
        I::I32Const(0),
        I::LocalGet(X),
        I::F64Store(at(8, 3)),
        I::End,
    ] {
        function.instruction(&instruction);
    }
    function
}
