//! Calls that lie in code made at run time, for which there are no tables: of those that do nothing behind their call
//! but return, the caller is where they return to.
//!
//! So are the trampolines by which Python (from 3.12 on, asked by `PYTHONPERFSUPPORT`) makes its functions visible: each
//! function's frame is one of the machine, without a frame pointer.
//!
//! *Invariant:* nothing is concluded from anything but a call through a register, directly followed by what is left to be
//! done: the stack pointer is put back, the frame pointer perhaps, and that is all.

use super::rules::{Frame, Pointer, Rule};
use crate::kernel;

/// Bytes that are looked at: those of the call, and behind it.
const CALL: usize = 2;
const BEHIND: usize = 6;

/// The rule of a call whose last byte is at `at`, in code without tables.
pub(super) fn rule(at: u64) -> Option<Rule> {
    let begins = at.wrapping_add(1).wrapping_sub(CALL as u64);
    let bytes = bytes(begins)?;
    let (call, behind) = bytes.split_at(CALL);
    // `call *%register`, one of the first eight.
    if !matches!(call, [0xff, 0xd0..=0xd7]) {
        return None;
    }
    // `add $bytes,%rsp`
    let (freed, behind) = match behind {
        [0x48, 0x83, 0xc4, bytes, behind @ ..] if bytes & 0x87 == 0 => (i64::from(*bytes), behind),
        behind => (0, behind),
    };
    match behind {
        // `ret`
        [0xc3, ..] => Some(Rule::of(Frame::FromStack(freed + 8))),
        // `pop %rbp; ret`
        [0x5d, 0xc3, ..] => Some(Rule {
            frame: Frame::FromStack(freed + 16),
            pointer: Pointer::FromEnd(-16),
        }),
        _ => None,
    }
}

/// The bytes at an address, if all can be read.
fn bytes(address: u64) -> Option<[u8; CALL + BEHIND]> {
    const LENGTH: u64 = (CALL + BEHIND) as u64;
    if address >> 47 != 0 {
        return None;
    }
    // The kernel is asked for words: for those with the first byte and with the last.
    let readable = kernel::readable(address & !7) && kernel::readable((address + LENGTH - 1) & !7);
    // SAFETY: the bytes can be read. Whoever writes there while this thread is in a call from there is at
    // odds with itself; what is read is believed as little as any byte.
    readable.then(|| unsafe { (address as *const [u8; CALL + BEHIND]).read_volatile() })
}
