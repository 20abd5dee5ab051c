//! The checks: small situations that have broken allocators before, then random
//! operations against the shadow. Invariant: each case starts with a new heap and
//! ends by freeing everything and auditing the heap.

use core::ptr::NonNull;

use crate::Arena;
use crate::fault::Fault;
use crate::model::{SLOTS, Shadow};
use crate::random::Random;
use crate::report::Report;
use crate::subject::Subject;

/// Bytes of arena the cases use.
pub const CASE_ARENA: usize = 48 * 1024;

type Case<S> = fn(&mut Shadow<'_, S>) -> Result<(), Fault>;

/// Runs every case on a heap of type `S`; one check of the report per case.
pub fn all<S: Subject>(arena: &mut Arena, report: &mut Report<'_>) {
    let before = report.tally().1;
    let cases: [(&str, Case<S>); 8] = [
        ("alignments", alignments),
        ("sizes", sizes),
        ("zeroed", zeroed),
        ("exhaustion", exhaustion),
        ("impossible requests", impossible),
        ("resize", resize),
        ("neighbours", neighbours),
        ("random operations", random_operations),
    ];
    let mut passed = 0;
    for (name, case) in cases {
        let outcome = on_one_region::<S>(arena, case);
        passed += usize::from(report.check(S::NAME, name, outcome));
    }
    if S::SEAMS.tells_bad_frees {
        let outcome = on_one_region::<S>(arena, bad_frees);
        passed += usize::from(report.check(S::NAME, "bad frees", outcome));
    }
    let outcome = two_regions::<S>(arena);
    passed += usize::from(report.check(S::NAME, "two regions", outcome));
    if report.tally().1 == before {
        report.line(format_args!("ok {}: {passed} cases", S::NAME));
    }
}

/// A new heap on one region; after the case all is freed and must be as when new.
fn on_one_region<S: Subject>(arena: &mut Arena, case: Case<S>) -> Result<(), Fault> {
    // An odd start and length: the heap has to find its own alignment.
    let region = (3, CASE_ARENA - 5);
    let mut heap = S::create();
    // SAFETY: the heaps of earlier cases are dead.
    if !heap.add_region(unsafe { arena.lend(region.0, region.1) }) {
        return Err(Fault::RegionRefused);
    }
    let mut shadow = Shadow::new(&mut heap, arena, region);
    shadow.audit()?;
    // To look for the largest block cuts up a heap that does not merge.
    let fresh = if S::SEAMS.coalesces {
        shadow.largest()
    } else {
        0
    };
    case(&mut shadow)?;
    shadow.free_all()?;
    if S::SEAMS.coalesces {
        let now = shadow.largest();
        if now < fresh {
            return Err(Fault::NotCoalesced { fresh, now });
        }
    }
    shadow.audit()
}

/// Every alignment that the heap promises, several blocks of each, odd sizes in between.
fn alignments<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for power in 0..=S::SEAMS.largest_align.ilog2() {
        let align = 1 << power;
        for slot in 0..4 {
            let size = slot * 7 + 1;
            shadow.must_allocate(slot, size, align)?;
            shadow.must_allocate(slot + 4, 3, 1)?;
        }
        shadow.free_all()?;
    }
    Ok(())
}

/// Each size up to 320 bytes; freed in three different orders.
fn sizes<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for base in (1..=320).step_by(32) {
        for order in 0..3 {
            for slot in 0..32 {
                shadow.must_allocate(slot, base + slot, 1)?;
            }
            shadow.audit()?;
            for step in 0..32 {
                let slot = match order {
                    0 => step,
                    1 => 31 - step,
                    // 13 and 32 share no factor: each slot once, neighbours apart.
                    _ => step * 13 % 32,
                };
                shadow.free(slot)?;
            }
            shadow.audit()?;
        }
    }
    Ok(())
}

/// Zeroed memory is zero, also where other blocks have been before.
fn zeroed<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for round in 0..4 {
        for slot in 0..8 {
            let size = 1 + slot * 61 + round;
            shadow.must_allocate_zeroed(slot, size, 8)?;
        }
        shadow.free_all()?;
    }
    Ok(())
}

/// Fills the heap to the last block, then opens holes and fills them again.
fn exhaustion<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    const SIZE: usize = CASE_ARENA / 64;
    const REFUSED: Fault = Fault::Refused {
        size: SIZE,
        align: 1,
    };
    let fill = |shadow: &mut Shadow<'_, S>| -> Result<usize, Fault> {
        let mut count = 0;
        for slot in 0..SLOTS {
            if !shadow.is_live(slot) && shadow.allocate(slot, SIZE, 1)? {
                count += 1;
            }
        }
        Ok(count)
    };
    let count = fill(shadow)?;
    // Half of the arena at least, whatever the heap rounds to.
    if count < 28 {
        return Err(REFUSED);
    }
    if count == SLOTS || shadow.allocate(SLOTS - 1, SIZE, 1)? {
        return Err(Fault::Granted {
            size: SIZE,
            align: 1,
        });
    }
    shadow.audit()?;
    for slot in (0..SLOTS).step_by(2) {
        shadow.free(slot)?;
    }
    shadow.audit()?;
    // What was freed fits where it was.
    fill(shadow)?;
    if S::SEAMS.exact && shadow.live() < count * SIZE {
        return Err(REFUSED);
    }
    Ok(())
}

