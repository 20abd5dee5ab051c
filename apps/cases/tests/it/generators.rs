//! The generated workloads have the figures that the paper gives.

use std::collections::{BTreeMap, BTreeSet};

use std::path::Path;

use metes_cases::{packets, texture, touches};
use metes_trace::{Op, TouchOperation, TouchProfile, TouchReader, Trace, profile};

/// Accesses to blocks of each size, words.
fn accesses(trace: &Trace) -> BTreeMap<u64, u64> {
    let mut sizes = Vec::new();
    let mut accesses = BTreeMap::new();
    for event in trace.iter() {
        match event.op {
            Op::Alloc => sizes.push(event.size),
            _ => {
                *accesses.entry(sizes[event.block as usize]).or_insert(0) +=
                    event.reads + event.writes
            }
        }
    }
    accesses
}

#[test]
fn packets_are_those_of_the_paper() {
    for seed in [1, 2, 77] {
        let options = packets::Options {
            seed,
            ..packets::Options::default()
        };
        let packets = packets::packets(&options);
        let profile = profile(&packets::trace(&packets));
        assert_eq!(profile.allocations, 12_000);
        assert_eq!(profile.frees, 12_000, "every packet leaves");
        assert_eq!(profile.sizes.len(), 59);
        assert_eq!(profile.peak_blocks, 647);
        let count = |size: u32| {
            let size = profile.sizes.iter().find(|own| own.size == u64::from(size));
            size.map(|size| size.allocations)
        };
        assert_eq!(count(packets::FULL), Some(4560), "38 %");
        assert_eq!(count(packets::ACKNOWLEDGEMENT), Some(2640), "22 %");
        assert_eq!(profile.sizes[0].size, 66);
        assert_eq!(profile.largest, 54_074);
        // It fits the smallest main memory of the paper with some room to lose.
        assert!(
            (500_000..1_000_000).contains(&profile.peak_live),
            "{}",
            profile.peak_live
        );
    }
}

#[test]
fn packets_come_in_bursts_and_leave_in_order() {
    let packets = packets::packets(&packets::Options::default());
    let arrivals_rise = packets
        .windows(2)
        .all(|pair| pair[0].arrival < pair[1].arrival);
    let departures_rise = packets
        .windows(2)
        .all(|pair| pair[0].departure < pair[1].departure);
    assert!(arrivals_rise && departures_rise, "first in, first out");
    let trace = packets::trace(&packets);
    let freed: Vec<u64> = trace
        .iter()
        .filter(|event| event.op == Op::Free)
        .map(|event| event.block)
        .collect();
    assert!(freed.iter().copied().eq(0..12_000), "and so are the blocks");
    // The line that packets leave on is never busy with two of them.
    for pair in packets.windows(2) {
        let time = u64::from(pair[1].size) * packets::OUT_NS_PER_BYTE;
        assert_eq!(
            pair[1].departure,
            pair[0].departure.max(pair[1].arrival) + time
        );
    }
    // Within a burst a packet follows at the speed of the other line.
    let bursts = 1 + packets
        .windows(2)
        .filter(|pair| pair[1].arrival - pair[0].arrival > u64::from(pair[1].size) * 8)
        .count();
    assert!((200..600).contains(&bursts), "{bursts} bursts of up to 64");
    // Most packets stay for a short time: a tenth of the longest or less.
    let mut stays: Vec<u64> = packets
        .iter()
        .map(|packet| packet.departure - packet.arrival)
        .collect();
    stays.sort_unstable();
    assert!(stays[6_000] * 5 < stays[11_999]);
}

#[test]
fn generators_are_functions_of_their_options() {
    let options = packets::Options::default();
    assert_eq!(packets::packets(&options), packets::packets(&options));
    let other = packets::Options { seed: 2, ..options };
    assert_ne!(packets::packets(&options), packets::packets(&other));
    assert_eq!(texture::trace(), texture::trace());
    // Fewer packets, the same shares.
    let few = packets::sizes(100);
    let count = |size| few.iter().find(|own| own.0 == size).map_or(0, |own| own.1);
    assert_eq!((count(1514), count(66)), (38, 22));
    assert_eq!(few.iter().map(|own| own.1).sum::<usize>(), 100);
    assert!(
        packets::packets(&packets::Options {
            packets: 0,
            seed: 1
        })
        .is_empty()
    );
}

#[test]
fn a_packet_is_written_once_and_read_once_and_its_header_more() {
    let packets = packets::packets(&packets::Options::default());
    let trace = packets::trace(&packets);
    for event in trace.iter().filter(|event| event.op == Op::Free) {
        let words = u64::from(packets[event.block as usize].size).div_ceil(4);
        assert_eq!(event.reads, words + packets::HEADER_READS);
        assert_eq!(event.writes, words + packets::HEADER_WRITES);
    }
}

