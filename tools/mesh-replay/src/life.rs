//! One node among others: its operations, and what the others' deaths give it to do.
//!
//! Invariant: each block is written by who asked for it and read by who frees it, so that two nodes with one block are found;
//! and no node waits for what will never come.

use metes_mesh::{BadFree, Fabric, HeapSpace, Mesh, Node, Refusal};

use crate::board::{ADOPTED, Board, DEAD, DONE, NOTHING, Notes, REFUSED, Tally, bury};
use crate::lists::Lists;
use crate::mortal::Mortal;
use crate::replay::{ALIGN, Kill};
use crate::trace::Operation;

/// What a call of the protocol was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request that the own heap served.
    Local,
    /// A request that another heap served.
    Remote,
    /// A request that was refused.
    Refused,
    /// A free of a block of the own heap.
    Freed,
    /// A free of a block of another heap.
    FreedAway,
}

/// Sees each call of the protocol.
pub trait Watch {
    /// A call begins.
    fn begins(&mut self) {}
    /// It has ended.
    fn ends(&mut self, call: Call) {
        let _ = call;
    }
}

/// Sees nothing.
impl Watch for () {}

/// A node with its view of fabric and board.
#[derive(Debug)]
pub struct Life<'a, F, B> {
    /// What connects the nodes.
    pub fabric: &'a F,
    /// What they tell each other.
    pub board: &'a B,
    /// What they do.
    pub lists: &'a Lists,
    /// The node.
    pub node: u32,
}

impl<F: Fabric, B: Board> Life<'_, F, B> {
    /// Does the node's operations, takes over what dead nodes leave, and ends when all have ended. With a `kill`, ends by
    /// `end` there.
    pub fn live(&self, kill: Option<Kill>, end: fn() -> !, watch: &mut impl Watch) {
        let Some(kill) = kill else {
            return self.operate(self.fabric, &|_| {}, watch);
        };
        let mortal = Mortal::new(self.fabric, end);
        let before = |number| {
            if number == kill.operation {
                mortal.arm(kill.step);
            } else if number == self.lists.operations(self.node) {
                mortal.expire();
            }
        };
        self.operate(&mortal, &before, watch);
    }

    /// `before` is told before each operation its number, and at the end how many there were.
    fn operate<G: Fabric>(&self, fabric: &G, before: &dyn Fn(u64), watch: &mut impl Watch) {
        let mut doing = Doing {
            life: self,
            notes: Notes(self.board),
            mesh: Mesh::new(fabric, Node(self.node)),
            space: fabric.space(),
            tally: Tally::default(),
            seen: 0,
        };
        let list = self.lists.of(self.node);
        for (number, &(operation, request)) in list.iter().enumerate() {
            before(number as u64);
            doing.hear();
            if let Err(Lost) = doing.step(operation, request, watch) {
                break;
            }
            doing.notes.report(self.node, doing.tally.with(&doing.mesh));
        }
        before(list.len() as u64);
        doing.notes.say(self.node, DONE);
        while !doing.notes.is_over(self.lists.nodes()) {
            doing.hear();
            self.board.rest(self.node);
        }
    }

    /// Takes another node for dead.
    pub fn bury(&self, dead: u32) {
        bury(self.fabric, self.board, dead);
    }
}

/// A block did not hold what was written, or this node was taken for dead: it goes on no more.
struct Lost;

struct Doing<'a, F, G: Fabric, B> {
    life: &'a Life<'a, F, B>,
    notes: Notes<'a, B>,
    mesh: Mesh<'a, G>,
    space: HeapSpace,
    tally: Tally,
    /// Deaths that were heard of.
    seen: u64,
}

impl<F, G: Fabric, B: Board> Doing<'_, F, G, B> {
    /// Adopts what the dead had whose heir this node is.
    fn hear(&mut self) {
        let Life { node, lists, .. } = *self.life;
        let news = self.notes.news(node);
        if news == self.seen {
            return;
        }
        self.seen = news;
        for dead in 0..lists.nodes() {
            let orphaned = self.notes.says(dead, DEAD) && !self.notes.says(dead, ADOPTED);
            if orphaned && self.notes.heir(dead, lists.nodes()) == Some(node) {
                let mut adopt = || self.mesh.adopt(Node(dead), |_| self.notes.adopts(node));
                while adopt() == Err(Refusal::Busy) {}
                self.notes.say(dead, ADOPTED);
            }
        }
    }

    fn step(
        &mut self,
        operation: Operation,
        request: usize,
        watch: &mut impl Watch,
    ) -> Result<(), Lost> {
        match operation {
            Operation::Allocate { size, .. } => self.allocate(request, size, watch)?,
            Operation::Free { .. } => {
                let Some(came_to) = self.wait_for(request) else {
                    // It was never asked for.
                    return Ok(());
                };
                if came_to != REFUSED {
                    self.free(request, came_to, watch)?;
                }
            }
        }
        self.tally.operations += 1;
        Ok(())
    }

    fn allocate(&mut self, request: usize, size: u64, watch: &mut impl Watch) -> Result<(), Lost> {
        let asked = self.life.lists.asked(request);
        watch.begins();
        let served = self.mesh.allocate(size, ALIGN);
        match served {
            Ok(address) => {
                let heap = self.heap(address);
                watch.ends(if heap == self.life.node {
                    Call::Local
                } else {
                    Call::Remote
                });
                self.life.board.write(address, size, request as u64);
                self.notes.takes(heap, size);
                self.notes.comes_to(asked, address);
            }
            Err(Refusal::Expelled) => return Err(Lost),
            Err(refusal) => {
                watch.ends(Call::Refused);
                self.tally.failed += 1;
                self.tally.unsure += u64::from(refusal != Refusal::Full);
                self.notes.comes_to(asked, REFUSED);
            }
        }
        Ok(())
    }

    /// What a request comes to; nothing if who was to ask for it died before.
    fn wait_for(&mut self, request: usize) -> Option<u64> {
        // What it waits for stands before it in the trace, so some node can always go on.
        let asked = self.life.lists.asked(request);
        loop {
            // In this order: what a node has told, it told before it ended.
            let ended = self.notes.says(asked.0, DEAD) || self.notes.says(asked.0, DONE);
            let came_to = self.notes.came_to(asked);
            if came_to != NOTHING {
                return Some(came_to);
            }
            if ended {
                return None;
            }
            self.hear();
            self.life.board.wait(self.life.node);
        }
    }

    fn free(&mut self, request: usize, address: u64, watch: &mut impl Watch) -> Result<(), Lost> {
        let Life {
            board, lists, node, ..
        } = *self.life;
        let (size, heap) = (lists.size(request), self.heap(address));
        if board.holds(address, size, request as u64) {
            self.notes.gives(heap, size);
            watch.begins();
            match self.mesh.free(address) {
                Ok(()) => {
                    watch.ends(if heap == node {
                        Call::Freed
                    } else {
                        Call::FreedAway
                    });
                    return Ok(());
                }
                Err(BadFree::Expelled) => return Err(Lost),
                Err(_) => {}
            }
        }
        self.notes.is_wrong(node, request);
        Err(Lost)
    }

    fn heap(&self, address: u64) -> u32 {
        let place = self.space.place(address);
        place.map_or(0, |place| place.node.0)
    }
}
