//! The longest path through a function's machine code: a bound on the instructions of every
//! call, whatever data it meets.
//!
//! The code is read where it stands in this process. Each instruction is a node; a path ends
//! at a return. A call adds the longest path of what it calls. Paths on which the function
//! does not return are left out, and so is unwinding: a call that the compiler knows not to come
//! back is followed by an instruction that traps, or by padding that does. A loop, a recursion, a repeated string instruction or a jump
//! through a register has no bound that the code alone would tell, and is an error.
//!
//! Invariant: no execution that returns takes more instructions than the bound; it counts as
//! [`Stepper::call`](crate::Stepper::call) does, the call and the return included. Whether a
//! path can be taken at all is not asked, so the bound may be larger than any call.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

use crate::Unbounded;

/// Bytes of the longest instruction.
const LONGEST_INSTRUCTION: usize = 15;
/// Bytes of the smallest page.
const PAGE: usize = 4096;

/// The most instructions that a call of the function can take, the call and the return
/// included. Linear in the instructions of the function and of those that it calls.
///
/// # Errors
/// [`Unbounded`]: the code alone tells no bound.
///
/// # Safety
/// `function` is the address of a function of this process, whose code and whose tables of
/// addresses do not change.
pub unsafe fn longest_call(function: usize) -> Result<u64, Unbounded> {
    let mut paths = Paths::default();
    let path = paths.of_function(function)?;
    Ok(1 + path.ok_or(Unbounded::NeverReturns(function))?)
}

/// Instructions from a node to a return, `None` where no path returns.
type Longest = Option<u64>;

/// What is known of a node or a function.
#[derive(Clone, Copy)]
enum Known {
    /// It is being looked at: who meets it again goes round.
    Open,
    Done(Longest),
}

#[derive(Default)]
struct Paths {
    nodes: HashMap<usize, Known>,
    functions: HashMap<usize, Known>,
}

/// Where a path goes on after an instruction.
struct Node {
    /// Instructions here: one, and those of a function that is called.
    here: u64,
    /// What may follow.
    successors: [Option<usize>; 2],
    returns: bool,
}

impl Paths {
    fn of_function(&mut self, entry: usize) -> Result<Longest, Unbounded> {
        match self.functions.get(&entry) {
            Some(Known::Open) => return Err(Unbounded::Recursion(entry)),
            Some(Known::Done(longest)) => return Ok(*longest),
            None => {}
        }
        self.functions.insert(entry, Known::Open);
        let longest = self.from(entry)?;
        self.functions.insert(entry, Known::Done(longest));
        Ok(longest)
    }

    /// The longest path from an instruction. Depth first, on a stack of its own.
    fn from(&mut self, start: usize) -> Result<Longest, Unbounded> {
        let mut stack = vec![(start, None::<Node>)];
        while let Some((address, node)) = stack.pop() {
            if let Some(node) = node {
                // All that follows is known.
                let after = node
                    .successors
                    .iter()
                    .flatten()
                    .map(|next| self.done(*next));
                let longest = match node.returns {
                    true => Some(node.here),
                    false => after.max().flatten().map(|longest| longest + node.here),
                };
                self.nodes.insert(address, Known::Done(longest));
                continue;
            }
            match self.nodes.get(&address) {
                Some(Known::Done(_)) => continue,
                // Its successors are pushed above it, so what is open lies on the path here.
                Some(Known::Open) => return Err(Unbounded::Loop(address)),
                None => {}
            }
            let node = self.node(address)?;
            let successors = node.successors;
            self.nodes.insert(address, Known::Open);
            stack.push((address, Some(node)));
            stack.extend(successors.iter().flatten().map(|next| (*next, None)));
        }
        Ok(self.done(start))
    }

    fn done(&self, address: usize) -> Longest {
        match self.nodes.get(&address) {
            Some(Known::Done(longest)) => *longest,
            Some(Known::Open) | None => None,
        }
    }

    fn node(&mut self, address: usize) -> Result<Node, Unbounded> {
        let instruction = decode(address)?;
        let next = instruction.next_ip() as usize;
        let to = |first, second| {
            Ok(Node {
                here: 1,
                successors: [first, second],
                returns: false,
            })
        };
        // Before other instructions the prefix is a part of them.
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        if repeats && instruction.is_string_instruction() {
            return Err(Unbounded::Instruction(address));
        }
        match instruction.flow_control() {
            FlowControl::Next => to(Some(next), None),
            FlowControl::ConditionalBranch => {
                to(Some(next), Some(instruction.near_branch_target() as usize))
            }
            FlowControl::UnconditionalBranch => {
                to(Some(instruction.near_branch_target() as usize), None)
            }
            FlowControl::Return => Ok(Node {
                here: 1,
                successors: [None, None],
                returns: true,
            }),
            FlowControl::IndirectBranch => match through_table(&instruction) {
                Some(target) => to(Some(target), None),
                None => Err(Unbounded::Indirect(address)),
            },
            FlowControl::Call | FlowControl::IndirectCall => {
                let trap = |after: Instruction| matches!(after.code(), Code::Ud2 | Code::Int3);
                if decode(next).is_ok_and(trap) {
                    return to(None, None);
                }
                let target = match instruction.flow_control() {
                    FlowControl::Call => Some(instruction.near_branch_target() as usize),
                    _ => through_table(&instruction),
                };
                let called = self.of_function(target.ok_or(Unbounded::Indirect(address))?)?;
                Ok(Node {
                    here: 1 + called.unwrap_or(0),
                    successors: [called.map(|_| next), None],
                    returns: false,
                })
            }
            // `ud2` and `int3` end a path that the compiler takes for impossible.
            FlowControl::Exception => to(None, None),
            FlowControl::Interrupt if instruction.code() == Code::Int3 => to(None, None),
            FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
                Err(Unbounded::Instruction(address))
            }
        }
    }
}

fn decode(address: usize) -> Result<Instruction, Unbounded> {
    // What ends before its page does is read no further: the next page may not be there.
    let here = LONGEST_INSTRUCTION.min(PAGE - address % PAGE);
    let mut instruction = decode_within(address, here);
    if instruction.is_invalid() && here < LONGEST_INSTRUCTION {
        instruction = decode_within(address, LONGEST_INSTRUCTION);
    }
    match instruction.is_invalid() {
        true => Err(Unbounded::Undecoded(address)),
        false => Ok(instruction),
    }
}

fn decode_within(address: usize, bytes: usize) -> Instruction {
    // SAFETY: code stands at the address: that of the function (the caller's promise), one that
    // it jumps to, or one behind an instruction that goes on there. `bytes` reaches into the
    // next page only if the instruction does.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), bytes) };
    Decoder::with_ip(64, bytes, address as u64, DecoderOptions::NONE).decode()
}

/// Where a jump or call goes whose target stands in a table at a fixed place, as calls between
/// libraries do.
fn through_table(instruction: &Instruction) -> Option<usize> {
    let fixed = instruction.op0_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RIP
        && instruction.memory_index() == Register::None;
    // SAFETY: the loader has filled the table, which does not change (the caller's promise).
    fixed.then(|| unsafe {
        let entry = instruction.memory_displacement64() as usize;
        std::ptr::with_exposed_provenance::<usize>(entry).read()
    })
}
