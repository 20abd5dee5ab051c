//! Nodes that share memory: threads of a process, processes over one mapping, cores of a board.
//!
//! ```text
//! | heap of node 0 | … | heap of the last node | what is laid here | part of node 0 | … | tags of node 0 | … |
//! ```
//!
//! Heaps lie as far apart as their addresses in the space. With a space that begins where the memory does, an address of the
//! space is an address of memory.
//!
//! Invariant: what lies in the memory holds addresses of that memory alone, so whoever has it at the same address and runs the
//! same program may work on it.

use core::alloc::Layout;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use metes_heap::index::Index;
use metes_heap::{Memory, Tagged};

use crate::fabric::{EXCHANGE, Fabric, LOAD, STORE, Word};
use crate::local::{LocalHeap, TaggedHeap};
#[cfg(feature = "std")]
use crate::mapping::Mapping;
use crate::part::{Audit, NotMade, Part};
use crate::space::{HeapSpace, Node, Place};

/// Nodes in one memory, whose heaps have the index `I`.
pub struct Shared<I> {
    space: HeapSpace,
    parts: NonNull<Part<I>>,
    #[cfg(feature = "std")]
    own: Option<Own>,
}

/// Memory that goes with it: nodes are threads of this process.
#[cfg(feature = "std")]
struct Own {
    /// Given back after the parts in it.
    _memory: Mapping,
    has_barrier: bool,
}

// SAFETY: words and tags are atomics; heaps are used under their locks, which the protocol takes by exchanges that order
// what one holder does before what the next one does; and blocks are used by who owns them.
unsafe impl<I: Send> Sync for Shared<I> {}
// SAFETY: no part refers to the thread that made it.
unsafe impl<I: Send> Send for Shared<I> {}

impl<I> fmt::Debug for Shared<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("space", &self.space)
            .finish_non_exhaustive()
    }
}

/// Where things of one kind lie, node by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Those of node 0, from the beginning of the memory.
    pub begin: usize,
    /// Bytes of each node.
    pub each: usize,
}

/// Where things lie, from the beginning of the memory.
struct Plan {
    laid: usize,
    parts: usize,
    tags: usize,
    /// Tags of each node.
    granules: usize,
    whole: Layout,
}

impl Plan {
    fn of<I: Index<Tagged> + Clone>(space: HeapSpace) -> Option<Plan> {
        let nodes = space.nodes() as usize;
        let stride = usize::try_from(space.stride()).ok()?;
        let heaps = stride.checked_mul(nodes)?;
        let granules = usize::try_from(space.size().div_ceil(TaggedHeap::<I>::APART)).ok()?;
        let heaps = Layout::from_size_align(heaps, stride.max(align_of::<Part<I>>())).ok()?;
        let (whole, laid) = heaps.extend(Layout::new::<AtomicUsize>()).ok()?;
        let (whole, parts) = whole.extend(Layout::array::<Part<I>>(nodes).ok()?).ok()?;
        let all = granules.checked_mul(nodes)?;
        let (whole, tags) = whole.extend(Layout::array::<AtomicU16>(all).ok()?).ok()?;
        Some(Plan {
            laid,
            parts,
            tags,
            granules,
            whole: whole.pad_to_align(),
        })
    }
}

impl<I: Index<Tagged> + Clone> Shared<I> {
    /// The memory that the nodes of `space` take together: their heaps as far apart as in the space, and behind them two
    /// bytes for each [`LocalHeap::APART`] and a few hundred a node.
    ///
    /// # Errors
    /// [`NotMade::NoMemory`] where the target has not so many addresses.
    pub fn layout(space: HeapSpace) -> Result<Layout, NotMade> {
        Plan::of::<I>(space)
            .map(|plan| plan.whole)
            .ok_or(NotMade::NoMemory)
    }

    /// Where things of each node lie in this memory: heaps, parts (words and heads of heaps), tags. For machines in which it
    /// matters which node memory is at.
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    pub fn stripes(space: HeapSpace) -> Result<[Stripe; 3], NotMade> {
        let plan = Plan::of::<I>(space).ok_or(NotMade::NoMemory)?;
        let stripe = |begin, each| Stripe { begin, each };
        Ok([
            stripe(0, space.stride() as usize),
            stripe(plan.parts, size_of::<Part<I>>()),
            stripe(plan.tags, size_of::<AtomicU16>() * plan.granules),
        ])
    }

