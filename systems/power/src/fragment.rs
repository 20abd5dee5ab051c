//! Models as the part of a system file that `metes power check` and `plan` read: frequencies in MHz, times in ms, power in
//! W, exact rationals of six digits.
//!
//! Invariant: a parameter that is not positive is written as 0, and said so in a comment.

use std::fmt::Write;

use crate::model::{Model, Point, Term};

/// A number of six significant digits as a rational; 0 for what is not positive.
fn rational(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "\"0\"".to_owned();
    }
    // Digits and a power of ten, parted by the shortest scientific form.
    let text = format!("{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: i128 = mantissa.replace('.', "").parse().unwrap_or(0);
    let exponent: i32 = exponent.parse().unwrap_or(0) - 5;
    let power = |exponent: u32| 10_i128.checked_pow(exponent).unwrap_or(i128::MAX);
    let ratio = if exponent >= 0 {
        num_rational::Ratio::from_integer(digits.saturating_mul(power(exponent.unsigned_abs())))
    } else {
        num_rational::Ratio::new(digits, power(exponent.unsigned_abs()))
    };
    format!("\"{ratio}\"")
}

/// The task and the processor of a system file. `pairs` give the frequencies; `pairs` of a processor alone have no
/// memory's.
#[must_use]
pub fn system(time: &Model, power: &Model, pairs: &[Point]) -> String {
    let list = |of: fn(&Point) -> f64| {
        let mut found: Vec<f64> = pairs
            .iter()
            .map(of)
            .map(|ghz| (ghz * 1e6).round())
            .collect();
        found.sort_by(f64::total_cmp);
        found.dedup();
        let found: Vec<_> = found.iter().map(|khz| rational(khz / 1e3)).collect();
        found.join(", ")
    };
    let mut text = String::from(
        "# Fitted. Add period and deadline to the task.\nunits = { time = \"ms\", frequency = \"MHz\", power = \"W\" }\n",
    );
    for (term, value) in time.terms.iter().chain(&power.terms) {
        if *value < 0.0 {
            let _ = writeln!(text, "# {} was fitted as {value:.3e}: 0 here.", term.name());
        }
    }
    let t = |term, scale| rational(time.parameter(term) * scale);
    let p = |term, scale| rational(power.parameter(term) * scale);
    let _ = write!(
        text,
        "scheduler = \"fixed-priority\"\n\n[[task]]\nname = \"task\"\npriority = 1\ncpu = {}\nmemory = {}\nconstant = {}\n\n\
         [processor]\ncpu = [{}]\nmemory = [{}]\npower = {{ floor = {}, cpu_cubed = {}, memory = {} }}\n",
        t(Term::CpuCycles, 1e3),
        t(Term::MemoryCycles, 1e3),
        t(Term::Constant, 1.0),
        list(|point| point.cpu),
        list(|point| point.memory),
        p(Term::Floor, 1.0),
        p(Term::CpuCubed, 1e-9),
        p(Term::Memory, 1e-3),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_to_six_digits() {
        for (value, says) in [
            (700.0, "\"700\""),
            (0.327, "\"327/1000\""),
            (1.0 / 3.0, "\"333333/1000000\""),
            (2.69e-10, "\"269/1000000000000\""),
            (1_234_567.0, "\"1234570\""),
            (-1.0, "\"0\""),
        ] {
            assert_eq!(rational(value), says);
        }
    }

    #[test]
    fn a_system_is_toml_with_the_models() {
        let pairs = [Point::mhz(600.0, 200.0), Point::mhz(1400.0, 200.0)];
        let (time, power) = (
            Model::time(1.745, 0.0978, 0.327),
            Model::power(2.336, 0.269, -0.1),
        );
        let text = system(&time, &power, &pairs);
        let read: toml::Table = text.parse().expect("TOML");
        assert_eq!(read["task"][0]["cpu"].as_str(), Some("1745"));
        assert_eq!(read["task"][0]["memory"].as_str(), Some("489/5"));
        assert_eq!(read["processor"]["cpu"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            read["processor"]["memory"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(read["processor"]["power"]["memory"].as_str(), Some("0"));
        assert!(text.contains("memory was fitted as"));
        let text = text.replace(
            "priority = 1\n",
            "priority = 1\nperiod = 10\ndeadline = 10\n",
        );
        let system = crate::System::parse(&text).expect("a system with period and deadline");
        let plan = crate::plan::plan(&system, crate::plan::Effort::default());
        assert!(plan.is_ok(), "{plan:?}");
    }
}
