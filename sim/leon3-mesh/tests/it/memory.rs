//! The memory of a mesh by itself: what it holds beside a plain array, and what it costs.
//!
//! *Invariant:* latencies are expected by hand, from settings and hops.

use metes_leon3::devices::{Access, Device};
use metes_leon3::{Configuration, End, Image, Machine, Stop};
use metes_leon3_mesh::{MeshMemory, Settings, Unfit, attach, memory};
use metes_mesh::{HeapSpace, Shared};
use proptest::prelude::*;

/// Bytes of each node's part.
const EACH: u32 = 256;
/// The registers lie in the page before.
const PAGE: u32 = 0x1000;

/// A memory of 3 x 3 nodes, a part behind the other.
fn parts(service: u64, hop: u64) -> MeshMemory {
    let mut settings = Settings::new(3, 3, 9 * EACH);
    settings.service = service;
    settings.network.hop = Some(hop);
    let mut made = MeshMemory::new(&settings, 9).expect("it fits");
    for (number, word) in [memory::BASE, EACH].into_iter().enumerate() {
        made.write(4 * number as u32, word, &mut Access::new(0, 0));
    }
    made
}

fn access(core: usize, cycle: u64) -> Access {
    Access::new(cycle, core)
}

#[test]
fn an_access_alone_takes_its_way_twice() {
    for (service, hop) in [(1, 1), (3, 4)] {
        let mut memory = parts(service, hop);
        let mut cycle = 0;
        for from in 0..9 {
            for to in 0..9 {
                // Long after all others.
                cycle += 1000;
                let hops = (from % 3_usize).abs_diff(to % 3) + (from / 3).abs_diff(to / 3);
                let way = if from == to {
                    0
                } else {
                    2 * (1 + hop * hops as u64 + 1)
                };
                let mut load = access(from, cycle);
                memory.read(PAGE + EACH * to as u32, &mut load);
                assert_eq!(load.waits(), way + service, "{from} to {to}");
                let mut store = access(from, cycle + 500);
                memory.write(PAGE + EACH * to as u32 + 4, 1, &mut store);
                assert_eq!(store.waits(), way + service, "{from} to {to}");
            }
        }
        assert_eq!(memory.counts().contended, 0);
        assert_eq!(memory.counts().local + memory.counts().remote, 2 * 81);
    }
}

#[test]
fn a_memory_serves_one_at_a_time() {
    let mut memory = parts(5, 1);
    // Nodes 1 and 3 are a hop from node 0, which is at home: all in the same cycle.
    let waits = [0, 1, 3].map(|core| {
        let mut load = access(core, 100);
        memory.read(PAGE, &mut load);
        load.waits()
    });
    // Served from 100, and from 103 on, when 0 is still served: from 105, 110; and two cycles and a hop back.
    assert_eq!(waits, [5, 5 + 5 + 3, 5 + 5 + 5 + 3]);
    assert_eq!(memory.counts().contended, (105 - 103) + (110 - 103));
}

#[test]
fn an_exchange_goes_as_one() {
    let mut memory = parts(1, 1);
    let (mut load, mut store) = (access(8, 10), access(8, 10));
    (load.exchange, store.exchange) = (true, true);
    memory.read(PAGE, &mut load);
    memory.write(PAGE, 7, &mut store);
    assert_eq!((load.waits(), store.waits()), (2 * (1 + 4 + 1) + 1, 0));
    assert_eq!(memory.words()[0], 7);
    assert_eq!((memory.counts().exchanges, memory.counts().remote), (1, 1));
}

