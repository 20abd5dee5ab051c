//! The most live bytes of any interleaving.
//!
//! What is done at a moment of an interleaving is *closed*: with an event also those before it in its thread and on its
//! block. Every closed set is reached by some interleaving (its events in recorded order, then the rest), and its live
//! bytes are the sum of its events' changes, which do not depend on the order. So the most live bytes are the greatest
//! weight of a closed set, and that is the sum of all positive changes less the least cut of a network (Picard, "Maximal
//! closure of a graph and applications to combinatorial problems", 1976). Any flow through that network, not only the
//! greatest, leaves a bound; so does a network without some of what must come before what. Hence large recordings have a
//! bound, too, which then may be too large, never too small.
//!
//! Events of a thread between two at which it has to do with another are two nodes: up to where they leave most live bytes,
//! and the rest. Whoever does some of the first, and stops before its end, has less live; whoever does some of the second
//! has no more than before it.
//!
//! Invariant: no interleaving has more live bytes than [`Peak::bytes`], and [`Peak::order`] has [`Peak::reached`].

use std::collections::HashMap;

use crate::flow::{ANY, Flow, SINK, SOURCE};
use crate::threads::{NONE, Order, Threads};

/// How much is done for a tight bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most pairs of events of two threads, one of which must come before the other, that are heeded.
    pub pairs: usize,
    /// Edges of the network that are looked at.
    pub work: u64,
}

impl Default for Effort {
    /// Some seconds at most.
    fn default() -> Self {
        Effort {
            pairs: 200_000,
            work: 400_000_000,
        }
    }
}

/// Live bytes over all interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// No interleaving has more.
    pub bytes: u64,
    /// The sum over threads of the most that each has allocated and not freed, at its own worst moment: a bound, too, which
    /// forgets that a block is freed after it was allocated.
    pub of_threads: u64,
    /// What [`order`](Self::order) has at most.
    pub reached: u64,
    /// An interleaving with many live bytes.
    pub order: Order,
}

impl Peak {
    /// Of all interleavings. O(events), and what the effort allows.
    #[must_use]
    pub fn of(threads: &Threads, effort: &Effort) -> Self {
        let of_threads: u64 = threads
            .threads()
            .iter()
            .map(|own| most_of(threads, own))
            .sum();
        let network = Network::of(threads, effort.pairs);
        let (bytes, closed) = network.solve(effort.work);
        let so_far = retracted(threads, &closed);
        let order = first(threads, &so_far);
        let (own, recorded) = (threads.peak_live(&order), threads.recorded());
        let before = threads.peak_live(&recorded);
        let (reached, order) = match own >= before {
            true => (own, order),
            false => (before, recorded),
        };
        Peak {
            bytes: bytes.min(of_threads),
            of_threads,
            reached,
            order,
        }
    }

    /// Whether some interleaving has as much as the bound.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.bytes == self.reached
    }
}

/// Most that a thread has allocated and not freed, blocks of others that it frees taken off.
fn most_of(threads: &Threads, own: &[u32]) -> u64 {
    let mut sum = 0_i64;
    let sums = own.iter().map(|&event| {
        sum += threads.steps()[event as usize].change;
        sum
    });
    sums.max().unwrap_or(0).max(0) as u64
}

/// Some events of a thread, one after the other.
struct Node {
    thread: u32,
    /// How far the thread has come after them.
    end: u32,
    weight: i64,
}

struct Network {
    nodes: Vec<Node>,
    /// Which node needs which.
    needs: Vec<(u32, u32)>,
}

/// An event that needs one of another thread: both by thread and place.
struct Pair {
    needs: (u32, u32),
    needed: (u32, u32),
}

impl Network {
    fn of(threads: &Threads, most_pairs: usize) -> Self {
        let pairs = pairs(threads, most_pairs);
        let mut cuts: Vec<Vec<u32>> = vec![Vec::new(); threads.threads().len()];
        for pair in &pairs {
            cuts[pair.needs.0 as usize].push(pair.needs.1);
            cuts[pair.needed.0 as usize].push(pair.needed.1 + 1);
        }
        let mut network = Network {
            nodes: Vec::new(),
            needs: Vec::new(),
        };
        // The first node of each thread.
        let mut begins = Vec::with_capacity(cuts.len());
        for (thread, (own, cuts)) in threads.threads().iter().zip(&mut cuts).enumerate() {
            begins.push(network.nodes.len());
            cuts.push(own.len() as u32);
            cuts.sort_unstable();
            cuts.dedup();
            let mut start = 0;
            for &end in &*cuts {
                network.segment(threads, thread as u32, start, end);
                start = end;
            }
        }
        for pair in pairs {
            let needs = network.node(&begins, pair.needs);
            let needed = network.node(&begins, pair.needed);
            network.needs.push((needs, needed));
        }
        network
    }

