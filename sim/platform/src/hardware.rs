//! The platform: nodes with a core, a dual microcoded controller and a heap each, on a mesh.
//!
//! A controller has two miniprocessors (Chen, Lu, Jantsch and Chen, DATE 2010): one serves the core, one the network. Both
//! are busy while they work; the one at the network is free while a request waits for a lock in the synchronisation
//! supporter, or two nodes that wait for each other's heaps would wait for ever.
//!
//! *Invariant:* a request that carries a number is served once, however often it arrives; an answer is one to the last request.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use metes_noc::event::{Held, Mailbox, Resource};
use metes_noc::{Clock, Fabric, Mesh, Simulation};

use crate::counts::Counts;
use crate::faults::Faults;
use crate::parameters::Parameters;
use crate::program::Message;

/// What is asked of another node's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// The heap's lock, when it is free.
    Lock,
    /// The heap's lock, if it is free.
    TryLock,
    Unlock,
    /// A block; the lock is the requester's.
    Allocate {
        size: u64,
    },
    /// A block, with the lock taken before and given back after; only if the lock is free, if `lazily`.
    AllocateLocked {
        size: u64,
        lazily: bool,
    },
    /// A free, with the lock taken before and given back after. Not answered.
    FreeLocked {
        offset: u64,
    },
    /// What the requester's manager of Metes does here.
    Visit,
}

/// What a controller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The lock is the requester's, or is not; or what was asked for was done.
    Held(bool),
    /// A block's offset, or none.
    Block(Option<u64>),
    /// The lock was not free.
    Skipped,
    /// The node has died, as all were told.
    Gone,
}

/// What travels.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Request { number: u64, service: Service },
    Reply { number: u64, reply: Reply },
    Task(Message),
}

/// The last request of a node that a controller has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    number: u64,
    reply: Option<Reply>,
}

/// A node.
pub(crate) struct NodeState {
    /// The miniprocessor that serves the core.
    core_side: Resource,
    /// The lock of the heap, in the synchronisation supporter.
    pub(crate) lock: Resource,
    /// What a node holds of locks that it asked for by a message, here.
    pub(crate) held: RefCell<Option<Held>>,
    requests: Mailbox<(usize, u64, Service)>,
    replies: Mailbox<(u64, Reply)>,
    pub(crate) tasks: Mailbox<Message>,
    /// One call of the manager at a time.
    pub(crate) calls: Resource,
    /// The last request of each node.
    seen: RefCell<Vec<Seen>>,
    /// The number of the request that waits for an answer, and 0 if none does.
    pub(crate) waits_for: Cell<u64>,
    /// The node that it waits for.
    waits_on: Cell<usize>,
    numbered: Cell<u64>,
    died: Cell<bool>,
    /// Whether all were told that it has died.
    declared: Cell<bool>,
    pub(crate) counts: RefCell<Counts>,
}

/// The nodes and what connects them.
pub(crate) struct Hardware {
    pub(crate) parameters: Parameters,
    pub(crate) clock: Clock,
    pub(crate) fabric: Fabric<Packet>,
    pub(crate) nodes: Vec<NodeState>,
    /// Nodes that have died, to be noticed.
    pub(crate) deaths: Mailbox<usize>,
    faults: Faults,
    /// Packets under way, and most of them at a time.
    in_flight: Cell<u64>,
    most_in_flight: Cell<u64>,
}

impl Hardware {
    pub(crate) fn new(
        simulation: &mut Simulation,
        parameters: &Parameters,
        mesh: Mesh,
        faults: &Faults,
    ) -> Hardware {
        let clock = simulation.clock();
        let nodes = parameters.nodes();
        let node = |number| NodeState {
            core_side: clock.resource(format!("core side of controller {number}")),
            lock: clock.resource(format!("heap {number}")),
            held: RefCell::default(),
            requests: clock.mailbox(format!("requests to controller {number}")),
            replies: clock.mailbox(format!("replies to node {number}")),
            tasks: clock.mailbox(format!("tasks of node {number}")),
            calls: clock.resource(format!("manager of node {number}")),
            seen: RefCell::new(vec![Seen::default(); nodes]),
            waits_for: Cell::new(0),
            waits_on: Cell::new(0),
            numbered: Cell::new(0),
            died: Cell::new(false),
            declared: Cell::new(false),
            counts: RefCell::default(),
        };
        Hardware {
            parameters: parameters.clone(),
            fabric: Fabric::new(simulation, mesh),
            nodes: (0..nodes).map(node).collect(),
            deaths: clock.mailbox("deaths"),
            faults: faults.clone(),
            in_flight: Cell::new(0),
            most_in_flight: Cell::new(0),
            clock,
        }
    }

