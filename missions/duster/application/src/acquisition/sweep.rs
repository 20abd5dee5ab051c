//! A sweep of the Langmuir probe: its bias in steps, and the sum of the samples of each.
//!
//! A step begins when its code is sent. The code is at the probe within a set, samples wait in the front end for another,
//! so the samples of the first [`SETTLE`] milliseconds are not of the step; those that follow are, to a millisecond before
//! the next one. Which samples were summed is told, so that anyone can sum them again.
//!
//! *Invariant:* a step's samples were all converted under its code; a step is in a block when the next one begins.

use super::Partitions;
use super::stream::{Header, Kind, block_size, data, hand_over};
use crate::declared::BUSES;
use crate::partition::Block;
use crate::shared::{Probe, Shared};

/// Milliseconds from a step's begin until its samples count.
const SETTLE: u32 = 4;
/// Milliseconds at its end that do not.
const MARGIN: u32 = 1;
/// Bytes of a step.
const STEP: usize = 12;
/// Steps of a block.
const STEPS_A_BLOCK: usize = 80;
/// Milliseconds between activations of the task.
const ACTIVATION: u16 = 10;

#[derive(Default)]
pub(super) struct Sweep {
    plan: Option<Plan>,
    step: u16,
    /// Activations until the next step.
    left: u16,
    /// The samples that count: the first and how many; and their sum so far.
    first: u32,
    wanted: u32,
    count: u32,
    sum: i32,
    code: i16,
    open: Option<(Block, u16, u64, u32)>,
    over: bool,
}

#[derive(Clone, Copy)]
struct Plan {
    steps: u16,
    from: i16,
    to: i16,
    dwell: u16,
}

impl Plan {
    /// The code of step `number`: from the first to the last in equal parts, rounded towards the first.
    fn code(&self, number: u16) -> i16 {
        let span = i32::from(self.to) - i32::from(self.from);
        let last = i32::from(self.steps.max(2)) - 1;
        (i32::from(self.from) + span * i32::from(number) / last) as i16
    }
}

impl Sweep {
    pub(super) fn begin(&mut self, steps: u16, from: i16, to: i16, dwell: u16) {
        self.plan = Some(Plan {
            steps,
            from,
            to,
            dwell: dwell.max(ACTIVATION),
        });
        (self.step, self.left, self.over) = (0, 0, false);
        (self.first, self.wanted, self.count, self.sum) = (0, 0, 0, 0);
    }

    pub(super) fn under_way(&self) -> bool {
        self.plan.is_some() && !self.over
    }

    /// The step under way is not done any more.
    pub(super) fn stop(&mut self) {
        self.step = self.step.saturating_sub(1);
        self.over = true;
    }

    /// The sweep is over: how many steps were done, if there was one.
    pub(super) fn end(&mut self) -> Option<u16> {
        let plan = self.plan.take()?;
        self.over = false;
        Some(self.step.min(plan.steps))
    }

    /// A sample of the current.
    pub(super) fn sample(&mut self, index: u32, sample: i32) {
        if index >= self.first && self.count < self.wanted {
            // After a gap the samples of a step are no longer consecutive: the step is told with those before it.
            if index == self.first + self.count {
                self.count += 1;
                self.sum += sample;
            } else {
                self.wanted = self.count;
            }
        }
    }

    /// Time has passed: the code of the next step, if it begins now. `index` is the number of the sample to come.
    pub(super) fn step(
        &mut self,
        index: u32,
        acquisition: u16,
        now: u64,
        partitions: &mut Partitions,
        shared: &Shared,
    ) -> Option<i16> {
        let plan = self.plan?;
        if self.left > 1 {
            self.left -= 1;
            return None;
        }
        if self.step > 0 {
            self.keep(acquisition, now, partitions, shared);
        }
        if self.step == plan.steps {
            self.close(acquisition, partitions, shared);
            self.over = true;
            return None;
        }
        self.code = plan.code(self.step);
        self.step += 1;
        self.left = plan.dwell / ACTIVATION;
        let rate = BUSES[Probe::Langmuir as usize].rate / 1000;
        self.first = index + SETTLE * rate;
        self.wanted = (u32::from(self.left) * u32::from(ACTIVATION) - SETTLE - MARGIN) * rate;
        self.count = 0;
        self.sum = 0;
        Some(self.code)
    }

    /// The step that ends goes into a block.
    #[inline(never)]
    fn keep(&mut self, acquisition: u16, now: u64, partitions: &mut Partitions, shared: &Shared) {
        if self.open.is_none() {
            let block =
                partitions.allocate(Probe::Langmuir, block_size(STEPS_A_BLOCK * STEP), shared);
            self.open = block.map(|block| (block, 0, now, self.first));
        }
        let Some((block, count, ..)) = &mut self.open else {
            return;
        };
        let at = usize::from(*count) * STEP;
        if let Some(place) = data(block).get_mut(at..at + STEP) {
            place[..2].copy_from_slice(&self.code.to_be_bytes());
            place[2..6].copy_from_slice(&self.first.to_be_bytes());
            place[6..8].copy_from_slice(&(self.count as u16).to_be_bytes());
            place[8..].copy_from_slice(&self.sum.to_be_bytes());
        }
        *count += 1;
        if usize::from(*count) == STEPS_A_BLOCK {
            self.close(acquisition, partitions, shared);
        }
    }

    /// What has been kept goes to core 0.
    pub(super) fn close(&mut self, acquisition: u16, partitions: &mut Partitions, shared: &Shared) {
        let Some((block, count, time, first)) = self.open.take() else {
            return;
        };
        let header = Header {
            kind: Kind::Sweep,
            probe: Probe::Langmuir,
            acquisition,
            rate: BUSES[Probe::Langmuir as usize].rate,
            first,
            time,
            count,
        };
        hand_over(block, header, usize::from(count) * STEP, partitions, shared);
    }
}
