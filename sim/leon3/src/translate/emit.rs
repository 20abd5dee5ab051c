//! Regions as code of the host, by way of Cranelift.
//!
//! Registers that a region names are variables from its entry on. What it has changed is stored where it is left;
//! condition codes are kept as the operands they come from, and packed where that is.
//!
//! Invariant: before an instruction begins, the budget is above what the block has used so far; an
//! instruction that leaves the region has changed no variable and no memory.

use std::mem::{ManuallyDrop, offset_of};

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{
    self, AbiParam, Block as Label, InstBuilder, MemFlagsData, SigRef, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::Module;

use super::region::{Block, CODES, Codes, Ending, Region, Set, WINDOW, Y, changes};
use super::{CODE, DECODED, Function, RAM, change_window};
use crate::core::{CONDITIONS, Common, Core};
use crate::decode::{Kind, Operation, SINK};
use crate::registers::Registers;

const REGISTERS: i32 = (offset_of!(Core, registers) + Registers::VIEW) as i32;

/// Makes regions into functions, and keeps them.
pub(super) struct Compiler {
    module: ManuallyDrop<JITModule>,
    function: ir::Signature,
    change: ir::Signature,
    context: cranelift_codegen::Context,
    builder: FunctionBuilderContext,
    base: u32,
    ram: usize,
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: taken once, and not used again. The functions in it are called by `super::run` alone, from
        // `Translations::slots`, which is dropped together with this; none runs while its machine is dropped.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() }
    }
}

impl Compiler {
    /// For `ram` bytes from `base` on; none where Cranelift does not know the host.
    pub(super) fn new(base: u32, ram: usize) -> Option<Compiler> {
        let flags = [("opt_level", "speed"), ("enable_verifier", "false")];
        let names = cranelift_module::default_libcall_names();
        let builder = JITBuilder::with_flags(&flags, names).ok()?;
        let module = JITModule::new(builder);
        if module.target_config().pointer_width.bits() != 64 || cfg!(target_endian = "big") {
            return None;
        }
        let signature = |parameters: &[ir::Type], result| {
            let mut signature = module.make_signature();
            signature
                .params
                .extend(parameters.iter().copied().map(AbiParam::new));
            signature.returns.push(AbiParam::new(result));
            signature
        };
        Some(Compiler {
            function: signature(&[I64, I64, I64], I64),
            change: signature(&[I64, I32], I32),
            context: module.make_context(),
            builder: FunctionBuilderContext::new(),
            module: ManuallyDrop::new(module),
            base,
            ram,
        })
    }

    /// The function of `region`; none if Cranelift refuses it.
    pub(super) fn compile(&mut self, region: &Region, common: &Common) -> Option<Function> {
        let frontend = self.module.target_config();
        self.context.func.signature = self.function.clone();
        let mut builder = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let change = builder.import_signature(self.change.clone());
        let labels = region
            .blocks
            .iter()
            .map(|_| builder.create_block())
            .collect();
        let mut emitter =
            Emitter::enter(builder, region, common, labels, change, self.base, self.ram);
        for index in 0..region.blocks.len() {
            emitter.block(index);
        }
        emitter.builder.seal_all_blocks();
        emitter.builder.finalize(frontend);
        let id = self
            .module
            .declare_anonymous_function(&self.function)
            .ok()?;
        let defined = self.module.define_function(id, &mut self.context).is_ok();
        self.module.clear_context(&mut self.context);
        if !defined {
            return None;
        }
        self.module.finalize_definitions().ok()?;
        let code = self.module.get_finalized_function(id);
        // SAFETY: the code was compiled with the signature `self.function`, which is that of `Function` in the host's
        // convention: three words in, one out.
        Some(unsafe { std::mem::transmute::<*const u8, Function>(code) })
    }
}

/// What is known at a place within a block.
#[derive(Clone, Copy)]
struct Here {
    pc: u32,
    /// The address behind it, where that is not the next word.
    npc: Option<Value>,
    codes: Codes,
    changed: Set,
    cycles: u64,
    instructions: u64,
}

