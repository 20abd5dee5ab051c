//! A report as a page: one HTML file that opens from disk and asks the network for nothing.
//!
//! Invariant: the page is of one report; what it draws and says of it is computed from that alone.

use serde::Serialize;

use crate::report::Report;

/// What a report is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct About<'a> {
    /// The command that made it.
    pub command: &'a str,
    /// In a line what was tried.
    pub title: &'a str,
    /// Whose figures stand beside ours: authors, and title or place; none where there are no such.
    pub paper: Option<&'a str>,
}

/// What the page shows.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    about: About<'a>,
    #[serde(flatten)]
    report: &'a Report,
}

/// The page of a report. O(bytes of the report).
///
/// # Errors
/// None is known: a report has no map, and no number that JSON cannot say.
pub fn page(report: &Report, about: About<'_>) -> serde_json::Result<String> {
    let document = serde_json::to_string(&Document { about, report })?;
    Ok(metes_ui::EXPERIMENT.fill(&document))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Figure, Plot, Series};

    #[test]
    fn a_page_holds_the_whole_report_and_who_is_compared_with() {
        let report = Report {
            experiment: "trial",
            rows: vec![
                Figure::new("a < b", "x")
                    .paper(2.0)
                    .ours(1.0)
                    .note("</script>"),
            ],
            assumptions: vec!["none".into()],
            contradicted: vec!["1 > 2".into()],
            plots: vec![Plot {
                title: "Speed".into(),
                x: "threads".into(),
                names: vec!["1".into(), "2".into()],
                y: "calls / µs".into(),
                joined: true,
                series: vec![Series::measured("ours", [1.0, f64::NAN])],
            }],
        };
        let about = About {
            command: "metes reproduce trial",
            title: "a trial",
            paper: Some("Them, 2009"),
        };
        let page = page(&report, about).unwrap();
        let data = page
            .split("<script id=\"data\" type=\"application/json\">")
            .nth(1);
        let data = data.unwrap().split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["experiment"], "trial");
        assert_eq!(data["title"], "a trial");
        assert_eq!(data["paper"], "Them, 2009");
        assert_eq!(data["rows"][0]["note"], "</script>");
        assert_eq!(data["rows"][0]["ratio"], 0.5);
        assert_eq!(data["contradicted"][0], "1 > 2");
        assert_eq!(
            data["plots"][0]["series"][0]["values"],
            serde_json::json!([1.0, null])
        );
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(figure(12.345, "x"), "12.3x");
        assert_eq!(figure(3.0, "%"), "+3 %");
        assert_eq!(figure(1234.5, "ns"), "1234 ns");
        assert_eq!(figure(0.001, ""), "1.00e-3");
    }
}
