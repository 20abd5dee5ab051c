//! An invented mission's telemetry, with the truth behind it: for tests, and for a look at the page without a unit.
//!
//! *Invariant:* a seed gives the same bytes for ever; packets are of the protocol, sequence counts without a gap.

use metes_duster_protocol::definitions::{
    EventHeader, FieldWindow, Mode, ModeCause, ScienceKind, SweepStep,
};
use metes_duster_protocol::telemetry::{
    HEADROOM, SCIENCE_HEADER, ScienceHeader, TRAILER, seal_science,
};
use metes_duster_protocol::value::{Value, Writer};
use metes_duster_protocol::{Event, MAX_PACKET, Probe, Report, Telemetry, Time, samples};
use metes_random::Random;
use serde::Serialize;

/// What was measured in truth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// Samples of each probe, in the order of the probes' numbers.
    pub samples: [Vec<i32>; 3],
    /// Each sweep: code, index of the first sample, samples, sum.
    pub sweeps: Vec<Vec<(i16, u32, u16, i32)>>,
    /// Each impact: time, detected (microseconds since boot), peak, charge.
    pub dust: Vec<(u64, u64, i32, i32)>,
    /// Each window: index of the first sample, mean, least, greatest, root of the mean square.
    pub windows: Vec<(u32, i32, i32, i32, u32)>,
}

/// A mission's telemetry, packet by packet.
#[derive(Clone, Debug, Default)]
pub struct Mission {
    /// The packets, in the order in which they were sent.
    pub packets: Vec<Vec<u8>>,
    /// What they should tell.
    pub truth: Truth,
}

/// Rates of the probes, in the order of their numbers.
const RATES: [u16; 3] = [5000, 1000, 10_000];
/// Samples of a window of the field.
const WINDOW: usize = 20;
/// When the acquisition begins, in microseconds since boot.
const BEGIN: u64 = 1_250_000;

impl Mission {
    /// An acquisition of so many seconds, then a sweep of 600 steps and one of 1000. O(samples).
    #[must_use]
    pub fn new(seed: u64, seconds: u32) -> Mission {
        let mut mission = Mission::default();
        let mut random = Random::new(seed);
        mission.mode(BEGIN, Mode::AcqFull);
        let grains = mission.grains(&mut random, seconds);
        for (number, rate) in RATES.iter().enumerate() {
            let count = usize::from(*rate) * seconds as usize;
            mission.truth.samples[number] = (0..count)
                .map(|index| sample(number, index, &grains, &mut random))
                .collect();
        }
        mission.field();
        for number in 0..3 {
            mission.samples(number);
        }
        let after = BEGIN + u64::from(seconds) * 1_000_000;
        mission.mode(after, Mode::Sweep);
        mission.sweep(after, 2, 600, &mut random);
        mission.sweep(after + 6_100_000, 3, 1000, &mut random);
        mission.mode(after + 17_000_000, Mode::Standby);
        mission
    }

