//! LEON3 code as a program of the many-core platform: a node's core is simulated, its controller and all else is the platform's.
//!
//! *Invariant:* the core's cycles are the platform's: what code takes passes there before its command is done, and a core goes on
//! when the platform says that it was.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use metes_leon3::{Image, NoImage};
use metes_platform::{Action, HeapStep, NotRun, Outcome, Parameters, Program};

use crate::command::{Command, NOTHING};
use crate::controller::Place;
use crate::node::{Answer, Astray, Leon3Node, NoRoom};
use crate::steps::{self, Step};

/// What all programs of a run have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Marks: the node, the cycle, what it said.
    pub marks: Vec<(usize, u64, u32)>,
    /// Programs that went astray, and so have ended.
    pub astray: Vec<Astray>,
    /// Instructions that each node's core has executed.
    pub instructions: Vec<u64>,
    /// Bytes that were asked for, of each block in use.
    sizes: BTreeMap<u64, u64>,
}

impl Seen {
    /// Mean cycles of requests and frees, between their two marks; none if there were none. Linear.
    #[must_use]
    pub fn cycles_a_call(&self) -> Option<f64> {
        let mut begun = BTreeMap::new();
        let (mut calls, mut cycles) = (0_u64, 0_u64);
        for &(node, cycle, _) in &self.marks {
            match begun.remove(&node) {
                Some(begin) => {
                    calls += 1;
                    cycles += cycle - begin;
                }
                None => {
                    begun.insert(node, cycle);
                }
            }
        }
        (calls > 0).then(|| cycles as f64 / calls as f64)
    }
}

