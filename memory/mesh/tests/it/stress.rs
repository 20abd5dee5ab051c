//! Threads that allocate, write, pass blocks on and free them, all at the same time.

use std::sync::mpsc;

use metes_mesh::{Mesh, Node, Refusal};
use metes_random::Random;

use crate::{accounted, few, nodes};

/// A block and what was written to its ends.
struct Block {
    address: u64,
    size: u64,
    mark: u64,
}

#[test]
fn threads_pass_blocks_around() {
    // The long form says how many in all; some say nothing.
    let long = std::env::var("METES_OPERATIONS").ok();
    let long = long.map(|text| text.parse::<u64>().expect("METES_OPERATIONS is a number"));
    let all = [(2, 1 << 13), (4, 1 << 15), (8, 1 << 12)];
    for (count, bytes) in all.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let operations = long.map_or(few(300_000), |long| long.div_ceil(u64::from(count) * 3));
        let mut nodes = nodes(count, bytes);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel::<Block>()).unzip();
        let shared = &nodes;
        let refused: u64 = std::thread::scope(|scope| {
            let threads = receivers.into_iter().enumerate().map(|(number, receiver)| {
                let senders = senders.clone();
                scope.spawn(move || {
                    let mut mesh = Mesh::new(shared, Node(number as u32));
                    let mut random = Random::new(number as u64);
                    let (mut own, mut refused) = (Vec::new(), 0);
                    for turn in 0..operations {
                        match random.below(8) {
                            0..4 => {
                                let size = random.between(16, 200);
                                match mesh.allocate(size, 8) {
                                    Ok(address) => {
                                        let mark = turn << 8 | number as u64;
                                        let block = Block {
                                            address,
                                            size,
                                            mark,
                                        };
                                        write(shared, &block);
                                        own.push(block);
                                    }
                                    Err(Refusal::Full) => refused += 1,
                                    Err(other) => panic!("{other}"),
                                }
                            }
                            4 if !own.is_empty() => {
                                let block =
                                    own.swap_remove(random.below(own.len() as u64) as usize);
                                let to = random.below(senders.len() as u64) as usize;
                                // Who has ended takes no more.
                                if let Err(back) = senders[to].send(block) {
                                    own.push(back.0);
                                }
                            }
                            5 => own.extend(receiver.try_recv()),
                            _ if !own.is_empty() => {
                                let block =
                                    own.swap_remove(random.below(own.len() as u64) as usize);
                                check(shared, &block);
                                mesh.free(block.address).expect("it is in use");
                            }
                            _ => {}
                        }
                    }
                    drop(senders);
                    own.extend(receiver);
                    for block in own {
                        check(shared, &block);
                        mesh.free(block.address).expect("it is in use");
                    }
                    refused
                })
            });
            let threads: Vec<_> = threads.collect();
            drop(senders);
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no thread fails"))
                .sum()
        });
        assert!(
            refused > 0 || cfg!(miri),
            "heaps are small enough to be full"
        );
        // Each heap is looked into once more, so that nothing stays parked.
        for node in 0..count {
            assert_eq!(
                Mesh::new(&nodes, Node(node)).allocate(bytes, 8),
                Err(Refusal::Full)
            );
        }
        let audits = nodes.audit();
        accounted(&audits);
        assert!(
            audits
                .iter()
                .all(|audit| audit.blocks == 0 && audit.live == 0),
            "{audits:?}"
        );
    }
}

fn write(nodes: &crate::Nodes, block: &Block) {
    for (at, value) in ends(block) {
        let place = nodes.memory(at).expect("the block is memory").cast::<u64>();
        // SAFETY: eight bytes at each end belong to the block, which is this thread's.
        unsafe { place.write_unaligned(value) };
    }
}

fn check(nodes: &crate::Nodes, block: &Block) {
    for (at, value) in ends(block) {
        let place = nodes.memory(at).expect("the block is memory").cast::<u64>();
        // SAFETY: as in `write`.
        let found = unsafe { place.read_unaligned() };
        assert_eq!(found, value, "at {at:#x}");
    }
}

/// What stands in its first and last eight bytes.
fn ends(block: &Block) -> [(u64, u64); 2] {
    [
        (block.address, block.mark),
        (block.address + block.size - 8, !block.mark),
    ]
}
