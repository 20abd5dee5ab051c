//! Runs beside the bound: never above it; and how far below.

use metes_platform::{ManagerKind, bound};
use proptest::prelude::*;

use crate::setups::{TLSF, hungry_quarter, setup, stormed};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_request_takes_longer(
        columns in 1..5usize,
        rows in 1..5usize,
        occupancy in 1..4u64,
        hop in 3..6u64,
        gap in 0..300u64,
        much in 1..4u64,
        passed_on in 0..60u64,
        step in 0..5u64,
        seed: u64,
    ) {
        let mut setup = setup(1, ManagerKind::Metes);
        let network = &mut setup.parameters.network;
        (network.columns, network.rows) = (columns, rows);
        (network.occupancy, network.hop) = (occupancy, Some(hop));
        setup.parameters.controller.step = step;
        let bound = bound(&setup.parameters, TLSF, 0).expect("there is one");
        let mut storm = hungry_quarter(setup.parameters.heap);
        storm.gap = gap;
        storm.much *= much;
        storm.passed_on = passed_on;
        storm.seed = seed;
        storm.operations = 150;
        let run = stormed(&setup, storm);
        prop_assert!(run.most_in_flight <= bound.packets);
        for counts in &run.nodes {
            prop_assert!(counts.allocate.max().unwrap_or(0) <= bound.allocate);
            prop_assert!(counts.free.max().unwrap_or(0) <= bound.free);
            prop_assert_eq!(counts.spurious, 0);
        }
    }
}

#[test]
fn what_has_no_bound_is_told() {
    let mut setup = setup(2, ManagerKind::Metes);
    setup.parameters.network.network = metes_noc::Kind::Deflection;
    let error = bound(&setup.parameters, TLSF, 0).unwrap_err().to_string();
    assert!(error.contains("timelines"), "{error}");
    let error = bound(
        &metes_platform::Parameters::default(),
        metes_platform::managers::FIRST_FIT,
        0,
    );
    assert_eq!(error, Err(metes_platform::NoBound::Heaps));
}
