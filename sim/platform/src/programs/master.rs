//! A master that gives tasks out, and slaves that do them, by the costs of a workload.
//!
//! *Invariant:* a slave has two tasks given out at most; each block is freed once, outputs by the master.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::program::{Action, Outcome, Program};
use crate::workload::{Step, Task, Workload};

/// Tasks that a slave has at a time.
const AHEAD: usize = 2;
/// Cycles after which what was refused is asked for again, and how often.
const PATIENCE: u64 = 500;
const MOST_REFUSALS: u32 = 100_000;
/// What tells a slave that there is nothing left to do.
const NO_MORE: u64 = u64::MAX;

/// A master has nobody to work for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a master alone does no tasks: give 2 nodes at least")]
pub struct NoSlaves;

/// Programs of so many nodes, of which the first is the master: `tasks` tasks, those of the workload over and over.
///
/// # Errors
/// [`NoSlaves`].
pub fn master_and_slaves(
    workload: &Rc<Workload>,
    nodes: usize,
    tasks: usize,
) -> Result<Vec<Box<dyn Program>>, NoSlaves> {
    if nodes < 2 {
        return Err(NoSlaves);
    }
    let master = Master::new(Rc::clone(workload), nodes, tasks);
    let slave = |_| -> Box<dyn Program> { Box::new(Slave::new(Rc::clone(workload))) };
    let slaves = (1..nodes).map(slave);
    Ok(std::iter::once(Box::new(master) as Box<dyn Program>)
        .chain(slaves)
        .collect())
}

/// What is left to be done before something new is begun.
#[derive(Clone, Debug)]
enum Todo {
    Compute(u64),
    /// A block of a task that is prepared.
    Allocate(u64),
    Free(u64, u64),
    /// The prepared task goes to a slave.
    GiveOut,
    Receive,
    Dismiss(usize),
}

/// A task that a slave has: its number, and the master's blocks with their sizes.
#[derive(Clone, Debug, Default)]
struct GivenOut {
    task: usize,
    blocks: Vec<(u64, u64)>,
}

struct Master {
    workload: Rc<Workload>,
    tasks: usize,
    next: usize,
    /// How many tasks each slave has; the first is the master itself.
    has: Vec<usize>,
    given_out: Vec<GivenOut>,
    prepared: GivenOut,
    to: usize,
    todo: VecDeque<Todo>,
    doing: Option<Todo>,
    refusals: u32,
}

impl Master {
    fn new(workload: Rc<Workload>, nodes: usize, tasks: usize) -> Master {
        Master {
            workload,
            tasks,
            next: 0,
            has: vec![0; nodes],
            given_out: Vec::new(),
            prepared: GivenOut::default(),
            to: 0,
            todo: VecDeque::new(),
            doing: None,
            refusals: 0,
        }
    }

    fn task(&self, number: usize) -> &Task {
        let tasks = &self.workload.tasks;
        &tasks[number % tasks.len()]
    }

    /// Files what comes next.
    fn plan(&mut self) {
        let free = (1..self.has.len()).min_by_key(|slave| self.has[*slave]);
        let free = free.filter(|slave| self.has[*slave] < AHEAD && self.next < self.tasks);
        if let Some(slave) = free {
            self.to = slave;
            self.prepared = GivenOut {
                task: self.next,
                blocks: Vec::new(),
            };
            let task = self.task(self.next).clone();
            self.next += 1;
            let sizes = std::iter::once(task.descriptor).chain(task.inputs.iter().copied());
            self.todo.extend(sizes.map(Todo::Allocate));
            self.todo.push_back(Todo::Compute(task.preparation));
            self.todo.push_back(Todo::GiveOut);
        } else if self.given_out.is_empty() {
            self.todo.extend((1..self.has.len()).map(Todo::Dismiss));
        } else {
            self.todo.push_back(Todo::Receive);
        }
    }

    /// Takes in what came back.
    fn collect(&mut self, from: usize, words: &[u64]) {
        let number = words[0] as usize;
        let place = self.given_out.iter().position(|given| given.task == number);
        let given = self
            .given_out
            .swap_remove(place.expect("a task that was given out"));
        self.has[from] -= 1;
        let task = self.task(number).clone();
        self.todo.push_back(Todo::Compute(task.collection));
        let mut blocks = given.blocks.into_iter();
        let (descriptor, inputs) = (blocks.next(), blocks);
        let outputs = words[1..].chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let all = inputs.chain(descriptor).chain(outputs);
        self.todo
            .extend(all.map(|(address, size)| Todo::Free(address, size)));
    }