/// Requests that nothing holds are refused and change nothing.
fn impossible<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    shadow.must_allocate(0, 100, 8)?;
    let huge = isize::MAX as usize;
    for (size, align) in [
        (CASE_ARENA, 1),
        (CASE_ARENA * 2, 1),
        (huge - 64, 8),
        (huge, 1),
        (huge + 1, 1),
        (usize::MAX - 15, 8),
        (usize::MAX, 1),
        (64, 1 << (usize::BITS - 1)),
        (CASE_ARENA - 64, CASE_ARENA * 2),
        (usize::MAX, 1 << (usize::BITS - 1)),
    ] {
        if shadow.allocate(1, size, align)? {
            return Err(Fault::Granted { size, align });
        }
        if shadow.resize(0, size.max(CASE_ARENA))? {
            return Err(Fault::Granted { size, align: 8 });
        }
        shadow.audit()?;
    }
    Ok(())
}

/// Growing and shrinking keeps contents and alignment, in place or by a move.
fn resize<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for align in [1, 8, S::SEAMS.largest_align.min(64)] {
        for slot in 0..6 {
            shadow.must_allocate(slot, 40, align)?;
        }
        // Room after slot 0, before slot 4, around slot 2.
        shadow.free(1)?;
        shadow.free(3)?;
        for size in [41, 48, 80, 81, 200, 1000, 999, 500, 64, 40, 7, 1, 300] {
            for slot in [0, 2, 4, 5] {
                shadow.must_resize(slot, size)?;
            }
            shadow.audit()?;
        }
        shadow.free_all()?;
    }
    Ok(())
}

/// A hole between two live blocks takes a block of its size and gives it back, in
/// every order in which three neighbours can be freed.
fn neighbours<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for size in [1, 24, 120, 700] {
            for slot in 0..4 {
                shadow.must_allocate(slot, size, 1)?;
            }
            for slot in order {
                shadow.free(slot)?;
                shadow.audit()?;
            }
            shadow.must_allocate(0, size * 2, 1)?;
            shadow.free_all()?;
        }
    }
    Ok(())
}

/// Random operations of all kinds; the heap is audited every 16 of them.
fn random_operations<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    let mut random = Random::new(0x4D65_7465);
    for operation in 0..3000 {
        let slot = random.below(SLOTS);
        let size = match random.below(16) {
            0 => 1 + random.below(2000),
            1..4 => 1 + random.below(400),
            _ => 1 + random.below(100),
        };
        match (shadow.is_live(slot), random.below(8)) {
            (false, 0) => drop(shadow.allocate_zeroed(slot, size, 1)?),
            (false, 1) => drop(shadow.allocate(slot, size, 1 << random.below(9))?),
            (false, _) => drop(shadow.allocate(slot, size, 1)?),
            (true, 0..3) => drop(shadow.resize(slot, size)?),
            (true, _) => shadow.free(slot)?,
        }
        if operation % 16 == 0 {
            shadow.audit()?;
        }
    }
    Ok(())
}

/// A block freed twice, the middle of a block, an address outside the heap.
fn bad_frees<S: Subject>(shadow: &mut Shadow<'_, S>) -> Result<(), Fault> {
    for slot in 0..4 {
        shadow.must_allocate(slot, 100, 1)?;
    }
    let places = [shadow.place(1), shadow.place(2)];
    shadow.free(1)?;
    let [Some(freed), Some(live)] = places else {
        return Ok(());
    };
    let addresses = [
        freed.as_ptr(),
        live.as_ptr().wrapping_add(32),
        live.as_ptr().wrapping_add(1),
        live.as_ptr().wrapping_add(CASE_ARENA),
        live.as_ptr().wrapping_sub(CASE_ARENA),
    ];
    for address in addresses {
        if let Some(address) = NonNull::new(address) {
            shadow.free_wrongly(address)?;
        }
    }
    Ok(())
}

/// A heap with two regions uses both and never spans the gap; one that takes a single
/// region refuses the second and stays as it was.
fn two_regions<S: Subject>(arena: &mut Arena) -> Result<(), Fault> {
    let (first, second) = ((0, 16 * 1024), (20 * 1024, 40 * 1024));
    let mut heap = S::create();
    for (number, (from, to)) in [first, second].into_iter().enumerate() {
        // SAFETY: earlier heaps are dead; the two regions are disjoint.
        let taken = heap.add_region(unsafe { arena.lend(from, to) });
        if taken != (number < S::SEAMS.regions) {
            return Err(Fault::RegionRefused);
        }
    }
    let mut shadow = Shadow::new(&mut heap, arena, (first.0, second.1));
    shadow.audit()?;
    let mut used = [0, 0];
    for slot in 0..SLOTS {
        if !shadow.allocate(slot, 400, 1)? {
            break;
        }
        let address = shadow.place(slot).map_or(0, |at| at.addr().get());
        match [first, second].map(|region| arena.holds(address, 400, region)) {
            [true, _] => used[0] += 1,
            [_, true] => used[1] += 1,
            _ => return Err(Fault::Outside { address, size: 400 }),
        }
    }
    let second_used = used[1] > 4 || !S::SEAMS.coalesces;
    if used[0] <= 4 || (S::SEAMS.regions > 1 && !second_used) {
        return Err(Fault::Refused {
            size: 400,
            align: 1,
        });
    }
    shadow.free_all()?;
    // More than either region, less than from the first to the last byte.
    const SPAN: usize = 24 * 1024;
    if shadow.allocate(0, SPAN, 1)? {
        return Err(Fault::Granted {
            size: SPAN,
            align: 1,
        });
    }
    shadow.audit()
}
