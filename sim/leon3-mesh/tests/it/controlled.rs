//! Nodes whose program is the C of the heap space map (`sim/leon3/images/hsm.c`), and a platform that is a table.
//!
//! *Invariant:* what a request should be given is said by a model that knows no commands.

use std::collections::{BTreeMap, VecDeque};

use metes_leon3::{Bus, Configuration, Core, End, Image, Model, Observer};
use metes_leon3_mesh::{Answer, Astray, Command, Issued, Leon3Node, NOTHING, NoRoom, Place};
use metes_random::Random;
use proptest::prelude::*;

use crate::image::c_image;

const SPACE: u32 = 0x6000_0000;
const SHIFT: u32 = 12;
/// Bytes of each heap.
const HEAP: u32 = 1 << SHIFT;

/// Steps of the image.
mod step {
    pub(super) const END: u32 = 0;

    pub(super) fn compute(instructions: u32) -> [u32; 1] {
        [1 << 24 | instructions]
    }

    pub(super) fn get(block: u32, size: u32) -> [u32; 2] {
        [2 << 24 | block, size]
    }

    pub(super) fn put(block: u32) -> [u32; 1] {
        [3 << 24 | block]
    }

    pub(super) fn pass(node: u32, block: u32) -> [u32; 2] {
        [4 << 24 | node, block]
    }

    pub(super) fn accept(block: u32) -> [u32; 1] {
        [5 << 24 | block]
    }

    pub(super) fn tell(word: u32) -> [u32; 1] {
        [6 << 24 | word]
    }
}

/// A heap that serves the first place that is large enough: blocks by their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Heap(BTreeMap<u32, u32>);

impl Heap {
    fn take(&mut self, size: u32) -> Option<u32> {
        let size = size.next_multiple_of(8);
        let ends = self.0.iter().map(|(offset, size)| offset + size);
        let fits = |offset: &u32| {
            let next = self.0.range(offset..).next();
            offset + size <= next.map_or(HEAP, |(next, _)| *next)
        };
        let offset = [0].into_iter().chain(ends).find(fits)?;
        self.0.insert(offset, size);
        Some(offset)
    }

    fn give(&mut self, offset: u32) {
        self.0.remove(&offset).expect("a block begins here");
    }
}

/// The scheme of the paper, where nobody is in the way.
fn request(heaps: &mut [Heap], node: usize, size: u32) -> u32 {
    let all = heaps.len();
    let mut served = (0..all).map(|further| (node + further) % all);
    served
        .find_map(|node| Some(SPACE + ((node as u32) << SHIFT) + heaps[node].take(size)?))
        .unwrap_or(0)
}

fn place(node: usize, nodes: usize) -> Place {
    Place {
        node: node as u32,
        nodes: nodes as u32,
        space: SPACE,
        shift: SHIFT,
    }
}

fn nodes(image: &Image, programs: &[Vec<u32>]) -> Vec<Leon3Node> {
    let node = |(number, program): (usize, &Vec<u32>)| {
        let mut node = Leon3Node::new(image, place(number, programs.len())).expect("it fits");
        node.set(image, "steps", program).expect("it has room");
        node.set(image, "marked", &[1]).expect("it has the word");
        node
    };
    programs.iter().enumerate().map(node).collect()
}

/// A platform: heaps with locks, words under way.
struct Platform {
    heaps: Vec<Heap>,
    /// Who has the lock of each heap.
    locks: Vec<Option<usize>>,
    words: Vec<VecDeque<u32>>,
    /// Cycles from a command to its answer.
    takes: u64,
    /// Locks that another node had.
    skipped: u64,
}

impl Platform {
    fn new(nodes: usize, takes: u64) -> Platform {
        Platform {
            heaps: vec![Heap::default(); nodes],
            locks: vec![None; nodes],
            words: vec![VecDeque::new(); nodes],
            takes,
            skipped: 0,
        }
    }

