//! Models that are linear in their parameters: time and power of a task by the frequencies of processor and memory.
//!
//! Time = cpu / fp + memory / fm + constant: cycles of the one clock, cycles of the other, and what neither scales.
//! Power = floor + cpu_cubed · fp³ + memory · fm, or with the voltage V of each point floor + switching · V² · fp +
//! memory · fm. Frequencies are in GHz, times in ms, power in W, energy in mJ; so a cycle count is in millions.
//!
//! Invariant: a model is a list of terms, each with one parameter, and its value is their sum; nothing is hidden in it.

use serde::Serialize;

/// Where something is measured or foretold: a pair of frequencies, and the core's voltage where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Frequency of the processor, GHz.
    pub cpu: f64,
    /// Frequency of the memory, GHz.
    pub memory: f64,
    /// Voltage of the core, V.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voltage: Option<f64>,
}

impl Point {
    /// A pair of frequencies in GHz.
    #[must_use]
    pub fn new(cpu: f64, memory: f64) -> Point {
        Point {
            cpu,
            memory,
            voltage: None,
        }
    }

    /// A pair of frequencies in MHz.
    #[must_use]
    pub fn mhz(cpu: f64, memory: f64) -> Point {
        Point::new(cpu / 1e3, memory / 1e3)
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let round = |ghz: f64| (ghz * 1e6).round() / 1e3;
        write!(f, "({}, {}) MHz", round(self.cpu), round(self.memory))
    }
}

/// What a model tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Time of one execution of a task, ms.
    Time,
    /// Mean power while it executes, W.
    Power,
}

impl Quantity {
    /// Its name, as in a table's header.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Power => "power",
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Time => "ms",
            Quantity::Power => "W",
        }
    }
}

/// A term of a model: what its parameter is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// 1 / fp: cycles of the processor.
    CpuCycles,
    /// 1 / fm: cycles of the memory.
    MemoryCycles,
    /// 1 in a time: what no frequency scales.
    Constant,
    /// 1 in a power: what is drawn at any frequency.
    Floor,
    /// fp³: switching, where the voltage grows as the frequency.
    CpuCubed,
    /// fp: switching at one voltage.
    Cpu,
    /// V² · fp: switching at the voltage that was there.
    Switching,
    /// V: leakage, about linear in the voltage over a small range.
    Leakage,
    /// fm: the memory and its controller.
    Memory,
}

/// All terms with their names on the command line.
const NAMES: [(Term, &str); 9] = [
    (Term::CpuCycles, "cpu-cycles"),
    (Term::MemoryCycles, "memory-cycles"),
    (Term::Constant, "constant"),
    (Term::Floor, "floor"),
    (Term::CpuCubed, "cpu-cubed"),
    (Term::Cpu, "cpu"),
    (Term::Switching, "switching"),
    (Term::Leakage, "leakage"),
    (Term::Memory, "memory"),
];

impl Term {
    /// The time of a task.
    pub const TIME: [Term; 3] = [Term::CpuCycles, Term::MemoryCycles, Term::Constant];
    /// Power where voltages are not known.
    pub const POWER: [Term; 3] = [Term::Floor, Term::CpuCubed, Term::Memory];
    /// Power where they are.
    pub const POWER_BY_VOLTAGE: [Term; 3] = [Term::Floor, Term::Switching, Term::Memory];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(term, _)| *term == self)
            .map_or("", |(_, name)| name)
    }

    /// The term of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Term> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(term, _)| *term)
    }

    /// Whether it is one of this quantity.
    #[must_use]
    pub fn is_of(self, quantity: Quantity) -> bool {
        let time = Term::TIME.contains(&self);
        time == (quantity == Quantity::Time)
    }

    /// The unit of its parameter.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Term::CpuCycles | Term::MemoryCycles => "Mcycles",
            Term::Constant => "ms",
            Term::Floor => "W",
            Term::CpuCubed => "W/GHz³",
            Term::Cpu | Term::Memory => "W/GHz",
            Term::Switching => "W/(V² GHz)",
            Term::Leakage => "W/V",
        }
    }

    /// What its parameter is multiplied by; none where the point lacks a voltage that it needs.
    #[must_use]
    pub fn at(self, point: Point) -> Option<f64> {
        Some(match self {
            Term::CpuCycles => point.cpu.recip(),
            Term::MemoryCycles => point.memory.recip(),
            Term::Constant | Term::Floor => 1.0,
            Term::CpuCubed => point.cpu.powi(3),
            Term::Cpu => point.cpu,
            Term::Switching => point.voltage?.powi(2) * point.cpu,
            Term::Leakage => point.voltage?,
            Term::Memory => point.memory,
        })
    }
}

