//! (min,+) and (max,+) deconvolution.
//!
//! (f ⊘ g)(t) is the supremum of f(t + s) − g(s) over s ≥ 0: the least h with h ∗ g ≥ f. Where
//! infinities of different signs meet the sum is −∞, which is what this law takes. The period and
//! the step are those of f from T_f on, for f(t + d_f + s) = f(t + s) + c_f whatever s is. What has
//! to be found is how far s has to go.
//!
//! **Slope gap.** Let ρ_f < ρ_g, M_f and m_f the highest and the lowest of f(t) − ρ_f t anywhere, and
//! m_g the lowest of g(t) − ρ_g t. The split s = 0 gives at least ρ_f t + m_f − g(0), any s at most
//! ρ_f t + M_f − m_g − (ρ_g − ρ_f) s. So s ≤ S = (M_f − m_f + g(0) − m_g) / (ρ_g − ρ_f) is enough, and no
//! common multiple is taken. Else, and if that is nearer, one common period behind both T is
//! enough: from there on f(t + s) − g(s) does not grow from one common period to the next.
//!
//! Invariant: +∞ where there is no bound.

use crate::deviation::nearer;
use crate::error::Error;
use crate::extended::Extended::{self, Finite, NegativeInfinity, PositiveInfinity};
use crate::number::Number;
use crate::paths::{Envelope, bent};
use crate::periodic::Periodic;
use crate::pointwise::common_period;
use crate::section::{Piece, Section};
use crate::settings::Algebra;

/// sup f(t + s) − g(s).
pub(crate) fn minimal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let end = f.section.end.clone();
    let latest = f.transient.clone().max(g.transient.clone());
    let reach = match (f.ultimate_infinity(), g.ultimate_infinity()) {
        (Some(NegativeInfinity), _) => end.clone(),
        (_, Some(PositiveInfinity)) => g.section.end.clone(),
        (Some(_), _) | (_, Some(_)) => return Ok(Periodic::constant(PositiveInfinity)),
        _ if f.slope() > g.slope() => {
            let everywhere = |curve: &Periodic<N>, infinity: &Extended<N>| {
                let mut pieces = curve
                    .section
                    .pieces_of(&curve.transient, &curve.section.end);
                !pieces.any(|piece| piece.at == *infinity || piece.after == *infinity)
            };
            if everywhere(f, &NegativeInfinity) || everywhere(g, &PositiveInfinity) {
                return Ok(Periodic::constant(PositiveInfinity));
            }
            return beside_gaps(f, g, &latest, algebra);
        }
        _ => nearer(|| latest.plus(&common_period(f, g)), gap(f, g)),
    };
    let section = section(f, g, &end, &reach, algebra)?;
    Ok(Periodic::new(
        section,
        f.transient.clone(),
        f.period.clone(),
        f.step.clone(),
    ))
}

/// inf f(t + s) − g(s); where infinities of different signs meet the sum is +∞.
pub(crate) fn maximal<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    Ok(minimal(&f.negated(), &g.negated(), algebra)?.negated())
}

/// S; `None` where slopes are equal or a curve is not finite.
fn gap<N: Number>(f: &Periodic<N>, g: &Periodic<N>) -> Option<N> {
    let apart = g.slope().minus(&f.slope());
    let (least, most) = (f.lowest()?, f.negated().lowest()?.negated());
    f.around_slope()?;
    let Finite(begin) = g.section.value(&N::zero()) else {
        return None;
    };
    let more = most.minus(&least).plus(&begin).minus(&g.lowest()?);
    // At S itself nothing is gained over s = 0, which has to be looked at.
    let first = g
        .section
        .pieces
        .get(1)
        .map_or(&g.section.end, |piece| &piece.start);
    (apart.is_positive() && !f.has(&NegativeInfinity)).then(|| more.over(&apart).max(first.clone()))
}

