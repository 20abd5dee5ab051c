//! What is known of a core's integer registers at a place in the code: constants, the return address, the stack pointer.
//!
//! Windows are told apart by how many SAVEs deep they lie, so that the numbers of registers mean what they do to the
//! core. What two paths bring that differs is unknown where they meet.
//!
//! Invariant: what is known is so on every path, as long as functions that are called keep the calling convention.

use metes_leon3::decode::{Kind, Operation};

/// Most windows that a function and what it enters by itself may lie deep; a core has 32 at most.
const DEEPEST: usize = 64;
/// Ins, locals and outs.
const WINDOW: usize = 24;
/// Registers that a SAVE adds.
const STEP: usize = 16;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unknown,
    Number(u32),
    /// What the function was entered with as its return address, and this much.
    Return(u32),
    /// The stack pointer that it was entered with, and this much.
    Stack(u32),
}

/// Registers at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    globals: [Value; 8],
    /// Ins and locals of each window from the oldest on.
    file: Vec<Value>,
    /// Where the outs of the current window end.
    end: usize,
    /// Where those of the window end that was entered in.
    entered: usize,
    /// Whether what a RESTORE leaves is there still for the next SAVE: it is as long as no trap comes in between.
    keeps: bool,
}

/// A window is left or entered that the function has no business in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

impl State {
    /// At a function's first instruction.
    pub(super) fn of_function() -> State {
        let mut state = State::empty(0);
        state.set(14, Value::Stack(0));
        state.set(15, Value::Return(0));
        state
    }

    /// At the first instruction of the handler of a trap, which knows older windows, too.
    pub(super) fn of_handler() -> State {
        let mut state = State::empty(4);
        state.set(17, Value::Return(0));
        state.set(18, Value::Return(4));
        state
    }

    fn empty(older: usize) -> State {
        let entered = WINDOW + older * STEP;
        State {
            globals: [Value::Unknown; 8],
            file: vec![Value::Unknown; entered],
            end: entered,
            entered,
            keeps: older > 0,
        }
    }

    /// Windows below the one that was entered in.
    pub(super) fn depth(&self) -> u32 {
        (self.end.saturating_sub(self.entered) / STEP) as u32
    }

    /// Whether the window is the one that was entered in.
    pub(super) fn level(&self) -> bool {
        self.end == self.entered
    }

    fn place(&self, number: u8) -> usize {
        let end = self.end;
        let number = usize::from(number);
        match number {
            8..16 => end - 8 + (number - 8),
            16..24 => end - 16 + (number - 16),
            _ => end - WINDOW + (number & 31) - 24,
        }
    }

    pub(super) fn get(&self, number: u8) -> Value {
        match number {
            0 => Value::Number(0),
            1..8 => self.globals[usize::from(number)],
            8..32 => self.file[self.place(number)],
            _ => Value::Unknown,
        }
    }

    fn set(&mut self, number: u8, value: Value) {
        match number {
            1..8 => self.globals[usize::from(number)] = value,
            8..32 => {
                let place = self.place(number);
                self.file[place] = value;
            }
            // `%g0`, and the sink.
            _ => {}
        }
    }

    /// `r[rs1] + r[rs2] + immediate`: addresses, and what SAVE and RESTORE compute.
    pub(super) fn sum(&self, operation: Operation) -> Value {
        add(self.get(operation.rs1), self.second(operation))
    }

    fn second(&self, operation: Operation) -> Value {
        add(self.get(operation.rs2), Value::Number(operation.immediate))
    }

    /// After `operation` at `at`, which is no branch.
    pub(super) fn apply(&mut self, at: u32, operation: Operation) -> Result<(), Unbalanced> {
        use Kind::*;
        let rd = operation.rd;
        match operation.kind {
            Branch | FloatBranch | Ticc | Flush | Unimp | Rett | Wry | Wrasr | Wrpsr | Wrwim
            | Wrtbr | St | Stb | Sth | Std | Sta | Stba | Stha | Stda | Ldf | Ldfsr | Lddf
            | Stf | Stfsr | Stdfq | Stdf | FloatOperate | FloatCompare => {}
            Call | Jmpl => self.set(rd, Value::Number(at)),
            Ldd | Ldda => {
                self.set(rd & 30, Value::Unknown);
                self.set(rd | 1, Value::Unknown);
            }
            Save => {
                let value = self.sum(operation);
                if self.end >= WINDOW + DEEPEST * STEP {
                    return Err(Unbalanced);
                }
                self.end += STEP;
                let length = self.file.len().max(self.end);
                self.file.resize(length, Value::Unknown);
                self.set(rd, value);
            }
            Restore => {
                let value = self.sum(operation);
                if self.end < WINDOW + STEP {
                    return Err(Unbalanced);
                }
                self.end -= STEP;
                if !self.keeps {
                    self.file.truncate(self.end);
                }
                self.set(rd, value);
            }
            _ => {
                let value = self.computed(operation);
                self.set(rd, value);
            }
        }
        Ok(())
    }

    fn computed(&self, operation: Operation) -> Value {
        use Kind::*;
        use Value::{Number, Unknown};
        let (a, b) = (self.get(operation.rs1), self.second(operation));
        match (operation.kind, a, b) {
            (Sethi, ..) => Number(operation.immediate),
            (Add, ..) => add(a, b),
            (Sub, _, Number(number)) => add(a, Number(number.wrapping_neg())),
            // `mov`.
            (Or, other, Number(0)) | (Or, Number(0), other) => other,
            (Or, Number(a), Number(b)) => Number(a | b),
            (Xor, Number(a), Number(b)) => Number(a ^ b),
            (And, Number(a), Number(b)) => Number(a & b),
            (Andn, Number(a), Number(b)) => Number(a & !b),
            (Sll, Number(a), Number(b)) => Number(a << (b & 31)),
            (Srl, Number(a), Number(b)) => Number(a >> (b & 31)),
            _ => Unknown,
        }
    }

    /// After a function that was called has returned: it keeps the windows and the stack pointer.
    pub(super) fn called(&mut self) {
        self.globals = [Value::Unknown; 8];
        for number in (8..14).chain([15]) {
            self.set(number, Value::Unknown);
        }
    }

    /// Forgets what another path does not bring, too; whether anything was forgotten.
    pub(super) fn join(&mut self, other: &State) -> Result<bool, Unbalanced> {
        if self.end != other.end {
            return Err(Unbalanced);
        }
        let mut forgotten = self.file.len() > other.file.len();
        self.file.truncate(other.file.len());
        let mine = self.globals.iter_mut().chain(&mut self.file);
        for (mine, other) in mine.zip(other.globals.iter().chain(&other.file)) {
            if *mine != *other && *mine != Value::Unknown {
                *mine = Value::Unknown;
                forgotten = true;
            }
        }
        Ok(forgotten)
    }
}

fn add(a: Value, b: Value) -> Value {
    use Value::*;
    match (a, b) {
        (Number(a), Number(b)) => Number(a.wrapping_add(b)),
        (Return(a), Number(b)) | (Number(b), Return(a)) => Return(a.wrapping_add(b)),
        (Stack(a), Number(b)) | (Number(b), Stack(a)) => Stack(a.wrapping_add(b)),
        _ => Unknown,
    }
}
