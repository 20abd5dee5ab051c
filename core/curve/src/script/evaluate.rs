//! Computes what a script says.
//!
//! Invariant: an error names the place of the operation that could not be done; numbers stay
//! below [`BITS`], also those of curves, so a script can not exhaust memory by multiplying them.

use std::collections::BTreeMap;

use super::syntax::{
    Expression, Function, Kind, Line, Node, Operator, PlotArgument, Relation, Side, TextPart,
};
use super::{Interpreter, Place, ScriptError, Statement, pieces};
use crate::curve::{Curve, Value};
use crate::error::Error;
use crate::number::{BITS, Rational};
use crate::plan::Plan;

/// What an expression gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A number, or an infinity.
    Number(Value),
    /// A curve.
    Curve(Curve),
}

impl Found {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Found::Number(_) => Kind::Number,
            Found::Curve(_) => Kind::Curve,
        }
    }
}

/// A variable, and what it was assigned.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) found: Found,
    source: String,
}

impl Variable {
    pub(super) fn of(curve: Curve) -> Self {
        Variable {
            source: pieces::written(&curve),
            found: Found::Curve(curve),
        }
    }
}

/// What came of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A variable was assigned.
    Assigned {
        /// Its name.
        name: String,
        /// What it is now.
        found: Found,
    },
    /// An expression was computed.
    Value(Found),
    /// An assertion was checked.
    Assertion(bool),
    /// The expression that a variable was assigned.
    Source(String),
    /// A plot is asked for.
    Plot(Plot),
}

/// A plot that a script asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plot {
    /// The curves with their names.
    pub curves: Vec<(String, Curve)>,
    /// Times to be shown.
    pub times: Option<(Rational, Rational)>,
    /// Values to be shown.
    pub values: Option<(Rational, Rational)>,
    /// Options with texts: main, title, xlab, ylab, out, grid, bg, gui.
    pub texts: BTreeMap<&'static str, String>,
}

/// Computes a statement.
pub(super) fn run(
    interpreter: &mut Interpreter,
    statement: &Statement,
) -> Result<Outcome, ScriptError> {
    match &statement.line {
        Line::Assignment {
            name,
            expression: assigned,
            source,
        } => {
            let found = expression(interpreter, assigned)?;
            let variable = Variable {
                found: found.clone(),
                source: source.clone(),
            };
            interpreter.variables.insert(name.clone(), variable);
            Ok(Outcome::Assigned {
                name: name.clone(),
                found,
            })
        }
        Line::Value(value) => Ok(Outcome::Value(expression(interpreter, value)?)),
        Line::Assertion {
            left,
            relation,
            right,
        } => {
            let (left, right) = (
                expression(interpreter, left)?,
                expression(interpreter, right)?,
            );
            let holds = holds(interpreter, left, *relation, right)
                .map_err(|error| statement.place.error(error.to_string()))?;
            Ok(Outcome::Assertion(holds))
        }
        Line::PrintExpression(name) => Ok(Outcome::Source(
            variable(interpreter, name, statement.place)?.source.clone(),
        )),
        Line::Plot(arguments) => plot(interpreter, arguments).map(Outcome::Plot),
    }
}

fn variable<'a>(
    interpreter: &'a Interpreter,
    name: &str,
    place: Place,
) -> Result<&'a Variable, ScriptError> {
    let variable = interpreter.variables.get(name);
    variable.ok_or_else(|| place.error(format!("`{name}` has not been computed")))
}

