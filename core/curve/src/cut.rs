//! How far a convolution has to look at either curve: decided from periods, slopes and extremes,
//! before anything is computed.
//!
//! Let ρ_f < ρ_g be the slopes in the long run. All cuts but the slope gap follow from one
//!
//! **Exchange.** Let a = j d_g and b = j c_g with f(u + a) ≤ f(u) + b for all u ≥ 0. A split that
//! gives g as much as s ≥ T_g + a is no better than that which gives it a less: f(u + a) + g(s − a) ≤
//! f(u) + b + g(s) − b. So only splits with s < S = T_g + a are needed; for t ≥ T_f + S they leave f
//! in its periodic part, hence h(t + d_f) = h(t) + c_f from there on, and of g only `[0, S)` matters.
//!
//! Which a do: any multiple of d_f, if f's transient part is not too low (Bouillard and Thierry,
//! 2008); if f never falls, the time in which g rises by a multiple of c_f, because f, being slower,
//! takes longer for it (what isospeed gains; Zippo, Nikolaus and Stea, 2023); any that the slopes'
//! gap makes large enough; or the least one, found by trying.
//!
//! Invariant: no time is computed whose value would need more of f or g than was taken.

mod growth;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::envelope::is_convex;
use crate::error::Error;
use crate::extended::Extended::{Finite, NegativeInfinity};
use crate::number::Number;
use crate::periodic::Periodic;
use crate::pointwise;
use crate::section::Section;
use crate::settings::Algebra;

/// Why no more of the curves is needed than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// Both are concave: the result is the lower of both, each raised by where the other begins.
    Concave,
    /// One is infinite in the end.
    Infinite,
    /// The faster curve has outgrown what the slower one varies by.
    SlopeGap,
    /// The faster curve has outgrown what the slower one grows by within as long a time.
    Growth,
    /// The faster curve rises by a multiple of the slower one's step.
    Isospeed,
    /// The least exchange of whole periods of the faster curve.
    Exchange,
    /// A common multiple of the periods.
    CommonMultiple,
    /// A common multiple of the periods, of equal slopes, and their greatest common divisor.
    CommonDivisor,
}

/// What convolving two curves is going to take, as known before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prediction {
    /// What cuts the curves; of several parts, that of most work.
    pub cut: Cut,
    /// Pieces (a point and the segment behind it) of the first and of the second curve as cut; of
    /// several parts, their sums.
    pub elements: (u64, u64),
    /// Pairs of such pieces, before any filter.
    pub element_product: u64,
    /// What is compared with the limit: pairs, or, of curves that are merged without meeting each
    /// other (convex or concave ones), pieces.
    pub work: u64,
    /// Most pieces of the result, before it is brought to its canonical form.
    pub pieces_of_result: u64,
}

/// How far the curve that is cut is needed.
#[derive(Clone, Debug)]
enum Reach<N> {
    /// Up to the end of the result.
    All,
    /// Before this time.
    Before(N),
    /// Up to this time, itself included.
    Through(N),
}

/// One convolution of two sections.
#[derive(Clone, Debug)]
pub(crate) struct Term<'a, N: Clone> {
    pub(crate) cut: Cut,
    /// Taken up to the end.
    long: Cow<'a, Periodic<N>>,
    /// Taken as far as it reaches.
    short: Cow<'a, Periodic<N>>,
    reach: Reach<N>,
    pub(crate) transient: N,
    pub(crate) period: N,
    pub(crate) step: N,
    /// Whether `long` is the second operand.
    swapped: bool,
    /// Whether both are convex, and no pairs are met.
    convex: bool,
}

