//! What a master-slave program does, as plain data: tasks, what they allocate, and what they compute in between.
//!
//! The master (node 0) takes for each task a descriptor and the inputs, fills them, and hands the task to a slave; the slave
//! goes through the task's steps; what it has not freed by then are outputs. When the task comes back the master frees inputs,
//! descriptor and outputs: of another node's heap, as a rule. All of it is of a program, not of a platform: how long an
//! instruction or a word takes, how many slaves there are, and which heap serves, is not said here.
//!
//! *Invariant:* in a workload that passes [`Workload::check`], each block is allocated once before it is freed or put out, and
//! is freed exactly once: by the slave, or as an output by the master.

use serde::{Deserialize, Serialize};

/// A program of one master and any number of slaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called in reports.
    pub name: String,
    /// Its tasks, in the order in which the master hands them out.
    pub tasks: Vec<Task>,
}

/// A piece of work for a slave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Bytes of its descriptor, a block of the master.
    pub descriptor: u64,
    /// Bytes of each of its input buffers, blocks of the master.
    pub inputs: Vec<u64>,
    /// Instructions for which the master prepares it, such as copying a tile into its buffer.
    pub preparation: u64,
    /// What the slave does, in this order.
    pub steps: Vec<Step>,
    /// Blocks that the slave leaves, by the numbers of its steps; the master frees them, in this order.
    pub outputs: Vec<u32>,
    /// Instructions for which the master takes in what came out, before it frees that.
    pub collection: u64,
}

/// What a slave does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Computes for so many instructions.
    Compute(u64),
    /// Allocates a block, which the task calls by a number from then on.
    Allocate {
        /// The number, which no other block of the task has.
        block: u32,
        /// Bytes.
        size: u64,
    },
    /// Frees a block.
    Free {
        /// Its number.
        block: u32,
    },
}

/// A workload that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Nothing to do.
    #[error("the workload has no tasks: give it one at least")]
    NoTasks,
    /// A block of no bytes.
    #[error("task {task} asks for a block of 0 bytes: ask for 1 at least, or leave it out")]
    Empty {
        /// Number of the task, from 0 on.
        task: usize,
    },
    /// Two blocks of one number.
    #[error("task {task} allocates block {block} twice: number the blocks of a task apart")]
    Twice {
        /// Number of the task, from 0 on.
        task: usize,
        /// Number of the block.
        block: u32,
    },
    /// A block is freed or put out that is not there.
    #[error(
        "task {task} frees or puts out block {block}, which it has not: allocate it before, and free it once"
    )]
    NotThere {
        /// Number of the task, from 0 on.
        task: usize,
        /// Number of the block.
        block: u32,
    },
    /// A block that nobody frees.
    #[error("task {task} leaves block {block}: free it, or name it among the outputs")]
    Left {
        /// Number of the task, from 0 on.
        task: usize,
        /// Number of the block.
        block: u32,
    },
}

impl Workload {
    /// Whether it can be. O(n log n) of the steps.
    ///
    /// # Errors
    /// What cannot be, and what to do.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.tasks.is_empty() {
            return Err(WorkloadError::NoTasks);
        }
        for (number, task) in self.tasks.iter().enumerate() {
            task.check(number)?;
        }
        Ok(())
    }

    /// Allocations of all tasks, the master's included.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.tasks.iter().map(Task::allocations).sum()
    }
}

impl Task {
    /// Its allocations, the master's included.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        let slave = self
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Allocate { .. }));
        1 + self.inputs.len() as u64 + slave.count() as u64
    }

    fn check(&self, task: usize) -> Result<(), WorkloadError> {
        if self.descriptor == 0 || self.inputs.contains(&0) {
            return Err(WorkloadError::Empty { task });
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut there = std::collections::BTreeSet::new();
        for step in &self.steps {
            match *step {
                Step::Compute(_) => {}
                Step::Allocate { size: 0, .. } => return Err(WorkloadError::Empty { task }),
                Step::Allocate { block, .. } => {
                    if !seen.insert(block) {
                        return Err(WorkloadError::Twice { task, block });
                    }
                    there.insert(block);
                }
                Step::Free { block } if there.remove(&block) => {}
                Step::Free { block } => return Err(WorkloadError::NotThere { task, block }),
            }
        }
        for &block in &self.outputs {
            if !there.remove(&block) {
                return Err(WorkloadError::NotThere { task, block });
            }
        }
        match there.first() {
            Some(&block) => Err(WorkloadError::Left { task, block }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task {
            descriptor: 32,
            inputs: vec![400],
            preparation: 100,
            steps: vec![
                Step::Allocate {
                    block: 0,
                    size: 800,
                },
                Step::Compute(1000),
                Step::Allocate {
                    block: 1,
                    size: 256,
                },
                Step::Compute(1000),
                Step::Free { block: 0 },
            ],
            outputs: vec![1],
            collection: 100,
        }
    }

    fn checked(change: impl FnOnce(&mut Task)) -> Result<(), WorkloadError> {
        let mut task = task();
        change(&mut task);
        Workload {
            name: "blur".to_owned(),
            tasks: vec![super::tests::task(), task],
        }
        .check()
    }

    #[test]
    fn each_block_is_freed_once() {
        let task = 1;
        assert_eq!(checked(|_| {}), Ok(()));
        assert_eq!(
            checked(|task| task.inputs.push(0)),
            Err(WorkloadError::Empty { task })
        );
        assert_eq!(
            checked(|task| task.outputs.push(0)),
            Err(WorkloadError::NotThere { task, block: 0 })
        );
        assert_eq!(
            checked(|task| task.outputs.clear()),
            Err(WorkloadError::Left { task, block: 1 })
        );
        assert_eq!(
            checked(|task| task.steps.push(Step::Free { block: 0 })),
            Err(WorkloadError::NotThere { task, block: 0 })
        );
        assert_eq!(
            checked(|task| task.steps.push(Step::Allocate { block: 0, size: 1 })),
            Err(WorkloadError::Twice { task, block: 0 })
        );
        assert_eq!(
            checked(|task| task.steps.push(Step::Allocate { block: 2, size: 0 })),
            Err(WorkloadError::Empty { task })
        );
        let none = Workload {
            name: String::new(),
            tasks: Vec::new(),
        };
        assert_eq!(none.check(), Err(WorkloadError::NoTasks));
    }

    #[test]
    fn the_master_allocates_too() {
        assert_eq!(task().allocations(), 4);
    }
}
