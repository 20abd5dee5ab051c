//! How long a request for a block may take on the platform under the manager of Metes: a bound, and its derivation.
//!
//! The system is closed: a node has one message of its manager under way at most, a request or its answer, and programs have so
//! many more. So at most *P* packets are in the mesh, and at most *N* - 1 requests are at a controller.
//!
//! *A way.* On link timelines a packet keeps the first time that is left on each link of its way. What keeps a link from it are
//! packets that are in the mesh, *P* - 1 at most, each with one reservation a link; a reservation may leave a gap before it that
//! is too short. So it waits (*P* - 1)(2 *o* - 1) cycles at a link at most, *o* being what a packet occupies, and as long
//! at the two interfaces: `T_net = in + D hop + out + (D + 2)(P - 1)(2 o - 1)`, *D* being the diameter.
//!
//! *A visit.* What is done at a heap has no loop: nothing is parked where controllers act at the heap, so nothing is drained. It
//! takes *v* cycles at most, of protocol steps and words of records.
//!
//! *A service.* A request waits for those before it at the controller, *N* - 2 at most, and for the lock: it is given in turn,
//! and the only other one that asks for it is the core of that node, whose visit may be under way. So each takes
//! `S = receive + translate + v + v + send` at most, and a request (*N* - 1) *S*.
//!
//! *A request* visits the own heap, for whose lock it waits one visit of the controller's other side, and then others, *V* at most:
//!
//! `T = map + command + answer + translate + 2 v + V (send + 2 T_net + (N - 1) S + receive) + steps between visits`
//!
//! with *V* = *N* - 1, or 0 for a request that is served at home or by a lease.
//!
//! *Invariant:* no run without faults has a request that takes longer; tests hold runs to it.

use metes_heap::IndexKind;
use metes_noc::Kind;
use serde::Serialize;

use crate::heaps::{HeapKind, MOST_ACCESSES_OF_ALLOCATE, MOST_ACCESSES_OF_FREE};
use crate::parameters::Parameters;

/// Protocol steps of a visit, at most: counted along `Mesh::look_into` and `Mesh::give_back`, one more than either has.
const STEPS: u64 = 16;
/// Protocol steps before a visit, and after the last.
const STEPS_BETWEEN: u64 = 1;

/// Bounds in cycles, and what they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Nodes.
    pub nodes: u64,
    /// Packets in the mesh, at most.
    pub packets: u64,
    /// A way through the mesh.
    pub network: u64,
    /// A visit of a heap.
    pub visit: u64,
    /// A request at another node's controller, when its turn has come.
    pub service: u64,
    /// A visit of another heap, there and back, with all that may be before it.
    pub remote_visit: u64,
    /// A request that looks into the own heap alone.
    pub home: u64,
    /// A request.
    pub allocate: u64,
    /// A free.
    pub free: u64,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBound {
    /// Nothing bounds how long a packet waits.
    #[error(
        "on a network of the kind {0} nothing bounds how long a packet waits for its first link; say network = \"timelines\""
    )]
    Network(Kind),
    /// The heaps are searched.
    #[error("the heaps are no size classes, and a search has no bound; take tlsf or half-fit")]
    Heaps,
}

/// The bounds of a platform on which programs have `messages` packets of their own under way at most. O(1).
///
/// # Errors
/// [`NoBound`] says what to change.
pub fn bound(parameters: &Parameters, heaps: HeapKind, messages: u64) -> Result<Bound, NoBound> {
    let network = &parameters.network;
    if network.network != Kind::Timelines {
        return Err(NoBound::Network(network.network));
    }
    if !matches!(heaps.index, IndexKind::Classes { probes: 0, .. }) {
        return Err(NoBound::Heaps);
    }
    let (core, controller) = (parameters.core, parameters.controller);
    let nodes = parameters.nodes() as u64;
    let packets = nodes + messages;
    let diameter = network.topology().diameter() as u64;
    let kept = (packets - 1) * (2 * network.occupancy - 1);
    let alone = network.interface_in + diameter * network.hop() + network.interface_out;
    let way = alone + (diameter + 2) * kept;
    let accesses = MOST_ACCESSES_OF_ALLOCATE.max(MOST_ACCESSES_OF_FREE);
    let operation = controller.allocate.max(controller.free) + accesses * controller.access;
    let visit = STEPS * controller.step + operation;
    let service = controller.receive + controller.translate + 2 * visit + controller.send;
    let between = STEPS_BETWEEN * controller.step;
    let others = nodes - 1;
    let remote_visit = between + controller.send + 2 * way + others * service + controller.receive;
    let own = between + controller.translate + 2 * visit;
    let around = |map| parameters.cycles(map) + core.command + between + core.answer;
    Ok(Bound {
        nodes,
        packets,
        network: way,
        visit,
        service,
        remote_visit,
        home: around(core.map_allocate) + own,
        allocate: around(core.map_allocate) + own + others * remote_visit,
        free: around(core.map_free) + own.max(remote_visit),
    })
}
