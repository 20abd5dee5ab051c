//! Deaths, lost and repeated packets, controllers that stand still: whatever happens, every byte is accounted for.

use metes_platform::{Death, Faults, ManagerKind, Stall};
use proptest::prelude::*;

use crate::setups::{hungry_quarter, setup, stormed};

/// A storm of 3 x 3 nodes under faults: at every look each heap adds up and knows its blocks, all living programs end, and
/// at most one block a dead node is left without anybody who would free it.
fn survives(faults: Faults, seed: u64) {
    let mut setup = setup(3, ManagerKind::Metes);
    setup.parameters.recovery.timeout = 4000;
    setup.parameters.recovery.detection = 9000;
    setup.every = 500;
    setup.faults = faults;
    let mut storm = hungry_quarter(setup.parameters.heap);
    storm.operations = 150;
    storm.seed = seed;
    let run = stormed(&setup, storm);
    assert_eq!(run.lost(), 0, "{:?}", setup.faults);
    let living = (0..9).filter(|node| !run.dead.contains(node));
    let left: u64 = living.map(|node| run.audits[node].in_use).sum();
    assert!(
        left <= run.dead.len() as u64,
        "{left} blocks are left of {:?}",
        setup.faults
    );
}

#[test]
fn a_node_dies_at_any_time() {
    for from in (0..40).map(|step| 500 + 1777 * step) {
        let node = from as usize % 9;
        let deaths = vec![Death { node, from }];
        survives(
            Faults {
                deaths,
                ..Faults::default()
            },
            from,
        );
    }
}

#[test]
fn packets_are_lost_and_repeated() {
    let every = |step: usize| (0..4000).step_by(step).collect();
    for (lost, duplicated) in [
        (every(7), vec![]),
        (vec![], every(5)),
        (every(11), every(3)),
    ] {
        survives(
            Faults {
                lost,
                duplicated,
                ..Faults::default()
            },
            3,
        );
    }
}

#[test]
fn controllers_stand_still() {
    let stalls = (0..9)
        .map(|node| Stall {
            node,
            from: 3000 * node as u64,
            cycles: 10_000,
        })
        .collect();
    survives(
        Faults {
            stalls,
            ..Faults::default()
        },
        4,
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn anything_goes_wrong(
        deaths in prop::collection::vec((0..9usize, 0..60_000u64), 0..4),
        stalls in prop::collection::vec((0..9usize, 0..60_000u64, 1..6000u64), 0..4),
        lost in prop::collection::vec(0..2000u64, 0..40),
        duplicated in prop::collection::vec(0..2000u64, 0..40),
        seed: u64,
    ) {
        let deaths = deaths.into_iter().map(|(node, from)| Death { node, from }).collect();
        let stalls = stalls.into_iter();
        let stalls = stalls.map(|(node, from, cycles)| Stall { node, from, cycles }).collect();
        survives(Faults { deaths, stalls, lost, duplicated, links: Vec::new() }, seed);
    }
}
