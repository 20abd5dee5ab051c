//! Figures of a workload: who allocates, what sizes, who frees, how much lies at the master.
//!
//! *Invariant:* all of it is counted from the workload; nothing is known beforehand of a kernel.

use std::collections::BTreeMap;

use metes_platform::{Step, Task, Workload};

/// What a workload comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Allocations.
    pub allocations: u64,
    /// Those of the master.
    pub master_allocations: u64,
    /// Blocks of slaves that the master frees.
    pub remote_frees: u64,
    /// How many blocks there are of each size class: the power of two that holds a block, and its number.
    pub sizes: Vec<(u32, u64)>,
    /// Instructions of the master, beside those of allocating.
    pub master_instructions: u64,
    /// Instructions of all slaves, beside those of allocating.
    pub slave_instructions: u64,
}

impl Figures {
    /// Counts a workload.
    #[must_use]
    pub fn of(workload: &Workload) -> Figures {
        let tasks = || workload.tasks.iter();
        let mut sizes = BTreeMap::new();
        for bytes in tasks().flat_map(blocks) {
            let class = bytes.next_power_of_two().ilog2();
            *sizes.entry(class).or_insert(0) += 1;
        }
        let computed = |task: &Task| -> u64 {
            let steps = task.steps.iter().map(|step| match step {
                Step::Compute(instructions) => *instructions,
                _ => 0,
            });
            steps.sum()
        };
        Figures {
            allocations: workload.allocations(),
            master_allocations: tasks().map(|task| 1 + task.inputs.len() as u64).sum(),
            remote_frees: tasks().map(|task| task.outputs.len() as u64).sum(),
            sizes: sizes.into_iter().collect(),
            master_instructions: tasks().map(|task| task.preparation + task.collection).sum(),
            slave_instructions: tasks().map(computed).sum(),
        }
    }
}

/// Most bytes of the master's own blocks on so many nodes, each slave with two tasks given out and not yet taken back.
#[must_use]
pub fn master_peak(workload: &Workload, nodes: usize) -> u64 {
    let under_way = 2 * nodes.saturating_sub(1);
    let held = |task: &Task| task.descriptor + task.inputs.iter().sum::<u64>();
    let held: Vec<u64> = workload.tasks.iter().map(held).collect();
    let windows = held.windows(under_way.clamp(1, held.len().max(1)));
    windows.map(|held| held.iter().sum()).max().unwrap_or(0)
}

/// The sizes of a task's blocks.
fn blocks(task: &Task) -> impl Iterator<Item = u64> + '_ {
    let slave = task.steps.iter().filter_map(|step| match step {
        Step::Allocate { size, .. } => Some(*size),
        _ => None,
    });
    std::iter::once(task.descriptor)
        .chain(task.inputs.iter().copied())
        .chain(slave)
}
