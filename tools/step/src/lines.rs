//! The cache lines that a call touches: every operand in memory of every instruction that it ran.
//!
//! The stepper writes down the registers before each instruction. What an instruction reads and
//! writes is decoded from its bytes, and where, computed from those registers; so the lines are
//! exact for any code, whoever compiled it, and no cache has to be modelled.
//!
//! What a call pushes and what it keeps below its return address is its *stack*, told apart: it is
//! in the cache whatever the call does. A prefetch touches the line that it asks for, and is no access.
//! What the kernel touches in a system call is not seen; a mask that leaves bytes out is taken for all of
//! them, and state that is saved at once (`xsave`) for its first line.
//!
//! Invariant: an instruction is decoded by its bytes and located by its registers, never by what
//! was seen at the same address before.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register, UsedMemory};

use crate::longest::decode;
use crate::{Lines, Untold};

/// Registers in the order in which Linux saves them in a signal's frame (`REG_R8` and so on); the
/// last is the address of the instruction about to run.
pub(crate) const REGISTERS: [Register; 17] = [
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
    Register::RDI,
    Register::RSI,
    Register::RBP,
    Register::RBX,
    Register::RDX,
    Register::RAX,
    Register::RCX,
    Register::RSP,
    Register::RIP,
];

/// The registers before one instruction.
pub(crate) type State = [u64; REGISTERS.len()];

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Bytes below the stack pointer that a function without calls may use.
const RED_ZONE: u64 = 128;
/// Where the counter of repetitions, the stack pointer and the instruction pointer are.
const COUNTER: usize = 14;
const STACK_POINTER: usize = 15;
const INSTRUCTION_POINTER: usize = 16;

/// The address of the instruction about to run.
pub(crate) fn address_of(state: &State) -> usize {
    state[INSTRUCTION_POINTER] as usize
}

/// Instructions that a call ran, decoded once each.
struct Code {
    factory: InstructionInfoFactory,
    known: HashMap<usize, Decoded>,
}

/// An instruction and what it uses in memory.
struct Decoded {
    instruction: Instruction,
    used: Vec<UsedMemory>,
}

impl Code {
    fn at(&mut self, address: usize) -> Result<&Decoded, Untold> {
        let decoded = match self.known.entry(address) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let instruction = decode(address).map_err(|_| Untold::Undecoded(address))?;
                let used = self.factory.info(&instruction).used_memory().to_vec();
                vacant.insert(Decoded { instruction, used })
            }
        };
        Ok(decoded)
    }
}

impl Decoded {
    /// Beginning and bytes of each place that the instruction uses in a state.
    fn places(
        &self,
        state: &State,
        thread: u64,
    ) -> impl Iterator<Item = Option<(u64, u64)>> + use<'_> {
        let state = *state;
        let resolve = move |register, _, _| value(&state, thread, register);
        let instruction = &self.instruction;
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let over = repeats && instruction.is_string_instruction() && state[COUNTER] == 0;
        let used = self.used.iter().filter(move |_| !over).map(move |place| {
            let bytes = match place.memory_size().size() {
                // What repeats is told without its size.
                0 => instruction.memory_size().size(),
                bytes => bytes,
            };
            Some((place.virtual_address(0, resolve)?, bytes.max(1) as u64))
        });
        // Told as an operand that is not accessed.
        let fetched = is_prefetch(instruction.mnemonic());
        let fetched = fetched.then(|| Some((instruction.virtual_address(0, 0, resolve)?, 1)));
        used.chain(fetched)
    }
}

fn is_prefetch(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetchw
    )
}

/// The lines of a call whose instructions ran in these states. `thread` is the base of the
/// thread's own memory (`fs`). Linear in the instructions.
pub(crate) fn of(states: &[State], thread: u64) -> Result<Lines, Untold> {
    let Some(entry) = states.first().map(|state| state[STACK_POINTER]) else {
        return Ok(Lines::default());
    };
    let lowest = states.iter().map(|state| state[STACK_POINTER]).min();
    let stack = lowest.unwrap_or(entry) - RED_ZONE..entry + size_of::<usize>() as u64;
    let mut code = Code {
        factory: InstructionInfoFactory::new(),
        known: HashMap::new(),
    };
    // The call itself pushes where it returns to.
    let mut own = BTreeSet::from([entry / LINE]);
    let mut data = BTreeSet::new();
    let mut accesses = 0;
    for state in states {
        let address = address_of(state);
        let decoded = code.at(address)?;
        let asks_only = is_prefetch(decoded.instruction.mnemonic());
        for place in decoded.places(state, thread) {
            let (start, bytes) = place.ok_or(Untold::Scattered(address))?;
            accesses += u64::from(!asks_only);
            let lines = start / LINE..=(start + bytes - 1) / LINE;
            match stack.contains(&start) {
                true => own.extend(lines),
                false => data.extend(lines),
            }
        }
    }
    Ok(Lines {
        data: data.len() as u64,
        stack: own.len() as u64,
        accesses,
    })
}