/// Computes an expression.
pub(super) fn expression(
    interpreter: &Interpreter,
    expression: &Expression,
) -> Result<Found, ScriptError> {
    let place = expression.place;
    let curve = |result: Result<Curve, Error>| {
        result
            .and_then(Curve::checked)
            .map(Found::Curve)
            .map_err(|error| place.error(error.to_string()))
    };
    match &expression.node {
        Node::Number(number) => Ok(Found::Number(Value::Finite(number.clone()))),
        Node::Infinity => Ok(Found::Number(Value::PositiveInfinity)),
        Node::Zero => Ok(Found::Curve(Curve::zero())),
        Node::Epsilon => Ok(Found::Curve(Curve::constant(Value::PositiveInfinity))),
        Node::Variable(name) => Ok(variable(interpreter, name, place)?.found.clone()),
        Node::Negation(inside) => Ok(match self::expression(interpreter, inside)? {
            Found::Number(number) => Found::Number(negated(number)),
            Found::Curve(curve) => Found::Curve(curve.negated()),
        }),
        Node::Binary(Operator::Times, ..) => product(interpreter, expression),
        Node::Binary(operator, left, right) => {
            let (left, right) = (
                self::expression(interpreter, left)?,
                self::expression(interpreter, right)?,
            );
            binary(interpreter, *operator, left, right, place)
        }
        Node::Sample(name, time, side) => {
            let Found::Curve(of) = &variable(interpreter, name, place)?.found else {
                return Err(place.error(format!("`{name}` is no curve")));
            };
            let time = match number(interpreter, time)? {
                Value::Finite(time) => time,
                infinity => {
                    return Err(place.error(format!("a curve has no value at {infinity}")));
                }
            };
            let value = match side {
                Side::Left => of.limit_before(&time),
                Side::At => of.value(&time),
                Side::Right => of.limit_behind(&time),
            };
            let value = value.ok_or_else(|| {
                place.error(format!(
                    "a curve has no value at {time}: times are 0 or above"
                ))
            })?;
            Ok(Found::Number(bounded(value, place)?))
        }
        Node::Pieces(written) => {
            let number = |expression: &Expression| number(interpreter, expression);
            pieces::curve(written, number).map(Found::Curve)
        }
        Node::Call(function, arguments) => {
            let found = arguments
                .iter()
                .map(|argument| self::expression(interpreter, argument));
            let found: Vec<Found> = found.collect::<Result<_, _>>()?;
            let places = arguments.iter().map(|argument| argument.place).collect();
            let call = Call {
                interpreter,
                place,
                found,
                places,
            };
            match function {
                Function::HorizontalDeviation
                | Function::VerticalDeviation
                | Function::ZeroDeviation => call.deviation(*function),
                _ => call.curve(*function).and_then(curve),
            }
        }
    }
}

/// A product of two or more factors. Of curves alone, more than two, it is the convolution of a chain, in
/// an order that costs little.
fn product(interpreter: &Interpreter, product: &Expression) -> Result<Found, ScriptError> {
    // From the last factor to the first, each with the place of the sign before it.
    let mut signs = Vec::new();
    let mut factors = Vec::new();
    let mut left = product;
    while let Node::Binary(Operator::Times, before, factor) = &left.node {
        signs.push(left.place);
        factors.push(&**factor);
        left = &**before;
    }
    factors.push(left);
    let found = factors.into_iter().rev();
    let found = found.map(|factor| expression(interpreter, factor));
    let found: Vec<Found> = found.collect::<Result<_, _>>()?;
    if let Some(curves) = chain(&found)
        && let Ok(chain) = interpreter.algebra.chain(&curves, &Plan::Automatic)
    {
        return Ok(Found::Curve(chain.curve));
    }
    // One by one, so that an error names the place of what could not be done.
    let mut found = found.into_iter();
    let first = found
        .next()
        .unwrap_or_else(|| unreachable!("a product has factors"));
    let mut signed = signs.into_iter().rev().zip(found);
    signed.try_fold(first, |left, (place, right)| {
        binary(interpreter, Operator::Times, left, right, place)
    })
}

/// More than two curves, if all are.
fn chain(found: &[Found]) -> Option<Vec<Curve>> {
    let curves = found.iter().map(|one| match one {
        Found::Curve(curve) => Some(curve.clone()),
        Found::Number(_) => None,
    });
    curves
        .collect::<Option<Vec<Curve>>>()
        .filter(|curves| curves.len() > 2)
}

/// A number where nothing but a number can stand.
fn number(interpreter: &Interpreter, asked: &Expression) -> Result<Value, ScriptError> {
    match expression(interpreter, asked)? {
        Found::Number(number) => Ok(number),
        Found::Curve(_) => Err(asked
            .place
            .error("this is a curve, a number is wanted".into())),
    }
}

fn negated(value: Value) -> Value {
    match value {
        Value::NegativeInfinity => Value::PositiveInfinity,
        Value::Finite(number) => Value::Finite(&Rational::from(0) - &number),
        Value::PositiveInfinity => Value::NegativeInfinity,
    }
}

fn bounded(value: Value, place: Place) -> Result<Value, ScriptError> {
    match &value {
        Value::Finite(number) if number.bits() > BITS => Err(place.error(format!(
            "the number takes {} bits, more than {BITS}",
            number.bits()
        ))),
        _ => Ok(value),
    }
}

