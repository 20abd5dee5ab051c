//! `Instances`: several compact-fit heaps for several threads, n-CF(κ, ι) of the slides.
//!
//! Each thread allocates from its own instance, whose locks are then seldom contended; a block
//! is freed, read, written and moved in the instance that it came from, whichever thread asks,
//! under the locks of that instance. How many threads share an instance is the *degree of
//! sharing*: 1 scales with the cores, all threads in one instance is 1-CF.
//!
//! Invariant: instance i has the i-th of consecutive identities, which its handles name; so the
//! owner of a handle is found in O(1).

use core::ptr::NonNull;

use super::backing::RECORD;
use super::handles::{BadHandle, Handle};
use super::layout::Cursor;
use super::moving::unique_identities;
use super::options::{Options, Unfit};
use super::refusal::{Refused, Resize};
use super::shared::{Granularity, SharedCompactFit, Sharing};
use crate::heap::Corruption;
use crate::lock::Lock;
use crate::store::tagged::Memory;

/// Who uses the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Population {
    /// Threads.
    pub threads: usize,
    /// Instances.
    pub instances: usize,
    /// Degree of sharing: most threads that allocate from one instance. 1 shares nothing.
    pub degree: usize,
    /// Whether a thread whose instance is exhausted allocates from the others, in O(instances)
    /// instead of O(1).
    pub spill: bool,
}

impl Population {
    /// Checks that every thread has an instance.
    ///
    /// # Errors
    /// [`Unfit::Threads`], [`Unfit::Instances`].
    pub fn validate(&self) -> Result<(), Unfit> {
        let Population {
            threads, instances, ..
        } = *self;
        if threads == 0 {
            return Err(Unfit::Threads);
        }
        if threads > instances.saturating_mul(self.degree) {
            return Err(Unfit::Instances { instances, threads });
        }
        Ok(())
    }
}

/// Several [`SharedCompactFit`] heaps in one memory, divided evenly.
///
/// ```
/// use core::mem::MaybeUninit;
/// use metes_heap::Memory;
/// use metes_heap::compact::{Granularity, Instances, Options, Population, Unfit};
/// use metes_heap::lock::Spin;
///
/// let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
/// let memory = Memory::from_static(memory);
/// let mut population = Population { threads: 4, instances: 2, degree: 1, spill: false };
/// assert_eq!(population.validate(), Err(Unfit::Instances { instances: 2, threads: 4 }));
/// population.degree = 2;
/// let options = Options::DEFAULT;
/// let heaps = Instances::new(&options, Granularity::Class, population, memory, Spin::new).unwrap();
/// let block = heaps.member(3).unwrap().allocate(100, 8).unwrap();
/// heaps.free(block).unwrap(); // by any thread
/// ```
#[derive(Debug)]
pub struct Instances<L: 'static> {
    heaps: &'static mut [SharedCompactFit<L>],
    population: Population,
    identity: u16,
}

/// A thread's view of the [`Instances`]: where it allocates.
#[derive(Debug)]
pub struct Member<'a, L: 'static> {
    instances: &'a Instances<L>,
    own: usize,
}

