//! The managers that controllers run by microcode: priority tables, and lazy selection.
//!
//! *Invariant:* a heap is changed by who holds its lock.

use std::rc::Rc;

use metes_mesh::Place;

use super::{Manager, Served, offset_of, place};
use crate::hardware::{Reply, Service};
use crate::parameters::TableOrder;

impl Manager {
    /// Heaps in the order of the table, each until it is known to be full.
    pub(super) async fn allocate_by_table(&self, node: usize, size: u64) -> Served {
        let parameters = &self.hardware.parameters;
        let (core, controller) = (parameters.core, parameters.controller);
        self.hardware.pass(core.command).await;
        let mut visits = 0;
        let mut found = None;
        for heap in self.table(node) {
            self.hardware.at_core_side(node, controller.table).await;
            self.hardware
                .count(node, |counts| counts.communication += controller.table);
            visits += 1;
            let offset = if heap == node {
                self.allocate_at_home(node, size).await
            } else if parameters.papers.microcoded_fused {
                let lazily = false;
                let service = Service::AllocateLocked { size, lazily };
                offset_of(self.hardware.ask(node, heap, service).await)
            } else {
                self.hardware.ask(node, heap, Service::Lock).await;
                self.count_lock(node);
                let reply = self
                    .hardware
                    .ask(node, heap, Service::Allocate { size })
                    .await;
                self.hardware.ask(node, heap, Service::Unlock).await;
                self.count_lock(node);
                offset_of(reply)
            };
            found = offset.map(|offset| place(heap, offset));
            if found.is_some() {
                break;
            }
        }
        self.hardware.pass(core.answer).await;
        Served {
            place: found,
            visits,
            skips: 0,
        }
    }

    /// The own heap; then all others, but for those that somebody holds.
    pub(super) async fn allocate_lazily(&self, node: usize, size: u64) -> Served {
        let parameters = &self.hardware.parameters;
        let core = parameters.core;
        self.hardware.compute(core.map_allocate).await;
        self.hardware.pass(core.command).await;
        let home = self.allocate_at_home(node, size).await;
        self.hardware.pass(core.answer).await;
        let mut served = Served {
            place: home.map(|offset| place(node, offset)),
            visits: 1,
            skips: 0,
        };
        let nodes = parameters.nodes();
        for heap in (1..nodes).map(|step| (node + step) % nodes) {
            if served.place.is_some() {
                break;
            }
            self.hardware.compute(core.map_visit).await;
            self.hardware.pass(core.command).await;
            match self.try_heap(node, heap, size).await {
                Some(offset) => {
                    served.visits += 1;
                    served.place = offset.map(|offset| place(heap, offset));
                }
                None => served.skips += 1,
            }
            self.hardware.pass(core.answer).await;
        }
        served
    }

    /// A block of another heap, if it has one; nothing if somebody holds it.
    async fn try_heap(&self, node: usize, heap: usize, size: u64) -> Option<Option<u64>> {
        if self.hardware.parameters.papers.proposed_fused {
            let lazily = true;
            let service = Service::AllocateLocked { size, lazily };
            return match self.hardware.ask(node, heap, service).await {
                Some(Reply::Block(offset)) => Some(offset),
                _ => None,
            };
        }
        let reply = self.hardware.ask(node, heap, Service::TryLock).await;
        self.count_lock(node);
        if reply != Some(Reply::Held(true)) {
            return None;
        }
        let reply = self
            .hardware
            .ask(node, heap, Service::Allocate { size })
            .await;
        self.hardware.ask(node, heap, Service::Unlock).await;
        self.count_lock(node);
        Some(offset_of(reply))
    }

    async fn allocate_at_home(&self, node: usize, size: u64) -> Option<u64> {
        let controller = self.hardware.parameters.controller;
        self.hardware.at_core_side(node, controller.lock).await;
        let held = self.hardware.lock_own(node).await;
        let (taken, accesses) = self.take(node, size);
        let cycles = controller.allocate + controller.access * accesses + controller.lock;
        self.hardware.at_core_side(node, cycles).await;
        drop(held);
        taken
    }

    /// A free is one message to the heap's controller, which nobody waits for; of the own heap it is done at once.
    pub(super) async fn free_by_message(&self, node: usize, place: Place, map: u64) -> bool {
        let parameters = &self.hardware.parameters;
        let (core, controller) = (parameters.core, parameters.controller);
        self.hardware.compute(map).await;
        self.hardware.pass(core.command).await;
        let heap = place.node.0 as usize;
        self.hardware.at_core_side(node, controller.translate).await;
        if heap == node {
            self.hardware.at_core_side(node, controller.lock).await;
            let held = self.hardware.lock_own(node).await;
            let (given, accesses) = self.give(node, place.offset);
            let cycles = controller.free + controller.access * accesses + controller.lock;
            self.hardware.at_core_side(node, cycles).await;
            drop(held);
            self.hardware.pass(core.answer).await;
            return given;
        }
        let offset = place.offset;
        self.hardware
            .post(node, heap, Service::FreeLocked { offset })
            .await;
        true
    }

