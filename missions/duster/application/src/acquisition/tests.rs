//! Core 1 on front ends that are functions of the number of the sample.

use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::declared::PARTITIONS;
use crate::shared::Order;

/// Three probes whose samples are functions of their number (and of the bias), behind FIFOs.
struct Fake {
    now: u64,
    on: bool,
    truth: fn(Probe, u32, i16) -> i32,
    sent: [[u32; 2]; 3],
    rate: [u32; 3],
    produced: [u32; 3],
    fifo: [VecDeque<(u32, i32)>; 3],
    /// A sample found the FIFO full: none is kept until it was found empty.
    overflow: [bool; 3],
    /// The code under which each sample of the Langmuir probe was converted.
    codes: Vec<i16>,
    detected: Vec<u64>,
    /// Sets of these milliseconds are late: nothing is taken then.
    held: fn(u64) -> bool,
}

impl Fake {
    fn new(truth: fn(Probe, u32, i16) -> i32, held: fn(u64) -> bool) -> Fake {
        Fake {
            now: 0,
            on: false,
            truth,
            sent: [[0; 2]; 3],
            rate: [0; 3],
            produced: [0; 3],
            fifo: Default::default(),
            overflow: [false; 3],
            codes: Vec::new(),
            detected: Vec::new(),
            held,
        }
    }

    /// A millisecond: samples are produced, and what is sent arrives.
    fn millisecond(&mut self) {
        self.now += 1000;
        if !self.on {
            return;
        }
        for (probe, bus) in BUSES.iter().enumerate() {
            let rate = (self.sent[probe][1] & 0xffff) * 10;
            if rate != self.rate[probe] {
                self.rate[probe] = rate;
                self.produced[probe] = 0;
                self.fifo[probe].clear();
                self.overflow[probe] = false;
                if probe == 0 {
                    self.codes.clear();
                }
            }
            let code = self.sent[probe][0] as u16 as i16;
            for _ in 0..rate / 1000 {
                let index = self.produced[probe];
                self.produced[probe] += 1;
                if probe == 0 {
                    self.codes.push(code);
                }
                self.overflow[probe] |= self.fifo[probe].len() == bus.fifo;
                if !self.overflow[probe] {
                    let value = (self.truth)(Probe::ALL[probe], index, code);
                    self.fifo[probe].push_back((index, value));
                }
            }
        }
    }
}

impl FrontEnds for Fake {
    fn take(&mut self, probe: Probe, frames: &mut [u32; MOST_FRAMES]) -> bool {
        if !self.on || (self.held)(self.now / 1000) {
            return false;
        }
        let probe = probe as usize;
        for frame in &mut frames[..BUSES[probe].frames] {
            *frame = match self.fifo[probe].pop_front() {
                Some((index, value)) => VALID | (index & 7) << 20 | value as u32 & 0xf_ffff,
                None => {
                    self.overflow[probe] = false;
                    self.produced[probe] & 0xf_ffff
                }
            };
        }
        true
    }

    fn send(&mut self, probe: Probe, number: usize, frame: u32) {
        self.sent[probe as usize][number] = frame;
    }

