//! The world that front ends, supplies and the bench share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::faults::{Fault, What};
use crate::front::Converter;
use crate::supply::{Kind, Supply};
use crate::truth::{Probe, Stuck, Truth};

/// A world that several hold.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// The world, for a moment.
    ///
    /// # Panics
    /// Never: a panic of another holder does not spoil it.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The instrument: what outlives every reset of the unit.
#[derive(Debug)]
pub struct World {
    /// The truth.
    pub truth: Truth,
    /// The mission's cycle at which the machine's cycle 0 was.
    pub offset: u64,
    pub(crate) converters: [Converter; 3],
    /// Both supplies: high voltage, low voltages.
    pub supplies: [Supply; 2],
    /// Bytes that are yet to be lost on the line of each supply.
    pub(crate) losses: [u32; 2],
}

impl World {
    /// The world of `seed`, at cores of `frequency` Hz.
    #[allow(clippy::new_ret_no_self, reason = "a world is always shared")]
    #[must_use]
    pub fn new(seed: u64, frequency: u32) -> Shared {
        Shared(Arc::new(Mutex::new(World {
            truth: Truth::new(seed, frequency),
            offset: 0,
            converters: Probe::ALL.map(|probe| Converter::new(probe, frequency)),
            supplies: [Kind::High, Kind::Low].map(|kind| Supply::new(kind, frequency)),
            losses: [0; 2],
        })))
    }

    /// Lets the instrument suffer `fault` at the mission's cycle `now`; whether it is one of the instrument's.
    pub fn suffer(&mut self, fault: &Fault, now: u64) -> bool {
        match fault.what {
            What::StuckConverter { probe, cycles } => {
                let code = match self.converters[probe as usize].run {
                    Some(run) => {
                        let it = &self.truth.runs(probe)[run];
                        let index = now.saturating_sub(it.start) / it.period;
                        self.truth.sample(probe, run, index)
                    }
                    None => 0,
                };
                self.truth.stick(Stuck {
                    probe,
                    from: now,
                    until: now + cycles,
                    code,
                });
                true
            }
            What::SupplyTrip => {
                let [high, _] = &mut self.supplies;
                high.trip(now, &mut self.truth);
                true
            }
            What::LostSupplyByte { supply } => {
                self.losses[supply as usize] += 1;
                true
            }
            _ => false,
        }
    }

    /// Samples of `probe` that found the FIFO full so far.
    #[must_use]
    pub fn lost(&self, probe: Probe) -> u64 {
        let runs = self.truth.runs(probe).iter();
        runs.flat_map(|run| &run.lost)
            .map(|(from, to)| to - from)
            .sum()
    }

    /// Whether the high voltage has tripped: GPIO line 17.
    #[must_use]
    pub fn tripped(&self) -> bool {
        self.supplies[0].tripped()
    }
}
