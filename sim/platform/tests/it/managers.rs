//! Each manager under storms: nothing leaks, a run is repeated, and who refuses says the truth or does not.

use metes_platform::ManagerKind;

use crate::setups::{hungry_quarter, setup, stormed};

#[test]
fn nothing_leaks_under_any_manager() {
    for manager in ManagerKind::ALL {
        for side in [1, 2, 4] {
            let setup = setup(side, manager);
            let run = stormed(&setup, hungry_quarter(setup.parameters.heap));
            assert_eq!(run.bad_frees, 0);
            assert_eq!(run.lost(), 0);
            for (node, (audit, live)) in run.audits.iter().zip(&run.live).enumerate() {
                assert_eq!(live.0, 0, "{manager} {side} {node}");
                let parked = audit.parked;
                assert_eq!(audit.blocks, parked, "{manager} {side} {node}");
            }
            let spurious = run.sum(|counts| counts.spurious);
            match manager {
                // Of its own heap alone it asks.
                ManagerKind::CPrivate => assert_eq!(run.sum(|counts| counts.served_away), 0),
                ManagerKind::Metes | ManagerKind::Microcoded => assert_eq!(spurious, 0),
                ManagerKind::CSingle | ManagerKind::Proposed => {}
            }
        }
    }
}

#[test]
fn a_thousand_nodes_share_one_heap() {
    let setup = setup(32, ManagerKind::Metes);
    let mut storm = hungry_quarter(setup.parameters.heap);
    storm.operations = 60;
    let run = stormed(&setup, storm);
    assert!(run.sum(|counts| counts.served_away) > 0);
    assert_eq!(run.sum(|counts| counts.spurious), 0);
    assert_eq!(run.lost(), 0);
}

#[test]
fn a_run_is_repeated_event_for_event() {
    for manager in ManagerKind::ALL {
        let setup = setup(3, manager);
        let once = stormed(&setup, hungry_quarter(setup.parameters.heap));
        let again = stormed(&setup, hungry_quarter(setup.parameters.heap));
        assert_eq!((once.cycles, once.nodes), (again.cycles, again.nodes));
        assert_eq!(once.recording, again.recording);
    }
}
