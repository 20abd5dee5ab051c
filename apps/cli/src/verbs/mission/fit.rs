//! `metes mission fit`: on which devices the unit fits.

use metes_duster::fit::{Fit, Report, Usage, Verdict, report};

use crate::arguments::MissionFit;
use crate::error::Failure;
use crate::output::{self, BOLD, DIM, GOOD, POOR, Table};
use crate::quantity::grouped;

pub(super) fn run(arguments: &MissionFit, json: bool) -> Result<u8, Failure> {
    let report = report(!arguments.baseline);
    if json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(0)
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for fit in &report.devices {
        text += &device(fit);
    }
    let mut table = Table::left(&["the paper's figure", "printed", "is", "why"]);
    for it in &report.corrections {
        let cells = [&it.row, &it.printed, &it.is, &it.why];
        table.row(anstyle::Style::new(), cells.map(Clone::clone).to_vec());
    }
    text += &format!("{table}\n");
    for assumption in &report.assumptions {
        text += &format!("{DIM}  {assumption}{DIM:#}\n");
    }
    text
}

fn device(fit: &Fit) -> String {
    let style = if fit.verdict == Verdict::Fits {
        GOOD
    } else {
        POOR
    };
    let mut table = Table::new(&["", "baseline", "added", "device", "taken", ""]);
    for usage in &fit.resources {
        table.row(anstyle::Style::new(), cells(usage));
    }
    format!(
        "{BOLD}{} {}{BOLD:#} ({}): {style}{}{style:#}, limited by {}\n{table}{DIM}  {}{DIM:#}\n\n",
        fit.vendor,
        fit.device,
        fit.source,
        fit.verdict.name(),
        fit.limiting,
        fit.mapping
    )
}

fn cells(usage: &Usage) -> Vec<String> {
    let verdict = usage.verdict.map_or("not told", Verdict::name);
    let estimate = if usage.estimate { ", estimate" } else { "" };
    vec![
        usage.resource.to_owned(),
        grouped(usage.baseline),
        grouped(usage.added),
        usage.capacity.map_or("-".to_owned(), grouped),
        usage
            .percent
            .map_or("-".to_owned(), |percent| format!("{percent:.2} %")),
        format!("{verdict}{estimate}"),
    ]
}
