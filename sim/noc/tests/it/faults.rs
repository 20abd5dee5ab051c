//! Random traffic over meshes that lose, duplicate and die.
//!
//! *Invariant:* whatever goes wrong, packets that were sent and copies of them were delivered, dropped or are in flight (also
//! asked after every cycle, by the run), and a run ends.

use metes_noc::mesh::{DeadLink, DeadNode, Fate, Reason, Topology};
use metes_noc::{Faults, Kind, Mesh, Parameters};
use metes_random::Random;
use proptest::prelude::*;

use crate::traffic::{plans, run};

/// Faults of a mesh: some packets, links and nodes, now and later.
fn faults(seed: u64, grid: Topology, packets: u64) -> Faults {
    let mut random = Random::new(seed);
    let mut some = |most: u64| -> Vec<u64> {
        let count = random.below(most);
        (0..count).map(|_| random.next()).collect()
    };
    let links: Vec<_> = grid.real_links().collect();
    let links = some(6)
        .into_iter()
        .filter(|_| !links.is_empty())
        .map(|any| {
            let (_, node, other) = links[any as usize % links.len()];
            DeadLink {
                between: [node, other],
                from: any >> 32 & 63,
            }
        });
    let links = links.collect();
    let nodes = some(4).into_iter().map(|any| DeadNode {
        node: any as usize % grid.nodes(),
        from: any >> 32 & 63,
        router: any >> 63 == 1,
    });
    let nodes = nodes.collect();
    Faults {
        lost: some(5).into_iter().map(|any| any % packets).collect(),
        duplicated: some(5).into_iter().map(|any| any % packets).collect(),
        links,
        nodes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 1500 }))]

    #[test]
    fn every_packet_has_one_end(plan in plans(), seed in any::<u64>()) {
        let grid = plan.parameters.topology();
        let faults = faults(seed, grid, plan.packets.len() as u64);
        let (ends, statistics) = run(&plan, &faults);
        let mut expected = vec![1u32; plan.packets.len()];
        let mut copies = vec![0u32; plan.packets.len()];
        for number in &faults.duplicated {
            copies[*number as usize] = 1;
        }
        let counts = statistics.counts;
        prop_assert_eq!(counts.duplicated, copies.iter().map(|count| u64::from(*count)).sum::<u64>());
        prop_assert_eq!(counts.injected, plan.packets.len() as u64);
        let dead = |node: usize, cycle: u64| faults.nodes.iter().any(|it| it.node == node && it.from <= cycle);
        let mut delivered = 0;
        for end in &ends {
            let packet = end.packet;
            let left = if packet.copy { &mut copies } else { &mut expected };
            prop_assert_eq!(left[packet.number as usize], 1, "{:?} ends twice", end);
            left[packet.number as usize] = 0;
            match end.fate {
                Fate::Delivered => {
                    delivered += 1;
                    prop_assert!(!dead(packet.destination, end.cycle), "{:?}", end);
                    prop_assert!(packet.copy || !faults.lost.contains(&packet.number));
                }
                Fate::Dropped(Reason::Lost) => {
                    prop_assert!(faults.lost.contains(&packet.number) && !packet.copy, "{:?}", end);
                }
                Fate::Dropped(Reason::DeadNode) => {
                    let at_once = dead(packet.source, packet.sent);
                    prop_assert!(!at_once || end.cycle == packet.sent, "{:?}", end);
                    prop_assert!(dead(packet.source, end.cycle) || dead(packet.destination, end.cycle), "{:?}", end);
                }
                Fate::Dropped(Reason::DeadLink) => {
                    let routers = faults.nodes.iter().any(|it| it.router && it.from <= end.cycle);
                    prop_assert!(routers || faults.links.iter().any(|it| it.from <= end.cycle));
                }
                Fate::Dropped(Reason::Stray) => prop_assert_eq!(plan.parameters.network, Kind::Deflection),
            }
        }
        prop_assert!(expected.iter().chain(&copies).all(|left| *left == 0));
        prop_assert_eq!(counts.delivered, delivered);
    }
}

/// A mesh of 3 x 3 with the faults of a text, and the fate of a packet that is sent at a cycle.
fn fate(kind: Kind, faults: &str, cycle: u64, source: usize, destination: usize) -> Fate {
    let faults = Faults::parse(faults).expect("faults");
    let mut mesh = Mesh::new(&Parameters::new(3, 3, kind), &faults).expect("a mesh");
    mesh.send(cycle, source, destination).expect("its nodes");
    let mut ends = Vec::new();
    mesh.advance(100_000, &mut ends);
    ends[0].fate
}