    /// Lays the nodes of `space` into memory, each with the index that `index` makes for it.
    ///
    /// # Errors
    /// [`NotMade`] says what to give instead.
    ///
    /// # Safety
    /// At `memory` lies memory of this [layout](Self::layout), which is used by nothing else as long as any node is at work,
    /// and is filled with zeros behind the heaps.
    pub unsafe fn lay(
        space: HeapSpace,
        memory: NonNull<u8>,
        mut index: impl FnMut(Node) -> I,
    ) -> Result<Self, NotMade> {
        let plan = Plan::of::<I>(space).ok_or(NotMade::NoMemory)?;
        if !memory.addr().get().is_multiple_of(plan.whole.align()) {
            let multiple = plan.whole.align();
            return Err(NotMade::Misaligned { multiple });
        }
        // SAFETY: inside of the memory, and aligned, by the plan.
        let (parts, tags) = unsafe {
            (
                memory.add(plan.parts).cast::<Part<I>>(),
                memory.add(plan.tags).cast::<AtomicU16>(),
            )
        };
        for node in space.from(Node(0)) {
            let number = node.0 as usize;
            // SAFETY: a space fits the plan, so each heap and its tags lie in the memory; the heap has no byte of another.
            let part = unsafe {
                let start = memory.add(number * space.stride() as usize);
                let heap = Memory::from_raw(start, space.size() as usize);
                Part::new(heap, tags.add(number * plan.granules), index(node))
            }?;
            // SAFETY: by the plan.
            unsafe { parts.add(number).write(part) };
        }
        // SAFETY: a word of the memory, which is 0.
        let laid: &AtomicUsize = unsafe { memory.add(plan.laid).cast().as_ref() };
        laid.store(mark::<I>(space), Ordering::Release);
        Ok(Shared {
            space,
            parts,
            #[cfg(feature = "std")]
            own: None,
        })
    }

    /// The nodes of `space` that were laid into this memory before.
    ///
    /// # Errors
    /// [`NotMade::NotLaid`] if none were, or others: another space, or another kind of heap.
    ///
    /// # Safety
    /// The memory has this [layout](Self::layout) and lies at the address at which nodes were laid into it, by the same
    /// program, or holds zeros.
    pub unsafe fn attach(space: HeapSpace, memory: NonNull<u8>) -> Result<Self, NotMade> {
        let plan = Plan::of::<I>(space).ok_or(NotMade::NoMemory)?;
        if !memory.addr().get().is_multiple_of(plan.whole.align()) {
            let multiple = plan.whole.align();
            return Err(NotMade::Misaligned { multiple });
        }
        // SAFETY: a word of the memory.
        let laid: &AtomicUsize = unsafe { memory.add(plan.laid).cast().as_ref() };
        if laid.load(Ordering::Acquire) != mark::<I>(space) {
            return Err(NotMade::NotLaid);
        }
        Ok(Shared {
            space,
            // SAFETY: by the plan.
            parts: unsafe { memory.add(plan.parts).cast() },
            #[cfg(feature = "std")]
            own: None,
        })
    }

    /// Nodes in memory of the host, which goes with them. It is taken as it is written, but for tags.
    ///
    /// # Errors
    /// [`NotMade`] says what to give instead.
    #[cfg(feature = "std")]
    pub fn new(space: HeapSpace, index: impl FnMut(Node) -> I) -> Result<Self, NotMade> {
        let layout = Self::layout(space)?;
        let memory = Mapping::new(layout).ok_or(NotMade::NoMemory)?;
        // SAFETY: fresh memory of this layout, zero, given back after the last use.
        let laid = unsafe { Self::lay(space, memory.start(), index) }?;
        Ok(Shared {
            own: Some(Own {
                _memory: memory,
                has_barrier: crate::barrier::prepare(),
            }),
            ..laid
        })
    }

    /// What the heap of a node holds, and what its tags say. Linear.
    ///
    /// # Safety
    /// No node is at work.
    pub unsafe fn audit_of(&self, node: Node) -> Audit {
        let granules = self.space.size().div_ceil(TaggedHeap::<I>::APART);
        // SAFETY: as the caller says; a heap has so many granules.
        unsafe { self.part(node).audit(granules) }
    }

