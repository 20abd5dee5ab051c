//! Heaps in C: code of the core that reads and writes records itself.
//!
//! A word of another node's memory is a message there and back; as the core does nothing meanwhile and messages of a word
//! meet nobody's lock, each is charged as its way alone takes.
//!
//! *Invariant:* instructions and accesses are those of the operation on the heap that there is.

use metes_mesh::{LocalHeap, Place};

use super::{ALIGN, Manager, Served, place};
use crate::hardware::Service;

impl Manager {
    pub(super) async fn allocate_in_c(&self, node: usize, size: u64) -> Served {
        let (taken, accesses) = self.take(node, size);
        let core = self.hardware.parameters.core;
        let instructions = core.c_allocate + core.c_access * accesses;
        self.hardware.compute(instructions).await;
        Served {
            place: taken.map(|offset| place(node, offset)),
            visits: 1,
            skips: 0,
        }
    }

    pub(super) async fn free_in_c(&self, node: usize, place: Place) -> bool {
        let owner = place.node.0 as usize;
        let (given, accesses) = self.give(owner, place.offset);
        let core = self.hardware.parameters.core;
        let instructions = core.c_free + core.c_access * accesses;
        self.hardware.compute(instructions).await;
        if owner != node {
            self.hardware
                .pass(accesses * self.way_there_and_back(node, owner))
                .await;
        }
        given
    }

    /// A block of the one heap over all memories, whose lock is at node 0.
    pub(super) async fn allocate_in_one(&self, node: usize, size: u64) -> Served {
        self.lock_one(node).await;
        let (taken, accesses) = {
            let mut single = self.single().borrow_mut();
            let before = single.accesses();
            (single.allocate(size, ALIGN), single.accesses() - before)
        };
        let core = self.hardware.parameters.core;
        self.work_on_one(node, core.c_allocate, accesses).await;
        self.unlock_one(node).await;
        let heap = self.memory.space.size();
        Served {
            place: taken.map(|offset| place((offset / heap) as usize, offset % heap)),
            visits: 1,
            skips: 0,
        }
    }

    pub(super) async fn free_in_one(&self, node: usize, place: Place) -> bool {
        self.lock_one(node).await;
        let offset = u64::from(place.node.0) * self.memory.space.size() + place.offset;
        let (given, accesses) = {
            let mut single = self.single().borrow_mut();
            let before = single.accesses();
            (single.release(offset), single.accesses() - before)
        };
        let core = self.hardware.parameters.core;
        self.work_on_one(node, core.c_free, accesses).await;
        self.unlock_one(node).await;
        given
    }

    fn single(&self) -> &std::cell::RefCell<crate::heaps::NodeHeap> {
        self.single.as_ref().expect("the manager has one heap")
    }

    /// Code, and records of which each node has as many.
    async fn work_on_one(&self, node: usize, instructions: u64, accesses: u64) {
        let core = self.hardware.parameters.core;
        let instructions = instructions + core.c_access * accesses;
        self.hardware.compute(instructions).await;
        let nodes = self.memory.parts.len();
        let away = (0..nodes).filter(|other| *other != node);
        let ways: u64 = away.map(|other| self.way_there_and_back(node, other)).sum();
        self.hardware.pass(accesses * ways / nodes as u64).await;
    }

    async fn lock_one(&self, node: usize) {
        if node == 0 {
            let held = self.hardware.lock_own(0).await;
            *self.hardware.nodes[0].held.borrow_mut() = Some(held);
        } else {
            self.hardware.ask(node, 0, Service::Lock).await;
        }
    }

    async fn unlock_one(&self, node: usize) {
        if node == 0 {
            self.hardware.nodes[0].held.take();
        } else {
            self.hardware.ask(node, 0, Service::Unlock).await;
        }
    }

    /// Cycles of an access to a word of another node's memory with nobody in the way.
    fn way_there_and_back(&self, node: usize, other: usize) -> u64 {
        let parameters = &self.hardware.parameters;
        let network = &parameters.network;
        let hops = network.topology().hops(node, other) as u64;
        let way = network.interface_in + hops * network.hop() + network.interface_out;
        2 * way + parameters.controller.translate
    }
}
