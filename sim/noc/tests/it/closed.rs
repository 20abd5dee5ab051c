//! Closed traffic: each node has a few packets under way and sends the next when one has arrived.
//!
//! *Invariant:* under such traffic no packet of a deflecting mesh exceeds the bound that its age gives it.

use metes_noc::mesh::Statistics;
use metes_noc::{Faults, Kind, Mesh, Parameters};
use metes_random::Random;

/// Sends `count` packets, `window` of each node at a time, to random nodes or all to one.
fn close(side: usize, kind: Kind, window: usize, count: u64, one: bool) -> Statistics {
    let parameters = Parameters::new(side, side, kind);
    let mut mesh = Mesh::new(&parameters, &Faults::default()).expect("a mesh");
    let nodes = side * side;
    let mut random = Random::new(side as u64);
    let mut target = || {
        if one {
            nodes / 2
        } else {
            random.below(nodes as u64) as usize
        }
    };
    for source in (0..nodes).flat_map(|node| std::iter::repeat_n(node, window)) {
        mesh.send(0, source, target()).expect("its nodes");
    }
    let mut sent = (nodes * window) as u64;
    let mut ends = Vec::new();
    while let Some(next) = mesh.next() {
        mesh.advance(next, &mut ends);
        for end in ends.drain(..) {
            if sent < count {
                mesh.send(next, end.packet.source, target())
                    .expect("its nodes");
                sent += 1;
            }
        }
    }
    let statistics = mesh.statistics();
    assert_eq!(statistics.counts.delivered, sent, "all arrive");
    statistics
}

#[test]
fn deflected_packets_arrive_within_their_bound() {
    let mut deflections = 0;
    for side in 2..=8usize {
        for (window, one) in [(1, false), (4, false), (1, true), (4, true)] {
            let statistics = close(side, Kind::Deflection, window, 5000, one);
            deflections += statistics.deflections;
            // Of the others under way some are older, and each of them goes a diameter at most while it is the oldest.
            let (nodes, diameter) = ((side * side) as u64, 2 * (side as u64 - 1));
            let bound = nodes * window as u64 * diameter;
            let longest = statistics.longest_way;
            println!(
                "{side} x {side}, {window} each, to one: {one}: {longest} hops, bound {bound}"
            );
            assert!(
                longest <= bound,
                "{side} x {side}, {window}: {longest} beyond {bound}"
            );
        }
    }
    assert!(
        deflections > 10_000,
        "hardly any was deflected: {deflections}"
    );
}

#[test]
fn all_kinds_deliver_closed_traffic() {
    for kind in Kind::ALL {
        for one in [false, true] {
            let statistics = close(8, kind, 4, 20_000, one);
            assert_eq!(statistics.counts.delivered, 20_000);
        }
    }
}
