//! A node dies before each of its steps in turn; the others go on, and account for every block.

use metes_mesh::{Fabric, LocalHeap, Mesh, Node, Options, Refusal, TaggedHeap};
use metes_random::Random;

use crate::mortal::{Mortal, outlived};
use crate::{Nodes, accounted, few, nodes};

const NODES: u32 = 3;
/// The node that dies.
const DEAD: Node = Node(1);

/// What the node does until it dies: fills its own heap and others', frees its own blocks and those of `given`, in any order.
fn life(mesh: &mut Mesh<'_, Mortal<'_, Nodes>>, given: &[u64], seed: u64, held: &mut Vec<u64>) {
    let mut random = Random::new(seed);
    let mut given = given.to_vec();
    for _ in 0..12 {
        if random.below(5) < 3 {
            let size = random.between(1, 500);
            if let Ok(address) = mesh.allocate(size, 8) {
                held.push(address);
            }
        } else if let Some(address) = given.pop() {
            mesh.free(address).expect("it is in use");
        } else if !held.is_empty() {
            let address = held.swap_remove(random.below(held.len() as u64) as usize);
            mesh.free(address).expect("it is in use");
        }
    }
}

/// Runs a life of so many steps, then what is left; whether it was lived to its end.
fn one(seed: u64, steps: u64) -> bool {
    let mut nodes = nodes(NODES, 4096);
    let options = Options {
        drained: 1,
        alone: 1,
        ..Options::default()
    };
    let mut first = Mesh::with_options(&nodes, Node(0), options);
    let mut random = Random::new(seed ^ 0x5eed);
    // Some blocks of each heap are the others'.
    let mut mine = Vec::new();
    while mine.len() < 12 {
        mine.push(
            first
                .allocate(random.between(1, 900), 8)
                .expect("there is room"),
        );
    }
    let given = mine.split_off(6);
    // In the heap of who is going to die others have parked blocks.
    let parked: Vec<_> = (0..8)
        .filter_map(|_| first.allocate_away(random.between(1, 200), 8).ok())
        .collect();
    for address in parked {
        first.free(address).expect("it is in use");
    }
    let mortal = Mortal::new(&nodes, steps);
    let mut held = Vec::new();
    let lived = outlived(|| {
        let mut mesh = Mesh::with_options(&mortal, DEAD, options);
        life(&mut mesh, &given, seed, &mut held);
        // Between operations a node may die, too; it holds nothing then.
        mortal.left()
    });
    first.declare_dead(DEAD);
    // Two nodes go on at a time: one takes over, one adopts.
    let mut second = Mesh::with_options(&nodes, Node(2), options);
    let mut adopted = Vec::new();
    second
        .adopt(DEAD, |address| adopted.push(address))
        .expect("nobody holds a heap");
    for address in mine {
        first.free(address).expect("it is in use");
    }
    for address in &adopted {
        second.free(*address).expect("it was adopted");
    }
    // What was given to the dead and not freed by it is still the first's.
    for address in given {
        let _ = first.free(address);
    }
    // Requests that drain what is parked, and end in a refusal that is true.
    let mut last = Vec::new();
    while let Ok(address) = first.allocate(64, 8) {
        last.push(address);
    }
    let left_out: Vec<bool> = (0..NODES)
        .map(|node| nodes.load(Node(node), metes_mesh::Word::LeftOut) != 0)
        .collect();
    // A heap that was being changed is made whole: only the dead node's own serves no more.
    assert_eq!(left_out, [false, true, false], "{steps} steps");
    for address in last {
        second.free(address).expect("it is in use");
    }
    // The dead node comes back, and with it what is parked in its heap.
    first.readmit(DEAD).expect("nobody holds its heap");
    let mut back = Mesh::new(&nodes, DEAD);
    let address = back.allocate(1000, 8).expect("there is room");
    assert_eq!(
        nodes.space().place(address).map(|place| place.node),
        Some(DEAD)
    );
    assert_eq!(back.free(address), Ok(()));
    // Each heap is looked into, so that nothing stays parked.
    for node in [Node(0), DEAD, Node(2)] {
        let most = nodes.space().size();
        let refused = Mesh::new(&nodes, node).allocate(most, 8);
        assert_eq!(refused, Err(Refusal::Full));
    }
    let audits = nodes.audit();
    accounted(&audits);
    for audit in audits {
        assert_eq!((audit.blocks, audit.live), (0, 0), "{steps} steps");
    }
    lived.is_some()
}

#[test]
fn a_node_may_die_before_any_step() {
    for seed in 0..few(40) {
        let mut steps = 0;
        while !one(seed, steps) {
            steps += 1;
        }
        assert!(steps > 100, "{steps} steps");
    }
}

#[test]
fn who_was_taken_for_dead_is_told() {
    let nodes = nodes(2, 4096);
    let mut first = Mesh::new(&nodes, Node(0));
    let mut second = Mesh::new(&nodes, Node(1));
    let address = second.allocate(10, 8).expect("there is room");
    first.declare_dead(Node(1));
    first.declare_dead(Node(1));
    assert_eq!(second.allocate(10, 8), Err(Refusal::Expelled));
    assert_eq!(second.free(address), Err(metes_mesh::BadFree::Expelled));
    let again = Mesh::new(&nodes, Node(1)).allocate(10, 8);
    assert_eq!(again, Err(Refusal::Expelled));
    let mut adopted = Vec::new();
    first
        .adopt(Node(1), |address| adopted.push(address))
        .expect("nobody holds a heap");
    assert_eq!(adopted, [address]);
    first
        .adopt(Node(1), |_| panic!("nothing is told twice"))
        .expect("nobody holds a heap");
    first
        .adopt(Node(0), |_| panic!("nothing of who lives is told"))
        .expect("it lives");
    first.free(address).expect("it is the first's now");
    // The heap of the dead serves no more.
    let mut served = Vec::new();
    while let Ok(address) = first.allocate(256, 8) {
        let place = nodes.space().place(address).expect("an address");
        served.push(place.node);
    }
    assert!(
        !served.is_empty() && served.iter().all(|&node| node == Node(0)),
        "{served:?}"
    );
}

#[test]
fn blocks_are_as_far_apart_as_tags_need() {
    let mut nodes = nodes(1, 1 << 16);
    let mut mesh = Mesh::new(&nodes, Node(0));
    let mut addresses = Vec::new();
    while let Ok(address) = mesh.allocate(1, 1) {
        addresses.push(address);
    }
    addresses.sort_unstable();
    let apart = <TaggedHeap<metes_heap::Tlsf<8>> as LocalHeap>::APART;
    assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= apart));
    assert!(
        addresses.len() as u64 > (1 << 16) / apart * 9 / 10,
        "{}",
        addresses.len()
    );
    for address in addresses {
        mesh.free(address).expect("it is in use");
    }
    accounted(&nodes.audit());
}
