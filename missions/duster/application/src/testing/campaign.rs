//! Any telecommands, in any number: what comes back is verification reports, and memory is empty at the end.
//!
//! *Invariant:* the same seed gives the same campaign.

use std::vec;
use std::vec::Vec;

use metes_duster_protocol::definitions::{Command, Mode, Report, TELECOMMANDS};
use metes_duster_protocol::value::Writer;
use metes_duster_protocol::{MAX_PACKET, checksum, generate};
use metes_random::Random;

use super::{Bench, MEMORY_BASE};

/// The one command that ends a campaign: the watchdog's reset follows it.
const RESTART: (u8, u8, u8) = (8, 1, 16);
/// Sequence count of telecommands that are scheduled, and of no other.
const SCHEDULED: u16 = 0x3fff;
/// Telecommands between two faults.
const FAULTS: u64 = 200;

/// What came of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Telecommands sent.
    pub telecommands: u64,
    /// Those of them that were accepted or refused, each once.
    pub answered: u64,
    /// Those that were accepted, scheduled ones included, and what became of them.
    pub accepted: u64,
    /// Not begun.
    pub not_started: u64,
    /// Not completed.
    pub not_completed: u64,
    /// Completed.
    pub completed: u64,
    /// Telemetry packets of all kinds.
    pub packets: u64,
    /// Bytes of all partitions that were live at the end.
    pub live_at_end: u32,
}

/// Sends so many telecommands, most of them well formed, with faults in between.
///
/// # Panics
/// If the unit sends what is no telemetry, or nothing at all.
pub fn run(seed: u64, telecommands: u64) -> Outcome {
    let mut random = Random::new(seed);
    let mut bench = Bench::safe();
    let mut outcome = Outcome::default();
    for number in 0..telecommands {
        let (packet, damaged) = telecommand(&mut random, (number % u64::from(SCHEDULED)) as u16);
        bench.send(&packet);
        // A damaged one may leave the stream lost until there is silence.
        bench.run(if damaged { 80 } else { 20 });
        if number % FAULTS == FAULTS - 1 {
            fault(&mut random, &mut bench);
        }
        count(&mut bench, &mut outcome);
    }
    outcome.telecommands = telecommands;
    end(&mut bench, &mut outcome);
    outcome
}

/// Ends what is under way and counts what comes of it.
fn end(bench: &mut Bench, outcome: &mut Outcome) {
    bench
        .unit
        .supplies
        .iter_mut()
        .for_each(|supply| supply.silent = false);
    bench.unit.flash.failing = 0;
    bench.run(2500);
    count(bench, outcome);
    let before = *outcome;
    for command in [
        Command::SetMode { mode: Mode::Safe },
        Command::ResetSchedule {},
    ] {
        bench.command(&command);
    }
    bench.run(5000);
    count(bench, outcome);
    // Periodic housekeeping on its way may hold the line for a moment.
    for _ in 0..200 {
        if bench.used() + bench.core_1.used() == 0 {
            break;
        }
        bench.run(7);
    }
    count(bench, outcome);
    assert_eq!(
        outcome.answered,
        before.answered + 2,
        "the last two are heard"
    );
    outcome.answered = before.answered;
    outcome.live_at_end = bench.used() + bench.core_1.used();
    let ended = outcome.not_started + outcome.not_completed + outcome.completed;
    assert_eq!(outcome.accepted, ended, "each that is accepted ends");
}

fn count(bench: &mut Bench, outcome: &mut Outcome) {
    for told in bench.take() {
        outcome.packets += 1;
        match told.report() {
            Some(Report::Accepted { request }) => {
                outcome.accepted += 1;
                outcome.answered += u64::from(request.sequence & 0x3fff != SCHEDULED);
            }
            Some(Report::Refused { .. }) => outcome.answered += 1,
            Some(Report::NotStarted { .. }) => outcome.not_started += 1,
            Some(Report::NotCompleted { .. }) => outcome.not_completed += 1,
            Some(Report::Completed { .. }) => outcome.completed += 1,
            _ => {}
        }
    }
}

/// A telecommand, and whether its frame is damaged.
fn telecommand(random: &mut Random, sequence: u16) -> (Vec<u8>, bool) {
    let (service, subtype, data) = if random.below(8) == 0 {
        let data = (0..random.below(40))
            .map(|_| random.below(256) as u8)
            .collect();
        (random.below(256) as u8, random.below(40) as u8, data)
    } else {
        well_formed(random)
    };
    let mut packet = packet(service, subtype, sequence, &data);
    match random.below(20) {
        0 => {
            let byte = 6 + random.below(packet.len() as u64 - 6) as usize;
            packet[byte] ^= 1 << random.below(8);
            (packet, true)
        }
        1 => {
            packet.truncate(6 + random.below(packet.len() as u64 - 6) as usize);
            (packet, true)
        }
        _ => (packet, false),
    }
}

