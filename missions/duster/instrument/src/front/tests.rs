use super::*;
use crate::World;
use proptest::prelude::*;

const FREQUENCY: u32 = 100_000_000;
/// Cycles of a word at 10 MHz.
const WORD_TIME: u64 = 120;

/// Exchanges a set of `frames` that begins at `at`; what comes back.
fn exchange(front: &mut FrontEnd, frames: &[u32], at: u64) -> Vec<u32> {
    front.selected(0, true, at);
    let mut at = at;
    let mut back = Vec::new();
    for frame in frames {
        let mut halves = [frame >> 12, frame & 0xfff].map(|word| {
            at += WORD_TIME;
            front.exchange(word, WORD, at)
        });
        back.push(halves[0] << 12 | std::mem::take(&mut halves[1]));
    }
    front.selected(0, false, at);
    back
}

fn configure(mode: u32, hertz: u32) -> u32 {
    2 << 20 | mode << 16 | (hertz / 10)
}

/// A converter sample by sample, in lists.
#[derive(Default)]
struct Plain {
    rate: u32,
    start: u64,
    /// Indices that are in the FIFO, and the next one.
    holds: Vec<u64>,
    next: u64,
    runs: usize,
    lost: u64,
    full: bool,
}

impl Plain {
    fn until(&mut self, now: u64) {
        while self.rate > 0 && self.start + self.next * u64::from(FREQUENCY / self.rate) <= now {
            self.full |= self.holds.len() == 64;
            if self.full {
                self.lost += 1;
            } else {
                self.holds.push(self.next);
            }
            self.next += 1;
        }
    }

    fn set(&mut self, frames: &[u32], at: u64) -> Vec<Result<u64, u64>> {
        let mut wanted = None;
        let mut end = at;
        let back = frames
            .iter()
            .map(|frame| {
                self.until(end);
                end += 2 * WORD_TIME;
                if frame >> 20 == 2 {
                    wanted = Some((frame & 0xffff) * 10);
                }
                if !self.holds.is_empty() {
                    return Ok(self.holds.remove(0));
                }
                let due = self.next;
                self.until(end);
                self.full = false;
                Err(due)
            })
            .collect();
        self.until(end);
        if let Some(rate) = wanted.filter(|&rate| rate != self.rate) {
            self.holds.clear();
            self.full = false;
            self.rate = rate;
            self.next = 0;
            if let Some(period) = FREQUENCY.checked_div(rate).map(u64::from) {
                self.start = end / period * period + period;
                self.runs += 1;
            }
        }
        back
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever sets come, and however late: the frames are those of the plain converter, with the samples that the
    /// truth gives again afterwards.
    #[test]
    fn samples_come_in_order_or_are_lost(
        sets in proptest::collection::vec(
            (
                1_000u64..3_000_000,
                proptest::option::weighted(0.3, prop_oneof![Just(0u32), Just(1000), Just(5000), Just(10_000)]),
                any::<i16>(),
                0u32..2,
                1usize..13,
            ),
            1..60,
        ),
        probe in 0u8..3,
        seed in any::<u64>(),
    ) {
        let world = World::new(seed, FREQUENCY);
        let probe = Probe::of(probe).unwrap();
        let mut front = FrontEnd::new(world.clone(), probe);
        let mut plain = Plain::default();
        let mut at = 0;
        let mut taken = Vec::new();
        for (gap, rate, dac, mode, more) in sets {
            at += gap + 26 * WORD_TIME;
            let mut frames = vec![1 << 20 | u32::from(dac as u16)];
            frames.extend(rate.map(|rate| configure(mode, rate)));
            frames.resize(frames.len() + more, 0);
            let run = plain.runs.wrapping_sub(1);
            let back = exchange(&mut front, &frames, at);
            let expected = plain.set(&frames, at);
            for (frame, index) in back.into_iter().zip(expected) {
                match index {
                    Err(due) => prop_assert_eq!(frame, due as u32 & 0xf_ffff),
                    Ok(index) => {
                        prop_assert_eq!(frame >> 20, 8 | index as u32 & 7);
                        taken.push((run, index, frame & 0xf_ffff));
                    }
                }
            }
        }
        let world = world.lock();
        prop_assert_eq!(world.lost(probe), plain.lost);
        prop_assert_eq!(world.truth.runs(probe).len(), plain.runs);
        for (run, index, sample) in taken {
            let truth = world.truth.sample(probe, run, index);
            prop_assert_eq!(sample, truth as u32 & 0xf_ffff, "sample {} of run {}", index, run);
        }
    }
}

#[test]
fn a_reset_of_the_machine_goes_on_in_the_world() {
    let world = World::new(9, FREQUENCY);
    let mut front = FrontEnd::new(world.clone(), Probe::Dust);
    exchange(&mut front, &[0, configure(0, 1000)], 50_000);
    exchange(&mut front, &[0, configure(0, 1000)], 1_000_000);
    world.lock().offset = 200_000_000;
    let mut front = FrontEnd::new(world.clone(), Probe::Dust);
    // The converter went on, and was full.
    let back = exchange(&mut front, &[0, configure(0, 0)], 50_000);
    assert!(back.iter().all(|frame| frame >> 23 == 1));
    exchange(&mut front, &[0, configure(0, 1000)], 150_000);
    let world = world.lock();
    let runs = world.truth.runs(Probe::Dust);
    assert_eq!(runs.len(), 2);
    assert!(world.lost(Probe::Dust) > 1900);
    assert_eq!(runs[1].start, 200_200_000);
    assert_eq!(runs[0].end, Some(200_050_480));
}
