//! Nodes whose program is the C of the heap space map (`sim/leon3/images/hsm.c`), and a platform that is a table.
//!
//! *Invariant:* what a request should be given is said by a model that knows no commands.

use metes_leon3::devices::{Access, Device};
use metes_leon3::{Bus, Configuration, Core, End, Image, Model, Observer};
use metes_leon3_mesh::{
    Answer, Astray, Command, Controller, Issued, Leon3Node, NoRoom, Step, steps,
};
use metes_random::Random;
use proptest::prelude::*;

use crate::image::c_image;
use crate::table::{HEAP, Heap, Platform, SHIFT, SPACE, nodes, place, request};

fn get(block: u16, size: u32) -> Step {
    Step::Get { block, size }
}

fn put(block: u16) -> Step {
    Step::Put { block }
}

/// What requests were given: the second mark of each.
fn given(issued: &[(usize, Issued)], of: usize) -> Vec<u32> {
    let marks = issued.iter().filter_map(|(node, is)| match is.command {
        Command::Mark { word } if *node == of => Some(word),
        _ => None,
    });
    marks.skip(1).step_by(2).collect()
}

/// A program of random requests, and the same as a plain list: a size, or the number of a request whose block is freed.
fn random_requests(random: &mut Random, count: usize) -> (Vec<Step>, Vec<Result<u32, usize>>) {
    let (mut program, mut plain, mut live) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        program.push(Step::Compute(random.below(300)));
        if !live.is_empty() && random.below(5) < 2 {
            let freed = live.swap_remove(random.below(live.len() as u64) as usize);
            program.push(put(freed as u16));
            plain.push(Err(freed));
        } else {
            let size = 1 + random.below(500) as u32;
            program.push(get(number as u16, size));
            plain.push(Ok(size));
            live.push(number);
        }
    }
    (program, plain)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn requests_of_a_node_are_given_what_the_scheme_says(seed: u64, all in 1..5usize, managed in 0..2u32) {
        let image = c_image("hsm");
        let (program, plain) = random_requests(&mut Random::new(seed), 120);
        let mut programs = vec![Vec::new(); all];
        programs[all / 2] = program;
        let mut nodes = nodes(&image, &programs);
        for node in &mut nodes {
            node.set(&image, "managed", &[managed]).expect("it has the word");
        }
        let mut platform = Platform::new(all, 10);
        let issued = platform.run(&mut nodes);
        let mut heaps = vec![Heap::default(); all];
        let mut expected = Vec::new();
        for step in plain {
            let address = match step {
                Ok(size) => request(&mut heaps, all / 2, size),
                Err(of) => {
                    if let Some(within) = u32::checked_sub(expected[of], SPACE) {
                        heaps[(within >> SHIFT) as usize].give(within & (HEAP - 1));
                    }
                    0
                }
            };
            expected.push(address);
        }
        prop_assert_eq!(given(&issued, all / 2), expected);
        prop_assert_eq!(platform.heaps, heaps);
    }

    #[test]
    fn nodes_that_are_in_each_others_way_lose_nothing(seed: u64, takes in 0..200u64) {
        let image = c_image("hsm");
        let mut random = Random::new(seed);
        let programs: Vec<_> = (0..4).map(|_| random_requests(&mut random, 100).0).collect();
        let mut platform = Platform::new(4, takes);
        let issued = platform.run(&mut nodes(&image, &programs));
        // The table says when a block is given twice, or freed where none is; what is left is what was not freed.
        let takes = issued.iter().filter(|(_, is)| matches!(is.command, Command::Take { .. }));
        prop_assert!(takes.count() >= 4 * 50);
        prop_assert!(platform.locks.iter().all(Option::is_none));
        let freed = issued.iter().filter(|(_, is)| matches!(is.command, Command::Give { .. })).count();
        let served: usize = (0..4).map(|node| given(&issued, node).iter().filter(|address| **address != 0).count()).sum();
        let left: usize = platform.heaps.iter().map(|heap| heap.0.len()).sum();
        prop_assert_eq!(left + freed, served);
        // Again, it is the same to the cycle.
        let again = Platform::new(4, platform.takes).run(&mut nodes(&image, &programs));
        prop_assert!(again == issued);
    }
}

