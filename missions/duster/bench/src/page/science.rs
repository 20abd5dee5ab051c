//! What telemetry has told of science so far, in bounded memory: the model of the page.
//!
//! *Invariant:* what comes twice, live and out of the store, counts once; memory is bounded by what is kept of each kind,
//! but for the numbers of what has been seen, which are ranges.

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};

use metes_duster_protocol::definitions::{EventHeader, FieldWindow, Housekeeping, SweepStep};
use metes_duster_protocol::telemetry::{SCIENCE_HEADER, ScienceHeader};
use metes_duster_protocol::value::{Reader, Value as _};
use metes_duster_protocol::{
    Event, Mode, Probe, Report, Telemetry, definitions::ScienceKind, samples,
};
use serde::Serialize;

use super::langmuir::{self, Fit};
use super::ranges::Ranges;
use super::record::Record;
use super::text::text;
use super::windows::Windows;

/// Most sweeps, impacts and reports that are kept of each.
const KEPT: usize = 1024;
/// Most impacts whose samples are kept.
const PULSES: usize = 256;

/// What is measured: how a code becomes a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// Unit of the value.
    pub unit: &'static str,
    /// Value of one code.
    pub scale: f64,
}

/// What the page knows of a probe.
#[derive(Clone, Debug)]
pub(super) struct ProbeRecord {
    pub(super) rate: Option<u16>,
    pub(super) samples: u64,
    pub(super) record: Record,
    /// Which samples of an acquisition have been seen, by acquisition and rate.
    seen: BTreeMap<(u16, u16), Ranges>,
    /// When sample 0 was taken, by acquisition and rate, in microseconds since boot.
    begins: BTreeMap<(u16, u16), u64>,
}

impl ProbeRecord {
    pub(super) fn missing(&self) -> u64 {
        self.seen.values().map(Ranges::missing).sum()
    }
}

/// A sweep, as far as it has come.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sweep {
    pub(super) id: u64,
    pub(super) packet: u64,
    pub(super) acquisition: u16,
    pub(super) rate: u16,
    pub(super) time: u64,
    /// By index of the first sample: code, index, samples, sum.
    #[serde(serialize_with = "steps")]
    pub(super) steps: BTreeMap<u32, (i16, u16, i32)>,
    /// Made when it is asked for, and again when steps have come.
    #[serde(skip)]
    fitted: OnceCell<Result<Fit, &'static str>>,
}

fn steps<S: serde::Serializer>(
    steps: &BTreeMap<u32, (i16, u16, i32)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        steps
            .iter()
            .map(|(&first, &(code, count, sum))| (code, first, count, sum)),
    )
}

impl Sweep {
    /// Mean current over bias, in the order of the bias.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = self
            .steps
            .values()
            .filter(|step| step.1 > 0)
            .map(|&(code, count, sum)| (f64::from(code), f64::from(sum) / f64::from(count)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    pub(super) fn fit(&self) -> &Result<Fit, &'static str> {
        self.fitted.get_or_init(|| langmuir::fit(&self.points()))
    }
}

/// An impact.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Impact {
    pub(super) id: u64,
    pub(super) packet: u64,
    pub(super) acquisition: u16,
    pub(super) rate: u16,
    /// When its first sample was taken, in microseconds since boot, as the report of the event says.
    pub(super) time: u64,
    pub(super) detected: u64,
    pub(super) peak: i32,
    pub(super) charge: i32,
    /// When the first of the samples was taken.
    pub(super) begins: u64,
    pub(super) samples: Vec<i32>,
}

/// A report of service 5.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Said {
    pub(super) id: u64,
    pub(super) packet: u64,
    pub(super) time: u64,
    pub(super) severity: u8,
    pub(super) text: String,
}

/// What has come so far.
#[derive(Clone, Debug)]
pub struct Science {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) lost: u64,
    pub(super) unread: u64,
    pub(super) now: u64,
    pub(super) mode: Option<Mode>,
    pub(super) ended: bool,
    pub(super) probes: [ProbeRecord; 3],
    pub(super) windows: Windows,
    pub(super) sweeps: VecDeque<Sweep>,
    pub(super) swept: u64,
    pub(super) dust: VecDeque<Impact>,
    pub(super) impacts: u64,
    pub(super) slowest: u64,
    pub(super) reports: VecDeque<Said>,
    reported: u64,
    pub(super) services: BTreeMap<(u8, u8), u64>,
    sequence: Option<u16>,
    rest: Vec<u8>,
}