#[test]
fn a_dead_link_is_the_end_of_x_y_routing_and_a_detour_of_deflection() {
    let dead = "links = [{ between = [1, 0], from = 50 }]";
    for kind in [Kind::Timelines, Kind::Buffered] {
        assert_eq!(fate(kind, dead, 10, 0, 2), Fate::Delivered);
        assert_eq!(fate(kind, dead, 60, 0, 2), Fate::Dropped(Reason::DeadLink));
        assert_eq!(fate(kind, dead, 60, 2, 0), Fate::Dropped(Reason::DeadLink));
        assert_eq!(fate(kind, dead, 60, 3, 2), Fate::Delivered);
    }
    for (source, destination) in [(0, 2), (2, 0), (0, 1), (1, 0)] {
        assert_eq!(
            fate(Kind::Deflection, dead, 60, source, destination),
            Fate::Delivered
        );
    }
    // A node that is cut off is looked for until its packets are given up.
    let cut = "links = [{ between = [1, 0], from = 0 }, { between = [3, 0], from = 0 }]";
    assert_eq!(
        fate(Kind::Deflection, cut, 0, 8, 0),
        Fate::Dropped(Reason::Stray)
    );
    assert_eq!(
        fate(Kind::Deflection, cut, 0, 0, 8),
        Fate::Dropped(Reason::DeadLink)
    );
}

#[test]
fn a_packet_on_a_link_that_dies_is_lost() {
    // It is on the first link from cycle 1 to 2 (one a hop), and in a buffered router until 3 and on its way until 5.
    for (kind, arrives) in [
        (Kind::Timelines, 2),
        (Kind::Deflection, 2),
        (Kind::Buffered, 5),
    ] {
        let dies = |from| format!("links = [{{ between = [0, 1], from = {from} }}]");
        assert_eq!(
            fate(kind, &dies(arrives + 1), 0, 0, 2),
            Fate::Delivered,
            "{kind}"
        );
        assert_eq!(
            fate(kind, &dies(arrives), 0, 0, 2),
            Fate::Dropped(Reason::DeadLink),
            "{kind}"
        );
    }
}

#[test]
fn a_dead_node_is_silent_and_its_router_forwards_unless_that_is_dead_too() {
    for kind in Kind::ALL {
        let node = "nodes = [{ node = 4, from = 20 }]";
        assert_eq!(fate(kind, node, 0, 3, 4), Fate::Delivered);
        assert_eq!(fate(kind, node, 20, 3, 4), Fate::Dropped(Reason::DeadNode));
        assert_eq!(fate(kind, node, 20, 4, 5), Fate::Dropped(Reason::DeadNode));
        assert_eq!(fate(kind, node, 20, 4, 4), Fate::Dropped(Reason::DeadNode));
        assert_eq!(fate(kind, node, 20, 3, 5), Fate::Delivered);
        let router = "nodes = [{ node = 4, from = 20, router = true }]";
        let around = match kind {
            Kind::Deflection => Fate::Delivered,
            _ => Fate::Dropped(Reason::DeadLink),
        };
        assert_eq!(fate(kind, router, 20, 3, 5), around);
        assert_eq!(
            fate(kind, router, 20, 4, 5),
            Fate::Dropped(Reason::DeadNode)
        );
        assert!(matches!(fate(kind, router, 20, 3, 4), Fate::Dropped(_)));
    }
}

#[test]
fn faults_that_cannot_be_are_named() {
    let said = |text: &str| {
        let faults = Faults::parse(text).expect("TOML");
        let made = Mesh::new(&Parameters::new(3, 3, Kind::Buffered), &faults);
        made.err().expect("it cannot be").to_string()
    };
    for between in ["0, 2", "2, 3", "0, 9", "4, 4"] {
        let text = said(&format!("links = [{{ between = [{between}], from = 0 }}]"));
        assert!(text.starts_with("there is no link between"), "{text}");
    }
    assert_eq!(
        said("nodes = [{ node = 9, from = 0 }]"),
        "there is no node 9: the mesh has 9, with numbers from 0 on"
    );
}
