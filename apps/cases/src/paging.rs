//! Constant-time virtual memory beside a page table (`rtmmu-table-1`, `rtmmu-fig-5`, `-6`, `-7`):
//! Böhnert and Scholl, RTCSA 2014, section V.
//!
//! The paper times calls on an OpenRISC core; ours are counted in instructions of x86-64, for each
//! call the most that what it did can take. So times are compared by their ratio between the two
//! systems, pages as they are.
//!
//! Invariant: both systems replay the same steps.

use metes_lab::{Figure, Plot, Report, Series};
use metes_paging::bench::Costs;
use metes_paging::trace::{NotPlayed, Played, play};
use metes_trace::TouchOperation;

use crate::touches::{Options, actions, recorded};

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum PagingError {
    /// No single steps here.
    #[error("instructions cannot be counted: {0}")]
    Count(#[from] std::io::Error),
    /// A trace that is none.
    #[error(transparent)]
    Trace(#[from] metes_trace::TraceError),
    /// A trace that the systems cannot replay.
    #[error("{name}: {error}")]
    Play {
        /// Which one.
        name: String,
        /// Why.
        error: NotPlayed,
    },
}

/// A row of the paper's table I: µs of an allocation and of a free, and pages.
struct Published {
    constant: [f64; 3],
    conventional: [f64; 3],
}

const fn published(constant: [f64; 3], conventional: [f64; 3]) -> Published {
    Published {
        constant,
        conventional,
    }
}

const SYNTHETIC: Published = published([339.0, 945.0, 2_971.0], [237.0, 4_145_462.0, 180_132.0]);

/// What is published of the programs, by the names of the traces that stand in for them.
const PROGRAMS: [(&str, Published); 6] = [
    (
        "ffmpeg",
        published([327.0, 547.0, 621.0], [233.0, 2_263.0, 781.0]),
    ),
    (
        "fft",
        published([326.0, 524.0, 6_263.0], [233.0, 94_305.0, 6_263.0]),
    ),
    (
        "mc",
        published([336.0, 747.0, 206.0], [232.0, 2_899_292.0, 96_035.0]),
    ),
    (
        "models",
        published([327.0, 702.0, 4_522.0], [233.0, 73_454.0, 4_718.0]),
    ),
    (
        "minisat",
        published([325.0, 668.0, 2_942.0], [233.0, 37_854.0, 3_176.0]),
    ),
    (
        "php",
        published([322.0, 437.0, 476.0], [233.0, 1_423_306.0, 476.0]),
    ),
];

/// Largest blocks of the synthetic workload that are tried: the paper does not say its own.
const LARGEST: [u64; 4] = [64 << 10, 512 << 10, 2 << 20, 4 << 20];

/// How much is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// 50 000 actions.
    Quick,
    /// The paper's million.
    Whole,
}

impl Effort {
    fn actions(self) -> u64 {
        match self {
            Self::Quick => 50_000,
            Self::Whole => 1_000_000,
        }
    }
}

/// Steps of the synthetic workload.
fn synthetic(largest: u64, effort: Effort) -> Vec<TouchOperation> {
    let options = Options {
        actions: effort.actions(),
        largest,
        ..Options::default()
    };
    actions(&options).map(Iterator::collect).unwrap_or_default()
}

fn played(
    name: &str,
    steps: &[TouchOperation],
    costs: &Costs,
) -> Result<(Played, Played), PagingError> {
    play(steps, costs).map_err(|error| PagingError::Play {
        name: name.to_owned(),
        error,
    })
}

/// Table I: the most instructions of an allocation and of a free, and the most pages with a frame.
///
/// # Errors
/// [`PagingError`].
pub fn table_1(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, PagingError> {
    tell("counting instructions");
    let costs = Costs::count()?;
    let mut report = Report {
        experiment: "rtmmu-table-1",
        rows: Vec::new(),
        assumptions: assumptions(&costs),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    for largest in LARGEST {
        let name = format!("synthetic, blocks up to {} KiB", largest >> 10);
        tell(&name);
        let pair = played(&name, &synthetic(largest, effort), &costs)?;
        rows(&mut report, &name, &SYNTHETIC, &pair, &costs);
    }
    for (name, published) in &PROGRAMS {
        let Some(program) = recorded(name) else {
            continue;
        };
        tell(program.what);
        let steps = program.operations()?.collect::<Result<Vec<_>, _>>()?;
        let pair = played(name, &steps, &costs)?;
        let row = format!("{} ({name})", program.stands_for);
        rows(&mut report, &row, published, &pair, &costs);
        report
            .assumptions
            .push(format!("{}: {}", program.stands_for, program.what));
    }
    Ok(report)
}

fn assumptions(costs: &Costs) -> Vec<String> {
    vec![
        format!(
            "instructions of a call: what it did, each part at its longest path on x86-64 (place {}, release {}, \
             map {}, unmap {}; page table: fault {}, unmap {} + {} a page); the paper's µs are of an OpenRISC \
             at a clock that it does not say, so ratios between the systems are compared",
            costs.place,
            costs.release,
            costs.map,
            costs.unmap,
            costs.table_map_page,
            costs.table_unmap,
            costs.table_unmap_page
        ),
        "TLSF places the blocks in both systems; here its records are out of band, there boundary tags lie in \
         band, as in both systems of the paper"
            .to_owned(),
        "pages of 4 KiB, 2^20 of them; a block takes up to three regions, as a page that it shares is one alone"
            .to_owned(),
        "the paper discloses neither the sizes of the synthetic workload nor the inputs of its programs: shapes \
         can be compared, values cannot"
            .to_owned(),
    ]
}

/// The rows of one workload.
fn rows(
    report: &mut Report,
    name: &str,
    published: &Published,
    (constant, conventional): &(Played, Played),
    costs: &Costs,
) {
    let over = |ours: u64, other: u64| ours as f64 / other as f64;
    report.rows.push(
        Figure::new(
            format!("{name}: most of an allocation over the page table's"),
            "x",
        )
        .paper(published.constant[0] / published.conventional[0])
        .ours(over(constant.allocate_max, conventional.allocate_max))
        .note(format!(
            "{} and {} instructions",
            constant.allocate_max, conventional.allocate_max
        )),
    );
    report.rows.push(
        Figure::new(
            format!("{name}: page table's most of a free over ours"),
            "x",
        )
        .paper(published.conventional[1] / published.constant[1])
        .ours(over(conventional.free_max, constant.free_max))
        .note(format!(
            "{} and {} instructions",
            conventional.free_max, constant.free_max
        )),
    );
    report.rows.push(
        Figure::new(format!("{name}: most pages with a frame"), "")
            .paper(published.constant[2])
            .ours(f64::from(constant.footprint)),
    );
    report.rows.push(
        Figure::new(format!("{name}: of the page table"), "")
            .paper(published.conventional[2])
            .ours(f64::from(conventional.footprint)),
    );
    let bound = costs.release + 3 * costs.unmap;
    if constant.free_max > bound {
        report.contradicted.push(format!(
            "{name}: a free took {} instructions",
            constant.free_max
        ));
    }
    if constant.footprint > conventional.footprint {
        report
            .contradicted
            .push(format!("{name}: more pages than the page table has"));
    }
}

/// Which figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Figure 5: allocations by size.
    Allocations,
    /// Figure 6: frees by size.
    Frees,
    /// Figure 7: pages with a frame, call by call.
    Footprint,
}

/// Figures 5 to 7: the synthetic workload's calls on both systems.
///
/// # Errors
/// [`PagingError`].
pub fn picture(
    picture: Picture,
    effort: Effort,
    tell: &dyn Fn(&str),
) -> Result<Report, PagingError> {
    tell("counting instructions");
    let costs = Costs::count()?;
    let largest = LARGEST[LARGEST.len() - 1];
    tell("the synthetic workload");
    let pair = played("synthetic", &synthetic(largest, effort), &costs)?;
    let mut assumptions = assumptions(&costs);
    assumptions.push(format!(
        "blocks of 1 to {largest} bytes, each size as likely as any other"
    ));
    Ok(match picture {
        Picture::Allocations => by_size(
            "rtmmu-fig-5",
            true,
            costs.place + 3 * costs.map,
            &pair,
            assumptions,
        ),
        Picture::Frees => by_size(
            "rtmmu-fig-6",
            false,
            costs.release + 3 * costs.unmap,
            &pair,
            assumptions,
        ),
        Picture::Footprint => footprint(&pair, assumptions),
    })
}

/// The most and the least instructions of calls by size of the block, a power of two a column.
fn by_size(
    experiment: &'static str,
    allocations: bool,
    bound: u64,
    (constant, conventional): &(Played, Played),
    assumptions: Vec<String>,
) -> Report {
    let classes = |played: &Played| {
        let mut classes = [None::<(u64, u64)>; 65];
        for call in played
            .calls
            .iter()
            .filter(|call| call.allocation == allocations)
        {
            let class = &mut classes[64 - call.size.leading_zeros() as usize];
            let (least, most) = class.unwrap_or((u64::MAX, 0));
            *class = Some((least.min(call.instructions), most.max(call.instructions)));
        }
        classes
    };
    let (ours, theirs) = (classes(constant), classes(conventional));
    let mut rows = Vec::new();
    let mut names = Vec::new();
    let mut series: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for (class, both) in ours.into_iter().zip(theirs).enumerate() {
        let (Some(ours), Some(theirs)) = both else {
            continue;
        };
        let name = metes_quantity::bytes(1_u64 << class);
        rows.push(
            Figure::new(
                format!("blocks below {name}: most on constant-time pages"),
                "instructions",
            )
            .ours(ours.1 as f64)
            .note(format!("least {}", ours.0)),
        );
        rows.push(
            Figure::new(
                format!("blocks below {name}: most on a page table"),
                "instructions",
            )
            .ours(theirs.1 as f64)
            .note(format!("least {}", theirs.0)),
        );
        names.push(name);
        series[0].push(ours.1 as f64);
        series[1].push(theirs.1 as f64);
    }
    let [ours, theirs] = series;
    // Three regions at most, whatever the size.
    let contradicted = match ours.iter().any(|&most| most > bound as f64) {
        true => vec![format!(
            "a call on constant-time pages took more than {bound} instructions"
        )],
        false => Vec::new(),
    };
    let what = if allocations {
        "an allocation"
    } else {
        "a free"
    };
    Report {
        experiment,
        rows,
        assumptions,
        contradicted,
        plots: vec![Plot {
            title: format!("Most instructions of {what}, by size"),
            x: "bytes of the block, below".to_owned(),
            names,
            y: "instructions".to_owned(),
            joined: true,
            series: vec![
                Series::measured("constant-time pages", ours),
                Series::measured("page table", theirs),
            ],
        }],
    }
}

/// Pages with a frame, at a hundred calls.
fn footprint((constant, conventional): &(Played, Played), assumptions: Vec<String>) -> Report {
    const POINTS: usize = 100;
    let calls = constant.calls.len();
    let at: Vec<usize> = (1..=POINTS).map(|point| point * calls / POINTS).collect();
    // The most since the point before, so that no peak is lost.
    let most = |played: &Played| -> Vec<f64> {
        let mut from = 0;
        at.iter()
            .map(|&to| {
                let slice = &played.calls[from..to.max(from)];
                from = to;
                slice
                    .iter()
                    .map(|call| f64::from(call.pages))
                    .fold(0.0, f64::max)
            })
            .collect()
    };
    let mean = |played: &Played| {
        played
            .calls
            .iter()
            .map(|call| f64::from(call.pages))
            .sum::<f64>()
            / calls.max(1) as f64
    };
    let rows = vec![
        Figure::new("most pages with a frame, constant-time pages", "")
            .paper(SYNTHETIC.constant[2])
            .ours(f64::from(constant.footprint)),
        Figure::new("most pages with a frame, page table", "")
            .paper(SYNTHETIC.conventional[2])
            .ours(f64::from(conventional.footprint)),
        Figure::new("page table over constant-time pages", "x")
            .paper(SYNTHETIC.conventional[2] / SYNTHETIC.constant[2])
            .ours(f64::from(conventional.footprint) / f64::from(constant.footprint)),
        Figure::new("mean pages, constant-time pages", "").ours(mean(constant)),
        Figure::new("mean pages, page table", "").ours(mean(conventional)),
    ];
    Report {
        experiment: "rtmmu-fig-7",
        rows,
        assumptions,
        contradicted: Vec::new(),
        plots: vec![Plot {
            title: "Pages with a frame, call by call".to_owned(),
            x: "calls, up to".to_owned(),
            names: at.iter().map(usize::to_string).collect(),
            y: "pages".to_owned(),
            joined: true,
            series: vec![
                Series::measured("constant-time pages", most(constant)),
                Series::measured("page table", most(conventional)),
            ],
        }],
    }
}