/// An operator between two of any kind.
fn binary(
    interpreter: &Interpreter,
    operator: Operator,
    left: Found,
    right: Found,
    place: Place,
) -> Result<Found, ScriptError> {
    let algebra = &interpreter.algebra;
    let computed = |result: Result<Curve, Error>| {
        result
            .map(Found::Curve)
            .map_err(|error| place.error(error.to_string()))
    };
    match (left, right) {
        (Found::Number(left), Found::Number(right)) => {
            let result = arithmetic(operator, left, right).map_err(|what| place.error(what))?;
            bounded(result, place).map(Found::Number)
        }
        (Found::Curve(left), Found::Curve(right)) => computed(match operator {
            Operator::Minimum => algebra.minimum(&left, &right),
            Operator::Maximum => algebra.maximum(&left, &right),
            Operator::Plus => algebra.sum(&left, &right),
            Operator::Minus => algebra.difference(&left, &right),
            Operator::Times => algebra.convolution(&left, &right),
            Operator::MaximalConvolution => algebra.maximal_convolution(&left, &right),
            Operator::Over => algebra.deconvolution(&left, &right),
            Operator::MaximalDeconvolution => algebra.maximal_deconvolution(&left, &right),
            Operator::Compose => algebra.compose(&left, &right),
            Operator::Divide => {
                return Err(place.error("`div` divides by numbers, and this is a curve".into()));
            }
        }),
        (Found::Curve(curve), Found::Number(number)) => match operator {
            Operator::Times => scaled(&curve, &number, place),
            Operator::Over | Operator::Divide => {
                let one = Value::Finite(Rational::from(1));
                let factor = arithmetic(Operator::Over, one, number);
                scaled(&curve, &factor.map_err(|what| place.error(what))?, place)
            }
            _ => with_constant(operator, place).and_then(|()| {
                let constant = Found::Curve(Curve::constant(number));
                binary(interpreter, operator, Found::Curve(curve), constant, place)
            }),
        },
        (Found::Number(number), Found::Curve(curve)) => match operator {
            Operator::Times => scaled(&curve, &number, place),
            _ => with_constant(operator, place).and_then(|()| {
                let constant = Found::Curve(Curve::constant(number));
                binary(interpreter, operator, constant, Found::Curve(curve), place)
            }),
        },
    }
}

/// Whether a number stands for the curve that has its value everywhere.
fn with_constant(operator: Operator, place: Place) -> Result<(), ScriptError> {
    match operator {
        Operator::Minimum | Operator::Maximum | Operator::Plus | Operator::Minus => Ok(()),
        _ => Err(place.error(
            "this operator takes two curves, and one is a number: `constant(…)` makes a curve of it"
                .into(),
        )),
    }
}

fn scaled(curve: &Curve, by: &Value, place: Place) -> Result<Found, ScriptError> {
    let Value::Finite(by) = by else {
        return Err(place.error(format!("a curve can not be multiplied by {by}")));
    };
    curve
        .scaled(by)
        .map(Found::Curve)
        .map_err(|error| place.error(error.to_string()))
}

fn arithmetic(operator: Operator, left: Value, right: Value) -> Result<Value, String> {
    use Value::Finite;
    let undefined = |sign: &str| Err(format!("{left} {sign} {right} is undefined"));
    let zero = Rational::from(0);
    Ok(match operator {
        Operator::Minimum => left.min(right),
        Operator::Maximum => left.max(right),
        Operator::Plus => match (&left, &right) {
            (Finite(left), Finite(right)) => Finite(left + right),
            (Finite(_), infinity) | (infinity, Finite(_)) => infinity.clone(),
            (one, other) if one == other => left,
            _ => return undefined("+"),
        },
        Operator::Minus => match (&left, &right) {
            (one, other) if one == other && !matches!(one, Finite(_)) => return undefined("-"),
            _ => return arithmetic(Operator::Plus, left, negated(right)),
        },
        Operator::Times => match (&left, &right) {
            (Finite(left), Finite(right)) => Finite(left * right),
            (Finite(number), infinity) | (infinity, Finite(number)) => match number.cmp(&zero) {
                std::cmp::Ordering::Less => negated(infinity.clone()),
                std::cmp::Ordering::Equal => return undefined("*"),
                std::cmp::Ordering::Greater => infinity.clone(),
            },
            (one, other) if one == other => Value::PositiveInfinity,
            _ => Value::NegativeInfinity,
        },
        Operator::Over | Operator::Divide => match (&left, &right) {
            (Finite(left), Finite(right)) => match left.divided_by(right) {
                Some(quotient) => Finite(quotient),
                None => return Err("a division by zero".into()),
            },
            (Finite(_), _) => Finite(zero),
            (infinity, Finite(divisor)) if *divisor > zero => infinity.clone(),
            (infinity, Finite(divisor)) if *divisor < zero => negated(infinity.clone()),
            _ => return undefined("/"),
        },
        Operator::MaximalConvolution | Operator::MaximalDeconvolution | Operator::Compose => {
            return Err("this operator takes curves, and both are numbers".into());
        }
    })
}

