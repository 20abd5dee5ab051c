//! Stepping on x86-64 under Linux: the trap flag of EFLAGS is set just before a
//! call, the processor traps after every instruction, and the handler counts
//! until the call has returned.
//!
//! A repeated string instruction traps once an iteration but counts once, unless its
//! repetitions are asked for.
//!
//! Invariant: the trap flag is set only between the `popfq` in [`Stepper::call`]
//! and the first trap at `STOP`; one thread steps at a time (the lock).

use std::arch::asm;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lines::{self, State, address_of};
use crate::{Call, Lines, Untold};

/// Where the stepped call returns to.
static STOP: AtomicUsize = AtomicUsize::new(0);
/// Instructions of the call so far.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Address of the instruction about to run at the last trap.
static LAST: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the repetitions of string instructions, beyond the first of each.
static REPEATED: AtomicU64 = AtomicU64::new(0);
/// Where the registers before each instruction go, if wanted, repetitions included.
static STATES: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
/// Room there.
static ROOM: AtomicUsize = AtomicUsize::new(0);
/// States met so far, written down or not.
static MET: AtomicUsize = AtomicUsize::new(0);

/// Only one thread may step.
static STEPPING: Mutex<()> = Mutex::new(());

const TRAP_FLAG: i64 = 0x100;

/// The right to step, with the trap handler installed.
pub struct Stepper {
    previous: libc::sigaction,
    /// The base of the stepping thread's own memory.
    thread: u64,
    /// Room for states, kept between calls.
    states: Vec<State>,
    _alone: MutexGuard<'static, ()>,
}

impl Stepper {
    /// Installs the handler; waits for another stepper to finish.
    ///
    /// # Errors
    /// What the system says where it refuses the handler.
    pub fn new() -> std::io::Result<Self> {
        let alone = STEPPING.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = thread_base()?;
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_trap;
        // SAFETY: sigaction is plain data for which zero is valid.
        let (mut action, mut previous): (libc::sigaction, libc::sigaction) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler touches only atomics and its own context.
        if unsafe { libc::sigaction(libc::SIGTRAP, &action, &mut previous) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Stepper {
            previous,
            thread,
            states: Vec::new(),
            _alone: alone,
        })
    }

    /// Makes a call, returning its result and its instructions.
    /// One trap an instruction: some microseconds.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call(&mut self, call: Call) -> (usize, u64) {
        COUNT.store(0, Relaxed);
        REPEATED.store(0, Relaxed);
        LAST.store(0, Relaxed);
        let [a, b, c, d, e] = call.arguments;
        let result: usize;
        // SAFETY: without `nostack` the stack is aligned for a call and the red
        // zone is free; all registers a C function may change are declared. The
        // handler clears the trap flag at label 2.
        unsafe {
            asm!(
                "lea r11, [rip + 2f]",
                "mov [r10], r11",
                "pushfq",
                "or qword ptr [rsp], 0x100",
                "popfq",
                "call rax",
                "2:",
                in("r10") &raw const STOP,
                inout("rax") call.function => result,
                inout("rdi") a => _,
                inout("rsi") b => _,
                inout("rdx") c => _,
                inout("rcx") d => _,
                inout("r8") e => _,
                clobber_abi("C"),
            );
        }
        (result, COUNT.load(Relaxed))
    }

    /// As [`Stepper::call`], but a repeated string instruction counts one more for each 16
    /// bytes that it repeats over: about what copying through registers takes. So the count of
    /// a copy grows with its bytes, whichever way the C library copies.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_repetitions(&mut self, call: Call) -> (usize, u64) {
        // SAFETY: the caller's promise.
        let (result, _) = unsafe { self.call(call) };
        (result, so_far())
    }

    /// As [`Stepper::call`], writing down the address of every instruction run,
    /// up to `room`.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_path(&mut self, call: Call, room: usize) -> (usize, u64, Vec<usize>) {
        let mut states = Vec::new();
        // SAFETY: the caller's promise.
        let (result, count, _) = unsafe { self.call_with_states(call, room, &mut states) };
        let mut path: Vec<usize> = states.iter().map(address_of).collect();
        // Repetitions of one instruction are one.
        path.dedup_by(|next, last| next == last && is_repeat(*last));
        (result, count, path)
    }

    /// As [`Stepper::call`], with the cache lines that the call touches. `room` is how many
    /// instructions it may run, repetitions included: 136 bytes each, kept for the next call.
    /// Beside stepping some tens of nanoseconds an instruction.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_lines(
        &mut self,
        call: Call,
        room: usize,
    ) -> (usize, u64, Result<Lines, Untold>) {
        let mut states = std::mem::take(&mut self.states);
        // SAFETY: the caller's promise.
        let (result, count, met) = unsafe { self.call_with_states(call, room, &mut states) };
        let lines = match met <= room {
            true => lines::of(&states, self.thread),
            false => Err(Untold::TooLong(room)),
        };
        self.states = states;
        (result, count, lines)
    }

    /// Writes the states before the first `room` instructions; returns how many there were.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    unsafe fn call_with_states(
        &mut self,
        call: Call,
        room: usize,
        states: &mut Vec<State>,
    ) -> (usize, u64, usize) {
        states.clear();
        states.reserve(room);
        MET.store(0, Relaxed);
        ROOM.store(room, Relaxed);
        STATES.store(states.as_mut_ptr(), Relaxed);
        // SAFETY: the caller's promise.
        let (result, count) = unsafe { self.call(call) };
        STATES.store(std::ptr::null_mut(), Relaxed);
        let met = MET.load(Relaxed);
        // SAFETY: there is room for so many, and the handler wrote each.
        unsafe { states.set_len(met.min(room)) };
        (result, count, met)
    }
}