proptest! {
    #[test]
    fn it_holds_what_an_array_would(
        accesses in prop::collection::vec((0..9usize, 0..9 * EACH / 4, any::<u32>(), 0..4usize, 0..20u64), 1..200),
    ) {
        let mut made = parts(2, 2);
        let mut plain = vec![0_u32; 9 * EACH as usize / 4];
        // Cores are simulated out of the order of time; none before `past`.
        let mut past = 0;
        for (core, word, value, kind, later) in accesses {
            let mut access = access(core, past + later);
            access.past = past;
            past += later / 10;
            let offset = PAGE + 4 * word;
            // The bits of a byte, a half or all of the word.
            access.bits = [u32::MAX, 0xffff_0000, 0x0000_ff00, 0][kind];
            if kind == 3 {
                prop_assert_eq!(made.read(offset, &mut access), plain[word as usize]);
            } else {
                made.write(offset, value, &mut access);
                let old = &mut plain[word as usize];
                *old = *old & !access.bits | value & access.bits;
            }
            let home = word / (EACH / 4);
            let hops = (core % 3).abs_diff(home as usize % 3) + (core / 3).abs_diff(home as usize / 3);
            let way = if hops == 0 { 0 } else { 2 * (2 + 2 * hops as u64) };
            prop_assert!(access.waits() >= way + 2);
        }
        // What is saved goes on as it would have.
        let mut other = parts(2, 2);
        other.restore(&made.save()).expect("it is of the same settings");
        prop_assert_eq!(other.save(), made.save());
        let (mut one, mut two) = (access(4, past), access(4, past));
        prop_assert_eq!(made.read(PAGE, &mut one), other.read(PAGE, &mut two));
        prop_assert_eq!(one.waits(), two.waits());
        let of_others = parts(1, 2).restore(&made.save());
        prop_assert!(of_others.is_err());
        prop_assert!(other.restore(&[1, 2, 3]).is_err());
    }
}

#[test]
fn a_core_waits_for_what_it_loads_and_stores() {
    // sethi %hi(0x60000000), %g1; then one of: a load, a byte stored, a swap, a doubleword; ta 0
    let waits = [
        (0xc400_6000, 1), // ld [%g1], %g2
        (0xc428_6003, 1), // stb %g2, [%g1 + 3]
        (0xc478_6000, 1), // swap [%g1], %g2
        (0xc418_6000, 2), // ldd [%g1], %g2
        (0x0100_0000, 0), // nop
    ];
    let cycles = waits.map(|(instruction, _)| {
        let image = Image::of_words(0x4000_0000, &[0x0318_0000, instruction, 0x91d0_2000]);
        let mut machine =
            Machine::with_image(&Configuration::default(), &image).expect("a machine");
        let mut settings = Settings::new(2, 1, 1 << 12);
        settings.service = 100;
        attach(&mut machine, &settings).expect("it fits");
        assert_eq!(machine.run(10, &mut ()), Stop::End(End::Halt { core: 0 }));
        machine.cycles()
    });
    // As quick as a hit but for the service.
    let alone = [1, 2, 5, 2, 1];
    let base = cycles[4] - 1;
    for ((cycles, (_, times)), alone) in cycles.into_iter().zip(waits).zip(alone) {
        assert_eq!(cycles, base + alone + 100 * times);
    }
}

#[test]
fn stripes_are_where_things_are_laid() {
    let nodes = 4;
    let space = HeapSpace::new(1 << 20, 4096, nodes).expect("a space");
    type Nodes = Shared<metes_heap::Tlsf<8>>;
    let [heaps, parts, tags] = Nodes::stripes(space).expect("they fit");
    let size = Nodes::layout(space).expect("it fits").size();
    // Heaps, then parts, then tags: none upon another, all inside.
    assert_eq!((heaps.begin, heaps.each), (0, 4096));
    assert!(parts.begin >= nodes as usize * heaps.each);
    assert!(tags.begin >= parts.begin + nodes as usize * parts.each);
    assert!(tags.begin + nodes as usize * tags.each <= size);
    assert!(parts.each >= 128 && tags.each >= 4096 / 32 * 2);
}

#[test]
fn a_machine_that_does_not_fit_is_told() {
    let image = Image::of_words(0x4000_0000, &[0x91d0_2000]);
    let configuration = Configuration {
        cores: 5,
        memory: 600 << 20,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
    let refused = attach(&mut machine, &Settings::new(2, 2, 4096));
    assert_eq!(refused, Err(Unfit::Ram { ram: 600 << 20 }));
    let configuration = Configuration {
        cores: 5,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
    let refused = attach(&mut machine, &Settings::new(2, 2, 4096));
    assert_eq!(refused, Err(Unfit::Nodes { nodes: 4, cores: 5 }));
}
