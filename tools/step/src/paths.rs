//! The longest paths through a graph of code, whatever machine the code is for, and what is known of functions.
//!
//! Nodes are places in the code, edges what is done from one place to the next, with its weight: several counts, each
//! of which is made as large as some path makes it, by itself. Loops are taken apart from the outermost inwards: each
//! is a strongly connected part of what is left when the edges to the heads of those around it are gone.
//!
//! Invariant: no walk from the entry to a return weighs more than the longest path in any count, as long as it reaches
//! the head of each loop no more often than was said. Places from which nothing returns are left out.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// In how many ways a function returns: where the call says, or behind a word there that is no instruction.
pub(crate) const RETURNS: usize = 2;

/// Counts of something, side by side.
pub(crate) type Weight<const N: usize> = [u64; N];

/// For each way to return the longest path to it, if there is one.
pub(crate) type Longest<const N: usize> = [Option<Weight<N>>; RETURNS];

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To<P> {
    Place(P),
    Return(usize),
}

/// What is done from a place to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge<P, const N: usize> {
    pub(crate) to: To<P>,
    pub(crate) weight: Weight<N>,
}

/// Code: each place with the edges from it.
pub(crate) type Graph<P, const N: usize> = BTreeMap<P, Vec<Edge<P, N>>>;

/// Why there is no longest path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knot<P> {
    /// A loop with this head, of which nothing is said.
    Loop(P),
    /// A loop that is entered here, and at another place too.
    Entries(P),
}

pub(crate) fn plus<const N: usize>(a: &Weight<N>, b: &Weight<N>) -> Weight<N> {
    std::array::from_fn(|index| a[index].saturating_add(b[index]))
}

fn times<const N: usize>(weight: &Weight<N>, factor: u64) -> Weight<N> {
    weight.map(|count| count.saturating_mul(factor))
}

/// Makes `into` at least `weight`, count by count.
fn raise<const N: usize>(into: &mut Option<Weight<N>>, weight: &Weight<N>) {
    *into = Some(match into {
        Some(before) => std::array::from_fn(|index| before[index].max(weight[index])),
        None => *weight,
    });
}

/// The longest paths from `entry` to returns. `iterations` says how often the head of a loop is reached, at most, each
/// time that the loop is entered.
pub(crate) fn longest<P: Copy + Ord, const N: usize>(
    graph: &Graph<P, N>,
    entry: P,
    iterations: &dyn Fn(P) -> Option<u64>,
) -> Result<Longest<N>, Knot<P>> {
    let mut paths = Paths::new(graph, iterations);
    match graph.keys().position(|place| *place == entry) {
        Some(entry) if paths.back[entry] => paths.from(entry),
        _ => Ok([None; RETURNS]),
    }
}

struct Paths<'a, P, const N: usize> {
    places: Vec<P>,
    /// By place; those alone from which something returns.
    edges: Vec<Vec<(usize, Weight<N>)>>,
    returns: Vec<Vec<(usize, Weight<N>)>>,
    /// From which places something returns.
    back: Vec<bool>,
    /// The longest path to each place from the head of the loop under way.
    distance: Vec<Option<Weight<N>>>,
    /// The innermost loop that each place is known to lie in.
    region: Vec<usize>,
    regions: usize,
    iterations: &'a dyn Fn(P) -> Option<u64>,
}

impl<'a, P: Copy + Ord, const N: usize> Paths<'a, P, N> {
    fn new(graph: &Graph<P, N>, iterations: &'a dyn Fn(P) -> Option<u64>) -> Self {
        let places: Vec<P> = graph.keys().copied().collect();
        let number = |place: &P| places.binary_search(place).ok();
        let mut edges = vec![Vec::new(); places.len()];
        let mut returns = vec![Vec::new(); places.len()];
        for (from, all) in graph.values().enumerate() {
            for edge in all {
                match &edge.to {
                    To::Return(way) => returns[from].push((*way, edge.weight)),
                    To::Place(place) => {
                        edges[from].extend(number(place).map(|to| (to, edge.weight)));
                    }
                }
            }
        }
        let back = returning(&edges, &returns);
        for all in &mut edges {
            all.retain(|&(to, _)| back[to]);
        }
        Paths {
            distance: vec![None; places.len()],
            region: vec![0; places.len()],
            regions: 0,
            places,
            edges,
            returns,
            back,
            iterations,
        }
    }

    fn from(&mut self, entry: usize) -> Result<Longest<N>, Knot<P>> {
        self.distance[entry] = Some([0; N]);
        self.through((0..self.places.len()).collect(), entry, None)?;
        let mut longest = [None; RETURNS];
        for (distance, returns) in self.distance.iter().zip(&self.returns) {
            for (way, weight) in returns {
                if let Some(distance) = distance {
                    raise(&mut longest[*way], &plus(distance, weight));
                }
            }
        }
        Ok(longest)
    }

