//! The longest path through a function's machine code: a bound on the instructions of every
//! call, whatever data it meets.
//!
//! The code is read where it stands in this process. Each instruction is a node of a graph
//! ([`crate::paths`]); a path ends at a return. A call adds the longest path of what it calls. Paths on which the function
//! does not return are left out, and so is unwinding: a call that the compiler knows not to come
//! back is followed by an instruction that traps, or by padding that does. A loop, a recursion, a repeated string instruction or a jump
//! through a register has no bound that the code alone would tell, and is an error.
//!
//! Invariant: no execution that returns takes more instructions than the bound; it counts as
//! [`Stepper::call`](crate::Stepper::call) does, the call and the return included. Whether a
//! path can be taken at all is not asked, so the bound may be larger than any call.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

use crate::Unbounded;
use crate::paths::Functions;
use crate::paths::{self, Edge, Graph, Knot, Known, To};

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
    let path = Code::default().of_function(function)?;
    Ok(1 + path.ok_or(Unbounded::NeverReturns(function))?)
}

#[derive(Default)]
struct Code {
    functions: Functions<usize, Option<u64>>,
}

type Next = Edge<usize, 1>;

/// An instruction, and where the path goes on.
fn on(to: Option<usize>, instructions: u64) -> Option<Next> {
    to.map(|to| Edge {
        to: To::Place(to),
        weight: [instructions],
    })
}

impl Code {
    /// Instructions of the longest path to a return, `None` where no path returns.
    fn of_function(&mut self, entry: usize) -> Result<Option<u64>, Unbounded> {
        match self.functions.open(entry) {
            Known::Open => return Err(Unbounded::Recursion(entry)),
            Known::Done(longest) => return Ok(longest),
            Known::New => {}
        }
        let graph = self.graph(entry)?;
        let paths = paths::longest(&graph, entry, &|_| None);
        let [longest, _] = paths.map_err(|knot| match knot {
            Knot::Loop(place) | Knot::Entries(place) => Unbounded::Loop(place),
        })?;
        let longest = longest.map(|[instructions]| instructions);
        self.functions.close(entry, longest);
        Ok(longest)
    }

    fn graph(&mut self, entry: usize) -> Result<Graph<usize, 1>, Unbounded> {
        let mut graph = Graph::new();
        let mut work = vec![entry];
        while let Some(address) = work.pop() {
            if graph.contains_key(&address) {
                continue;
            }
            let edges = self.edges(address)?;
            work.extend(edges.iter().filter_map(|edge| match edge.to {
                To::Place(place) => Some(place),
                To::Return(_) => None,
            }));
            graph.insert(address, edges);
        }
        Ok(graph)
    }

    fn edges(&mut self, address: usize) -> Result<Vec<Next>, Unbounded> {
        let instruction = decode(address)?;
        let next = instruction.next_ip() as usize;
        let to = |first, second| {
            Ok([on(first, 1), on(second, 1)]
                .into_iter()
                .flatten()
                .collect())
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
            FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                to(Some(instruction.near_branch_target() as usize), None)
            }
            FlowControl::Return => Ok(vec![Edge {
                to: To::Return(0),
                weight: [1],
            }]),
            FlowControl::IndirectBranch if instruction.is_jmp_near_indirect() => {
                match through_table(&instruction) {
                    Some(target) => to(Some(target), None),
                    None => Err(Unbounded::Indirect(address)),
                }
            }
            FlowControl::Call | FlowControl::IndirectCall
                if instruction.is_call_near() || instruction.is_call_near_indirect() =>
            {
                let trap = |after: Instruction| {
                    matches!(after.code(), iced_x86::Code::Ud2 | iced_x86::Code::Int3)
                };
                if decode(next).is_ok_and(trap) {
                    return to(None, None);
                }
                let target = match instruction.flow_control() {
                    FlowControl::Call => Some(instruction.near_branch_target() as usize),
                    _ => through_table(&instruction),
                };
                let called = self.of_function(target.ok_or(Unbounded::Indirect(address))?)?;
                let over = called.and_then(|called| on(Some(next), 1 + called));
                Ok(over.into_iter().collect())
            }
            // `ud2` and `int3` end a path that the compiler takes for impossible.
            FlowControl::Exception => to(None, None),
            FlowControl::Interrupt if instruction.code() == iced_x86::Code::Int3 => to(None, None),
            // Among calls are those of the system.
            FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend => Err(Unbounded::Instruction(address)),
        }
    }
}

