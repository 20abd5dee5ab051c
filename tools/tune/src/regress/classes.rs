//! Size classes as most allocators have them.
//!
//! Multiples of 16 up to 128 bytes, above that four to a doubling, up to whole pages: the classes of jemalloc, and near
//! those of mimalloc, tcmalloc and of TLSF with four classes. They are a measure, not a heap: what a size loses to them it
//! loses in most heaps.
//!
//! Invariant: a class holds its size, and is the least that does.

/// The class that holds a size.
pub(super) fn class(size: u64) -> u64 {
    if size <= 128 {
        return size.max(1).next_multiple_of(16);
    }
    let doubling = u64::BITS - 1 - (size - 1).leading_zeros();
    let step = 1_u64 << (doubling - 2);
    size.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_the_usual_ones() {
        let of = [
            1, 16, 17, 128, 129, 160, 161, 256, 257, 320, 4096, 4097, 5121,
        ];
        let classes = [
            16, 16, 32, 128, 160, 160, 192, 256, 320, 320, 4096, 5120, 6144,
        ];
        assert_eq!(of.map(class), classes);
    }

    proptest! {
        #[test]
        fn a_class_holds_its_sizes_and_is_its_own(size in 1..u64::MAX / 2) {
            let class_of = class(size);
            prop_assert!(class_of >= size);
            prop_assert_eq!(class(class_of), class_of);
            prop_assert!(class_of - size < (size / 4).max(16));
        }
    }
}