#[test]
fn a_heap_whose_lock_is_taken_is_passed_over() {
    let image = c_image("hsm");
    // Node 0 has filled its own heap, and asks for node 1's while node 2 is at it.
    let program = steps::words(&[get(0, HEAP), get(1, HEAP)]);
    let mut node = Leon3Node::new(&image, place(0, 3)).expect("it fits");
    node.set(&image, "steps", &program).expect("it has room");
    let mut platform = Platform::new(3, 1);
    platform.locks[1] = Some(2);
    let issued = platform.run(&mut [node]);
    let asked: Vec<_> = issued
        .iter()
        .filter_map(|(_, is)| match is.command {
            Command::Lock { node } | Command::TryLock { node } => Some(node),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [0, 0, 1, 2]);
    assert_eq!((platform.skipped, platform.heaps[2].0.len()), (1, 1));
}

#[test]
fn blocks_are_passed_on() {
    let image = c_image("hsm");
    let pass = |to| Step::Pass { to, block: 0 };
    let accept = Step::Accept { block: 0 };
    let master = vec![get(0, 100), pass(1), accept, put(0)];
    let slave = vec![accept, put(0), get(0, 200), pass(0)];
    let mut platform = Platform::new(2, 20);
    let issued = platform.run(&mut nodes(&image, &[master, slave]));
    let freed: Vec<_> = issued
        .iter()
        .filter_map(|(node, is)| match is.command {
            Command::Give { node: of, .. } => Some((*node, of)),
            _ => None,
        })
        .collect();
    assert_eq!(freed, [(1, 0), (0, 1)]);
    assert!(platform.heaps.iter().all(|heap| heap.0.is_empty()));
}

/// A machine waits for an answer that comes late.
#[test]
fn an_answer_carries_time_forward() {
    let image = c_image("hsm");
    let program = vec![get(0, 8), put(0), Step::Tell(7)];
    let cycles = |takes| {
        let mut nodes = nodes(&image, std::slice::from_ref(&program));
        let issued = Platform::new(1, takes).run(&mut nodes);
        issued.iter().map(|(_, is)| is.cycle).collect::<Vec<_>>()
    };
    let (quick, slow) = (cycles(0), cycles(1000));
    let waits: Vec<_> = slow.iter().zip(&quick).map(|(a, b)| a - b).collect();
    // Each comes when the last one is answered, less the cycles for which the core has gone on, whether it reads the answer or
    // not.
    let mut steps: Vec<_> = waits.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // But for the end, before which nothing is asked.
    assert_eq!(steps.pop(), Some(0));
    assert!(
        steps.iter().all(|waits| (950..1000).contains(waits)),
        "{steps:?}"
    );
    // Nobody waits for what is there by then.
    assert_eq!(cycles(1), quick);
}

/// Counts instructions of a function that calls none, and of its calls.
struct Counted {
    begin: u32,
    end: u32,
    counts: Vec<u64>,
    within: bool,
}

impl Counted {
    fn new(image: &Image, name: &str) -> Counted {
        let symbol = image.symbol(name).expect("a function of the image");
        Counted {
            begin: symbol.address,
            end: symbol.address + symbol.size,
            counts: Vec::new(),
            within: false,
        }
    }
}

impl Observer for Counted {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        let within = (self.begin..self.end).contains(&core.pc);
        if within && !self.within {
            // The call and what is in its delay slot.
            self.counts.push(2);
        }
        if within {
            *self.counts.last_mut().expect("it was called") += 1;
        }
        self.within = within;
        false
    }
}

/// Instructions of a request that the own heap serves, of one that the fourth heap serves, and of a free: a source of the
/// platform's parameters. What the compiler makes of it may change; that it is some thirty is what the paper's figures say.
#[test]
fn a_call_takes_some_thirty_instructions() {
    let image = c_image("hsm");
    let gets = (0..5).map(|block| get(block, HEAP));
    let program: Vec<_> = gets.chain([put(0)]).collect();
    let program = steps::words(&program);
    let mut platform = Platform::new(4, 5);
    let mut node = Leon3Node::new(&image, place(0, 4)).expect("it fits");
    node.set(&image, "steps", &program).expect("it has room");
    let mut counted = (Counted::new(&image, "malloc"), Counted::new(&image, "free"));
    let mut answer = Answer::default();
    loop {
        let issued = node.next_observed(answer, &mut counted).expect("a program");
        if issued.command == Command::Done {
            break;
        }
        answer = Answer {
            word: platform
                .serve(0, issued.command)
                .expect("nobody is in the way"),
            cycle: issued.cycle,
        };
    }
    let (requests, frees) = (counted.0.counts, counted.1.counts);
    println!("requests {requests:?}, free {frees:?}");
    assert_eq!((requests.len(), frees.len()), (5, 1));
    assert!((25..50).contains(&requests[0]) && (10..25).contains(&frees[0]));
    // Each further heap takes as long.
    let further = |at: usize| requests[at] - requests[at - 1];
    assert!(further(2) == further(3) && (15..35).contains(&further(3)));
}

