//! Heaps of the library that no replay simulates: compact-fit, page-blocks under plain
//! addresses, objects in pieces. What is attacked is their own code.
//!
//! Objects in pieces are attacked by their blocks alone: a request is served exactly when its
//! blocks are free, whichever they are.
//!
//! Invariant: a block's number stands for it until it is freed; where the block is may change
//! with every call.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_explore::{BlockCount, HandleHeap};
use metes_heap::compact::backing::{Backing, RECORD};
use metes_heap::compact::{CompactFit, Handle, NonCompacting, Options, Partition, Transition};
use metes_heap::{Memory, fragmented};

use crate::target::{Shape, Target};
use crate::victim::Victim;

/// A heap of the library, by what decides what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// Compact-fit whose blocks are copied.
    Moving(Options),
    /// Compact-fit whose blocks move in a table.
    Table(Options),
    /// Compact-fit that never moves a block, under plain addresses.
    Still(Partition),
    /// Objects as chains or trees of equal blocks.
    Pieces(fragmented::Options),
}

/// Heaps of one make, one after another in the same memory.
pub struct Library {
    make: Make,
    memory: Vec<MaybeUninit<u8>>,
    /// Bytes of a heap that may take what it likes.
    room: usize,
}

impl Library {
    /// Heaps of this make; those without an arena get `room` bytes.
    pub fn new(make: Make, room: usize) -> Self {
        Library {
            make,
            memory: Vec::new(),
            room,
        }
    }
}

impl Victim for Library {
    /// `false` also where the program has made as many heaps of handles as can be told apart.
    fn fresh(
        &mut self,
        arena: Option<u64>,
        _blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Target),
    ) -> bool {
        if let Make::Pieces(options) = self.make {
            // It has no memory, so it may take all that there could be.
            let heap = Pieces {
                heap: BlockCount::new(options, arena),
                options,
            };
            drive(&mut Numbered::new(heap));
            return true;
        }
        let bytes = match arena.map(usize::try_from) {
            None => self.room,
            Some(Ok(bytes)) => bytes,
            Some(Err(_)) => return false,
        };
        if self.memory.len() < bytes {
            self.memory.resize(bytes, MaybeUninit::uninit());
        }
        let start = NonNull::from(self.memory.as_mut_slice()).cast();
        // SAFETY: the heap ends with this call, and nothing else uses the memory meanwhile.
        let memory = unsafe { Memory::from_raw(start, bytes) };
        match self.make {
            Make::Moving(options) => CompactFit::new(&options, memory)
                .map(|heap| drive(&mut Numbered::new(Moving::new(heap, &options))))
                .is_ok(),
            Make::Table(options) => CompactFit::with_block_table(&options, memory)
                .map(|heap| drive(&mut Numbered::new(Moving::new(heap, &options))))
                .is_ok(),
            Make::Still(partition) => NonCompacting::new(&partition, memory)
                .map(|heap| drive(&mut Numbered::new(Still::new(heap, start))))
                .is_ok(),
            Make::Pieces(_) => false,
        }
    }
}

/// A heap with blocks of its own kind. Work is an estimate that guides: in the worst case it
/// leads nowhere.
trait Blocks {
    type Block: Copy;

    /// A block, and the work that it was.
    fn allocate(&mut self, size: usize) -> Option<(Self::Block, u64)>;
    /// Frees a block; the work that it was.
    fn free(&mut self, block: Self::Block) -> u64;
    /// Where a block begins, its record included.
    fn offset(&self, block: Self::Block) -> Option<u64>;
    fn footprint(&self) -> u64;
}

/// A heap with its blocks by number.
struct Numbered<H: Blocks> {
    heap: H,
    blocks: Vec<Option<H::Block>>,
    spare: Vec<u32>,
    work: u64,
}

impl<H: Blocks> Numbered<H> {
    fn new(heap: H) -> Self {
        Numbered {
            heap,
            blocks: Vec::new(),
            spare: Vec::new(),
            work: 0,
        }
    }
}

impl<H: Blocks> Target for Numbered<H> {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        let (block, work) = self.heap.allocate(usize::try_from(size).ok()?)?;
        self.work += work;
        let number = self.spare.pop().unwrap_or(self.blocks.len() as u32);
        match self.blocks.get_mut(number as usize) {
            Some(entry) => *entry = Some(block),
            None => self.blocks.push(Some(block)),
        }
        Some(number)
    }

    fn free(&mut self, block: u32) {
        let entry = self.blocks.get_mut(block as usize);
        if let Some(own) = entry.and_then(Option::take) {
            self.work += self.heap.free(own);
            self.spare.push(block);
        }
    }

    fn offset(&self, block: u32) -> Option<u64> {
        self.heap.offset((*self.blocks.get(block as usize)?)?)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint()
    }

    fn work(&self) -> u64 {
        self.work
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}

