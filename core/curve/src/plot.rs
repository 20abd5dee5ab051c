//! Curves as pictures: for a terminal, and as SVG.
//!
//! A picture is made of numbers in floating point; curves stay exact. Where a curve jumps, a
//! filled mark is its value and an open one a limit that is not; where it is infinite, that is
//! shown at the edge.
//!
//! Invariant: nothing is drawn that is not of the curve: what is outside of the window is cut.

mod svg;
mod terminal;

use crate::curve::{Curve, Element, Value};
use crate::error::Error;
use crate::number::Rational;

pub use terminal::Character;

/// Most pieces of one curve that a picture is made of, unless a window is asked for.
const PIECES: u64 = 20_000;

/// What a picture is to show, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Above it.
    pub title: String,
    /// At the axis of times.
    pub time_label: String,
    /// At the axis of values.
    pub value_label: String,
    /// Times to be shown; else from 0 up to two periods of every curve.
    pub times: Option<(Rational, Rational)>,
    /// Values to be shown; else those that the curves have at those times.
    pub values: Option<(Rational, Rational)>,
    /// Whether lines of a grid are left out.
    pub no_grid: bool,
}

/// A picture of curves.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    labels: [String; 2],
    grid: bool,
    times: (f64, f64),
    values: (f64, f64),
    lines: Vec<Line>,
}

/// One curve of a picture, cut to its window.
#[derive(Clone, Debug, Default)]
struct Line {
    name: String,
    /// From time and value to time and value.
    strokes: Vec<[f64; 4]>,
    /// Values at jumps.
    closed: Vec<(f64, f64)>,
    /// Limits at jumps that are no values.
    open: Vec<(f64, f64)>,
    /// Times between which it is +∞, or −∞.
    above: Vec<(f64, f64)>,
    below: Vec<(f64, f64)>,
}

impl Picture {
    /// Draws curves with their names.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the times that are asked for are more than `limit` pieces of one
    /// curve.
    pub fn new(curves: &[(String, Curve)], options: &Options, limit: u64) -> Result<Self, Error> {
        let zero = Rational::from(0);
        let (from, sections) = match &options.times {
            Some((from, to)) => {
                let to = to.clone().max(Rational::from(1));
                (from.clone(), sections(curves, &to, limit)?)
            }
            None => {
                let two = |(_, curve): &(String, Curve)| {
                    let (transient, period) = (curve.transient(), curve.period());
                    &(&transient + &period) + &period
                };
                let ends = || curves.iter().map(two);
                let last = ends().max().unwrap_or_else(|| Rational::from(1));
                let first = ends().min().unwrap_or_else(|| Rational::from(1));
                let shown = sections(curves, &last, PIECES.min(limit));
                let shown = shown.or_else(|_| sections(curves, &first, limit))?;
                (zero, shown)
            }
        };
        let end = sections_end(&sections).unwrap_or(1.0);
        let end = options.times.as_ref().map_or(end, |(_, to)| to.to_f64());
        let times = (from.to_f64(), end.max(from.to_f64() + f64::MIN_POSITIVE));
        let mut lines: Vec<Line> = curves
            .iter()
            .zip(&sections)
            .map(|((name, _), elements)| line(name, elements, times))
            .collect();
        let values = match &options.values {
            Some((low, high)) => (low.to_f64(), high.to_f64()),
            None => reach(&lines),
        };
        for line in &mut lines {
            line.cut(values);
        }
        Ok(Picture {
            title: options.title.clone(),
            labels: [options.time_label.clone(), options.value_label.clone()],
            grid: !options.no_grid,
            times,
            values,
            lines,
        })
    }
}

fn sections(
    curves: &[(String, Curve)],
    end: &Rational,
    limit: u64,
) -> Result<Vec<Vec<Element>>, Error> {
    let section = |(_, curve): &(String, Curve)| curve.elements_up_to(end, limit);
    curves.iter().map(section).collect()
}

fn sections_end(sections: &[Vec<Element>]) -> Option<f64> {
    match sections.first()?.last()? {
        Element::Segment { end, .. } => Some(end.to_f64()),
        Element::Point { time, .. } => Some(time.to_f64()),
    }
}

fn finite(value: &Value) -> Option<f64> {
    match value {
        Value::Finite(number) => Some(number.to_f64()),
        Value::NegativeInfinity | Value::PositiveInfinity => None,
    }
}

fn line(name: &str, elements: &[Element], (from, to): (f64, f64)) -> Line {
    let mut line = Line {
        name: name.to_owned(),
        ..Line::default()
    };
    let mut before: Option<Value> = None;
    for pair in elements.chunks(2) {
        let [
            Element::Point { time, value: at },
            Element::Segment {
                end,
                value: after,
                slope,
                ..
            },
        ] = pair
        else {
            continue;
        };
        let (start, stop) = (time.to_f64(), end.to_f64());
        let jumps = before.as_ref().is_some_and(|before| before != at) || at != after;
        if jumps && (from..=to).contains(&start) {
            line.closed.extend(finite(at).map(|value| (start, value)));
            let limits = before.iter().chain([after]).filter(|limit| *limit != at);
            line.open
                .extend(limits.filter_map(|limit| Some((start, finite(limit)?))));
        }
        before = Some(match after {
            Value::Finite(after) => Value::Finite(after + &(slope * &(end - time))),
            infinity => infinity.clone(),
        });
        let (left, right) = (start.max(from), stop.min(to));
        if left >= right {
            continue;
        }
        match after {
            Value::Finite(after) => {
                let (after, slope) = (after.to_f64(), slope.to_f64());
                let value = |time: f64| after + slope * (time - start);
                line.strokes.push([left, value(left), right, value(right)]);
            }
            Value::PositiveInfinity => join(&mut line.above, left, right),
            Value::NegativeInfinity => join(&mut line.below, left, right),
        }
    }
    line
}

