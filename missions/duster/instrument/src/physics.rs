//! What there is to be measured: a plasma, an electric field, charged grains.
//!
//! | probe | model | source |
//! | --- | --- | --- |
//! | Langmuir | electrons retarded by exp((V - P) / T) below the plasma potential P, saturated with (1 + (V - P) / T) above, ions the other way round | orbital-motion-limited theory of a small sphere (Mott-Smith and Langmuir, 1926) |
//! | E-field | a drift of minutes, two waves, noise | made up, within the probe's range |
//! | DUST | grains of 1 to 50 fC, as rare events with a pause behind each; a current of charge / tau that decays with tau = 1 ms | the paper: "a few fC up to a few tens of fC" |
//!
//! Exponentials and sines are `libm`'s, not the host's, so that a seed gives the same codes everywhere.
//!
//! *Invariant:* everything here is a function of its arguments; a code has 20 bits, a sign among them.

use metes_random::{Random, mix};

/// The largest code of a converter of 20 bits.
pub const MOST: i32 = (1 << 19) - 1;
/// Codes of the DUST current for a grain of 1 fC, at its first sample.
pub const CODES_A_FEMTOCOULOMB: f64 = 26_000.0;
/// Seconds in which a grain's current falls to 1 / e.
pub const TAU: f64 = 1e-3;
/// Milliseconds of a slot, in whose first half at most one grain impacts.
const SLOT: u64 = 50;
/// High voltage from which grains are lifted, in millivolts.
pub const LIFTING: u64 = 1_000_000;

/// Elementary charge (C), mass of an electron (kg).
const CHARGE: f64 = 1.602e-19;
const MASS: f64 = 9.109e-31;
/// Area of the Langmuir probe (m²).
const AREA: f64 = 0.02;
/// Current of the Langmuir probe's largest code (A).
pub const FULL_CURRENT: f64 = 4e-6;
/// Volts of the Langmuir probe's largest DAC code, plus one.
pub const FULL_BIAS: f64 = 10.0;
/// Field of the E-field probe's largest code (V/m).
pub const FULL_FIELD: f64 = 200.0;

/// A code of a converter for `value`, which is counted in codes.
#[must_use]
pub fn code(value: f64) -> i32 {
    // NaN and what is beyond the range saturate.
    (value as i32).clamp(-MOST - 1, MOST)
}

/// About normally distributed codes of standard deviation `codes`, by `seed` and `moment`.
#[must_use]
pub fn noise(seed: u64, moment: u64, codes: i64) -> f64 {
    let drawn = mix(seed ^ mix(moment));
    let four = [0, 16, 32, 48].map(|shift| (drawn >> shift & 0xffff) as i64);
    let sum = four.iter().sum::<i64>() - 4 * 0x8000;
    // Four uniform numbers of 16 bits have a deviation of 37837.
    (sum * codes / 37_837) as f64
}

/// The world of a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Physics {
    seed: u64,
    frequency: f64,
    /// Cycles of a millisecond.
    milli: u64,
    /// Electrons in a cubic metre, their temperature (eV), the plasma's potential (V).
    pub density: f64,
    /// See [`density`](Self::density).
    pub temperature: f64,
    /// See [`density`](Self::density).
    pub potential: f64,
    /// Amplitudes (V/m) and phases of the field: drift, two waves.
    field: [(f64, f64, f64); 3],
    /// Grains that are lifted a second, in the mean.
    pub grains: f64,
}

/// A grain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grain {
    /// The cycle at which it impacts.
    pub at: u64,
    /// Its charge, fC.
    pub charge: f64,
    /// Its speed, m/s.
    pub speed: f64,
}

impl Physics {
    /// That of `seed`, at cores of `frequency` Hz.
    #[must_use]
    pub fn new(seed: u64, frequency: u32) -> Physics {
        let mut random = Random::new(mix(seed));
        let mut draw = |least: f64, most: f64| {
            least + (most - least) * (random.next() >> 11) as f64 / (1u64 << 53) as f64
        };
        let turn = 2.0 * std::f64::consts::PI;
        Physics {
            seed: mix(seed ^ 0xd057),
            frequency: frequency.into(),
            milli: u64::from(frequency) / 1000,
            density: draw(5e7, 5e8),
            temperature: draw(1.0, 4.0),
            potential: draw(-2.0, 4.0),
            field: [
                (draw(10.0, 60.0), draw(0.0, turn), 1.0 / draw(300.0, 900.0)),
                (draw(2.0, 20.0), draw(0.0, turn), draw(0.2, 2.0)),
                (draw(0.5, 5.0), draw(0.0, turn), draw(20.0, 100.0)),
            ],
            grains: draw(1.0, 3.0),
        }
    }

    fn seconds(&self, cycle: u64) -> f64 {
        cycle as f64 / self.frequency
    }