/// What a transition costs beside the bytes that it moves, in words.
fn words(transition: Transition) -> u64 {
    match transition {
        Transition::Fills | Transition::Drains => 8,
        Transition::Completes | Transition::Reopens => 12,
        Transition::Opens | Transition::Empties => 16,
        Transition::Recalls | Transition::Compacts => 24,
    }
}

/// Compact-fit behind handles.
struct Moving<B> {
    heap: CompactFit<B>,
    /// Page-blocks by size.
    classes: Vec<u64>,
    /// Bytes that a word of work stands for: of a copy, or of frames in a table.
    stride: u64,
    /// Whether page-blocks are taken and given back frame by frame.
    framed: bool,
}

impl<B: Backing> Moving<B> {
    fn new(heap: CompactFit<B>, options: &Options) -> Self {
        Moving {
            classes: heap.class_sizes().map(|bytes| bytes as u64).collect(),
            stride: match B::COPIES {
                true => size_of::<u64>() as u64,
                false => options.partition.granule as u64,
            },
            framed: !B::COPIES,
            heap,
        }
    }

    /// Words of work that the bytes of a page-block for `size` bytes are.
    fn page_block(&self, size: u64) -> u64 {
        let whole = size + RECORD as u64;
        let class = self.classes.partition_point(|&bytes| bytes < whole);
        self.classes
            .get(class)
            .map_or(0, |bytes| bytes / self.stride)
    }
}

impl<B: Backing> Blocks for Moving<B> {
    type Block = (Handle, u32);

    fn allocate(&mut self, size: usize) -> Option<(Self::Block, u64)> {
        let (handle, transition) = self.heap.allocate_traced(size, 1).ok()?;
        let frames = match self.framed {
            true => self.page_block(size as u64),
            false => 0,
        };
        Some(((handle, size as u32), words(transition) + frames))
    }

    fn free(&mut self, (handle, size): Self::Block) -> u64 {
        let Ok((transition, mut moved)) = self.heap.begin_free(handle) else {
            return 0;
        };
        while let Some(step) = moved {
            moved = self.heap.step(step);
        }
        let moves = u64::from(transition == Transition::Compacts) + u64::from(self.framed);
        words(transition) + moves * self.page_block(size.into())
    }

    fn offset(&self, (handle, _): Self::Block) -> Option<u64> {
        let offset = self.heap.offset(handle).ok()?;
        Some(offset as u64 - Shape::TAGGED.header)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint() as u64
    }
}

/// Page-blocks under plain addresses.
struct Still {
    heap: NonCompacting,
    start: NonNull<u8>,
    /// Footprint after the call before: pages that are new cost most.
    before: u64,
}

impl Still {
    fn new(heap: NonCompacting, start: NonNull<u8>) -> Self {
        Still {
            before: heap.footprint() as u64,
            heap,
            start,
        }
    }
}

impl Blocks for Still {
    type Block = NonNull<u8>;

    fn allocate(&mut self, size: usize) -> Option<(NonNull<u8>, u64)> {
        let block = self.heap.allocate(size, 1)?;
        let footprint = self.heap.footprint() as u64;
        let opens = footprint > self.before;
        self.before = footprint;
        Some((block, if opens { 16 } else { 8 }))
    }

    fn free(&mut self, block: NonNull<u8>) -> u64 {
        u64::from(self.heap.free(block).is_ok()) * 8
    }

    fn offset(&self, block: NonNull<u8>) -> Option<u64> {
        Some((block.addr().get() - self.start.addr().get()) as u64)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint() as u64
    }
}

/// Objects in pieces, counted.
struct Pieces {
    heap: BlockCount,
    options: fragmented::Options,
}

impl Blocks for Pieces {
    type Block = u64;

    fn allocate(&mut self, size: usize) -> Option<(u64, u64)> {
        let blocks = self.heap.allocate(size, 1)?;
        // Each block is set to zero.
        let words = self.options.block / size_of::<u64>();
        Some((blocks, blocks * (4 + words as u64)))
    }

    fn free(&mut self, blocks: u64) -> u64 {
        self.heap.free(blocks);
        blocks * 4
    }

    fn offset(&self, _block: u64) -> Option<u64> {
        None
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint()
    }
}
