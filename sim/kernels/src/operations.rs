//! A workload as operations of a mesh: one a line, as `metes mesh run` reads them.
//!
//! *Invariant:* the order of the lines is one that nodes could take: what a slave works on was prepared, what is collected
//! was worked on; a block has one number in the whole text.

use std::fmt::Write;

use metes_platform::{Step, Task, Workload};

/// The operations of `nodes` nodes, of which the first is the master; each slave has two tasks given out at most, and
/// slaves take turns. None if there is no slave.
#[must_use]
pub fn operations(workload: &Workload, nodes: usize) -> Option<String> {
    let slaves = nodes.checked_sub(1).filter(|slaves| *slaves > 0)?;
    let tasks = &workload.tasks;
    let mut text = format!(
        "# {} over {nodes} nodes: {} tasks, the master is node 0\n",
        workload.name,
        tasks.len()
    );
    let ahead = 2 * slaves;
    let mut first_blocks = Vec::with_capacity(tasks.len());
    let mut next = 0;
    for number in 0..tasks.len() + ahead {
        // When a task is given out, the one that was given out longest ago comes back.
        let back = number.checked_sub(ahead);
        if let Some((back, task)) = back.and_then(|back| Some((back, tasks.get(back)?))) {
            work(task, 1 + back % slaves, first_blocks[back], &mut text);
            collect(task, first_blocks[back], &mut text);
        }
        if let Some(task) = tasks.get(number) {
            first_blocks.push(next);
            next += span(task);
            prepare(task, first_blocks[number], &mut text);
        }
    }
    Some(text)
}

/// How many numbers a task's blocks need: the master's come first.
fn span(task: &Task) -> u64 {
    let numbers = task.steps.iter().filter_map(|step| match step {
        Step::Allocate { block, .. } => Some(u64::from(*block) + 1),
        _ => None,
    });
    slave_blocks(task) + numbers.max().unwrap_or(0)
}

/// The number from which on a slave's blocks are counted, within a task.
fn slave_blocks(task: &Task) -> u64 {
    1 + task.inputs.len() as u64
}

fn prepare(task: &Task, first: u64, text: &mut String) {
    let sizes = std::iter::once(task.descriptor).chain(task.inputs.iter().copied());
    for (block, size) in (first..).zip(sizes) {
        // Writing into a string does not fail.
        let _ = writeln!(text, "a,0,{block},{size}");
    }
}

fn work(task: &Task, node: usize, first: u64, text: &mut String) {
    let first = first + slave_blocks(task);
    for step in &task.steps {
        let _ = match *step {
            Step::Compute(_) => Ok(()),
            Step::Allocate { block, size } => {
                writeln!(text, "a,{node},{},{size}", first + u64::from(block))
            }
            Step::Free { block } => writeln!(text, "f,{node},{}", first + u64::from(block)),
        };
    }
}

fn collect(task: &Task, first: u64, text: &mut String) {
    let slave = slave_blocks(task);
    let own = 0..slave;
    let outputs = task.outputs.iter().map(|block| slave + u64::from(*block));
    for block in own.chain(outputs) {
        let _ = writeln!(text, "f,0,{}", first + block);
    }
}
