//! What an experiment hands back: rows beside the paper's, and what was assumed.

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
    /// Unit of both: `x` (a factor), `%` (a change in percent), or empty (a count).
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
}

impl Report {
    /// Whether all that was checked holds.
    pub fn holds(&self) -> bool {
        self.contradicted.is_empty()
    }
}