/// The probe whose sweeps, windows and impacts these are.
const FIELD: Probe = Probe::Efield;

impl Science {
    /// Nothing yet; a picture over time has at most `places` places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let probe = || ProbeRecord {
            rate: None,
            samples: 0,
            record: Record::new(places),
            seen: BTreeMap::new(),
            begins: BTreeMap::new(),
        };
        Science {
            packets: 0,
            bytes: 0,
            lost: 0,
            unread: 0,
            now: 0,
            mode: None,
            ended: false,
            probes: [probe(), probe(), probe()],
            windows: Windows::new(places),
            sweeps: VecDeque::new(),
            swept: 0,
            dust: VecDeque::new(),
            impacts: 0,
            slowest: 0,
            reports: VecDeque::new(),
            reported: 0,
            services: BTreeMap::new(),
            sequence: None,
            rest: Vec::new(),
        }
    }

    /// Takes bytes of the line as they come, packets back to back. Amortised O(bytes).
    pub fn take_bytes(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(&[a, _, _, _, e, f]) = self.rest[at..].first_chunk() {
            let length = usize::from(u16::from_be_bytes([e, f])) + 7;
            // Not the begin of a telemetry packet: the line is out of step until one begins.
            if a >> 3 != 1 || length > metes_duster_protocol::MAX_PACKET {
                self.unread += 1;
                at += 1;
                continue;
            }
            let Some(packet) = self.rest.get(at..at + length) else {
                break;
            };
            let packet = packet.to_vec();
            self.take(&packet);
            at += length;
        }
        self.rest.drain(..at);
    }

    /// Takes a packet of telemetry. O(its samples), amortised.
    pub fn take(&mut self, packet: &[u8]) {
        let Ok(received) = Telemetry::decode(packet) else {
            self.unread += 1;
            return;
        };
        self.packets += 1;
        self.bytes += packet.len() as u64;
        if let Some(last) = self.sequence {
            self.lost += u64::from(received.sequence.wrapping_sub(last + 1) & 0x3fff);
        }
        self.sequence = Some(received.sequence);
        self.now = received.time.microseconds();
        *self.services.entry(received.telemetry.kind()).or_default() += 1;
        match received.telemetry {
            Telemetry::Report(Report::ModeReport { mode })
            | Telemetry::Housekeeping(Housekeeping::System { mode, .. }) => self.mode = Some(mode),
            Telemetry::Event(event) => self.event(&event, &packet[SOURCE..packet.len() - 2]),
            Telemetry::Report(Report::Science { .. } | Report::StoredScience { .. }) => {
                let data = &packet[SOURCE..packet.len() - 2];
                if self.science(data).is_none() {
                    self.unread += 1;
                }
            }
            _ => {}
        }
    }

    /// Says that no more comes.
    pub fn end(&mut self) {
        self.ended = true;
    }

    fn event(&mut self, event: &Event, data: &[u8]) {
        match *event {
            Event::ModeChanged { to, .. } => self.mode = Some(to),
            Event::Dust {
                time,
                detected,
                peak,
                charge,
                ..
            } => {
                self.impacts += 1;
                self.slowest = self.slowest.max(detected.saturating_sub(time));
                let impact = self.impact(detected);
                impact.time = time;
                impact.peak = peak;
                impact.charge = charge;
            }
            _ => {}
        }
        self.reported += 1;
        let said = Said {
            id: self.reported,
            packet: self.packets,
            time: self.now,
            severity: event.kind().1,
            text: text(event, data),
        };
        push(&mut self.reports, said);
    }

    /// The impact that was detected then; a new one if it is not known.
    fn impact(&mut self, detected: u64) -> &mut Impact {
        let packet = self.packets;
        let at = self.dust.iter().rposition(|one| one.detected == detected);
        let at = at.unwrap_or_else(|| {
            let known = self.dust.len();
            if let Some(old) = known.checked_sub(PULSES) {
                self.dust[old].samples = Vec::new();
            }
            let impact = Impact {
                id: detected,
                detected,
                ..Impact::default()
            };
            push(&mut self.dust, impact);
            self.dust.len() - 1
        });
        self.dust[at].packet = packet;
        &mut self.dust[at]
    }

    fn science(&mut self, data: &[u8]) -> Option<()> {
        let header = ScienceHeader::read(data)?;
        let body = data.get(SCIENCE_HEADER..)?;
        match header.kind {
            ScienceKind::Samples => self.samples(&header, body),
            ScienceKind::Sweep => self.sweep(&header, body),
            ScienceKind::Event => self.pulse(&header, body),
            ScienceKind::Field => self.field(&header, body),
        }
    }

    fn samples(&mut self, header: &ScienceHeader, body: &[u8]) -> Option<()> {
        let count = usize::from(header.count);
        samples::get(body, count.checked_sub(1)?)?;
        let probe = &mut self.probes[header.probe as usize];
        let first = u64::from(header.first);
        let seen = probe
            .seen
            .entry((header.acquisition, header.rate))
            .or_default();
        let new = seen.add(first, first + count as u64);
        let since = (first as f64 * period(header)) as u64;
        let named = (header.acquisition, header.rate);
        let begin = header.time.saturating_sub(since);
        probe.begins.entry(named).or_insert(begin);
        probe.samples += new;
        probe.rate = Some(header.rate);
        if new > 0 {
            let values = (0..count).filter_map(|index| samples::get(body, index));
            probe.record.add(header.time, period(header), values);
        }
        Some(())
    }

    fn sweep(&mut self, header: &ScienceHeader, body: &[u8]) -> Option<()> {
        let reader = &mut Reader::new(body);
        let packet = self.packets;
        let known = self
            .sweeps
            .iter()
            .rposition(|one| one.acquisition == header.acquisition);
        let at = known.unwrap_or_else(|| {
            self.swept += 1;
            let sweep = Sweep {
                id: self.swept,
                packet,
                acquisition: header.acquisition,
                rate: header.rate,
                time: header.time,
                steps: BTreeMap::new(),
                fitted: OnceCell::new(),
            };
            push(&mut self.sweeps, sweep);
            self.sweeps.len() - 1
        });
        let sweep = &mut self.sweeps[at];
        sweep.packet = packet;
        sweep.fitted = OnceCell::new();
        sweep.time = sweep.time.min(header.time);
        for _ in 0..header.count {
            let step = SweepStep::read(reader).ok()?;
            sweep
                .steps
                .insert(step.first, (step.code, step.count, step.sum));
        }
        Some(())
    }

    fn pulse(&mut self, header: &ScienceHeader, body: &[u8]) -> Option<()> {
        let reader = &mut Reader::new(body);
        let pulse = EventHeader::read(reader).ok()?;
        let packed = reader.rest();
        let values: Option<Vec<i32>> = (0..usize::from(header.count))
            .map(|index| samples::get(packed, index))
            .collect();
        let impact = self.impact(pulse.detected);
        impact.acquisition = header.acquisition;
        impact.rate = header.rate;
        impact.begins = header.time;
        impact.peak = pulse.peak;
        impact.charge = pulse.charge;
        impact.samples = values?;
        Some(())
    }

    fn field(&mut self, header: &ScienceHeader, body: &[u8]) -> Option<()> {
        let reader = &mut Reader::new(body);
        if header.probe != FIELD {
            return None;
        }
        // Packets of windows may have no time of their own; the samples that they are about have.
        let begins = &self.probes[FIELD as usize].begins;
        let begin = begins.get(&(header.acquisition, header.rate));
        let (from, since) = match (header.time, begin) {
            (0, Some(&begin)) => (begin, 0),
            _ => (header.time, header.first),
        };
        for _ in 0..header.count {
            let window = FieldWindow::read(reader).ok()?;
            let behind = window.first.wrapping_sub(since);
            let at = from + (f64::from(behind) * period(header)) as u64;
            self.windows
                .add((header.acquisition, window.first), at, &window);
        }
        Some(())
    }
}

/// Where source data begins.
const SOURCE: usize = metes_duster_protocol::telemetry::HEADER;

/// Microseconds between two samples.
fn period(header: &ScienceHeader) -> f64 {
    1e6 / f64::from(header.rate.max(1))
}

fn push<T>(kept: &mut VecDeque<T>, one: T) {
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(one);
}
