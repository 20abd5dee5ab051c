//! Traces as they are written.
//!
//! Invariant: each free has the number of the request whose block it frees, which stands before it.

use std::collections::HashMap;
use std::io::{self, BufRead};

use metes_trace::lines::{self, WrongLine, integer, short};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It asks for a block: the next in number.
    Allocate {
        /// The node.
        node: u32,
        /// Bytes.
        size: u64,
    },
    /// It frees one.
    Free {
        /// The node.
        node: u32,
        /// The number of its request, from 0.
        request: usize,
    },
}

impl Operation {
    /// Who does it.
    pub fn node(self) -> u32 {
        match self {
            Operation::Allocate { node, .. } | Operation::Free { node, .. } => node,
        }
    }
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// A line is wrong.
    #[error("line {line}: {wrong}; operations are a,NODE,BLOCK,SIZE and f,NODE,BLOCK")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        wrong: String,
    },
    /// The system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// What nodes do, in the order in which it was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    operations: Vec<Operation>,
    sizes: Vec<u64>,
}

impl Trace {
    /// Reads the trace of `nodes` nodes. Linear.
    ///
    /// # Errors
    /// The first line that is no operation, names a node that is not there, a block that is in use or one that is not.
    pub fn read(input: impl BufRead, nodes: u32) -> Result<Trace, Unread> {
        let mut trace = Trace::default();
        let mut in_use = HashMap::new();
        let read = lines::read(input, |line| trace.take(line, nodes, &mut in_use));
        match read {
            Ok(()) => Ok(trace),
            Err(lines::Unread::Line(WrongLine { line, wrong })) => {
                Err(Unread::Line { line, wrong })
            }
            Err(lines::Unread::System(error)) => Err(error.into()),
        }
    }

    fn take(
        &mut self,
        line: &str,
        nodes: u32,
        in_use: &mut HashMap<u64, usize>,
    ) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let node = |text| {
            let node: u32 = integer(text, "NODE")?;
            if node < nodes {
                Ok(node)
            } else {
                Err(format!(
                    "there is no node {node}: nodes are 0 to {}",
                    nodes - 1
                ))
            }
        };
        let operation = match fields[..] {
            ["a", at, block, size] => {
                let (node, block) = (node(at)?, integer(block, "BLOCK")?);
                let size = integer(size, "SIZE")?;
                if in_use.insert(block, self.sizes.len()).is_some() {
                    return Err(format!("block {block} is in use: free it first"));
                }
                self.sizes.push(size);
                Operation::Allocate { node, size }
            }
            ["f", at, block] => {
                let (node, block) = (node(at)?, integer(block, "BLOCK")?);
                let request = in_use.remove(&block).ok_or_else(|| {
                    format!("block {block} is not in use: it was freed, or never asked for")
                })?;
                Operation::Free { node, request }
            }
            ["a" | "f", ..] => {
                return Err(format!("{:?} has {} fields", &*short(line), fields.len()));
            }
            _ => return Err(format!("{:?} is no operation", &*short(line))),
        };
        self.operations.push(operation);
        Ok(())
    }

    /// What nodes do.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Bytes that each request asks for.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read() {
        let text = "# two nodes\na,0,7,100\nf, 1, 7 # by another\na,1,7,5";
        let trace = Trace::read(text.as_bytes(), 2).expect("a trace");
        let expected = [
            Operation::Allocate { node: 0, size: 100 },
            Operation::Free {
                node: 1,
                request: 0,
            },
            Operation::Allocate { node: 1, size: 5 },
        ];
        assert_eq!(trace.operations(), expected);
        assert_eq!(trace.sizes(), [100, 5]);
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (text, at, says) in [
            ("a,2,1,8", 1, "there is no node 2: nodes are 0 to 1"),
            ("a,0,1,8\na,1,1,8", 2, "block 1 is in use: free it first"),
            (
                "f,0,1",
                1,
                "block 1 is not in use: it was freed, or never asked for",
            ),
            (
                "a,0,1,8\nf,0,1\nf,1,1",
                3,
                "block 1 is not in use: it was freed, or never asked for",
            ),
            ("a,0,1", 1, "\"a,0,1\" has 3 fields"),
            ("a,0,x,8", 1, "BLOCK \"x\" is no number"),
            ("b,0", 1, "\"b,0\" is no operation"),
            (
                "a,0,1,99999999999999999999",
                1,
                "SIZE 99999999999999999999 is too large",
            ),
        ] {
            match Trace::read(text.as_bytes(), 2) {
                Err(Unread::Line { line, wrong }) => assert_eq!((line, &*wrong), (at, says)),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
