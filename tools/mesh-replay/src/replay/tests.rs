use std::fmt::Write as _;

use metes_heap::Tlsf;
use metes_random::Random;

use super::*;
use crate::trace::Operation;

/// A random trace of so many operations, and how many bytes are not freed.
fn text(seed: u64, nodes: u64, operations: u64) -> (String, u64) {
    let mut random = Random::new(seed);
    let (mut text, mut in_use, mut sizes) = (String::new(), Vec::new(), Vec::new());
    for _ in 0..operations {
        let node = random.below(nodes);
        if random.below(20) < 11 || in_use.is_empty() {
            let size = random.between(1, 400);
            let _ = writeln!(text, "a,{node},{},{size}", sizes.len());
            in_use.push(sizes.len());
            sizes.push(size);
        } else {
            let block = in_use.swap_remove(random.below(in_use.len() as u64) as usize);
            let _ = writeln!(text, "f,{node},{block}");
        }
    }
    (text, in_use.into_iter().map(|block| sizes[block]).sum())
}

fn run(text: &str, nodes: u32, heap: u64, fabric: FabricKind, kills: &[Kill]) -> Replayed {
    let trace = Trace::read(text.as_bytes(), nodes).expect("a trace");
    let setting = Setting {
        nodes,
        heap,
        fabric,
        kills,
    };
    replay_with(&trace, setting, |_| Tlsf::<8>::new(), |_, _| {}).expect("heaps fit")
}

const AT_ONCE: [FabricKind; 2] = [FabricKind::Threads, FabricKind::Processes];

#[test]
fn all_ways_agree_where_there_is_room() {
    for nodes in [1, 3, 8] {
        let (text, live) = text(nodes, nodes, 20_000);
        for kind in [FabricKind::Sequential].into_iter().chain(AT_ONCE) {
            let replayed = run(&text, nodes as u32, 1 << 20, kind, &[]);
            let Replayed {
                failed,
                spurious,
                live_bytes,
                lost_blocks,
                undone,
                ..
            } = replayed;
            assert_eq!((failed, spurious, live_bytes), (0, 0, live));
            assert_eq!((lost_blocks, undone), (0, 0));
            assert_eq!(replayed.operations, 20_000);
            assert_eq!(replayed.remote, 0);
            assert_eq!(replayed.dead, [0; 0]);
            // A heap serves its own node alone here, so what it holds in the end is decided; the peak is not.
            assert!(replayed.node_peaks.iter().sum::<u64>() >= live);
        }
    }
}

#[test]
fn refusals_are_true_where_heaps_are_full() {
    let (text, live) = text(7, 4, 40_000);
    let heap = live / 8;
    let sequential = run(&text, 4, heap, FabricKind::Sequential, &[]);
    assert!(
        sequential.failed > 100 && sequential.remote > 100,
        "{sequential:?}"
    );
    assert_eq!((sequential.spurious, sequential.lost_blocks), (0, 0));
    assert_eq!(sequential, run(&text, 4, heap, FabricKind::Sequential, &[]));
    for kind in AT_ONCE {
        let replayed = run(&text, 4, heap, kind, &[]);
        assert!(replayed.failed > 100, "{replayed:?}");
        assert_eq!((replayed.spurious, replayed.lost_blocks), (0, 0));
    }
}

/// Operations that are not done and bytes in use at the end, if nobody is refused and a node does its first operations alone;
/// the next one by `half`, which has its effect and nobody hears of it.
fn left_by(trace: &Trace, dies: u32, operations: u64, half: bool) -> (u64, u64) {
    let (mut number, mut undone, mut live) = (0, 0, 0);
    let mut asked = Vec::new();
    for &operation in trace.operations() {
        let dead = operation.node() == dies;
        let told = !dead || number < operations;
        let does = told || half && number == operations;
        number += u64::from(dead);
        let told = match operation {
            Operation::Allocate { size, .. } => {
                asked.push(told);
                live += if does { size } else { 0 };
                told
            }
            Operation::Free { request, .. } => {
                let size = trace.sizes()[request];
                live -= if does && asked[request] { size } else { 0 };
                told && asked[request]
            }
        };
        undone += u64::from(!told);
    }
    (undone, live)
}