    /// What the Langmuir probe's converter gives at a bias of DAC code `dac`.
    #[must_use]
    pub fn langmuir(&self, cycle: u64, dac: i16) -> i32 {
        let bias = f64::from(dac) * FULL_BIAS / 32_768.0;
        let wave = libm::sin(self.seconds(cycle) * 0.065);
        let current = self.current(bias) * (1.0 + 0.05 * wave);
        code(current / FULL_CURRENT * f64::from(MOST) + noise(self.seed, cycle, 60))
    }

    /// The probe's current (A) at `bias` (V): electrons less ions.
    #[must_use]
    pub fn current(&self, bias: f64) -> f64 {
        let above = (bias - self.potential) / self.temperature;
        let thermal = libm::sqrt(CHARGE * self.temperature / (2.0 * std::f64::consts::PI * MASS));
        let electrons = self.density * CHARGE * AREA * thermal;
        // Ions of 16 proton masses, as warm.
        let ions = electrons / libm::sqrt(16.0 * 1836.0);
        if above < 0.0 {
            electrons * libm::exp(above) - ions * (1.0 - above)
        } else {
            electrons * (1.0 + above) - ions * libm::exp(-above)
        }
    }

    /// What the E-field probe's converter gives.
    #[must_use]
    pub fn efield(&self, cycle: u64, dac: i16) -> i32 {
        let time = self.seconds(cycle) * 2.0 * std::f64::consts::PI;
        let waves = self.field.iter();
        let field: f64 = waves
            .map(|&(amplitude, phase, rate)| amplitude * libm::sin(time * rate + phase))
            .sum();
        let codes = field / FULL_FIELD * f64::from(MOST) + f64::from(dac);
        code(codes + noise(self.seed ^ 1, cycle, 100))
    }

    /// The DUST current without grains, in codes.
    #[must_use]
    pub fn quiet(&self, cycle: u64, dac: i16) -> f64 {
        let wave = libm::sin(self.seconds(cycle) * 0.2);
        1500.0 + 800.0 * wave + f64::from(dac) + noise(self.seed ^ 2, cycle, 250)
    }

    /// What a grain adds to a sample `since` cycles after its first one, in codes.
    #[must_use]
    pub fn pulse(&self, grain: Grain, since: u64) -> f64 {
        grain.charge * CODES_A_FEMTOCOULOMB * libm::exp(-self.seconds(since) / TAU)
    }

    /// The grain of the slot in which `cycle` lies, if there is one.
    #[must_use]
    pub fn grain(&self, cycle: u64) -> Option<Grain> {
        let length = SLOT * self.milli;
        let slot = cycle / length;
        let drawn = mix(self.seed ^ mix(slot ^ 0x9a17));
        let chance = self.grains * SLOT as f64 / 1000.0;
        if (drawn & 0xffff) as f64 >= chance * 65_536.0 {
            return None;
        }
        let part = |shift: u32| (drawn >> shift & 0xffff) as f64 / 65_536.0;
        Some(Grain {
            at: slot * length + (part(16) * (length / 2) as f64) as u64,
            charge: libm::exp(part(32) * libm::log(50.0)),
            speed: 0.1 + 4.9 * part(48),
        })
    }

    /// Cycles of the slots by which grains are drawn.
    #[must_use]
    pub fn slot(&self) -> u64 {
        SLOT * self.milli
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_characteristic_rises_with_the_bias() {
        for seed in 0..20 {
            let physics = Physics::new(seed, 100_000_000);
            let current = |tenths: i32| physics.current(f64::from(tenths) / 10.0);
            assert!((-100..100).all(|tenths| current(tenths) < current(tenths + 1)));
            // Retarded electrons alone, one temperature below the potential: a factor of e, but for ions.
            let (at, below) = (physics.potential, physics.potential - physics.temperature);
            let ratio = physics.current(at) / physics.current(below);
            assert!((2.7..3.0).contains(&ratio), "{ratio}");
            assert!(physics.current(-40.0) < 0.0, "ions");
        }
    }

    #[test]
    fn noise_has_the_deviation_that_is_asked_for() {
        let drawn: Vec<f64> = (0..20_000).map(|moment| noise(3, moment, 1000)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let square = drawn.iter().map(|one| one * one).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 30.0, "{mean}");
        assert!(
            (970.0..1030.0).contains(&square.sqrt()),
            "{}",
            square.sqrt()
        );
    }

    #[test]
    fn grains_are_as_many_as_is_said_and_keep_apart() {
        let physics = Physics::new(5, 100_000_000);
        let slots = 0..40_000u64;
        let grains: Vec<_> = slots
            .filter_map(|slot| physics.grain(slot * physics.slot()))
            .collect();
        let rate = grains.len() as f64 / 2000.0;
        assert!((rate / physics.grains - 1.0).abs() < 0.1, "{rate}");
        assert!(grains.iter().all(|it| (1.0..50.0).contains(&it.charge)));
        let apart = grains.windows(2).map(|two| two[1].at - two[0].at).min();
        assert!(apart > Some(2_500_000), "{apart:?}");
        let large = grains.iter().filter(|it| it.charge > 7.07).count();
        assert!((0.45..0.55).contains(&(large as f64 / grains.len() as f64)));
    }
}
