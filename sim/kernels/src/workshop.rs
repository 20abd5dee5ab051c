//! Where a kernel computes: memory that is recorded, and instructions that are told.
//!
//! *Invariant:* a buffer that was freed cannot be used; one that was dropped unfreed is an error of the kernel, which
//! [`record`] finds.

use std::ops::{Deref, DerefMut};

use metes_platform::{Step, Task, Workload};

/// A block of memory, as the kernel sees it.
pub struct Buffer<T> {
    block: u32,
    items: Vec<T>,
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

/// One side's part of a task: what it does is recorded.
#[derive(Default)]
pub struct Workshop {
    steps: Vec<Step>,
    /// The number of the task's next block.
    next: u32,
    /// The task's blocks that are not freed.
    live: u32,
}

impl Workshop {
    /// Asks for a block of `count` items, which are zero.
    pub fn allocate<T: Clone + Default>(&mut self, count: usize) -> Buffer<T> {
        let size = (count * size_of::<T>()) as u64;
        let block = self.next;
        self.next += 1;
        self.live += 1;
        self.steps.push(Step::Allocate { block, size });
        Buffer {
            block,
            items: vec![T::default(); count],
        }
    }

    /// Frees a block.
    pub fn free<T>(&mut self, buffer: Buffer<T>) {
        self.live -= 1;
        let block = buffer.block;
        self.steps.push(Step::Free { block });
    }

    /// Tells of so many instructions.
    pub fn compute(&mut self, instructions: u64) {
        if let Some(Step::Compute(all)) = self.steps.last_mut() {
            *all += instructions;
        } else {
            self.steps.push(Step::Compute(instructions));
        }
    }

    /// The steps since the last call.
    fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }
}

/// A computation in tasks.
pub trait Kernel {
    /// What a master gives to a slave.
    type Input;
    /// What a slave gives back.
    type Output;
    /// What comes of all tasks.
    type Whole;
    /// Its name.
    const NAME: &'static str;

    /// How many tasks there are.
    fn tasks(&self) -> usize;
    /// What the master does before a slave works on task `number`.
    fn prepare(&self, number: usize, master: &mut Workshop) -> Self::Input;
    /// What the slave does.
    fn work(&self, input: &Self::Input, slave: &mut Workshop) -> Self::Output;
    /// What the master does with what the slave gives back.
    fn collect(
        &mut self,
        number: usize,
        input: Self::Input,
        output: Self::Output,
        master: &mut Workshop,
    );
    /// What has come of all tasks.
    fn whole(&mut self) -> Self::Whole;
}

/// Computes a kernel, task by task, and records it.
///
/// # Panics
/// When the kernel does not keep to the form of a task: the master allocates first a descriptor, then inputs, and frees all
/// that the slave has left.
pub fn record<K: Kernel>(kernel: &mut K) -> (K::Whole, Workload) {
    let workload = Workload {
        name: K::NAME.to_owned(),
        tasks: (0..kernel.tasks())
            .map(|number| record_task(kernel, number))
            .collect(),
    };
    (kernel.whole(), workload)
}

fn record_task<K: Kernel>(kernel: &mut K, number: usize) -> Task {
    let mut workshop = Workshop::default();
    let input = kernel.prepare(number, &mut workshop);
    let prepared = workshop.take();
    let masters = workshop.next;
    let output = kernel.work(&input, &mut workshop);
    let worked = workshop.take();
    kernel.collect(number, input, output, &mut workshop);
    let collected = workshop.take();
    assert_eq!(workshop.live, 0, "{}: task {number} leaks", K::NAME);
    // A task counts the slave's blocks from 0.
    let of_slave = |block: u32| {
        let own = block.checked_sub(masters);
        own.unwrap_or_else(|| panic!("{}: a slave frees the master's block {block}", K::NAME))
    };
    let mut sizes = sizes(&prepared);
    let steps = worked.into_iter().map(|step| match step {
        Step::Compute(_) => step,
        Step::Allocate { block, size } => Step::Allocate {
            block: of_slave(block),
            size,
        },
        Step::Free { block } => Step::Free {
            block: of_slave(block),
        },
    });
    let freed = collected.iter().filter_map(|step| match step {
        Step::Free { block } if *block >= masters => Some(of_slave(*block)),
        _ => None,
    });
    Task {
        descriptor: sizes.next().expect("a descriptor comes first"),
        inputs: sizes.collect(),
        preparation: computed(&prepared),
        steps: steps.collect(),
        outputs: freed.collect(),
        collection: computed(&collected),
    }
}

fn sizes(steps: &[Step]) -> impl Iterator<Item = u64> + '_ {
    steps.iter().filter_map(|step| match step {
        Step::Allocate { size, .. } => Some(*size),
        _ => None,
    })
}

fn computed(steps: &[Step]) -> u64 {
    let instructions = steps.iter().map(|step| match step {
        Step::Compute(instructions) => *instructions,
        _ => 0,
    });
    instructions.sum()
}
