//! Whether one curve is nowhere above another, or not from some time on.
//!
//! Let ρ_f ≤ ρ_g. If f ≤ g on one common period behind both T, then behind it, for f − g does not grow
//! from one common period to the next. With ρ_f < ρ_g that is so from
//! (M_f − m_g) / (ρ_g − ρ_f) on without a common multiple, as for the minimum. With ρ_f > ρ_g, f is
//! above g in the end if both are finite at one time of each period.
//!
//! Invariant: a comparison makes no curve.

use crate::deviation::nearer;
use crate::error::Error;
use crate::number::Number;
use crate::periodic::Periodic;
use crate::pointwise::common_period;
use crate::settings::Algebra;

/// Whether f(t) ≤ g(t) for all t.
pub(crate) fn nowhere_above<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<bool, Error> {
    compared(f, g, &N::zero(), algebra)
}

/// Whether f(t) ≤ g(t) for all t from some time on.
pub(crate) fn finally_not_above<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<bool, Error> {
    let latest = f.transient.clone().max(g.transient.clone());
    let finite = f.around_slope().is_some() && g.around_slope().is_some();
    if finite && f.slope() < g.slope() {
        return Ok(true);
    }
    // With gaps at times of each period only those count, and what is finite, in the end.
    if !finite && f.slope() < g.slope() {
        let end = latest.plus(&common_period(f, g));
        let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
        let mut holds = true;
        let _: Result<(), ()> = left.together(&right, |one, two, end| {
            let may = |one: &crate::extended::Extended<N>, two: &crate::extended::Extended<N>| {
                one <= two || (one.finite().is_some() && two.finite().is_some())
            };
            holds &= one.start < latest || may(&one.at, &two.at);
            holds &= *end <= latest || may(&one.after, &two.after);
            Ok(())
        });
        return Ok(holds);
    }
    compared(f, g, &latest, algebra)
}

fn compared<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    from: &N,
    algebra: &Algebra,
) -> Result<bool, Error> {
    let latest = f.transient.clone().max(g.transient.clone());
    let either_ends = f.ultimate_infinity().is_some() || g.ultimate_infinity().is_some();
    let around = f.around_slope().zip(g.around_slope());
    let apart = g.slope().minus(&f.slope());
    let grows = !either_ends && apart < N::zero();
    let near = match &around {
        Some(_) if grows => return Ok(false),
        Some(((_, most), (least, _))) if apart.is_positive() => {
            let meet = most.minus(least).over(&apart);
            Some(latest.clone().max(meet).plus(&f.period))
        }
        _ => None,
    };
    let end = nearer(|| latest.plus(&common_period(f, g)), near);
    let (left, right) = (f.up_to(&end, algebra.limit)?, g.up_to(&end, algebra.limit)?);
    let holds = left.together(&right, |one, two, end| {
        let finite = |one: &crate::extended::Extended<N>, two: &crate::extended::Extended<N>| {
            one.finite().is_some() && two.finite().is_some()
        };
        let above_later = grows
            && ((one.start >= latest && finite(&one.at, &two.at))
                || (*end > latest && finite(&one.after, &two.after)));
        let above = (one.start >= *from && one.at > two.at)
            || (*end > *from && (one.after > two.after || one.line(end) > two.line(end)));
        if above || above_later {
            Err(())
        } else {
            Ok(())
        }
    });
    Ok(holds.is_ok())
}