/// Adds a stretch of time behind others.
fn join(spans: &mut Vec<(f64, f64)>, left: f64, right: f64) {
    match spans.last_mut() {
        Some(last) if last.1 == left => last.1 = right,
        _ => spans.push((left, right)),
    }
}

/// Between which values lines are, 0 included, and a little more.
fn reach(lines: &[Line]) -> (f64, f64) {
    let values = |line: &Line| {
        let strokes = line
            .strokes
            .iter()
            .flat_map(|stroke| [stroke[1], stroke[3]]);
        let marks = line.closed.iter().chain(&line.open).map(|mark| mark.1);
        strokes.chain(marks).collect::<Vec<f64>>()
    };
    let values = lines.iter().flat_map(values);
    let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match high > low {
        true => {
            let more = (high - low) * 0.05;
            (if low < 0.0 { low - more } else { low }, high + more)
        }
        false => (0.0, 1.0),
    }
}

impl Line {
    /// Cuts what is above or below the window.
    fn cut(&mut self, (low, high): (f64, f64)) {
        let inside = |mark: &(f64, f64)| (low..=high).contains(&mark.1);
        self.closed.retain(inside);
        self.open.retain(inside);
        self.strokes = self
            .strokes
            .iter()
            .filter_map(|stroke| clipped(*stroke, low, high))
            .collect();
    }
}

fn clipped([t0, v0, t1, v1]: [f64; 4], low: f64, high: f64) -> Option<[f64; 4]> {
    let at = |value: f64| t0 + (t1 - t0) * (value - v0) / (v1 - v0);
    let end = |time: f64, value: f64| match value {
        value if value < low => (at(low), low),
        value if value > high => (at(high), high),
        value => (time, value),
    };
    if v0.max(v1) < low || v0.min(v1) > high {
        return None;
    }
    let ((t0, v0), (t1, v1)) = (end(t0, v0), end(t1, v1));
    Some([t0, v0, t1, v1])
}

/// Round numbers of a range, about so many.
fn ticks((low, high): (f64, f64), about: usize) -> Vec<f64> {
    let raw = (high - low) / about.max(1) as f64;
    let power = 10.0_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= raw * 0.7)
        .unwrap_or(power * 10.0);
    if !step.is_finite() || step <= 0.0 {
        return vec![low];
    }
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    let count = (last - first).clamp(0.0, 50.0) as usize;
    (0..=count)
        .map(|index| (first + index as f64) * step)
        .collect()
}

/// A tick as it is written: without digits that are only of floating point.
fn written(tick: f64) -> String {
    let size = tick.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{tick:.3e}");
    }
    let text = format!("{tick:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" | "" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(expression: &str) -> Curve {
        match crate::script::Interpreter::default().evaluate(expression) {
            Ok(crate::script::Found::Curve(curve)) => curve,
            other => panic!("{other:?}"),
        }
    }

    fn picture(expressions: &[&str], options: &Options) -> Picture {
        let named = |text: &&str| ((*text).to_owned(), curve(text));
        let curves: Vec<(String, Curve)> = expressions.iter().map(named).collect();
        Picture::new(&curves, options, 100_000).expect("small")
    }

    #[test]
    fn jumps_have_a_filled_and_an_open_mark() {
        let picture = picture(&["stair(0, 4, 3)"], &Options::default());
        assert_eq!(picture.times, (0.0, 8.0));
        let line = &picture.lines[0];
        assert_eq!(line.closed, [(0.0, 0.0), (4.0, 3.0)]);
        assert_eq!(line.open, [(0.0, 3.0), (4.0, 6.0)]);
        assert_eq!(line.strokes, [[0.0, 3.0, 4.0, 3.0], [4.0, 6.0, 8.0, 6.0]]);
    }

    #[test]
    fn windows_cut() {
        let options = Options {
            times: Some((Rational::from(1), Rational::from(6))),
            values: Some((Rational::from(0), Rational::from(4))),
            ..Options::default()
        };
        let picture = picture(&["affine(1, 0)", "delay(3)"], &options);
        assert_eq!(picture.lines[0].strokes[0], [1.0, 1.0, 4.0, 4.0]);
        assert_eq!(picture.lines[1].above, [(3.0, 6.0)]);
    }

    #[test]
    fn ticks_are_round() {
        let text = |range, about| {
            ticks(range, about)
                .into_iter()
                .map(written)
                .collect::<Vec<_>>()
        };
        assert_eq!(text((0.0, 8.0), 4), ["0", "2", "4", "6", "8"]);
        assert_eq!(text((-0.3, 0.31), 3), ["-0.2", "0", "0.2"]);
        assert_eq!(text((0.0, 3e9), 3), ["0", "1.000e9", "2.000e9", "3.000e9"]);
    }

    #[test]
    fn pictures_show_every_curve() {
        let picture = picture(&["stair(0, 4, 3)", "delay(3) - 1"], &Options::default());
        let text = picture.terminal(60, 12);
        let plain: Vec<String> = text
            .iter()
            .map(|line| line.iter().map(|character| character.character).collect())
            .collect();
        assert!(
            plain.iter().all(|line| line.chars().count() <= 60),
            "{plain:#?}"
        );
        let all = plain.join("\n");
        for part in ["●", "○", "∞", "stair(0, 4, 3)", "delay(3) - 1", "6 ┤", "8"] {
            assert!(all.contains(part), "{part} is missing in\n{all}");
        }
        let svg = picture.svg();
        for part in [
            "<svg",
            "prefers-color-scheme: dark",
            "∞",
            "delay(3) - 1",
            "</svg>",
        ] {
            assert!(svg.contains(part), "{part} is missing in\n{svg}");
        }
    }
}
