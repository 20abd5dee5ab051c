//! The manager of Metes, unmodified, as a program of the platform: what it does at one node is one message there.
//!
//! [`Mesh`] is a program without suspensions; here it runs as a coroutine, which is suspended where a message is under way.
//! What it does in [`Fabric::at`] is done by the controller of that node when the message is there; each step and each word of a
//! record is counted, and the controller is busy for as long.
//!
//! *Invariant:* what is done at a node is done in one piece, between two suspensions, by whoever has that node's heap.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};
use metes_mesh::{BadFree, Fabric, HeapSpace, Mesh, Node, Options, Refusal, Word};

use crate::heaps::NodeHeap;
use crate::memory::Memory;
use crate::parameters::Controller;

/// What the manager is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Allocate {
        size: u64,
        align: u64,
    },
    Free {
        address: u64,
    },
    /// Takes a node for dead.
    DeclareDead {
        node: usize,
    },
    /// Makes the blocks of a dead node this one's.
    Adopt {
        node: usize,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Allocated(Result<u64, Refusal>),
    Freed(Result<(), BadFree>),
    Declared,
    Adopted(Result<Vec<u64>, Refusal>),
}

/// Why it was resumed.
pub(crate) enum Resume {
    Command(Command),
    /// The message has reached its node, or will not.
    There(bool),
    /// The answer is back.
    Back,
}

/// Why it is suspended.
pub(crate) enum Ask {
    /// After so many cycles at its own controller, something is to be done at a node.
    Visit { node: usize, before: u64 },
    /// It was done, and takes so many cycles.
    Acted(u64),
    /// After so many cycles the command is done; so many heaps were looked into and passed over for it.
    Done {
        answer: Answer,
        before: u64,
        visits: u64,
    },
}

/// A node's manager.
pub(crate) struct Caller {
    coroutine: RefCell<Coroutine<Resume, Ask, ()>>,
    /// Whether it was resumed at another node, and not yet back.
    there: Cell<bool>,
}

/// Enough for the manager and a heap in a build without optimisation.
const STACK: usize = 256 << 10;

impl Caller {
    pub(crate) fn new(memory: Rc<Memory>, me: usize, costs: Controller) -> Caller {
        let stack = corosensei::stack::DefaultStack::new(STACK);
        let stack = stack.expect("the host has memory for a stack");
        let coroutine = Coroutine::with_stack(stack, move |yielder, first| {
            let view = View {
                memory,
                yielder,
                me,
                costs,
                spent: Cell::new(0),
                unreachable: RefCell::default(),
            };
            view.serve(first);
        });
        Caller {
            coroutine: RefCell::new(coroutine),
            there: Cell::new(false),
        }
    }

    /// Whether what it wanted to do elsewhere was done, and it does not know yet.
    pub(crate) fn is_there(&self) -> bool {
        self.there.get()
    }

    pub(crate) fn resume(&self, with: Resume) -> Ask {
        self.there.set(matches!(with, Resume::There(true)));
        match self.coroutine.borrow_mut().resume(with) {
            CoroutineResult::Yield(ask) => ask,
            CoroutineResult::Return(()) => unreachable!("it serves for ever"),
        }
    }
}

/// What a node's manager sees.
struct View<'y> {
    memory: Rc<Memory>,
    yielder: &'y Yielder<Resume, Ask>,
    me: usize,
    costs: Controller,
    /// Cycles of what was done since the last suspension.
    spent: Cell<u64>,
    /// Nodes whose memory nobody reaches any more.
    unreachable: RefCell<BTreeSet<u32>>,
}

impl View<'_> {
    fn serve(&self, first: Resume) {
        // A lock is never seen held, as what is done at a node is done in one piece.
        let mut mesh = Mesh::with_options(self, Node(self.me as u32), Options::default());
        let mut resumed = first;
        loop {
            let Resume::Command(command) = resumed else {
                unreachable!("a command comes first");
            };
            let before = mesh.counts();
            let answer = match command {
                Command::Allocate { size, align } => Answer::Allocated(mesh.allocate(size, align)),
                Command::Free { address } => Answer::Freed(mesh.free(address)),
                Command::DeclareDead { node } => {
                    self.unreachable.borrow_mut().insert(node as u32);
                    mesh.declare_dead(Node(node as u32));
                    Answer::Declared
                }
                Command::Adopt { node } => {
                    let mut adopted = Vec::new();
                    let done = mesh.adopt(Node(node as u32), |address| adopted.push(address));
                    Answer::Adopted(done.map(|()| adopted))
                }
            };
            let visits = mesh.counts().visits - before.visits;
            let before = self.spent.take();
            resumed = self.yielder.suspend(Ask::Done {
                answer,
                before,
                visits,
            });
        }
    }

    fn step(&self) {
        self.spend(self.costs.step);
    }

    fn spend(&self, cycles: u64) {
        self.spent.set(self.spent.get() + cycles);
    }

    fn is_reached(&self, node: Node) -> bool {
        let declared = self.memory.is_declared_dead(node.0 as usize);
        !declared && !self.unreachable.borrow().contains(&node.0)
    }

    fn word(&self, node: Node, word: Word) -> &Cell<u64> {
        &self.memory.parts[node.0 as usize].words[word as usize]
    }
}

impl Fabric for View<'_> {
    type Heap = NodeHeap;

    fn space(&self) -> HeapSpace {
        self.memory.space
    }

    fn at<T>(&self, node: Node, act: impl FnOnce() -> T) -> T {
        let before = self.spent.take();
        let visit = Ask::Visit {
            node: node.0 as usize,
            before,
        };
        let reached =
            self.is_reached(node) && matches!(self.yielder.suspend(visit), Resume::There(true));
        if !reached {
            self.unreachable.borrow_mut().insert(node.0);
            // Of a heap that nobody reaches every controller says that it is left out.
            return act();
        }
        let acted = act();
        let cycles = self.spent.take();
        let resumed = self.yielder.suspend(Ask::Acted(cycles));
        debug_assert!(matches!(resumed, Resume::Back));
        acted
    }

    fn acts_there(&self) -> bool {
        true
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        self.step();
        match word {
            Word::LeftOut if !self.is_reached(node) => 1,
            _ => self.word(node, word).get(),
        }
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        self.step();
        self.word(node, word).set(value);
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        self.step();
        let place = self.word(node, word);
        match place.get() {
            found if found == current => {
                place.set(new);
                Ok(())
            }
            found => Err(found),
        }
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        if !self.is_reached(node) {
            return 0;
        }
        self.step();
        self.memory.parts[node.0 as usize].tags[granule as usize].get()
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        self.step();
        self.memory.parts[node.0 as usize].tags[granule as usize].set(tag);
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        self.step();
        let place = &self.memory.parts[node.0 as usize].tags[granule as usize];
        match place.get() {
            found if found == current => {
                place.set(new);
                Ok(())
            }
            found => Err(found),
        }
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        self.step();
        let links = self.memory.parts[node.0 as usize].links.borrow();
        links.get(&offset).copied().unwrap_or(0)
    }

    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        self.step();
        let mut links = self.memory.parts[node.0 as usize].links.borrow_mut();
        links.insert(offset, link);
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut NodeHeap) -> T) -> T {
        let (changed, accesses) = self.memory.with_heap(node.0 as usize, change);
        // Whatever it was of an operation: a request, or a free.
        self.spend(self.costs.allocate.max(self.costs.free));
        self.spend(accesses * self.costs.access);
        changed
    }

    fn relax(&self) {
        self.step();
    }
}
