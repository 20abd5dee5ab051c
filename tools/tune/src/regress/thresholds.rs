//! How much more of something counts as worse.
//!
//! Invariant: each threshold has a name, a default and a meaning in a sentence; a change below its floor never counts,
//! since what a libc or a locale asks for differs by so much from machine to machine.

use std::str::FromStr;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Most bytes live at once.
    PeakLive,
    /// Most blocks live at once.
    PeakBlocks,
    /// Allocations and resizes.
    Allocations,
    /// What was never freed.
    Leaks,
    /// Sizes over the boundary of a class.
    Sizes,
    /// Mean life of a block.
    Lifetimes,
    /// The longest burst of allocations.
    Bursts,
    /// What the heap takes from the system.
    Footprint,
    /// Modelled cycles of a request.
    Cycles,
}

impl What {
    const ALL: [What; 9] = [
        What::PeakLive,
        What::PeakBlocks,
        What::Allocations,
        What::Leaks,
        What::Sizes,
        What::Lifetimes,
        What::Bursts,
        What::Footprint,
        What::Cycles,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            What::PeakLive => "peak-live",
            What::PeakBlocks => "peak-blocks",
            What::Allocations => "allocations",
            What::Leaks => "leaks",
            What::Sizes => "sizes",
            What::Lifetimes => "lifetimes",
            What::Bursts => "bursts",
            What::Footprint => "footprint",
            What::Cycles => "cycles",
        }
    }

    /// Percent that count as worse, unless said otherwise.
    const fn default_percent(self) -> f64 {
        match self {
            What::PeakLive | What::Footprint => 5.0,
            What::PeakBlocks | What::Allocations | What::Cycles => 10.0,
            What::Leaks | What::Sizes => 1.0,
            What::Lifetimes => 50.0,
            What::Bursts => 25.0,
        }
    }

    /// What more is never worse: bytes, or blocks.
    pub(super) const fn floor(self) -> u64 {
        match self {
            What::PeakLive | What::Leaks => 1024,
            What::Sizes => 256,
            What::Footprint => 4096,
            What::PeakBlocks | What::Allocations | What::Bursts => 16,
            What::Lifetimes | What::Cycles => 0,
        }
    }

    /// Of what the percent are, and what more is let through.
    const fn meaning(self) -> &'static str {
        match self {
            What::PeakLive => "more live bytes at the peak",
            What::PeakBlocks => "more live blocks at the peak",
            What::Allocations => "more allocations, or resizes",
            What::Leaks => "of the peak of live bytes more never freed, in all or of one size",
            What::Sizes => {
                "of the peak of live bytes more lost to the class of a size that grew over a boundary"
            }
            What::Lifetimes => "longer mean life of a block, in events",
            What::Bursts => "more allocations in the longest burst",
            What::Footprint => "more footprint on the heap, in all or of one run",
            What::Cycles => "more modelled cycles of a request on the heap",
        }
    }
}

/// One percentage for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds([f64; 9]);

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds(What::ALL.map(What::default_percent))
    }
}

/// Why a text sets no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ThresholdError(String);

/// A setting: of one, or of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    what: Option<What>,
    percent: f64,
}

impl FromStr for Setting {
    type Err = ThresholdError;

    /// Reads `peak-live=10` or `10`.
    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let (what, number) = match text.split_once('=') {
            None => (None, text),
            Some((name, number)) => {
                let found = What::ALL
                    .into_iter()
                    .find(|what| what.name() == name.trim());
                let what = found.ok_or_else(|| {
                    let names = What::ALL.map(What::name).join(", ");
                    ThresholdError(format!("there is no threshold `{name}`: {names}"))
                })?;
                (Some(what), number)
            }
        };
        let number = number.trim().trim_end_matches('%').trim_end();
        match number.parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Setting { what, percent }),
            _ => Err(ThresholdError(format!(
                "`{number}` is no percentage: give 0 or more, as in peak-live=10"
            ))),
        }
    }
}

impl Thresholds {
    /// The defaults, with some settings; later ones count.
    pub fn with(settings: &[Setting]) -> Self {
        let mut all = Thresholds::default();
        for setting in settings {
            match setting.what {
                Some(what) => all.0[what as usize] = setting.percent,
                None => all.0 = [setting.percent; 9],
            }
        }
        all
    }

    /// Percent of one.
    pub fn percent(&self, what: What) -> f64 {
        self.0[what as usize]
    }

    /// Whether `more` beyond a base is too much.
    pub(super) fn exceeded(&self, what: What, base: u64, more: u64) -> bool {
        more > what.floor() && more as f64 > base as f64 * self.percent(what) / 100.0
    }

    /// Each in a sentence.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |what: What| {
            let floor = match what.floor() {
                0 => String::new(),
                floor => format!(", and more than {floor}"),
            };
            format!(
                "`{}`: {} %{floor} {}",
                what.name(),
                self.percent(what),
                what.meaning()
            )
        };
        What::ALL.map(sentence).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_wrong_ones_say_what_there_is() {
        let settings = ["5", "leaks=0", "peak-live = 12.5 %"].map(|text| text.parse().unwrap());
        let all = Thresholds::with(&settings);
        assert_eq!(all.percent(What::Leaks), 0.0);
        assert_eq!(all.percent(What::PeakLive), 12.5);
        assert_eq!(all.percent(What::Bursts), 5.0);
        for wrong in ["peaks=1", "leaks=", "-1", "leaks=NaN", "inf", ""] {
            let error = wrong.parse::<Setting>().unwrap_err().to_string();
            assert!(
                error.contains("leaks") || error.contains("percentage"),
                "{error}"
            );
        }
        assert!(!all.exceeded(What::Leaks, 0, 1024) && all.exceeded(What::Leaks, 0, 1025));
    }
}
