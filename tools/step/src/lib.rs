//! Exact instructions and cache lines of single calls, by single-stepping, and bounds on the
//! instructions, by the longest path through the code.
//!
//! A [`Stepper`] makes a [`Call`] with the processor stopping after every
//! instruction. Counted are the `call`, every instruction of the function and
//! its return. System calls count as one instruction: the kernel is not stepped.
//! What no call can exceed says [`longest_call`]. On machines other than x86-64 under Linux,
//! both are errors. For firmware of LEON3 [`longest_on_leon3`] says it anywhere.
//!
//! Invariant: a count depends on the code and its data alone, never on load,
//! interrupts or other threads.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod lines;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod longest;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod other;
mod paths;
pub mod sparc;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use longest::longest_call;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use other::{Stepper, longest_call, so_far};
pub use sparc::longest_on_leon3;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use x86_64::{Stepper, so_far};

/// Why code tells no bound on its instructions. Addresses are of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbounded {
    /// A loop goes through this instruction.
    #[error("a loop goes through {0:#x}: how often it is repeated depends on data")]
    Loop(usize),
    /// The function at this address calls itself, directly or not.
    #[error("the function at {0:#x} calls itself")]
    Recursion(usize),
    /// Where this jump or call goes depends on data.
    #[error("the jump or call at {0:#x} goes where data says")]
    Indirect(usize),
    /// This instruction repeats, or enters the system.
    #[error("the instruction at {0:#x} repeats or enters the system")]
    Instruction(usize),
    /// There is no instruction here.
    #[error("what stands at {0:#x} is no instruction")]
    Undecoded(usize),
    /// No path returns.
    #[error("no path through the function at {0:#x} returns")]
    NeverReturns(usize),
    /// This machine's code is not read.
    #[error("code is read on x86-64 under Linux only")]
    Elsewhere,
}

/// The distinct lines of 64 bytes that a call read, wrote or fetched ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Those of data: heap, arena, static memory.
    pub data: u64,
    /// Those of the call's own stack, the return address included.
    pub stack: u64,
    /// Places in memory that its instructions used, one after another, both kinds together; what
    /// is read and written by one instruction is one.
    pub accesses: u64,
}

/// Why the lines of a call could not be told. Addresses are of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untold {
    /// More instructions ran than there was room to write down.
    #[error("the call ran more than {0} instructions: give it more room, or a shorter call")]
    TooLong(usize),
    /// What ran here is no instruction that is known.
    #[error("what ran at {0:#x} is no known instruction")]
    Undecoded(usize),
    /// This instruction uses memory at addresses out of a vector.
    #[error("the instruction at {0:#x} takes its addresses from a vector")]
    Scattered(usize),
}

/// A measured call: a function of up to five words that returns a word.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Address of the function.
    pub function: usize,
    /// Its arguments; those beyond its own are ignored by the calling convention.
    pub arguments: [usize; 5],
}

/// The shape under which all measured functions are called.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;

impl Call {
    /// Makes the call. A function without a result leaves an arbitrary word.
    ///
    /// # Safety
    /// The function is `extern "C"`, takes at most five words, belongs together
    /// with the arguments, and its own contract is kept.
    #[inline(always)]
    pub unsafe fn invoke(self) -> usize {
        let [a, b, c, d, e] = self.arguments;
        // SAFETY: `function` is the address of an extern "C" function of at
        // most five words, all passed in registers; extra ones are ignored.
        unsafe {
            let function: Function =
                std::mem::transmute::<*const (), Function>(self.function as *const ());
            function(a, b, c, d, e)
        }
    }
}
