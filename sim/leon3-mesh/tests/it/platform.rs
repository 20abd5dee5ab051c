//! LEON3 code as programs of the many-core platform: it is given what the cost model is given, and ends as that does.
//!
//! *Invariant:* where addresses are compared nodes take turns, so that they do not depend on what anything takes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use metes_heap::{IndexKind, Limits};
use metes_leon3::Image;
use metes_leon3_mesh::{Managed, NoProgram, Seen, Step, leon3_programs, steps};
use metes_platform::{
    Action, Faults, HeapKind, ManagerKind, Outcome, Parameters, Program, Run, Setup, run,
};
use metes_random::Random;

use crate::image::c_image;

fn setup(side: usize, heap: u64, manager: ManagerKind) -> Setup {
    let mut parameters = Parameters::sized(side, side);
    parameters.heap = heap;
    Setup {
        parameters,
        manager,
        heaps: HeapKind {
            index: IndexKind::Classes {
                second_level: 8,
                probes: 0,
            },
            limits: Limits::NONE,
        },
        faults: Faults::default(),
        limit: 1 << 40,
        every: 0,
    }
}

/// Runs lists of steps; what came of it, and what was seen.
fn simulated(setup: &Setup, image: &Image, lists: &[Vec<Step>], managed: Managed) -> (Run, Seen) {
    let made = leon3_programs(image, &setup.parameters, lists, managed);
    let (programs, seen) = made.expect("it fits");
    let run = run(setup, programs).expect("it can be");
    let seen = seen.borrow().clone();
    assert_eq!(seen.astray, []);
    assert_eq!((&run.stuck, run.bad_frees), (&Vec::new(), 0));
    (run, seen)
}

/// What each node's calls were given: an address, or 0.
fn given(seen: &Seen, nodes: usize) -> Vec<Vec<u64>> {
    let of = |node| {
        let marks = seen.marks.iter().filter(|(of, ..)| *of == node);
        marks.skip(1).step_by(2).map(|mark| mark.2.into()).collect()
    };
    (0..nodes).map(of).collect()
}

/// A turn of a node: requests and frees, by numbers of blocks.
type Turn = Vec<(u16, Option<u32>)>;

/// Instructions before each call, so long that a free that nobody waits for has arrived.
const GAP: u64 = 3000;

/// Turns of all nodes, one after the other and around; blocks of a node are its own, but for those of `passed_on`.
fn turns(random: &mut Random, nodes: usize, rounds: usize, most: u64) -> Vec<Vec<Turn>> {
    let mut live = vec![Vec::new(); nodes];
    let mut all = vec![Vec::new(); nodes];
    for _ in 0..rounds {
        for node in 0..nodes {
            let mut turn = Turn::new();
            for _ in 0..4 {
                let live: &mut Vec<u16> = &mut live[node];
                if live.len() > 60 || !live.is_empty() && random.below(10) < 3 {
                    let at = random.below(live.len() as u64) as usize;
                    turn.push((live.swap_remove(at), None));
                } else {
                    let unused = (0..64).find(|block| !live.contains(block));
                    let block = unused.expect("there are 64");
                    live.push(block);
                    turn.push((block, Some(random.between(1, most) as u32)));
                }
            }
            all[node].push(turn);
        }
    }
    all
}

/// The same turns as lists of steps. Whose turn it is has the word, which is no block.
fn lists(all: &[Vec<Turn>]) -> Vec<Vec<Step>> {
    let word = 64;
    let nodes = all.len();
    let list = |(node, turns): (usize, &Vec<Turn>)| {
        let mut list = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            if nodes > 1 && (node, number) != (0, 0) {
                list.push(Step::Accept { block: word });
            }
            for (block, size) in turn {
                let block = *block;
                list.push(Step::Compute(GAP));
                list.push(match *size {
                    Some(size) => Step::Get { block, size },
                    None => Step::Put { block },
                });
            }
            let to = ((node + 1) % nodes) as u16;
            let is_last = (node + 1, number + 1) == (nodes, turns.len());
            if nodes > 1 && !is_last {
                list.push(Step::Compute(GAP));
                list.push(Step::Pass { to, block: word });
            }
        }
        list
    };
    all.iter().enumerate().map(list).collect()
}

/// The same steps by the cost model.
struct Modelled {
    steps: VecDeque<Step>,
    blocks: Vec<Option<(u64, u64)>>,
    asked: Option<(u16, u64)>,
    given: Rc<RefCell<Vec<u64>>>,
}

impl Program for Modelled {
    fn next(&mut self, outcome: Outcome, _cycle: u64) -> Action {
        if let Some((block, size)) = self.asked.take() {
            let address = match outcome {
                Outcome::Block(address) => Some(address),
                _ => None,
            };
            self.given.borrow_mut().push(address.unwrap_or(0));
            self.blocks[usize::from(block)] = address.map(|address| (address, size));
        }
        while let Some(step) = self.steps.pop_front() {
            return match step {
                Step::Compute(instructions) => Action::Compute(instructions),
                Step::Get { block, size } => {
                    self.asked = Some((block, size.into()));
                    Action::Allocate { size: size.into() }
                }
                Step::Put { block } => {
                    self.given.borrow_mut().push(0);
                    match self.blocks[usize::from(block)].take() {
                        Some((address, size)) => Action::Free { address, size },
                        None => continue,
                    }
                }
                Step::Pass { to, .. } => Action::Send {
                    to: to.into(),
                    words: vec![0],
                },
                Step::Accept { .. } => Action::Receive,
                Step::Tell(_) => continue,
            };
        }
        Action::End
    }
}