pub(crate) fn decode(address: usize) -> Result<Instruction, Unbounded> {
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

#[cfg(test)]
mod tests {
    use std::arch::naked_asm;

    use super::*;
    use crate::{Call, Stepper};

    macro_rules! code {
        ($($name:ident($($line:literal),+ $(; $($other:ident),+)?);)*) => {
            $(#[unsafe(naked)]
            extern "C" fn $name() {
                naked_asm!($($line),+ $(, $(sym $other),+)?)
            })*
        };
    }

    code! {
        straight("mov eax, edi", "ret");
        forked("test edi, edi", "jz 2f", "nop", "nop", "nop", "2:", "ret");
        rejoined(
            "test edi, edi", "jz 2f", "nop", "jmp 3f",
            "2:", "nop", "nop", "nop",
            "3:", "test esi, esi", "jz 4f", "nop", "4:", "ret"
        );
        calling("call {}", "nop", "call {}", "ret"; straight, forked);
        tail("nop", "jmp {}"; straight);
        looping("2:", "dec edi", "jnz 2b", "ret");
        recursive("dec edi", "jz 2f", "call {}", "2:", "ret"; recursive);
        data("jmp rdi");
        copying("rep movsb", "ret");
        system("syscall", "ret");
        aborting("test edi, edi", "jz 2f", "ret", "2:", "call {}", "ud2"; looping);
        lost("ud2");
        losing("test edi, edi", "jz 2f", "ret", "2:", "nop", "call {}", "nop", "nop", "ret"; lost);
    }

    fn longest(function: extern "C" fn()) -> Result<u64, Unbounded> {
        // SAFETY: the functions above.
        unsafe { longest_call(function as *const () as usize) }
    }

    #[test]
    fn the_longer_branch_counts_and_calls_add_theirs() {
        assert_eq!(longest(straight), Ok(3));
        assert_eq!(longest(forked), Ok(7));
        assert_eq!(longest(rejoined), Ok(1 + 2 + 3 + 2 + 1 + 1));
        assert_eq!(longest(calling), Ok(1 + 3 + 1 + 7 + 1));
        assert_eq!(longest(tail), Ok(1 + 2 + 2));
    }

    #[test]
    fn a_bound_is_met_by_some_call_and_exceeded_by_none() {
        let mut stepper = Stepper::new().unwrap();
        for function in [straight, forked, rejoined, calling, tail] {
            let counts = (0..4).map(|bits| {
                let call = Call {
                    function: function as *const () as usize,
                    arguments: [bits & 1, bits >> 1, 0, 0, 0],
                };
                // SAFETY: the functions above read registers only.
                unsafe { stepper.call(call) }.1
            });
            assert_eq!(counts.max(), longest(function).ok());
        }
    }

    #[test]
    fn what_repeats_has_no_bound() {
        let at = |function: extern "C" fn()| function as *const () as usize;
        assert_eq!(longest(looping), Err(Unbounded::Loop(at(looping))));
        assert_eq!(longest(recursive), Err(Unbounded::Recursion(at(recursive))));
        assert_eq!(longest(data), Err(Unbounded::Indirect(at(data))));
        assert_eq!(longest(copying), Err(Unbounded::Instruction(at(copying))));
        assert_eq!(longest(system), Err(Unbounded::Instruction(at(system))));
    }

    #[test]
    fn paths_that_do_not_return_are_left_out() {
        assert_eq!(longest(aborting), Ok(1 + 3));
        assert_eq!(longest(losing), Ok(1 + 3));
        assert_eq!(
            longest(lost),
            Err(Unbounded::NeverReturns(lost as *const () as usize))
        );
    }
}