/// Terms with their parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// What it tells of.
    pub quantity: Quantity,
    /// Each term and its parameter.
    pub terms: Vec<(Term, f64)>,
}

impl Model {
    /// The time of a task: cycles of both clocks in millions, and ms.
    #[must_use]
    pub fn time(cpu: f64, memory: f64, constant: f64) -> Model {
        Model {
            quantity: Quantity::Time,
            terms: Term::TIME
                .into_iter()
                .zip([cpu, memory, constant])
                .collect(),
        }
    }

    /// Power in W, with frequencies in GHz.
    #[must_use]
    pub fn power(floor: f64, cpu_cubed: f64, memory: f64) -> Model {
        Model {
            quantity: Quantity::Power,
            terms: Term::POWER
                .into_iter()
                .zip([floor, cpu_cubed, memory])
                .collect(),
        }
    }

    /// The parameter of a term, 0 if the model lacks it.
    #[must_use]
    pub fn parameter(&self, term: Term) -> f64 {
        self.terms
            .iter()
            .find(|(known, _)| *known == term)
            .map_or(0.0, |(_, value)| *value)
    }

    /// Its value at a point, in the quantity's unit; none where a voltage is lacking.
    #[must_use]
    pub fn at(&self, point: Point) -> Option<f64> {
        self.terms
            .iter()
            .map(|(term, parameter)| Some(term.at(point)? * parameter))
            .sum()
    }
}

/// The pair of the least energy, time × power in mJ, among some; the first of equals.
#[must_use]
pub fn least_energy(
    time: &Model,
    power: &Model,
    pairs: impl IntoIterator<Item = Point>,
) -> Option<(Point, f64)> {
    let energies = pairs
        .into_iter()
        .filter_map(|pair| Some((pair, time.at(pair)? * power.at(pair)?)));
    energies.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The processor frequency in GHz below which running slower takes more energy, the memory's being given: where time ×
/// power is least if any frequency could be had. None if the least lies beyond `most`.
#[must_use]
pub fn critical_frequency(time: &Model, power: &Model, memory: f64, most: f64) -> Option<f64> {
    // The energy's slope changes its sign once: T falls as a / fp, P grows. A ternary search needs no derivative.
    let energy = |cpu: f64| {
        let point = Point::new(cpu, memory);
        Some(time.at(point)? * power.at(point)?)
    };
    let (mut low, mut high) = (most * 1e-3, most);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if energy(a)? <= energy(b)? {
            high = b;
        } else {
            low = a;
        }
    }
    (low < most * (1.0 - 1e-6)).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_the_sum_of_its_terms() {
        let time = Model::time(1.745, 0.0978, 0.327);
        let at = time
            .at(Point::mhz(700.0, 200.0))
            .expect("no voltage needed");
        assert!((at - (1.745 / 0.7 + 0.0978 / 0.2 + 0.327)).abs() < 1e-12);
        let by_voltage = Model {
            quantity: Quantity::Power,
            terms: vec![(Term::Floor, 1.0), (Term::Switching, 2.0)],
        };
        assert_eq!(by_voltage.at(Point::new(1.0, 1.0)), None);
        let point = Point {
            voltage: Some(1.5),
            ..Point::new(2.0, 1.0)
        };
        assert_eq!(by_voltage.at(point), Some(1.0 + 2.0 * 2.25 * 2.0));
    }

    #[test]
    fn with_a_floor_the_slowest_is_not_the_cheapest() {
        let (time, power) = (
            Model::time(1.745, 0.0978, 0.327),
            Model::power(2.336, 0.269, 0.210),
        );
        let pairs = (6..=14).map(|cpu| Point::new(f64::from(cpu) / 10.0, 0.5));
        let (best, _) = least_energy(&time, &power, pairs).expect("pairs");
        assert!(best.cpu > 0.6 && best.cpu < 1.5, "{best}");
        // T = a / f, P = floor + k f³ alone: the least is at (floor / 2k)^(1/3).
        let critical = critical_frequency(
            &Model::time(1.0, 0.0, 0.0),
            &Model::power(2.0, 1.0, 0.0),
            1.0,
            10.0,
        );
        let critical = critical.expect("inside");
        assert!((critical - 1.0).abs() < 1e-5, "{critical}");
        let never = critical_frequency(
            &Model::time(1.0, 0.0, 0.0),
            &Model::power(2.0, 0.0, 0.0),
            1.0,
            3.0,
        );
        assert_eq!(never, None);
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for (term, name) in NAMES {
            assert_eq!(Term::named(name), Some(term));
            assert_eq!(term.name(), name);
        }
        assert_eq!(Term::named("cpu_cubed"), None);
    }
}
