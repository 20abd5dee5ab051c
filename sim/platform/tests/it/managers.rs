//! Each manager under storms: nothing leaks, a run is repeated, and who refuses says the truth or does not.

use metes_platform::ManagerKind;

use crate::setups::{hungry_quarter, setup, stormed};

#[test]
fn nothing_leaks_under_any_manager() {
    for manager in ManagerKind::ALL {
        for side in [1, 2, 4] {
            let setup = setup(side, manager);
            let run = stormed(&setup, hungry_quarter(setup.parameters.heap));
            eprintln!(
                "{manager:>10} {side}x{side}: {:>8} cycles, {:>7.1} an event, home {} away {} refused {} spurious {} skips {} \
                 lock {:.2} comm {} longest {:?} bad {}",
                run.cycles,
                run.cycles_an_event().unwrap_or(0.0),
                run.sum(|c| c.served_at_home),
                run.sum(|c| c.served_away),
                run.sum(|c| c.refused),
                run.sum(|c| c.spurious),
                run.sum(|c| c.skips),
                run.lock_share(),
                run.communication(),
                run.nodes.iter().filter_map(|c| c.allocate.max()).max(),
                run.bad_frees,
            );
            assert_eq!(run.bad_frees, 0);
            assert_eq!(run.lost(), 0);
            for (node, (audit, live)) in run.audits.iter().zip(&run.live).enumerate() {
                assert_eq!(live.0, 0, "{manager} {side} {node}");
                let parked = audit.parked;
                assert_eq!(audit.blocks, parked, "{manager} {side} {node}");
            }
        }
    }
}
