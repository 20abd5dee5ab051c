//! `metes bounds --trace`: the bound on the live bytes of a trace, observed and declared.
//!
//! Invariant: what holds for the trace alone is called observed, what holds for every program that keeps
//! to a contract, declared.

use std::path::Path;

use metes_bounds::{
    Axis, Cause, Classes, Contract, Counted, Declared, ObserveError, Observed, Options, Share,
    observe_also,
};
use metes_curve::Value as Reached;
use metes_heap::bounds::{Demand, Geometry};
use metes_trace::Trace;
use serde_json::{Value, json};

use super::{Guaranteed, number};
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
    let (observed, also) = look(&trace, options)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    let report = Report {
        path,
        trace: &trace,
        reclaim: Reclaim::of(&observed)?,
        also,
        kept: contract.map(|(file, contract)| Kept::of(file, contract, &trace)),
        heap: None,
        observed,
    };
    if let Some(path) = &arguments.declare {
        let contract = Contract::kept_by(&report.observed).to_toml();
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

/// Bounds in further ways of counting.
struct Also {
    /// In bytes of blocks with boundary tags.
    blocks: u128,
    /// In requests of which those of no bytes count as one: they would be free in the bounds of heaps.
    one_at_least: u128,
}

/// Looks at a trace, with a bar if that lasts.
fn look(trace: &Trace, options: Options) -> Result<(Observed, Also), ObserveError> {
    let bar = (trace.len() >= LASTING).then(|| progress::budget("windows of the trace"));
    let tell = |share: f64| {
        if let Some(bar) = &bar {
            bar.set_position((share * 1000.0) as u64);
        }
    };
    let counted = [Counted::Block(Geometry::TAGGED_64), Counted::AtLeast(1)];
    let found = observe_also(trace, options, counted, &tell);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let (observed, [blocks, one_at_least]) = found?;
    let also = Also {
        blocks,
        one_at_least,
    };
    Ok((observed, also))
}

fn contract(path: &Path) -> Result<(String, Contract), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    let contract = Contract::parse(&text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    Ok((path.display().to_string(), contract))
}

/// How long it takes until as much as was allocated is free again: the horizontal deviation.
struct Reclaim {
    ticks: Option<String>,
}

impl Reclaim {
    fn of(observed: &Observed) -> Result<Self, Failure> {
        let wrong = |error: metes_curve::Error| Failure::input(error.to_string());
        let arrival = observed.total.arrival.curve().map_err(wrong)?;
        let release = observed.total.release.curve().map_err(wrong)?;
        let deviation = arrival.horizontal_deviation(&release).map_err(wrong)?;
        let ticks = match deviation.value {
            Reached::Finite(ticks) => Some(ticks.to_string()),
            _ => None,
        };
        Ok(Reclaim { ticks })
    }
}

/// The window that makes the bound of a class.
fn cause(share: &Share) -> Value {
    let Cause {
        lifetimes_up_to,
        length,
        burst,
    } = share.cause;
    json!({
        "lifetimes_up_to": lifetimes_up_to,
        "length": length,
        "from_event": burst.from_event,
        "to_event": burst.to_event,
        "from": burst.from,
        "to": burst.to,
        "blocks": burst.blocks,
        "bytes": number(burst.bytes),
    })
}

/// A contract, and whether the trace keeps it.
struct Kept {
    file: String,
    contract: Contract,
    breach: Option<metes_bounds::Breach>,
    /// Most live bytes of each class in the trace, and the observed bounds added up.
    observed: Vec<(u128, u128)>,
}

impl Kept {
    fn of(file: String, contract: Contract, trace: &Trace) -> Self {
        let breach = contract.first_breach(trace);
        let shares = contract.observe(trace);
        let observed = shares.iter().map(|share| (share.peak, share.bound()));
        Kept {
            file,
            breach,
            observed: observed.collect(),
            contract,
        }
    }
}

/// What a heap needs for a bound on the live bytes.
struct Needed {
    observed: Guaranteed,
    declared: Option<Guaranteed>,
}

struct Report<'a> {
    path: &'a Path,
    trace: &'a Trace,
    observed: Observed,
    reclaim: Reclaim,
    also: Also,
    kept: Option<Kept>,
    heap: Option<Needed>,
}

