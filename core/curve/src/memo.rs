//! Convolutions, each computed once.
//!
//! Invariant: what is remembered is the result of the same operands; equal functions are equal
//! structs, so operands that are described differently are the same, too.

use std::collections::HashMap;

use crate::curve::Curve;
use crate::error::Error;
use crate::settings::Algebra;

/// An [`Algebra`] that remembers its (min,+) convolutions, in either order of operands.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    algebra: Algebra,
    results: HashMap<Curve, HashMap<Curve, Curve>>,
    computed: u64,
    remembered: u64,
}

impl Memo {
    /// Nothing is remembered yet.
    #[must_use]
    pub fn new(algebra: Algebra) -> Self {
        Memo {
            algebra,
            ..Memo::default()
        }
    }

    /// As [`Algebra::convolution`]; of operands met before, O(pieces).
    ///
    /// # Errors
    /// [`Error::TwoRates`], [`Error::TooLarge`]; errors are not remembered.
    pub fn convolution(&mut self, f: &Curve, g: &Curve) -> Result<Curve, Error> {
        let known = |f: &Curve, g: &Curve| self.results.get(f).and_then(|others| others.get(g));
        if let Some(result) = known(f, g).or_else(|| known(g, f)) {
            self.remembered += 1;
            return Ok(result.clone());
        }
        let result = self.algebra.convolution(f, g)?;
        self.computed += 1;
        let others = self.results.entry(f.clone()).or_default();
        others.insert(g.clone(), result.clone());
        Ok(result)
    }

    /// How many convolutions were computed, and how many remembered.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.computed, self.remembered)
    }
}
