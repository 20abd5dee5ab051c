//! Minimum, maximum, sum and difference.
//!
//! Invariant: each says from when on its result repeats itself before it computes anything, and
//! computes just that far.

use crate::error::Error;
use crate::extended::Extended::{NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::settings::Algebra;

/// A period of both: their least common multiple, or that of one if the other is affine or
/// infinite in the end, and so has every period.
pub(crate) fn common_period<N: Number>(f: &Periodic<N>, g: &Periodic<N>) -> N {
    let any =
        |curve: &Periodic<N>| curve.is_ultimately_affine() || curve.ultimate_infinity().is_some();
    match (any(f), any(g)) {
        (true, _) => g.period.clone(),
        (_, true) => f.period.clone(),
        _ => f.period.common_multiple(&g.period),
    }
}

/// f ∧ g.
///
/// With equal slopes it repeats itself by the common period from the later of both T on. With
/// different ones it is the curve of the lesser slope as soon as that, at its highest above its
/// slope, is not above the other at its lowest.
pub(crate) fn minimum<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let latest = f.transient.clone().max(g.transient.clone());
    let (transient, period, step) = match (f.ultimate_infinity(), g.ultimate_infinity()) {
        (Some(PositiveInfinity), _) | (_, Some(NegativeInfinity)) => {
            (latest, g.period.clone(), g.step.clone())
        }
        (_, Some(PositiveInfinity)) | (Some(NegativeInfinity), _) => {
            (latest, f.period.clone(), f.step.clone())
        }
        _ if f.slope() == g.slope() => {
            let period = common_period(f, g);
            let step = f.slope().times(&period);
            (latest, period, step)
        }
        _ => {
            let (low, high) = if f.slope() < g.slope() {
                (f, g)
            } else {
                (g, f)
            };
            let around = low.around_slope().zip(high.around_slope());
            let ((_, most), (least, _)) = around.ok_or(Error::TwoRates)?;
            let apart = high.slope().minus(&low.slope());
            let meet = most.minus(&least).over(&apart);
            (latest.max(meet), low.period.clone(), low.step.clone())
        }
    };
    let end = transient.plus(&period);
    let section = f
        .up_to(&end, algebra.limit)?
        .minimum(&g.up_to(&end, algebra.limit)?);
    Ok(Periodic::new(section, transient, period, step))
}

/// f ∨ g.
pub(crate) fn maximum<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(minimum(&f.negated(), &g.negated(), algebra)?.negated())
}

/// f + g.
pub(crate) fn sum<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let transient = f.transient.clone().max(g.transient.clone());
    let period = common_period(f, g);
    let infinite = f.ultimate_infinity().is_some() || g.ultimate_infinity().is_some();
    let step = match infinite {
        true => N::zero(),
        false => f.slope().plus(&g.slope()).times(&period),
    };
    let end = transient.plus(&period);
    let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
    let section = left.sum(&right).ok_or(Error::Undefined)?;
    Ok(Periodic::new(section, transient, period, step))
}

/// f − g.
pub(crate) fn difference<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    sum(f, &g.negated(), algebra)
}
