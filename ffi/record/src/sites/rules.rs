//! How to come from a call to its caller, for each address once.
//!
//! Nearly every call on x86-64 has one of few forms: its frame ends at a distance from the stack
//! pointer or from the frame pointer, the return address lies below that end, and the caller's frame
//! pointer is unchanged or saved at a distance. A [`Rule`] is such a form; tables of exception handling
//! are decoded to it ([`super::cfi`]) and kept packed in one word, together with the rest of the address
//! that its place in the table does not tell.
//!
//! *Invariant:* a word of the table is a rule of the address it says, or empty; it is read and
//! written whole, so threads and signal handlers need no lock.

use core::sync::atomic::{AtomicU64, Ordering};

/// Where the frame of a call ends (the canonical frame address), or what else its caller is found by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// So far above the stack pointer.
    FromStack(i64),
    /// So far above the frame pointer.
    FromPointer(i64),
    /// As the word says that lies so far from the frame pointer.
    SaidAt(i64),
    /// It is no call: a signal came, and the kernel has put all registers above the stack pointer.
    Signal,
    /// It is the outermost.
    Outermost,
    /// Tables say nothing; it may have a frame pointer.
    Unknown,
}

/// What the frame pointer of the caller is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointer {
    /// That of the call.
    Same,
    /// The word at a distance from the end of the frame.
    FromEnd(i64),
    /// The word at a distance from the frame pointer.
    FromFrame(i64),
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) frame: Frame,
    pub(super) pointer: Pointer,
}

impl Rule {
    /// A rule in which only the frame counts.
    pub(super) const fn of(frame: Frame) -> Rule {
        Rule {
            frame,
            pointer: Pointer::Same,
        }
    }
}

/// Bits of addresses that are packed.
const ADDRESS_BITS: u32 = 47;
/// log2 of the words of the table.
const TABLE_SHIFT: u32 = 14;
/// Bits of an address that its place does not tell.
const REST_BITS: u32 = ADDRESS_BITS - TABLE_SHIFT;
/// Bits of a rule: what it is by (3), a distance (16), by what the frame pointer is (2), a distance (10).
const RULE_BITS: u32 = 64 - REST_BITS;
/// Multiplying by an odd number loses nothing, and spreads neighbours.
const FACTOR: u64 = 0x79b9_7f4a_7c15;

static TABLE: [AtomicU64; 1 << TABLE_SHIFT] = [const { AtomicU64::new(0) }; 1 << TABLE_SHIFT];

/// The place of `address` in the table, and the rest of it.
#[inline(always)]
fn place(address: u64) -> (&'static AtomicU64, u64) {
    let mixed = address.wrapping_mul(FACTOR) & ((1 << ADDRESS_BITS) - 1);
    let place = (mixed >> REST_BITS) as usize & ((1 << TABLE_SHIFT) - 1);
    (&TABLE[place], mixed & ((1 << REST_BITS) - 1))
}

/// The rule of `address`, if it is known.
#[inline(always)]
pub(super) fn known(address: u64) -> Option<Rule> {
    let (place, rest) = place(address);
    let word = place.load(Ordering::Relaxed);
    if word >> RULE_BITS != rest || address >> ADDRESS_BITS != 0 {
        return None;
    }
    unpack(word)
}

/// Keeps the rule of `address`, if it can be packed.
pub(super) fn keep(address: u64, rule: Rule) {
    let (place, rest) = place(address);
    if address >> ADDRESS_BITS == 0
        && let Some(packed) = pack(rule)
    {
        place.store(rest << RULE_BITS | packed, Ordering::Relaxed);
    }
}

/// Forgets all.
pub(super) fn forget() {
    for place in &TABLE {
        place.store(0, Ordering::Relaxed);
    }
}

/// `distance` in words, if it is whole ones and fits `bits` bits with its sign.
fn words(distance: i64, bits: u32) -> Option<u64> {
    let words = distance >> 3;
    let most = 1 << (bits - 1);
    (distance & 7 == 0 && (-most..most).contains(&words))
        .then_some(words as u64 & ((1 << bits) - 1))
}

/// The distance that the low `bits` bits of `packed` say.
#[inline(always)]
fn distance(packed: u64, bits: u32) -> i64 {
    ((packed << (64 - bits)) as i64 >> (64 - bits)) << 3
}

fn pack(rule: Rule) -> Option<u64> {
    let (by, far) = match rule.frame {
        Frame::FromStack(far) => (1, far),
        Frame::FromPointer(far) => (2, far),
        Frame::SaidAt(far) => (3, far),
        Frame::Signal => (4, 0),
        Frame::Outermost => (5, 0),
        Frame::Unknown => (6, 0),
    };
    let (pointer, pointer_far) = match rule.pointer {
        Pointer::Same => (0, 0),
        Pointer::FromEnd(far) => (1, far),
        Pointer::FromFrame(far) => (2, far),
    };
    Some(by << 28 | words(far, 16)? << 12 | pointer << 10 | words(pointer_far, 10)?)
}

#[inline(always)]
fn unpack(word: u64) -> Option<Rule> {
    let far = distance(word >> 12, 16);
    let frame = match word >> 28 & 7 {
        1 => Frame::FromStack(far),
        2 => Frame::FromPointer(far),
        3 => Frame::SaidAt(far),
        4 => Frame::Signal,
        5 => Frame::Outermost,
        6 => Frame::Unknown,
        _ => return None,
    };
    let far = distance(word, 10);
    let pointer = match word >> 10 & 3 {
        1 => Pointer::FromEnd(far),
        2 => Pointer::FromFrame(far),
        _ => Pointer::Same,
    };
    Some(Rule { frame, pointer })
}