impl<N: Number> Term<'_, N> {
    /// To where the result is computed.
    pub(crate) fn end(&self) -> N {
        self.transient.plus(&self.period)
    }

    /// Pieces of the longer and the shorter one.
    fn sizes(&self) -> (u64, u64) {
        let end = self.end();
        let short = match &self.reach {
            Reach::All => self.short.count_to(&end),
            Reach::Before(reach) => self.short.count_to(&reach.clone().min(end.clone())),
            Reach::Through(reach) => {
                let reach = reach.clone().min(end.clone());
                self.short.count_to(&reach).saturating_add(1)
            }
        };
        (self.long.count_to(&end), short)
    }

    /// Pairs, or, where none are met, pieces.
    fn work(&self) -> u64 {
        let (long, short) = self.sizes();
        match self.convex {
            true => long.saturating_add(short),
            false => long.saturating_mul(short),
        }
    }

    fn pairs(&self) -> u64 {
        let (long, short) = self.sizes();
        long.saturating_mul(short)
    }

    /// The sections, the longer one first.
    pub(crate) fn sections(&self, limit: u64) -> Result<(Section<N>, Section<N>), Error> {
        let end = self.end();
        let short = match &self.reach {
            Reach::All => self.short.up_to(&end, limit)?,
            Reach::Before(reach) => self.short.up_to(&reach.clone().min(end.clone()), limit)?,
            Reach::Through(reach) => self
                .short
                .up_to(&reach.plus(&self.short.period).min(end.clone()), limit)?
                .through(reach),
        };
        Ok((self.long.up_to(&end, limit)?, short))
    }
}

/// A convolution as the least of some.
pub(crate) enum Plan<'a, N: Clone> {
    /// Of curves that are concave, as many pieces as both have.
    Concave(u64, u64),
    /// The least of these.
    Terms(Vec<Term<'a, N>>),
}

impl<'a, N: Number> Plan<'a, N> {
    /// The plan of least predicted work. O(pieces), but for the least exchange, which is only
    /// looked for where it can save more than it takes.
    pub(crate) fn new(f: &'a Periodic<N>, g: &'a Periodic<N>, algebra: &Algebra) -> Self {
        let (f, g) = (Cow::Borrowed(f), Cow::Borrowed(g));
        let on = algebra.optimisations;
        if on.concave && f.is_concave() && g.is_concave() {
            let count = |curve: &Periodic<N>| curve.section.pieces.len() as u64;
            return Plan::Concave(count(&f), count(&g));
        }
        let convex = on.convex && is_convex(&f.section) && is_convex(&g.section);
        let different = |low, high| match convex {
            // No pairs are met: any cut does.
            true => first_cut(low, high, algebra),
            false => different_slopes(low, high, algebra),
        };
        let infinities = (f.ultimate_infinity(), g.ultimate_infinity());
        let mut terms = match infinities {
            (Some(NegativeInfinity), _) | (_, Some(NegativeInfinity)) => vec![infinite(f, g)],
            (Some(_), _) => vec![beside_end(f, g)],
            (_, Some(_)) => vec![beside_end(g, f).swapped()],
            _ => match f.slope().cmp(&g.slope()) {
                Ordering::Equal => equal_slopes(f, g, algebra),
                Ordering::Less => different(f, g),
                Ordering::Greater => swapped(different(g, f)),
            },
        };
        for term in &mut terms {
            term.convex = convex;
        }
        Plan::Terms(terms)
    }

    fn work(&self) -> u64 {
        match self {
            Plan::Concave(one, two) => one.saturating_add(*two),
            Plan::Terms(terms) => work(terms),
        }
    }