    fn run(&mut self, on: bool) {
        self.on = on;
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn detected(&mut self) {
        self.detected.push(self.now);
    }
}

/// Science data as it came to core 0: kind, probe, first, count, data.
struct Science {
    kind: u8,
    probe: usize,
    first: u32,
    count: usize,
    data: Vec<u8>,
}

fn read(block: &Block) -> Science {
    let bytes = block.bytes();
    let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    let it = &bytes[HEADROOM..HEADROOM + length];
    Science {
        kind: it[0],
        probe: it[1].into(),
        first: u32::from_be_bytes(it[6..10].try_into().unwrap()),
        count: u16::from_be_bytes(it[18..20].try_into().unwrap()).into(),
        data: it[20..].to_vec(),
    }
}

fn samples(data: &[u8], count: usize) -> Vec<i32> {
    let bit = |at: usize| i32::from(data[at / 8] >> (7 - at % 8) & 1);
    let sample = |number: usize| {
        let value = (0..20).fold(0, |value, digit| value << 1 | bit(number * 20 + digit));
        value << 12 >> 12
    };
    (0..count).map(sample).collect()
}

struct Bench {
    acquisition: Acquisition,
    front: Fake,
    shared: &'static Shared,
    science: Vec<Science>,
    reports: Vec<Report>,
}

impl Bench {
    fn new(front: Fake) -> Bench {
        let shared: &'static Shared = Box::leak(Box::new(Shared::new()));
        let partition = |number: usize| {
            let memory = std::vec![0; PARTITIONS[number].size].leak();
            Partition::new(number, memory)
        };
        let partitions = Partitions {
            langmuir: partition(PARTITION_LANGMUIR),
            efield: partition(PARTITION_EFIELD),
            dust: partition(PARTITION_DUST),
        };
        let mut front = front;
        Bench {
            acquisition: Acquisition::new(shared, partitions, &mut front),
            front,
            shared,
            science: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn order(&mut self, order: Order) {
        self.shared.orders.put(order).unwrap();
    }

    /// So many milliseconds of both cores.
    fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.front.millisecond();
            let millisecond = self.front.now / 1000;
            self.acquisition.acquire(&mut self.front);
            if millisecond.is_multiple_of(2) {
                self.acquisition.detect(&mut self.front);
            }
            if millisecond % 10 == 1 {
                self.acquisition.sweep(&mut self.front);
            }
            if millisecond % 20 == 2 {
                self.acquisition.field(&self.front);
            }
            if millisecond % 10 == 5 {
                self.acquisition.snapshot();
            }
            if millisecond % 10 == 3 {
                self.acquisition.orders(&mut self.front);
            }
            while let Some(block) = self.shared.science.take() {
                self.science.push(read(&block));
                self.shared.freed.put(block).unwrap();
            }
            while let Some(report) = self.shared.reports.take() {
                self.reports.push(report);
            }
        }
    }

