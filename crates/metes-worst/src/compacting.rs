//! Compact-fit under attack: heaps whose blocks move, over memory of their own.
//!
//! Invariant: a block's number stands for its handle until it is freed; where the block is may
//! change with every call.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_heap::Memory;
use metes_heap::compact::{CompactFit, Copying, Handle, Options};

use crate::target::{Shape, Target};
use crate::victim::Victim;

/// Heaps with the same options, one after another in the same memory.
pub struct Compacting {
    options: Options,
    memory: Vec<MaybeUninit<u8>>,
    /// Bytes of a heap that may take what it likes.
    room: usize,
}

impl Compacting {
    /// Heaps with these options; those without an arena get `room` bytes.
    pub fn new(options: Options, room: usize) -> Self {
        Compacting {
            options,
            memory: Vec::new(),
            room,
        }
    }
}

impl Victim for Compacting {
    fn fresh(
        &mut self,
        arena: Option<u64>,
        _blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Target),
    ) -> bool {
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
        let Ok(heap) = CompactFit::new(&self.options, memory) else {
            return false;
        };
        drive(&mut Attacked {
            heap,
            blocks: Vec::new(),
            spare: Vec::new(),
            frees: 0,
        });
        true
    }
}

/// A heap with its blocks by number.
struct Attacked {
    heap: CompactFit<Copying>,
    blocks: Vec<Option<Handle>>,
    spare: Vec<u32>,
    frees: u64,
}

impl Attacked {
    fn handle(&self, block: u32) -> Option<Handle> {
        self.blocks.get(block as usize).copied().flatten()
    }
}

impl Target for Attacked {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        let handle = self.heap.allocate(usize::try_from(size).ok()?, 16).ok()?;
        let number = self.spare.pop().unwrap_or(self.blocks.len() as u32);
        match self.blocks.get_mut(number as usize) {
            Some(block) => *block = Some(handle),
            None => self.blocks.push(Some(handle)),
        }
        Some(number)
    }

    fn free(&mut self, block: u32) {
        if let Some(handle) = self.handle(block)
            && self.heap.free(handle).is_ok()
        {
            self.blocks[block as usize] = None;
            self.spare.push(block);
            self.frees += 1;
        }
    }

    fn offset(&self, block: u32) -> Option<u64> {
        let offset = self.heap.offset(self.handle(block)?).ok()?;
        Some(offset as u64 - Shape::TAGGED.header)
    }

    fn footprint(&self) -> u64 {
        self.heap.footprint() as u64
    }

    fn work(&self) -> u64 {
        self.frees
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}