    /// Distances of `nodes`, which are entered at `start` alone; with `head` that is the head of a loop, and paths do not
    /// come back to it.
    fn through(
        &mut self,
        nodes: Vec<usize>,
        start: usize,
        head: Option<usize>,
    ) -> Result<(), Knot<P>> {
        self.regions += 1;
        let region = self.regions;
        for node in nodes {
            self.region[node] = region;
        }
        for component in self.components(start, region, head) {
            let first = component[0];
            let loops = self.edges[first].iter().any(|edge| edge.0 == first);
            if component.len() > 1 || loops && head != Some(first) {
                self.round(&component)?;
            }
            self.relax(&component, region, head);
        }
        Ok(())
    }

    /// Hands the distances of `component` on to what follows it in `region`.
    fn relax(&mut self, component: &[usize], region: usize, head: Option<usize>) {
        for &from in component {
            let Some(distance) = self.distance[from] else {
                continue;
            };
            for &(to, weight) in &self.edges[from] {
                // A loop's own places have been given the numbers of inner regions.
                if self.region[to] == region && Some(to) != head {
                    raise(&mut self.distance[to], &plus(&distance, &weight));
                }
            }
        }
    }

    /// Distances in a loop: that of its head is known.
    fn round(&mut self, component: &[usize]) -> Result<(), Knot<P>> {
        let entered = |node: &&usize| self.distance[**node].is_some();
        let mut heads = component.iter().filter(entered).copied();
        let Some(head) = heads.next() else {
            return Ok(());
        };
        if let Some(other) = heads.next() {
            return Err(Knot::Entries(self.places[head.max(other)]));
        }
        let place = self.places[head];
        let most = (self.iterations)(place).ok_or(Knot::Loop(place))?;
        let before = self.distance[head].replace([0; N]).unwrap_or([0; N]);
        self.through(component.to_vec(), head, Some(head))?;
        let mut once = None;
        for &node in component {
            for (to, weight) in &self.edges[node] {
                if let Some(distance) = self.distance[node].filter(|_| *to == head) {
                    raise(&mut once, &plus(&distance, weight));
                }
            }
        }
        let again = times(&once.unwrap_or([0; N]), most.saturating_sub(1));
        let base = plus(&before, &again);
        for &node in component {
            if let Some(distance) = &mut self.distance[node] {
                *distance = plus(&base, distance);
            }
        }
        Ok(())
    }

    /// Strongly connected parts of `region` that are reached from `start`, without the edges to `head`, each before those
    /// that it leads to (Tarjan 1972, on a stack of its own).
    fn components(&self, start: usize, region: usize, head: Option<usize>) -> Vec<Vec<usize>> {
        const NONE: usize = usize::MAX;
        let mut order = HashMap::new();
        let mut low: HashMap<usize, usize> = HashMap::new();
        let (mut open, mut found) = (Vec::new(), Vec::new());
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.pop() {
            if next == 0 {
                let number = order.len();
                order.insert(node, number);
                low.insert(node, number);
                open.push(node);
            }
            let edge = self.edges[node].get(next).map(|edge| edge.0);
            if let Some(to) = edge {
                stack.push((node, next + 1));
                if self.region[to] != region || Some(to) == head {
                    continue;
                }
                match order.get(&to) {
                    None => stack.push((to, 0)),
                    Some(&number) => {
                        // What is no longer open has been given the highest number.
                        let number = if low[&to] == NONE { NONE } else { number };
                        let mine = low[&node].min(number);
                        low.insert(node, mine);
                    }
                }
                continue;
            }
            let mine = low[&node];
            if mine == order[&node] {
                let begin = open.iter().rposition(|&other| other == node);
                let component = open.split_off(begin.unwrap_or(0));
                for &member in &component {
                    low.insert(member, NONE);
                }
                found.push(component);
            }
            if let Some((parent, _)) = stack.last() {
                let least = low[parent].min(mine);
                low.insert(*parent, least);
            }
        }
        found.reverse();
        found
    }
}

/// From which nodes a return is reached.
fn returning<const N: usize>(
    edges: &[Vec<(usize, Weight<N>)>],
    returns: &[Vec<(usize, Weight<N>)>],
) -> Vec<bool> {
    let mut into = vec![Vec::new(); edges.len()];
    for (from, all) in edges.iter().enumerate() {
        for (to, _) in all {
            into[*to].push(from);
        }
    }
    let mut back: Vec<bool> = returns.iter().map(|returns| !returns.is_empty()).collect();
    let mut work: Vec<usize> = (0..back.len()).filter(|&node| back[node]).collect();
    while let Some(node) = work.pop() {
        for &from in &into[node] {
            if !std::mem::replace(&mut back[from], true) {
                work.push(from);
            }
        }
    }
    back
}