    /// The work. Refuses what takes more than the limit, before any of it is done.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub(crate) fn check(&self, limit: u64) -> Result<u64, Error> {
        let work = self.work();
        if work <= limit {
            return Ok(work);
        }
        Err(Error::TooLarge {
            pieces: i64::try_from(work).unwrap_or(i64::MAX).into(),
            limit,
        })
    }

    /// What it takes.
    pub(crate) fn prediction(&self) -> Prediction {
        let terms = match self {
            Plan::Concave(one, two) => {
                return Prediction {
                    cut: Cut::Concave,
                    elements: (*one, *two),
                    element_product: one.saturating_mul(*two),
                    work: self.work(),
                    // Two lines cross once.
                    pieces_of_result: one.saturating_add(*two).saturating_mul(2),
                };
            }
            Plan::Terms(terms) => terms,
        };
        let mut elements = (0_u64, 0_u64);
        for term in terms {
            let (long, short) = term.sizes();
            let (one, two) = if term.swapped {
                (short, long)
            } else {
                (long, short)
            };
            elements.0 = elements.0.saturating_add(one);
            elements.1 = elements.1.saturating_add(two);
        }
        let most = terms.iter().max_by_key(|term| term.work());
        let work = self.work();
        Prediction {
            cut: most.map_or(Cut::Infinite, |term| term.cut),
            elements,
            element_product: terms
                .iter()
                .fold(0, |sum, term| sum.saturating_add(term.pairs())),
            work,
            // Each pair makes three lines at most, and each merging of two lines a crossing.
            pieces_of_result: work.saturating_mul(6),
        }
    }
}

fn work<N: Number>(terms: &[Term<'_, N>]) -> u64 {
    terms
        .iter()
        .fold(0, |sum, term| sum.saturating_add(term.work()))
}

fn swapped<N: Number>(terms: Vec<Term<'_, N>>) -> Vec<Term<'_, N>> {
    terms.into_iter().map(Term::swapped).collect()
}

impl<N: Number> Term<'_, N> {
    fn swapped(self) -> Self {
        Term {
            swapped: !self.swapped,
            ..self
        }
    }
}

type Operand<'a, N> = Cow<'a, Periodic<N>>;

/// One is −∞ from some time on: so is the result, once the other has been finite.
fn infinite<'a, N: Number>(f: Operand<'a, N>, g: Operand<'a, N>) -> Term<'a, N> {
    Term {
        cut: Cut::Infinite,
        transient: f.section.end.plus(&g.section.end),
        period: N::whole(1),
        step: N::zero(),
        long: f,
        short: g,
        reach: Reach::All,
        swapped: false,
        convex: false,
    }
}

/// f is +∞ from some time on: there it adds nothing.
fn beside_end<'a, N: Number>(f: Operand<'a, N>, g: Operand<'a, N>) -> Term<'a, N> {
    Term {
        cut: Cut::Infinite,
        transient: f.transient.plus(&g.transient),
        period: g.period.clone(),
        step: g.step.clone(),
        reach: Reach::Before(f.transient.plus(&N::whole(1))),
        long: g,
        short: f,
        swapped: true,
        convex: false,
    }
}

/// Both up to a common multiple of the periods behind both transient parts, and on by another
/// period (Bouillard and Thierry, 2008).
fn common_multiple<'a, N: Number>(f: Operand<'a, N>, g: Operand<'a, N>) -> Term<'a, N> {
    let period = pointwise::common_period(&f, &g);
    let slope = f.slope().min(g.slope());
    Term {
        cut: Cut::CommonMultiple,
        transient: f.transient.plus(&g.transient).plus(&period),
        step: slope.times(&period),
        period,
        long: f,
        short: g,
        reach: Reach::All,
        swapped: false,
        convex: false,
    }
}

/// Transient and periodic parts apart: up to four convolutions.
fn by_parts<'a, N: Number>(
    f: &Periodic<N>,
    g: &Periodic<N>,
    later: impl FnOnce(Periodic<N>, Periodic<N>) -> Vec<Term<'a, N>>,
) -> Vec<Term<'a, N>> {
    let ((f, f_later), (g, g_later)) = (f.parts(), g.parts());
    let mut terms = Vec::new();
    if let (Some(f), Some(g)) = (&f, &g) {
        terms.push(beside_end(Cow::Owned(f.clone()), Cow::Owned(g.clone())));
    }
    if let Some(f) = f {
        terms.push(beside_end(Cow::Owned(f), Cow::Owned(g_later.clone())));
    }
    if let Some(g) = g {
        terms.push(beside_end(Cow::Owned(g), Cow::Owned(f_later.clone())).swapped());
    }
    terms.extend(later(f_later, g_later));
    terms
}