    /// Whether a node has died.
    pub(crate) fn is_dead(&self, node: usize) -> bool {
        self.nodes[node].died.get()
    }

    /// Lets a node die, of which those who look for deaths hear.
    pub(crate) fn die(&self, node: usize) {
        if !self.nodes[node].died.replace(true) {
            self.deaths.send(node);
        }
    }

    /// Tells all that a node has died: those that wait for it wait no more.
    pub(crate) fn declare_dead(&self, dead: usize) {
        self.nodes[dead].declared.set(true);
        for node in &self.nodes {
            let number = node.waits_for.get();
            if number != 0 && node.waits_on.get() == dead {
                node.replies.send((number, Reply::Gone));
            }
        }
    }

    /// Most packets that were under way at a time.
    pub(crate) fn most_in_flight(&self) -> u64 {
        self.most_in_flight.get()
    }

    /// Instructions of a core.
    pub(crate) async fn compute(&self, instructions: u64) {
        let cycles = self.parameters.cycles(instructions);
        if cycles > 0 {
            self.clock.delay(cycles).await;
        }
    }

    /// So many cycles, if there are any.
    pub(crate) async fn pass(&self, cycles: u64) {
        if cycles > 0 {
            self.clock.delay(cycles).await;
        }
    }

    /// Microinstructions of the miniprocessor that serves a core.
    pub(crate) async fn at_core_side(&self, node: usize, microinstructions: u64) {
        let held = self.nodes[node].core_side.acquire().await;
        self.pass(microinstructions).await;
        drop(held);
    }

    /// Takes the lock of the own heap, waiting for it.
    pub(crate) async fn lock_own(&self, node: usize) -> Held {
        let begin = self.clock.now();
        let held = self.nodes[node].lock.acquire().await;
        self.count(node, |counts| counts.lock_wait += self.clock.now() - begin);
        held
    }

    /// Sends a message that nobody answers, in microinstructions of the sender's controller.
    pub(crate) async fn post(&self, from: usize, to: usize, service: Service) {
        let number = self.number(from);
        self.put(from, to, Packet::Request { number, service })
            .await;
    }

    /// Sends a task to another program.
    pub(crate) async fn send_task(&self, message: Message, to: usize) {
        let from = message.from;
        let send = self.parameters.controller.send;
        self.at_core_side(from, send).await;
        self.inject(from, to, Packet::Task(message));
    }

    /// Asks another controller, and waits for its answer. None when the request was sent as often as it may be; only a visit
    /// is sent again.
    pub(crate) async fn ask(&self, from: usize, to: usize, service: Service) -> Option<Reply> {
        let number = self.number(from);
        let recovery = self.parameters.recovery;
        let tries = if service == Service::Visit {
            recovery.tries
        } else {
            1
        };
        let node = &self.nodes[from];
        node.waits_for.set(number);
        node.waits_on.set(to);
        let mut reply = None;
        for _ in 0..tries {
            if self.nodes[to].declared.get() {
                break;
            }
            self.put(from, to, Packet::Request { number, service })
                .await;
            let limit = (service == Service::Visit).then_some(recovery.timeout);
            reply = self.reply(from, number, limit).await;
            if reply.is_some() {
                let receive = self.parameters.controller.receive;
                self.at_core_side(from, receive).await;
                self.count(from, |counts| counts.communication += receive);
                break;
            }
        }
        node.waits_for.set(0);
        reply.filter(|reply| *reply != Reply::Gone)
    }

    /// The answer to a request of that number, within so many cycles.
    async fn reply(&self, node: usize, number: u64, limit: Option<u64>) -> Option<Reply> {
        let end = limit.map(|limit| self.clock.now() + limit);
        loop {
            let replies = self.nodes[node].replies.receive();
            let (found, reply) = match end {
                None => replies.await,
                Some(end) => sooner(replies, self.clock.until(end)).await?,
            };
            // An answer to a request that was sent twice may come twice.
            if found == number {
                return Some(reply);
            }
        }
    }

