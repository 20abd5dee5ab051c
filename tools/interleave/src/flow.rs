//! The greatest flow through a network (Dinic, "Algorithm for solution of a problem of maximum flow", 1970), as far as some
//! work goes.
//!
//! Invariant: what flows is a flow at any time: no edge carries more than it may, and what enters a node leaves it.

/// No edge, no node.
const NONE: u32 = u32::MAX;
/// What carries any amount.
pub(crate) const ANY: u64 = u64::MAX / 4;

/// A network under way.
pub(crate) struct Flow {
    first: Vec<u32>,
    next: Vec<u32>,
    to: Vec<u32>,
    /// What an edge may still carry; of an edge and its reverse one follows the other.
    left: Vec<u64>,
    level: Vec<u32>,
}

/// Where a flow comes from, and where it goes.
pub(crate) const SOURCE: u32 = 0;
pub(crate) const SINK: u32 = 1;

impl Flow {
    pub(crate) fn new(nodes: usize) -> Self {
        Flow {
            first: vec![NONE; nodes],
            next: Vec::new(),
            to: Vec::new(),
            left: Vec::new(),
            level: vec![NONE; nodes],
        }
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32, carries: u64) {
        for (from, to, carries) in [(from, to, carries), (to, from, 0)] {
            let edge = self.to.len() as u32;
            self.to.push(to);
            self.left.push(carries);
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = edge;
        }
    }

    /// As much as flows for at most so many edges looked at, and whether no more can.
    pub(crate) fn run(&mut self, most_work: u64) -> (u64, bool) {
        let (mut flow, mut work) = (0, 0);
        while self.levels(&mut work) {
            if work > most_work {
                return (flow, false);
            }
            let mut at = self.first.clone();
            let mut path: Vec<u32> = Vec::new();
            let mut node = SOURCE;
            loop {
                if node == SINK {
                    let carried = self.along(&path);
                    flow += carried;
                    work += path.len() as u64;
                    let full = path.iter().position(|&edge| self.left[edge as usize] == 0);
                    let full = full.unwrap_or(0);
                    node = self.to[path[full] as usize ^ 1];
                    path.truncate(full);
                }
                if work > most_work {
                    return (flow, false);
                }
                let mut edge = at[node as usize];
                while edge != NONE && !self.goes_on(node, edge) {
                    edge = self.next[edge as usize];
                    work += 1;
                }
                at[node as usize] = edge;
                work += 1;
                if edge != NONE {
                    path.push(edge);
                    node = self.to[edge as usize];
                    continue;
                }
                // Nothing more flows through here.
                let Some(last) = path.pop() else { break };
                node = self.to[last as usize ^ 1];
                at[node as usize] = self.next[last as usize];
            }
        }
        (flow, true)
    }

    /// Carries as much along a path as it may; how much.
    fn along(&mut self, path: &[u32]) -> u64 {
        let least = path.iter().map(|&edge| self.left[edge as usize]).min();
        let least = least.unwrap_or(0);
        for &edge in path {
            self.left[edge as usize] -= least;
            self.left[edge as usize ^ 1] += least;
        }
        least
    }

    fn goes_on(&self, from: u32, edge: u32) -> bool {
        let to = self.to[edge as usize] as usize;
        self.left[edge as usize] > 0 && self.level[to] == self.level[from as usize] + 1
    }

    /// How far each node is from the source, where more may flow; whether the sink can be reached.
    fn levels(&mut self, work: &mut u64) -> bool {
        self.level.fill(NONE);
        self.level[SOURCE as usize] = 0;
        let mut queue = vec![SOURCE];
        let mut done = 0;
        while let Some(&node) = queue.get(done) {
            done += 1;
            let mut edge = self.first[node as usize];
            while edge != NONE {
                let to = self.to[edge as usize];
                if self.left[edge as usize] > 0 && self.level[to as usize] == NONE {
                    self.level[to as usize] = self.level[node as usize] + 1;
                    queue.push(to);
                }
                edge = self.next[edge as usize];
                *work += 1;
            }
        }
        self.level[SINK as usize] != NONE
    }

    /// Whether more might flow to a node, after a run.
    pub(crate) fn reached(&mut self) -> Vec<bool> {
        self.levels(&mut 0);
        self.level.iter().map(|&level| level != NONE).collect()
    }
}
