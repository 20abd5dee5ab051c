//! Nodes that share memory: their heaps, and a board beside them.
//!
//! Invariant: each word of the board is an atomic; the bytes of a block are touched by who has it alone.

use std::alloc::Layout;
use std::sync::atomic::{AtomicU64, Ordering};

use metes_heap::Tagged;
use metes_heap::index::Index;
use metes_mesh::{HeapSpace, Mapping, Node, NotMade, Shared};

use crate::board::{Board, words};
use crate::lists::Lists;

/// Heaps and board.
pub(crate) struct Common<I> {
    /// Dropped before the memory that they lie in.
    pub(crate) nodes: Shared<I>,
    words: Words,
    /// Where each node's words begin.
    rows: Vec<usize>,
    _heaps: Option<Mapping>,
}

enum Words {
    Threads(Box<[AtomicU64]>),
    Processes(Mapping, usize),
}

impl<I: Index<Tagged> + Clone> Common<I> {
    /// For threads of this process.
    pub(crate) fn of_threads(
        space: HeapSpace,
        lists: &Lists,
        index: impl FnMut(Node) -> I,
    ) -> Result<Self, NotMade> {
        let (rows, count) = rows(lists);
        Ok(Common {
            nodes: Shared::new(space, index)?,
            words: Words::Threads((0..count).map(|_| AtomicU64::new(0)).collect()),
            rows,
            _heaps: None,
        })
    }

    /// For processes that this one forks.
    pub(crate) fn of_processes(
        space: HeapSpace,
        lists: &Lists,
        index: impl FnMut(Node) -> I,
    ) -> Result<Self, NotMade> {
        let (rows, count) = rows(lists);
        let layout = Shared::<I>::layout(space)?;
        let heaps = Mapping::of_processes(layout).ok_or(NotMade::NoMemory)?;
        let board = Layout::array::<AtomicU64>(count).map_err(|_| NotMade::NoMemory)?;
        let board = Mapping::of_processes(board).ok_or(NotMade::NoMemory)?;
        Ok(Common {
            // SAFETY: fresh memory of this layout, zero, which goes after the nodes.
            nodes: unsafe { Shared::lay(space, heaps.start(), index) }?,
            words: Words::Processes(board, count),
            rows,
            _heaps: Some(heaps),
        })
    }
}

/// Where each node's words begin, and how many there are of all.
fn rows(lists: &Lists) -> (Vec<usize>, usize) {
    let mut count = 0;
    let rows = (0..lists.nodes()).map(|node| {
        let row = count;
        // No two nodes write to one cache line.
        count += words(lists.requests(node)).next_multiple_of(16);
        row
    });
    (rows.collect(), count)
}

impl<I> Common<I> {
    fn word(&self, node: u32, word: usize) -> &AtomicU64 {
        let all = match &self.words {
            Words::Threads(words) => words,
            Words::Processes(mapping, count) => {
                let start = mapping.start().cast::<AtomicU64>();
                // SAFETY: memory of so many words, zero at first, to which there are no other references.
                unsafe { std::slice::from_raw_parts(start.as_ptr(), *count) }
            }
        };
        &all[self.rows[node as usize] + word]
    }
}

impl<I> Board for Common<I> {
    fn load(&self, node: u32, word: usize) -> u64 {
        self.word(node, word).load(Ordering::Acquire)
    }

    fn store(&self, node: u32, word: usize, value: u64) {
        self.word(node, word).store(value, Ordering::Release);
    }

    fn add(&self, node: u32, word: usize, value: u64) -> u64 {
        self.word(node, word).fetch_add(value, Ordering::AcqRel)
    }

    fn raise(&self, node: u32, word: usize, value: u64) {
        self.word(node, word).fetch_max(value, Ordering::Relaxed);
    }

    fn write(&self, address: u64, _size: u64, mark: u64) {
        if let Some(memory) = self.nodes.memory(address) {
            // SAFETY: every block has eight bytes, aligned to eight, and this one is this node's.
            unsafe { memory.cast::<u64>().write(mark) };
        }
    }

    fn holds(&self, address: u64, _size: u64, mark: u64) -> bool {
        self.nodes.memory(address).is_some_and(|memory| {
            // SAFETY: as in `write`; who wrote it has told where it is afterwards.
            unsafe { memory.cast::<u64>().read() == mark }
        })
    }

    fn wait(&self, _node: u32) {
        std::thread::yield_now();
    }

    fn rest(&self, _node: u32) {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}
