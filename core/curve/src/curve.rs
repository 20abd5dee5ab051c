//! Curves: exact functions of time that repeat themselves in the end.
//!
//! Invariant: a curve is kept on fractions of 64 bits if all of its numbers fit, else on longer
//! ones; so equal functions are equal structs and have equal hashes.

use std::convert::Infallible;
use std::hash::{Hash, Hasher};

use crate::error::Error;
use crate::extended::Extended;
use crate::number::{Big, Number, Rational, Small, exactly};
use crate::periodic::Periodic;
use crate::plan::Profile;
use crate::section::{Piece, Section};

/// A value of a curve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Below every number.
    NegativeInfinity,
    /// A number.
    Finite(Rational),
    /// Above every number.
    PositiveInfinity,
}

/// A point, or an open segment behind one: what curves are given as and shown as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// The value at a time.
    Point {
        /// When.
        time: Rational,
        /// The value.
        value: Value,
    },
    /// A line between two times, both excluded.
    Segment {
        /// From.
        start: Rational,
        /// To.
        end: Rational,
        /// The limit at `start` from the right.
        value: Value,
        /// The slope; of an infinite segment 0.
        slope: Rational,
    },
}

/// A function f from times (from 0 on) to numbers and infinities, known on `[0, T + d)`, with
/// f(t + d) = f(t) + c from T on. Equal functions are equal structs.
#[derive(Clone, Debug)]
pub struct Curve {
    pub(crate) form: Form,
    /// What plans ask of it, if it was described: of a result they look when they need it.
    pub(crate) profile: Option<Profile>,
}

