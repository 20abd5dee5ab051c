//! Arrays of kernels: made and filled, and their checksums.
//!
//! *Invariant:* an array is written whole when it is made, so that its pages are touched as those of a C program are that
//! asks `posix_memalign` for them; at its end it is freed.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Where an array begins: at a page, as C programs of this kind ask of `posix_memalign`.
const ALIGNMENT: usize = 4096;

/// An array of numbers at a page of its own.
pub(crate) struct Array<T> {
    start: NonNull<T>,
    length: usize,
}

impl<T: Copy> Array<T> {
    /// `values` must give `length` values at least.
    fn new(length: usize, mut values: impl Iterator<Item = T>) -> Array<T> {
        let layout = Array::<T>::layout(length);
        // SAFETY: the layout is not empty: no kernel has an extent of zero.
        let start = unsafe { alloc(layout) }.cast::<T>();
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout);
        };
        for index in 0..length {
            let value = values.next().expect("a value for each place");
            // SAFETY: below the length that was allocated.
            unsafe { start.add(index).write(value) };
        }
        Array { start, length }
    }

    fn layout(length: usize) -> Layout {
        let array = Layout::array::<T>(length).expect("an extent of this crate");
        array.align_to(ALIGNMENT).expect("a power of two")
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        let bytes = self.length * size_of::<T>();
        // SAFETY: it was allocated with this layout, and its elements are plain numbers.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, ALIGNMENT);
            dealloc(self.start.as_ptr().cast(), layout);
        }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: all elements were written when it was made, and it is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the borrow is of us alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// A vector.
pub(crate) fn vector<T: Copy>(n: usize, value: impl Fn(usize) -> T) -> Array<T> {
    Array::new(n, (0..n).map(value))
}

/// A matrix, row by row.
pub(crate) fn matrix<T: Copy>(
    rows: usize,
    columns: usize,
    value: impl Fn(usize, usize) -> T,
) -> Array<T> {
    let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
    Array::new(rows * columns, places.map(|(i, j)| value(i, j)))
}

/// A number of a sequence, from 0 to below 1, that repeats after `n`.
pub(crate) fn fraction(value: usize, n: usize) -> f64 {
    (value % n) as f64 / n as f64
}

/// y += a x.
pub(crate) fn add_scaled(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// x · y, from left to right.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y)
}

/// The running checksum of values.
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Checksum {
        Checksum(0x6a09_e667_f3bc_c908)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    pub(crate) fn of(mut self, values: &[f64]) -> Checksum {
        let mut finite = true;
        for value in values {
            finite &= value.is_finite();
            self.word(value.to_bits());
        }
        assert!(finite, "a kernel has left the finite numbers");
        self
    }

    pub(crate) fn of_single(mut self, values: &[f32]) -> Checksum {
        let mut finite = true;
        for value in values {
            finite &= value.is_finite();
            self.word(u64::from(value.to_bits()));
        }
        assert!(finite, "a kernel has left the finite numbers");
        self
    }

    pub(crate) fn of_integers(mut self, values: &[i32]) -> Checksum {
        for value in values {
            self.word(u64::from(value.cast_unsigned()));
        }
        self
    }

    pub(crate) fn end(self) -> u64 {
        self.0
    }
}