    /// What another node asks for, at the network's side of a controller; what waits for a lock waits elsewhere.
    pub(super) async fn do_for(
        self: &Rc<Self>,
        node: usize,
        from: usize,
        number: u64,
        service: Service,
    ) -> Option<Reply> {
        let controller = self.hardware.parameters.controller;
        let lock = &self.hardware.nodes[node].lock;
        let held = &self.hardware.nodes[node].held;
        match service {
            Service::Lock => {
                self.hardware.pass(controller.lock).await;
                match lock.try_acquire() {
                    Some(taken) => {
                        *held.borrow_mut() = Some(taken);
                        Some(Reply::Held(true))
                    }
                    None => {
                        self.wait_in_supporter(node, from, number, service);
                        None
                    }
                }
            }
            Service::TryLock => {
                self.hardware.pass(controller.lock).await;
                let taken = lock.try_acquire();
                let is_held = taken.is_some();
                if is_held {
                    *held.borrow_mut() = taken;
                }
                Some(Reply::Held(is_held))
            }
            Service::Unlock => {
                self.hardware.pass(controller.lock).await;
                held.take();
                Some(Reply::Held(false))
            }
            Service::Allocate { size } => Some(Reply::Block(self.allocate_for(node, size).await)),
            Service::AllocateLocked { size, lazily } => match lock.try_acquire() {
                Some(taken) => {
                    let offset = self.allocate_for(node, size).await;
                    self.hardware.pass(2 * controller.lock).await;
                    drop(taken);
                    Some(Reply::Block(offset))
                }
                None if lazily => {
                    self.hardware.pass(controller.lock).await;
                    Some(Reply::Skipped)
                }
                None => {
                    self.wait_in_supporter(node, from, number, service);
                    None
                }
            },
            Service::FreeLocked { offset } => {
                match lock.try_acquire() {
                    Some(taken) => {
                        self.free_for(node, offset).await;
                        drop(taken);
                    }
                    None => self.wait_in_supporter(node, from, number, service),
                }
                None
            }
            Service::Visit => None,
        }
    }

    /// Lets a request wait for the lock, and the controller go on.
    fn wait_in_supporter(self: &Rc<Self>, node: usize, from: usize, number: u64, service: Service) {
        let waiting = Rc::clone(self);
        self.hardware.clock.serve(
            format!("request of node {from} in the supporter of node {node}"),
            async move {
                let hardware = &waiting.hardware;
                let begin = hardware.clock.now();
                let taken = hardware.nodes[node].lock.acquire().await;
                hardware.count(from, |counts| {
                    counts.lock_wait += hardware.clock.now() - begin
                });
                let reply = match service {
                    Service::AllocateLocked { size, .. } => {
                        let offset = waiting.allocate_for(node, size).await;
                        let lock = hardware.parameters.controller.lock;
                        hardware.pass(2 * lock).await;
                        drop(taken);
                        Reply::Block(offset)
                    }
                    Service::FreeLocked { offset } => {
                        waiting.free_for(node, offset).await;
                        drop(taken);
                        return;
                    }
                    _ => {
                        *hardware.nodes[node].held.borrow_mut() = Some(taken);
                        Reply::Held(true)
                    }
                };
                hardware.answer(node, from, number, reply).await;
            },
        );
    }

    async fn allocate_for(&self, node: usize, size: u64) -> Option<u64> {
        let controller = self.hardware.parameters.controller;
        let (taken, accesses) = self.take(node, size);
        let cycles = controller.allocate + controller.access * accesses;
        self.hardware.pass(cycles).await;
        taken
    }

    async fn free_for(&self, node: usize, offset: u64) {
        let controller = self.hardware.parameters.controller;
        let (_, accesses) = self.give(node, offset);
        let cycles = controller.free + controller.access * accesses + 2 * controller.lock;
        self.hardware.pass(cycles).await;
    }

    pub(super) fn count_lock(&self, node: usize) {
        let lock = self.hardware.parameters.controller.lock;
        self.hardware
            .count(node, |counts| counts.communication += lock);
    }

    /// The priority table of a node, which begins with itself.
    fn table(&self, node: usize) -> Vec<usize> {
        let parameters = &self.hardware.parameters;
        let mut others: Vec<usize> = (0..parameters.nodes()).filter(|n| *n != node).collect();
        if parameters.papers.table == TableOrder::Distance {
            let topology = parameters.network.topology();
            others.sort_by_key(|other| (topology.hops(node, *other), *other));
        }
        std::iter::once(node).chain(others).collect()
    }
}
