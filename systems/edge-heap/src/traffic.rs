//! Requests by which allocators are counted: of chance, and of an adversary.
//!
//! Invariant: the same requests to every allocator.

use metes_random::Random;

use crate::fuel::{Guest, GuestError};

/// Most operators of one call, by what was asked, and how many calls there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// Of an allocation.
    pub allocate: u64,
    /// Of a free.
    pub free: u64,
    /// Of a resize.
    pub resize: u64,
    /// Operators of all allocations and frees.
    pub total: u64,
    /// Allocations and frees.
    pub calls: u64,
    /// Requests that were refused.
    pub refused: u64,
}

impl Most {
    /// The larger of both, and the sum of what is summed.
    pub fn max(self, other: Most) -> Most {
        Most {
            allocate: self.allocate.max(other.allocate),
            free: self.free.max(other.free),
            resize: self.resize.max(other.resize),
            total: self.total + other.total,
            calls: self.calls + other.calls,
            refused: self.refused + other.refused,
        }
    }
}

/// Lets an allocator take possession of its memory, and forgets what that took: once in the life of an instance.
/// Operators of that first request.
///
/// # Errors
/// [`GuestError::Engine`] when the allocator traps.
pub fn first_request(guest: &mut Guest) -> Result<u64, GuestError> {
    let (place, operators) = guest.allocate(1)?;
    guest.free(place, 1)?;
    Ok(operators.0)
}

/// A trace of chance: blocks of 1 byte to 4 KiB, one in sixteen up to 64 KiB, up to `live` of them; one request in eight
/// of those that free resizes instead, where `resizes`.
///
/// # Errors
/// As [`first_request`].
pub fn churn(
    guest: &mut Guest,
    seed: u64,
    requests: usize,
    live: usize,
    resizes: bool,
) -> Result<Most, GuestError> {
    let mut random = Random::new(seed);
    let mut held: Vec<(u32, u32)> = Vec::new();
    let mut most = Most::default();
    let size = |random: &mut Random| {
        let most = match random.below(16) {
            0 => 1 << 16,
            _ => 1 << (random.below(9) + 4),
        };
        random.below(most) as u32 + 1
    };
    for _ in 0..requests {
        if held.len() < live && (held.is_empty() || random.below(2) == 0) {
            let size = size(&mut random);
            let (place, operators) = guest.allocate(size)?;
            most.allocate = most.allocate.max(operators.0);
            most.total += operators.0;
            most.calls += 1;
            match place {
                0 => most.refused += 1,
                place => held.push((place, size)),
            }
            continue;
        }
        let at = random.below(held.len() as u64) as usize;
        let (place, old) = held[at];
        if resizes && random.below(8) == 0 {
            let size = size(&mut random);
            let (moved, operators) = guest.resize(place, old, size)?;
            most.resize = most.resize.max(operators.0);
            match moved {
                0 => most.refused += 1,
                moved => held[at] = (moved, size),
            }
            continue;
        }
        held.swap_remove(at);
        let operators = guest.free(place, old)?;
        most.free = most.free.max(operators.0);
        most.total += operators.0;
        most.calls += 1;
    }
    Ok(most)
}

/// What suits a searched list least: many holes, each a little too small for what is asked next. Blocks of rising
/// sizes with pins between them; the blocks are freed in another order than they lie in, and each time one more byte
/// than any hole has is asked for; then the pins go, so that holes on both sides merge.
///
/// # Errors
/// As [`first_request`].
pub fn comb(guest: &mut Guest, holes: u32, size: u32, step: u32) -> Result<Most, GuestError> {
    let mut most = Most::default();
    let mut held = Vec::new();
    let mut pins = Vec::new();
    for number in 0..holes {
        held.push(ask(guest, size + number * step, &mut most)?);
        pins.push(ask(guest, 1, &mut most)?);
    }
    let stride = 7;
    for first in 0..stride.min(holes) {
        for number in (first..holes).step_by(stride as usize) {
            give(guest, held[number as usize], &mut most)?;
        }
        let larger = ask(guest, size + holes * step + 1, &mut most)?;
        let fitting = ask(guest, size, &mut most)?;
        give(guest, larger, &mut most)?;
        give(guest, fitting, &mut most)?;
    }
    for pin in pins {
        give(guest, pin, &mut most)?;
    }
    Ok(most)
}

fn ask(guest: &mut Guest, size: u32, most: &mut Most) -> Result<(u32, u32), GuestError> {
    let (place, operators) = guest.allocate(size)?;
    most.allocate = most.allocate.max(operators.0);
    most.total += operators.0;
    most.calls += 1;
    most.refused += u64::from(place == 0);
    Ok((place, size))
}

fn give(guest: &mut Guest, (place, size): (u32, u32), most: &mut Most) -> Result<(), GuestError> {
    if place == 0 {
        return Ok(());
    }
    let operators = guest.free(place, size)?;
    most.free = most.free.max(operators.0);
    most.total += operators.0;
    most.calls += 1;
    Ok(())
}
