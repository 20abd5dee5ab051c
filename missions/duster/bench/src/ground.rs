//! The ground's side of the line: packets out of bytes, and what is known of the unit by them.
//!
//! *Invariant:* a packet counts when its checksum is right; bytes that belong to none are counted and left.

use std::collections::BTreeMap;

use metes_duster_instrument::Truth;
use metes_duster_protocol::definitions::{Acquisitions, Event, Housekeeping, Report, System};
use metes_duster_protocol::telemetry::Damage;
use metes_duster_protocol::{
    Failure, MAX_PACKET, Mode, RequestId, ScienceHeader, Telemetry, definitions,
};

use crate::science::{Science, Wrong};

/// Least bytes of a packet: headers, time, checksum.
const LEAST: usize = 21;

/// How far a telecommand has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// It was accepted.
    pub accepted: bool,
    /// It was completed.
    pub completed: bool,
    /// It has failed, and why.
    pub failed: Option<Failure>,
    /// It was not even accepted.
    pub refused: bool,
}

impl Verification {
    /// Whether nothing more is to come.
    #[must_use]
    pub fn over(&self) -> bool {
        self.completed || self.failed.is_some()
    }
}

/// What is known of the unit.
#[derive(Debug, Default)]
pub struct Ground {
    bytes: Vec<u8>,
    /// Packets that came, bytes that were of none, packets that are missing by their counts.
    pub packets: u64,
    /// See [`packets`](Self::packets).
    pub skipped: u64,
    /// See [`packets`](Self::packets).
    pub missing: u64,
    last: Option<u16>,
    /// Telecommands by their sequence counts, as far as something came of them.
    pub verifications: BTreeMap<u16, Verification>,
    /// The mode, as told last.
    pub mode: Option<Mode>,
    /// Events since they were taken last.
    events: Vec<Event>,
    /// How often each event came, by number.
    pub counts: BTreeMap<u8, u64>,
    /// The unit's housekeeping, as told last.
    pub system: Option<System>,
    /// Of the high voltage, as told last.
    pub supply: Option<(definitions::SupplyState, definitions::Supplies)>,
    /// Of the acquisition, as told last.
    pub acquisitions: Option<Acquisitions>,
    /// Of each partition: size, the most bytes in use, allocations, refusals, worst nanoseconds.
    pub partitions: [definitions::MemoryOfPartition; 7],
    /// Science.
    pub science: Science,
    /// A report of the connection test has come.
    pub alive: u64,
}