    /// All samples of a probe that came, by their numbers.
    fn all(&self, probe: Probe) -> Vec<(u32, i32)> {
        let blocks = self
            .science
            .iter()
            .filter(|it| it.kind == 0 && it.probe == probe as usize);
        blocks
            .flat_map(|it| (it.first..).zip(samples(&it.data, it.count)))
            .collect()
    }
}

fn plain(probe: Probe, index: u32, _: i16) -> i32 {
    (index.wrapping_mul(2_654_435_761) >> 14) as i32 - (probe as i32 + 1) * 1000
}

const START: Order = Order::Start {
    acquisition: 7,
    probes: 7,
    minimum: false,
    seconds: 2,
};

#[test]
fn every_sample_arrives_as_it_was() {
    let mut bench = Bench::new(Fake::new(plain, |_| false));
    bench.order(START);
    bench.run(2300);
    for probe in Probe::ALL {
        let rate = BUSES[probe as usize].rate;
        let expected: Vec<_> = (0..2 * rate)
            .map(|index| (index, cut(plain(probe, index, 0))))
            .collect();
        assert_eq!(bench.all(probe), expected, "{probe:?}");
    }
    let finished = Report::Finished {
        acquisition: 7,
        samples: 32_000,
    };
    assert!(bench.reports.contains(&finished), "{:?}", bench.reports);
    assert!(!bench.reports.iter().any(|it| matches!(
        it,
        Report::Lost { .. } | Report::Refused { .. } | Report::Dropped { .. }
    )));
    for probe in Probe::ALL {
        assert_eq!(
            bench.acquisition.partitions.of(probe).statistics().used,
            0,
            "{probe:?}"
        );
    }
}

/// A sample as 20 bits hold it.
fn cut(value: i32) -> i32 {
    value << 12 >> 12
}

#[test]
fn what_is_lost_is_counted_and_the_rest_keeps_its_numbers() {
    // For 20 ms nothing is taken: the FIFO of 64 overflows at 10 kHz and at 5 kHz.
    let held = |millisecond| (500..520).contains(&millisecond);
    let mut bench = Bench::new(Fake::new(plain, held));
    bench.order(START);
    bench.run(2300);
    for probe in Probe::ALL {
        let all = bench.all(probe);
        for &(index, value) in &all {
            assert_eq!(value, cut(plain(probe, index, 0)), "{probe:?} {index}");
        }
        let lost: u32 = bench
            .reports
            .iter()
            .map(|report| match report {
                Report::Lost { probe: it, count } if *it == probe => *count,
                _ => 0,
            })
            .sum();
        let rate = BUSES[probe as usize].rate;
        assert!(
            all.len() as u32 + lost == 2 * rate,
            "{probe:?} {} {lost}",
            all.len()
        );
        assert_eq!(lost > 0, rate > 3000, "{probe:?}");
    }
}

fn characteristic(_: Probe, index: u32, code: i16) -> i32 {
    i32::from(code) * 7 + (index % 13) as i32
}

#[test]
fn a_sweep_sums_samples_of_its_codes_alone() {
    for steps in [600, 1000] {
        let mut bench = Bench::new(Fake::new(characteristic, |_| false));
        bench.order(Order::Sweep {
            acquisition: 3,
            steps,
            from: -30_000,
            to: 20_000,
            dwell: 10,
        });
        bench.run(u64::from(steps) * 10 + 300);
        assert!(bench.reports.contains(&Report::Swept {
            acquisition: 3,
            steps
        }));
        let mut number = 0;
        for block in bench.science.iter().filter(|it| it.kind == 1) {
            for step in block.data.chunks_exact(12) {
                let code = i16::from_be_bytes([step[0], step[1]]);
                let first = u32::from_be_bytes(step[2..6].try_into().unwrap());
                let count = u32::from(u16::from_be_bytes([step[6], step[7]]));
                let sum = i32::from_be_bytes(step[8..].try_into().unwrap());
                let expected = -30_000 + 50_000 * number / (i32::from(steps) - 1);
                assert_eq!((i32::from(code), count), (expected, 25), "step {number}");
                let range = first as usize..(first + count) as usize;
                assert!(
                    bench
                        .front
                        .codes
                        .get(range)
                        .is_none_or(|codes| codes.iter().all(|&it| it == code))
                );
                let plain: i32 = (first..first + count)
                    .map(|index| characteristic(Probe::Langmuir, index, code))
                    .sum();
                assert_eq!(sum, plain, "step {number}");
                number += 1;
            }
        }
        assert_eq!(number, i32::from(steps));
    }
}

fn grains(probe: Probe, index: u32, _: i16) -> i32 {
    // A grain each 997 samples, and one upon its tail 7 samples later.
    let pulse = |since: i32| {
        if since >= 0 {
            300_000 >> (since / 7).min(20)
        } else {
            0
        }
    };
    let noise = (index.wrapping_mul(2_654_435_761) >> 20) as i32 - 2048;
    match probe {
        Probe::Dust if index >= 500 => {
            let since = ((index - 500) % 997) as i32;
            pulse(since) / 2 + pulse(since - 7) / 2 + noise
        }
        _ => noise,
    }
}

#[test]
fn every_grain_is_found_at_once() {
    let mut bench = Bench::new(Fake::new(grains, |_| false));
    bench.order(START);
    bench.run(2300);
    let found: Vec<u32> = bench
        .reports
        .iter()
        .filter_map(|report| match report {
            Report::Dust { sample, .. } => Some(*sample),
            _ => None,
        })
        .filter(|&sample| sample < 20_000)
        .collect();
    let expected: Vec<u32> = (500..20_000)
        .step_by(997)
        .flat_map(|at| [at, at + 7])
        .collect();
    assert_eq!(found, expected);
    assert!(bench.front.detected.len() >= found.len());
    let told = bench.science.iter().find(|it| it.kind == 2).unwrap();
    let plain: Vec<i32> = (484..548)
        .map(|index| grains(Probe::Dust, index, 0))
        .collect();
    assert_eq!(samples(&told.data[16..], 64), plain);
}

#[test]
fn samples_around_a_grain_at_the_very_begin_are_sent_when_all_have_come() {
    fn early(probe: Probe, index: u32, code: i16) -> i32 {
        let pulse = if probe == Probe::Dust && (3..9).contains(&index) {
            100_000
        } else {
            0
        };
        grains(probe, index, code) + pulse
    }
    let mut bench = Bench::new(Fake::new(early, |_| false));
    // What was acquired before must not be taken for what has not come yet.
    for _ in 0..2 {
        bench.order(Order::Start {
            acquisition: 7,
            probes: 7,
            minimum: true,
            seconds: 1,
        });
        bench.run(1300);
        let told = bench.science.iter().find(|it| it.kind == 2).unwrap();
        let plain: Vec<i32> = { 0..64 }
            .map(|index| early(Probe::Dust, index, 0))
            .collect();
        assert_eq!((told.first, samples(&told.data[16..], 64)), (0, plain));
        bench.science.clear();
    }
}

#[test]
fn windows_are_those_of_a_plain_sum() {
    let mut bench = Bench::new(Fake::new(plain, |_| false));
    bench.order(START);
    bench.run(2300);
    let mut number = 0;
    for block in bench.science.iter().filter(|it| it.kind == 3) {
        for window in block.data.chunks_exact(20) {
            let word = |at: usize| u32::from_be_bytes(window[at..at + 4].try_into().unwrap());
            let all: Vec<i64> = (word(0)..word(0) + 100)
                .map(|index| cut(plain(Probe::Efield, index, 0)).into())
                .collect();
            assert_eq!(word(0), number * 100);
            assert_eq!(i64::from(word(4) as i32), all.iter().sum::<i64>() / 100);
            assert_eq!(i64::from(word(8) as i32), *all.iter().min().unwrap());
            assert_eq!(i64::from(word(12) as i32), *all.iter().max().unwrap());
            let mean_square = all.iter().map(|it| it * it).sum::<i64>() / 100;
            assert_eq!(word(16), mean_square.isqrt() as u32);
            number += 1;
        }
    }
    assert!(number >= 20);
}

#[test]
fn a_stop_keeps_what_there_is() {
    let mut bench = Bench::new(Fake::new(plain, |_| false));
    bench.order(START);
    bench.run(1000);
    bench.order(Order::Stop);
    bench.run(300);
    let all = bench.all(Probe::Dust);
    assert!((9_000..10_500).contains(&all.len()), "{}", all.len());
    assert!(
        all.iter()
            .zip(0..)
            .all(|(&(index, _), expected)| index == expected)
    );
    assert!(
        bench
            .reports
            .iter()
            .any(|it| matches!(it, Report::Finished { acquisition: 7, .. }))
    );
    assert!(!bench.front.on, "controllers rest");
    // And it can be begun again.
    bench.science.clear();
    bench.order(START);
    bench.run(2300);
    assert_eq!(bench.all(Probe::Dust).len(), 20_000);
}

proptest! {
    #[test]
    fn roots_are_roots(square in 0u64..1 << 40) {
        prop_assert_eq!(u64::from(super::field::root(square)), square.isqrt());
    }

    #[test]
    fn packed_samples_are_read_again(values in proptest::collection::vec(-524_288i32..524_288, 0..40)) {
        let mut bytes = std::vec![0; (values.len() * 5).div_ceil(2)];
        for (number, &value) in values.iter().enumerate() {
            metes_duster_protocol::samples::put(&mut bytes, number, value);
        }
        prop_assert_eq!(samples(&bytes, values.len()), values);
    }
}