impl PartialEq for Curve {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

impl Eq for Curve {}

impl Hash for Curve {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.form.hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    Small(Periodic<Small>),
    Big(Box<Periodic<Big>>),
}

/// Runs the same on either form.
macro_rules! either {
    ($curve:expr, $periodic:ident => $result:expr) => {
        match &$curve.form {
            crate::curve::Form::Small($periodic) => $result,
            crate::curve::Form::Big($periodic) => $result,
        }
    };
}
pub(crate) use either;

impl Curve {
    /// The curve with these elements: a point at 0, a segment to the next point, and so on up to
    /// `transient + period`; from `transient` on it rises by `step` every `period`. The step of a
    /// curve that is infinite in the end is 0. O(elements × divisors of their number).
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Period`].
    pub fn new(
        elements: &[Element],
        transient: &Rational,
        period: &Rational,
        step: &Rational,
    ) -> Result<Self, Error> {
        let zero = Rational::from(0);
        if *transient < zero || *period <= zero {
            return Err(Error::Period {
                what: format!("by {period} from {transient} on"),
            });
        }
        let end = transient + period;
        well_formed(elements, &end)?;
        let built = exactly(|| build(elements, [transient, period, step], small).ok());
        let mut curve = built.flatten().map_or_else(
            || {
                let Ok(long) = build(elements, [transient, period, step], big);
                Curve::of_big(long)
            },
            Curve::of_small,
        );
        curve.profile = Some(Profile::of(&curve));
        Ok(curve)
    }

    pub(crate) fn of_small(short: Periodic<Small>) -> Self {
        Curve::of(Form::Small(short))
    }

    fn of(form: Form) -> Self {
        Curve {
            form,
            profile: None,
        }
    }

    /// On small fractions if it is kept so.
    pub(crate) fn short(&self) -> Option<&Periodic<Small>> {
        match &self.form {
            Form::Small(short) => Some(short),
            Form::Big(_) => None,
        }
    }

    pub(crate) fn of_big(long: Periodic<Big>) -> Self {
        match long.converted(|number| small(&number.rational())) {
            Ok(short) => Curve::of(Form::Small(short)),
            Err(Long) => Curve::of(Form::Big(Box::new(long))),
        }
    }

    /// The curve, unless one of its numbers is longer than may be computed with. Linear.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        match self.form {
            Form::Small(_) => Ok(self),
            Form::Big(long) => Ok(Curve {
                form: Form::Big(Box::new(long.checked()?)),
                profile: self.profile,
            }),
        }
    }

    pub(crate) fn big(&self) -> Periodic<Big> {
        match &self.form {
            Form::Small(short) => {
                let Ok(long) = short.converted(|number| big(&number.rational()));
                long
            }
            Form::Big(long) => (**long).clone(),
        }
    }

    /// 0 at 0 and +∞ behind: with it every convolution is the other curve.
    pub(crate) fn neutral() -> Self {
        let zero = Small::whole(0);
        let at_zero = Piece::new(
            zero,
            Extended::Finite(zero),
            Extended::PositiveInfinity,
            zero,
        );
        let section = Section {
            pieces: vec![at_zero],
            end: Small::whole(2),
        };
        let one = Small::whole(1);
        Curve::of_small(Periodic::new(section, one, one, zero))
    }

    /// How many pieces it is kept in.
    pub(crate) fn pieces(&self) -> usize {
        either!(self, curve => curve.section.pieces.len())
    }

    /// T: from here on it repeats itself.
    #[must_use]
    pub fn transient(&self) -> Rational {
        either!(self, curve => curve.transient.rational())
    }

    /// d: how often it repeats itself.
    #[must_use]
    pub fn period(&self) -> Rational {
        either!(self, curve => curve.period.rational())
    }

    /// c: how much it rises each time; 0 if it is infinite in the end.
    #[must_use]
    pub fn step(&self) -> Rational {
        either!(self, curve => curve.step.rational())
    }

    /// Whether it is affine from some time on.
    #[must_use]
    pub fn is_ultimately_affine(&self) -> bool {
        either!(self, curve => curve.is_ultimately_affine())
    }

    /// The value at a time; `None` of times below 0. Logarithmic in the pieces.
    #[must_use]
    pub fn value(&self, time: &Rational) -> Option<Value> {
        if *time < Rational::from(0) {
            return None;
        }
        if let (Form::Small(short), Some(time)) = (&self.form, time.small())
            && let Some(value) = exactly(|| short.value(&time))
        {
            return Some(shown(&value));
        }
        Some(shown(&self.big().value(&Big::from(time))))
    }

    /// The values at many times, as by [`Curve::value`], which takes longer for each time whose
    /// value does not fit 64 bits.
    #[must_use]
    pub fn values(&self, times: &[Rational]) -> Vec<Option<Value>> {
        let zero = Rational::from(0);
        let mut long = None;
        let value = |time: &Rational| {
            if *time < zero {
                return None;
            }
            let short = self.short().zip(time.small());
            if let Some(value) = short.and_then(|(short, time)| exactly(|| short.value(&time))) {
                return Some(shown(&value));
            }
            let long = long.get_or_insert_with(|| self.big());
            Some(shown(&long.value(&Big::from(time))))
        };
        times.iter().map(value).collect()
    }

    /// Its elements on `[0, T + d)`: points and segments in turn.
    #[must_use]
    pub fn elements(&self) -> Vec<Element> {
        either!(self, curve => elements(&curve.section))
    }
}

/// A number takes more than 64 bits.
struct Long;

fn small(rational: &Rational) -> Result<Small, Long> {
    rational.small().ok_or(Long)
}

fn big(rational: &Rational) -> Result<Big, Infallible> {
    Ok(Big::from(rational))
}

fn well_formed(elements: &[Element], end: &Rational) -> Result<(), Error> {
    let mut reached = Rational::from(0);
    for (element, pair) in elements.iter().enumerate() {
        let wrong = |what: String| Err(Error::Malformed { element, what });
        match pair {
            Element::Point { .. } if element % 2 == 1 => {
                return wrong("is a point and stands behind a point: a segment is missing".into());
            }
            Element::Segment { .. } if element.is_multiple_of(2) => {
                return wrong("is a segment and stands where a point is missing".into());
            }
            Element::Point { time, .. } if *time != reached => {
                return wrong(format!("stands at {time} where {reached} is reached"));
            }
            Element::Point { .. } => {}
            Element::Segment { start, .. } if *start != reached => {
                return wrong(format!("begins at {start} where {reached} is reached"));
            }
            Element::Segment { start, end, .. } if end <= start => {
                return wrong(format!("goes from {start} to {end}: time goes on"));
            }
            Element::Segment { end, .. } => reached = end.clone(),
        }
    }
    if reached != *end || !elements.len().is_multiple_of(2) {
        return Err(Error::Malformed {
            element: elements.len(),
            what: format!("is missing: {reached} is reached, T + d is {end}"),
        });
    }
    Ok(())
}

/// Well-formed elements as a function.
fn build<N: Number, E>(
    elements: &[Element],
    [transient, period, step]: [&Rational; 3],
    number: impl Fn(&Rational) -> Result<N, E>,
) -> Result<Periodic<N>, E> {
    let mut pieces = Vec::with_capacity(elements.len() / 2);
    for pair in elements.chunks(2) {
        if let [
            Element::Point { time, value: at },
            Element::Segment { value, slope, .. },
        ] = pair
        {
            pieces.push(Piece::new(
                number(time)?,
                known(at, &number)?,
                known(value, &number)?,
                number(slope)?,
            ));
        }
    }
    let (transient, period, step) = (number(transient)?, number(period)?, number(step)?);
    let section = Section {
        pieces,
        end: transient.plus(&period),
    };
    Ok(Periodic::new(section, transient, period, step))
}

fn known<N: Number, E>(
    value: &Value,
    number: impl Fn(&Rational) -> Result<N, E>,
) -> Result<Extended<N>, E> {
    Ok(match value {
        Value::NegativeInfinity => Extended::NegativeInfinity,
        Value::Finite(finite) => Extended::Finite(number(finite)?),
        Value::PositiveInfinity => Extended::PositiveInfinity,
    })
}

pub(crate) fn shown<N: Number>(value: &Extended<N>) -> Value {
    match value {
        Extended::NegativeInfinity => Value::NegativeInfinity,
        Extended::Finite(number) => Value::Finite(number.rational()),
        Extended::PositiveInfinity => Value::PositiveInfinity,
    }
}

pub(crate) fn elements<N: Number>(section: &Section<N>) -> Vec<Element> {
    let starts = section.pieces.iter().map(|piece| piece.start.rational());
    let ends = starts.skip(1).chain([section.end.rational()]);
    let pair = |(piece, end): (&Piece<N>, Rational)| {
        let point = Element::Point {
            time: piece.start.rational(),
            value: shown(&piece.at),
        };
        let segment = Element::Segment {
            start: piece.start.rational(),
            end,
            value: shown(&piece.after),
            slope: piece.slope.rational(),
        };
        [point, segment]
    };
    section.pieces.iter().zip(ends).flat_map(pair).collect()
}
