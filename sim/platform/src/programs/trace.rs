//! Nodes that do what a trace says, each its own operations in their order.
//!
//! *Invariant:* a block is freed once it is there; whoever frees it waits for that.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::program::{Action, Outcome, Program};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks for a block of so many bytes.
    Allocate {
        /// The number of the request, in the whole trace.
        request: usize,
        /// Bytes.
        size: u64,
    },
    /// Frees what a request was given.
    Free {
        /// Its number.
        request: usize,
    },
}

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    NotYet,
    Refused,
    To(u64, u64),
}

/// Cycles after which is looked again whether a block is there.
const PATIENCE: u64 = 50;

/// A node's part of a trace.
pub struct Traced {
    operations: VecDeque<Operation>,
    came: Rc<RefCell<Vec<Came>>>,
    /// Instructions between two operations.
    gap: u64,
    doing: Option<Operation>,
    has_computed: bool,
}

/// Programs that do what each node's list says; `gap` instructions lie before each operation.
#[must_use]
pub fn traced(lists: Vec<Vec<Operation>>, requests: usize, gap: u64) -> Vec<Box<dyn Program>> {
    let came = Rc::new(RefCell::new(vec![Came::NotYet; requests]));
    let program = |list: Vec<Operation>| -> Box<dyn Program> {
        Box::new(Traced {
            operations: list.into(),
            came: Rc::clone(&came),
            gap,
            doing: None,
            has_computed: false,
        })
    };
    lists.into_iter().map(program).collect()
}

impl Program for Traced {
    fn next(&mut self, outcome: Outcome, _cycle: u64) -> Action {
        if let Some(Operation::Allocate { request, size }) = self.doing.take() {
            self.came.borrow_mut()[request] = match outcome {
                Outcome::Block(address) => Came::To(address, size),
                _ => Came::Refused,
            };
        }
        loop {
            let Some(&operation) = self.operations.front() else {
                return Action::End;
            };
            if !std::mem::replace(&mut self.has_computed, true) && self.gap > 0 {
                return Action::Compute(self.gap);
            }
            let action = match operation {
                Operation::Allocate { size, .. } => {
                    self.doing = Some(operation);
                    Action::Allocate { size }
                }
                Operation::Free { request } => match self.came.borrow()[request] {
                    Came::NotYet => return Action::Pass(PATIENCE),
                    Came::To(address, size) => Action::Free { address, size },
                    Came::Refused => {
                        self.operations.pop_front();
                        continue;
                    }
                },
            };
            self.operations.pop_front();
            self.has_computed = false;
            return action;
        }
    }
}