fn equal_slopes<'a, N: Number>(
    f: Operand<'a, N>,
    g: Operand<'a, N>,
    algebra: &Algebra,
) -> Vec<Term<'a, N>> {
    let whole = common_multiple(f.clone(), g.clone());
    if !algebra.optimisations.common_divisor {
        return vec![whole];
    }
    if f.transient.is_zero() && g.transient.is_zero() {
        return vec![common_divisor(f, g)];
    }
    let multiple = pointwise::common_period(&f, &g);
    let rise = f.slope().times(&multiple);
    let mut plans = vec![vec![whole]];
    let mut one_sided = |f: &Operand<'a, N>, g: &Operand<'a, N>, is_swapped: bool| {
        if f.is_exchanged(&multiple, &rise) {
            let term = exchanged(Cut::CommonDivisor, f.clone(), g.clone(), &multiple);
            plans.push(vec![if is_swapped { term.swapped() } else { term }]);
        }
    };
    one_sided(&f, &g, false);
    one_sided(&g, &f, true);
    plans.push(by_parts(&f, &g, |f, g| {
        vec![common_divisor(Cow::Owned(f), Cow::Owned(g))]
    }));
    least(plans)
}

/// Periodic parts alone, of equal slopes. Shifting a split's one part shows h(t + d_f) ≤ h(t) + c_f,
/// and the same of g; over a common multiple there is equality, thus in every step there: the result
/// repeats itself by d_f and by d_g, and hence by their greatest common divisor.
fn common_divisor<'a, N: Number>(f: Operand<'a, N>, g: Operand<'a, N>) -> Term<'a, N> {
    let whole = common_multiple(f, g);
    let (f, g) = (&whole.long, &whole.short);
    let period = match (f.is_ultimately_affine(), g.is_ultimately_affine()) {
        (true, _) => g.period.clone(),
        (_, true) => f.period.clone(),
        _ => {
            // The product of two numbers is that of their common multiple and divisor.
            let multiple = f.period.common_multiple(&g.period);
            f.period.times(&g.period).over(&multiple)
        }
    };
    Term {
        cut: Cut::CommonDivisor,
        step: f.slope().times(&period),
        period,
        ..whole
    }
}

/// The slower curve and as much of the faster one as an exchange of `time` leaves.
fn exchanged<'a, N: Number>(
    cut: Cut,
    low: Operand<'a, N>,
    high: Operand<'a, N>,
    time: &N,
) -> Term<'a, N> {
    let reach = high.transient.plus(time);
    Term {
        cut,
        transient: low.transient.plus(&reach),
        period: low.period.clone(),
        step: low.step.clone(),
        long: low,
        short: high,
        reach: Reach::Before(reach),
        swapped: false,
        convex: false,
    }
}

fn least<N: Number>(plans: Vec<Vec<Term<'_, N>>>) -> Vec<Term<'_, N>> {
    plans
        .into_iter()
        .min_by_key(|terms| work(terms).saturating_add(PAIRS_OF_A_TERM * terms.len() as u64))
        .unwrap_or_default()
}

/// The slope gap, if it may be used, or else the best.
fn first_cut<'a, N: Number>(
    low: Operand<'a, N>,
    high: Operand<'a, N>,
    algebra: &Algebra,
) -> Vec<Term<'a, N>> {
    let gap = || slope_gap(&low, &high, &Range::of(&low)?);
    match algebra.optimisations.slope_gap.then(gap).flatten() {
        Some(term) => vec![term],
        None => different_slopes(low, high, algebra),
    }
}

/// Bringing a term's result to its form, and taking the minimum, takes as much as so many pairs.
const PAIRS_OF_A_TERM: u64 = 256;

/// Looking once more at a piece takes as much as so many pairs.
const PAIRS_OF_A_LOOK: u64 = 8;