fn modelled(setup: &Setup, lists: &[Vec<Step>]) -> (Run, Vec<Vec<u64>>) {
    let given: Vec<_> = lists.iter().map(|_| Rc::default()).collect();
    let program = |(list, given): (&Vec<Step>, &Rc<RefCell<Vec<u64>>>)| -> Box<dyn Program> {
        Box::new(Modelled {
            steps: list.iter().copied().collect(),
            blocks: vec![None; 65],
            asked: None,
            given: Rc::clone(given),
        })
    };
    let programs = lists.iter().zip(&given).map(program).collect();
    let run = run(setup, programs).expect("it can be");
    assert_eq!((&run.stuck, run.bad_frees), (&Vec::new(), 0));
    let given = given.iter().map(|given| given.borrow().clone()).collect();
    (run, given)
}

#[test]
fn code_is_given_what_the_cost_model_is_given() {
    let image = c_image("hsm");
    let cases = [
        (ManagerKind::Proposed, Managed::ByCode),
        (ManagerKind::Proposed, Managed::ByPlatform),
        (ManagerKind::Microcoded, Managed::ByPlatform),
        (ManagerKind::CSingle, Managed::ByPlatform),
        (ManagerKind::Metes, Managed::ByPlatform),
    ];
    for (seed, side) in [(1, 1), (2, 2), (3, 3)] {
        let mut random = Random::new(seed);
        let lists = lists(&turns(&mut random, side * side, 60, 300));
        for (manager, managed) in cases {
            let setup = setup(side, 4096, manager);
            let (modelled, expected) = modelled(&setup, &lists);
            let (run, seen) = simulated(&setup, &image, &lists, managed);
            let name = format!("{side}x{side} {manager} {managed:?}");
            assert_eq!(given(&seen, side * side), expected, "{name}");
            assert_eq!(run.audits, modelled.audits, "{name}");
            assert_eq!(run.live, modelled.live, "{name}");
            // Some were refused, and, where there are others, some were served there.
            let all: Vec<_> = expected.iter().flatten().collect();
            assert!(all.iter().any(|address| **address == 0), "{name}");
            assert_ne!(run.cycles, modelled.cycles, "{name}");
            let away = run.sum(|counts| counts.served_away);
            assert!(
                side == 1 || manager == ManagerKind::CSingle || away > 0,
                "{name}"
            );
            assert_eq!(away, modelled.sum(|counts| counts.served_away), "{name}");
        }
    }
}

#[test]
fn a_master_and_63_slaves_run_on_simulated_cores() {
    let image = c_image("hsm");
    let picture = metes_kernels::Picture::generated(128, 128, 1);
    let workload = metes_kernels::record_named("gaussian", &picture);
    let workload = workload.expect("whole tiles").expect("a kernel");
    let lists = steps::master_and_slaves(&workload, 64, workload.tasks.len());
    for (manager, managed) in [
        (ManagerKind::Proposed, Managed::ByCode),
        (ManagerKind::Proposed, Managed::ByPlatform),
        (ManagerKind::Metes, Managed::ByPlatform),
    ] {
        let setup = setup(8, 16384, manager);
        let (run, seen) = simulated(&setup, &image, &lists, managed);
        let calls = seen.marks.len() as u64 / 2;
        let requests = workload.allocations();
        assert_eq!(calls, 2 * requests);
        let served = run.sum(|counts| counts.served_at_home + counts.served_away);
        assert_eq!(served, requests);
        assert!(run.live.iter().all(|(left, _)| *left == 0), "{manager}");
        assert!(seen.instructions.iter().sum::<u64>() > 1_000_000);
        // The same again, cycle for cycle.
        let (again, seen_again) = simulated(&setup, &image, &lists, managed);
        assert_eq!(again.cycles, run.cycles);
        assert_eq!(seen_again, seen);
    }
}

/// What the program itself does between its marks is little beside what a call takes.
#[test]
fn an_empty_call_is_refused_and_short() {
    let image = c_image("hsm");
    let lists = lists(&turns(&mut Random::new(4), 4, 20, 300));
    let setup = setup(2, 4096, ManagerKind::Proposed);
    let (run, seen) = simulated(&setup, &image, &lists, Managed::ByNobody);
    assert!(
        given(&seen, 4)
            .iter()
            .flatten()
            .all(|address| *address == 0)
    );
    assert_eq!(
        run.sum(|counts| counts.served_at_home + counts.served_away),
        0
    );
    let (_, by_code) = simulated(&setup, &image, &lists, Managed::ByCode);
    let empty = seen.cycles_a_call().expect("there were calls");
    assert!((10.0..40.0).contains(&empty), "{empty}");
    assert!(by_code.cycles_a_call() > Some(2.0 * empty));
}

#[test]
fn what_does_not_fit_is_told() {
    let image = c_image("hsm");
    let parameters = Parameters::sized(1, 1);
    let refused = |parameters: &Parameters, lists: &[Vec<Step>]| {
        let made = leon3_programs(&image, parameters, lists, Managed::ByPlatform);
        made.map(|_| ()).expect_err("it does not fit")
    };
    let long = vec![Step::Tell(1); steps::WORDS];
    let error = refused(&parameters, &[long]);
    assert!(matches!(error, NoProgram::Words(_)), "{error}");
    let mut wide = Parameters::sized(16, 16);
    wide.heap = 256 << 20;
    let error = refused(&wide, &[vec![]]);
    assert!(matches!(error, NoProgram::Wide { .. }), "{error}");
    assert!(error.to_string().contains("make them smaller"), "{error}");
}
