//! The order in which a chain of curves is convolved: what Salvalaggio, Zippo and Stea measured,
//! measured here, and the distribution over all trees that their paper leaves to the future.
//!
//! Invariant: every order and every tree of a set was checked to give one struct before a figure
//! of it is shown.

mod staircases;
mod study;

use metes_curve::plan::{Estimate, FirstPair, NextCurve, Plan};
use metes_curve::{Algebra, Curve, Optimisations};

use crate::statistics::{correlation, deviation, mean};
use metes_lab::{Figure, Plot, Report, Series};
use staircases::{Draw, Kind};
use study::{Study, duel};

/// Sets, each of other seeds, as in the paper.
const SETS: u64 = 7;
/// Curves of a set.
const CURVES: usize = 6;
/// Seeds of sets by which the default plan was not chosen begin behind this.
const UNSEEN: u64 = 100;
/// Runs of the default plan and of the best order, by turns.
const DUELS: usize = 31;
/// Pairs by which the estimates are judged.
const PAIRS: u64 = 5000;

/// Two steps a period, of whole numbers from 1 to 20.
const TWO_STEPS: Draw = Draw {
    kind: Kind::Constants,
    transient: 0,
    periodic: 2,
    most: 20,
    equal_slopes: false,
};

/// A jump and a flat stretch a period.
const JUMPS: Draw = Draw {
    kind: Kind::Jumps,
    periodic: 1,
    ..TWO_STEPS
};

/// A jump and a rise, twice a period.
const RISES: Draw = Draw {
    kind: Kind::Slopes,
    ..TWO_STEPS
};

/// One step a period, all curves of one slope in the long run.
const EQUAL_SLOPES: Draw = Draw {
    kind: Kind::Constants,
    transient: 0,
    periodic: 1,
    most: 4,
    equal_slopes: true,
};

/// A jump and a flat stretch, of one slope.
const EQUAL_JUMPS: Draw = Draw {
    kind: Kind::Jumps,
    most: 20,
    ..EQUAL_SLOPES
};

/// A jump and a flat stretch, of one slope, twice a period.
const EQUAL_TWO_JUMPS: Draw = Draw {
    periodic: 2,
    most: 6,
    ..EQUAL_JUMPS
};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A curve, or a convolution.
    #[error(transparent)]
    Curve(#[from] metes_curve::Error),
    /// Two orders gave two results.
    #[error("two orders of one chain gave different curves: this is a bug, please report it")]
    Differs,
}

/// How many sets are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Two, and pairs in proportion.
    Quick,
    /// As many as in the paper.
    Whole,
}

impl Effort {
    fn sets(self) -> u64 {
        match self {
            Effort::Quick => 2,
            Effort::Whole => SETS,
        }
    }
}

/// How convolutions are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// With the cuts that the paper's library has.
    Paper,
    /// With all that there is here.
    Ours,
}

impl Engine {
    const ALL: [Engine; 2] = [Engine::Paper, Engine::Ours];

    fn algebra(self) -> Algebra {
        match self {
            // Without the other cuts some trees meet more pairs than the default limit.
            Engine::Paper => Algebra {
                limit: 1_000_000_000,
                optimisations: Optimisations {
                    slope_gap: false,
                    growth: false,
                    super_isospeed: false,
                    common_divisor: false,
                    together: false,
                    ..Optimisations::all()
                },
                ..Algebra::default()
            },
            Engine::Ours => Algebra::default(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Engine::Paper => "isospeed",
            Engine::Ours => "all cuts",
        }
    }
}

fn assumptions() -> Vec<String> {
    [
        "the paper names neither its generator nor its seeds: curves are drawn as in its authors' earlier benchmarks, a rise and a flat stretch, twice a period, whole numbers from 1 to 20; seeds 1 to 7",
        "isospeed: convolutions cut by common multiples and isospeed, as the paper's library (Nancy, C#, another machine) cuts them, without its super-isospeed; all cuts: the default",
        "every time is the median of three runs after one that is dropped; percentile: how many of the 360 orders are faster",
        "all orders and all trees of each set gave the same curve, or there would be no report",
    ]
    .map(str::to_owned)
    .to_vec()
}

struct Sets {
    engine: Engine,
    curves: Vec<Vec<Curve>>,
    studies: Vec<Study>,
}

impl Sets {
    fn of(
        draw: &Draw,
        behind: u64,
        engine: Engine,
        effort: Effort,
        tell: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let mut curves = Vec::new();
        let mut studies = Vec::new();
        for seed in behind + 1..=behind + effort.sets() {
            let set = draw.set(CURVES, seed)?;
            let about = |what: &str| tell(&format!("{}, set {seed}: {what}", engine.name()));
            studies.push(Study::of(&set, &engine.algebra(), &about)?);
            curves.push(set);
        }
        Ok(Sets {
            engine,
            curves,
            studies,
        })
    }

