//! Writes random operations of so many nodes as a mesh trace: `operations NODES EACH [SEED]`.
//!
//! Each node asks and frees `EACH` times on average; the first asks for half of all blocks, so that its heap is full before
//! the others' are, and a block is freed by any node. At most 100 blocks a node are in use.

use std::io::{self, BufWriter, Write};

use metes_random::Random;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = || arguments.next().and_then(Result::ok);
    let (Some(nodes), Some(each)) = (number().filter(|&nodes| nodes > 0), number()) else {
        eprintln!("operations: give NODES and EACH, and a SEED if you like");
        std::process::exit(2);
    };
    let mut random = Random::new(number().unwrap_or(0));
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut in_use, mut blocks) = (Vec::new(), 0);
    for _ in 0..nodes.saturating_mul(each) {
        let full = in_use.len() as u64 >= nodes.saturating_mul(100);
        if in_use.is_empty() || !full && random.below(20) < 11 {
            let first = random.below(2) == 0;
            let node = if first { 0 } else { random.below(nodes) };
            writeln!(out, "a,{node},{blocks},{}", random.between(1, 400))?;
            in_use.push(blocks);
            blocks += 1;
        } else {
            let block = in_use.swap_remove(random.below(in_use.len() as u64) as usize);
            writeln!(out, "f,{},{block}", random.below(nodes))?;
        }
    }
    out.flush()
}
