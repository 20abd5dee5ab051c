//! How a value lies in its block, and how those that must be dropped are found.
//!
//! Invariant: a block of a type that has something to drop begins with [`Links`]; they lead to
//! the next younger and the next older such block, and know how to drop the value behind them.

use core::marker::PhantomData;
use core::mem::{needs_drop, offset_of};
use core::ptr::NonNull;

use super::Values;
use crate::compact::handles::Handle;

/// The words before a value that has something to drop.
#[derive(Clone, Copy)]
pub(super) struct Links {
    younger: Option<Handle>,
    older: Option<Handle>,
    /// Drops the value of a block.
    drop: unsafe fn(NonNull<u8>),
}

#[repr(C)]
struct Linked<T> {
    links: Links,
    value: T,
}

/// How a `T` lies in its block.
pub(super) struct Shape<T>(PhantomData<T>);

impl<T> Shape<T> {
    /// Whether [`Links`] come first.
    pub(super) const LINKED: bool = needs_drop::<T>();
    const OFFSET: usize = match Self::LINKED {
        true => offset_of!(Linked<T>, value),
        false => 0,
    };
    /// Bytes of the block.
    pub(super) const SIZE: usize = match Self::LINKED {
        true => size_of::<Linked<T>>(),
        false => size_of::<T>(),
    };
    /// Alignment of the block.
    pub(super) const ALIGN: usize = match Self::LINKED {
        true => align_of::<Linked<T>>(),
        false => align_of::<T>(),
    };

    /// Where the value lies.
    ///
    /// # Safety
    /// `block` is at least [`SIZE`](Shape::SIZE) bytes.
    #[inline(always)]
    pub(super) unsafe fn value(block: NonNull<u8>) -> NonNull<T> {
        // SAFETY: the offset is less than the size, or both are 0.
        unsafe { block.add(Self::OFFSET).cast() }
    }

    /// # Safety
    /// `block` holds a value of this shape, which is not used any more.
    unsafe fn drop(block: NonNull<u8>) {
        // SAFETY: the caller's contract.
        unsafe { Self::value(block).drop_in_place() };
    }
}

impl Values {
    /// Makes a new value the youngest. O(1).
    pub(super) fn link<T>(&mut self, raw: Handle, block: NonNull<u8>) {
        let links = Links {
            younger: None,
            older: self.youngest,
            drop: Shape::<T>::drop,
        };
        // SAFETY: the block begins with room for links, and is aligned for them.
        unsafe { block.cast().write(links) };
        self.change(self.youngest, |older| older.younger = Some(raw));
        self.youngest = Some(raw);
    }

    /// Takes a value that is no more out from between its neighbours. O(1).
    pub(super) fn unlink(&mut self, links: &Links) {
        self.change(links.older, |older| older.younger = links.younger);
        match links.younger {
            None => self.youngest = links.older,
            younger => self.change(younger, |younger| younger.older = links.older),
        }
    }

    fn change(&mut self, raw: Option<Handle>, change: impl FnOnce(&mut Links)) {
        if let Some(block) = raw.and_then(|raw| self.block(raw).ok()) {
            // SAFETY: links lead to blocks that begin with links; no reference into the heap
            // lives while it is borrowed exclusively.
            change(unsafe { block.cast().as_mut() });
        }
    }
}

impl Drop for Values {
    /// Drops the values that are left, the youngest first. O(those with something to drop).
    /// Where one of them panics, the rest are forgotten.
    fn drop(&mut self) {
        while let Some(block) = self.youngest.and_then(|raw| self.block(raw).ok()) {
            // SAFETY: as above.
            let links = unsafe { block.cast::<Links>().read() };
            self.youngest = links.older;
            // SAFETY: the value of the block, which nothing reaches any more.
            unsafe { (links.drop)(block) };
        }
    }
}
