//! Traffic for the tests, and a mesh driven by it.
//!
//! *Invariant:* every cycle is visited once and in order, and what the mesh tells is complete when a run has ended.

use metes_noc::mesh::{End, Statistics};
use metes_noc::{Faults, Kind, Mesh, Parameters};
use metes_random::Random;
use proptest::prelude::*;

/// A run that was drawn: a mesh and what is sent over it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) parameters: Parameters,
    /// Packets in the order of time: cycle, source, destination.
    pub(crate) packets: Vec<(u64, usize, usize)>,
}

/// Meshes of all kinds and sizes from 1 x 1 to 8 x 8, and some traffic: sparse, dense, or towards few nodes.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    let delays = (1..4u64, 0..4u64, 1..7u64, 1..4u64, 1..5u64, 1..5u64);
    (
        kinds,
        1..=8usize,
        1..=8usize,
        delays,
        any::<u64>(),
        0..5u64,
        1..400usize,
    )
        .prop_map(|(kind, columns, rows, delays, seed, gap, count)| {
            let (interface_in, interface_out, hop, occupancy, queue, credit) = delays;
            let deflects = kind == Kind::Deflection;
            let parameters = Parameters {
                interface_in,
                interface_out,
                hop: (hop < 6).then_some(hop),
                queue,
                credit,
                ..Parameters::new(columns, rows, kind)
            };
            let most = if deflects { 1 } else { parameters.hop() };
            let parameters = Parameters {
                occupancy: occupancy.min(most),
                ..parameters
            };
            Plan {
                packets: packets(seed, columns * rows, gap, count),
                parameters,
            }
        })
}

fn packets(seed: u64, nodes: usize, gap: u64, count: usize) -> Vec<(u64, usize, usize)> {
    let mut random = Random::new(seed);
    let mut any = move |below: usize| random.below(below as u64) as usize;
    // Of all traffic a part goes to one node.
    let (hot, share) = (any(nodes), any(4));
    let mut cycle = 0;
    let mut packet = |_| {
        // Many in a cycle, then none for a while.
        if any(8) == 0 {
            cycle += any(8 * gap as usize + 1) as u64;
        }
        let to = if any(4) < share { hot } else { any(nodes) };
        (cycle, any(nodes), to)
    };
    (0..count).map(&mut packet).collect()
}

/// Runs a plan until nothing is in flight; at each end of a packet, the counts are checked.
pub(crate) fn run(plan: &Plan, faults: &Faults) -> (Vec<End>, Statistics) {
    let mut mesh = Mesh::new(&plan.parameters, faults).expect("a mesh that can be");
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    let mut packets = plan.packets.iter().copied().peekable();
    let mut number = 0;
    loop {
        let sends = packets.peek().map(|(cycle, ..)| *cycle);
        let Some(cycle) = [mesh.next(), sends].into_iter().flatten().min() else {
            break;
        };
        while let Some((_, source, destination)) = packets.next_if(|(at, ..)| *at == cycle) {
            assert_eq!(mesh.send(cycle, source, destination), Ok(number));
            number += 1;
        }
        mesh.advance(cycle, &mut ends);
        assert!(
            ends.iter().all(|end| end.cycle == cycle),
            "told in its cycle"
        );
        all.append(&mut ends);
        let counts = mesh.statistics().counts;
        let ended = counts.delivered + counts.dropped();
        assert_eq!(ended, all.len() as u64);
        assert_eq!(
            counts.injected + counts.duplicated,
            ended + counts.in_flight()
        );
    }
    let statistics = mesh.statistics();
    assert_eq!(statistics.counts.in_flight(), 0, "nothing is left");
    (all, statistics)
}