impl<L: Lock + 'static> Instances<L> {
    /// Instances in `memory`, with locks made by `lock`.
    ///
    /// # Errors
    /// [`Unfit`]: more threads than instances and their degree allow, contradictory options, or
    /// too small a memory.
    pub fn new(
        options: &Options,
        granularity: Granularity,
        population: Population,
        memory: Memory,
        lock: impl Fn() -> L,
    ) -> Result<Self, Unfit> {
        population.validate()?;
        options.validate(RECORD)?;
        let count = u16::try_from(population.instances).map_err(|_| Unfit::Identities)?;
        let identity = unique_identities(count).ok_or(Unfit::Identities)?;
        let sharing = Sharing {
            granularity,
            threads: population.threads,
        };
        let mut cursor = Cursor::new(memory);
        let parts = cursor.divide::<SharedCompactFit<L>>(usize::from(count))?;
        let heaps = cursor.try_slice(usize::from(count), |index| {
            let identity = identity + index as u16;
            SharedCompactFit::with_identity(options, sharing, parts(index), &lock, identity)
        })?;
        Ok(Instances {
            heaps,
            population,
            identity,
        })
    }

    /// What the thread of this number, from 0, allocates from.
    ///
    /// # Errors
    /// [`Unfit::Instances`] when the population has fewer threads.
    pub fn member(&self, thread: usize) -> Result<Member<'_, L>, Unfit> {
        let Population {
            threads,
            instances,
            degree,
            ..
        } = self.population;
        if thread >= threads {
            return Err(Unfit::Instances {
                instances,
                threads: thread.saturating_add(1),
            });
        }
        Ok(Member {
            instances: self,
            own: thread / degree,
        })
    }

    /// The instance that a handle's block came from. O(1).
    ///
    /// # Errors
    /// [`BadHandle::Foreign`].
    #[inline(always)]
    pub fn owner(&self, handle: Handle) -> Result<&SharedCompactFit<L>, BadHandle> {
        let index = handle.identity().wrapping_sub(self.identity);
        self.heaps.get(usize::from(index)).ok_or(BadHandle::Foreign)
    }

    /// Every instance, to look at.
    pub fn heaps(&self) -> &[SharedCompactFit<L>] {
        self.heaps
    }

    /// Frees a block in the instance that it came from:
    /// [`SharedCompactFit::free`].
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn free(&self, handle: Handle) -> Result<(), BadHandle> {
        self.owner(handle)?.free(handle)
    }

    /// Copies bytes of a block out: [`SharedCompactFit::read`].
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        self.owner(handle)?.read(handle, offset, bytes)
    }

    /// Copies bytes into a block: [`SharedCompactFit::write`].
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn write(&self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        self.owner(handle)?.write(handle, offset, bytes)
    }

    /// Pins a block: [`SharedCompactFit::pin`].
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn pin(&self, handle: Handle) -> Result<NonNull<u8>, BadHandle> {
        self.owner(handle)?.pin(handle)
    }

    /// Takes a pin back: [`SharedCompactFit::unpin`].
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn unpin(&self, handle: Handle) -> Result<(), BadHandle> {
        self.owner(handle)?.unpin(handle)
    }

    /// Resizes a block within its instance: [`SharedCompactFit::resize`].
    ///
    /// # Errors
    /// [`Resize`].
    pub fn resize(&self, handle: Handle, size: usize, align: usize) -> Result<(), Resize> {
        self.owner(handle)?.resize(handle, size, align)
    }

    /// Verifies every invariant of every instance.
    ///
    /// # Errors
    /// [`Corruption`].
    pub fn check(&mut self) -> Result<(), Corruption> {
        self.heaps.iter_mut().try_for_each(SharedCompactFit::check)
    }
}

impl<L: Lock + 'static> Member<'_, L> {
    /// Allocates a block of `size` bytes aligned to `align`, a power of two, from the thread's
    /// own instance: [`SharedCompactFit::allocate`]. O(1), with spilling O(instances).
    ///
    /// # Errors
    /// [`Refused`].
    pub fn allocate(&self, size: usize, align: usize) -> Result<Handle, Refused> {
        let heaps = &*self.instances.heaps;
        let refused = match heaps[self.own].allocate(size, align) {
            Err(refused) => refused,
            Ok(handle) => return Ok(handle),
        };
        if !self.instances.population.spill || refused != Refused::Exhausted {
            return Err(refused);
        }
        let others = (1..heaps.len()).map(|step| (self.own + step) % heaps.len());
        others
            .map(|index| heaps[index].allocate(size, align))
            .find(Result::is_ok)
            .unwrap_or(Err(refused))
    }
}
