//! (min,+) and (max,+) convolution.
//!
//! (f ∗ g)(t) is the least f(s) + g(t − s), s from 0 to t. How far each curve has to be looked at is
//! decided first ([`crate::cut`]), then what is taken of them is convolved ([`crate::envelope`]).
//!
//! Invariant: nothing is computed before it is known how much that is.

use std::cmp::Ordering;

use crate::cut::{Plan, Prediction, Term};
use crate::envelope::envelope;
use crate::error::Error;
use crate::extended::Extended;
use crate::number::Number;
use crate::periodic::Periodic;
use crate::pointwise;
use crate::settings::Algebra;
use crate::together::Together;

/// f ∗ g, the least of all sums.
pub(crate) fn minimal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(with_work(f, g, algebra)?.0)
}

/// f ∗ g, and how many pairs of pieces (or pieces, where none meet) that was predicted to take.
pub(crate) fn with_work<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<(Periodic<N>, u64), Error> {
    if let Some(found) = on_whole_numbers(f, g, algebra) {
        return Ok(found);
    }
    let plan = Plan::new(f, g, algebra);
    let work = plan.check(algebra.limit)?;
    let result = match plan {
        Plan::Concave(..) => concave(f, g, algebra)?,
        Plan::Terms(terms) => lowest(&terms, algebra)?,
    };
    Ok((result, work))
}

/// Of curves of different slopes that are made of whole numbers, where that takes little.
fn on_whole_numbers<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Option<(Periodic<N>, u64)> {
    if !Together::is_allowed(algebra) {
        return None;
    }
    let (low, high) = match f.slope().cmp(&g.slope()) {
        Ordering::Less => (f, g),
        Ordering::Greater => (g, f),
        Ordering::Equal => return None,
    };
    let mut together = Together::new(low, &[high])?;
    let taken = together.next(algebra.limit)?;
    Some((together.curve(), taken.pairs))
}

/// The least of all terms.
fn lowest<N: Number>(terms: &[Term<'_, N>], algebra: &Algebra) -> Result<Periodic<N>, Error> {
    let mut lowest: Option<Periodic<N>> = None;
    for term in terms {
        let (long, short) = term.sections(algebra.limit)?;
        let slope = term.step.over(&term.period);
        let section = envelope(&long, &short, &term.end(), &slope, algebra);
        let (transient, period) = (term.transient.clone(), term.period.clone());
        let part = Periodic::new(section, transient, period, term.step.clone());
        lowest = Some(match lowest {
            Some(lowest) => pointwise::minimum(&lowest, &part, algebra)?,
            None => part,
        });
    }
    // A plan has a term at least.
    lowest.ok_or(Error::Undefined)
}

/// Of concave curves, each raised by where the other begins, the lower one.
///
/// *Proof.* Let both begin at 0. The split that gives one everything shows that the result is not
/// above either. Their minimum m is concave with m(0) = 0, so m(u) + m(s) ≥ m(u + s), and every sum
/// f(u) + g(s) is at least that. Where they begin elsewhere, each is moved there. ∎
fn concave<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let (begin_f, begin_g) = (&f.section.pieces[0].at, &g.section.pieces[0].at);
    let raised = |curve: &Periodic<N>, by: &Extended<N>| match by {
        Extended::Finite(by) => curve.raised(by),
        _ => curve.clone(),
    };
    pointwise::minimum(&raised(f, begin_g), &raised(g, begin_f), algebra)
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
    let Plan::Terms(terms) = &plan else {
        return Ok(plan.prediction().work);
    };
    let mut count = 0;
    for term in terms {
        let (long, short) = term.sections(algebra.limit)?;
        count += crate::envelope::pairs(&long, &short, &term.end());
    }
    Ok(count)
}

/// The convolution of what both are before the end of the result's first period, and how many pairs of
/// pieces that is.
pub(crate) fn of_sections<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    transient: N,
    period: N,
    step: N,
    algebra: &Algebra,
) -> Result<(Periodic<N>, u64), Error> {
    let end = transient.plus(&period);
    let pairs = f.count_to(&end).saturating_mul(g.count_to(&end));
    if pairs > algebra.limit {
        return Err(Error::too_large(pairs, algebra));
    }
    let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
    let section = envelope(&left, &right, &end, &step.over(&period), algebra);
    Ok((Periodic::new(section, transient, period, step), pairs))
}