/// Service, subtype and content of a command of the table.
fn well_formed(random: &mut Random) -> (u8, u8, Vec<u8>) {
    let row = loop {
        let row = &TELECOMMANDS[random.below(TELECOMMANDS.len() as u64) as usize];
        if row.key != RESTART {
            break row;
        }
    };
    let mut data = vec![0; MAX_PACKET];
    let mut writer = Writer::new(&mut data);
    if row.key.0 == 8 {
        writer.put(&[row.key.2]);
    }
    let mut choose =
        |least: i64, greatest: i64| least + random.below((greatest - least + 1) as u64) as i64;
    generate::fields(row.fields, &mut choose, &mut writer);
    let length = writer.length().unwrap_or(0);
    data.truncate(length);
    // Some addresses are those of memory, some times near.
    if row.key.0 == 6 && random.below(2) == 0 {
        data[..4].copy_from_slice(&(MEMORY_BASE + random.below(70_000) as u32).to_be_bytes());
        if row.key.1 != 2 {
            data[4..8].copy_from_slice(&(random.below(9_000) as u32).to_be_bytes());
        }
    }
    if row.key == (11, 4, 0) {
        let (service, subtype, nested) = loop {
            let nested = well_formed(random);
            if nested.0 != 11 {
                break nested;
            }
        };
        data.truncate(1);
        data.extend_from_slice(&(random.below(400_000) as u32).to_be_bytes());
        data.extend_from_slice(&[0, 0]);
        data.extend(packet(service, subtype, SCHEDULED, &nested));
    }
    (row.key.0, row.key.1, data)
}

/// A telecommand with a right checksum, whatever it holds.
fn packet(service: u8, subtype: u8, sequence: u16, data: &[u8]) -> Vec<u8> {
    let [high, low] = (0xc000 | sequence & 0x3fff).to_be_bytes();
    let [long, short] = (data.len() as u16 + 6).to_be_bytes();
    let mut packet = vec![
        0x18, 0x2a, high, low, long, short, 0x2f, service, subtype, 0, 0,
    ];
    packet.extend_from_slice(data);
    let crc = checksum::of(&packet);
    packet.extend_from_slice(&crc.to_be_bytes());
    packet
}

/// Something goes wrong, or right again.
fn fault(random: &mut Random, bench: &mut Bench) {
    let supply = random.below(2) as usize;
    match random.below(6) {
        0 => bench.unit.supplies[0].tripped = true,
        1 => bench.unit.supplies[supply].silent ^= true,
        2 => bench.unit.supplies[supply].garbled = random.below(8) as u32,
        3 => bench.unit.flash.failing = random.below(2) as u32,
        4 => bench.unit.supplies[0].stuck ^= true,
        // A pause: an acquisition goes on, what is scheduled falls due.
        _ => bench.run(2000),
    }
}

/// Drives a unit by bytes: raw ones on the line, telecommands with right checksums, time, faults.
///
/// # Panics
/// If the unit sends what is no telemetry, does not answer a ping afterwards, or keeps memory.
pub fn feed(bytes: &[u8]) {
    let mut bench = Bench::safe();
    let mut rest = bytes;
    let mut sequence = 0;
    while let Some((&kind, behind)) = rest.split_first() {
        let length = usize::from(kind >> 2).min(behind.len());
        let (part, behind) = behind.split_at(length);
        rest = behind;
        match (kind & 3, part) {
            (0, raw) => bench.send(raw),
            (1, [row, data @ ..]) => {
                let row = &TELECOMMANDS[usize::from(*row) % TELECOMMANDS.len()];
                let function = if row.key.0 == 8 {
                    &[row.key.2][..]
                } else {
                    &[]
                };
                if row.key != RESTART {
                    let data = [function, data].concat();
                    sequence += 1;
                    bench.send(&packet(row.key.0, row.key.1, sequence, &data));
                }
            }
            (2, [steps, ..]) => bench.run(u32::from(*steps) * 4),
            (3, [what, ..]) => {
                let mut random = Random::new((*what).into());
                fault(&mut random, &mut bench);
            }
            _ => {}
        }
        bench.run(10);
    }
    // All that is on the line is heard, and then silence.
    while !bench.unit.to_unit.is_empty() {
        bench.run(100);
    }
    bench.run(200);
    bench.take();
    let mut outcome = Outcome::default();
    // What was accepted before is not counted.
    bench
        .unit
        .supplies
        .iter_mut()
        .for_each(|supply| supply.silent = false);
    bench.unit.flash.failing = 0;
    for command in [
        Command::SetMode { mode: Mode::Safe },
        Command::ResetSchedule {},
        Command::Ping {},
    ] {
        bench.command(&command);
    }
    bench.run(5000);
    for _ in 0..200 {
        if bench.used() + bench.core_1.used() == 0 {
            break;
        }
        bench.run(7);
    }
    count(&mut bench, &mut outcome);
    assert!(outcome.answered >= 3, "the last ones are heard");
    assert_eq!(bench.used() + bench.core_1.used(), 0, "memory is empty");
}