    /// A value for each set.
    fn each(&self, value: impl Fn(&Study) -> f64) -> Vec<f64> {
        self.studies.iter().map(value).collect()
    }
}

/// The distribution over all orders, and over all trees.
///
/// # Errors
/// [`Error`].
pub fn distribution(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, Error> {
    let mut report = Report {
        experiment: "reorder-fig-1",
        rows: Vec::new(),
        assumptions: assumptions(),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    for engine in Engine::ALL {
        let sets = Sets::of(&TWO_STEPS, 0, engine, effort, tell)?;
        // The figure is of one set; of ours, the one with the greatest mean.
        let shown = sets
            .studies
            .iter()
            .max_by(|a, b| a.mean().total_cmp(&b.mean()));
        let Some(shown) = shown else {
            continue;
        };
        let name = engine.name();
        let of_shown = |what: &str, unit| Figure::new(format!("{name}, slowest set: {what}"), unit);
        let of_all = |what: &str| Figure::new(format!("{name}: {what}"), "x");
        let (best, worst) = shown.extremes();
        let spread = sets.each(|study| study.extremes().1 / study.extremes().0);
        let [least, most] = range(&spread);
        let trees = sets.each(|study| range(&study.trees)[0] / study.extremes().0);
        let mean_trees = sets.each(|study| mean(&study.trees).unwrap_or(f64::NAN) / study.mean());
        report.rows.extend([
            of_shown("fastest order", "s").paper(5.7).ours(best),
            of_shown("slowest order", "s").paper(111.8).ours(worst),
            of_shown("mean of orders", "s")
                .paper(38.48)
                .ours(shown.mean()),
            of_shown("slowest over mean", "x")
                .paper(111.8 / 38.48)
                .ours(worst / shown.mean()),
            of_all("slowest over fastest order, least of the sets")
                .paper(5.0)
                .ours(least),
            of_all("slowest over fastest order, greatest of the sets")
                .paper(20.0)
                .ours(most),
            of_all("fastest of 945 trees over fastest order, mean of the sets")
                .ours(mean(&trees))
                .note("trees: sums of their measured convolutions"),
            of_all("mean tree over mean order, mean of the sets").ours(mean(&mean_trees)),
        ]);
        if engine == Engine::Paper && least < 5.0 {
            report.contradicted.push(format!(
                "the slowest order takes five times the fastest or more: {least:.1} times in one set"
            ));
        }
        let orders: Vec<f64> = shown.orders.iter().map(|(_, seconds)| *seconds).collect();
        report.plots.push(histogram(name, &orders, &shown.trees));
    }
    Ok(report)
}

/// Shares of orders and of trees by multiples of the fastest order.
fn histogram(engine: &str, orders: &[f64], trees: &[f64]) -> Plot {
    const BARS: usize = 14;
    let [_, slowest] = range(&[range(orders)[1], range(trees)[1]]);
    let width = slowest / BARS as f64;
    let shares = |values: &[f64]| -> Vec<f64> {
        let mut counts = vec![0.0; BARS];
        for value in values {
            counts[((value / width) as usize).min(BARS - 1)] += 100.0 / values.len() as f64;
        }
        counts
    };
    Plot {
        title: format!("orders and trees of the slowest set, {engine}"),
        x: "milliseconds up to".to_owned(),
        names: (1..=BARS)
            .map(|bar| match 1e3 * width * bar as f64 {
                milliseconds if slowest < 1e-2 => format!("{milliseconds:.2}"),
                milliseconds => format!("{milliseconds:.1}"),
            })
            .collect(),
        y: "share, %".to_owned(),
        joined: true,
        series: vec![
            Series::measured("360 orders", shares(orders)),
            Series::measured("945 trees", shares(trees)),
        ],
    }
}

fn range(values: &[f64]) -> [f64; 2] {
    values.iter().fold(
        [f64::INFINITY, f64::NEG_INFINITY],
        |[least, most], value| [least.min(*value), most.max(*value)],
    )
}

/// Average, greatest, least and standard deviation.
type Summary = [f64; 4];

const COLUMNS: [&str; 4] = ["average", "greatest", "least", "standard deviation"];

fn summary(values: &[f64]) -> Summary {
    let [least, most] = range(values);
    let nan = f64::NAN;
    [
        mean(values).unwrap_or(nan),
        most,
        least,
        deviation(values).unwrap_or(nan),
    ]
}

/// A row for each column.
fn columns(
    ours: Summary,
    unit: &'static str,
    about: impl Fn(&str) -> String,
) -> impl Iterator<Item = Figure> {
    let columns = COLUMNS.into_iter().zip(ours);
    columns.map(move |(column, ours)| Figure::new(about(column), unit).ours(ours))
}

/// A row for each column of our figures, beside the paper's.
fn beside(
    paper: Summary,
    ours: Summary,
    about: impl Fn(&str) -> String,
) -> impl Iterator<Item = Figure> {
    let rows = columns(ours, "", about).zip(paper);
    rows.map(|(row, paper)| row.paper(paper))
}

/// Table I: percentiles of next-curve policies after the shortest between longest.
const NEXT: [(NextCurve, Summary); 3] = [
    (NextCurve::Shortest, [28.0, 68.0, 2.0, 24.0]),
    (NextCurve::Longest, [73.0, 99.0, 6.0, 33.0]),
    (NextCurve::Median, [58.0, 95.0, 14.0, 29.0]),
];

/// What tables II to V say of a first pair, the next curve being the shortest.
struct Published {
    first: FirstPair,
    percentile: Summary,
    /// To the mean order.
    ratio: Summary,
    /// Averages by runtime, Operation Count and Element Product.
    percentile_by: [f64; 3],
    ratio_by: [f64; 3],
}

#[expect(clippy::approx_constant, reason = "a published deviation is 0.318")]
const FIRST: [Published; 5] = [
    Published {
        first: FirstPair::Shortest,
        percentile: [40.0, 72.0, 7.0, 22.0],
        ratio: [0.783, 1.136, 0.486, 0.219],
        percentile_by: [40.0, 40.0, 40.0],
        ratio_by: [0.783, 0.783, 0.783],
    },
    Published {
        first: FirstPair::Longest,
        percentile: [44.0, 81.0, 11.0, 27.0],
        ratio: [0.916, 1.401, 0.588, 0.318],
        percentile_by: [44.0, 46.0, 51.0],
        ratio_by: [0.916, 1.009, 1.043],
    },
    Published {
        first: FirstPair::ShortestBetweenLongest,
        percentile: [28.0, 68.0, 2.0, 24.0],
        ratio: [0.643, 1.174, 0.324, 0.294],
        percentile_by: [28.0, 28.0, 28.0],
        ratio_by: [0.643, 0.643, 0.643],
    },
    Published {
        first: FirstPair::MedianOfMedians,
        percentile: [22.0, 73.0, 2.0, 24.0],
        ratio: [0.656, 1.289, 0.282, 0.312],
        percentile_by: [22.0, 29.0, 29.0],
        ratio_by: [0.656, 0.704, 0.704],
    },
    Published {
        first: FirstPair::ShortestMedian,
        percentile: [32.0, 73.0, 2.0, 23.0],
        ratio: [0.682, 1.144, 0.324, 0.254],
        percentile_by: [32.0, 31.0, 31.0],
        ratio_by: [0.682, 0.672, 0.672],
    },
];

/// The policies' percentiles and ratios, the estimates, and the default plan.
///
/// # Errors
/// [`Error`].
pub fn policies(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, Error> {
    let mut report = Report {
        experiment: "reorder-tables-1-5",
        rows: Vec::new(),
        assumptions: assumptions(),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    report.assumptions.push(
        "the columns of the paper's tables IV and V are taken in the order runtime, Operation Count, Element Product".to_owned(),
    );
    report.assumptions.push(format!(
        "the default plan was chosen by other sets of these kinds; it is measured on seeds from {} on",
        UNSEEN + 1
    ));
    report.assumptions.push(format!(
        "default plan over best order: medians of {DUELS} runs of each, by turns; the best order is that of the least median among 360"
    ));
    for engine in Engine::ALL {
        let sets = Sets::of(&TWO_STEPS, 0, engine, effort, tell)?;
        tables(&sets, &mut report)?;
        estimates(engine, effort, tell, &mut report)?;
    }
    for (kind, draw, allowed) in [
        ("distinct slopes", TWO_STEPS, 1.1),
        ("distinct slopes, jumps", JUMPS, 1.1),
        ("distinct slopes, jumps and rises", RISES, 1.1),
        ("equal slopes", EQUAL_SLOPES, 1.5),
        ("equal slopes, jumps", EQUAL_JUMPS, 1.5),
        ("equal slopes, two jumps", EQUAL_TWO_JUMPS, 1.5),
    ] {
        let sets = Sets::of(&draw, UNSEEN, Engine::Ours, effort, tell)?;
        default_plan(kind, &sets, allowed, &mut report)?;
    }
    Ok(report)
}

fn tables(sets: &Sets, report: &mut Report) -> Result<(), Error> {
    let (name, algebra) = (sets.engine.name(), sets.engine.algebra());
    let chosen = |first: FirstPair, next: NextCurve, estimate: Estimate| {
        let each = sets.studies.iter().map(|study| {
            let chosen = study.chosen(&algebra, first, next, estimate)?;
            let ratio = chosen.seconds / study.mean();
            let overhead = chosen.estimating / chosen.seconds;
            Ok([study.percentile(chosen.seconds), ratio, 100.0 * overhead])
        });
        let each: Vec<[f64; 3]> = each.collect::<Result<_, Error>>()?;
        Ok::<_, Error>(
            [0, 1, 2].map(|column| each.iter().map(|row| row[column]).collect::<Vec<f64>>()),
        )
    };
    let mut averages = Vec::new();
    for (next, paper) in NEXT {
        let [percentiles, ..] = chosen(FirstPair::ShortestBetweenLongest, next, Estimate::Runtime)?;
        let ours = summary(&percentiles);
        averages.push(ours[0]);
        report.rows.extend(beside(paper, ours, |column| {
            format!("{name}: table I, next {}: {column} percentile", next.name())
        }));
    }
    if averages[0] > averages[1] || averages[0] > averages[2] {
        report.contradicted.push(format!(
            "{name}: the shortest is the best next curve on average (percentiles {averages:.0?})"
        ));
    }
    for Published {
        first,
        percentile,
        ratio,
        percentile_by,
        ratio_by,
    } in FIRST
    {
        let [percentiles, ratios, _] = chosen(first, NextCurve::Shortest, Estimate::Runtime)?;
        for (table, paper, ours) in [
            ("II: percentile", percentile, summary(&percentiles)),
            ("III: over the mean order", ratio, summary(&ratios)),
        ] {
            report.rows.extend(beside(paper, ours, |column| {
                format!("{name}: table {table}, first {}: {column}", first.name())
            }));
        }
        for (place, estimate) in Estimate::ALL.into_iter().enumerate() {
            let [percentiles, ratios, overheads] = chosen(first, NextCurve::Shortest, estimate)?;
            let about = |what: &str| {
                format!(
                    "{name}: table {what}, first {}, by {}: average",
                    first.name(),
                    estimate.name()
                )
            };
            let mut row = Figure::new(about("IV: percentile"), "")
                .paper(percentile_by[place])
                .ours(mean(&percentiles));
            if estimate != Estimate::Runtime {
                let [least, most] = range(&overheads);
                row = row.note(format!(
                    "estimates take {least:.1} to {most:.1} % of the chain"
                ));
            }
            report.rows.push(row);
            report.rows.push(
                Figure::new(about("V: over the mean order"), "")
                    .paper(ratio_by[place])
                    .ours(mean(&ratios)),
            );
        }
    }
    Ok(())
}

/// How well the estimates tell the runtime of single convolutions.
fn estimates(
    engine: Engine,
    effort: Effort,
    tell: &dyn Fn(&str),
    report: &mut Report,
) -> Result<(), Error> {
    let pairs = PAIRS * effort.sets() / SETS;
    let algebra = engine.algebra();
    let mut seconds = Vec::new();
    let mut told = [Vec::new(), Vec::new()];
    for seed in 0..pairs {
        if seed % 500 == 0 {
            tell(&format!("{}: pair {seed} of {pairs}", engine.name()));
        }
        let pair = TWO_STEPS.set(2, 1000 + seed)?;
        seconds.push(study::seconds(&algebra, &pair[0], &pair[1])?);
        for (told, estimate) in told
            .iter_mut()
            .zip([Estimate::OperationCount, Estimate::ElementProduct])
        {
            told.push(algebra.estimated(estimate, &pair[0], &pair[1])?);
        }
    }
    for ((told, estimate), paper) in told
        .iter()
        .zip([Estimate::OperationCount, Estimate::ElementProduct])
        .zip([0.986, 0.981])
    {
        report.rows.push(
            Figure::new(
                format!(
                    "{}: linear correlation of {} and runtime",
                    engine.name(),
                    estimate.name()
                ),
                "",
            )
            .paper(paper)
            .ours(correlation(told, &seconds))
            .note(format!("{pairs} pairs; the paper: {PAIRS}")),
        );
    }
    Ok(())
}

/// The default plan beside the best order.
fn default_plan(kind: &str, sets: &Sets, allowed: f64, report: &mut Report) -> Result<(), Error> {
    let algebra = sets.engine.algebra();
    let mut regrets = Vec::new();
    let mut overheads = Vec::new();
    let mut longest = 0.0_f64;
    let mut means = Vec::new();
    for (curves, study) in sets.curves.iter().zip(&sets.studies) {
        let best = study.orders.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, _)) = best else { continue };
        let best = Plan::Order(best.clone());
        let [ours, planning, theirs] = duel(curves, &algebra, [&Plan::Automatic, &best], DUELS)?;
        regrets.push(ours / theirs);
        overheads.push(100.0 * planning / ours);
        longest = longest.max(1e6 * planning);
        means.push(1e3 * study.mean());
    }
    let regret = summary(&regrets);
    let overhead = summary(&overheads);
    let over_best = columns(regret, "x", |column| {
        format!("default plan over the best of 360 orders, {kind}: {column}")
    });
    let planning = columns(overhead, "%", |column| {
        format!("planning, share of the chain, {kind}: {column}")
    });
    report
        .rows
        .extend(over_best.take(3).chain(planning.take(3)));
    report
        .rows
        .push(Figure::new(format!("planning, {kind}: longest"), "µs").ours(longest));
    report.rows.push(
        Figure::new(format!("mean order of a set, {kind}: greatest"), "ms").ours(range(&means)[1]),
    );
    if regret[1] > allowed {
        report.contradicted.push(format!(
            "the default plan takes at most {allowed} times the best order, {kind}: {:.2} times in one set",
            regret[1]
        ));
    }
    if overhead[1] > 1.0 {
        report.contradicted.push(format!(
            "planning takes at most 1 % of a chain, {kind}: {:.1} % in one set, of chains of microseconds; {longest:.1} µs at most",
            overhead[1]
        ));
    }
    Ok(())
}
