//! (min,+) and (max,+) convolution.
//!
//! (f ∗ g)(t) is the least f(s) + g(t − s), s from 0 to t. How far each curve has to be looked at is
//! decided first ([`crate::cut`]), then what is taken of them is convolved ([`crate::envelope`]).
//!
//! Invariant: nothing is computed before it is known how much that is.

use crate::algebra::Algebra;
use crate::cut::{Plan, Prediction};
use crate::envelope::envelope;
use crate::error::Error;
use crate::number::Number;
use crate::periodic::Periodic;
use crate::pointwise;

/// f ∗ g, the least of all sums.
pub(crate) fn minimal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let plan = Plan::new(f, g, algebra);
    plan.check(algebra.limit)?;
    let mut lowest: Option<Periodic<N>> = None;
    for term in &plan.terms {
        let (long, short) = term.sections(algebra.limit)?;
        let section = envelope(&long, &short, &term.end(), algebra);
        let (transient, period) = (term.transient.clone(), term.period.clone());
        let part = Periodic::new(&section, transient, period, term.step.clone());
        lowest = Some(match lowest {
            Some(lowest) => pointwise::minimum(&lowest, &part, algebra)?,
            None => part,
        });
    }
    // A plan has a term at least.
    lowest.ok_or(Error::Undefined)
}

/// The greatest of all sums.
pub(crate) fn maximal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(minimal(&f.negated(), &g.negated(), algebra)?.negated())
}

/// What f ∗ g takes.
pub(crate) fn prediction<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Prediction {
    Plan::new(f, g, algebra).prediction()
}

/// How many pairs pass the filters.
///
/// # Errors
/// [`Error::TooLarge`].
pub(crate) fn operation_count<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<u64, Error> {
    let plan = Plan::new(f, g, algebra);
    plan.check(algebra.limit)?;
    let mut count = 0;
    for term in &plan.terms {
        let (long, short) = term.sections(algebra.limit)?;
        count += crate::envelope::pairs(&long, &short, &term.end());
    }
    Ok(count)
}