/// The base of the thread's own memory.
fn thread_base() -> std::io::Result<u64> {
    const GET_FS: libc::c_int = 0x1003;
    let mut base = 0_u64;
    // SAFETY: the call writes one word.
    match unsafe { libc::syscall(libc::SYS_arch_prctl, GET_FS, &raw mut base) } {
        0 => Ok(base),
        _ => Err(std::io::Error::last_os_error()),
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // SAFETY: restores what `new` replaced.
        unsafe { libc::sigaction(libc::SIGTRAP, &self.previous, std::ptr::null_mut()) };
    }
}

/// Instructions of the call under way up to here, repetitions as in
/// [`Stepper::call_with_repetitions`]. For code that is stepped itself; elsewhere those of the
/// last call.
pub fn so_far() -> u64 {
    COUNT.load(Relaxed) + REPEATED.load(Relaxed) / 16
}

extern "C" fn on_trap(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the interrupted context to SA_SIGINFO handlers;
    // it is ours to change until we return.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let next = registers[libc::REG_RIP as usize] as usize;
    if next == STOP.load(Relaxed) {
        registers[libc::REG_EFL as usize] &= !TRAP_FLAG;
    } else {
        note(registers);
    }
    if LAST.swap(next, Relaxed) == next && is_repeat(next) {
        let repeated = REPEATED.load(Relaxed);
        REPEATED.store(repeated + width(next), Relaxed);
        return;
    }
    let count = COUNT.load(Relaxed);
    COUNT.store(count + 1, Relaxed);
}

/// Writes the registers down, if they are wanted.
fn note(registers: &[libc::greg_t; 23]) {
    let states = STATES.load(Relaxed);
    if states.is_null() {
        return;
    }
    let met = MET.load(Relaxed);
    MET.store(met + 1, Relaxed);
    if met < ROOM.load(Relaxed) {
        // SAFETY: `states` has ROOM places.
        let state = unsafe { &mut *states.add(met) };
        for (word, register) in state.iter_mut().zip(registers) {
            *word = *register as u64;
        }
    }
}

/// Whether a repeated string instruction is at `address`.
fn is_repeat(address: usize) -> bool {
    // SAFETY: the processor is about to execute this byte, so it is readable
    // in every mapping that the harness runs code from.
    matches!(unsafe { (address as *const u8).read() }, 0xF2 | 0xF3)
}

/// Bytes of one repetition of the repeated string instruction at `address`.
fn width(address: usize) -> u64 {
    // SAFETY: as in `is_repeat`: behind the prefix follow at most a second one and the opcode.
    let byte = |at: usize| unsafe { (address as *const u8).add(at).read() };
    let half = byte(1) == 0x66;
    let extended = byte(1 + usize::from(half));
    let wide = extended & 0xF8 == 0x48;
    let opcode = byte(1 + usize::from(half) + usize::from(extended & 0xF0 == 0x40));
    match (opcode & 1, wide, half) {
        (0, _, _) => 1,
        (_, true, _) => 8,
        (_, false, true) => 2,
        (_, false, false) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::naked_asm;

    #[unsafe(naked)]
    extern "C" fn four() -> usize {
        naked_asm!("mov eax, 7", "nop", "nop", "ret")
    }

    #[unsafe(naked)]
    unsafe extern "C" fn fill(place: *mut u8, bytes: usize) {
        naked_asm!("mov ecx, esi", "xor eax, eax", "rep stosb", "ret")
    }

    fn count(function: usize, arguments: [usize; 5]) -> (usize, u64) {
        let mut stepper = Stepper::new().unwrap();
        // SAFETY: test functions with matching arguments.
        unsafe {
            stepper.call(Call {
                function,
                arguments,
            })
        }
    }

    #[test]
    fn counts_call_body_and_return() {
        assert_eq!(count(four as *const () as usize, [0; 5]), (7, 5));
    }

    #[test]
    fn a_repeated_instruction_is_one() {
        let mut bytes = [1_u8; 100];
        let place = bytes.as_mut_ptr().expose_provenance();
        let (_, count) = count(fill as *const () as usize, [place, 100, 0, 0, 0]);
        assert_eq!((count, bytes), (5, [0; 100]));
    }

    #[unsafe(naked)]
    unsafe extern "C" fn fill_words(place: *mut u64, words: usize) {
        naked_asm!("mov ecx, esi", "xor eax, eax", "rep stosq", "ret")
    }

    #[test]
    fn repetitions_count_by_their_bytes() {
        let mut stepper = Stepper::new().unwrap();
        let mut words = [1_u64; 64];
        let place = words.as_mut_ptr().expose_provenance();
        let mut count = |function: usize, repetitions: usize| {
            let arguments = [place, repetitions, 0, 0, 0];
            // SAFETY: test functions with matching arguments, within the array.
            let (_, count) = unsafe {
                stepper.call_with_repetitions(Call {
                    function,
                    arguments,
                })
            };
            count
        };
        assert_eq!(count(fill as *const () as usize, 1), 5);
        assert_eq!(count(fill as *const () as usize, 65), 5 + 4);
        assert_eq!(count(fill_words as *const () as usize, 33), 5 + 16);
        assert_eq!(words[..33], [0; 33]);
    }

    #[test]
    fn the_path_names_every_instruction() {
        let entry = four as *const () as usize;
        let mut stepper = Stepper::new().unwrap();
        let call = Call {
            function: entry,
            arguments: [0; 5],
        };
        // SAFETY: a function without arguments.
        let (_, count, path) = unsafe { stepper.call_with_path(call, 100) };
        assert_eq!(count, 5);
        assert_eq!(path, [entry, entry + 5, entry + 6, entry + 7]);
    }
}
