//! `metes bounds --trace`: the bound on the live bytes of a trace, observed and declared.
//!
//! Invariant: what holds for the trace alone is called observed, what holds for every program that keeps
//! to a contract, declared.

mod document;

use std::path::Path;

use metes_bounds::{
    Axis, Cause, Classes, Contract, Counted, Findings, FindingsError, Kept, Options, Share,
};
use metes_config::Guaranteed;
use metes_heap::bounds::Geometry;
use metes_trace::Trace;

use super::{guaranteed, guaranteed_text, number, status};
use crate::arguments::{Bounds, BoundsAxis, BoundsClasses};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, DIM, GOOD, POOR, Table};
use crate::own::Form;
use crate::quantity::{bytes, grouped};
use crate::{progress, tracefile};

/// Classes listed, those with the largest bounds.
const ROWS: usize = 24;
/// Classes explained.
const CAUSES: usize = 3;
/// Traces of fewer events are done before a bar is seen.
const LASTING: usize = 200_000;

pub(super) fn run(path: &Path, arguments: &Bounds, json: bool) -> Result<u8, Failure> {
    let trace = tracefile::read(path)?;
    let contract = arguments.declared.as_deref().map(contract).transpose()?;
    let axis = match (arguments.axis, &contract) {
        (None, None) => Axis::Events,
        (None, Some((_, contract))) => contract.axis(),
        (Some(BoundsAxis::Events), _) => Axis::Events,
        (Some(BoundsAxis::Nanoseconds), _) => Axis::Nanoseconds,
    };
    if let Some((file, contract)) = &contract
        && contract.axis() != axis
    {
        return Err(Failure::input(format!(
            "{file} counts time in {}, and --axis says {axis}: leave --axis out, or declare for {axis}",
            contract.axis()
        )));
    }
    let options = Options {
        axis,
        classes: match arguments.classes {
            BoundsClasses::Powers => Classes::Powers,
            BoundsClasses::Sizes => Classes::Sizes,
            BoundsClasses::Blocks => Classes::Blocks(Geometry::TAGGED_64),
        },
        counted: Counted::Requested,
        resolution: arguments.resolution,
    };
    let (file, contract) = contract.unzip();
    let report = Report {
        path,
        trace: &trace,
        found: look(&trace, options, contract)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?,
        file,
        heap: None,
    };
    if let Some(path) = &arguments.declare {
        let contract = Contract::kept_by(&report.found.observed).to_toml();
        output::export(path, Form::Plain, contract.as_bytes())?;
    }
    if let Some(path) = &arguments.curves {
        output::export(path, Form::Plain, report.curves()?.to_string().as_bytes())?;
    }
    let report = match &arguments.heap {
        Some(heap) => report.on(heap)?,
        None => report,
    };
    if json {
        output::json(&report.document())?;
    } else {
        output::text(&report.text())?;
    }
    Ok(report.status())
}

/// Looks at a trace, with a bar if that lasts.
fn look(
    trace: &Trace,
    options: Options,
    contract: Option<Contract>,
) -> Result<Findings, FindingsError> {
    let bar = (trace.len() >= LASTING).then(|| progress::budget("windows of the trace"));
    let tell = |share: f64| {
        if let Some(bar) = &bar {
            bar.set_position((share * 1000.0) as u64);
        }
    };
    let found = Findings::of(trace, options, contract, &tell);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    found
}

fn contract(path: &Path) -> Result<(String, Contract), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    let contract = Contract::parse(&text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    Ok((path.display().to_string(), contract))
}

/// What a heap needs for a bound on the live bytes.
struct Needed {
    observed: Guaranteed,
    declared: Option<Guaranteed>,
}

struct Report<'a> {
    path: &'a Path,
    trace: &'a Trace,
    found: Findings,
    /// The file of the contract.
    file: Option<String>,
    heap: Option<Needed>,
}