/// A function, with what it is given.
struct Call<'a> {
    interpreter: &'a Interpreter,
    place: Place,
    found: Vec<Found>,
    places: Vec<Place>,
}

impl Call<'_> {
    /// An argument as a curve; a number stands for the curve that has its value everywhere.
    fn argument(&self, index: usize) -> Curve {
        match &self.found[index] {
            Found::Curve(curve) => curve.clone(),
            Found::Number(number) => Curve::constant(number.clone()),
        }
    }

    fn value(&self, index: usize) -> Result<Value, ScriptError> {
        match &self.found[index] {
            Found::Number(number) => Ok(number.clone()),
            Found::Curve(_) => {
                Err(self.places[index].error("this is a curve, a number is wanted".into()))
            }
        }
    }

    fn finite(&self, index: usize) -> Result<Rational, ScriptError> {
        match self.value(index)? {
            Value::Finite(number) => Ok(number),
            infinity => {
                Err(self.places[index]
                    .error(format!("this is {infinity}, a finite number is wanted")))
            }
        }
    }

    /// A call that gives a curve.
    fn curve(&self, function: Function) -> Result<Result<Curve, Error>, ScriptError> {
        let algebra = &self.interpreter.algebra;
        let number = |index| self.finite(index);
        let f = || self.argument(0);
        Ok(match function {
            Function::RateLatency => Curve::rate_latency(&number(0)?, &number(1)?),
            Function::Bucket => Curve::token_bucket(&number(0)?, &number(1)?),
            Function::Affine => Ok(Curve::affine(&number(0)?, &number(1)?)),
            Function::Step => Curve::one_step(&number(0)?, &number(1)?),
            Function::Stair => Curve::staircase(&number(0)?, &number(1)?, &number(2)?),
            Function::StairAt => Curve::staircase_at(&number(0)?, &number(1)?, &number(2)?),
            // A bound on a delay may be that there is none.
            Function::Delay => match self.value(0)? {
                Value::PositiveInfinity => Ok(Curve::zero()),
                _ => Curve::delay(&number(0)?),
            },
            Function::Constant => Ok(Curve::constant(self.value(0)?)),
            Function::Periodic => {
                algebra.arrivals_at_most(&number(0)?, &number(1)?, &number(2)?, &number(3)?)
            }
            Function::PeriodicLower => {
                Curve::arrivals_at_least(&number(0)?, &number(1)?, &number(2)?)
            }
            Function::Sporadic => Curve::sporadic(&number(0)?, &number(1)?),
            Function::TimeDivision => Curve::time_division(&number(0)?, &number(1)?, &number(2)?),
            Function::TimeDivisionUpper => {
                Curve::time_division_at_most(&number(0)?, &number(1)?, &number(2)?)
            }
            Function::SubadditiveClosure => algebra.subadditive_closure(&f()),
            Function::SuperadditiveClosure => algebra.superadditive_closure(&f()),
            Function::HorizontalShift => {
                let by = number(1)?;
                match by < Rational::from(0) {
                    true => algebra.advanced(&f(), &(&Rational::from(0) - &by)),
                    false => f().delayed(&by),
                }
            }
            Function::VerticalShift => Ok(f().raised(&number(1)?)),
            Function::LowerInverse => algebra.lower_pseudo_inverse(&f()),
            Function::UpperInverse => algebra.upper_pseudo_inverse(&f()),
            Function::UpperClosure => algebra.upper_nondecreasing_closure(&f()),
            Function::LowerClosure => algebra.lower_nondecreasing_closure(&f()),
            Function::NonNegativeUpperClosure => algebra
                .maximum(&f(), &Curve::zero())
                .and_then(|positive| algebra.upper_nondecreasing_closure(&positive)),
            Function::LeftContinuous => Ok(f().left_continuous()),
            Function::RightContinuous => Ok(f().right_continuous()),
            Function::Floor => algebra.floor(&f()),
            Function::Ceiling => algebra.ceiling(&f()),
            Function::HorizontalDeviation
            | Function::VerticalDeviation
            | Function::ZeroDeviation => {
                return Err(self.place.error("this gives a number".into()));
            }
        })
    }

    /// A call that gives a number.
    fn deviation(&self, function: Function) -> Result<Found, ScriptError> {
        let algebra = &self.interpreter.algebra;
        let (f, g) = (self.argument(0), self.argument(1));
        let value = match function {
            Function::HorizontalDeviation => algebra
                .horizontal_deviation(&f, &g)
                .map(|found| found.value),
            Function::VerticalDeviation => {
                algebra.vertical_deviation(&f, &g).map(|found| found.value)
            }
            _ => algebra
                .z_deviation(&f, &g)
                .map(|time| time.map_or(Value::PositiveInfinity, Value::Finite)),
        };
        value
            .map(Found::Number)
            .map_err(|error| self.place.error(error.to_string()))
    }
}

