//! Service 6: memory written, dumped, checked.

use metes_duster_application::testing::{Bench, MEMORY_BASE, Told};
use metes_duster_protocol::checksum;
use metes_duster_protocol::definitions::{Command, Failure, Mode, Report};
use metes_duster_protocol::value::Bytes;

fn dumped(told: &[Told]) -> Vec<u8> {
    told.iter()
        .filter_map(|told| match told.report() {
            Some(Report::MemoryDump { data, .. }) => Some(data.0.to_vec()),
            _ => None,
        })
        .flatten()
        .collect()
}

#[test]
fn a_heap_image_comes_down_whole() {
    let mut bench = Bench::safe();
    let length = 65_536;
    bench.command(&Command::DumpMemory {
        address: MEMORY_BASE,
        length,
    });
    bench.run(4000);
    let told = bench.take();
    assert_eq!(dumped(&told), bench.unit.memory);
    assert_eq!(Told::verification(&told), [(1, None), (3, None), (7, None)]);
    bench.command(&Command::CheckMemory {
        address: MEMORY_BASE,
        length,
    });
    bench.run(4000);
    let told = bench.take();
    let checked = told.iter().find_map(|told| match told.report() {
        Some(Report::MemoryCheck { checksum, .. }) => Some(checksum),
        _ => None,
    });
    assert_eq!(checked, Some(checksum::of(&bench.unit.memory)));
    bench.run(200);
    assert_eq!(bench.used(), 0);
}

#[test]
fn what_is_loaded_stands_there() {
    let mut bench = Bench::in_mode(Mode::Config);
    let data = [1, 2, 3, 250];
    let load = |checksum| Command::LoadMemory {
        address: MEMORY_BASE + 9,
        data: Bytes(&data),
        checksum,
    };
    let verified = bench.verified(&load(checksum::of(&data)));
    assert_eq!(verified.last(), Some(&(7, None)));
    assert_eq!(bench.unit.memory[9..13], data);
    let verified = bench.verified(&load(1));
    assert_eq!(verified, [(1, None), (4, Some(Failure::Checksum))]);
}

#[test]
fn memory_outside_is_neither_read_nor_written() {
    let mut bench = Bench::safe();
    let end = MEMORY_BASE + 65_536;
    for (address, length) in [
        (0, 4),
        (end, 1),
        (end - 3, 4),
        (u32::MAX, 2),
        (MEMORY_BASE - 1, 1),
    ] {
        for command in [
            Command::DumpMemory { address, length },
            Command::CheckMemory { address, length },
        ] {
            let verified = bench.verified(&command);
            assert_eq!(
                verified,
                [(1, None), (4, Some(Failure::Address))],
                "{command:?}"
            );
        }
    }
    let data = [0; 4];
    let load = Command::LoadMemory {
        address: end - 3,
        data: Bytes(&data),
        checksum: checksum::of(&data),
    };
    assert_eq!(
        bench.verified(&load).last(),
        Some(&(8, Some(Failure::Address)))
    );
}

#[test]
fn one_dump_at_a_time() {
    let mut bench = Bench::safe();
    let dump = Command::DumpMemory {
        address: MEMORY_BASE,
        length: 60_000,
    };
    bench.command(&dump);
    assert!(bench.verified(&dump).contains(&(4, Some(Failure::Busy))));
}