impl Report<'_> {
    /// With what a heap needs.
    fn on(self, heap: &str) -> Result<Self, Failure> {
        let (least, most) = self.observed.sizes;
        let demand = |live: u128, largest: u64| {
            let live = u64::try_from(live).map_err(|_| {
                Failure::input(
                    "the bound on the live bytes is beyond 64 bits: no heap is laid out for it",
                )
            })?;
            let mut demand = Demand::new(live.max(1), largest.max(1), least.max(1));
            let aligns = (0..self.trace.len()).map(|event| self.trace.align(event));
            demand.alignment = aligns.max().unwrap_or(1).max(1).into();
            if self.observed.resizes > 0 {
                demand = demand.resizing();
            }
            Ok::<_, Failure>(demand)
        };
        let live = self.also.one_at_least;
        let observed = Guaranteed::of(heap, demand(live, most)?)?;
        // Requests of no bytes are not counted by a contract, so it says nothing of them.
        let contract = self.kept.as_ref().map(|kept| &kept.contract);
        let declared = match contract.and_then(|contract| Some((contract.bound()?, contract))) {
            Some((live, contract)) if least > 0 => {
                let largest = contract.classes().last().map_or(0, |class| class.largest);
                let largest = u64::try_from(live).unwrap_or(u64::MAX).min(largest);
                Some(Guaranteed::of(heap, demand(live, largest)?)?)
            }
            _ => None,
        };
        Ok(Report {
            heap: Some(Needed { observed, declared }),
            ..self
        })
    }

    fn status(&self) -> u8 {
        let broken = self
            .kept
            .as_ref()
            .is_some_and(|kept| kept.breach.is_some() || kept.contract.bound().is_none());
        let heap = self.heap.as_ref().map_or(0, |needed| {
            let declared = needed.declared.as_ref().map_or(0, Guaranteed::status);
            needed.observed.status().max(declared)
        });
        if broken { DOES_NOT_HOLD } else { heap }
    }

    fn curves(&self) -> Result<Value, Failure> {
        let wrong = |error: metes_curve::Error| Failure::input(error.to_string());
        let of = |share: &Share| {
            let read = |curve: metes_curve::Curve| {
                serde_json::from_str::<Value>(&curve.to_json()).unwrap_or_default()
            };
            Ok::<_, Failure>(json!({
                "largest": share.largest,
                "arrival": read(share.arrival.curve().map_err(wrong)?),
                "release": read(share.release.curve().map_err(wrong)?),
                "exact": share.arrival.is_exact(),
            }))
        };
        let classes = self.observed.classes.iter().map(of);
        Ok(json!({
            "axis": self.observed.options.axis.name(),
            "total": of(&self.observed.total)?,
            "classes": classes.collect::<Result<Vec<_>, _>>()?,
        }))
    }

    fn document(&self) -> Value {
        let observed = &self.observed;
        let share = |share: &Share| {
            json!({
                "largest": share.largest,
                "arrivals": share.arrivals,
                "bytes": number(share.bytes),
                "peak_live": number(share.peak),
                "rate": format!("{}/{}", share.bytes, u128::from(observed.end) + 1),
                "burst": number(share.burst),
                "lifetime": share.lifetime,
                "never_freed": share.never_freed,
                "bound": number(share.bound()),
                "method": share.bounds.first().map(|(method, _)| method.name()),
                "bounds": share.bounds.iter().map(|(method, bytes)| json!({
                    "method": method.name(),
                    "bytes": number(*bytes),
                })).collect::<Vec<_>>(),
                "cause": cause(share),
                "busy": share.busy,
                "exact": share.arrival.is_exact(),
            })
        };
        let total = share(&observed.total);
        json!({
            "trace": self.path,
            "events": self.trace.len(),
            "axis": observed.options.axis.name(),
            "divided_by": observed.options.classes.to_string(),
            "resolution": observed.options.resolution,
            "end": observed.end,
            "peak_live": number(observed.peak),
            "peak_event": observed.peak_event,
            "peak_live_resizing": total["peak_live"],
            "bound": total["bound"],
            "method": total["method"],
            "standing": "observed",
            "bound_in_blocks": number(self.also.blocks),
            "reclaim": self.reclaim.ticks,
            "total": total,
            "classes": observed.classes.iter().map(share).collect::<Vec<_>>(),
            "declared": self.kept.as_ref().map(Kept::document),
            "heap": self.heap.as_ref().map(|needed| json!({
                "observed": needed.observed.document(),
                "declared": needed.declared.as_ref().map(Guaranteed::document),
            })),
        })
    }

    fn text(&self) -> String {
        let observed = &self.observed;
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
                grouped(self.also.blocks)
            ),
        );
        line("reclaimed", self.reclaimed());
        text += &format!("\n{}", self.table());
        text += &self.causes();
        text += &self.kept.as_ref().map_or(String::new(), Kept::text);
        if let Some(needed) = &self.heap {
            text += &format!(
                "\n{DIM}for the observed bound{DIM:#}\n{}",
                needed.observed.text()
            );
            if let Some(declared) = &needed.declared {
                text += &format!(
                    "\n{DIM}for the declared bound, with the smallest request and alignment of the trace{DIM:#}\n{}",
                    declared.text()
                );
            }
        }
        text
    }

    fn reclaimed(&self) -> String {
        let total = &self.observed.total;
        match &self.reclaim.ticks {
            Some(ticks) => format!(
                "as many bytes as are allocated have been freed {ticks} {} later (horizontal deviation \
                 of arrival and release curve)",
                self.observed.options.axis
            ),
            None => format!(
                "no time is known: {} blocks are never freed",
                grouped(total.never_freed)
            ),
        }
    }

    fn table(&self) -> Table {
        let axis = self.observed.options.axis;
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
        let mut classes: Vec<_> = self.observed.classes.iter().collect();
        classes.sort_by_key(|share| std::cmp::Reverse(share.bound()));
        let rest = classes.len().saturating_sub(ROWS);
        classes.truncate(ROWS);
        classes.sort_by_key(|share| share.largest);
        let ticks = self.observed.end as f64 + 1.0;
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
        table.row(BOLD, row("all".to_owned(), &self.observed.total));
        table
    }

    /// The classes that make most of the bound, and the windows that do.
    fn causes(&self) -> String {
        let mut classes: Vec<_> = self.observed.classes.iter().collect();
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

impl Kept {
    fn document(&self) -> Value {
        let classes = self.contract.classes().iter().zip(&self.observed);
        let class = |(class, (peak, bound)): (&Declared, &(u128, u128))| {
            json!({
                "largest": class.largest,
                "burst": class.burst,
                "rate": class.rate().to_string(),
                "lifetime": class.lifetime,
                "bound": class.bound().map(number),
                "peak_live": number(*peak),
                "observed_bound": number(*bound),
            })
        };
        json!({
            "file": self.file,
            "keeps": self.breach.is_none(),
            "breach": self.breach.as_ref().map(ToString::to_string),
            "bound": self.contract.bound().map(number),
            "classes": classes.map(class).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let mut text = format!("\n{BOLD}{}{BOLD:#}\n\n", self.file);
        text += &match &self.breach {
            None => format!("  {GOOD}the trace keeps to it{GOOD:#}\n"),
            Some(breach) => format!("  {POOR}the trace breaks it{POOR:#}: {breach}\n"),
        };
        text += &match self.contract.bound() {
            Some(bound) => format!(
                "  declared    {BOLD}{} B{BOLD:#} = {}: of every program that keeps to it\n",
                grouped(bound),
                bytes(bound)
            ),
            None => {
                "  declared    no bound: a class goes on arriving and has no lifetime; declare \
                     one\n"
                    .to_owned()
            }
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
        for (class, (peak, bound)) in self.contract.classes().iter().zip(&self.observed) {
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
}
