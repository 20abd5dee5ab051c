//! What an experiment hands back: rows beside the paper's, pictures of them, and what was
//! assumed.

use serde::Serialize;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What is measured.
    pub what: String,
    /// The published value, where there is one.
    pub paper: Option<f64>,
    /// Ours, computed in this run; none where it could not be.
    pub ours: Option<f64>,
    /// Ours over the published one.
    pub ratio: Option<f64>,
    /// Unit of both: `x` (a factor), `%` (a change in percent), empty (a count), or spelt
    /// out.
    pub unit: &'static str,
    /// What to know about it.
    pub note: String,
}

impl Figure {
    /// A figure without a published value, note or ours.
    pub fn new(what: impl Into<String>, unit: &'static str) -> Self {
        Figure {
            what: what.into(),
            paper: None,
            ours: None,
            ratio: None,
            unit,
            note: String::new(),
        }
    }

    /// With the published value.
    #[must_use]
    pub fn paper(mut self, value: f64) -> Self {
        self.paper = Some(value);
        self.related()
    }

    /// With ours; what is not finite is none.
    #[must_use]
    pub fn ours(mut self, value: impl Into<Option<f64>>) -> Self {
        self.ours = value.into().filter(|value| value.is_finite());
        self.related()
    }

    /// With a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    fn related(mut self) -> Self {
        self.ratio = self
            .ours
            .zip(self.paper)
            .map(|(ours, paper)| ours / paper)
            .filter(|ratio| ratio.is_finite());
        self
    }
}

/// A picture of figures of the report: for each name on the x axis a value of each series.
/// The y axis is linear and begins at zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What the names on the x axis are, with their unit.
    pub x: String,
    /// The names, from left to right.
    pub names: Vec<String>,
    /// What the values are, with their unit.
    pub y: String,
    /// Whether values of a series belong together, and are joined by lines.
    pub joined: bool,
    /// The values.
    pub series: Vec<Series>,
}

/// One line of a [`Plot`], or one bar of each name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// A value for each name; none where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// Published or assumed to compare with, not measured.
    pub reference: bool,
}

impl Series {
    /// Measured values; those that are not finite are none.
    pub fn measured(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Series {
            name: name.into(),
            values: values.into_iter().map(finite).collect(),
            reference: false,
        }
    }

    /// Values to compare with.
    pub fn reference(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Series {
            reference: true,
            ..Series::measured(name, values)
        }
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its name.
    pub experiment: &'static str,
    /// Figure by figure.
    pub rows: Vec<Figure>,
    /// All that differs from the paper, or that the paper does not say.
    pub assumptions: Vec<String>,
    /// What was checked and does not hold; empty if all does.
    pub contradicted: Vec<String>,
    /// The rows as pictures, where they make any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<Plot>,
}

impl Report {
    /// Whether all that was checked holds.
    pub fn holds(&self) -> bool {
        self.contradicted.is_empty()
    }
}