struct Emitter<'a> {
    builder: FunctionBuilder<'a>,
    region: &'a Region,
    common: &'a Common,
    labels: Vec<Label>,
    change: SigRef,
    base: u32,
    ram: usize,
    core: Value,
    at_ram: Value,
    at_decoded: Value,
    at_code: Value,
    /// By number; of those that the region does not name, none is used.
    registers: Vec<Variable>,
    /// What condition codes come from.
    codes: (Variable, Variable),
    /// Cycles left, instructions executed.
    left: Variable,
    executed: Variable,
    here: Here,
}

fn plain() -> MemFlagsData {
    MemFlagsData::trusted()
}

impl<'a> Emitter<'a> {
    #[allow(clippy::too_many_arguments)] // what a region is entered with
    fn enter(
        mut builder: FunctionBuilder<'a>,
        region: &'a Region,
        common: &'a Common,
        labels: Vec<Label>,
        change: SigRef,
        base: u32,
        ram: usize,
    ) -> Emitter<'a> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let [core, memory, left_now] = *builder.block_params(entry) else {
            unreachable!("three parameters");
        };
        let mut pointer = |offset| {
            builder
                .ins()
                .load(I64, plain().with_readonly(), memory, offset)
        };
        let (at_ram, at_decoded, at_code) = (pointer(RAM), pointer(DECODED), pointer(CODE));
        let registers: Vec<Variable> = (0..=Y).map(|_| builder.declare_var(I32)).collect();
        let codes = (builder.declare_var(I32), builder.declare_var(I32));
        let (left, executed) = (builder.declare_var(I64), builder.declare_var(I64));
        builder.def_var(left, left_now);
        let none = builder.ins().iconst(I64, 0);
        builder.def_var(executed, none);
        let here = Here {
            pc: region.blocks[0].begin,
            npc: None,
            codes: Codes::Packed,
            changed: 0,
            cycles: 0,
            instructions: 0,
        };
        let mut emitter = Emitter {
            builder,
            region,
            common,
            labels,
            change,
            base,
            ram,
            core,
            at_ram,
            at_decoded,
            at_code,
            registers,
            codes,
            left,
            executed,
            here,
        };
        emitter.load_registers(region.named);
        let y = emitter.field(offset_of!(Core, y));
        emitter
            .builder
            .def_var(emitter.registers[usize::from(Y)], y);
        let icc = emitter.field(offset_of!(Core, icc));
        // Whoever sets a core's fields may set more bits; the interpreter looks at these.
        let icc = emitter.builder.ins().band_imm_s(icc, 15);
        emitter.builder.def_var(codes.0, icc);
        emitter.builder.def_var(codes.1, icc);
        let first = emitter.labels[0];
        emitter.builder.ins().jump(first, &[]);
        emitter
    }

    fn field(&mut self, offset: usize) -> Value {
        self.builder
            .ins()
            .load(I32, plain(), self.core, offset as i32)
    }

    fn set_field(&mut self, offset: usize, value: Value) {
        self.builder
            .ins()
            .store(plain(), value, self.core, offset as i32);
    }

    fn load_registers(&mut self, set: Set) {
        for number in (1..32).filter(|number| set >> number & 1 == 1) {
            let value = self.field(REGISTERS as usize + 4 * number);
            self.builder.def_var(self.registers[number], value);
        }
    }

    fn store_registers(&mut self, set: Set) {
        for number in (1..32).filter(|number| set >> number & 1 == 1) {
            let value = self.builder.use_var(self.registers[number]);
            self.set_field(REGISTERS as usize + 4 * number, value);
        }
    }

    fn constant(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(I32, i64::from(value))
    }

    fn get(&mut self, number: u8) -> Value {
        match number {
            0 => self.constant(0),
            _ => self.builder.use_var(self.registers[usize::from(number)]),
        }
    }

    fn set(&mut self, number: u8, value: Value) {
        if number != 0 && number != SINK {
            self.builder
                .def_var(self.registers[usize::from(number)], value);
        }
    }

    fn second(&mut self, operation: Operation) -> Value {
        match (operation.rs2, operation.immediate) {
            (0, immediate) => self.constant(immediate),
            (register, 0) => self.get(register),
            (register, immediate) => {
                let register = self.get(register);
                self.builder
                    .ins()
                    .iadd_imm_s(register, i64::from(immediate as i32))
            }
        }
    }

    fn address(&mut self, operation: Operation) -> Value {
        let (a, b) = (self.get(operation.rs1), self.second(operation));
        self.builder.ins().iadd(a, b)
    }

    /// Goes on where `good` is not zero; otherwise leaves the region at this instruction.
    fn unless_leave(&mut self, good: Value) {
        let (on, off) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(off);
        self.builder.ins().brif(good, on, &[], off, &[]);
        self.builder.switch_to_block(off);
        self.builder.seal_block(off);
        self.leave();
        self.builder.switch_to_block(on);
        self.builder.seal_block(on);
    }

    /// Leaves the region at this instruction.
    fn leave(&mut self) {
        let pc = self.constant(self.here.pc);
        let npc = match self.here.npc {
            Some(npc) => npc,
            None => self.constant(self.here.pc.wrapping_add(4)),
        };
        self.leave_to(pc, npc);
    }

    fn leave_to(&mut self, pc: Value, npc: Value) {
        let here = self.here;
        self.store_registers(here.changed);
        if here.changed >> Y & 1 == 1 {
            let y = self.builder.use_var(self.registers[usize::from(Y)]);
            self.set_field(offset_of!(Core, y), y);
        }
        if here.changed >> CODES & 1 == 1 {
            let icc = self.packed();
            self.set_field(offset_of!(Core, icc), icc);
        }
        self.set_field(offset_of!(Core, pc), pc);
        self.set_field(offset_of!(Core, npc), npc);
        let count = offset_of!(Core, instructions) as i32;
        let executed = self.builder.use_var(self.executed);
        let executed = self
            .builder
            .ins()
            .iadd_imm_s(executed, here.instructions as i64);
        let before = self.builder.ins().load(I64, plain(), self.core, count);
        let sum = self.builder.ins().iadd(before, executed);
        self.builder.ins().store(plain(), sum, self.core, count);
        let left = self.builder.use_var(self.left);
        let left = self.builder.ins().iadd_imm_s(left, -(here.cycles as i64));
        self.builder.ins().return_(&[left]);
    }

    fn block(&mut self, index: usize) {
        let block = &self.region.blocks[index];
        self.builder.switch_to_block(self.labels[index]);
        self.here = Here {
            pc: block.begin,
            npc: None,
            codes: block.codes,
            changed: block.changed,
            cycles: 0,
            instructions: 0,
        };
        let left = self.builder.use_var(self.left);
        let enough = IntCC::SignedGreaterThanOrEqual;
        let enough = self
            .builder
            .ins()
            .icmp_imm_s(enough, left, block.cycles as i64);
        self.unless_leave(enough);
        for &operation in &block.body {
            self.straight(operation);
            self.here.pc = self.here.pc.wrapping_add(4);
        }
        self.ending(block);
    }

    /// The instruction here is executed, if it is no straight one.
    fn count(&mut self, operation: Operation) {
        self.here.cycles += self.common.timing.of(operation.kind);
        self.here.instructions += 1;
    }

    fn ending(&mut self, block: &Block) {
        let at = self.here.pc;
        match block.ending {
            Ending::At(next) => self.go(next),
            Ending::Branch { operation, slot } => self.branch(operation, slot),
            Ending::Call { operation, slot } => {
                let target = at.wrapping_add(operation.immediate);
                let from = self.constant(at);
                self.set(operation.rd, from);
                self.here.changed |= changes(operation);
                self.count(operation);
                self.slot(slot, target);
                self.here.pc = target;
                self.leave();
            }
            Ending::Jump { operation, slot } => {
                let target = self.address(operation);
                let low = self.builder.ins().band_imm_s(target, 3);
                let aligned = self.builder.ins().icmp_imm_s(IntCC::Equal, low, 0);
                self.unless_leave(aligned);
                let from = self.constant(at);
                self.set(operation.rd, from);
                self.here.changed |= changes(operation);
                self.count(operation);
                self.slot_before(slot, target);
                let behind = self.builder.ins().iadd_imm_s(target, 4);
                self.leave_to(target, behind);
            }
        }
    }

    fn slot(&mut self, slot: Operation, target: u32) {
        let target = self.constant(target);
        self.slot_before(slot, target);
    }

    /// The instruction in the delay slot of the one here, before one goes on at `target`.
    fn slot_before(&mut self, slot: Operation, target: Value) {
        self.here.pc = self.here.pc.wrapping_add(4);
        self.here.npc = Some(target);
        self.straight(slot);
        self.here.npc = None;
    }

    fn annul(&mut self) {
        self.here.cycles += u64::from(self.common.timing.annulled);
    }

    fn branch(&mut self, operation: Operation, slot: Operation) {
        let at = self.here.pc;
        let (target, behind) = (at.wrapping_add(operation.immediate), at.wrapping_add(8));
        let annul = operation.rs1 != 0;
        let always = match operation.rd {
            0 => Some(behind),
            8 => Some(target),
            _ => None,
        };
        let taken = if always.is_none() {
            Some(self.holds(operation.rd))
        } else {
            None
        };
        self.count(operation);
        let Some(taken) = taken else {
            let next = always.unwrap_or(behind);
            if annul {
                self.annul();
            } else {
                self.slot(slot, next);
            }
            self.go(next);
            return;
        };
        let (on, off) = (self.builder.create_block(), self.builder.create_block());
        if !annul {
            let (there, here) = (self.constant(target), self.constant(behind));
            let next = self.builder.ins().select(taken, there, here);
            self.slot_before(slot, next);
        }
        let before = self.here;
        self.builder.ins().brif(taken, on, &[], off, &[]);
        self.builder.switch_to_block(on);
        self.builder.seal_block(on);
        if annul {
            self.slot(slot, target);
        }
        self.go(target);
        self.here = before;
        self.builder.switch_to_block(off);
        self.builder.seal_block(off);
        if annul {
            self.annul();
        }
        self.go(behind);
    }

    /// Goes on at `next`, in the region if it reaches there.
    fn go(&mut self, next: u32) {
        let Some(index) = self.region.block_at(next) else {
            self.here.pc = next;
            self.leave();
            return;
        };
        let target = &self.region.blocks[index];
        // What was found out beforehand holds for this way, too.
        assert!(self.here.changed & !target.changed == 0);
        if target.codes != self.here.codes {
            assert!(target.codes == Codes::Packed);
            let packed = self.packed();
            self.builder.def_var(self.codes.0, packed);
        }
        let left = self.builder.use_var(self.left);
        let left = self
            .builder
            .ins()
            .iadd_imm_s(left, -(self.here.cycles as i64));
        self.builder.def_var(self.left, left);
        let executed = self.builder.use_var(self.executed);
        let executed = self
            .builder
            .ins()
            .iadd_imm_s(executed, self.here.instructions as i64);
        self.builder.def_var(self.executed, executed);
        self.builder.ins().jump(self.labels[index], &[]);
    }

    /// A bit of 32 bits as it is in a comparison.
    fn bit(&mut self, condition: Value) -> Value {
        self.builder.ins().uextend(I32, condition)
    }

    fn operands(&mut self) -> (Value, Value) {
        (
            self.builder.use_var(self.codes.0),
            self.builder.use_var(self.codes.1),
        )
    }

    /// Overflow of the sum or difference that condition codes come from, in the highest bit.
    fn overflow(&mut self) -> Value {
        let (a, b) = self.operands();
        let ins = &mut self.builder;
        if self.here.codes == Codes::Sum {
            let value = ins.ins().iadd(a, b);
            let (a, b) = (ins.ins().bxor(a, value), ins.ins().bxor(b, value));
            ins.ins().band(a, b)
        } else {
            let value = ins.ins().isub(a, b);
            let (b, value) = (ins.ins().bxor(a, b), ins.ins().bxor(a, value));
            ins.ins().band(b, value)
        }
    }

    /// The result that condition codes come from.
    fn result(&mut self) -> Value {
        let (a, b) = self.operands();
        match self.here.codes {
            Codes::Packed => unreachable!("packed codes have no result"),
            Codes::Sum => self.builder.ins().iadd(a, b),
            Codes::Difference => self.builder.ins().isub(a, b),
            Codes::Result => a,
        }
    }

    /// Carry as 0 or 1.
    fn carry(&mut self) -> Value {
        let (a, b) = self.operands();
        let carry = match self.here.codes {
            Codes::Packed => return self.builder.ins().band_imm_s(a, 1),
            Codes::Result => return self.constant(0),
            Codes::Sum => {
                let value = self.builder.ins().iadd(a, b);
                self.builder.ins().icmp(IntCC::UnsignedLessThan, value, a)
            }
            Codes::Difference => self.builder.ins().icmp(IntCC::UnsignedLessThan, a, b),
        };
        self.bit(carry)
    }

    /// Condition codes as the processor state register holds them.
    fn packed(&mut self) -> Value {
        if self.here.codes == Codes::Packed {
            return self.builder.use_var(self.codes.0);
        }
        let carry = self.carry();
        let value = self.result();
        let overflow = match self.here.codes {
            Codes::Result => self.constant(0),
            _ => self.overflow(),
        };
        self.pack(value, overflow, carry)
    }

    /// Condition codes of `value`, with overflow in the highest bit and carry as 0 or 1.
    fn pack(&mut self, value: Value, overflow: Value, carry: Value) -> Value {
        let zero = self.builder.ins().icmp_imm_s(IntCC::Equal, value, 0);
        let zero = self.bit(zero);
        let zero = self.builder.ins().ishl_imm_u(zero, 2);
        let negative = self.builder.ins().ushr_imm_u(value, 31);
        let negative = self.builder.ins().ishl_imm_u(negative, 3);
        let overflow = self.builder.ins().ushr_imm_u(overflow, 31);
        let overflow = self.builder.ins().ishl_imm_u(overflow, 1);
        let high = self.builder.ins().bor(negative, zero);
        let low = self.builder.ins().bor(overflow, carry);
        self.builder.ins().bor(high, low)
    }

    /// Whether `condition`, neither always nor never, holds: not zero if so.
    fn holds(&mut self, condition: u8) -> Value {
        use IntCC::*;
        let (a, b) = self.operands();
        let (low, inverse) = (condition & 7, condition & 8 != 0);
        let compare = match (self.here.codes, low) {
            (Codes::Difference, 1) => Some((Equal, a, b)),
            (Codes::Difference, 2) => Some((SignedLessThanOrEqual, a, b)),
            (Codes::Difference, 3) => Some((SignedLessThan, a, b)),
            (Codes::Difference, 4) => Some((UnsignedLessThanOrEqual, a, b)),
            (Codes::Difference, 5) => Some((UnsignedLessThan, a, b)),
            (Codes::Result, 1 | 4) => Some((Equal, a, self.constant(0))),
            (Codes::Result, 2) => Some((SignedLessThanOrEqual, a, self.constant(0))),
            (Codes::Result, 3 | 6) => Some((SignedLessThan, a, self.constant(0))),
            (Codes::Sum, 1) => Some((Equal, self.result(), self.constant(0))),
            (Codes::Sum | Codes::Difference, 6) => {
                Some((SignedLessThan, self.result(), self.constant(0)))
            }
            _ => None,
        };
        if let Some((code, a, b)) = compare {
            let code = if inverse { code.complement() } else { code };
            return self.builder.ins().icmp(code, a, b);
        }
        let icc = self.packed();
        let table = self.constant(u32::from(CONDITIONS[usize::from(condition & 15)]));
        let bit = self.builder.ins().ushr(table, icc);
        self.builder.ins().band_imm_s(bit, 1)
    }

    /// Condition codes come from `a` and `b` from now on.
    fn set_codes(&mut self, codes: Codes, a: Value, b: Value) {
        self.builder.def_var(self.codes.0, a);
        self.builder.def_var(self.codes.1, b);
        self.here.codes = codes;
    }

    /// A straight instruction here.
    fn straight(&mut self, operation: Operation) {
        use Kind::*;
        match operation.kind {
            Save | Restore => self.save_restore(operation),
            Ld | Ldub | Lduh | Ldsb | Ldsh | Ldd => self.load(operation),
            St | Stb | Sth | Std => self.store(operation),
            Udiv | Sdiv => self.divide(operation),
            MulsCc => self.multiply_step(operation),
            _ => self.arithmetic(operation),
        }
        self.here.changed |= changes(operation);
        self.count(operation);
    }

    fn arithmetic(&mut self, operation: Operation) {
        use Kind::*;
        let (a, b) = (self.get(operation.rs1), self.second(operation));
        let value = match operation.kind {
            Sethi => b,
            Add | AddCc => self.builder.ins().iadd(a, b),
            Sub | SubCc => self.builder.ins().isub(a, b),
            And | AndCc => self.builder.ins().band(a, b),
            Or | OrCc => self.builder.ins().bor(a, b),
            Xor | XorCc => self.builder.ins().bxor(a, b),
            Andn | AndnCc => self.builder.ins().band_not(a, b),
            Orn | OrnCc => self.builder.ins().bor_not(a, b),
            Xnor | XnorCc => self.builder.ins().bxor_not(a, b),
            Addx | AddxCc | Subx | SubxCc => self.extended(operation.kind, a, b),
            // Cranelift takes shifts modulo the width, as SPARC does.
            Sll => self.builder.ins().ishl(a, b),
            Srl => self.builder.ins().ushr(a, b),
            Sra => self.builder.ins().sshr(a, b),
            Rdy => self.builder.use_var(self.registers[usize::from(Y)]),
            Wry => {
                let value = self.builder.ins().bxor(a, b);
                self.builder.def_var(self.registers[usize::from(Y)], value);
                return;
            }
            Umul | UmulCc | Smul | SmulCc => self.multiply(operation.kind, a, b),
            kind => unreachable!("{kind:?} has no translation"),
        };
        match operation.kind {
            AddCc => self.set_codes(Codes::Sum, a, b),
            SubCc => self.set_codes(Codes::Difference, a, b),
            AndCc | OrCc | XorCc | AndnCc | OrnCc | XnorCc | UmulCc | SmulCc => {
                self.set_codes(Codes::Result, value, value);
            }
            _ => {}
        }
        self.set(operation.rd, value);
    }

    /// With carry or borrow, and condition codes if `kind` sets them.
    fn extended(&mut self, kind: Kind, a: Value, b: Value) -> Value {
        let carry = self.carry();
        let adds = matches!(kind, Kind::Addx | Kind::AddxCc);
        let ins = &mut self.builder;
        let value = if adds {
            let sum = ins.ins().iadd(a, b);
            ins.ins().iadd(sum, carry)
        } else {
            let difference = ins.ins().isub(a, b);
            ins.ins().isub(difference, carry)
        };
        if matches!(kind, Kind::Addx | Kind::Subx) {
            return value;
        }
        // As in the interpreter: `sum_codes` and `difference_codes`.
        let (overflow, carry) = if adds {
            let (x, y) = (ins.ins().bxor(a, value), ins.ins().bxor(b, value));
            let overflow = ins.ins().band(x, y);
            let (both, either) = (ins.ins().band(a, b), ins.ins().bor(a, b));
            let lost = ins.ins().band_not(either, value);
            (overflow, ins.ins().bor(both, lost))
        } else {
            let (x, y) = (ins.ins().bxor(a, b), ins.ins().bxor(a, value));
            let overflow = ins.ins().band(x, y);
            let below = ins.ins().band_not(b, a);
            let either = ins.ins().bor_not(b, a);
            let lost = ins.ins().band(either, value);
            (overflow, ins.ins().bor(below, lost))
        };
        let carry = ins.ins().ushr_imm_u(carry, 31);
        let packed = self.pack(value, overflow, carry);
        self.set_codes(Codes::Packed, packed, packed);
        value
    }

    fn multiply(&mut self, kind: Kind, a: Value, b: Value) -> Value {
        let signed = matches!(kind, Kind::Smul | Kind::SmulCc);
        let (a, b) = (self.wide(a, signed), self.wide(b, signed));
        let product = self.builder.ins().imul(a, b);
        let high = self.builder.ins().ushr_imm_u(product, 32);
        let high = self.builder.ins().ireduce(I32, high);
        self.builder.def_var(self.registers[usize::from(Y)], high);
        self.builder.ins().ireduce(I32, product)
    }

    fn wide(&mut self, value: Value, signed: bool) -> Value {
        if signed {
            self.builder.ins().sextend(I64, value)
        } else {
            self.builder.ins().uextend(I64, value)
        }
    }

    /// The quotient, saturated. What the host's instruction would fault on is the interpreter's.
    fn divide(&mut self, operation: Operation) {
        let signed = operation.kind == Kind::Sdiv;
        let (a, b) = (self.get(operation.rs1), self.second(operation));
        // Neither 0 nor -1, by which the smallest number has no quotient.
        let good = if signed {
            let above = self.builder.ins().iadd_imm_s(b, 1);
            self.builder
                .ins()
                .icmp_imm_s(IntCC::UnsignedGreaterThan, above, 1)
        } else {
            self.builder.ins().icmp_imm_s(IntCC::NotEqual, b, 0)
        };
        self.unless_leave(good);
        let y = self.builder.use_var(self.registers[usize::from(Y)]);
        let (high, low) = (self.wide(y, false), self.wide(a, false));
        let high = self.builder.ins().ishl_imm_u(high, 32);
        let dividend = self.builder.ins().bor(high, low);
        let divisor = self.wide(b, signed);
        let value = if signed {
            let quotient = self.builder.ins().sdiv(dividend, divisor);
            let least = self.builder.ins().iconst(I64, i64::from(i32::MIN));
            let most = self.builder.ins().iconst(I64, i64::from(i32::MAX));
            let quotient = self.builder.ins().smax(quotient, least);
            self.builder.ins().smin(quotient, most)
        } else {
            let quotient = self.builder.ins().udiv(dividend, divisor);
            let most = self.builder.ins().iconst(I64, i64::from(u32::MAX));
            self.builder.ins().umin(quotient, most)
        };
        let value = self.builder.ins().ireduce(I32, value);
        self.set(operation.rd, value);
    }

    fn multiply_step(&mut self, operation: Operation) {
        let source = self.get(operation.rs1);
        let second = self.second(operation);
        let icc = self.packed();
        let y = self.builder.use_var(self.registers[usize::from(Y)]);
        let ins = &mut self.builder;
        let (n, v) = (ins.ins().ushr_imm_u(icc, 3), ins.ins().ushr_imm_u(icc, 1));
        let negative = ins.ins().bxor(n, v);
        let negative = ins.ins().ishl_imm_u(negative, 31);
        let a = ins.ins().ushr_imm_u(source, 1);
        let a = ins.ins().bor(a, negative);
        let low = ins.ins().band_imm_s(y, 1);
        let mask = ins.ins().ineg(low);
        let b = ins.ins().band(second, mask);
        let y = ins.ins().ushr_imm_u(y, 1);
        let top = ins.ins().ishl_imm_u(source, 31);
        let y = ins.ins().bor(y, top);
        let value = ins.ins().iadd(a, b);
        self.builder.def_var(self.registers[usize::from(Y)], y);
        self.set_codes(Codes::Sum, a, b);
        self.set(operation.rd, value);
    }

    fn save_restore(&mut self, operation: Operation) {
        let value = self.address(operation);
        self.store_registers(self.here.changed & WINDOW);
        let below = self.constant(u32::from(operation.kind == Kind::Save));
        let function = change_window as *const () as i64;
        let function = self.builder.ins().iconst(I64, function);
        let call = self
            .builder
            .ins()
            .call_indirect(self.change, function, &[self.core, below]);
        let done = self.builder.inst_results(call)[0];
        self.unless_leave(done);
        self.load_registers(self.region.named & WINDOW);
        self.here.changed &= !WINDOW;
        self.set(operation.rd, value);
    }

    /// The offset in RAM of an aligned access of `size` bytes, or the region is left.
    fn offset(&mut self, operation: Operation, size: u32) -> Value {
        let address = self.address(operation);
        let offset = self
            .builder
            .ins()
            .iadd_imm_s(address, -i64::from(self.base));
        // What is not aligned has its low bits at the top then, above every size: the base is aligned.
        let turned = match size {
            1 => offset,
            _ => self
                .builder
                .ins()
                .rotr_imm_u(offset, i64::from(size.trailing_zeros())),
        };
        let behind = (self.ram / size as usize) as i64;
        let inside = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::UnsignedLessThan, turned, behind);
        self.unless_leave(inside);
        self.builder.ins().uextend(I64, offset)
    }

    fn load(&mut self, operation: Operation) {
        use Kind::*;
        let size = size(operation.kind);
        let offset = self.offset(operation, size);
        let at = self.builder.ins().iadd(self.at_ram, offset);
        // RAM is bytes: no alignment of the host's.
        let flags = MemFlagsData::new().with_notrap();
        let value = match operation.kind {
            Ldub => self.builder.ins().uload8(I32, flags, at, 0),
            Ldsb => self.builder.ins().sload8(I32, flags, at, 0),
            Lduh | Ldsh => {
                let half = self.builder.ins().load(ir::types::I16, flags, at, 0);
                let half = self.builder.ins().bswap(half);
                if operation.kind == Lduh {
                    self.builder.ins().uextend(I32, half)
                } else {
                    self.builder.ins().sextend(I32, half)
                }
            }
            Ld => {
                let word = self.builder.ins().load(I32, flags, at, 0);
                self.builder.ins().bswap(word)
            }
            _ => {
                let high = self.builder.ins().load(I32, flags, at, 0);
                let low = self.builder.ins().load(I32, flags, at, 4);
                let (high, low) = (
                    self.builder.ins().bswap(high),
                    self.builder.ins().bswap(low),
                );
                self.set(operation.rd, high);
                self.set(operation.rd + 1, low);
                return;
            }
        };
        self.set(operation.rd, value);
    }

    fn store(&mut self, operation: Operation) {
        let size = size(operation.kind);
        let offset = self.offset(operation, size);
        self.leave_if_code(offset, size);
        let flags = MemFlagsData::new().with_notrap();
        let at = self.builder.ins().iadd(self.at_ram, offset);
        let value = self.get(operation.rd);
        match operation.kind {
            Kind::Stb => {
                self.builder.ins().istore8(flags, value, at, 0);
            }
            Kind::Sth => {
                let half = self.builder.ins().ireduce(ir::types::I16, value);
                let half = self.builder.ins().bswap(half);
                self.builder.ins().store(flags, half, at, 0);
            }
            _ => {
                let word = self.builder.ins().bswap(value);
                self.builder.ins().store(flags, word, at, 0);
            }
        }
        if operation.kind == Kind::Std {
            let low = self.get(operation.rd + 1);
            let low = self.builder.ins().bswap(low);
            self.builder.ins().store(flags, low, at, 4);
        }
    }

    /// Leaves the region if what is stored at `offset` is decoded.
    fn leave_if_code(&mut self, offset: Value, size: u32) {
        let (code, on) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(code);
        let page = self
            .builder
            .ins()
            .ushr_imm_u(offset, i64::from(crate::bus::PAGE.trailing_zeros()));
        let page = self.builder.ins().iadd(self.at_decoded, page);
        let decoded = self.builder.ins().load(I8, plain(), page, 0);
        self.builder.ins().brif(decoded, code, &[], on, &[]);
        self.builder.switch_to_block(code);
        self.builder.seal_block(code);
        let each = size_of::<Operation>() as i32;
        let word = self.builder.ins().ushr_imm_u(offset, 2);
        let entry = self.builder.ins().imul_imm_s(word, i64::from(each));
        let entry = self.builder.ins().iadd(self.at_code, entry);
        let kind = offset_of!(Operation, kind) as i32;
        let mut decoded = self.builder.ins().load(I8, plain(), entry, kind);
        if size == 8 {
            let other = self.builder.ins().load(I8, plain(), entry, each + kind);
            decoded = self.builder.ins().bor(decoded, other);
        }
        let free = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::Equal, decoded, Kind::Undecoded as i64);
        self.unless_leave(free);
        self.builder.ins().jump(on, &[]);
        self.builder.switch_to_block(on);
        self.builder.seal_block(on);
    }
}

fn size(kind: Kind) -> u32 {
    use Kind::*;
    match kind {
        Ldub | Ldsb | Stb => 1,
        Lduh | Ldsh | Sth => 2,
        Ldd | Std => 8,
        _ => 4,
    }
}
