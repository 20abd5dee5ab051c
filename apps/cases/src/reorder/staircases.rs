//! Random staircases of three kinds, as the authors of the paper generate them in their earlier
//! benchmarks (rzippo/super-isospeed-benchmarks): the paper names neither its generator nor its
//! seeds.
//!
//! Invariant: all are non-decreasing, left-continuous, and 0 at 0; the same seed gives the same
//! curves.

use metes_curve::{Curve, Element, Error, Rational, Value};

use metes_lab::Random;

/// What repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A jump and a flat stretch.
    Jumps,
    /// A rise and a flat stretch.
    Constants,
    /// A jump and a rise.
    Slopes,
}

/// How curves of a set are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) kind: Kind,
    /// How many such steps come before the period.
    pub(crate) transient: u64,
    /// How many are in a period.
    pub(crate) periodic: u64,
    /// Lengths, heights and slopes are whole numbers from 1 to this.
    pub(crate) most: u64,
    /// Whether all curves of the set rise at one slope in the long run.
    pub(crate) equal_slopes: bool,
}

impl Draw {
    /// So many curves.
    pub(crate) fn set(&self, curves: usize, seed: u64) -> Result<Vec<Curve>, Error> {
        let mut random = Random::new(seed);
        (0..curves).map(|_| self.curve(&mut random)).collect()
    }

    fn curve(&self, random: &mut Random) -> Result<Curve, Error> {
        let mut elements = Vec::new();
        let (mut time, mut value) = (0_i64, 0_i64);
        let mut draw = || random.between(1, self.most) as i64;
        let mut lay = |time: &mut i64, value: &mut i64, length: i64, jump: i64, slope: i64| {
            elements.push(Element::Point {
                time: (*time).into(),
                value: Value::Finite((*value).into()),
            });
            elements.push(Element::Segment {
                start: (*time).into(),
                end: (*time + length).into(),
                value: Value::Finite((*value + jump).into()),
                slope: slope.into(),
            });
            *time += length;
            *value += jump + slope * length;
        };
        let mut begin = (0, 0);
        for step in 0..self.transient + self.periodic {
            if step == self.transient {
                begin = (time, value);
            }
            match self.kind {
                Kind::Jumps => {
                    let (jump, length) = (draw(), draw());
                    lay(&mut time, &mut value, length, jump, 0);
                }
                Kind::Constants => {
                    let (length, slope, flat) = (draw(), draw(), draw());
                    lay(&mut time, &mut value, length, 0, slope);
                    lay(&mut time, &mut value, flat, 0, 0);
                }
                Kind::Slopes => {
                    let (jump, length, slope) = (draw(), draw(), draw());
                    lay(&mut time, &mut value, length, jump, slope);
                }
            }
        }
        let (period, step) = (time - begin.0, value - begin.1);
        let curve = Curve::new(&elements, &begin.0.into(), &period.into(), &step.into())?;
        if !self.equal_slopes {
            return Ok(curve);
        }
        // The same shape, as high as it is long: slope 1 in the long run.
        let by = Rational::new(period, step).unwrap_or_else(|| 1.into());
        let raised = elements.into_iter().map(|element| match element {
            Element::Point { time, value } => Element::Point {
                time,
                value: scaled(&value, &by),
            },
            Element::Segment {
                start,
                end,
                value,
                slope,
            } => Element::Segment {
                start,
                end,
                value: scaled(&value, &by),
                slope: &slope * &by,
            },
        });
        Curve::new(
            &raised.collect::<Vec<_>>(),
            &begin.0.into(),
            &period.into(),
            &period.into(),
        )
    }
}

fn scaled(value: &Value, by: &Rational) -> Value {
    match value {
        Value::Finite(number) => Value::Finite(number * by),
        infinity => infinity.clone(),
    }
}
