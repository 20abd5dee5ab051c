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

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn of(code: &[u8], call_ends: usize) -> Option<Rule> {
        let mut memory = [0x90_u8; 32];
        memory[8..8 + code.len()].copy_from_slice(code);
        rule(memory.as_ptr().addr() as u64 + 8 + call_ends as u64 - 1)
    }

    #[test]
    fn what_only_returns_is_known() {
        // sub $8,%rsp; call *%rcx; add $8,%rsp; ret
        let python = [
            0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3, 0xcc,
        ];
        assert!(of(&python, 6) == Some(Rule::of(Frame::FromStack(16))));
        // push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret
        let saved = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3];
        let expected = Rule {
            frame: Frame::FromStack(16),
            pointer: Pointer::FromEnd(-16),
        };
        assert!(of(&saved, 6) == Some(expected));
        assert!(of(&[0xff, 0xd0, 0xc3], 2) == Some(Rule::of(Frame::FromStack(8))));
    }

    #[test]
    fn nothing_is_concluded_from_anything_else() {
        // Another instruction behind the call; a negative distance; no call; an address that is not the call's end.
        for (code, ends) in [
            (&[0xff, 0xd1, 0x48, 0x89, 0xc3, 0xc3][..], 2),
            (&[0xff, 0xd1, 0x48, 0x83, 0xc4, 0xf8, 0xc3], 2),
            (&[0x90, 0x90, 0x48, 0x83, 0xc4, 8, 0xc3], 2),
            (&[0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3], 3),
            (&[0xff, 0xd8, 0xc3], 2),
        ] {
            assert!(of(code, ends).is_none(), "{code:x?}");
        }
        for nowhere in [0, 1, 4096, u64::MAX, 1 << 46, 1 << 47] {
            assert!(rule(nowhere).is_none(), "{nowhere:x}");
        }
    }
}