    /// All bytes of the line.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.packets.concat()
    }

    fn mode(&mut self, at: u64, to: Mode) {
        let (from, cause) = (Mode::Standby, ModeCause::Command);
        self.send(
            at,
            &Telemetry::Event(Event::ModeChanged { from, to, cause }),
        );
        self.send(at, &Telemetry::Report(Report::ModeReport { mode: to }));
    }

    fn send(&mut self, at: u64, telemetry: &Telemetry<'_>) {
        let mut packet = vec![0; MAX_PACKET];
        let sequence = self.packets.len() as u16 & 0x3fff;
        let written = telemetry.write(&mut packet, sequence, Time::from_microseconds(at));
        packet.truncate(written.unwrap_or(0));
        self.packets.push(packet);
    }

    fn science(&mut self, header: &ScienceHeader, body: &[u8]) {
        let length = SCIENCE_HEADER + body.len();
        let mut block = vec![0; HEADROOM + length + TRAILER];
        header.write(&mut block[HEADROOM..]);
        block[HEADROOM + SCIENCE_HEADER..][..body.len()].copy_from_slice(body);
        let sequence = self.packets.len() as u16 & 0x3fff;
        let time = Time::from_microseconds(header.time);
        let packet = seal_science(&mut block, length, false, sequence, time);
        self.packets
            .push(packet.map_or_else(Vec::new, |range| block[range].to_vec()));
    }

    /// Impacts about every 0.7 s: index of the first sample of dust, codes. Their reports and pulses.
    fn grains(&mut self, random: &mut Random, seconds: u32) -> Vec<(usize, i32)> {
        let rate = usize::from(RATES[2]);
        let mut grains: Vec<(usize, i32)> = Vec::new();
        let mut at = 2000;
        while at + 200 < rate * seconds as usize {
            grains.push((at, random.between(40_000, 400_000) as i32));
            at += random.between(4000, 10_000) as usize;
        }
        for &(first, codes) in &grains {
            let time = BEGIN + first as u64 * 100;
            let detected = time + random.between(1000, 5900);
            let pulse: Vec<i32> = (0..64).map(|index| decayed(codes, index)).collect();
            let charge = pulse.iter().sum();
            let event = Event::Dust {
                first: first as u32,
                time,
                detected,
                peak: codes,
                charge,
            };
            self.send(detected, &Telemetry::Event(event));
            self.truth.dust.push((time, detected, codes, charge));
            let header = ScienceHeader {
                kind: ScienceKind::Event,
                probe: Probe::Dust,
                acquisition: 1,
                rate: RATES[2],
                first: first as u32 - 16,
                time: time - 1600,
                count: 80,
            };
            let mut body = written(&EventHeader {
                detected,
                peak: codes,
                charge,
            });
            let before = std::iter::repeat_n(0, 16);
            body.extend(packed(&before.chain(pulse).collect::<Vec<_>>()));
            self.science(&header, &body);
        }
        grains
    }

    fn samples(&mut self, number: usize) {
        let rate = RATES[number];
        let all = std::mem::take(&mut self.truth.samples[number]);
        for (packet, part) in all.chunks(samples::IN_PACKET).enumerate() {
            let first = packet * samples::IN_PACKET;
            let header = ScienceHeader {
                kind: ScienceKind::Samples,
                probe: [Probe::Langmuir, Probe::Efield, Probe::Dust][number],
                acquisition: 1,
                rate,
                first: first as u32,
                time: BEGIN + first as u64 * 1_000_000 / u64::from(rate),
                count: part.len() as u16,
            };
            self.science(&header, &packed(part));
        }
        self.truth.samples[number] = all;
    }

    fn field(&mut self) {
        let windows: Vec<FieldWindow> = self.truth.samples[1]
            .chunks_exact(WINDOW)
            .enumerate()
            .map(|(number, part)| window(number * WINDOW, part))
            .collect();
        for part in windows.chunks(40) {
            let first = part[0].first;
            let header = ScienceHeader {
                kind: ScienceKind::Field,
                probe: Probe::Efield,
                acquisition: 1,
                rate: RATES[1],
                first,
                time: BEGIN + u64::from(first) * 1000,
                count: part.len() as u16,
            };
            let body: Vec<u8> = part.iter().flat_map(written).collect();
            self.science(&header, &body);
        }
        self.truth.windows = windows
            .iter()
            .map(|one| (one.first, one.mean, one.least, one.greatest, one.rms))
            .collect();
    }

    fn sweep(&mut self, at: u64, acquisition: u16, count: u32, random: &mut Random) {
        let steps: Vec<SweepStep> = (0..count)
            .map(|number| {
                let code = -32_768 + (65_535 * number / (count - 1)) as i32;
                let current = characteristic(code);
                let stray = random.below(1001) as i32 - 500;
                SweepStep {
                    code: code as i16,
                    first: number * 50,
                    count: 50,
                    sum: (current * 50.0) as i32 + stray,
                }
            })
            .collect();
        for part in steps.chunks(80) {
            let first = part[0].first;
            let header = ScienceHeader {
                kind: ScienceKind::Sweep,
                probe: Probe::Langmuir,
                acquisition,
                rate: RATES[0],
                first,
                time: at + u64::from(first) * 200,
                count: part.len() as u16,
            };
            let body: Vec<u8> = part.iter().flat_map(written).collect();
            self.science(&header, &body);
        }
        let steps = steps
            .iter()
            .map(|one| (one.code, one.first, one.count, one.sum));
        self.truth.sweeps.push(steps.collect());
    }
}

fn sample(probe: usize, index: usize, grains: &[(usize, i32)], random: &mut Random) -> i32 {
    let turn = index as f64 / f64::from(RATES[probe]) * std::f64::consts::TAU;
    let noise = random.below(401) as i32 - 200;
    let signal = match probe {
        0 => 30_000.0 + 8000.0 * (turn * 0.2).sin(),
        1 => 120_000.0 * (turn * 0.3).sin() + 20_000.0 * (turn * 3.0).sin(),
        _ => {
            let hit = grains.iter().rfind(|grain| grain.0 <= index);
            hit.map_or(0.0, |&(first, codes)| {
                f64::from(decayed(codes, index - first))
            })
        }
    };
    signal as i32 + noise
}

/// A pulse, so many samples behind its peak.
fn decayed(codes: i32, behind: usize) -> i32 {
    (f64::from(codes) * (-(behind as f64) / 10.0).exp()) as i32
}

/// What a Langmuir probe draws at a code of its bias, in codes.
fn characteristic(code: i32) -> f64 {
    let x = f64::from(code - 4000) / 6000.0;
    if x < 0.0 {
        60_000.0 * x.exp() - 400.0 * (1.0 - x)
    } else {
        60_000.0 * (1.0 + x) - 400.0 * (-x).exp()
    }
}

fn window(first: usize, part: &[i32]) -> FieldWindow {
    let sum: i64 = part.iter().map(|&one| i64::from(one)).sum();
    let square: i64 = part
        .iter()
        .map(|&one| i64::from(one) * i64::from(one))
        .sum();
    let count = part.len() as i64;
    FieldWindow {
        first: first as u32,
        mean: (sum / count) as i32,
        least: part.iter().copied().min().unwrap_or(0),
        greatest: part.iter().copied().max().unwrap_or(0),
        rms: (square / count).isqrt() as u32,
    }
}

fn packed(values: &[i32]) -> Vec<u8> {
    let mut bytes = vec![0; samples::packed(values.len())];
    for (index, &value) in values.iter().enumerate() {
        samples::put(&mut bytes, index, value);
    }
    bytes
}

fn written<'a>(value: &impl Value<'a>) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut writer = Writer::new(&mut bytes);
    value.write(&mut writer);
    let length = writer.length().unwrap_or(0);
    bytes.truncate(length);
    bytes
}
