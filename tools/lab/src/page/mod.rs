//! A report as a page: one HTML file that opens from disk and asks the network for nothing.
//!
//! Style and skeleton are `metes_ui::EXPERIMENT`; pictures are SVG
//! in the page, drawn here.
//!
//! Invariant: all text of a report is escaped, so the page shows it as it is.

mod picture;

use crate::report::{Figure, Report};
use picture::{Signs, picture};

/// The page of an experiment's report.
#[must_use]
pub fn page(report: &Report) -> String {
    page_of(report, &format!("metes reproduce {}", report.experiment))
}

/// The page of a report that `command` made.
#[must_use]
pub fn page_of(report: &Report, command: &str) -> String {
    metes_ui::EXPERIMENT
        .fill(&[], "")
        .replace("METES_TITLE", &escaped(report.experiment))
        .replacen("<!--METES_BODY-->", &body(report, command), 1)
}

fn body(report: &Report, command: &str) -> String {
    let mut text = format!(
        "<section class=\"verdict\"><p class=\"eyebrow\"><code>{}</code></p>\
         <h1>{}</h1></section>\n",
        escaped(command),
        escaped(report.experiment)
    );
    for what in &report.contradicted {
        text += &format!(
            "<p class=\"proof bad\"><span><b>Does not hold:</b> {}</span></p>\n",
            escaped(what)
        );
    }
    let mut signs = Signs::default();
    for plot in &report.plots {
        text += &picture(plot, &mut signs);
    }
    text += &table(&report.rows);
    text += "<section><h2>What is assumed</h2><ul class=\"assumptions\">\n";
    for assumption in &report.assumptions {
        text += &format!("<li>{}</li>\n", escaped(assumption));
    }
    text + "</ul></section>\n"
}

fn table(rows: &[Figure]) -> String {
    let mut text = String::from(
        "<section class=\"table\"><h2>Figures</h2><div class=\"scroll\" tabindex=\"0\"><table>\
         <thead><tr><th>what</th><th class=\"number\">paper</th><th class=\"number\">ours</th>\
         <th class=\"number\">ratio</th><th>note</th></tr></thead><tbody>\n",
    );
    for row in rows {
        let cell = |value: Option<f64>, unit| match value {
            Some(value) => escaped(&figure(value, unit)),
            None => "-".to_owned(),
        };
        text += &format!(
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}\
             </td><td class=\"number\">{}</td><td>{}</td></tr>\n",
            escaped(&row.what),
            cell(row.paper, row.unit),
            cell(row.ours, row.unit),
            cell(row.ratio, ""),
            escaped(&row.note)
        );
    }
    text + "</tbody></table></div></section>\n"
}

/// A value in three digits that count, and its unit.
#[must_use]
pub fn figure(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        value if value.fract() == 0.0 || value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 0.01 => 2,
        _ => return format!("{value:.2e}"),
    };
    let sign = if unit == "%" && value > 0.0 { "+" } else { "" };
    let space = if matches!(unit, "" | "x") { "" } else { " " };
    format!("{sign}{value:.digits$}{space}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Plot, Series};

    fn report() -> Report {
        Report {
            experiment: "trial",
            rows: vec![
                Figure::new("a < b & \"c\"", "x")
                    .paper(2.0)
                    .ours(1.0)
                    .note("<script>"),
            ],
            assumptions: vec!["none".into()],
            contradicted: vec!["1 > 2".into()],
            plots: vec![Plot {
                title: "Speed".into(),
                x: "threads".into(),
                names: vec!["1".into(), "2".into()],
                y: "calls / µs".into(),
                joined: true,
                series: vec![
                    Series::measured("ours", [1.0, f64::NAN]),
                    Series::reference("linear", [1.0, 2.0]),
                ],
            }],
        }
    }

    #[test]
    fn a_page_shows_everything_and_fetches_nothing() {
        let page = page(&report());
        for part in [
            "a &lt; b &amp; &quot;c&quot;",
            "&lt;script&gt;",
            "1 &gt; 2",
            "<svg",
            "calls / µs",
            "linear",
            "prefers-color-scheme: dark",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for left in ["METES_", "http://", "https://", "src=", "NaN"] {
            assert!(!page.contains(left), "{left}");
        }
        assert_eq!(page.matches("<script>").count(), 1);
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(figure(12.345, "x"), "12.3x");
        assert_eq!(figure(3.0, "%"), "+3 %");
        assert_eq!(figure(1234.5, "ns"), "1234 ns");
        assert_eq!(figure(0.001, ""), "1.00e-3");
    }
}