    /// Events of a thread between two cuts, as up to two nodes.
    fn segment(&mut self, threads: &Threads, thread: u32, start: u32, end: u32) {
        if start == end {
            return;
        }
        let own = &threads.threads()[thread as usize][start as usize..end as usize];
        let (mut sum, mut most, mut at) = (0_i64, i64::MIN, start);
        for (place, &event) in (start..).zip(own) {
            sum += threads.steps()[event as usize].change;
            if sum > most {
                (most, at) = (sum, place + 1);
            }
        }
        self.push(thread, at, most);
        if at < end {
            self.push(thread, end, sum - most);
        }
    }

    fn push(&mut self, thread: u32, end: u32, weight: i64) {
        let number = self.nodes.len() as u32;
        if self.nodes.last().is_some_and(|node| node.thread == thread) {
            self.needs.push((number, number - 1));
        }
        self.nodes.push(Node {
            thread,
            end,
            weight,
        });
    }

    /// The node with a thread's event.
    fn node(&self, begins: &[usize], (thread, place): (u32, u32)) -> u32 {
        let begin = begins[thread as usize];
        let own = &self.nodes[begin..];
        let next = begins
            .get(thread as usize + 1)
            .map_or(own.len(), |next| next - begin);
        let within = own[..next].partition_point(|node| node.end <= place);
        (begin + within) as u32
    }

    /// A bound on the weight of closed sets, and how far each thread has come in one that has much.
    fn solve(&self, work: u64) -> (u64, HashMap<u32, u32>) {
        let mut flow = Flow::new(self.nodes.len() + 2);
        let mut positive = 0_u64;
        for (number, node) in (2..).zip(&self.nodes) {
            let weight = node.weight.unsigned_abs();
            match node.weight > 0 {
                true => {
                    positive += weight;
                    flow.edge(SOURCE, number, weight);
                }
                false => flow.edge(number, SINK, weight),
            }
        }
        for &(needs, needed) in &self.needs {
            flow.edge(needs + 2, needed + 2, ANY);
        }
        let (carried, _) = flow.run(work);
        let reached = flow.reached();
        let mut so_far = HashMap::new();
        for (node, _) in self
            .nodes
            .iter()
            .zip(&reached[2..])
            .filter(|(_, reached)| **reached)
        {
            let place = so_far.entry(node.thread).or_insert(0);
            *place = node.end.max(*place);
        }
        (positive - carried, so_far)
    }
}

/// Events that need one of another thread. What another pair says anyway is left out, and of more than so many some are.
fn pairs(threads: &Threads, most: usize) -> Vec<Pair> {
    // How far a thread must have come for what another has done so far.
    let mut needed_so_far: HashMap<(u32, u32), u32> = HashMap::new();
    let mut pairs = Vec::new();
    for own in threads.threads() {
        for &event in own {
            let step = &threads.steps()[event as usize];
            if step.before == NONE {
                continue;
            }
            let before = &threads.steps()[step.before as usize];
            if before.thread == step.thread {
                continue;
            }
            let so_far = needed_so_far
                .entry((step.thread, before.thread))
                .or_insert(0);
            if before.place < *so_far {
                continue;
            }
            *so_far = before.place + 1;
            pairs.push(Pair {
                needs: (step.thread, step.place),
                needed: (before.thread, before.place),
            });
        }
    }
    if pairs.len() > most {
        let every = pairs.len().div_ceil(most.max(1));
        let mut number = 0;
        pairs.retain(|_| {
            number += 1;
            number % every == 0 && most > 0
        });
    }
    pairs
}

/// How far each thread has come at most, if it is to have done what some say, and nothing that needs what is not done: as
/// far as the recorded order, without what is not to be done, comes.
fn retracted(threads: &Threads, closed: &HashMap<u32, u32>) -> Vec<u32> {
    let mut so_far = vec![0; threads.threads().len()];
    for (event, step) in (0..).zip(threads.steps()) {
        let thread = step.thread;
        let wanted = closed.get(&thread).is_some_and(|&end| step.place < end);
        let in_turn = so_far[thread as usize] == step.place;
        if wanted && in_turn && threads.may_follow(event, &so_far) {
            so_far[thread as usize] += 1;
        }
    }
    so_far
}

/// What is done first, as recorded, then the rest.
fn first(threads: &Threads, so_far: &[u32]) -> Order {
    let steps = threads.steps();
    let is_first = |event: &u32| {
        let step = &steps[*event as usize];
        step.place < so_far[step.thread as usize]
    };
    let all = threads.recorded();
    let (mut order, rest): (Order, Order) = all.into_iter().partition(is_first);
    order.extend(rest);
    order
}
