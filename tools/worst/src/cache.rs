//! Hot and cold: ticks of one call right after those before it, and with the
//! caches flushed in between.
//!
//! Ticks of the time-stamp counter, the median of some runs. They depend on the
//! machine and its load; what can be read from them is the ratio, with care.
//! Cold means that neither the arena nor the heap's own variables are in any
//! data cache; its code stays where it is.
//!
//! Invariant: nothing is decided by a tick.

use serde::Serialize;

use crate::memory::Range;
use crate::sequence::Sequence;
use crate::subject::Runnable;

/// Runs of each kind.
#[cfg(target_arch = "x86_64")]
const RUNS: usize = 15;
/// Bytes that are walked over to displace what was cached.
#[cfg(target_arch = "x86_64")]
const WALK: usize = 32 << 20;

/// Ticks of the last call of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ticks {
    /// Median right after the calls before it.
    pub hot: u64,
    /// Median with caches flushed before it.
    pub cold: u64,
    /// Cold over hot.
    pub ratio: f64,
}

/// Measures the last call of `sequence` in an arena of `arena` bytes. `None`
/// where there is no such counter, no memory, or nothing to call.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks(_: &dyn Runnable, _: usize, _: &Sequence) -> Option<Ticks> {
    None
}

/// Measures the last call of `sequence` in an arena of `arena` bytes. `None`
/// where there is no such counter, no memory, or nothing to call. Milliseconds
/// a run.
#[cfg(target_arch = "x86_64")]
pub fn ticks(runnable: &dyn Runnable, arena: usize, sequence: &Sequence) -> Option<Ticks> {
    let mut memory = Range::new(arena).ok()?;
    // No page is taken in a call that is timed: embedded systems have none.
    for page in (0..memory.length()).step_by(4096) {
        // SAFETY: inside the mapping, which is ours to write.
        unsafe { memory.base().as_ptr().add(page).write_volatile(0) };
    }
    let mut walked = vec![0_u8; WALK];
    let mut median = |cold: bool| {
        let mut runs = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            runs.push(run(
                runnable,
                &mut memory,
                sequence,
                cold.then_some(&mut walked),
            )?);
        }
        runs.sort_unstable();
        Some(runs[RUNS / 2])
    };
    let (hot, cold) = (median(false)?, median(true)?);
    Some(Ticks {
        hot,
        cold,
        ratio: cold as f64 / hot.max(1) as f64,
    })
}

/// Plays a sequence on a new heap and times its last call.
#[cfg(target_arch = "x86_64")]
fn run(
    runnable: &dyn Runnable,
    memory: &mut Range,
    sequence: &Sequence,
    walked: Option<&mut Vec<u8>>,
) -> Option<u64> {
    use std::arch::x86_64::{_mm_clflush, _mm_lfence, _mm_mfence, _rdtsc};

    let last = sequence.steps().len().checked_sub(1)?;
    let (base, length) = (memory.base(), memory.length());
    let running = runnable.open(memory)?;
    let mut player = crate::time::Player::new(&running, sequence);
    for position in 0..last {
        player.invoke(position);
    }
    let call = player.call(last)?;
    if let Some(walked) = walked {
        for line in (0..length).step_by(64) {
            // SAFETY: an address inside the mapping; the contents do not change.
            unsafe { _mm_clflush(base.as_ptr().add(line)) };
        }
        for line in walked.iter_mut().step_by(64) {
            *line = line.wrapping_add(1);
        }
        std::hint::black_box(walked);
    }
    let time = |measured: bool| {
        // SAFETY: fences and the counter touch no memory; the call is one of
        // this heap on live blocks, made once.
        unsafe {
            _mm_mfence();
            _mm_lfence();
            let start = _rdtsc();
            _mm_lfence();
            let result = if measured { call.invoke() } else { 0 };
            _mm_lfence();
            std::hint::black_box(result);
            _rdtsc() - start
        }
    };
    let empty = (0..8).map(|_| time(false)).min().unwrap_or(0);
    Some(time(true).saturating_sub(empty))
}
