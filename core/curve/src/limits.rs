//! Limits from the left and from the right, at one time and at all.
//!
//! Invariant: at 0 there is no time before, so the limit from the left there is the value.

use crate::curve::{Curve, Value};
use crate::error::Error;
use crate::extended::Extended;
use crate::found::Found;
use crate::number::{Big, Number, Rational, Small, exactly};
use crate::periodic::Periodic;
use crate::section::{Piece, Section};

impl Curve {
    /// f(t−), at 0 the value; `None` of times below 0. Logarithmic in the pieces.
    #[must_use]
    pub fn limit_before(&self, time: &Rational) -> Option<Value> {
        if *time < Rational::from(0) {
            return None;
        }
        Some(exact_with!(self, &[time], |f, time| before(f, &time[0])))
    }

    /// f(t+); `None` of times below 0. Logarithmic in the pieces.
    #[must_use]
    pub fn limit_behind(&self, time: &Rational) -> Option<Value> {
        if *time < Rational::from(0) {
            return None;
        }
        Some(exact_with!(self, &[time], |f, time| behind(f, &time[0])))
    }

    /// The curve of its limits from the left, f(t−), and f(0) at 0. Linear.
    #[must_use]
    pub fn left_continuous(&self) -> Self {
        exact!(self, |f| left_continuous(f))
    }

    /// The curve of its limits from the right, f(t+). Linear.
    #[must_use]
    pub fn right_continuous(&self) -> Self {
        exact!(self, |f| right_continuous(f))
    }

    /// Its elements on `[0, end)`, periods written out: what a plot of it shows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if these are more than `limit` pieces.
    pub fn elements_up_to(
        &self,
        end: &Rational,
        limit: u64,
    ) -> Result<Vec<crate::curve::Element>, Error> {
        let long = self.big().up_to(&Big::from(end), limit)?;
        Ok(crate::curve::elements(&long))
    }
}

fn before<N: Number>(f: &Periodic<N>, time: &N) -> Extended<N> {
    if time.is_zero() {
        return f.section.value(time);
    }
    let zero = N::zero();
    // So many periods that the time is in (T, T + d], or in the transient part.
    let over = time.minus(&f.section.end).over(&f.period);
    let periods = over.negated().floor().negated().max(zero);
    let inside = time.minus(&periods.times(&f.period));
    let index = f
        .section
        .pieces
        .partition_point(|piece| piece.start < inside);
    let line = f.section.pieces[index.saturating_sub(1)].line(&inside);
    line.moved(&periods.times(&f.step))
}

fn behind<N: Number>(f: &Periodic<N>, time: &N) -> Extended<N> {
    let over = time.minus(&f.transient).over(&f.period);
    let periods = over.floor().max(N::zero());
    let inside = time.minus(&periods.times(&f.period));
    let index = f
        .section
        .pieces
        .partition_point(|piece| piece.start <= inside);
    let line = f.section.pieces[index.saturating_sub(1)].line(&inside);
    line.moved(&periods.times(&f.step))
}

fn left_continuous<N: Number>(f: &Periodic<N>) -> Periodic<N> {
    // The limit at T may be one of the transient part; so one period more.
    let transient = f.section.end.clone();
    let end = transient.plus(&f.period);
    let moved = f
        .section
        .pieces_of(&f.transient, &f.section.end)
        .map(|piece| piece.moved(&f.period, &f.step));
    let all: Vec<Piece<N>> = f.section.pieces.iter().cloned().chain(moved).collect();
    let mut last: Option<Piece<N>> = None;
    let pieces: Vec<Piece<N>> = all
        .into_iter()
        .map(|piece| {
            let at = match &last {
                Some(last) => last.line(&piece.start),
                None => piece.at.clone(),
            };
            last = Some(piece.clone());
            Piece { at, ..piece }
        })
        .collect();
    let section = Section { pieces, end };
    Periodic::new(section, transient, f.period.clone(), f.step.clone())
}

fn right_continuous<N: Number>(f: &Periodic<N>) -> Periodic<N> {
    let right = |piece: &Piece<N>| Piece {
        at: piece.after.clone(),
        ..piece.clone()
    };
    // Its breakpoint at T may be one of the transient part alone, which is seen by `Periodic::new`.
    let section = Section {
        pieces: f.section.pieces.iter().map(right).collect(),
        end: f.section.end.clone(),
    };
    Periodic::new(
        section,
        f.transient.clone(),
        f.period.clone(),
        f.step.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_values_next_to_a_time() {
        let n = |value: i64| Rational::from(value);
        let finite = |value: i64| Some(Value::Finite(n(value)));
        let stairs = Curve::staircase(&n(2), &n(3), &n(4)).unwrap();
        let burst = Curve::token_bucket(&n(1), &n(5)).unwrap();
        for (time, before, at, behind) in
            [(0, 0, 0, 0), (2, 0, 0, 4), (5, 4, 4, 8), (32, 40, 40, 44)]
        {
            assert_eq!(stairs.limit_before(&n(time)), finite(before));
            assert_eq!(stairs.value(&n(time)), finite(at));
            assert_eq!(stairs.limit_behind(&n(time)), finite(behind));
        }
        assert_eq!(burst.limit_behind(&n(0)), finite(5));
        assert_eq!(burst.limit_before(&n(-1)), None);
        assert_eq!(stairs.left_continuous(), stairs);
        let right = Curve::staircase_at(&n(2), &n(3), &n(4)).unwrap();
        assert_eq!(stairs.right_continuous(), right);
        assert_eq!(right.left_continuous(), stairs);
        assert_eq!(burst.right_continuous(), Curve::affine(&n(1), &n(5)));
        let delay = Curve::delay(&n(3)).unwrap();
        assert_eq!(
            delay.right_continuous().value(&n(3)),
            Some(Value::PositiveInfinity)
        );
        assert_eq!(delay.right_continuous().left_continuous(), delay);
    }
}