impl Report<'_> {
    /// With what a heap needs.
    fn on(self, heap: &str) -> Result<Self, Failure> {
        let wrong = |error: FindingsError| Failure::input(error.to_string());
        let observed = self.found.demand(self.trace).map_err(wrong)?;
        let observed = guaranteed(heap, observed)?;
        let declared = self.found.declared_demand(self.trace).map_err(wrong)?;
        let declared = declared.map(|demand| guaranteed(heap, demand));
        Ok(Report {
            heap: Some(Needed {
                observed,
                declared: declared.transpose()?,
            }),
            ..self
        })
    }

    /// The contract's file, and the contract.
    fn kept(&self) -> Option<(&str, &Kept)> {
        self.file.as_deref().zip(self.found.kept.as_ref())
    }

    fn status(&self) -> u8 {
        let heap = self.heap.as_ref().map_or(0, |needed| {
            let declared = needed.declared.as_ref().map_or(0, status);
            status(&needed.observed).max(declared)
        });
        match self.kept() {
            Some((_, kept)) if !kept.holds() => DOES_NOT_HOLD,
            _ => heap,
        }
    }

    fn text(&self) -> String {
        let observed = &self.found.observed;
        let axis = observed.options.axis;
        let total = &observed.total;
        let mut text = format!("{BOLD}{}{BOLD:#}\n\n", self.path.display());
        let mut line = |name: &str, value: String| text += &format!("  {name:<11} {value}\n");
        line(
            "trace",
            format!(
                "{} events; time in {axis}; classes: {}",
                grouped(self.trace.len() as u64),
                observed.options.classes
            ),
        );
        line(
            "peak live",
            format!(
                "{} B, after event {}",
                grouped(observed.peak),
                grouped(observed.peak_event)
            ),
        );
        if total.peak > observed.peak {
            line(
                "",
                format!(
                    "{} B with resized blocks in both sizes",
                    grouped(total.peak)
                ),
            );
        }
        line(
            "bound",
            format!(
                "{BOLD}{} B{BOLD:#} = {}, {:.2} × the peak; observed: it holds for this trace",
                grouped(total.bound()),
                bytes(total.bound()),
                total.bound() as f64 / observed.peak.max(1) as f64
            ),
        );
        for (index, (method, value)) in total.bounds.iter().enumerate() {
            let title = if index == 0 { "by" } else { "also" };
            line(
                title,
                format!("{:<24}{:>16} B", method.name(), grouped(*value)),
            );
        }
        line(
            "in blocks",
            format!(
                "{} B, with headers and rounding of boundary tags",
                grouped(self.found.in_blocks)
            ),
        );
        line("reclaimed", self.reclaimed());
        text += &format!("\n{}", self.table());
        text += &self.causes();
        if let Some((file, kept)) = self.kept() {
            text += &contract_text(file, kept);
        }
        if let Some(needed) = &self.heap {
            text += &format!(
                "\n{DIM}for the observed bound{DIM:#}\n{}",
                guaranteed_text(&needed.observed)
            );
            if let Some(declared) = &needed.declared {
                text += &format!(
                    "\n{DIM}for the declared bound, with the smallest request and alignment of the trace{DIM:#}\n{}",
                    guaranteed_text(declared)
                );
            }
        }
        text
    }

    fn reclaimed(&self) -> String {
        let total = &self.found.observed.total;
        match &self.found.reclaim {
            Some(ticks) => format!(
                "as many bytes as are allocated have been freed {ticks} {} later (horizontal deviation \
                 of arrival and release curve)",
                self.found.observed.options.axis
            ),
            None => format!(
                "no time is known: {} blocks are never freed",
                grouped(total.never_freed)
            ),
        }
    }

    fn table(&self) -> Table {
        let axis = self.found.observed.options.axis;
        let mut table = Table::new(&[
            "class",
            "blocks",
            match axis {
                Axis::Events => "B/event",
                Axis::Nanoseconds => "B/s",
            },
            "burst B",
            "lifetime",
            "never freed",
            "peak B",
            "bound B",
            "",
        ]);
        let mut classes: Vec<_> = self.found.observed.classes.iter().collect();
        classes.sort_by_key(|share| std::cmp::Reverse(share.bound()));
        let rest = classes.len().saturating_sub(ROWS);
        classes.truncate(ROWS);
        classes.sort_by_key(|share| share.largest);
        let ticks = self.found.observed.end as f64 + 1.0;
        let row = |name: String, share: &Share| {
            let each = share.bytes as f64 / ticks;
            vec![
                name,
                grouped(share.arrivals),
                match axis {
                    Axis::Events => format!("{each:.2}"),
                    Axis::Nanoseconds => format!("{:.0}", each * 1e9),
                },
                grouped(share.burst),
                grouped(share.lifetime),
                grouped(share.never_freed),
                grouped(share.peak),
                grouped(share.bound()),
                share
                    .bounds
                    .first()
                    .map_or("", |(method, _)| method.name())
                    .to_owned(),
            ]
        };
        for share in classes {
            let plain = anstyle::Style::new();
            table.row(plain, row(format!("≤ {}", grouped(share.largest)), share));
        }
        if rest > 0 {
            table.row(DIM, vec![format!("and {rest} more")]);
        }
        table.row(BOLD, row("all".to_owned(), &self.found.observed.total));
        table
    }

    /// The classes that make most of the bound, and the windows that do.
    fn causes(&self) -> String {
        let mut classes: Vec<_> = self.found.observed.classes.iter().collect();
        classes.sort_by_key(|share| std::cmp::Reverse(share.bound()));
        let sum: u128 = classes.iter().map(|share| share.bound()).sum();
        let mut text = "\n  what makes it\n".to_owned();
        for share in classes.into_iter().take(CAUSES) {
            let Cause {
                lifetimes_up_to,
                burst,
                ..
            } = share.cause;
            let which = lifetimes_up_to.map_or(String::new(), |lifetime| {
                format!(" that live up to {}", grouped(lifetime))
            });
            text += &format!(
                "  {:<16} {:.0} % of the sum over classes; {} blocks{which}, {} B, in events {} to {}\n",
                format!("≤ {}", grouped(share.largest)),
                100.0 * share.bound() as f64 / sum.max(1) as f64,
                grouped(burst.blocks),
                grouped(burst.bytes),
                grouped(burst.from_event),
                grouped(burst.to_event),
            );
        }
        text
    }
}