    /// What each heap holds, and what its tags say, where no other process is at work. Linear.
    #[cfg(feature = "std")]
    pub fn audit(&mut self) -> std::vec::Vec<Audit> {
        let nodes = self.space.from(Node(0));
        // SAFETY: no other thread has a reference.
        nodes.map(|node| unsafe { self.audit_of(node) }).collect()
    }
}

/// What says that the nodes of a space with heaps of this kind are laid: not 0.
fn mark<I>(space: HeapSpace) -> usize {
    /// FNV-1a.
    struct Sum(u64);
    impl Hasher for Sum {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    space.hash(&mut sum);
    core::any::type_name::<I>().hash(&mut sum);
    size_of::<Part<I>>().hash(&mut sum);
    sum.finish() as usize | 1
}

impl<I> Shared<I> {
    /// The memory at an address, up to its heap's end; nothing outside of every heap.
    pub fn memory(&self, address: u64) -> Option<NonNull<u8>> {
        let Place { node, offset } = self.space.place(address)?;
        Some(self.part(node).at(offset))
    }

    #[inline]
    fn part(&self, node: Node) -> &Part<I> {
        assert!(node.0 < self.space.nodes(), "a node of the space");
        // SAFETY: there is a part for each node, which lives as long as the memory.
        unsafe { self.parts.add(node.0 as usize).as_ref() }
    }
}

#[cfg(feature = "std")]
impl<I> Drop for Shared<I> {
    fn drop(&mut self) {
        if self.own.is_some() {
            for number in 0..self.space.nodes() as usize {
                // SAFETY: each part was written, and is used no more.
                unsafe { self.parts.add(number).drop_in_place() };
            }
        }
    }
}

impl<I: Index<Tagged> + Clone> Fabric for Shared<I> {
    type Heap = TaggedHeap<I>;

    #[inline]
    fn space(&self) -> HeapSpace {
        self.space
    }

    #[inline]
    fn load(&self, node: Node, word: Word) -> u64 {
        self.part(node).words.at(word).load(LOAD) as u64
    }

    #[inline]
    fn store(&self, node: Node, word: Word, value: u64) {
        self.part(node).words.at(word).store(narrow(value), STORE);
    }

    #[inline]
    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        let word = self.part(node).words.at(word);
        match word.compare_exchange(narrow(current), narrow(new), EXCHANGE, LOAD) {
            Ok(_) => Ok(()),
            Err(found) => Err(found as u64),
        }
    }

    #[inline]
    fn tag(&self, node: Node, granule: u64) -> u16 {
        // SAFETY: the protocol asks for granules of places of the space alone.
        unsafe { self.part(node).tag(granule) }.load(LOAD)
    }

    #[inline]
    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        // SAFETY: as in `tag`.
        unsafe { self.part(node).tag(granule) }.store(tag, STORE);
    }

    #[inline]
    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        // SAFETY: as in `tag`.
        let tag = unsafe { self.part(node).tag(granule) };
        tag.compare_exchange(current, new, EXCHANGE, LOAD)
            .map(|_| ())
    }

    #[inline]
    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        let link: *const usize = self.part(node).at(offset).as_ptr().cast();
        // SAFETY: the block is parked, so its first word is a link that was written before it was parked, and who parked it
        // touches it no more.
        unsafe { link.read() as u64 }
    }

    #[inline]
    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        let place: *mut usize = self.part(node).at(offset).as_ptr().cast();
        // SAFETY: the block is in use by the caller alone, and is aligned to a word at least.
        unsafe { place.write(narrow(link)) };
    }

    #[inline]
    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T {
        // SAFETY: the caller holds the lock, so nobody else has a reference to the heap.
        change(unsafe { &mut *self.part(node).heap.get() })
    }

    #[cfg(feature = "std")]
    fn barrier(&self) -> bool {
        // Threads of other processes would not pass it.
        self.own.as_ref().is_some_and(|own| own.has_barrier) && crate::barrier::pass()
    }

    fn relax(&self) {
        #[cfg(feature = "std")]
        std::thread::yield_now();
        #[cfg(not(feature = "std"))]
        core::hint::spin_loop();
    }
}

/// A word of the target: offsets lie in memory that it addresses, and an epoch ends with the target's last (2¹⁵ deaths of one
/// node at 32 bits).
#[inline]
fn narrow(value: u64) -> usize {
    debug_assert!(usize::try_from(value).is_ok(), "a word of the target");
    value as usize
}