/// Asking for growth takes, for each piece of the slower curve, as much as so many pairs.
const PAIRS_OF_A_ROUND: u64 = 16;

/// Plans are tried by looking for less work only where there is more than this.
const WORTH_LOOKING: u64 = 300;

fn different_slopes<'a, N: Number>(
    low: Operand<'a, N>,
    high: Operand<'a, N>,
    algebra: &Algebra,
) -> Vec<Term<'a, N>> {
    let on = algebra.optimisations;
    let mut plans = Vec::new();
    if on.slope_gap
        && let Some(range) = Range::of(&low)
    {
        let pieces = low.section.pieces.len() + high.section.pieces.len();
        let little = (PAIRS_OF_A_LOOK * pieces as u64).max(WORTH_LOOKING);
        for cut in [slope_gap, outgrown] {
            plans.extend(cut(&low, &high, &range).map(|term| vec![term]));
            if plans.last().is_some_and(|terms| work(terms) <= little) {
                return least(plans);
            }
        }
    }
    if on.isospeed {
        plans.extend(isospeed(&low, &high, on.super_isospeed).map(|term| vec![term]));
    }
    if on.super_isospeed {
        let multiple = pointwise::common_period(&low, &high);
        if low.is_exchanged(&multiple, &high.slope().times(&multiple)) {
            let term = exchanged(Cut::CommonMultiple, low.clone(), high.clone(), &multiple);
            plans.push(vec![term]);
        }
    }
    let best = plans.iter().map(|terms| work(terms)).min();
    if on.super_isospeed && best.is_some_and(|best| best > WORTH_LOOKING) {
        plans.extend(least_exchange(&low, &high, &plans).map(|term| vec![term]));
    }
    if plans.is_empty() {
        // Only if both have transient parts that matter, or nothing may be used.
        let later = |f: Periodic<N>, g: Periodic<N>| {
            if on.super_isospeed {
                let multiple = pointwise::common_period(&f, &g);
                let (f, g) = (Cow::Owned(f), Cow::Owned(g));
                return vec![exchanged(Cut::CommonMultiple, f, g, &multiple)];
            }
            vec![common_multiple(Cow::Owned(f), Cow::Owned(g))]
        };
        return by_parts(&low, &high, later);
    }
    let mut best = least(plans);
    if let [known] = &best[..]
        && on.growth
        && known.sizes().1 > PAIRS_OF_A_ROUND
        && let Some(less) = growth::growth(&low, &high, known, algebra.limit)
    {
        best = vec![less];
    }
    best
}

/// How far a curve lies above its slope: at most, from T on, and at least, anywhere.
struct Range<N> {
    most: N,
    least: N,
}

impl<N: Number> Range<N> {
    /// `None` where it is not finite from below, or infinite at times of each period.
    fn of(curve: &Periodic<N>) -> Option<Self> {
        let (most, least) = curve.most_and_least()?;
        Some(Range { most, least })
    }
}

/// Let M be the highest that the slower curve f lies above its slope from T_f on, m_f and m_g the
/// lowest that f and g lie above theirs anywhere. For t ≥ T_f the split s = 0 of g gives at most
/// ρ_f t + M + g(0), any split s at least ρ_f t + m_f + m_g + (ρ_g − ρ_f) s. So only
/// s ≤ S = (M − m_f + g(0) − m_g) / (ρ_g − ρ_f) can win, and from T_f + S on all that win leave f in
/// its periodic part.
///
/// `None` where one is not finite from below, or infinite at times of each period, or the faster
/// one at 0.
fn slope_gap<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    range: &Range<N>,
) -> Option<Term<'a, N>> {
    let least_high = high.lowest()?;
    let Finite(begin) = high.section.value(&N::zero()) else {
        return None;
    };
    let apart = high.slope().minus(&low.slope());
    let more = range
        .most
        .minus(&range.least)
        .plus(&begin)
        .minus(&least_high);
    let reach = rounded(more.over(&apart).max(N::zero()), low);
    Some(Term {
        cut: Cut::SlopeGap,
        transient: low.transient.plus(&reach),
        period: low.period.clone(),
        step: low.step.clone(),
        // Before T_f nothing is known of which splits win.
        reach: Reach::Through(reach.max(low.transient.clone())),
        long: low.clone(),
        short: high.clone(),
        swapped: false,
        convex: false,
    })
}

