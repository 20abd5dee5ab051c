//! What differs between two sides.
//!
//! Invariant: comparing a side with itself finds nothing; the order of findings is fixed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::classes::class;
use super::facts::Facts;
use super::pairs::{most_grown, moved, numbered};
use super::thresholds::{Thresholds, What};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// Modelled cycles, or events.
    Cycles,
}

/// What a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Beyond its threshold.
    Worse,
    /// More, within its threshold.
    Changed,
    /// Less.
    Better,
    /// Neither.
    Same,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The threshold that it is held against.
    pub threshold: &'static str,
    /// What it is of.
    pub what: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// What both count.
    pub unit: Unit,
    /// What the difference is.
    pub verdict: Verdict,
    /// In words, with what is to blame.
    pub sentence: String,
}

/// What a side is called, and of what heap its footprint is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The file or directory.
    pub name: String,
    /// The heap.
    pub heap: Option<String>,
}

/// Both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document.
    pub version: u32,
    /// The first side.
    pub before: Side,
    /// The second.
    pub after: Side,
    /// How many things are worse.
    pub worse: u64,
    /// All figures, the worse ones first.
    pub findings: Vec<Finding>,
    /// What counts as worse.
    pub thresholds: Vec<String>,
    /// Live bytes of both over percent of their events.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// Whose.
    pub name: String,
    /// Percent of the events, live bytes.
    pub points: Vec<(f64, u64)>,
}

impl Comparison {
    /// Differences, those that are no worse included; equal figures are none.
    pub fn differences(&self) -> impl Iterator<Item = &Finding> {
        let all = self.findings.iter();
        all.filter(|finding| finding.verdict != Verdict::Same)
    }

    /// The page: one file that opens from disk.
    ///
    /// # Errors
    /// When it cannot be written as JSON (a number that is none).
    pub fn page(&self) -> serde_json::Result<String> {
        Ok(metes_ui::COMPARE.fill(&serde_json::to_string(self)?))
    }
}

/// Compares two sides, each with its name. O(sizes log sizes).
pub fn compare(
    before: (&str, &Facts),
    after: (&str, &Facts),
    thresholds: &Thresholds,
) -> Comparison {
    let mut findings = Findings {
        thresholds,
        found: Vec::new(),
    };
    findings.totals(before.1, after.1);
    findings.leaks(before.1, after.1);
    findings.sizes(before.1, after.1);
    findings.runs(before.1, after.1);
    let mut found = findings.found;
    found.sort_by_key(|finding| finding.verdict);
    let worse = found.iter().filter(|one| one.verdict == Verdict::Worse);
    let curve = |name: &str, facts: &Facts| Curve {
        name: name.to_owned(),
        points: facts.curve.clone(),
    };
    let side = |name: &str, facts: &Facts| Side {
        name: name.to_owned(),
        heap: facts.heap.clone(),
    };
    Comparison {
        version: 1,
        worse: worse.count() as u64,
        findings: found,
        thresholds: thresholds.sentences(),
        curves: vec![curve(before.0, before.1), curve(after.0, after.1)],
        before: side(before.0, before.1),
        after: side(after.0, after.1),
    }
}

struct Findings<'t> {
    thresholds: &'t Thresholds,
    found: Vec<Finding>,
}

