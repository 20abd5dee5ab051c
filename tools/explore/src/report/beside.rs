//! A program on today's allocators beside the chosen heap: what runs of it took.
//!
//! Invariant: every figure is the median of runs that ended as the program ends; who failed has none.

use serde::Serialize;

/// All allocators that a program was run on, by turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Beside {
    /// Runs on each; 0 where the program was not run.
    pub runs: u32,
    /// Seconds that all of them took.
    pub seconds: f64,
    /// One of each, that of the C library first.
    pub rows: Vec<BesideRow>,
    /// Allocators that are known and not installed.
    pub missing: Vec<Missing>,
    /// Whether the system counts instructions.
    pub instructions_counted: bool,
    /// Why the program was not run, in words.
    pub not_run: Option<String>,
}

/// The program on one allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BesideRow {
    /// Its name: `glibc`, `chosen`, `per-thread`, `jemalloc` and so on.
    pub allocator: String,
    /// The library that was preloaded; none for the C library's own.
    pub library: Option<String>,
    /// What a run took, each figure the median by itself.
    pub median: Option<Took>,
    /// Figures over those of the C library's own allocator.
    pub to_glibc: Option<Ratios>,
    /// What was wrong with a run, in words.
    pub failed: Option<String>,
}

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Took {
    /// Most bytes resident at once, of the process that had most.
    pub peak_resident: u64,
    /// Processor time in user mode and in the kernel.
    pub cpu_seconds: f64,
    /// Page faults that were served without a read.
    pub minor_faults: u64,
    /// Page faults that were served by a read.
    pub major_faults: u64,
    /// Instructions in user mode; none where the system does not count them.
    pub instructions: Option<u64>,
}

/// Figures over others; none where those are 0 or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Of peak resident sets.
    pub peak_resident: Option<f64>,
    /// Of processor times.
    pub cpu_seconds: Option<f64>,
    /// Of page faults without a read.
    pub minor_faults: Option<f64>,
    /// Of page faults with a read.
    pub major_faults: Option<f64>,
    /// Of instructions.
    pub instructions: Option<f64>,
}

/// An allocator that is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its name.
    pub allocator: &'static str,
    /// Where it is to be had, in words.
    pub from: &'static str,
}

impl Took {
    /// Each figure's median: of an even number of runs the lower of the two in the middle. None of no run.
    #[must_use]
    pub fn median(runs: &[Took]) -> Option<Took> {
        let middle = runs.len().checked_sub(1)? / 2;
        let of = |figure: fn(&Took) -> u64| {
            let mut figures: Vec<u64> = runs.iter().map(figure).collect();
            figures.sort_unstable();
            figures[middle]
        };
        let mut seconds: Vec<f64> = runs.iter().map(|run| run.cpu_seconds).collect();
        seconds.sort_unstable_by(f64::total_cmp);
        let counted = runs.iter().all(|run| run.instructions.is_some());
        Some(Took {
            peak_resident: of(|run| run.peak_resident),
            cpu_seconds: seconds[middle],
            minor_faults: of(|run| run.minor_faults),
            major_faults: of(|run| run.major_faults),
            instructions: counted.then(|| of(|run| run.instructions.unwrap_or(0))),
        })
    }

    /// These figures over others.
    #[must_use]
    pub fn over(&self, other: &Took) -> Ratios {
        let ratio = |figure: f64, base: f64| (base > 0.0).then(|| figure / base);
        let of = |figure: fn(&Took) -> u64| ratio(figure(self) as f64, figure(other) as f64);
        Ratios {
            peak_resident: of(|took| took.peak_resident),
            cpu_seconds: ratio(self.cpu_seconds, other.cpu_seconds),
            minor_faults: of(|took| took.minor_faults),
            major_faults: of(|took| took.major_faults),
            instructions: (self.instructions.zip(other.instructions))
                .and_then(|(own, other)| ratio(own as f64, other as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(peak_resident: u64, cpu_seconds: f64, instructions: Option<u64>) -> Took {
        Took {
            peak_resident,
            cpu_seconds,
            minor_faults: 10,
            major_faults: 0,
            instructions,
        }
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let runs = [
            took(3, 0.1, Some(7)),
            took(1, 0.3, Some(9)),
            took(2, 0.2, Some(8)),
        ];
        assert_eq!(Took::median(&runs), Some(took(2, 0.2, Some(8))));
        assert_eq!(Took::median(&runs[..2]), Some(took(1, 0.1, Some(7))));
        assert_eq!(Took::median(&[]), None);
        let uncounted = [runs[0], took(2, 0.2, None), runs[1]];
        assert_eq!(
            Took::median(&uncounted).map(|one| one.instructions),
            Some(None)
        );
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        let ratios = took(3, 0.5, Some(8)).over(&took(2, 0.0, None));
        assert_eq!(ratios.peak_resident, Some(1.5));
        assert_eq!(ratios.minor_faults, Some(1.0));
        assert_eq!(
            (ratios.cpu_seconds, ratios.major_faults, ratios.instructions),
            (None, None, None)
        );
    }
}
