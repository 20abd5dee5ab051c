//! Processes that talk over a mesh.
//!
//! *Invariant:* what a process sees over a fabric is what the mesh alone does, cycle for cycle, and a run is repeated bit by
//! bit.

use std::cell::RefCell;
use std::rc::Rc;

use metes_noc::{Fabric, Faults, Kind, Mesh, Parameters, Simulation};
use metes_random::Random;
use proptest::prelude::*;

use crate::traffic::{Plan, plans, run};

/// Arrivals of a plan whose packets are sent by processes, one a node: number, destination and cycle.
fn arrivals(plan: &Plan, faults: &Faults) -> Vec<(u64, usize, u64)> {
    let mesh = Mesh::new(&plan.parameters, faults).expect("a mesh");
    let mut simulation = Simulation::new();
    let fabric = Fabric::new(&mut simulation, mesh);
    let clock = simulation.clock();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let nodes = plan.parameters.topology().nodes();
    let (sender, packets, sends) = (fabric.clone(), plan.packets.clone(), clock.clone());
    simulation.spawn("sender", async move {
        for (cycle, source, destination) in packets {
            if cycle > sends.now() {
                sends.until(cycle).await;
            }
            sender.send(source, destination, cycle).expect("its nodes");
        }
    });
    for node in 0..nodes {
        let (fabric, clock, seen) = (fabric.clone(), clock.clone(), Rc::clone(&seen));
        simulation.serve(format!("node {node}"), async move {
            loop {
                let letter = fabric.receive(node).await;
                assert_eq!(letter.sent, letter.message);
                seen.borrow_mut().push((letter.number, node, clock.now()));
            }
        });
    }
    simulation.run().expect("the sender ends");
    assert_eq!(fabric.statistics().counts.in_flight(), 0);
    seen.take()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 50 } else { 300 }))]

    #[test]
    fn a_fabric_delivers_what_the_mesh_does(plan in plans()) {
        let faults = Faults { lost: vec![1], duplicated: vec![0, 2], ..Faults::default() };
        let (ends, _) = run(&plan, &faults);
        let delivered = ends.iter().filter(|end| end.fate == metes_noc::mesh::Fate::Delivered);
        let mut expected: Vec<_> =
            delivered.map(|end| (end.packet.number, end.packet.destination, end.cycle)).collect();
        let mut seen = arrivals(&plan, &faults);
        prop_assert_eq!(&seen, &arrivals(&plan, &faults));
        // Letters of a cycle are read in the order of their nodes' events.
        expected.sort_unstable();
        seen.sort_unstable();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn a_service_of_many_clients_is_repeated_bit_by_bit() {
    for kind in Kind::ALL {
        let run = || {
            let mesh = Mesh::new(&Parameters::new(4, 4, kind), &Faults::default()).expect("a mesh");
            let mut simulation = Simulation::new();
            let fabric = Fabric::new(&mut simulation, mesh);
            let clock = simulation.clock();
            let (port, answers) = (clock.resource("port"), Rc::new(RefCell::new(Vec::new())));
            for node in 0..16 {
                let (fabric, clock) = (fabric.clone(), clock.clone());
                let answers = Rc::clone(&answers);
                simulation.spawn(format!("client {node}"), async move {
                    let mut random = Random::new(node as u64);
                    for _ in 0..20 {
                        clock.delay(random.below(30)).await;
                        fabric.send(node, 5, "request").expect("its nodes");
                        if node != 5 {
                            let answer = fabric.receive(node).await;
                            answers.borrow_mut().push((clock.now(), node, answer.sent));
                        }
                    }
                });
            }
            let server = fabric.clone();
            simulation.serve("server", async move {
                loop {
                    let request = server.receive(5).await;
                    let held = port.acquire().await;
                    clock.delay(3).await;
                    drop(held);
                    if request.source != 5 {
                        server.send(5, request.source, "answer").expect("its nodes");
                    }
                }
            });
            let end = simulation.run().expect("all are served");
            (end, answers.take(), fabric.statistics())
        };
        let first = run();
        assert_eq!(first.1.len(), 300);
        assert_eq!(first, run());
    }
}

#[test]
fn a_lost_answer_is_a_deadlock_that_names_who_waits() {
    let faults = Faults::parse("lost = [1]").expect("faults");
    let mesh = Mesh::new(&Parameters::new(2, 2, Kind::Deflection), &faults).expect("a mesh");
    let mut simulation = Simulation::new();
    let fabric = Fabric::new(&mut simulation, mesh);
    let server = fabric.clone();
    simulation.spawn("client", async move {
        fabric.send(0, 3, ()).expect("its nodes");
        fabric.receive(0).await;
    });
    simulation.serve("server", async move {
        loop {
            let request = server.receive(3).await;
            server.send(3, request.source, ()).expect("its nodes");
        }
    });
    let deadlock = simulation.run().unwrap_err();
    assert_eq!(
        deadlock.to_string(),
        "at cycle 8 nothing is left to happen, but client waits for a message in mail of node 0"
    );
}