impl Findings<'_> {
    /// A figure of both sides; what is to blame is said where it is worse.
    fn figure(
        &mut self,
        what: What,
        name: &str,
        unit: Unit,
        sides: [Option<u64>; 2],
        blame: impl FnOnce() -> String,
    ) {
        let [Some(before), Some(after)] = sides else {
            return;
        };
        let exceeded = self
            .thresholds
            .exceeded(what, before, after.saturating_sub(before));
        self.push(
            what,
            name,
            unit,
            [before as f64, after as f64],
            exceeded,
            blame,
        );
    }

    fn push(
        &mut self,
        what: What,
        name: &str,
        unit: Unit,
        [before, after]: [f64; 2],
        exceeded: bool,
        blame: impl FnOnce() -> String,
    ) {
        let verdict = match after.total_cmp(&before) {
            std::cmp::Ordering::Equal => Verdict::Same,
            std::cmp::Ordering::Less => Verdict::Better,
            std::cmp::Ordering::Greater if exceeded => Verdict::Worse,
            std::cmp::Ordering::Greater => Verdict::Changed,
        };
        let blame = match verdict {
            Verdict::Worse => blame(),
            _ => String::new(),
        };
        self.found.push(Finding {
            threshold: what.name(),
            what: name.to_owned(),
            before,
            after,
            unit,
            verdict,
            sentence: format!(
                "{name}: {} before, {} after{}{blame}",
                shown(before, unit),
                shown(after, unit),
                match before > 0.0 && before != after {
                    true => format!(" ({:+.1} %)", (after / before - 1.0) * 100.0),
                    false => String::new(),
                }
            ),
        });
    }

    fn totals(&mut self, before: &Facts, after: &Facts) {
        let nobody = String::new;
        let both = |of: fn(&Facts) -> Option<u64>| [of(before), of(after)];
        self.figure(
            What::PeakLive,
            "peak of live bytes",
            Unit::Bytes,
            both(|f| f.peak_live),
            nobody,
        );
        self.figure(
            What::PeakBlocks,
            "peak of live blocks",
            Unit::Count,
            both(|f| f.peak_blocks),
            nobody,
        );
        let grown = || most_grown(before, after);
        self.figure(
            What::Allocations,
            "allocations",
            Unit::Count,
            both(|f| f.allocations),
            grown,
        );
        self.figure(
            What::Allocations,
            "resizes",
            Unit::Count,
            both(|f| f.resizes),
            nobody,
        );
        let burst = |facts: &Facts| facts.burst.map(|burst| burst.allocations);
        self.figure(
            What::Bursts,
            "longest burst of allocations",
            Unit::Count,
            [burst(before), burst(after)],
            || {
                after.burst.map_or_else(String::new, |burst| {
                    let size = burst.size.map(|size| format!(", mostly of {size} bytes"));
                    let from = burst
                        .from
                        .map(|from| format!("; it begins at event {from}"));
                    format!("{}{}", size.unwrap_or_default(), from.unwrap_or_default())
                })
            },
        );
        if let (Some(own), Some(other)) = (before.life, after.life) {
            let percent = self.thresholds.percent(What::Lifetimes);
            let exceeded = other > own * (1.0 + percent / 100.0);
            self.push(
                What::Lifetimes,
                "mean life of a block, in events",
                Unit::Cycles,
                [own, other],
                exceeded,
                nobody,
            );
        }
        let heap = match (&before.heap, &after.heap) {
            (Some(own), Some(other)) if own == other => format!("footprint on {own}"),
            (Some(own), Some(other)) => format!("footprint, on {own} and on {other}"),
            _ => "footprint".to_owned(),
        };
        self.figure(
            What::Footprint,
            &heap,
            Unit::Bytes,
            both(|f| f.footprint),
            nobody,
        );
        if let (Some(own), Some(other)) = (before.cycles, after.cycles) {
            let percent = self.thresholds.percent(What::Cycles);
            let exceeded = other > own * (1.0 + percent / 100.0);
            self.push(
                What::Cycles,
                "cycles of a request on the heap",
                Unit::Cycles,
                [own, other],
                exceeded,
                nobody,
            );
        }
    }

    /// What is never freed, in all and of each size.
    fn leaks(&mut self, before: &Facts, after: &Facts) {
        let base = after.peak_live.unwrap_or(0);
        if let (Some(own), Some(other)) = (before.left, after.left) {
            let exceeded = self
                .thresholds
                .exceeded(What::Leaks, base, other.saturating_sub(own));
            let sides = [own as f64, other as f64];
            self.push(
                What::Leaks,
                "bytes never freed",
                Unit::Bytes,
                sides,
                exceeded,
                String::new,
            );
        }
        if let (Some(own), Some(other)) = (before.left_blocks, after.left_blocks) {
            let sides = [own as f64, other as f64];
            // Without bytes, blocks must do: each has one at least.
            let alone = before.left.is_none() || after.left.is_none();
            let more = other.saturating_sub(own);
            let exceeded =
                alone && more > What::PeakBlocks.floor() && self.more_blocks(after, more);
            self.push(
                What::Leaks,
                "blocks never freed",
                Unit::Count,
                sides,
                exceeded,
                String::new,
            );
        }
        let left = |facts: &Facts, size: u64| match facts.sizes.get(&size) {
            Some(own) => own.left,
            None => Some(0),
        };
        for &size in after.sizes.keys() {
            let (Some(own), Some(other)) = (left(before, size), left(after, size)) else {
                continue;
            };
            let more = other.saturating_sub(own);
            if self
                .thresholds
                .exceeded(What::Leaks, base, more.saturating_mul(size))
            {
                let name = format!("blocks of {size} bytes never freed");
                self.push(
                    What::Leaks,
                    &name,
                    Unit::Count,
                    [own as f64, other as f64],
                    true,
                    || {
                        format!(
                            ": {more} more, {} bytes: a leak?",
                            more.saturating_mul(size)
                        )
                    },
                );
            }
        }
    }

    fn more_blocks(&self, after: &Facts, more: u64) -> bool {
        let peak = after.peak_blocks.unwrap_or(0) as f64;
        more as f64 > peak * self.thresholds.percent(What::Leaks) / 100.0
    }

    /// Sizes that took the place of smaller ones, of a lower class.
    fn sizes(&mut self, before: &Facts, after: &Facts) {
        let base = after.peak_live.unwrap_or(0);
        for (from, to, blocks) in moved(&before.sizes, &after.sizes) {
            let (own, other) = (class(from), class(to));
            if other <= own {
                continue;
            }
            let peak = after
                .sizes
                .get(&to)
                .map_or(0, |size| size.peak_blocks)
                .min(blocks);
            // What the class takes more than the program asks for more.
            let lost = (other - own)
                .saturating_sub(to - from)
                .saturating_mul(peak.max(1));
            let exceeded = self.thresholds.exceeded(What::Sizes, base, lost);
            let name =
                format!("blocks of {from} bytes became blocks of {to}: bytes of their class");
            self.push(What::Sizes, &name, Unit::Bytes, [own as f64, other as f64], exceeded, || {
                format!(
                    "; {blocks} requests, {peak} blocks at once: a class boundary lies between, and costs {lost} bytes \
                     at their peak"
                )
            });
        }
    }

    /// The runs that both results have.
    fn runs(&mut self, before: &Facts, after: &Facts) {
        // Some may be called alike: the first beside the first.
        let known: BTreeMap<(&str, u64), _> = numbered(&before.runs).collect();
        let figures = [
            (What::PeakLive, "peak of live bytes of"),
            (What::Footprint, "footprint of"),
        ];
        for (name_of_run, run) in numbered(&after.runs) {
            let Some(own) = known.get(&name_of_run) else {
                continue;
            };
            for (what, name) in figures {
                let sides = match what {
                    What::PeakLive => [own.peak_live, run.peak_live],
                    _ => [own.footprint, run.footprint],
                };
                self.figure(
                    what,
                    &format!("{name} run {}", run.name),
                    Unit::Bytes,
                    sides,
                    String::new,
                );
            }
        }
    }
}

/// A figure as people read it.
fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{value:.0} bytes"),
        Unit::Count => format!("{value:.0}"),
        Unit::Cycles => format!("{value:.1}"),
    }
}