    async fn put(&self, from: usize, to: usize, packet: Packet) {
        let send = self.parameters.controller.send;
        self.at_core_side(from, send).await;
        self.count(from, |counts| counts.communication += send);
        self.inject(from, to, packet);
    }

    /// A packet on its way. Nothing is told of what the mesh loses.
    pub(crate) fn inject(&self, from: usize, to: usize, packet: Packet) {
        let under_way = self.in_flight.get() + 1;
        self.in_flight.set(under_way);
        self.most_in_flight
            .set(self.most_in_flight.get().max(under_way));
        let sent = self.fabric.send(from, to, packet);
        debug_assert!(sent.is_ok(), "both are nodes of the mesh");
    }

    fn number(&self, node: usize) -> u64 {
        let number = self.nodes[node].numbered.get() + 1;
        self.nodes[node].numbered.set(number);
        number
    }

    pub(crate) fn count(&self, node: usize, change: impl FnOnce(&mut Counts)) {
        change(&mut self.nodes[node].counts.borrow_mut());
    }

    /// Gives what arrives at a node to whom it is for.
    pub(crate) async fn sort(&self, node: usize) {
        loop {
            let letter = self.fabric.receive(node).await;
            self.in_flight.set(self.in_flight.get().saturating_sub(1));
            let to = &self.nodes[node];
            match letter.message {
                Packet::Reply { number, reply } => to.replies.send((number, reply)),
                Packet::Task(message) => to.tasks.send(message),
                Packet::Request { number, service } => {
                    to.requests.send((letter.source, number, service));
                }
            }
        }
    }

    /// The next request to a node that was not served yet; one that was is answered again.
    pub(crate) async fn next_request(&self, node: usize) -> (usize, u64, Service) {
        loop {
            let (from, number, service) = self.nodes[node].requests.receive().await;
            self.stall(node).await;
            let controller = self.parameters.controller;
            self.pass(controller.receive).await;
            self.count(node, |counts| counts.communication += controller.receive);
            let seen = self.nodes[node].seen.borrow()[from];
            if number > seen.number {
                let reply = None;
                self.nodes[node].seen.borrow_mut()[from] = Seen { number, reply };
                return (from, number, service);
            }
            if let Some(reply) = seen.reply.filter(|_| number == seen.number) {
                self.answer(node, from, number, reply).await;
            }
        }
    }

    /// Answers a request, in microinstructions of the miniprocessor at the network.
    pub(crate) async fn answer(&self, node: usize, to: usize, number: u64, reply: Reply) {
        self.nodes[node].seen.borrow_mut()[to] = Seen {
            number,
            reply: Some(reply),
        };
        let send = self.parameters.controller.send;
        self.pass(send).await;
        self.count(node, |counts| counts.communication += send);
        self.inject(node, to, Packet::Reply { number, reply });
    }

    /// Waits until a controller that stands still goes on.
    async fn stall(&self, node: usize) {
        let now = self.clock.now();
        let stalls = self.faults.stalls.iter();
        let end = stalls
            .filter(|stall| stall.node == node)
            .filter_map(|stall| stall.end_at(now))
            .max();
        if let Some(end) = end {
            self.clock.until(end).await;
        }
    }
}

/// What comes before the other has ended; nothing if the other ends first.
async fn sooner<T>(first: impl Future<Output = T>, other: impl Future<Output = ()>) -> Option<T> {
    let (mut first, mut other) = (pin!(first), pin!(other));
    std::future::poll_fn(move |context| {
        if let Poll::Ready(brought) = first.as_mut().poll(context) {
            return Poll::Ready(Some(brought));
        }
        other.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// What a node does, until it dies: then it is not resumed again, and lets go what it held.
pub(crate) struct Living<F> {
    hardware: Rc<Hardware>,
    node: usize,
    does: Option<Pin<Box<F>>>,
}

impl<F: Future<Output = ()>> Living<F> {
    pub(crate) fn new(hardware: Rc<Hardware>, node: usize, does: F) -> Self {
        Living {
            hardware,
            node,
            does: Some(Box::pin(does)),
        }
    }
}

impl<F: Future<Output = ()>> Future for Living<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.hardware.is_dead(self.node) {
            self.does = None;
        }
        match &mut self.does {
            Some(does) => does.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}
