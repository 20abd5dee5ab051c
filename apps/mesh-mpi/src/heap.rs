//! The heap of a rank, operated by whoever holds its lock.
//!
//! Its records lie in the window, and what of it does not ([`Carried`]) lies beside them, is read when an operation begins and
//! written when it has ended.
//!
//! Invariant: what is carried is read only where the operation before has ended: where it was broken off, the protocol rebuilds
//! the heap, from tags and records alone.

use std::cell::{Cell, RefCell, RefMut};
use std::mem::MaybeUninit;
use std::rc::Rc;

use metes_heap::{AnyIndex, Carried, Distant, DistantBlock, Heap, RegionError, State, Words};
use metes_mesh::LocalHeap;

use crate::layout::Layout;
use crate::window::{Window, WindowError};

/// What a rank's heap is made by: any index of the library.
pub type Index = AnyIndex<DistantBlock>;

/// What fails over a window ends this rank: it can take no further step, and the others go on without it.
pub(crate) fn sure<T>(done: Result<T, WindowError>) -> T {
    done.unwrap_or_else(|error| {
        eprintln!("metes-mesh-mpi: {error}; this rank ends");
        std::process::abort()
    })
}

/// The heap's memory of the rank that is worked on.
#[derive(Debug)]
struct Reach {
    window: Rc<Window>,
    layout: Layout,
    rank: Cell<u32>,
}

impl Words for Reach {
    fn get(&self, at: usize) -> usize {
        let mut bytes = [0; size_of::<usize>()];
        let at = self.place(at);
        sure(self.window.get(self.rank.get(), at, &mut bytes));
        usize::from_ne_bytes(bytes)
    }

    fn put(&self, at: usize, word: usize) {
        let at = self.place(at);
        sure(self.window.put(self.rank.get(), at, &word.to_ne_bytes()));
    }
}

impl Reach {
    /// A word outside of the heap comes of a record that was overwritten: nothing is touched then.
    fn place(&self, at: usize) -> u64 {
        let (at, bytes) = (at as u64, self.layout.heap_bytes());
        let inside = at.checked_add(8).is_some_and(|end| end <= bytes);
        assert!(
            inside,
            "a record of a heap was overwritten: it names {at:#x}"
        );
        self.layout.heap() + at
    }
}

/// The heap of the rank that is worked on.
#[derive(Debug)]
pub struct WindowHeap {
    /// The same of all ranks, but for what is carried and where it is reached.
    heap: RefCell<Heap<Index, Distant<Reach>>>,
    /// A new one of the kind, to rebuild with.
    index: Index,
}

impl WindowHeap {
    /// Lays the heap of this rank into its window.
    ///
    /// # Errors
    /// It is too small, or too large for its kind.
    pub(crate) fn lay(
        window: &Rc<Window>,
        layout: Layout,
        rank: u32,
        index: Index,
    ) -> Result<WindowHeap, RegionError> {
        let reach = Reach {
            window: Rc::clone(window),
            layout,
            rank: Cell::new(rank),
        };
        let mut heap = Heap::new(index.clone(), Distant::new(reach));
        heap.add_region(layout.heap_bytes() as usize)?;
        leave(&heap);
        Ok(WindowHeap {
            heap: RefCell::new(heap),
            index,
        })
    }

    /// Works on the heap of that rank from now on.
    pub(crate) fn turn_to(&self, rank: u32) {
        self.heap.borrow().store().words().rank.set(rank);
    }

    /// The heap as the last one left it who worked on it.
    fn resumed(&self) -> RefMut<'_, Heap<Index, Distant<Reach>>> {
        let mut heap = self.heap.borrow_mut();
        let mut carried = MaybeUninit::<Carried<Index>>::uninit();
        let Reach {
            window,
            layout,
            rank,
        } = heap.store().words();
        let (rank, at) = (rank.get(), layout.carried());
        let length = size_of_val(&carried);
        sure(window.reaches(rank, at, length as u64));
        // SAFETY: so many bytes lie in the window, and here.
        sure(unsafe { window.get_raw(rank, at, carried.as_mut_ptr().cast(), length) });
        // SAFETY: the same program wrote it there, by `leave`, and wholly: where that was broken off, the protocol calls
        // `rebuild`, which does not read it. It holds offsets and no addresses, so it is the same to every process.
        unsafe { heap.resume(carried.assume_init()) };
        heap
    }

    fn each_used(&self, mut tell: impl FnMut(usize)) {
        let walked = self.resumed().walk(|block| {
            if let State::Used(requested) = block.state {
                tell(requested);
            }
        });
        debug_assert!(walked.is_ok(), "the heap is whole");
    }
}

/// Leaves what the next one needs who works on the heap.
fn leave(heap: &Heap<Index, Distant<Reach>>) {
    let carried = heap.carry();
    let Reach {
        window,
        layout,
        rank,
    } = heap.store().words();
    let (rank, at) = (rank.get(), layout.carried());
    let length = size_of_val(&carried);
    sure(window.reaches(rank, at, length as u64));
    // SAFETY: so many bytes lie in the window, and here.
    sure(unsafe { window.put_raw(rank, at, (&raw const carried).cast(), length) });
}

impl LocalHeap for WindowHeap {
    // A block has a word in front of it and room for two links and a footer.
    const APART: u64 = 4 * size_of::<usize>() as u64;

    fn allocate(&mut self, size: u64, align: u64) -> Option<u64> {
        let size = usize::try_from(size).ok()?;
        let align = usize::try_from(align).ok()?;
        let mut heap = self.resumed();
        let offset = heap.allocate(size, align);
        leave(&heap);
        offset.map(|offset| offset as u64)
    }

    unsafe fn free(&mut self, offset: u64) {
        let mut heap = self.resumed();
        // SAFETY: as the caller says.
        let freed = unsafe { heap.free(offset as usize) };
        debug_assert!(freed.is_ok(), "a block in use is freed");
        leave(&heap);
    }

    unsafe fn rebuild(&mut self, used: impl Iterator<Item = u64> + Clone) -> bool {
        let mut heap = self.heap.borrow_mut();
        let places = used.map(|offset| offset as usize);
        // SAFETY: as the caller says; the heap has no source.
        let rebuilt = unsafe { heap.rebuild(self.index.clone(), places) };
        if rebuilt.is_ok() {
            leave(&heap);
        }
        rebuilt.is_ok()
    }

    fn live(&self) -> u64 {
        let mut live = 0;
        self.each_used(|requested| live += requested as u64);
        live
    }

    fn blocks(&self) -> u64 {
        let mut blocks = 0;
        self.each_used(|_| blocks += 1);
        blocks
    }

    fn is_whole(&self) -> bool {
        self.resumed().check().is_ok()
    }
}
