//! The memories of the partitions.
//!
//! *Invariant:* each is given out once.

use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use metes_duster_application::Partition;
use metes_duster_application::declared::PARTITIONS;

use crate::clock;

/// What partitions measure their calls by.
#[unsafe(no_mangle)]
extern "C" fn partition_clock() -> u32 {
    clock::counts()
}

/// Bytes of all partitions together.
const ALL: usize = {
    let mut sum = 0;
    let mut number = 0;
    while number < PARTITIONS.len() {
        sum += PARTITIONS[number].size;
        number += 1;
    }
    sum
};

#[repr(align(16))]
struct Memory(#[expect(dead_code, reason = "reached by its address")] [u8; ALL]);

/// Cleared by the start, so that no block holds what nobody wrote.
#[unsafe(link_section = ".bss.partitions")]
static mut MEMORY: Memory = Memory([0; ALL]);

static GIVEN: AtomicU32 = AtomicU32::new(0);

/// Partition `number`. Once for each.
///
/// # Panics
/// It was given out before.
pub(crate) fn partition(number: usize) -> Partition {
    let given = GIVEN.fetch_or(1 << number, Ordering::Relaxed);
    assert!(given >> number & 1 == 0);
    let before: usize = PARTITIONS[..number].iter().map(|it| it.size).sum();
    // SAFETY: partitions are disjoint parts of the memory, each given out once, as was just made sure of.
    let memory = unsafe {
        let all = addr_of_mut!(MEMORY).cast::<u8>();
        core::slice::from_raw_parts_mut(all.add(before), PARTITIONS[number].size)
    };
    Partition::new(number, memory)
}
