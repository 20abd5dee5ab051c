//! Code and constants looked through, again and again: whether they are what they were as the unit began to run.
//!
//! *Invariant:* in as many activations as portions of [`IMAGE_CHECK`] bytes make the image, each of its words is read once; one
//! that differs is never missed, as the sum of all words differs, too.

use crate::declared::IMAGE_CHECK;

const _: () = assert!(IMAGE_CHECK > 0 && IMAGE_CHECK.is_multiple_of(4));

/// Sums over words: of them, and of those sums, which tells words that changed their places.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sums(u32, u32);

impl Sums {
    /// With the words of `bytes` behind those before.
    #[inline(never)]
    fn with(self, bytes: &[u8]) -> Self {
        let words = bytes.as_chunks().0.iter();
        words.fold(self, |Sums(sum, sums), &word| {
            let sum = sum.wrapping_add(u32::from_ne_bytes(word));
            Sums(sum, sums.wrapping_add(sum))
        })
    }
}

/// A pass over the image under way.
pub(super) struct Integrity {
    /// What the sums were as the unit began.
    reference: Sums,
    sums: Sums,
    next: usize,
}

impl Integrity {
    /// The image as it is now is what it has to stay.
    pub(super) fn new(image: &[u8]) -> Self {
        Integrity {
            reference: Sums::default().with(image),
            sums: Sums::default(),
            next: 0,
        }
    }

    /// Goes on by a portion; false where a pass has ended and the image is no longer as it was.
    pub(super) fn step(&mut self, image: &[u8]) -> bool {
        let rest = image.get(self.next..).unwrap_or(&[]);
        let portion = rest.get(..IMAGE_CHECK).unwrap_or(rest);
        self.sums = self.sums.with(portion);
        self.next = self.next.wrapping_add(portion.len());
        if self.next < image.len() {
            return true;
        }
        self.next = 0;
        core::mem::take(&mut self.sums) == self.reference
    }
}
