//! A mesh among processes: messages between nodes, which arrive when the mesh has carried their packets.
//!
//! *Invariant:* a process of the fabric stands at every cycle at which something happens in the mesh, so a letter is in the
//! mailbox of its node in the cycle in which its packet arrives.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::event::{Bell, Clock, Mailbox, Receive, Simulation};
use crate::mesh::{Error, Fate, Mesh, Statistics, Topology};

/// A message that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter<T> {
    /// What was sent.
    pub message: T,
    /// The node that sent it.
    pub source: usize,
    /// The number of its packet; one that a fault duplicated arrives twice.
    pub number: u64,
    /// The cycle at which it was sent.
    pub sent: u64,
}

/// A mesh that carries messages between processes. Clones are the same fabric.
pub struct Fabric<T>(Rc<Inner<T>>);

struct Inner<T> {
    clock: Clock,
    bell: Bell,
    mailboxes: Vec<Mailbox<Letter<T>>>,
    state: RefCell<State<T>>,
}

struct State<T> {
    mesh: Mesh,
    /// Messages whose packets are in the mesh, by number, and how many of these there are.
    messages: BTreeMap<u64, (T, u64)>,
}

impl<T> Clone for Fabric<T> {
    fn clone(&self) -> Self {
        Fabric(Rc::clone(&self.0))
    }
}

impl<T: Clone + 'static> Fabric<T> {
    /// Puts a mesh into a simulation, with a mailbox for each node, `mail of node N`.
    #[must_use]
    pub fn new(simulation: &mut Simulation, mesh: Mesh) -> Fabric<T> {
        let clock = simulation.clock();
        let mailbox = |node| clock.mailbox(format!("mail of node {node}"));
        let inner = Rc::new(Inner {
            bell: clock.bell("of the network"),
            mailboxes: (0..mesh.topology().nodes()).map(mailbox).collect(),
            state: RefCell::new(State {
                mesh,
                messages: BTreeMap::new(),
            }),
            clock,
        });
        simulation.serve("network", carry(Rc::clone(&inner)));
        Fabric(inner)
    }

    /// Sends a message, which takes the sender no time; returns the number of its packet. As [`Mesh::send`].
    ///
    /// # Errors
    /// [`Error::NoSuchNode`], and [`Error::Late`] beyond [`LAST`](crate::mesh::LAST).
    pub fn send(&self, source: usize, destination: usize, message: T) -> Result<u64, Error> {
        let mut state = self.0.state.borrow_mut();
        let known = state.mesh.next();
        let number = state.mesh.send(self.0.clock.now(), source, destination)?;
        let copies = state.mesh.copies(number);
        state.messages.insert(number, (message, copies));
        let next = state.mesh.next();
        drop(state);
        if next != known {
            self.0.bell.ring();
        }
        Ok(number)
    }

    /// Waits for a message to a node.
    ///
    /// # Panics
    /// When the mesh has no such node.
    #[must_use = "a message is taken when it is awaited"]
    pub fn receive(&self, node: usize) -> Receive<Letter<T>> {
        self.0.mailboxes[node].receive()
    }

    /// The mailbox of a node: what else a process of this node can be told, it can be told by it.
    ///
    /// # Panics
    /// When the mesh has no such node.
    #[must_use]
    pub fn mailbox(&self, node: usize) -> &Mailbox<Letter<T>> {
        &self.0.mailboxes[node]
    }

    /// Nodes and links.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.0.state.borrow().mesh.topology()
    }

    /// What happened in the mesh so far. Linear in links.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.state.borrow().mesh.statistics()
    }
}

/// Moves the mesh whenever something happens in it, and delivers.
async fn carry<T: Clone + 'static>(inner: Rc<Inner<T>>) {
    let mut ends = Vec::new();
    loop {
        let next = inner.state.borrow().mesh.next();
        inner.bell.heard(next).await;
        let mut state = inner.state.borrow_mut();
        state.mesh.advance(inner.clock.now(), &mut ends);
        for end in ends.drain(..) {
            let number = end.packet.number;
            let (message, copies) = state.messages.get_mut(&number).expect("it was sent");
            *copies -= 1;
            let message = match *copies {
                0 => state.messages.remove(&number).map(|(message, _)| message),
                _ => Some(message.clone()),
            };
            if end.fate == Fate::Delivered {
                inner.mailboxes[end.packet.destination].send(Letter {
                    message: message.expect("it was there"),
                    source: end.packet.source,
                    number,
                    sent: end.packet.sent,
                });
            }
        }
    }
}
