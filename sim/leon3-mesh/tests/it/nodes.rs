//! What is left of a run is the same, whoever was quicker; a run is the same again to the cycle.
//!
//! *Invariant:* nothing is compared with a figure of an earlier build: heaps are compared with each other, runs with runs.

use std::collections::BTreeSet;

use metes_leon3::{End, Machine, Model, Stop};
use metes_leon3_mesh::memory::attach_to;

use crate::image::{Ran, Setting, machine, run, settings};

const SETTING: Setting = Setting {
    cores: 4,
    mesh: false,
    model: Model::Flat,
    quantum: 64,
    rounds: 150,
};

fn passed(setting: Setting) -> Ran {
    let ran = run(machine(setting));
    assert_eq!(
        ran.stop,
        Stop::End(End::Halt { core: 0 }),
        "{setting:?}: {:?}",
        ran.state
    );
    assert_eq!(ran.state.len(), setting.cores + 1, "{setting:?}");
    assert!(
        ran.state[setting.cores].ends_with("wrong 0"),
        "{setting:?}: {:?}",
        ran.state
    );
    ran
}

/// The numbers of the line of the way there: local, remote, refused, parked.
fn way(ran: &Ran) -> Vec<u64> {
    ran.way
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[test]
fn what_is_left_does_not_depend_on_the_machine() {
    let mut ways = BTreeSet::new();
    for cores in [1, 4, 16] {
        let expected = passed(Setting { cores, ..SETTING });
        let runs = [
            Setting {
                quantum: 1,
                ..SETTING
            },
            Setting {
                quantum: 1000,
                ..SETTING
            },
            Setting {
                model: Model::Uniform,
                ..SETTING
            },
            Setting {
                model: Model::Caches,
                ..SETTING
            },
            Setting {
                mesh: true,
                ..SETTING
            },
            Setting {
                mesh: true,
                quantum: 7,
                ..SETTING
            },
        ];
        for setting in runs {
            let ran = passed(Setting { cores, ..setting });
            assert_eq!(ran.state, expected.state, "{cores}, {setting:?}");
            ways.insert(ran.way.clone());
        }
    }
    // Else there was nothing that it might have depended on.
    assert!(ways.len() > 8, "{ways:?}");
}

#[test]
fn heaps_of_a_number_are_the_same_among_however_many() {
    let largest = passed(Setting {
        cores: 64,
        mesh: true,
        rounds: 60,
        ..SETTING
    });
    for cores in [1, 4, 16] {
        let ran = passed(Setting { cores, ..SETTING });
        assert_eq!(ran.state[..cores], largest.state[..cores]);
    }
    // What is kept differs from heap to heap; all that are empty are one free block.
    let words = |number: usize| {
        largest.state[..64].iter().map(move |line| {
            line.split(' ')
                .nth(number)
                .expect("heap N kept WORD freed WORD")
        })
    };
    assert_eq!(words(3).collect::<BTreeSet<_>>().len(), 64);
    assert_eq!(words(5).collect::<BTreeSet<_>>().len(), 1);
    assert!(
        way(&largest)[1] > 0 && way(&largest)[3] > 0,
        "{}",
        largest.way
    );
}

#[test]
fn nodes_reach_each_other() {
    for mesh in [false, true] {
        let ran = passed(Setting {
            mesh,
            rounds: 600,
            ..SETTING
        });
        let [local, remote, _, parked] = way(&ran)[..] else {
            panic!("{}", ran.way);
        };
        assert!(local > 500 && remote > 0 && parked > 50, "{}", ran.way);
    }
    // A node alone is refused where others would have been asked.
    let alone = passed(Setting {
        cores: 1,
        rounds: 600,
        ..SETTING
    });
    assert!(way(&alone)[1] == 0 && way(&alone)[2] > 0, "{}", alone.way);
}

#[test]
fn a_run_is_the_same_again() {
    for quantum in [1, 64, 333] {
        for cores in [3, 9] {
            let setting = Setting {
                cores,
                quantum,
                mesh: true,
                ..SETTING
            };
            assert_eq!(passed(setting), passed(setting));
        }
    }
}

#[test]
fn a_resumed_run_goes_on_as_before() {
    let taken = |machine: &Machine| {
        let mut bytes = Vec::new();
        machine
            .snapshot(&mut bytes)
            .expect("there is room in a vector");
        bytes
    };
    for cores in [1, 9] {
        let setting = Setting {
            cores,
            mesh: true,
            ..SETTING
        };
        let all = passed(setting);
        let mut whole = machine(setting);
        whole.run(all.instructions / 3, &mut ());
        let bytes = taken(&whole);
        let mut resumed = Machine::resume_with(bytes.as_slice(), |_, bus| {
            attach_to(bus, cores, &settings(cores)).expect("it fits");
        })
        .expect("it is whole");
        assert!(taken(&resumed) == bytes, "a copy of a copy");
        for machine in [&mut whole, &mut resumed] {
            assert_eq!(machine.run(all.instructions / 3, &mut ()), Stop::Limit);
        }
        assert!(
            taken(&resumed) == taken(&whole),
            "ways and memories included"
        );
        assert_eq!(run(resumed), all);
    }
}

/// The figures of `docs/benchmarks.md` are of such runs: 64 nodes, by either engine, twice.
#[test]
fn sixty_four_nodes_do_the_same_again_by_either_engine() {
    let setting = Setting {
        mesh: true,
        cores: 64,
        rounds: 100,
        ..SETTING
    };
    let engine = |executions| {
        let mut machine = machine(setting);
        machine.translate_after(executions);
        run(machine)
    };
    let expected = passed(setting);
    assert!(expected.instructions > 5_000_000, "{expected:?}");
    for executions in [None, Some(20), None] {
        assert_eq!(engine(executions), expected);
    }
}

#[test]
fn a_word_that_another_writes_is_found() {
    let good = passed(SETTING);
    let mut machine = machine(SETTING);
    let stop = machine.run(good.instructions / 2, &mut ());
    assert_eq!(stop, Stop::Limit);
    // A block that was filled in: a seed, a number of words, what follows from the seed.
    let shared = 0x0080_0000;
    let ram: Vec<u32> = machine.bus.ram()[shared..shared + (8 << 10)]
        .chunks_exact(4)
        .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("4 bytes")))
        .collect();
    let block = ram
        .windows(3)
        .position(|words| (3..80).contains(&words[1]) && words[2] == words[0].rotate_left(2) ^ 2);
    let address = 0x4000_0000 + shared as u32 + 4 * (block.expect("a keeper") as u32 + 2);
    let word = machine.bus.word(address).expect("RAM") ^ 1;
    machine
        .bus
        .write_image(address, &word.to_be_bytes())
        .expect("RAM");
    let bad = run(machine);
    assert!(
        matches!(bad.stop, Stop::End(End::Error { core: 0, .. })),
        "{:?}",
        bad.stop
    );
    let last = bad.state.last().expect("a line");
    assert!(!last.ends_with("wrong 0"), "{last}");
}
