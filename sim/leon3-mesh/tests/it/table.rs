//! A platform that is a table: heaps, locks, words under way; it serves the commands of nodes that are LEON3 code.
//!
//! *Invariant:* a command that is not due to a node (an unlock of what it has not locked, a free where no block begins) ends the
//! test.

use std::collections::{BTreeMap, VecDeque};

use metes_leon3::Image;
use metes_leon3_mesh::{Answer, Command, Issued, Leon3Node, NOTHING, Place, Step, steps};

pub(crate) const SPACE: u32 = 0x6000_0000;
pub(crate) const SHIFT: u32 = 12;
/// Bytes of each heap.
pub(crate) const HEAP: u32 = 1 << SHIFT;

/// A heap that serves the first place that is large enough: blocks by their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heap(pub(crate) BTreeMap<u32, u32>);

impl Heap {
    pub(crate) fn take(&mut self, size: u32) -> Option<u32> {
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

    pub(crate) fn give(&mut self, offset: u32) {
        self.0.remove(&offset).expect("a block begins here");
    }
}

/// The scheme of the paper, where nobody is in the way.
pub(crate) fn request(heaps: &mut [Heap], node: usize, size: u32) -> u32 {
    let all = heaps.len();
    let mut served = (0..all).map(|further| (node + further) % all);
    served
        .find_map(|node| Some(SPACE + ((node as u32) << SHIFT) + heaps[node].take(size)?))
        .unwrap_or(0)
}

/// Where a node is.
pub(crate) fn place(node: usize, nodes: usize) -> Place {
    Place {
        node: node as u32,
        nodes: nodes as u32,
        space: SPACE,
        shift: SHIFT,
    }
}

/// Nodes that do what lists say, each call between two marks.
pub(crate) fn nodes(image: &Image, programs: &[Vec<Step>]) -> Vec<Leon3Node> {
    let node = |(number, program): (usize, &Vec<Step>)| {
        let mut node = Leon3Node::new(image, place(number, programs.len())).expect("it fits");
        let words = steps::words(program);
        node.set(image, "steps", &words).expect("it has room");
        node.set(image, "marked", &[1]).expect("it has the word");
        node
    };
    programs.iter().enumerate().map(node).collect()
}

/// A platform: heaps with locks, words under way.
pub(crate) struct Platform {
    pub(crate) heaps: Vec<Heap>,
    /// Who has the lock of each heap.
    pub(crate) locks: Vec<Option<usize>>,
    words: Vec<VecDeque<u32>>,
    /// Cycles from a command to its answer.
    pub(crate) takes: u64,
    /// Locks that another node had.
    pub(crate) skipped: u64,
}

impl Platform {
    pub(crate) fn new(nodes: usize, takes: u64) -> Platform {
        Platform {
            heaps: vec![Heap::default(); nodes],
            locks: vec![None; nodes],
            words: vec![VecDeque::new(); nodes],
            takes,
            skipped: 0,
        }
    }

    /// Does a command, if it can be done now.
    pub(crate) fn serve(&mut self, from: usize, command: Command) -> Option<u32> {
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
    pub(crate) fn run(&mut self, nodes: &mut [Leon3Node]) -> Vec<(usize, Issued)> {
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
