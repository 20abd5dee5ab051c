//! The manager of Metes on the platform: its own code, each visit of a heap a message to the controller there.
//!
//! *Invariant:* what a manager does at a heap is done by who holds that heap's lock, in one piece, and keeps it busy for as
//! long as it takes.

use metes_mesh::Place;

use super::{Manager, Served};
use crate::hardware::{Reply, Service};
use crate::view::{Answer, Ask, Command, Resume};

/// Cycles after which is looked again whether a node's manager has time.
const PATIENCE: u64 = 100;

impl Manager {
    pub(super) async fn allocate_by_mesh(&self, node: usize, size: u64) -> Served {
        self.hardware
            .compute(self.hardware.parameters.core.map_allocate)
            .await;
        let align = super::ALIGN;
        let (answer, visits) = self.call(node, Command::Allocate { size, align }).await;
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
        let (answer, _) = self.call(node, Command::Free { address }).await;
        answer == Answer::Freed(Ok(())) || self.hardware.is_dead(owner)
    }

    /// Takes a dead node for dead, and its blocks for this node's; nothing if this node has died, too.
    pub(crate) async fn bury(&self, node: usize, dead: usize) -> Option<Vec<u64>> {
        // A node that dies in a call never gives its turn back.
        let turn = loop {
            if self.hardware.is_dead(node) {
                return None;
            }
            if let Some(turn) = self.hardware.nodes[node].calls.try_acquire() {
                break turn;
            }
            self.hardware.clock.delay(PATIENCE).await;
        };
        self.command(node, Command::DeclareDead { node: dead })
            .await?;
        let (answer, _) = self.command(node, Command::Adopt { node: dead }).await?;
        drop(turn);
        match answer {
            Answer::Adopted(Ok(addresses)) if !self.hardware.is_dead(node) => Some(addresses),
            _ => None,
        }
    }

    /// As [`command`](Self::command), of a program: one whose node falls silent waits for ever.
    async fn call(&self, node: usize, command: Command) -> (Answer, u64) {
        match self.command(node, command).await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    /// Lets the node's manager do something, and the messages of it travel. Nothing if the node falls silent.
    async fn command(&self, node: usize, command: Command) -> Option<(Answer, u64)> {
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
                    return Some((answer, visits));
                }
                Ask::Visit { node: to, before } => {
                    hardware.at_core_side(node, before).await;
                    if to == node {
                        self.visit_own(node).await
                    } else {
                        self.visit_other(node, to).await?
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

    async fn visit_other(&self, node: usize, to: usize) -> Option<Ask> {
        let reply = self.hardware.ask(node, to, Service::Visit).await;
        let there = self.callers[node].is_there();
        let resume = match reply {
            Some(Reply::Held(_)) => Resume::Back,
            // The node has done what it was asked for, and died of something else: as if it had died a moment later.
            _ if there && self.hardware.is_dead(to) => Resume::Back,
            // It lives, and no answer came through: who asked cannot know what it has there; it is cut off, and falls
            // silent. What it has is found by tags.
            _ if there => {
                self.hardware.die(node);
                return None;
            }
            // Not reached.
            _ => Resume::There(false),
        };
        Some(self.callers[node].resume(resume))
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