impl Ground {
    /// Bytes have come.
    pub fn take(&mut self, bytes: &[u8], truth: &Truth) {
        self.bytes.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.bytes);
        let mut at = 0;
        while let Some(length) = self.length(&held[at..]) {
            match length {
                Some(length) => {
                    let packet = &held[at..at + length];
                    match Telemetry::decode(packet) {
                        Ok(received) => {
                            self.count(received.sequence);
                            self.obey(&received.telemetry, truth);
                            at += length;
                        }
                        // The checksum is right: another definition than ours.
                        Err(Damage::Unknown | Damage::Content) => {
                            self.packets += 1;
                            self.science.is_wrong(Wrong {
                                header: None,
                                stored: false,
                                what: "a packet that no definition knows".to_owned(),
                            });
                            at += length;
                        }
                        Err(_) => {
                            self.skipped += 1;
                            at += 1;
                        }
                    }
                }
                None => {
                    self.skipped += 1;
                    at += 1;
                }
            }
        }
        self.bytes = held[at..].to_vec();
    }

    /// The length of the packet that `bytes` begin with, if they do; none while more must come.
    fn length(&self, bytes: &[u8]) -> Option<Option<usize>> {
        let &[a, b, c, _, e, f, ..] = bytes else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([e, f])) + 7;
        let begins = a & 0xf8 == 0x08
            && u16::from_be_bytes([a, b]) & 0x7ff == metes_duster_protocol::APID
            && c >> 6 == 3
            && (LEAST..=MAX_PACKET).contains(&length);
        if !begins {
            Some(None)
        } else if bytes.len() < length {
            None
        } else {
            Some(Some(length))
        }
    }

    fn count(&mut self, sequence: u16) {
        self.packets += 1;
        if let Some(last) = self.last {
            self.missing += u64::from(sequence.wrapping_sub(last).wrapping_sub(1) & 0x3fff);
        }
        self.last = Some(sequence);
    }

    /// The unit begins anew, so its counts do.
    pub fn reset(&mut self) {
        self.last = None;
        self.bytes.clear();
        self.mode = None;
    }

    fn of(&mut self, request: RequestId) -> &mut Verification {
        self.verifications
            .entry(request.sequence & 0x3fff)
            .or_default()
    }

    fn obey(&mut self, telemetry: &Telemetry<'_>, truth: &Truth) {
        match telemetry {
            Telemetry::Report(report) => self.report(report, truth),
            Telemetry::Housekeeping(housekeeping) => self.housekeeping(housekeeping),
            Telemetry::Event(event) => {
                *self.counts.entry(event.number()).or_default() += 1;
                if let Event::ModeChanged { to, .. } = *event {
                    self.mode = Some(to);
                }
                self.events.push(*event);
            }
        }
    }

    fn report(&mut self, report: &Report<'_>, truth: &Truth) {
        match *report {
            Report::Accepted { request } => self.of(request).accepted = true,
            Report::Completed { request } => self.of(request).completed = true,
            Report::Refused { request, code } => {
                let it = self.of(request);
                it.refused = true;
                it.failed = Some(code);
            }
            Report::NotStarted { request, code } | Report::NotCompleted { request, code } => {
                self.of(request).failed = Some(code);
            }
            Report::ModeReport { mode } => self.mode = Some(mode),
            Report::Alive {} => self.alive += 1,
            Report::Science {
                kind,
                probe,
                acquisition,
                rate,
                first,
                time,
                count,
                data,
            }
            | Report::StoredScience {
                kind,
                probe,
                acquisition,
                rate,
                first,
                time,
                count,
                data,
            } => {
                let header = ScienceHeader {
                    kind,
                    probe,
                    acquisition,
                    rate,
                    first,
                    time,
                    count,
                };
                let stored = matches!(report, Report::StoredScience { .. });
                self.science.take(&header, data.0, stored, truth);
            }
            _ => {}
        }
    }

    fn housekeeping(&mut self, housekeeping: &Housekeeping<'_>) {
        match *housekeeping {
            Housekeeping::System { mode, system } => {
                self.mode = Some(mode);
                self.system = Some(system);
            }
            Housekeeping::Supplies { hv_state, supplies } => {
                self.supply = Some((hv_state, supplies));
            }
            Housekeeping::Memory { memory } => {
                for (known, told) in self.partitions.iter_mut().zip(memory.partition) {
                    // A unit that began anew counts anew: the most of all is kept.
                    let peak = known.peak.max(told.peak);
                    let worst = known.worst.max(told.worst);
                    let refusals = known.refusals.max(told.refusals);
                    *known = told;
                    (known.peak, known.worst, known.refusals) = (peak, worst, refusals);
                }
            }
            Housekeeping::Acquisition { acquisitions } => self.acquisitions = Some(acquisitions),
            _ => {}
        }
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_duster_protocol::Time;

    fn packet(telemetry: &Telemetry<'_>, sequence: u16) -> Vec<u8> {
        let mut bytes = [0; MAX_PACKET];
        let length = telemetry.write(&mut bytes, sequence, Time::from_units(5));
        bytes[..length.expect("it fits")].to_vec()
    }

    #[test]
    fn packets_are_found_again_behind_what_is_lost() {
        let truth = Truth::new(1, 100_000_000);
        let request = RequestId {
            packet: 0x182a,
            sequence: 0xc007,
        };
        let accepted = Telemetry::Report(Report::Accepted { request });
        let completed = Telemetry::Report(Report::Completed { request });
        let mut stream = packet(&accepted, 1);
        // A byte of the second is lost.
        let mut cut = packet(&Telemetry::Report(Report::Alive {}), 2);
        cut.remove(9);
        stream.extend(cut);
        stream.extend(packet(&completed, 3));
        let whole = Telemetry::Report(Report::Alive {});
        stream.extend(packet(&whole, 4));
        for portion in [1, 7, 1000] {
            let mut ground = Ground::default();
            stream
                .chunks(portion)
                .for_each(|bytes| ground.take(bytes, &truth));
            assert_eq!((ground.packets, ground.missing, ground.alive), (3, 1, 1));
            let it = ground.verifications[&7];
            assert!(it.accepted && it.completed && it.over());
        }
    }
}