/// Whether a relation holds, of curves at every time.
fn holds(
    interpreter: &Interpreter,
    left: Found,
    relation: Relation,
    right: Found,
) -> Result<bool, Error> {
    if let (Found::Number(left), Found::Number(right)) = (&left, &right) {
        return Ok(match relation {
            Relation::Equal => left == right,
            Relation::Unequal => left != right,
            Relation::Below => left < right,
            Relation::AtMost => left <= right,
            Relation::Above => left > right,
            Relation::AtLeast => left >= right,
        });
    }
    let curve = |found: Found| match found {
        Found::Curve(curve) => curve,
        Found::Number(number) => Curve::constant(number),
    };
    let (left, right) = (curve(left), curve(right));
    let algebra = &interpreter.algebra;
    match relation {
        Relation::Equal => Ok(left == right),
        Relation::Unequal => Ok(left != right),
        Relation::AtMost => algebra.is_nowhere_above(&left, &right),
        Relation::AtLeast => algebra.is_nowhere_above(&right, &left),
        Relation::Below => below(interpreter, &left, &right),
        Relation::Above => below(interpreter, &right, &left),
    }
}

/// Whether f is below g at every time.
fn below(interpreter: &Interpreter, f: &Curve, g: &Curve) -> Result<bool, Error> {
    if !interpreter.algebra.is_nowhere_above(f, g)? {
        return Ok(false);
    }
    match interpreter.algebra.difference(g, f) {
        Ok(distance) => Ok(!distance.attains(&Value::Finite(Rational::from(0)))),
        // They are equal where both are the same infinity.
        Err(Error::Undefined) => Ok(false),
        Err(error) => Err(error),
    }
}

fn plot(
    interpreter: &Interpreter,
    arguments: &[(PlotArgument, Place)],
) -> Result<Plot, ScriptError> {
    let mut plot = Plot::default();
    for (argument, place) in arguments {
        match argument {
            PlotArgument::Curve(name) => match &variable(interpreter, name, *place)?.found {
                Found::Curve(curve) => plot.curves.push((name.clone(), curve.clone())),
                Found::Number(_) => {
                    return Err(place.error(format!("`{name}` is a number, a curve is wanted")));
                }
            },
            PlotArgument::Text(option, parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Text(part) => text += part,
                        TextPart::Number(part) => {
                            text += &number(interpreter, part)?.to_string();
                        }
                    }
                }
                plot.texts.insert(option, text);
            }
            PlotArgument::Range(option, [from, to]) => {
                let range = (number(interpreter, from)?, number(interpreter, to)?);
                let (Value::Finite(low), Value::Finite(high)) = range else {
                    return Err(place.error(format!("`{option}` is infinite")));
                };
                if low >= high {
                    return Err(place.error(format!("`{option}` goes from {low} to {high}")));
                }
                match *option {
                    "xlim" => plot.times = Some((low, high)),
                    _ => plot.values = Some((low, high)),
                }
            }
        }
    }
    Ok(plot)
}