#[test]
fn both_engines_do_the_same() {
    let image = c_image("hsm");
    let mut random = Random::new(5);
    let programs: Vec<_> = (0..3)
        .map(|_| random_requests(&mut random, 200).0)
        .collect();
    let run = |prepare: fn(&mut Leon3Node)| {
        let mut nodes = nodes(&image, &programs);
        nodes.iter_mut().for_each(prepare);
        Platform::new(3, 30).run(&mut nodes)
    };
    let expected = run(|_| {});
    assert!(run(|node| node.machine().translate_after(None)) == expected);
    assert!(run(|node| node.machine().translate_after(Some(2))) == expected);
}

#[test]
fn a_controller_goes_on_as_it_was_saved() {
    let mut access = Access::new(7, 0);
    let mut saved = Controller::new(place(1, 2));
    saved.write(0x04, 24, &mut access);
    saved.answer(5, 100);
    saved.write(0x00, 4 << 24, &mut access);
    assert_eq!(access.waits(), 93);
    let mut other = Controller::new(place(0, 2));
    other.restore(&saved.save()).expect("it is one's");
    assert_eq!(other, saved);
    let taken = other.take().expect("a command");
    assert_eq!(taken, (100, Ok(Command::Take { node: 0, size: 24 })));
    assert!(other.restore(&[1]).is_err());
    saved.answer(5, u64::MAX);
    assert!(other.restore(&saved.save()).is_err());
}

#[test]
fn a_program_that_goes_astray_is_told() {
    let place = place(1, 2);
    let run = |words: &[u32]| {
        let image = Image::of_words(0x4000_0000, words);
        let mut node = Leon3Node::new(&image, place).expect("it fits");
        node.silent_for(1000);
        node.next(Answer::default()).expect_err("it goes astray")
    };
    // sethi %hi(CONTROLLER), %g1; st %g1, [%g1]: kind 0x70
    let word = 0x7000_0000;
    let error = run(&[0x031c_0000, 0xc220_4000]);
    assert_eq!(error, Astray::NoCommand { node: 1, word });
    assert!(error.to_string().contains("0x70000000"), "{error}");
    // sethi %hi(CONTROLLER), %g1; sethi %hi(0x01000400), %g2; st %g2, [%g1]: the lock of node 0x400
    let error = run(&[0x031c_0000, 0x0500_4001, 0xc420_4000]);
    let (at, nodes) = (0x400, 2);
    assert_eq!(error, Astray::NoNode { node: 1, at, nodes });
    // ba 0; nop
    let error = run(&[0x1080_0000, 0x0100_0000]);
    assert_eq!(
        error,
        Astray::Silent {
            node: 1,
            most: 1000
        }
    );
    // ta 1
    let error = run(&[0x91d0_2001]);
    assert!(
        matches!(
            error,
            Astray::Ended {
                node: 1,
                end: End::Error { .. }
            }
        ),
        "{error}"
    );

    let image = c_image("hsm");
    let mut node = Leon3Node::new(&image, place).expect("it fits");
    for name in ["no words", "malloc"] {
        let unknown = node.set(&image, name, &[1]).expect_err("it has none");
        assert!(matches!(unknown, NoRoom::Unknown { .. }), "{unknown}");
    }
    let short = node.set(&image, "marked", &[1, 2]).expect_err("it has one");
    assert!(
        short
            .to_string()
            .contains("2 words do not fit into marked, which has 1")
    );
    let small = Configuration {
        memory: 4096,
        model: Model::Flat,
        ..Configuration::default()
    };
    assert!(Leon3Node::with_configuration(&image, place, &small).is_err());
}
