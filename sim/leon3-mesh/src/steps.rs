//! What the image of the heap space map (`sim/leon3/images/hsm.c`) does, as a list of steps in its memory.
//!
//! *Invariant:* a list that is made here is one that the image can do: its numbers have room in a word.

use metes_platform::{Step as Work, Workload};

/// A step of a node's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes for so many instructions.
    Compute(u64),
    /// Asks for a block, which has a number from then on, below 4096.
    Get {
        /// The number.
        block: u16,
        /// Bytes.
        size: u32,
    },
    /// Frees a block; one that was refused is none, and nothing happens.
    Put {
        /// Its number.
        block: u16,
    },
    /// Sends a block to another node.
    Pass {
        /// The node.
        to: u16,
        /// The block.
        block: u16,
    },
    /// Waits for a block that another node sends.
    Accept {
        /// The number that it has from then on.
        block: u16,
    },
    /// Says so to whoever looks on.
    Tell(u16),
}

/// Numbers of blocks that the image has.
pub const BLOCKS: u16 = 4096;
/// Words of steps that it has.
pub const WORDS: usize = 65536;
/// What a word has room for beside its kind.
const MOST: u64 = 0x00ff_ffff;

/// The words of a list, with its end.
#[must_use]
pub fn words(steps: &[Step]) -> Vec<u32> {
    let mut words = Vec::new();
    for step in steps {
        match *step {
            Step::Compute(instructions) => {
                let mut left = instructions;
                while left > 0 {
                    let part = left.min(MOST);
                    words.push(1 << 24 | part as u32);
                    left -= part;
                }
            }
            Step::Get { block, size } => words.extend([2 << 24 | u32::from(block), size]),
            Step::Put { block } => words.push(3 << 24 | u32::from(block)),
            Step::Pass { to, block } => words.extend([4 << 24 | u32::from(to), block.into()]),
            Step::Accept { block } => words.push(5 << 24 | u32::from(block)),
            Step::Tell(word) => words.push(6 << 24 | u32::from(word)),
        }
    }
    words.push(0);
    words
}

/// Tasks that a slave has at a time.
const AHEAD: usize = 2;

/// Lists of a master and its slaves for `tasks` tasks, those of the workload over and over. Slaves have them in turn; the master
/// keeps two ahead of each, and frees what comes back, whosever it is.
///
/// # Panics
/// When there is no slave, or a task has 4096 blocks or more.
#[must_use]
pub fn master_and_slaves(workload: &Workload, nodes: u16, tasks: usize) -> Vec<Vec<Step>> {
    assert!(nodes > 1, "a master alone does no tasks");
    let slaves = usize::from(nodes) - 1;
    let task = |number: usize| &workload.tasks[number % workload.tasks.len()];
    let mut lists = vec![Vec::new(); usize::from(nodes)];
    // Back come descriptor, inputs and outputs.
    let collect = |master: &mut Vec<Step>, number: usize| {
        let task = task(number);
        master.push(Step::Compute(task.collection));
        for _ in 0..1 + task.inputs.len() + task.outputs.len() {
            master.extend([Step::Accept { block: 0 }, Step::Put { block: 0 }]);
        }
    };
    for number in 0..tasks {
        let (task, to) = (task(number), number % slaves + 1);
        let sizes = std::iter::once(task.descriptor).chain(task.inputs.iter().copied());
        let blocks = 1 + task.inputs.len() as u16;
        let master = &mut lists[0];
        if let Some(done) = number.checked_sub(AHEAD * slaves) {
            collect(master, done);
        }
        for (block, size) in (0..).zip(sizes) {
            let size = size as u32;
            master.push(Step::Get { block, size });
        }
        master.push(Step::Compute(task.preparation));
        let to_slave = to as u16;
        master.extend((0..blocks).map(|block| Step::Pass {
            to: to_slave,
            block,
        }));

        let slave = &mut lists[to];
        let own = |block: u32| {
            let block = blocks + block as u16;
            assert!(block < BLOCKS, "a task has too many blocks");
            block
        };
        slave.extend((0..blocks).map(|block| Step::Accept { block }));
        slave.extend(task.steps.iter().map(|step| match *step {
            Work::Compute(instructions) => Step::Compute(instructions),
            Work::Allocate { block, size } => Step::Get {
                block: own(block),
                size: size as u32,
            },
            Work::Free { block } => Step::Put { block: own(block) },
        }));
        let back = (0..blocks).chain(task.outputs.iter().map(|block| own(*block)));
        slave.extend(back.map(|block| Step::Pass { to: 0, block }));
    }
    for number in tasks.saturating_sub(AHEAD * slaves)..tasks {
        collect(&mut lists[0], number);
    }
    lists
}
