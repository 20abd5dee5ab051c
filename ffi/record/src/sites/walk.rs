//! From the calling function outwards, call by call.
//!
//! Tables of exception handling come first, and frame pointers only where there are none (code made at
//! run time, for one). Where both are there the tables are as fast, once their rules are kept, and
//! right for every program: whether the register of the frame pointer holds one cannot be seen, and a
//! program that is compiled without loses calls by it, or gains some that never were.
//!
//! *Invariant:* each caller's frame lies beyond that of its call, unless a signal lies between; so
//! a walk ends.

use super::modules;
use super::readable::Readable;
use super::rules::{self, Frame, Pointer, Rule};
use super::{End, Stack, cfi};
use crate::layout::{Header, MOST_CALLS};

/// Calls of this library that may lie between the program's and the walk, and signals in it: no
/// walk takes more steps than calls that are kept and these.
const MOST_STEPS: usize = MOST_CALLS + 64;

/// What of a processor's state leads to the caller.
struct State {
    /// An address in the call: of a return address, the one before.
    at: u64,
    sp: u64,
    fp: u64,
}

/// Puts the calls that led here into `stack`, without those of this library.
///
/// # Safety
/// `header` is mapped.
#[inline(never)]
pub(super) unsafe fn walk(header: *mut Header, stack: &mut Stack) {
    let mut state = here();
    let own = modules::own();
    let mut readable = Readable::of_thread(state.sp);
    stack.end = End::Cut;
    for _ in 0..MOST_STEPS {
        let rule = match rules::known(state.at) {
            Some(rule) => rule,
            // SAFETY: the caller's promise.
            None => unsafe { learn(header, state.at) },
        };
        match step(&mut state, rule, &mut readable) {
            Ok(()) => {}
            Err(end) => {
                stack.end = end;
                break;
            }
        }
        if stack.count == 0 && own.contains(&state.at) {
            continue;
        }
        match stack.calls.get_mut(stack.count) {
            Some(call) => *call = state.at,
            None => break,
        }
        stack.count += 1;
    }
    readable.keep();
}

/// Goes from a call to its caller.
#[inline(always)]
fn step(state: &mut State, rule: Rule, readable: &mut Readable) -> Result<(), End> {
    let end = match rule.frame {
        Frame::FromStack(far) => state.sp.wrapping_add_signed(far),
        Frame::FromPointer(far) => state.fp.wrapping_add_signed(far),
        Frame::SaidAt(far) => {
            let at = state.fp.wrapping_add_signed(far);
            readable.word(at).ok_or(End::Broken)?
        }
        Frame::Signal => return signal(state, readable).ok_or(End::Broken),
        Frame::Outermost => return Err(End::Whole),
        Frame::Unknown => return by_frame_pointer(state, readable),
    };
    if end <= state.sp {
        return Err(End::Broken);
    }
    let back = readable.word(end.wrapping_sub(8)).ok_or(End::Broken)?;
    let fp = match rule.pointer {
        Pointer::Same => state.fp,
        Pointer::FromEnd(far) => {
            let at = end.wrapping_add_signed(far);
            readable.word(at).ok_or(End::Broken)?
        }
        Pointer::FromFrame(far) => {
            let at = state.fp.wrapping_add_signed(far);
            readable.word(at).ok_or(End::Broken)?
        }
    };
    if back == 0 {
        return Err(End::Whole);
    }
    *state = State {
        at: back - 1,
        sp: end,
        fp,
    };
    Ok(())
}

/// As the code would have it that begins by saving the frame pointer.
fn by_frame_pointer(state: &mut State, readable: &mut Readable) -> Result<(), End> {
    if state.fp == 0 {
        // As the outermost code begins.
        return Err(End::Whole);
    }
    if state.fp < state.sp {
        return Err(End::Broken);
    }
    let fp = readable.word(state.fp).ok_or(End::Broken)?;
    let back = readable.word(state.fp + 8).ok_or(End::Broken)?;
    if back == 0 {
        return Err(End::Whole);
    }
    *state = State {
        at: back - 1,
        sp: state.fp + 16,
        fp,
    };
    Ok(())
}

/// Goes from the code to which a signal's handler returns to the code that was interrupted.
#[cfg(target_arch = "x86_64")]
fn signal(state: &mut State, readable: &mut Readable) -> Option<()> {
    // The stack pointer points at a `ucontext_t`, whose registers begin at byte 40.
    const REGISTERS: u64 = 40;
    let mut register = |number: u64| readable.word(state.sp + REGISTERS + 8 * number);
    let (fp, sp, at) = (register(10)?, register(15)?, register(16)?);
    *state = State { at, sp, fp };
    Some(())
}

/// Goes from the code to which a signal's handler returns to the code that was interrupted.
#[cfg(target_arch = "aarch64")]
fn signal(_: &mut State, _: &mut Readable) -> Option<()> {
    None
}

/// Finds the rule of an address that is met for the first time.
///
/// # Safety
/// `header` is mapped.
#[cold]
#[inline(never)]
unsafe fn learn(header: *mut Header, at: u64) -> Rule {
    // SAFETY: the caller's promise.
    let module = unsafe { modules::find(header, at) };
    let rule = match module {
        Some(module) => cfi::rule(&module, at),
        None => at_run_time(at),
    };
    let rule = rule.unwrap_or(Rule::of(Frame::Unknown));
    rules::keep(at, rule);
    rule
}

/// The rule of a call in code that was made at run time. It is kept as others are: where such code is thrown away and
/// other takes its place, walks through there may end.
#[cfg(target_arch = "x86_64")]
fn at_run_time(at: u64) -> Option<Rule> {
    super::thunk::rule(at)
}

/// The rule of a call in code that was made at run time.
#[cfg(target_arch = "aarch64")]
fn at_run_time(_: u64) -> Option<Rule> {
    None
}

/// The state in the calling function.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn here() -> State {
    let (at, sp, fp);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!(
            "lea {at}, [rip]",
            "mov {sp}, rsp",
            "mov {fp}, rbp",
            at = out(reg) at,
            sp = out(reg) sp,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    State { at, sp, fp }
}

/// The state in the calling function.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn here() -> State {
    let (at, sp, fp);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!(
            "adr {at}, .",
            "mov {sp}, sp",
            "mov {fp}, x29",
            at = out(reg) at,
            sp = out(reg) sp,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    State { at, sp, fp }
}
