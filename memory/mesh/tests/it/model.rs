//! Random operations of several nodes, one after the other, beside a table of what is in use.

use std::collections::BTreeMap;

use metes_mesh::{BadFree, Fabric, Holder, Leases, Mesh, Node, Options, Refusal, Word};
use metes_random::Random;

use crate::{accounted, few, nodes};

#[test]
fn blocks_are_those_of_a_table() {
    for seed in 0..few(200) {
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

/// A node that holds a heap until others have waited for it so often.
struct Holding<'f> {
    nodes: &'f crate::Nodes,
    left: std::cell::Cell<u32>,
}

impl Holding<'_> {
    const HELD: Node = Node(1);
}

impl Fabric for Holding<'_> {
    type Heap = <crate::Nodes as Fabric>::Heap;

    fn space(&self) -> metes_mesh::HeapSpace {
        self.nodes.space()
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        self.nodes.load(node, word)
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        self.nodes.store(node, word, value);
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        self.nodes.compare_exchange(node, word, current, new)
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        self.nodes.tag(node, granule)
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        self.nodes.set_tag(node, granule, tag);
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        self.nodes.exchange_tag(node, granule, current, new)
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        // SAFETY: as the caller says.
        unsafe { self.nodes.link(node, offset) }
    }

    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        // SAFETY: as the caller says.
        unsafe { self.nodes.set_link(node, offset, link) };
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T {
        // SAFETY: as the caller says.
        unsafe { self.nodes.with_heap(node, change) }
    }

    fn relax(&self) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            self.nodes.store(Holding::HELD, Word::Lock, 0);
        }
    }
}

/// What others hold is waited for before a request is refused, and what they hold for ever does not make a refusal sure.
#[test]
fn a_held_heap_is_waited_for() {
    let options = Options {
        tries: 10,
        passes: 3,
        ..Options::default()
    };
    // A pass that waits tries ten times, and waits between tries.
    for (waits, expected) in [(5, None), (20, None), (1000, Some(Refusal::Busy))] {
        let nodes = nodes(3, 4096);
        for node in [0, 2] {
            let mut mesh = Mesh::new(&nodes, Node(node));
            let full = mesh.allocate(2048, 8).expect("there is room");
            let place = nodes.space().place(full).expect("an address");
            assert_eq!(place.node, Node(node));
        }
        let holder = Holder {
            node: Holding::HELD,
            epoch: 0,
        };
        nodes.store(Holding::HELD, Word::Lock, Holder::word(Some(holder)));
        let holding = Holding {
            nodes: &nodes,
            left: std::cell::Cell::new(waits),
        };
        let mut mesh = Mesh::with_options(&holding, Node(0), options);
        let served = mesh.allocate(2048, 8);
        match expected {
            None => {
                let place = nodes.space().place(served.expect("it was waited for"));
                assert_eq!(place.map(|place| place.node), Some(Holding::HELD));
            }
            refusal => assert_eq!(served.err(), refusal),
        }
        assert!(mesh.counts().skips > 0);
    }
}

#[test]
fn leases_bound_what_a_request_looks_into() {
    let mut served_by_leases = 0;
    for seed in 0..few(200) {
        let mut random = Random::new(seed);
        let count = random.between(2, 6) as u32;
        let mut nodes = nodes(count, 4096);
        let mut blocks = Vec::new();
        {
            let lessee = |node| Leases::<_, 3>::new(Mesh::new(&nodes, Node(node)), 200, 16);
            let mut views: Vec<_> = (0..count).map(lessee).collect();
            for _ in 0..300 {
                let view = &mut views[random.below(count.into()) as usize];
                if random.below(3) == 0 && !blocks.is_empty() {
                    let at = random.below(blocks.len() as u64) as usize;
                    assert_eq!(view.free(blocks.swap_remove(at)), Ok(()));
                    continue;
                }
                let size = random.between(1, 200);
                let (before, held) = (view.mesh().counts(), view.held());
                let served = view.allocate(size, 16);
                let after = view.mesh().counts();
                assert_eq!(after.visits + after.skips, before.visits + before.skips + 1);
                match served {
                    Ok(address) => blocks.push(address),
                    Err(refusal) => {
                        assert_eq!((refusal, held), (Refusal::Unleased, 0));
                        // Once renewed it is served, or there is no room for a lease anywhere.
                        if view.renew().expect("nobody holds a heap") > 0 {
                            blocks.push(view.allocate(size, 16).expect("there is a lease"));
                            served_by_leases += 1;
                        }
                    }
                }
            }
            blocks.sort_unstable();
            assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]));
            for address in blocks {
                assert_eq!(views[0].free(address), Ok(()));
            }
        }
        // Leases went back with their views; each heap is looked into, so that nothing stays parked.
        let refused = Mesh::new(&nodes, Node(0)).allocate(1 << 20, 8);
        assert_eq!(refused, Err(Refusal::Full));
        let audits = nodes.audit();
        accounted(&audits);
        assert!(audits.iter().all(|audit| audit.blocks == 0), "{audits:?}");
    }
    assert!(served_by_leases > 0, "some request needs a lease");
}