#[test]
fn the_capture_holds_every_packet() {
    let options = packets::Options {
        packets: 500,
        seed: 1,
    };
    let packets = packets::packets(&options);
    let mut file = Vec::new();
    packets::write_capture(&packets, &mut file).expect("memory can be written");
    let bytes: usize = packets.iter().map(|packet| 16 + packet.size as usize).sum();
    assert_eq!(file.len(), 24 + bytes);
    // A sum over a right IPv4 header is all ones (RFC 1071).
    let header = &file[24 + 16 + 14..][..20];
    let sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    let short = packets::Packet {
        size: 33,
        arrival: 0,
        departure: 1,
    };
    let refused = packets::write_capture(&[short], &mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("33 bytes"));
}

#[test]
fn the_texture_is_that_of_the_paper() {
    let trace = texture::trace();
    let profile = profile(&trace);
    assert_eq!(profile.final_blocks, 0);
    assert_eq!(profile.peak_blocks, 1841);
    assert_eq!(profile.sizes.len(), 14);
    assert_eq!(profile.sizes[0].size, 32);
    assert_eq!(profile.largest, 2 << 20);
    let powers: BTreeSet<u64> = profile.sizes.iter().map(|own| own.size).collect();
    assert_eq!(
        powers.iter().filter(|size| size.is_power_of_two()).count(),
        12
    );
    // 6.8 MB to the digit that is printed.
    assert_eq!((profile.peak_live + 50_000) / 100_000, 68);
    let mut counts: Vec<_> = profile
        .sizes
        .iter()
        .map(|own| (own.allocations, own.size))
        .collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let order: Vec<u64> = counts.iter().take(5).map(|own| own.1).collect();
    assert_eq!(order, [1024, 2048, 512, 256, 128]);
    let accesses = accesses(&trace);
    let most = accesses.iter().max_by_key(|own| own.1).map(|own| *own.0);
    assert_eq!(most, Some(2048), "{accesses:?}");
}

#[test]
fn actions_have_the_shares_of_the_paper() {
    let options = touches::Options::default();
    let mut figures = TouchProfile::default();
    let mut sizes = 0_u128;
    for operation in touches::actions(&options).expect("sizes in order") {
        figures.take(&operation);
        if let TouchOperation::Allocate { size, .. } = operation {
            assert!((options.smallest..=options.largest).contains(&size));
            sizes += u128::from(size);
        }
    }
    assert_eq!(figures.operations, 1_000_000);
    // Within five standard deviations, as actions without a live block are drawn again.
    let near = |count: u64, share: u64| count.abs_diff(share) < 2500;
    assert!(near(figures.allocations, 100_000) && near(figures.frees, 100_000));
    assert!(near(figures.reads, 400_000) && near(figures.writes, 400_000));
    let mean = sizes / u128::from(figures.allocations);
    assert!(
        mean.abs_diff(u128::from(options.largest / 2)) < 25_000,
        "{mean}"
    );
}

#[test]
fn actions_can_be_done_and_are_the_same_every_time() {
    let options = touches::Options {
        actions: 30_000,
        smallest: 8,
        largest: 8,
        ..touches::Options::default()
    };
    let all = |seed| -> Vec<TouchOperation> {
        let options = touches::Options { seed, ..options };
        touches::actions(&options)
            .expect("sizes in order")
            .collect()
    };
    let drawn = all(1);
    assert_eq!(drawn, all(1));
    assert_ne!(drawn, all(2));
    let text: String = drawn.iter().map(|own| format!("{own}\n")).collect();
    let read = TouchReader::new(text.as_bytes(), Path::new("x.touches"));
    assert!(read.map(|own| own.expect("it can be done")).eq(drawn));
    for (smallest, largest) in [(0, 8), (9, 8), (1, 1 << 63)] {
        let options = touches::Options {
            smallest,
            largest,
            ..options
        };
        let error = touches::actions(&options).expect_err("no size");
        assert!(
            error.to_string().contains("smallest size from 1 on"),
            "{error}"
        );
    }
}

#[test]
fn recorded_touches_are_whole_and_show_what_they_stand_for() {
    let mut pages = std::collections::HashMap::new();
    for recorded in touches::RECORDED {
        let mut figures = TouchProfile::default();
        for operation in recorded.operations().expect("memory") {
            figures.take(&operation.unwrap_or_else(|error| panic!("{error}")));
        }
        // First touches alone.
        assert_eq!(figures.touched_slices, figures.reads + figures.writes);
        assert!(figures.allocations >= 600 && figures.operations <= 150_000);
        pages.insert(recorded.name, figures.peak_touched_slices);
    }
    // The vectors of the transform, and what a stream touches of a large table.
    assert!((6000..6500).contains(&pages["fft"]), "{pages:?}");
    assert!(pages["mc"] < 400, "{pages:?}");
    assert!(touches::recorded("mc").is_some() && touches::recorded("none").is_none());
}
