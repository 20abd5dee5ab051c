//! Random traffic without faults, over meshes of all kinds and sizes.
//!
//! *Invariant:* what is asked of a network here holds whatever is sent: each packet arrives once, none sooner than its way
//! takes, those of a flow in order where X-Y routing is said, and links carry what there are packets for.

use std::collections::{BTreeMap, BTreeSet};

use metes_noc::mesh::Fate;
use metes_noc::{Faults, Kind, Mesh, Parameters};
use proptest::prelude::*;

use crate::traffic::{plans, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 1500 }))]

    #[test]
    fn each_packet_arrives_once_and_not_too_soon(plan in plans()) {
        let (ends, statistics) = run(&plan, &Faults::default());
        let (parameters, grid) = (&plan.parameters, plan.parameters.topology());
        prop_assert_eq!(statistics.counts.delivered, plan.packets.len() as u64);
        let numbers: BTreeSet<u64> = ends.iter().map(|end| end.packet.number).collect();
        prop_assert_eq!(numbers.len(), plan.packets.len());
        let mut hops = 0;
        let mut taken = BTreeSet::new();
        for end in &ends {
            let packet = end.packet;
            let sent = plan.packets[packet.number as usize];
            prop_assert_eq!((packet.sent, packet.source, packet.destination), sent);
            prop_assert_eq!((end.fate, packet.copy), (Fate::Delivered, false));
            let least = parameters.latency(packet.source, packet.destination);
            prop_assert!(end.cycle - packet.sent >= least, "{:?} below {}", end, least);
            // The interface takes a packet a cycle; of a deflecting mesh it turns those to its own node round before.
            let turned = packet.source == packet.destination && parameters.network == Kind::Deflection;
            prop_assert!(turned || taken.insert((packet.destination, end.cycle)), "{:?} is one too many", end);
            hops += grid.hops(packet.source, packet.destination) as u64;
        }
        // A deflection is a hop in vain and one to make up for it.
        let carried: u64 = statistics.links.iter().map(|link| link.packets).sum();
        prop_assert_eq!(carried, hops + 2 * statistics.deflections);
        let real: BTreeSet<usize> = grid.real_links().map(|(link, ..)| link).collect();
        for (link, used) in statistics.links.iter().enumerate() {
            prop_assert_eq!(used.busy, used.packets * parameters.occupancy);
            prop_assert!(used.packets == 0 || real.contains(&link));
            prop_assert!(statistics.load(link) <= 1.0);
        }
    }

    #[test]
    fn x_y_routing_keeps_flows_in_order_and_on_their_way(mut plan in plans()) {
        if plan.parameters.network == Kind::Deflection {
            plan.parameters.network = Kind::Buffered;
        }
        let (ends, statistics) = run(&plan, &Faults::default());
        let mut last = BTreeMap::new();
        for end in ends {
            let flow = (end.packet.source, end.packet.destination);
            let before = last.insert(flow, (end.packet.number, end.cycle));
            let in_order = before.is_none_or(|it| it.0 < end.packet.number && it.1 < end.cycle);
            prop_assert!(in_order, "{:?} after {:?}", end, before);
        }
        let grid = plan.parameters.topology();
        let mut expected = vec![0; grid.links()];
        for &(_, source, destination) in &plan.packets {
            grid.path(source, destination).for_each(|(node, direction)| expected[grid.link(node, direction)] += 1);
        }
        let carried: Vec<u64> = statistics.links.iter().map(|link| link.packets).collect();
        prop_assert_eq!(carried, expected);
    }

    #[test]
    fn a_run_is_repeated_bit_by_bit(plan in plans()) {
        prop_assert_eq!(run(&plan, &Faults::default()), run(&plan, &Faults::default()));
    }

    #[test]
    fn who_asks_late_is_told_the_same(plan in plans()) {
        let mut mesh = Mesh::new(&plan.parameters, &Faults::default()).expect("a mesh");
        for &(cycle, source, destination) in &plan.packets {
            mesh.send(cycle, source, destination).expect("in the order of time");
        }
        let mut ends = Vec::new();
        while let Some(next) = mesh.next() {
            mesh.advance(next, &mut ends);
        }
        prop_assert_eq!(ends, run(&plan, &Faults::default()).0);
    }

    #[test]
    fn a_packet_alone_takes_what_its_way_takes(plan in plans()) {
        for &(_, source, destination) in plan.packets.iter().take(10) {
            let mut mesh = Mesh::new(&plan.parameters, &Faults::default()).expect("a mesh");
            mesh.send(1000, source, destination).expect("its nodes");
            let mut ends = Vec::new();
            mesh.advance(1_000_000, &mut ends);
            // Its own node is reached without a router where there are no queues to pass.
            let least = plan.parameters.latency(source, destination);
            prop_assert_eq!(ends[0].cycle - 1000, least);
        }
    }
}

#[test]
fn a_place_in_a_queue_is_free_again_after_a_hop_and_a_credit() {
    for (queue, credit) in [(1, 2), (2, 2), (3, 5), (5, 1), (8, 2)] {
        let parameters = Parameters {
            queue,
            credit,
            ..Parameters::new(4, 1, Kind::Buffered)
        };
        let mut mesh = Mesh::new(&parameters, &Faults::default()).expect("a mesh");
        let count = 600;
        for _ in 0..count {
            mesh.send(0, 0, 3).expect("its nodes");
        }
        let mut ends = Vec::new();
        mesh.advance(1_000_000, &mut ends);
        // As many packets as there are places, every time that a place comes back; one a cycle at most.
        let round = (parameters.hop() + credit).max(queue);
        let rounds = (count - 1) / queue;
        let expected = parameters.latency(0, 3) + rounds * round + (count - 1) % queue;
        assert_eq!(
            ends.last().map(|end| end.cycle),
            Some(expected),
            "{queue} places, {credit}"
        );
    }
}

#[test]
fn what_cannot_be_sent_is_named() {
    let mut mesh = Mesh::new(&Parameters::new(2, 3, Kind::Buffered), &Faults::default()).unwrap();
    mesh.advance(10, &mut Vec::new());
    let said = |error: metes_noc::mesh::Error| error.to_string();
    assert_eq!(
        said(mesh.send(10, 0, 6).unwrap_err()),
        "there is no node 6: the mesh has nodes 0 to 5; send to one of these, or enlarge columns or rows"
    );
    assert_eq!(
        said(mesh.send(9, 0, 5).unwrap_err()),
        "a packet cannot be sent at cycle 9: the mesh is at cycle 10; send in the order of time"
    );
    assert!(said(mesh.send(u64::MAX, 0, 5).unwrap_err()).contains("begin a new mesh"));
    // At the last cycle everything still goes well.
    mesh.send(metes_noc::mesh::LAST, 0, 5)
        .expect("the last cycle");
    let mut ends = Vec::new();
    mesh.advance(u64::MAX, &mut ends);
    assert_eq!(ends.len(), 1);
}