/// What is known of functions: of one that is being looked at, that it is.
pub(crate) struct Functions<P, S> {
    known: HashMap<P, Option<S>>,
}

/// What is known of a function.
pub(crate) enum Known<S> {
    /// Nothing so far; from now on it is being looked at.
    New,
    /// It is being looked at: who meets it again goes round.
    Open,
    Done(S),
}

impl<P, S> Default for Functions<P, S> {
    fn default() -> Self {
        Functions {
            known: HashMap::new(),
        }
    }
}

impl<P: Copy + Eq + Hash, S: Clone> Functions<P, S> {
    pub(crate) fn open(&mut self, function: P) -> Known<S> {
        match self.known.get(&function) {
            Some(Some(summary)) => return Known::Done(summary.clone()),
            Some(None) => return Known::Open,
            None => {}
        }
        self.known.insert(function, None);
        Known::New
    }

    pub(crate) fn close(&mut self, function: P, summary: S) {
        self.known.insert(function, Some(summary));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges as (from, to, weight); 99 returns.
    fn graph(edges: &[(u8, u8, u64)]) -> Graph<u8, 1> {
        let mut graph = Graph::new();
        for &(from, to, weight) in edges {
            let to = match to {
                99 => To::Return(0),
                to => To::Place(to),
            };
            let edge = Edge {
                to,
                weight: [weight],
            };
            graph.entry(from).or_insert_with(Vec::new).push(edge);
        }
        graph
    }

    fn length(edges: &[(u8, u8, u64)], loops: &[(u8, u64)]) -> Result<Option<u64>, Knot<u8>> {
        let of = |head| loops.iter().find(|other| other.0 == head).map(|it| it.1);
        longest(&graph(edges), 0, &of).map(|it| it[0].map(|[length]| length))
    }

    #[test]
    fn the_longer_way_counts() {
        let edges = [
            (0, 1, 1),
            (0, 2, 5),
            (1, 3, 10),
            (2, 3, 1),
            (3, 99, 1),
            (2, 99, 3),
        ];
        assert_eq!(length(&edges, &[]), Ok(Some(12)));
    }

    #[test]
    fn what_does_not_return_is_left_out_with_its_loops() {
        let edges = [(0, 1, 1), (1, 1, 7), (0, 2, 1), (2, 99, 1)];
        assert_eq!(length(&edges, &[]), Ok(Some(2)));
        assert_eq!(length(&[(0, 0, 1)], &[]), Ok(None));
    }

    #[test]
    fn a_loop_counts_as_often_as_its_head_is_reached() {
        let one = [(0, 1, 1), (1, 1, 10), (1, 99, 2)];
        assert_eq!(length(&one, &[]), Err(Knot::Loop(1)));
        assert_eq!(length(&one, &[(1, 1)]), Ok(Some(3)));
        assert_eq!(length(&one, &[(1, 4)]), Ok(Some(1 + 3 * 10 + 2)));
        // The exit behind the middle of the body.
        let middle = [(0, 1, 1), (1, 2, 3), (2, 1, 4), (2, 99, 5)];
        assert_eq!(length(&middle, &[(1, 3)]), Ok(Some(1 + 2 * 7 + 3 + 5)));
        // The entry itself is a head.
        assert_eq!(
            length(&[(0, 0, 2), (0, 99, 1)], &[(0, 5)]),
            Ok(Some(4 * 2 + 1))
        );
    }

    #[test]
    fn inner_loops_count_for_each_round_of_outer_ones() {
        // 1 outer head, 2 inner head, 3 latch.
        let nested = [
            (0, 1, 1),
            (1, 2, 1),
            (2, 2, 10),
            (2, 3, 1),
            (3, 1, 1),
            (3, 99, 1),
        ];
        assert_eq!(length(&nested, &[(1, 3)]), Err(Knot::Loop(2)));
        let body = 1 + 4 * 10 + 1;
        assert_eq!(
            length(&nested, &[(1, 3), (2, 5)]),
            Ok(Some(1 + 2 * (body + 1) + body + 1))
        );
    }

    #[test]
    fn a_loop_with_two_entries_is_none_that_has_a_bound() {
        let edges = [(0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 1, 1), (2, 99, 1)];
        assert_eq!(length(&edges, &[(1, 2), (2, 2)]), Err(Knot::Entries(2)));
    }

    #[test]
    fn counts_are_made_as_large_as_possible_each_by_itself() {
        let to = |to, weight| Edge { to, weight };
        let graph = Graph::from([(
            0u8,
            vec![to(To::Return(0), [3, 1]), to(To::Return(0), [1, 3])],
        )]);
        assert_eq!(longest(&graph, 0, &|_| None), Ok([Some([3, 3]), None]));
    }
}