/// What a register holds, or where a segment begins.
fn value(state: &State, thread: u64, register: Register) -> Option<u64> {
    if register.is_segment_register() {
        return Some(if register == Register::FS { thread } else { 0 });
    }
    let full = register.full_register();
    let at = REGISTERS.iter().position(|known| *known == full)?;
    Some(match register.size() {
        4 => state[at] & u64::from(u32::MAX),
        _ => state[at],
    })
}

#[cfg(test)]
mod tests {
    use std::arch::naked_asm;

    use super::*;
    use crate::{Call, Stepper};

    macro_rules! code {
        ($($name:ident($($line:literal),+);)*) => {
            $(#[unsafe(naked)]
            extern "C" fn $name() {
                naked_asm!($($line),+)
            })*
        };
    }

    code! {
        nothing("ret");
        reads("mov rax, [rdi + rsi]", "ret");
        scaled("mov eax, [rdi + rsi*4]", "ret");
        modifies("add qword ptr [rdi], 1", "mov [rdi + 8], rax", "ret");
        vector("movups [rdi + rsi], xmm0", "ret");
        fills("mov rcx, rsi", "rep stosb", "ret");
        copies("mov rcx, rdx", "rep movsq", "ret");
        addresses("lea rax, [rdi]", "nop word ptr [rdi]", "ret");
        fetches("prefetcht0 [rdi + 64]", "ret");
        pushes("push rdi", "mov [rsp - 8], rdi", "pop rax", "ret");
        finds_itself("mov rax, fs:[0]", "mov rcx, [rax]", "ret");
        constant(
            "lea rdi, [rip + 2f]", "mov rax, [rip + 2f]", "mov rcx, [rdi]", "ret",
            ".balign 64", "2:", ".quad 7"
        );
    }

    /// Eight lines of data, from the beginning of one on.
    #[repr(align(64))]
    struct Arena([u64; 64]);

    fn lines(function: extern "C" fn(), arguments: impl FnOnce(usize) -> [usize; 3]) -> Lines {
        let mut arena = Box::new(Arena([0; 64]));
        let [a, b, c] = arguments(arena.0.as_mut_ptr().expose_provenance());
        let call = Call {
            function: function as *const () as usize,
            arguments: [a, b, c, 0, 0],
        };
        let mut stepper = Stepper::new().unwrap();
        // SAFETY: the functions above, with places inside the arena.
        let (_, count, lines) = unsafe { stepper.call_with_lines(call, 1000) };
        // SAFETY: as above.
        assert_eq!(count, unsafe { stepper.call(call) }.1);
        lines.unwrap()
    }

    #[test]
    fn every_line_of_every_operand_counts_once() {
        let data = |function, offset, more| lines(function, |arena| [arena + offset, more, 0]).data;
        assert_eq!(data(nothing, 0, 0), 0);
        assert_eq!(data(reads, 0, 56), 1);
        assert_eq!(data(reads, 0, 57), 2, "an operand on two lines");
        assert_eq!(data(scaled, 0, 15), 1);
        assert_eq!(data(scaled, 1, 15), 2);
        assert_eq!(data(modifies, 0, 0), 1);
        assert_eq!(data(modifies, 56, 0), 2);
        assert_eq!(data(vector, 0, 48), 1);
        assert_eq!(data(vector, 0, 49), 2);
        assert_eq!(
            data(addresses, 0, 0),
            0,
            "what is not accessed is not touched"
        );
        assert_eq!(data(fetches, 0, 0), 1, "what is fetched ahead is");
        assert_eq!(data(constant, 0, 0), 1);
        assert_eq!(data(finds_itself, 0, 0), 1, "the thread's own memory");
    }

    #[test]
    fn repetitions_touch_what_they_reach() {
        let data = |offset, bytes| lines(fills, |arena| [arena + offset, bytes, 0]).data;
        assert_eq!((data(0, 0), data(0, 1), data(0, 64)), (0, 1, 1));
        assert_eq!((data(0, 65), data(63, 2), data(1, 200)), (2, 2, 4));
        let copied = lines(copies, |arena| [arena + 256, arena + 8, 8]);
        assert_eq!((copied.data, copied.accesses), (1 + 2, 2 * 8 + 1));
    }

    #[test]
    fn the_stack_of_the_call_is_told_apart() {
        for function in [nothing, pushes] {
            let found = lines(function, |arena| [arena, 0, 0]);
            assert_eq!(found.data, 0);
            assert!((1..=2).contains(&found.stack), "{found:?}");
        }
        let found = lines(pushes, |arena| [arena, 0, 0]);
        assert_eq!(found.accesses, 4, "push, move, pop and return");
        let found = lines(modifies, |arena| [arena, 0, 0]);
        assert_eq!(found.accesses, 3, "what is read and written is one place");
        let found = lines(fetches, |arena| [arena, 0, 0]);
        assert_eq!(
            found.accesses, 1,
            "the return: a prefetch reads nothing yet"
        );
    }

    #[test]
    fn a_call_without_room_is_refused() {
        let mut stepper = Stepper::new().unwrap();
        let call = Call {
            function: nothing as *const () as usize,
            arguments: [0; 5],
        };
        // SAFETY: a function that reads nothing.
        let (_, _, lines) = unsafe { stepper.call_with_lines(call, 0) };
        assert_eq!(lines, Err(Untold::TooLong(0)));
    }
}
