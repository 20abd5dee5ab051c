//! What workloads are drawn by. Same seed, same workload, on every machine.

/// A seeded generator.
pub(crate) struct Random(metes_random::Random);

impl Random {
    /// A generator that always gives the same sequence for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(metes_random::Random::nth(seed))
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    /// A size between `low` and `high` whose logarithm is uniform.
    ///
    /// Only additions, products and a square-free series: the platform's `pow`
    /// may differ in its last bit, and with it the committed tables.
    pub(crate) fn log_uniform(&mut self, low: usize, high: usize) -> usize {
        let share = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let exponent = share * logarithm(high as f64 / low as f64);
        (low as f64 * exponential(exponent)).round() as usize
    }
}

/// The natural logarithm of `x >= 1`, by halving and the series of artanh.
fn logarithm(mut x: f64) -> f64 {
    let mut halvings = 0.0;
    while x > 2.0 {
        x /= 2.0;
        halvings += 1.0;
    }
    let z = (x - 1.0) / (x + 1.0);
    let mut power = z;
    let mut sum = 0.0;
    for term in 0..30 {
        sum += power / f64::from(2 * term + 1);
        power *= z * z;
    }
    2.0 * sum + halvings * std::f64::consts::LN_2
}

/// e to the power of `x` in 0..50, by halving the exponent and squaring.
fn exponential(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for index in 1..20 {
        term *= x / 64.0 / f64::from(index);
        sum += term;
    }
    for _ in 0..6 {
        sum *= sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_uniform_fills_each_octave_alike() {
        let mut random = Random::new(9);
        let mut octaves = [0; 12];
        for _ in 0..12_000 {
            let size = random.log_uniform(16, 65_536);
            assert!((16..=65_536).contains(&size));
            octaves[(size.ilog2() as usize - 4).min(11)] += 1;
        }
        assert!(
            octaves.iter().all(|n| (850..1150).contains(n)),
            "{octaves:?}"
        );
    }

    #[test]
    fn series_agree_with_the_platform() {
        for x in [1.0, 1.5, 4096.0] {
            assert!((logarithm(x) - x.ln()).abs() < 1e-12);
        }
        assert!((exponential(8.0) / 8.0_f64.exp() - 1.0).abs() < 1e-12);
    }
}
