//! Random operations of several nodes, one after the other, beside a table of what is in use.

use std::collections::BTreeMap;

use metes_mesh::{BadFree, Fabric, Mesh, Node, Refusal};
use metes_random::Random;

use crate::{accounted, nodes};

#[test]
fn blocks_are_those_of_a_table() {
    for seed in 0..if cfg!(debug_assertions) { 10 } else { 200 } {
        let mut random = Random::new(seed);
        let count = random.between(1, 9) as u32;
        let mut nodes = nodes(count, random.between(2048, 1 << 16));
        let mut meshes: Vec<_> = (0..count)
            .map(|node| Mesh::new(&nodes, Node(node)))
            .collect();
        // Address and size.
        let mut table = BTreeMap::<u64, u64>::new();
        let mut refused = 0;
        for _ in 0..3000 {
            let mesh = &mut meshes[random.below(count.into()) as usize];
            if random.below(9) < 5 {
                let (size, align) = (random.between(1, 2000), 1 << random.below(9));
                match mesh.allocate(size, align) {
                    Ok(address) => {
                        assert_eq!(address % align, 0);
                        let before = table.range(..address + size).next_back();
                        assert!(before.is_none_or(|(&at, &size)| at + size <= address));
                        let place = nodes.space().place(address).expect("an address");
                        assert!(place.offset + size <= nodes.space().size());
                        table.insert(address, size);
                    }
                    Err(refusal) => {
                        // Nobody else is at work, so it is sure, and no heap has room.
                        assert_eq!(refusal, Refusal::Full);
                        refused += 1;
                        for node in nodes.space().from(Node(0)) {
                            assert!(mesh.allocate(size, align).is_err(), "{node}");
                        }
                    }
                }
            } else if let Some(&address) = table
                .keys()
                .nth(random.below(table.len().max(1) as u64) as usize)
            {
                let bad = address + random.below(16);
                let expected = if bad == address {
                    Ok(())
                } else {
                    Err(BadFree::NotInUse)
                };
                assert_eq!(mesh.free(bad), expected, "{bad:#x}");
                if bad == address {
                    table.remove(&address);
                    assert_eq!(mesh.free(address), Err(BadFree::NotInUse));
                }
            }
        }
        let outside = 0x6000_0000 - 8;
        assert_eq!(meshes[0].free(outside), Err(BadFree::Outside));
        assert_eq!(meshes[0].free(u64::MAX), Err(BadFree::Outside));
        assert!(refused > 0 || count > 3, "{refused}");
        let sum = meshes.iter().map(|mesh| mesh.counts().longest).max();
        assert!(
            sum <= Some(count.into()),
            "each heap is looked into once: {sum:?}"
        );
        let audits = nodes.audit();
        accounted(&audits);
        let used: u64 = audits.iter().map(|audit| audit.used).sum();
        assert_eq!(used, table.len() as u64);
    }
}

/// A heap whose owner does nothing is emptied by those who need it.
#[test]
fn a_full_heap_is_drained_before_a_request_is_refused() {
    let mut nodes = nodes(2, 1 << 14);
    let mut owner = Mesh::new(&nodes, Node(0));
    let mut other = Mesh::new(&nodes, Node(1));
    let mut all = Vec::new();
    while let Ok(address) = owner.allocate(64, 8) {
        all.push(address);
    }
    for address in &all {
        other.free(*address).expect("it is in use");
    }
    let mut again = 0;
    while other.allocate(64, 8).is_ok() {
        again += 1;
    }
    assert_eq!(again, all.len());
    assert_eq!(owner.counts().full, 1);
    accounted(&nodes.audit());
}
