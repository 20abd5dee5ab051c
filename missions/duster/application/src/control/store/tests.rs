//! The store when it is full, and when its circle closes.

use std::vec::Vec;

use metes_duster_protocol::definitions::{Command, Event, Failure, Mode, Rates};
use proptest::prelude::*;

use super::{HEADER, Header, Kind, PAGES, PAGES_OF_SECTOR, SECTORS};
use crate::hardware::PAGE;
use crate::testing::{Bench, Told, Unit};

const START: Command<'_> = Command::StartAcquisition {
    probes: 3,
    rates: Rates::Objective,
    duration: 60,
};

/// A log that has gone round: the oldest record in sector `oldest`, all behind it full up to the sector before it but
/// `left`. Acquisitions change each hundred sectors.
fn filled(oldest: u32, left: u32) -> Unit {
    let mut unit = Unit::default();
    for number in 0..SECTORS - left {
        let sector = (oldest + number) % SECTORS;
        for record in 0..PAGES_OF_SECTOR / 2 {
            let header = Header {
                sequence: 1000 + number * (PAGES_OF_SECTOR / 2) + record,
                tail: oldest * PAGES_OF_SECTOR,
                length: 980,
                acquisition: (1 + number / 100) as u16,
                resets: 4,
                kind: Kind::Science,
                data: 0,
            };
            let page = sector * PAGES_OF_SECTOR + record * 2;
            unit.flash.page(page)[..HEADER].copy_from_slice(&header.bytes());
            unit.flash.page(page + 1).fill(0x55);
        }
    }
    unit
}

fn booted(unit: Unit) -> Bench {
    let mut bench = Bench::new(unit);
    bench.run(3000);
    assert_eq!(bench.control().mode(), Mode::Safe);
    bench
}

fn standby(bench: &mut Bench) {
    bench.done(&Command::SetMode {
        mode: Mode::Standby,
    });
}

#[test]
fn a_full_store_refuses_is_emptied_and_goes_round() {
    let mut bench = booted(filled(7, 1));
    let told = bench.take();
    let recovered = Event::StoreRecovered {
        records: (SECTORS - 1) * PAGES_OF_SECTOR / 2,
        torn: 0,
    };
    assert!(told.iter().any(|told| told.event() == Some(recovered)));
    standby(&mut bench);
    bench.done(&Command::SetMode { mode: Mode::AcqEnv });
    let full = [(1, None), (4, Some(Failure::StoreFull))];
    assert_eq!(bench.verified(&START), full);
    standby(&mut bench);
    bench.command(&Command::DeleteScience { acquisition: 1 });
    bench.run(1000);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
    bench.done(&Command::SetMode { mode: Mode::AcqEnv });
    bench.command(&START);
    bench.run(10_000);
    bench.command(&Command::StopAcquisition {});
    bench.run(1000);
    bench.take();
    // The next number behind the last one in the log.
    let acquisition = (1 + (SECTORS - 2) / 100 + 1) as u16;
    let mut bench = booted(bench.reset(PAGE).unit);
    standby(&mut bench);
    bench.done(&Command::SetMode { mode: Mode::Dump });
    bench.command(&Command::DumpScience {
        acquisition,
        first: 0,
        count: u32::MAX,
    });
    bench.run(30_000);
    let told = bench.take();
    let stored = told
        .iter()
        .filter(|told| told.packet().telemetry.kind() == (128, 129))
        .count();
    assert!(stored > 400, "{stored}");
    assert_eq!(Told::verification(&told).last(), Some(&(7, None)));
}

#[test]
fn science_that_finds_the_store_full_is_sent_and_told_once() {
    let mut bench = booted(filled(7, 2));
    standby(&mut bench);
    bench.done(&Command::SetMode { mode: Mode::AcqEnv });
    bench.command(&START);
    bench.run(61_000);
    let told = bench.take();
    let acquisition = (1 + (SECTORS - 3) / 100 + 1) as u16;
    let full = Event::StoreFull { acquisition };
    assert_eq!(
        told.iter()
            .filter(|told| told.event() == Some(full))
            .count(),
        1
    );
    let live = told
        .iter()
        .filter(|told| told.packet().telemetry.kind() == (128, 128))
        .count();
    assert_eq!(live, bench.core_1.made.len());
    assert_eq!(Told::verification(&told).last(), Some(&(7, None)));
}

#[test]
fn marks_never_close_the_circle() {
    let mut bench = booted(filled(7, 1));
    // Each reset leaves a mark in the sector that is kept for them.
    for _ in 0..PAGES_OF_SECTOR + 2 {
        bench = booted(bench.reset(PAGE).unit);
    }
    standby(&mut bench);
    bench.done(&Command::SetMode { mode: Mode::Dump });
    // The oldest record is still found: its data is none, so it is not sent, but it is there.
    bench.command(&Command::DumpScience {
        acquisition: 1,
        first: 0,
        count: 1,
    });
    bench.run(90_000);
    let told = bench.take();
    assert!(told.iter().any(|told| matches!(
        told.event(),
        Some(Event::DumpFinished { acquisition: 1, .. })
    )));
    // All of it can be deleted.
    standby(&mut bench);
    bench.command(&Command::DeleteScience {
        acquisition: u16::MAX,
    });
    bench.run(1000);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
}

proptest! {
    #[test]
    fn a_header_is_read_as_it_was_written(
        sequence in any::<u32>(), tail in 0..PAGES, length in any::<u16>(),
        acquisition in any::<u16>(), resets in any::<u16>(), data in any::<u16>(),
        kind in 0..3_u8, bit in 0..HEADER * 8,
    ) {
        let kind = [Kind::Science, Kind::Reset, Kind::Deletion][usize::from(kind)];
        let header = Header { sequence, tail, length, acquisition, resets, kind, data };
        let mut page = [0xff; PAGE];
        page[..HEADER].copy_from_slice(&header.bytes());
        prop_assert_eq!(Header::read(&page), Some(header));
        page[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(Header::read(&page), None);
    }

    #[test]
    fn any_flash_is_survived(
        pages in prop::collection::vec((0..PAGES, prop::collection::vec(any::<u8>(), PAGE)), 0..20),
        headers in prop::collection::vec((0..SECTORS, any::<u32>(), 0..PAGES, 0..1000_u16, any::<u16>()), 0..6),
    ) {
        let mut unit = Unit::default();
        for (page, bytes) in pages {
            unit.flash.page(page).copy_from_slice(&bytes);
        }
        for (sector, sequence, tail, length, acquisition) in headers {
            let header = Header {
                sequence, tail, length, acquisition, resets: 1, kind: Kind::Science, data: 0,
            };
            unit.flash.page(sector * PAGES_OF_SECTOR)[..HEADER].copy_from_slice(&header.bytes());
        }
        let mut bench = booted(unit);
        standby(&mut bench);
        bench.command(&Command::DeleteScience { acquisition: u16::MAX });
        bench.run(1500);
        // Deleted, or there was nothing: science can be stored in any case.
        let verified = Told::verification(&bench.take());
        prop_assert!(matches!(verified.last(), Some((7, None) | (4, Some(Failure::NoAcquisition)))), "{:?}", verified);
        bench.done(&Command::SetMode { mode: Mode::AcqEnv });
        bench.command(&START);
        bench.run(2000);
        bench.command(&Command::StopAcquisition {});
        bench.run(1000);
        let told = bench.take();
        let sent: Vec<_> = told.iter().filter(|told| told.packet().telemetry.kind() == (128, 128)).collect();
        prop_assert_eq!(sent.len(), bench.core_1.made.len());
    }
}
