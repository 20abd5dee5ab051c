//! The manager of Metes on the platform: its own code, each visit of a heap a message to the controller there.
//!
//! *Invariant:* what a manager does at a heap is done by who holds that heap's lock, in one piece, and keeps it busy for as
//! long as it takes.

use metes_mesh::Place;

use super::{Manager, Served};
use crate::hardware::{Reply, Service};
use crate::view::{Answer, Ask, Command, Resume};

impl Manager {
    pub(super) async fn allocate_by_mesh(&self, node: usize, size: u64) -> Served {
        self.hardware
            .compute(self.hardware.parameters.core.map_allocate)
            .await;
        let align = super::ALIGN;
        let (answer, visits) = self.command(node, Command::Allocate { size, align }).await;
        let address = match answer {
            Answer::Allocated(Ok(address)) => Some(address),
            _ => None,
        };
        Served {
            place: address.and_then(|address| self.memory.space.place(address)),
            visits,
            skips: 0,
        }
    }

    /// A free; of what went with a dead node's heap nothing is left to be done.
    pub(super) async fn free_by_mesh(&self, node: usize, place: Place) -> bool {
        let map = self.hardware.parameters.core.map_free;
        self.hardware.compute(map).await;
        let owner = place.node.0 as usize;
        if self.memory.is_declared_dead(owner) {
            return true;
        }
        let address = self.memory.space.address(place);
        let (answer, _) = self.command(node, Command::Free { address }).await;
        answer == Answer::Freed(Ok(())) || self.hardware.is_dead(owner)
    }

    /// Takes a dead node for dead, and its blocks for this node's; nothing if this node has died, too.
    pub(crate) async fn bury(&self, node: usize, dead: usize) -> Option<Vec<u64>> {
        let turn = self.hardware.nodes[node].calls.acquire().await;
        if self.hardware.is_dead(node) {
            return None;
        }
        self.command(node, Command::DeclareDead { node: dead })
            .await;
        let (answer, _) = self.command(node, Command::Adopt { node: dead }).await;
        drop(turn);
        match answer {
            Answer::Adopted(Ok(addresses)) if !self.hardware.is_dead(node) => Some(addresses),
            _ => None,
        }
    }

    /// Lets the node's manager do something, and the messages of it travel.
    async fn command(&self, node: usize, command: Command) -> (Answer, u64) {
        let hardware = &self.hardware;
        let core = hardware.parameters.core;
        hardware.pass(core.command).await;
        let mut ask = self.callers[node].resume(Resume::Command(command));
        loop {
            ask = match ask {
                Ask::Done {
                    answer,
                    before,
                    visits,
                } => {
                    hardware.at_core_side(node, before).await;
                    hardware.pass(core.answer).await;
                    return (answer, visits);
                }
                Ask::Visit { node: to, before } => {
                    hardware.at_core_side(node, before).await;
                    if to == node {
                        self.visit_own(node).await
                    } else {
                        self.visit_other(node, to).await
                    }
                }
                Ask::Acted(_) => unreachable!("what was done is answered where it was done"),
            }
        }
    }

    async fn visit_own(&self, node: usize) -> Ask {
        let hardware = &self.hardware;
        let controller = hardware.parameters.controller;
        hardware.at_core_side(node, controller.translate).await;
        let held = hardware.lock_own(node).await;
        let cycles = self.act(node);
        hardware.at_core_side(node, cycles).await;
        drop(held);
        self.callers[node].resume(Resume::Back)
    }

    async fn visit_other(&self, node: usize, to: usize) -> Ask {
        let reply = self.hardware.ask(node, to, Service::Visit).await;
        match reply {
            Some(Reply::Held(_)) => self.callers[node].resume(Resume::Back),
            // Not reached. If it was, and no answer came through, the node cannot know what it has there; it is cut off,
            // and falls silent: what it has is found by tags.
            _ if self.was_there(node) => {
                self.hardware.die(node);
                std::future::pending().await
            }
            _ => self.callers[node].resume(Resume::There(false)),
        }
    }

    /// Whether what a node wanted to do elsewhere was done.
    fn was_there(&self, node: usize) -> bool {
        self.callers[node].is_there()
    }

    /// What a node's manager does where its message has arrived; its cycles.
    fn act(&self, node: usize) -> u64 {
        match self.callers[node].resume(Resume::There(true)) {
            Ask::Acted(cycles) => cycles,
            _ => unreachable!("it acts where it is"),
        }
    }

    /// A visit of another node's manager, at the network's side of a controller.
    pub(super) async fn visit(&self, node: usize, from: usize, number: u64) -> Option<Reply> {
        let hardware = &self.hardware;
        hardware
            .pass(hardware.parameters.controller.translate)
            .await;
        let begin = hardware.clock.now();
        let held = hardware.nodes[node].lock.acquire().await;
        hardware.count(from, |counts| {
            counts.lock_wait += hardware.clock.now() - begin
        });
        // Who has died, or was told that nobody is here, waits no more.
        let waits = hardware.nodes[from].waits_for.get() == number && !hardware.is_dead(from);
        if !waits {
            return None;
        }
        let cycles = self.act(from);
        hardware.pass(cycles).await;
        drop(held);
        Some(Reply::Held(true))
    }
}