/// A time that is not less, on a grid that the slower curve's period fits, so that what is computed
/// up to there is on numbers as short as the curves': a cut is none the worse for a little more.
fn rounded<N: Number>(time: N, low: &Periodic<N>) -> N {
    /// So many of the grid make a period at least.
    const PARTS: i64 = 8;
    let Some((period, denominator)) = low.period.parts() else {
        return time;
    };
    let finer = match period < PARTS {
        true => PARTS,
        false => 1,
    };
    let Some(grid) = denominator.checked_mul(finer).map(N::whole) else {
        return time;
    };
    let up = time.times(&grid).negated().floor().negated();
    up.over(&grid)
}

/// The exchange of so many periods of the faster curve that the gap between the slopes outgrows
/// whatever the slower one varies by.
fn outgrown<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    range: &Range<N>,
) -> Option<Term<'a, N>> {
    let apart = high.slope().minus(&low.slope());
    let grown = range.most.minus(&range.least).over(&apart);
    // f(u + a) is to be in the periodic part, of which the highest is known.
    let time = whole_periods(high, &grown.max(low.transient.clone()));
    Some(exchanged(Cut::SlopeGap, low.clone(), high.clone(), &time))
}

/// The least time that is not less and that the curve repeats itself by.
fn whole_periods<N: Number>(curve: &Periodic<N>, time: &N) -> N {
    if curve.is_ultimately_affine() {
        // Any, but not 0: up to its transient part the value there is needed, too.
        return match time.is_positive() {
            true => time.clone(),
            false => curve.period.clone(),
        };
    }
    let periods = time.over(&curve.period).negated().floor().negated();
    periods.max(N::whole(1)).times(&curve.period)
}

/// The exchange of a common multiple of the steps: possible if the slower curve never falls, and
/// checked.
fn isospeed<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    own_period: bool,
) -> Option<Term<'a, N>> {
    if !low.step.is_positive() {
        return None;
    }
    let rise = match (low.is_ultimately_affine(), high.is_ultimately_affine()) {
        (true, _) => high.step.clone(),
        (_, true) => low.step.clone(),
        _ => low.step.common_multiple(&high.step),
    };
    let time = rise.over(&high.slope());
    if !low.is_exchanged(&time, &rise) {
        return None;
    }
    let term = exchanged(Cut::Isospeed, low.clone(), high.clone(), &time);
    Some(match own_period {
        true => term,
        // What the slower curve takes for the same rise.
        false => Term {
            period: rise.over(&low.slope()),
            step: rise,
            ..term
        },
    })
}

/// The exchange of the fewest periods of the faster curve: tried one by one, up to the best known.
fn least_exchange<'a, N: Number>(
    low: &Operand<'a, N>,
    high: &Operand<'a, N>,
    known: &[Vec<Term<'a, N>>],
) -> Option<Term<'a, N>> {
    /// Most that are tried: what that takes is to be little beside the work.
    const TRIES: i64 = 64;
    let shortest = known.iter().flatten().map(Term::end).min()?;
    let transient = low.transient.plus(&high.transient).plus(&low.period);
    (1..=TRIES)
        .map(|periods| N::whole(periods))
        .map(|periods| (periods.times(&high.period), periods.times(&high.step)))
        .take_while(|(time, _)| transient.plus(time) < shortest)
        .find(|(time, rise)| low.is_exchanged(time, rise))
        .map(|(time, _)| exchanged(Cut::Exchange, low.clone(), high.clone(), &time))
}
