//! Runs that several tests make.

use metes_heap::{IndexKind, Limits};
use metes_platform::programs::{Storm, storms};
use metes_platform::{Faults, HeapKind, ManagerKind, Parameters, Run, Setup, run};

pub(crate) const TLSF: HeapKind = HeapKind {
    index: IndexKind::Classes {
        second_level: 8,
        probes: 0,
    },
    limits: Limits::NONE,
};

/// A storm of which a quarter of the nodes wants twice what it has.
pub(crate) fn hungry_quarter(heap: u64) -> Storm {
    Storm {
        operations: 400,
        gap: 200,
        sizes: (16, 200),
        hungry: 25,
        much: 2 * heap,
        little: heap / 8,
        passed_on: 20,
        seed: 1,
    }
}

pub(crate) fn setup(side: usize, manager: ManagerKind) -> Setup {
    Setup {
        parameters: Parameters::sized(side, side),
        manager,
        heaps: TLSF,
        faults: Faults::default(),
        limit: 1 << 40,
        every: 1000,
    }
}

/// A run whose programs all end.
pub(crate) fn stormed(setup: &Setup, storm: Storm) -> Run {
    let nodes = setup.parameters.nodes();
    let run = run(setup, storms(storm, nodes)).expect("it can be");
    assert_eq!(run.stuck, Vec::<usize>::new(), "{:?}", setup.manager);
    assert_eq!(run.unsound, Vec::new());
    run
}