    /// Does a command, if it can be done now.
    fn serve(&mut self, from: usize, command: Command) -> Option<u32> {
        let lock = |locks: &mut Vec<Option<usize>>, node: u32| {
            let place = &mut locks[node as usize];
            assert_ne!(*place, Some(from), "a node waits for itself");
            place.is_none().then(|| *place = Some(from))
        };
        Some(match command {
            Command::Lock { node } => lock(&mut self.locks, node).map(|()| 1)?,
            Command::TryLock { node } => {
                let taken = lock(&mut self.locks, node).is_some();
                self.skipped += u64::from(!taken);
                u32::from(taken)
            }
            Command::Unlock { node } => {
                assert_eq!(self.locks[node as usize].take(), Some(from));
                0
            }
            Command::Take { node, size } => {
                assert_eq!(self.locks[node as usize], Some(from));
                self.heaps[node as usize].take(size).unwrap_or(NOTHING)
            }
            Command::Give { node, offset } => {
                self.heaps[node as usize].give(offset);
                0
            }
            Command::Allocate { size } => match request(&mut self.heaps, from, size) {
                0 => NOTHING,
                address => address,
            },
            Command::Free { address } => {
                let within = address - SPACE;
                self.heaps[(within >> SHIFT) as usize].give(within & (HEAP - 1));
                0
            }
            Command::Send { node, word } => {
                self.words[node as usize].push_back(word);
                0
            }
            Command::Receive => self.words[from].pop_front()?,
            Command::Mark { .. } | Command::Done => 0,
        })
    }

    /// Lets all nodes run to their ends, each command in the order of its cycle; all that was issued.
    fn run(&mut self, nodes: &mut [Leon3Node]) -> Vec<(usize, Issued)> {
        let (mut issued, mut now) = (Vec::new(), 0);
        let begin = |(number, node): (usize, &mut Leon3Node)| {
            let first = node.next(Answer::default()).expect("a program");
            (first.cycle, number, first)
        };
        // What each waits for, by the cycle from which it can be done.
        let mut waiting: Vec<_> = nodes.iter_mut().enumerate().map(begin).collect();
        while !waiting.is_empty() {
            waiting.sort_by_key(|(cycle, number, _)| (*cycle, *number));
            let done = (0..waiting.len()).find_map(|index| {
                let (_, number, is) = waiting[index];
                Some((index, self.serve(number, is.command)?))
            });
            let (index, word) = done.expect("all wait for each other");
            let (cycle, number, is) = waiting.remove(index);
            now = now.max(cycle);
            issued.push((number, is));
            if is.command != Command::Done {
                let answer = Answer {
                    word,
                    cycle: now + self.takes,
                };
                let next = nodes[number].next(answer).expect("a program");
                waiting.push((next.cycle, number, next));
            }
        }
        issued
    }
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
fn random_requests(random: &mut Random, count: usize) -> (Vec<u32>, Vec<Result<u32, usize>>) {
    let (mut program, mut plain, mut live) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        program.extend(step::compute(random.below(300) as u32));
        if !live.is_empty() && random.below(5) < 2 {
            let freed = live.swap_remove(random.below(live.len() as u64) as usize);
            program.extend(step::put(freed as u32));
            plain.push(Err(freed));
        } else {
            let size = 1 + random.below(500) as u32;
            program.extend(step::get(number as u32, size));
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
        let mut programs = vec![vec![step::END]; all];
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
    let program = [step::get(0, HEAP), step::get(1, HEAP)].concat();
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
    let master = [
        &step::get(0, 100)[..],
        &step::pass(1, 0),
        &step::accept(1),
        &step::put(1),
    ];
    let slave = [
        &step::accept(0)[..],
        &step::put(0),
        &step::get(0, 200),
        &step::pass(0, 0),
    ];
    let mut platform = Platform::new(2, 20);
    let issued = platform.run(&mut nodes(&image, &[master.concat(), slave.concat()]));
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
    let program = [&step::get(0, 8)[..], &step::put(0), &step::tell(7)].concat();
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
    let program = [
        &step::get(0, HEAP)[..],
        &step::get(1, HEAP),
        &step::get(2, HEAP),
        &step::get(3, HEAP),
        &step::get(4, HEAP),
        &step::put(0),
    ]
    .concat();
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
fn both_engines_and_all_portions_do_the_same() {
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
    assert!(run(|node| node.silent_for(100_000)) == expected);
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
    let unknown = node.set(&image, "nothing", &[1]).expect_err("it has none");
    assert!(matches!(unknown, NoRoom::Unknown { .. }), "{unknown}");
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
