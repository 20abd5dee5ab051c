//! Scheduling classes of the kernel, as far as threads of the host ask for them.
//!
//! *Invariant:* a class that is not permitted is said to be not permitted; nothing else changes.

use crate::clock;
use crate::limits::CompileServer;

/// The kernel's structure for `sched_setattr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
const DEADLINE: u32 = 6;

/// Holds the calling thread to a budget in each period; whether the kernel permitted it.
pub(crate) fn reserve(server: CompileServer) -> bool {
    let period = clock::nanoseconds(server.period);
    let attributes = Attributes {
        size: SIZE,
        policy: DEADLINE,
        runtime: clock::nanoseconds(server.budget),
        deadline: period,
        period,
        ..Attributes::default()
    };
    set(&attributes)
}

/// Puts the calling thread into the first-in-first-out class.
pub(crate) fn fifo(priority: i32) -> bool {
    let priority = u32::try_from(priority).unwrap_or(0);
    set(&Attributes {
        size: SIZE,
        policy: libc::SCHED_FIFO as u32,
        priority,
        ..Attributes::default()
    })
}

/// Keeps the calling thread on these processors; whether it was permitted. None asks for nothing.
pub(crate) fn on(processors: &[usize]) -> bool {
    if processors.is_empty() {
        return true;
    }
    // SAFETY: zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for processor in processors
        .iter()
        .filter(|processor| **processor < libc::CPU_SETSIZE as usize)
    {
        // SAFETY: the number is one that the set has a place for.
        unsafe { libc::CPU_SET(*processor, &mut set) };
    }
    // SAFETY: the set is ours.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0 }
}

/// Puts the calling thread into the ordinary class.
pub(crate) fn ordinary() -> bool {
    set(&Attributes {
        size: SIZE,
        policy: libc::SCHED_OTHER as u32,
        ..Attributes::default()
    })
}

/// Puts the calling thread into the idle class.
pub(crate) fn idle() -> bool {
    set(&Attributes {
        size: SIZE,
        policy: libc::SCHED_IDLE as u32,
        ..Attributes::default()
    })
}

/// What the calling thread is scheduled by.
pub(crate) fn current() -> Option<Attributes> {
    let mut attributes = Attributes::default();
    // SAFETY: the structure is ours, and the kernel writes no more than the size that it is told.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    (status == 0).then_some(attributes)
}

/// Schedules the calling thread so; whether it was permitted.
pub(crate) fn set(attributes: &Attributes) -> bool {
    // SAFETY: the structure is ours and tells its own size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) == 0 }
}