/// Why there are no programs.
#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    /// The image cannot be had.
    #[error(transparent)]
    Image(#[from] NoImage),
    /// A list cannot be given to it.
    #[error(transparent)]
    Words(#[from] NoRoom),
    /// There is no such platform.
    #[error(transparent)]
    Platform(#[from] NotRun),
    /// Addresses of 32 bits do not reach them.
    #[error("heaps reach to {end:#x}, where addresses of 32 bits do not: make them smaller")]
    Wide {
        /// Where the last one ends.
        end: u64,
    },
}

/// Who manages memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managed {
    /// The platform's manager: a request is one command.
    ByPlatform,
    /// The C of the heap space map, on the core; for runs of the manager `proposed`.
    ByCode,
    /// Nobody: a request is an empty call, and refused. What is between its two marks is the program's own in all others.
    ByNobody,
}

/// A node's program on a simulated core.
pub struct Leon3Program {
    number: usize,
    node: Leon3Node,
    place: Place,
    /// A command whose cycle the platform has come to.
    due: Option<Command>,
    /// The command that is under way.
    under_way: Option<Command>,
    seen: Rc<RefCell<Seen>>,
}

/// Programs that do what lists say, a list for each node, on the image of the heap space map; and what they show. Each request
/// and each free is between two marks, the second with the block's address, 0 if there is none.
///
/// # Errors
/// [`NoProgram`] says what to change.
#[allow(clippy::type_complexity)]
pub fn leon3_programs(
    image: &Image,
    parameters: &Parameters,
    lists: &[Vec<Step>],
    managed: Managed,
) -> Result<(Vec<Box<dyn Program>>, Rc<RefCell<Seen>>), NoProgram> {
    let seen = Rc::new(RefCell::new(Seen {
        instructions: vec![0; lists.len()],
        ..Seen::default()
    }));
    let mut programs: Vec<Box<dyn Program>> = Vec::new();
    for (number, list) in lists.iter().enumerate() {
        let place = place(parameters, number)?;
        let mut node = Leon3Node::new(image, place)?;
        node.set(image, "steps", &steps::words(list))?;
        let word = match managed {
            Managed::ByCode => 0,
            Managed::ByPlatform => 1,
            Managed::ByNobody => 2,
        };
        node.set(image, "managed", &[word])?;
        node.set(image, "marked", &[1])?;
        programs.push(Box::new(Leon3Program {
            number,
            node,
            place,
            due: None,
            under_way: None,
            seen: Rc::clone(&seen),
        }));
    }
    Ok((programs, seen))
}

/// Where a node is, as the platform lays its heaps.
fn place(parameters: &Parameters, node: usize) -> Result<Place, NoProgram> {
    let space = parameters.space().map_err(NotRun::from)?;
    let end = space.base() + space.stride() * u64::from(space.nodes());
    if end > 1 << 32 {
        return Err(NoProgram::Wide { end });
    }
    Ok(Place {
        node: node as u32,
        nodes: space.nodes(),
        space: space.base() as u32,
        shift: space.stride().ilog2(),
    })
}

impl Leon3Program {
    /// What came of the last action, as its command's answer.
    fn word(&mut self, outcome: Outcome) -> u32 {
        let command = self.under_way.take();
        match (outcome, command) {
            (Outcome::Block(address), Some(Command::Allocate { size })) => {
                self.remember(address, size);
                address as u32
            }
            (Outcome::Offset(Some(offset)), Some(Command::Take { node, size })) => {
                self.remember(self.address(node, offset as u32), size);
                offset as u32
            }
            (Outcome::Refused | Outcome::Offset(None), _) => NOTHING,
            (Outcome::Freed(done) | Outcome::Held(done), _) => done.into(),
            (Outcome::Message(message), _) => message.words.first().map_or(0, |word| *word as u32),
            _ => 0,
        }
    }

    fn address(&self, node: u32, offset: u32) -> u64 {
        let begin = u64::from(self.place.space) + (u64::from(node) << self.place.shift);
        begin + u64::from(offset)
    }

    fn remember(&self, address: u64, size: u32) {
        let sizes = &mut self.seen.borrow_mut().sizes;
        sizes.insert(address, size.into());
    }

    /// Bytes that were asked for of the block at an address, which is freed.
    fn forget(&self, address: u64) -> u64 {
        let sizes = &mut self.seen.borrow_mut().sizes;
        sizes.remove(&address).unwrap_or(0)
    }

    fn action(&mut self, command: Command) -> Action {
        self.under_way = Some(command);
        let at = |node: u32, step| Action::At {
            heap: node as usize,
            step,
        };
        match command {
            Command::Lock { node } => at(node, HeapStep::Lock),
            Command::TryLock { node } => at(node, HeapStep::TryLock),
            Command::Unlock { node } => at(node, HeapStep::Unlock),
            Command::Take { node, size } => {
                let size = size.into();
                at(node, HeapStep::Take { size })
            }
            Command::Give { node, offset } => {
                let size = self.forget(self.address(node, offset));
                let offset = offset.into();
                at(node, HeapStep::Give { offset, size })
            }
            Command::Allocate { size } => Action::Allocate { size: size.into() },
            Command::Free { address } => {
                let address = address.into();
                let size = self.forget(address);
                Action::Free { address, size }
            }
            Command::Send { node, word } => Action::Send {
                to: node as usize,
                words: vec![word.into()],
            },
            Command::Receive => Action::Receive,
            Command::Mark { .. } => Action::Pass(0),
            Command::Done => Action::End,
        }
    }
}

impl Program for Leon3Program {
    fn next(&mut self, outcome: Outcome, cycle: u64) -> Action {
        if let Some(command) = self.due.take() {
            return self.action(command);
        }
        let mut answer = Answer {
            word: self.word(outcome),
            cycle,
        };
        loop {
            let next = self.node.next(answer);
            let issued = match next {
                Ok(issued) => issued,
                Err(astray) => {
                    self.seen.borrow_mut().astray.push(astray);
                    return Action::End;
                }
            };
            let at = issued.cycle.max(answer.cycle);
            let mut seen = self.seen.borrow_mut();
            seen.instructions[self.number] = issued.instructions;
            if let Command::Mark { word } = issued.command {
                seen.marks.push((self.number, at, word));
                answer = Answer { word: 0, cycle: at };
                continue;
            }
            drop(seen);
            if at > cycle {
                self.due = Some(issued.command);
                return Action::Pass(at - cycle);
            }
            return self.action(issued.command);
        }
    }
}
