//! What core 0 orders, and the blocks that it gives back.
//!
//! *Invariant:* an order is obeyed as a whole or, where something is under way that it would disturb, not at all: core 0
//! knows the mode and asks for nothing else.

use core::sync::atomic::Ordering;

use super::{Acquisition, FrontEnds, Phase, tell};
use crate::shared::{Order, Probe, Report};

/// Blocks that are freed in one activation, and orders that are obeyed.
const BLOCKS: usize = 4;
const ORDERS: usize = 1;
/// Ticks for which front ends are stopped before they start: two sets and one that is under way.
const STOPPED: u8 = 4;

impl Acquisition {
    /// The task `orders`, each 10 milliseconds: frees what core 0 is done with, obeys, and tells of a partition. Time:
    /// constant numbers of each.
    pub fn orders(&mut self, front: &mut impl FrontEnds) {
        self.free_returned();
        self.obey_waiting(front);
        self.tell_statistics();
    }

    #[inline(never)]
    fn free_returned(&mut self) {
        for _ in 0..BLOCKS {
            let Some(block) = self.shared.freed.take() else {
                break;
            };
            self.partitions.free(block);
        }
    }

    #[inline(never)]
    fn obey_waiting(&mut self, front: &mut impl FrontEnds) {
        for _ in 0..ORDERS {
            let Some(order) = self.shared.orders.take() else {
                break;
            };
            self.obey(order, front);
        }
    }

    #[inline(never)]
    fn obey(&mut self, order: Order, front: &mut impl FrontEnds) {
        match order {
            Order::Start {
                acquisition,
                probes,
                minimum,
                seconds,
            } => {
                if self.phase != Phase::Idle {
                    return;
                }
                for probe in Probe::ALL {
                    if probes >> probe as u8 & 1 == 1 {
                        self.streams[probe as usize].begin(acquisition, minimum, seconds);
                    }
                }
                self.begin(acquisition, front);
            }
            Order::Sweep {
                acquisition,
                steps,
                from,
                to,
                dwell,
            } => {
                if self.phase != Phase::Idle {
                    return;
                }
                self.sweep.begin(steps, from, to, dwell);
                self.begin(acquisition, front);
            }
            Order::Stop => self.stop(),
            Order::Bias { probe, code } => {
                // A sweep sets the bias itself.
                if probe != Probe::Langmuir || !self.sweep.under_way() {
                    self.settings[probe as usize].code = code;
                    self.apply(probe, front);
                }
            }
            Order::Mode { probe, mode } => {
                self.settings[probe as usize].mode = mode;
                self.apply(probe, front);
            }
            Order::Threshold(threshold) => self.detector.set_threshold(threshold),
            Order::Safe => {
                self.stop();
                for probe in Probe::ALL {
                    self.settings[probe as usize].code = 0;
                    self.apply(probe, front);
                }
            }
        }
    }

    #[inline(never)]
    fn begin(&mut self, acquisition: u16, front: &mut impl FrontEnds) {
        self.number = acquisition;
        self.field.begin();
        self.detector.begin();
        for probe in Probe::ALL {
            self.settings[probe as usize].rate = 0;
            self.apply(probe, front);
        }
        self.phase = Phase::Stopping(STOPPED);
        let status = &self.shared.status;
        status
            .acquisition
            .store(acquisition.into(), Ordering::Relaxed);
        tell(self.shared, Report::Started { acquisition });
    }

    /// Ends what is under way with what there is of it.
    #[inline(never)]
    fn stop(&mut self) {
        for stream in &mut self.streams {
            stream.stop();
        }
        if self.sweep.under_way() {
            let (partitions, shared) = (&mut self.partitions, self.shared);
            self.sweep.close(self.number, partitions, shared);
            self.sweep.stop();
        }
    }
}
