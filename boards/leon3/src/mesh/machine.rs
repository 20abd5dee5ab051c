//! The machine: what whoever starts the image may set, and how cores are started.
//!
//! *Invariant:* the words below are in the image's data, so that they are there before it starts and are not cleared.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

global_asm!(include_str!("../traps.s"), include_str!("cores.s"));

/// Most nodes.
pub(crate) const MOST_NODES: usize = 64;

/// How many nodes there are; 0 to ask the interrupt controller, which knows up to 16 cores. With more than that the
/// machine has a device that tells cores their numbers and starts them.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data")]
static NODES: AtomicU32 = AtomicU32::new(0);
/// Where the memory of all nodes begins: a multiple of a heap's bytes.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data")]
static SHARED: AtomicU32 = AtomicU32::new(0x4080_0000);
/// Where the map of homes is told: six words, where things of node 0 begin and how many bytes each node has, of heaps, words
/// and tags; 0 where nobody asks.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data")]
static HOMES: AtomicU32 = AtomicU32::new(0);
/// What each node does, in rounds.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data")]
pub(crate) static ROUNDS: AtomicU32 = AtomicU32::new(300);

/// MP status: how many cores there are; written, it starts them.
const MP_STATUS: *mut u32 = 0x8000_0210 as *mut u32;
/// Starts cores 0 to 31, and those from 32 on, where there are more than 16.
const START: *mut u32 = 0x8000_0f04 as *mut u32;

unsafe extern "C" {
    pub(crate) safe fn rest() -> !;
    pub(crate) safe fn end_passed() -> !;
    pub(crate) safe fn end_failed() -> !;
}

/// How many nodes there are.
pub(crate) fn nodes() -> u32 {
    match NODES.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a register; reading has no effect.
            let status = unsafe { MP_STATUS.read_volatile() };
            (status >> 28) + 1
        }
        nodes => nodes,
    }
}

/// Where the memory of all nodes begins.
pub(crate) fn shared() -> u32 {
    SHARED.load(Ordering::Relaxed)
}

/// Starts every core but this one.
pub(crate) fn start_others() {
    let nodes = nodes();
    let others = |from: u32| {
        let bits = (from..from + 32).filter(|core| (1..nodes).contains(core));
        bits.fold(0, |bits, core| bits | 1 << (core - from))
    };
    // SAFETY: registers that do nothing but start cores; what those find was written before.
    unsafe {
        if nodes > 16 {
            START.write_volatile(others(0));
            START.add(1).write_volatile(others(32));
        } else if nodes > 1 {
            MP_STATUS.write_volatile(others(0));
        }
    }
}

/// Tells the machine which node is at home where, if it asks.
pub(crate) fn tell_homes(homes: &[(u32, u32); 3]) {
    let registers = HOMES.load(Ordering::Relaxed);
    if registers == 0 {
        return;
    }
    let registers: *mut u32 = core::ptr::with_exposed_provenance_mut(registers as usize);
    let words = homes.iter().flat_map(|(begin, each)| [*begin, *each]);
    for (number, word) in words.enumerate() {
        // SAFETY: whoever has set the word has registers there.
        unsafe { registers.add(number).write_volatile(word) };
    }
}