/// A contract in words.
fn contract_text(file: &str, kept: &Kept) -> String {
    let mut text = format!("\n{BOLD}{}{BOLD:#}\n\n", file);
    text += &match &kept.breach {
        None => format!("  {GOOD}the trace keeps to it{GOOD:#}\n"),
        Some(breach) => format!("  {POOR}the trace breaks it{POOR:#}: {breach}\n"),
    };
    text += &match kept.contract.bound() {
        Some(bound) => format!(
            "  declared    {BOLD}{} B{BOLD:#} = {}: of every program that keeps to it\n",
            grouped(bound),
            bytes(bound)
        ),
        None => "  declared    no bound: a class goes on arriving and has no lifetime; declare \
                     one\n"
            .to_owned(),
    };
    let mut table = Table::new(&[
        "class",
        "burst B",
        "rate",
        "lifetime",
        "declared B",
        "observed B",
        "peak B",
    ]);
    for (class, (peak, bound)) in kept.contract.classes().iter().zip(&kept.observed) {
        table.row(
            anstyle::Style::new(),
            vec![
                format!("≤ {}", grouped(class.largest)),
                grouped(class.burst),
                class.rate().to_string(),
                class.lifetime.map_or("∞".to_owned(), grouped),
                class.bound().map_or("∞".to_owned(), grouped),
                grouped(*bound),
                grouped(*peak),
            ],
        );
    }
    text + &format!("\n{table}")
}
