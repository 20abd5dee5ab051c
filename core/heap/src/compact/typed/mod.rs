//! Values of any type in a heap that moves them: handles that a program can live with.
//!
//! A [`TypedHandle`] is plain data and may be kept anywhere, in other values of the heap as
//! well: so lists, trees and graphs are linked. It is turned into a reference only through the
//! heap: `&T` borrows [`Values`], `&mut T` borrows it exclusively. As a value moves, or ends,
//! only under `&mut Values`, the borrow checker sees to it that no reference outlives its place.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use metes_heap::Memory;
//! use metes_heap::compact::{BadHandle, Options, typed::Values};
//!
//! let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
//! let mut values = Values::new(&Options::DEFAULT, Memory::from_static(memory)).unwrap();
//! let name = values.insert(String::from("metes")).unwrap();
//! values.get_mut(name).unwrap().push_str(" and bounds");
//! assert_eq!(values.get(name).unwrap(), "metes and bounds");
//! assert_eq!(values.remove(name).unwrap(), "metes and bounds");
//! assert_eq!(values.get(name), Err(BadHandle::Stale));
//! ```
//!
//! A reference does not survive what may move its value:
//!
//! ```compile_fail,E0502
//! # use metes_heap::compact::typed::{TypedHandle, Values};
//! # fn example(values: &mut Values, a: TypedHandle<u32>, b: TypedHandle<u32>) {
//! let one = values.get(a).unwrap();
//! values.remove(b).unwrap(); // error: `*values` is borrowed by `one`
//! assert_eq!(*one, 1);
//! # }
//! ```
//!
//! # Why this is sound
//! - A typed handle comes from [`Values::insert`] alone; none is made from a number, from an
//!   untyped [`Handle`], or from one of another type. It resolves in the heap whose identity it
//!   carries, which no other heap of the program has, and as long as its entry has the
//!   generation it carries, which never comes again. So where it resolves lies the `T` that
//!   was inserted.
//! - The heap behind [`Values`] is private: nothing writes into a block but through `&mut T`.
//! - [`TypedHandle`] is invariant: one of `for<'a> fn(&'a str)` must not pass for one of
//!   `fn(&'static str)`, through which the latter could be put where the former is expected.
//!   ```compile_fail,E0308
//!   # use metes_heap::compact::typed::TypedHandle;
//!   type Any = for<'a> fn(&'a str);
//!   fn narrowed(handle: TypedHandle<Any>) -> TypedHandle<fn(&'static str)> {
//!       handle
//!   }
//!   ```
//! - Moves are made whole, never in increments: a `&T` may change what it refers to (`Cell`),
//!   and a half-made copy would hold the bytes from before.
//! - Values are `'static` and `Send`, because the heap drops those that are left, whenever and
//!   on whatever thread it ends.

mod owned;
mod pinned;
#[cfg(test)]
mod tests;

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::automaton::ClassState;
use super::handles::{BadHandle, Handle};
use super::heap::{CompactFit, Fragmentation};
use super::moving::Copying;
use super::options::{Options, Unfit};
use super::refusal::Refused;
use crate::heap::Corruption;
use crate::statistics::Statistics;
use crate::store::tagged::Memory;
use owned::{Links, Shape};
pub use pinned::{Kept, Pinned};

/// Names a `T` in [`Values`]. Eight bytes, plain data; stale handles are detected.
#[repr(transparent)]
pub struct TypedHandle<T> {
    raw: Handle,
    /// Invariant in `T`, and free of its properties.
    of: PhantomData<fn(T) -> T>,
}

impl<T> TypedHandle<T> {
    const fn new(raw: Handle) -> Self {
        TypedHandle {
            raw,
            of: PhantomData,
        }
    }

    /// The handle as a number, for keys and logs. There is no way back.
    pub const fn to_bits(self) -> u64 {
        self.raw.to_bits()
    }
}

impl<T> Clone for TypedHandle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TypedHandle<T> {}

impl<T> PartialEq for TypedHandle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<T> Eq for TypedHandle<T> {}

impl<T> Hash for TypedHandle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl<T> fmt::Debug for TypedHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// Why values were not lent out side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDisjoint {
    /// A handle is bad.
    Handle(BadHandle),
    /// Two handles name one value.
    Same,
}

impl fmt::Display for NotDisjoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDisjoint::Handle(bad) => bad.fmt(f),
            NotDisjoint::Same => f.write_str("two of the handles name one value"),
        }
    }
}

impl core::error::Error for NotDisjoint {}

impl From<BadHandle> for NotDisjoint {
    fn from(bad: BadHandle) -> Self {
        NotDisjoint::Handle(bad)
    }
}

/// A compact-fit heap of values.
///
/// Values that are left when it ends are dropped, the youngest first. A value whose type has
/// something to drop takes three words more than the value, by which the heap finds it.
///
/// Invariant: behind each handle that was given out and resolves lies a `Shape` of its type;
/// no move is under way; `youngest` and the links behind it lead through all values that have
/// something to drop.
#[derive(Debug)]
pub struct Values {
    heap: CompactFit<Copying>,
    youngest: Option<Handle>,
}

// SAFETY: tables and blocks lie in memory that is the heap's alone, all access goes through
// `&self`, which stays on one thread as `Values` is not `Sync`, or `&mut self`; and every value
// is `Send`.
unsafe impl Send for Values {}

impl Values {
    /// A heap in `memory`. The increment of the options has no effect.
    ///
    /// # Errors
    /// [`Unfit`] when options contradict each other, or the memory is too small.
    pub fn new(options: &Options, memory: Memory) -> Result<Self, Unfit> {
        Ok(Values {
            heap: CompactFit::new(options, memory)?,
            youngest: None,
        })
    }

