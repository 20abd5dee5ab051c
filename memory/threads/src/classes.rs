//! Size classes: multiples of 16 bytes up to 128, then eight a power of two up to 128 KiB.
//!
//! Invariant: a class's slot holds every size of the class, and is at most an eighth (or 15 bytes) larger than any of them.

/// Every slot is a multiple of this, and so is every block aligned.
pub const ALIGN: usize = 16;
/// The largest size that a class serves.
pub const LARGEST: usize = 128 << 10;
/// The largest size of which a table says the page at once.
pub(crate) const SMALL: usize = 1024;
/// Classes up to 128 bytes.
const EVEN: usize = 8;
/// Classes of a power of two, as a logarithm.
const STEPS_LOG2: usize = 3;
/// The power of two from which on there are steps.
const FIRST_LOG2: usize = 7;
/// How many classes there are.
pub(crate) const CLASSES: usize = class_of(LARGEST) + 1;

/// The class of a size from 1 to [`LARGEST`]. O(1).
#[inline(always)]
pub(crate) const fn class_of(size: usize) -> usize {
    let last = size.wrapping_sub(1);
    if last < EVEN * ALIGN {
        return last / ALIGN;
    }
    let log2 = last.ilog2() as usize;
    let step = (last >> (log2 - STEPS_LOG2)) & ((1 << STEPS_LOG2) - 1);
    EVEN + ((log2 - FIRST_LOG2) << STEPS_LOG2) + step
}

/// Bytes of a slot of a class. O(1).
pub(crate) const fn slot_of(class: usize) -> usize {
    if class < EVEN {
        return (class + 1) * ALIGN;
    }
    let (power, step) = (
        (class - EVEN) >> STEPS_LOG2,
        (class - EVEN) & ((1 << STEPS_LOG2) - 1),
    );
    ((1 << STEPS_LOG2) + step + 1) << (FIRST_LOG2 + power - STEPS_LOG2)
}

/// The class whose slots hold `size` bytes and are aligned to `align`, a power of two; none where no class is. O(1).
pub(crate) const fn aligned(size: usize, align: usize) -> Option<usize> {
    let size = if size == 0 { 1 } else { size };
    if size > LARGEST || align > LARGEST {
        return None;
    }
    let class = class_of(size);
    // A page begins at a multiple of every power of two up to its largest slot.
    if slot_of(class).is_multiple_of(align) {
        return Some(class);
    }
    let wide = if size > align { size } else { align };
    Some(class_of(wide.next_power_of_two()))
}

/// Whether a block that holds `held` bytes stays where it is when it is resized to `size`.
#[must_use]
pub const fn stays(held: usize, size: usize) -> bool {
    size <= held && (size > held / 2 || held <= ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_the_least_slot_that_holds_it() {
        for size in 1..=LARGEST {
            let class = class_of(size);
            let slot = slot_of(class);
            assert!(
                slot >= size && slot.is_multiple_of(ALIGN),
                "{size} in {slot}"
            );
            assert!(class == 0 || slot_of(class - 1) < size, "{size} in {slot}");
            assert!(slot - size < ALIGN.max(size / 8 + 1), "{size} in {slot}");
        }
        assert_eq!(slot_of(CLASSES - 1), LARGEST);
    }

    #[test]
    fn slots_are_as_aligned_as_asked() {
        for align in (4..=17).map(|log2| 1_usize << log2) {
            for size in [
                0, 1, 15, 16, 17, 100, 144, 1000, 5000, 9000, 70_000, LARGEST,
            ] {
                let slot = slot_of(aligned(size, align).expect("a class"));
                assert!(
                    slot >= size && slot.is_multiple_of(align),
                    "{size} to {align}"
                );
            }
        }
        assert_eq!(aligned(LARGEST + 1, 16), None);
        assert_eq!(aligned(1, 2 * LARGEST), None);
    }
}