    fn action(&mut self, todo: &Todo) -> Action {
        match *todo {
            Todo::Compute(instructions) => Action::Compute(instructions),
            Todo::Allocate(size) => Action::Allocate { size },
            Todo::Free(address, size) => Action::Free { address, size },
            Todo::Receive => Action::Receive,
            Todo::Dismiss(to) => Action::Send {
                to,
                words: vec![NO_MORE],
            },
            Todo::GiveOut => {
                let given = std::mem::take(&mut self.prepared);
                let mut words = vec![given.task as u64];
                words.extend(given.blocks.iter().map(|(address, _)| *address));
                self.given_out.push(given);
                self.has[self.to] += 1;
                Action::Send { to: self.to, words }
            }
        }
    }
}

impl Program for Master {
    fn next(&mut self, outcome: Outcome, _cycle: u64) -> Action {
        match (self.doing.take(), outcome) {
            (Some(Todo::Allocate(size)), Outcome::Block(address)) => {
                self.prepared.blocks.push((address, size));
                self.refusals = 0;
            }
            (Some(Todo::Allocate(size)), Outcome::Refused) => {
                self.refusals += 1;
                if self.refusals > MOST_REFUSALS {
                    return Action::End;
                }
                // A task that comes back brings room.
                self.todo.push_front(Todo::Allocate(size));
                if !self.given_out.is_empty() {
                    self.todo.push_front(Todo::Receive);
                } else {
                    return Action::Pass(PATIENCE);
                }
            }
            (Some(Todo::Receive), Outcome::Message(message)) => {
                // What is under preparation goes on after that.
                let rest = std::mem::take(&mut self.todo);
                self.collect(message.from, &message.words);
                self.todo.extend(rest);
            }
            (Some(Todo::Dismiss(to)), _) if to + 1 == self.has.len() => return Action::End,
            _ => {}
        }
        if self.todo.is_empty() {
            self.plan();
        }
        let todo = self
            .todo
            .pop_front()
            .expect("there is always something next");
        let action = self.action(&todo);
        self.doing = Some(todo);
        action
    }
}

struct Slave {
    workload: Rc<Workload>,
    /// The task that it does, and the step that comes next.
    task: Option<(usize, usize)>,
    /// Its blocks: number, address, size.
    blocks: Vec<(u32, u64, u64)>,
    asked: Option<(u32, u64)>,
    refusals: u32,
    waits: bool,
}

impl Slave {
    fn new(workload: Rc<Workload>) -> Slave {
        Slave {
            workload,
            task: None,
            blocks: Vec::new(),
            asked: None,
            refusals: 0,
            waits: false,
        }
    }

    fn take(&mut self, block: u32) -> (u64, u64) {
        let place = self.blocks.iter().position(|(number, ..)| *number == block);
        let (_, address, size) = self
            .blocks
            .swap_remove(place.expect("a workload that was checked"));
        (address, size)
    }
}

impl Program for Slave {
    fn next(&mut self, outcome: Outcome, _cycle: u64) -> Action {
        match outcome {
            Outcome::Message(message) => {
                if message.words[0] == NO_MORE {
                    return Action::End;
                }
                self.task = Some((message.words[0] as usize, 0));
            }
            Outcome::Block(address) => {
                let (block, size) = self.asked.take().expect("it was asked for");
                self.blocks.push((block, address, size));
                self.refusals = 0;
            }
            Outcome::Refused => {
                self.refusals += 1;
                if self.refusals > MOST_REFUSALS {
                    return Action::End;
                }
                self.waits = true;
                return Action::Pass(PATIENCE);
            }
            _ => {}
        }
        if std::mem::take(&mut self.waits) {
            let (_, size) = self.asked.expect("it was asked for");
            return Action::Allocate { size };
        }
        let Some((number, step)) = self.task else {
            return Action::Receive;
        };
        let workload = Rc::clone(&self.workload);
        let task = &workload.tasks[number % workload.tasks.len()];
        self.task = Some((number, step + 1));
        match task.steps.get(step) {
            Some(&Step::Compute(instructions)) => Action::Compute(instructions),
            Some(&Step::Allocate { block, size }) => {
                self.asked = Some((block, size));
                Action::Allocate { size }
            }
            Some(&Step::Free { block }) => {
                let (address, size) = self.take(block);
                Action::Free { address, size }
            }
            None => {
                self.task = None;
                let mut words = vec![number as u64];
                for block in &task.outputs {
                    let (address, size) = self.take(*block);
                    words.extend([address, size]);
                }
                Action::Send { to: 0, words }
            }
        }
    }
}