    /// Moves a value into the heap. O(1) beside the copying of the value.
    ///
    /// # Errors
    /// [`Refused`], and the value back; the heap is unchanged.
    pub fn insert<T: Send + 'static>(&mut self, value: T) -> Result<TypedHandle<T>, (Refused, T)> {
        let raw = match self.heap.allocate(Shape::<T>::SIZE, Shape::<T>::ALIGN) {
            Ok(raw) => raw,
            Err(refused) => return Err((refused, value)),
        };
        if let Ok(block) = self.block(raw) {
            // SAFETY: the new block has the size and the alignment of the shape.
            unsafe { Shape::<T>::value(block).write(value) };
            if Shape::<T>::LINKED {
                self.link::<T>(raw, block);
            }
        }
        Ok(TypedHandle::new(raw))
    }

    /// The value of a handle. While the reference lives, nothing moves and nothing ends. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    #[inline]
    pub fn get<T>(&self, handle: TypedHandle<T>) -> Result<&T, BadHandle> {
        let value = self.value(handle)?;
        // SAFETY: a `T` (see the module), which moves, ends or is lent exclusively only under
        // `&mut self`.
        Ok(unsafe { value.as_ref() })
    }

    /// The value of a handle, to be changed. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    #[inline]
    pub fn get_mut<T>(&mut self, handle: TypedHandle<T>) -> Result<&mut T, BadHandle> {
        let mut value = self.value(handle)?;
        // SAFETY: as above, and the heap is borrowed exclusively.
        Ok(unsafe { value.as_mut() })
    }

    /// Several values of one type at once, to be changed. O(N²).
    ///
    /// # Errors
    /// [`NotDisjoint`], where a handle is bad or two are the same.
    pub fn get_disjoint_mut<T, const N: usize>(
        &mut self,
        handles: [TypedHandle<T>; N],
    ) -> Result<[&mut T; N], NotDisjoint> {
        let mut values = [NonNull::dangling(); N];
        for (index, &handle) in handles.iter().enumerate() {
            if handles[..index].contains(&handle) {
                return Err(NotDisjoint::Same);
            }
            values[index] = self.value(handle)?;
        }
        // SAFETY: handles that resolve and differ name different entries, so different blocks,
        // which do not overlap; the heap is borrowed exclusively.
        Ok(values.map(|mut value| unsafe { value.as_mut() }))
    }

    /// Two values of any types at once, to be changed. O(1).
    ///
    /// # Errors
    /// As [`get_disjoint_mut`](Values::get_disjoint_mut).
    pub fn get_pair_mut<T, U>(
        &mut self,
        one: TypedHandle<T>,
        other: TypedHandle<U>,
    ) -> Result<(&mut T, &mut U), NotDisjoint> {
        if one.raw == other.raw {
            return Err(NotDisjoint::Same);
        }
        let (mut one, mut other) = (self.value(one)?, self.value(other)?);
        // SAFETY: as above.
        Ok(unsafe { (one.as_mut(), other.as_mut()) })
    }

    /// Moves a value out of the heap. At most one other value moves into its place: O(1)
    /// without that, else O(bytes of the page-block).
    ///
    /// # Errors
    /// [`BadHandle`], also while the value is pinned; the value stays.
    pub fn remove<T>(&mut self, handle: TypedHandle<T>) -> Result<T, BadHandle> {
        let block = self.block(handle.raw)?;
        // SAFETY: a `T` (see the module). The copy is dropped only if the block is freed, and
        // from then on the block is not a `T` any more.
        let value = ManuallyDrop::new(unsafe { Shape::<T>::value(block).read() });
        // SAFETY: a block of this shape, if it is linked.
        let links = Shape::<T>::LINKED.then(|| unsafe { block.cast::<Links>().read() });
        self.heap.free(handle.raw)?;
        if let Some(links) = links {
            self.unlink(&links);
        }
        Ok(ManuallyDrop::into_inner(value))
    }

    /// Whether a handle resolves. O(1).
    pub fn contains<T>(&self, handle: TypedHandle<T>) -> bool {
        self.block(handle.raw).is_ok()
    }

    /// Where the block of a handle begins.
    #[inline(always)]
    fn block(&self, raw: Handle) -> Result<NonNull<u8>, BadHandle> {
        let place = self.heap.handle_place(raw)?;
        Ok(self.heap.backing().block(place))
    }

    #[inline(always)]
    fn value<T>(&self, handle: TypedHandle<T>) -> Result<NonNull<T>, BadHandle> {
        let block = self.block(handle.raw)?;
        // SAFETY: a block of this shape (see the module).
        Ok(unsafe { Shape::<T>::value(block) })
    }

    /// Verifies every invariant of the heap. Linear in pages × classes and in blocks.
    ///
    /// # Errors
    /// As [`CompactFit::check`].
    pub fn check(&self) -> Result<(), Corruption> {
        self.heap.check()
    }

    /// What the heap holds and has held. O(classes × pages).
    pub fn statistics(&self) -> Statistics {
        self.heap.statistics()
    }

    /// Where the bytes go. O(classes × pages).
    pub fn fragmentation(&self) -> Fragmentation {
        self.heap.fragmentation()
    }

    /// The states of the classes' automata, smallest class first. O(classes × pages).
    pub fn states(&self) -> impl Iterator<Item = ClassState> + '_ {
        self.heap.states()
    }

    /// Pages in use, and pages that were ever used.
    pub fn pages(&self) -> (u32, u32) {
        self.heap.pages()
    }

    /// Bytes that the heap has taken, in all.
    pub fn footprint(&self) -> usize {
        self.heap.footprint()
    }
}
