//! What each node does: its operations, in their order.
//!
//! Invariant: requests have the numbers that they have in the trace; what a node waits for stands before it in the trace.

use crate::trace::{Operation, Trace};

/// The operations of a trace, node by node.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Each with the number of its request.
    of: Vec<Vec<(Operation, usize)>>,
    sizes: Vec<u64>,
    /// Who asks for each block, and how many it has asked for before.
    asked: Vec<(u32, u32)>,
}

impl Lists {
    /// The lists of `nodes` nodes. Linear.
    pub fn new(trace: &Trace, nodes: u32) -> Lists {
        let mut lists = Lists {
            of: vec![Vec::new(); nodes as usize],
            sizes: trace.sizes().to_vec(),
            asked: Vec::with_capacity(trace.sizes().len()),
        };
        let mut requests = vec![0; nodes as usize];
        for &operation in trace.operations() {
            let node = operation.node() as usize;
            let request = match operation {
                Operation::Allocate { node, .. } => {
                    let before = &mut requests[node as usize];
                    lists.asked.push((node, *before));
                    *before += 1;
                    lists.asked.len() - 1
                }
                Operation::Free { request, .. } => request,
            };
            lists.of[node].push((operation, request));
        }
        lists
    }

    /// How many nodes.
    pub fn nodes(&self) -> u32 {
        self.of.len() as u32
    }

    /// The operations of a node.
    pub(crate) fn of(&self, node: u32) -> &[(Operation, usize)] {
        &self.of[node as usize]
    }

    /// How many operations a node has.
    pub fn operations(&self, node: u32) -> u64 {
        self.of(node).len() as u64
    }

    /// How many requests a node has.
    pub fn requests(&self, node: u32) -> usize {
        let requests = self.of(node).iter();
        requests
            .filter(|(operation, _)| matches!(operation, Operation::Allocate { .. }))
            .count()
    }

    /// Who asks for a block, and how many it has asked for before.
    pub(crate) fn asked(&self, request: usize) -> (u32, usize) {
        let (node, before) = self.asked[request];
        (node, before as usize)
    }

    pub(crate) fn size(&self, request: usize) -> u64 {
        self.sizes[request]
    }
}