/// f grows faster, but is −∞ at times of each period, as g is +∞: there is no bound where a finite
/// value of f meets one of g again and again.
fn beside_gaps<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    latest: &N,
    algebra: &Algebra,
) -> Result<Periodic<N>, Error> {
    let end = f.section.end.clone();
    let reach = latest.plus(&common_period(f, g));
    let bounded = section(f, g, &end, &reach, algebra)?;
    let mark = |curve: &Periodic<N>, keep: &Extended<N>, other: Extended<N>| {
        let value = |value: &Extended<N>| match value == keep {
            true => keep.clone(),
            false => other.clone(),
        };
        let pieces = curve.section.pieces.iter().map(|piece| {
            let (at, after) = (value(&piece.at), value(&piece.after));
            Piece::new(piece.start.clone(), at, after, N::zero())
        });
        Periodic {
            section: Section {
                pieces: pieces.collect(),
                end: curve.section.end.clone(),
            },
            step: N::zero(),
            ..curve.clone()
        }
    };
    let f_marked = mark(f, &NegativeInfinity, PositiveInfinity);
    let g_marked = mark(g, &PositiveInfinity, Finite(N::zero())).up_to(&reach, algebra.limit)?;
    let nothing = Piece::new(N::zero(), PositiveInfinity, PositiveInfinity, N::zero());
    let late = g_marked.pieces_of(latest, &reach);
    let late = match latest.is_positive() {
        true => [nothing].into_iter().chain(late).collect(),
        false => late.collect(),
    };
    let g_marked = Section {
        pieces: late,
        end: reach.clone(),
    };
    let f_marked = f_marked.up_to(&end.plus(&reach), algebra.limit)?;
    let unbounded = correlated(&f_marked, &g_marked, &end, algebra)?;
    // The greater of both.
    let section = bounded.negated().minimum(&unbounded.negated()).negated();
    Ok(Periodic::new(
        section,
        f.transient.clone(),
        f.period.clone(),
        f.step.clone(),
    ))
}

/// The deconvolution on `[0, end)` with s in `[0, reach)`.
fn section<N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    end: &N,
    reach: &N,
    algebra: &Algebra,
) -> Result<Section<N>, Error> {
    let f = f.up_to(&end.plus(reach), algebra.limit)?;
    let g = g.up_to(reach, algebra.limit)?;
    correlated(&f, &g, end, algebra)
}

/// The greatest f(t + s) − g(s) on `[0, end)`: every point and segment of g meets every one of f
/// that it can. O(p log p) for p such pairs.
fn correlated<N: Number>(
    f: &Section<N>,
    g: &Section<N>,
    end: &N,
    algebra: &Algebra,
) -> Result<Section<N>, Error> {
    // By negation the least of −f(u) + g(s), at t = u − s.
    let f = f.negated();
    let near = |from: &N, to: &N| {
        let first = f.pieces.partition_point(|piece| piece.start <= *from);
        let last = f.pieces.partition_point(|piece| piece.start < to.plus(end));
        first.saturating_sub(1)..last.max(first)
    };
    let pairs = g
        .spans()
        .map(|(piece, to)| near(&piece.start, to).len() as u64);
    let pairs: u64 = pairs.sum();
    if pairs > algebra.limit {
        return Err(Error::too_large(pairs, algebra));
    }
    let both =
        |left: &Extended<N>, right: &Extended<N>| left.plus(right).unwrap_or(PositiveInfinity);
    let mut envelope = Envelope::new(end.clone());
    for (two, two_end) in g.spans() {
        let length = two_end.minus(&two.start);
        let back = two.slope.negated();
        let limit = two.line(two_end);
        for index in near(&two.start, two_end) {
            let one = &f.pieces[index];
            let one_end = f.pieces.get(index + 1).map_or(&f.end, |next| &next.start);
            let one_length = one_end.minus(&one.start);
            // From the point of f back to the segment of g, then the points, then on.
            let start = one.start.minus(two_end);
            envelope.path(
                &start,
                PositiveInfinity,
                &[(both(&one.at, &limit), length.clone(), back.clone())],
            );
            envelope.path(
                &one.start.minus(&two.start),
                both(&one.at, &two.at),
                &[(
                    both(&one.after, &two.at),
                    one_length.clone(),
                    one.slope.clone(),
                )],
            );
            let lines = bent(
                both(&one.after, &limit),
                (one_length, one.slope.clone()),
                (length.clone(), back.clone()),
            );
            envelope.path(&start, PositiveInfinity, &lines);
        }
    }
    Ok(envelope.lowest().negated())
}
