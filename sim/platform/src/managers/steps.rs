//! Steps of programs that manage memory by themselves, as the C of the heap space map does on a simulated core.
//!
//! *Invariant:* a step takes what the same step of the managers of the papers takes; what the core takes is its own.

use super::{Manager, offset_of, place};
use crate::hardware::{Reply, Service};
use crate::program::{HeapStep, Outcome};

impl Manager {
    /// Does a step of a node's program at a heap. At a node that there is not nothing is held, taken or freed.
    pub(crate) async fn step(&self, node: usize, heap: usize, step: HeapStep) -> Outcome {
        if heap >= self.memory.parts.len() {
            return Outcome::Held(false);
        }
        if let HeapStep::Give { offset, size } = step {
            let given = self.free_by_message(node, place(heap, offset), 0).await;
            if given {
                self.memory.parts[heap].give(size);
            }
            return Outcome::Freed(given);
        }
        let core = self.hardware.parameters.core;
        self.hardware.pass(core.command).await;
        let outcome = if heap == node {
            self.step_at_home(node, step).await
        } else {
            self.step_away(node, heap, step).await
        };
        self.hardware.pass(core.answer).await;
        self.count_step(node, heap, step, &outcome);
        outcome
    }

    async fn step_at_home(&self, node: usize, step: HeapStep) -> Outcome {
        let hardware = &self.hardware;
        let controller = hardware.parameters.controller;
        let own = &hardware.nodes[node];
        match step {
            HeapStep::Lock => {
                hardware.at_core_side(node, controller.lock).await;
                let held = hardware.lock_own(node).await;
                own.held.replace(Some(held));
                Outcome::Held(true)
            }
            HeapStep::TryLock => {
                hardware.at_core_side(node, controller.lock).await;
                let held = own.lock.try_acquire();
                let is_held = held.is_some();
                if is_held {
                    own.held.replace(held);
                }
                Outcome::Held(is_held)
            }
            HeapStep::Unlock => {
                hardware.at_core_side(node, controller.lock).await;
                own.held.take();
                Outcome::Held(false)
            }
            HeapStep::Take { size } => {
                let (taken, accesses) = self.take(node, size);
                let cycles = controller.allocate + controller.access * accesses;
                hardware.at_core_side(node, cycles).await;
                Outcome::Offset(taken)
            }
            HeapStep::Give { .. } => Outcome::Freed(false),
        }
    }

    async fn step_away(&self, node: usize, heap: usize, step: HeapStep) -> Outcome {
        let service = match step {
            HeapStep::Lock => Service::Lock,
            HeapStep::TryLock => Service::TryLock,
            HeapStep::Unlock => Service::Unlock,
            HeapStep::Take { size } => Service::Allocate { size },
            HeapStep::Give { .. } => return Outcome::Freed(false),
        };
        let reply = self.hardware.ask(node, heap, service).await;
        match step {
            HeapStep::Take { .. } => Outcome::Offset(offset_of(reply)),
            _ => {
                self.count_lock(node);
                Outcome::Held(reply == Some(Reply::Held(true)))
            }
        }
    }

    fn count_step(&self, node: usize, heap: usize, step: HeapStep, outcome: &Outcome) {
        self.hardware.count(node, |counts| match (step, outcome) {
            (HeapStep::TryLock, Outcome::Held(false)) => counts.skips += 1,
            (HeapStep::Take { .. }, Outcome::Offset(taken)) => {
                counts.visits += 1;
                let served = u64::from(taken.is_some());
                if heap == node {
                    counts.served_at_home += served;
                } else {
                    counts.served_away += served;
                }
            }
            _ => {}
        });
        if let (HeapStep::Take { size }, Outcome::Offset(Some(_))) = (step, outcome) {
            self.memory.parts[heap].take(size);
        }
    }
}