#[test]
fn a_node_may_die_anywhere() {
    let (text, _) = text(3, 4, 400);
    let trace = Trace::read(text.as_bytes(), 4).expect("a trace");
    let kills = (0..90).map(|number| Kill {
        node: number % 4,
        operation: u64::from(number * 7 % 80),
        step: u64::from(number / 2 % 30),
    });
    for kill in kills {
        for kind in AT_ONCE {
            let replayed = run(&text, 4, 1 << 16, kind, &[kill]);
            assert_eq!(replayed.dead, [kill.node], "{kill:?}");
            assert_eq!((replayed.failed, replayed.lost_blocks), (0, 0), "{kill:?}");
            let found = (replayed.undone, replayed.live_bytes);
            let mut may = if kill.step == 0 {
                vec![left_by(&trace, kill.node, kill.operation, false)]
            } else {
                // An operation takes a step at least.
                let all = kill.operation..=kill.operation + kill.step;
                let both = all.flat_map(|done| [(done, false), (done, true)]);
                both.map(|(done, half)| left_by(&trace, kill.node, done, half))
                    .collect()
            };
            may.retain(|&may| may == found);
            assert!(!may.is_empty(), "{kill:?} {replayed:?}");
        }
    }
}

/// Killed from outside, wherever they are: two of five, with heaps that are full.
#[test]
fn processes_are_killed_from_outside() {
    let (text, live) = text(11, 5, 60_000);
    let trace = Trace::read(text.as_bytes(), 5).expect("a trace");
    let mut died = 0;
    for time in 0..12 {
        let setting = Setting {
            nodes: 5,
            heap: live / 8,
            fabric: FabricKind::Processes,
            kills: &[],
        };
        let replayed = std::thread::scope(|scope| {
            replay_with(
                &trace,
                setting,
                |_| Tlsf::<8>::new(),
                |node, process| {
                    if node == 1 || node == 3 {
                        scope.spawn(move || {
                            std::thread::sleep(std::time::Duration::from_micros(time * 700));
                            // SAFETY: a process that is not waited for before it has ended; the test ends within less
                            // time than numbers of processes take to come again.
                            unsafe { libc::kill(process as i32, libc::SIGKILL) };
                        });
                    }
                },
            )
        });
        let replayed = replayed.expect("heaps fit");
        assert_eq!(replayed.lost_blocks, 0, "{replayed:?}");
        let others = replayed.dead.iter().all(|node| [1, 3].contains(node));
        assert!(others, "{replayed:?}");
        died += replayed.dead.len();
    }
    assert!(died > 0, "some are killed before they have ended");
}

#[test]
fn what_cannot_be_is_told() {
    let trace = Trace::read(&b"a,0,1,8"[..], 2).expect("a trace");
    let none = |nodes, heap, fabric, kills: &[Kill]| {
        let setting = Setting {
            nodes,
            heap,
            fabric,
            kills,
        };
        replay_with(&trace, setting, |_| Tlsf::<8>::new(), |_, _| {}).err()
    };
    let kill = |node, operation| Kill {
        node,
        operation,
        step: 0,
    };
    let sequential = FabricKind::Sequential;
    for fabric in [sequential, FabricKind::Threads, FabricKind::Processes] {
        let too_small = none(2, 64, fabric, &[]);
        assert!(matches!(
            too_small,
            Some(NotReplayed::NotMade(NotMade::TooSmall { .. }))
        ));
        let empty = none(2, 0, fabric, &[]);
        assert_eq!(empty, Some(NotReplayed::Impossible(Impossible::Empty)));
        let much = none(2, 1 << 62, fabric, &[]);
        assert!(matches!(much, Some(NotReplayed::TooMuch { nodes: 2, .. })));
    }
    for fabric in AT_ONCE {
        let many = none(1025, 1 << 16, fabric, &[]);
        assert_eq!(many, Some(NotReplayed::Threads { nodes: 1025 }));
        for (kills, wrong) in [
            (
                &[kill(2, 0)][..],
                NotReplayed::NoVictim { node: 2, nodes: 2 },
            ),
            (&[kill(1, 0), kill(1, 0)], NotReplayed::Twice { node: 1 }),
            (&[kill(1, 0), kill(0, 1)], NotReplayed::NobodyLives),
            (
                &[kill(0, 2)],
                NotReplayed::Longer {
                    node: 0,
                    operations: 1,
                },
            ),
        ] {
            assert_eq!(none(2, 1 << 16, fabric, kills), Some(wrong));
        }
    }
    let dies = none(2, 1 << 16, sequential, &[kill(0, 0)]);
    assert_eq!(dies, Some(NotReplayed::Immortal));
}
