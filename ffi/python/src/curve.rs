//! Curves for Python: numbers are exact, as `fractions.Fraction`, and floats where floats are given.
//!
//! Invariant: a float that is given is taken as the fraction that it is; only what is asked for
//! floats is rounded, once, at the end.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use metes_curve::plan::Plan;
use metes_curve::plot::{Options, Picture};
use metes_curve::script::{self, Found, Interpreter};
use metes_curve::{Algebra, Deviation, Element, Error, LIMIT, Rational, Value};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyFloat, PyString};

/// An exact function of time that repeats itself in the end: `Curve("stair(0, 4, 3)")`.
///
/// f + g, f - g, f & g (minimum), f | g (maximum), f * g and f / g ((min,+) convolution and
/// deconvolution), f(g) (composition); numbers add, multiply and divide. f == g if they are the
/// same function, f <= g if f is nowhere above g.
#[pyclass(frozen, module = "metes.curve")]
#[derive(Clone)]
pub(crate) struct Curve(metes_curve::Curve);

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn made(result: Result<metes_curve::Curve, Error>) -> PyResult<Curve> {
    result.map(Curve).map_err(refused)
}

fn algebra(limit: u64) -> Algebra {
    Algebra {
        limit,
        ..Algebra::default()
    }
}

/// A finite number of Python: int, Fraction, float, or text such as "22/7".
struct Exact(Rational);

impl<'py> FromPyObject<'_, 'py> for Exact {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return text.to_str()?.parse().map(Exact).map_err(refused);
        }
        if let Ok(float) = object.cast::<PyFloat>() {
            let number = Rational::from_f64(float.extract()?);
            return number
                .map(Exact)
                .ok_or_else(|| refused(format!("{:?} is no finite number", &*float)));
        }
        // Whole numbers of every kind, and fractions.
        let parts = match object.getattr("numerator") {
            Ok(numerator) => Ok((numerator, object.getattr("denominator")?)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is no number: give an int, a Fraction, a float, or text such as \"22/7\"",
                object.repr()?
            ))),
        };
        let (numerator, denominator) = parts?;
        let text = format!("{}/{}", numerator.str()?, denominator.str()?);
        text.parse().map(Exact).map_err(refused)
    }
}

/// A number, or an infinity as a float.
fn any_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(float) = object.cast::<PyFloat>() {
        match float.extract::<f64>()? {
            f64::INFINITY => return Ok(Value::PositiveInfinity),
            f64::NEG_INFINITY => return Ok(Value::NegativeInfinity),
            _ => {}
        }
    }
    Ok(Value::Finite(object.extract::<Exact>()?.0))
}

/// A fraction of Python.
fn fraction<'py>(py: Python<'py>, number: &Rational) -> PyResult<Bound<'py, PyAny>> {
    py.import("fractions")?
        .getattr("Fraction")?
        .call1((number.to_string(),))
}

/// A fraction, or an infinite float.
fn shown<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Finite(number) => fraction(py, number),
        infinity => Ok(PyFloat::new(py, float(infinity)).into_any()),
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::NegativeInfinity => f64::NEG_INFINITY,
        Value::Finite(number) => number.to_f64(),
        Value::PositiveInfinity => f64::INFINITY,
    }
}

/// Values at times that are floats.
fn floats(curve: &metes_curve::Curve, times: &[f64]) -> PyResult<Vec<f64>> {
    let exact: Option<Vec<Rational>> = times.iter().map(|time| Rational::from_f64(*time)).collect();
    let exact =
        exact.ok_or_else(|| refused("a curve has no value at a time that is not finite"))?;
    let value = |(value, time): (Option<Value>, &f64)| {
        let value = value.ok_or_else(|| no_value(time))?;
        Ok(float(&value))
    };
    curve
        .values(&exact)
        .into_iter()
        .zip(times)
        .map(value)
        .collect()
}

fn no_value(time: impl std::fmt::Display) -> PyErr {
    refused(format!(
        "a curve has no value at {time}: times are 0 or above"
    ))
}

/// The other operand of an operator: a curve, or a number.
enum Operand {
    Curve(metes_curve::Curve),
    Number(Value),
}

impl Operand {
    /// `None` of what is neither.
    fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(curve) = object.cast::<Curve>() {
            return Some(Operand::Curve(curve.get().0.clone()));
        }
        let text = object.is_instance_of::<PyString>();
        let number = (!text).then(|| any_value(object).ok()).flatten();
        number.map(Operand::Number)
    }

    fn curve(self) -> metes_curve::Curve {
        match self {
            Operand::Curve(curve) => curve,
            Operand::Number(number) => metes_curve::Curve::constant(number),
        }
    }
}

fn operand(object: &Bound<'_, PyAny>) -> PyResult<Operand> {
    Operand::of(object).ok_or_else(|| {
        let kind = object.get_type().to_string();
        PyTypeError::new_err(format!("{kind} is neither a curve nor a number"))
    })
}

fn scaled(curve: &metes_curve::Curve, by: &Value) -> PyResult<Curve> {
    match by {
        Value::Finite(by) => made(curve.scaled(by)),
        _ => Err(refused("a curve can not be multiplied by an infinity")),
    }
}

/// Named operations on one curve and on two.
macro_rules! operations {
    (unary { $($(#[$doc1:meta])* $one:ident,)* } binary { $($(#[$doc2:meta])* $two:ident,)* }) => {
        #[pymethods]
        impl Curve {
            $($(#[$doc1])*
            #[pyo3(signature = (*, limit=LIMIT))]
            fn $one(&self, py: Python<'_>, limit: u64) -> PyResult<Curve> {
                made(py.detach(|| algebra(limit).$one(&self.0)))
            })*

            $($(#[$doc2])*
            #[pyo3(signature = (other, *, limit=LIMIT))]
            fn $two(&self, py: Python<'_>, other: PyRef<'_, Curve>, limit: u64) -> PyResult<Curve> {
                let other = &other.0;
                made(py.detach(|| algebra(limit).$two(&self.0, other)))
            })*
        }
    };
}

operations! {
    unary {
    /// The greatest sub-additive curve below it.
    subadditive_closure,
    /// The least super-additive curve above it.
    superadditive_closure,
    /// The least curve above it that never falls.
    upper_nondecreasing_closure,
    /// The greatest curve below it that never falls.
    lower_nondecreasing_closure,
    /// The first time at which each value is reached.
    lower_pseudo_inverse,
    /// The last time at which each value is not exceeded.
    upper_pseudo_inverse,
    /// Each value rounded down.
    floor,
    /// Each value rounded up.
    ceiling,
    }
    binary {
    /// The lower of both at every time.
    minimum,
    /// The higher of both at every time.
    maximum,
    /// The (min,+) convolution.
    convolution,
    /// The (min,+) deconvolution.
    deconvolution,
    /// The (max,+) convolution.
    maximal_convolution,
    /// The (max,+) deconvolution.
    maximal_deconvolution,
    /// self(other(t)).
    compose,
    }
}

/// Named constructors from finite numbers.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident($($parameter:ident),*);)*) => {
        #[pymethods]
        impl Curve {
            $($(#[$doc])*
            #[staticmethod]
            fn $name($($parameter: Exact),*) -> PyResult<Curve> {
                made(metes_curve::Curve::$name($(&$parameter.0),*))
            })*
        }
    };
}

constructors! {
    /// 0 at 0, then burst + rate * t.
    token_bucket(rate, burst);
    /// 0 up to the latency, then rate * (t - latency).
    rate_latency(rate, latency);
    /// 0 up to a time, that included, then infinite.
    delay(time);
    /// 0 up to a time, that included, then a height.
    one_step(time, height);
    /// Left-continuous steps behind offset, offset + length, and so on.
    staircase(offset, length, height);
    /// Right-continuous steps at offset, offset + length, and so on.
    staircase_at(offset, length, height);
    /// Upper arrivals of a periodic stream with jitter; 0 is no minimum distance.
    arrivals_at_most(period, jitter, distance, size);
    /// Lower arrivals of a periodic stream with jitter.
    arrivals_at_least(period, jitter, size);
    /// Arrivals at least a distance apart.
    sporadic(distance, size);
    /// Least service of a slot of time division.
    time_division(slot, cycle, bandwidth);
    /// Most service of a slot of time division.
    time_division_at_most(slot, cycle, bandwidth);
}

#[pymethods]
impl Curve {
    /// A curve of an expression of the script language.
    #[new]
    fn new(expression: &str) -> PyResult<Self> {
        match Interpreter::new(Algebra::default())
            .evaluate(expression)
            .map_err(refused)?
        {
            Found::Curve(curve) => Ok(Curve(curve)),
            Found::Number(number) => Err(refused(format!(
                "`{expression}` is the number {number}: `constant({number})` is a curve"
            ))),
        }
    }

    /// 0 at all times.
    #[staticmethod]
    fn zero() -> Self {
        Curve(metes_curve::Curve::zero())
    }

    /// One value at all times, which may be infinite.
    #[staticmethod]
    fn constant(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Curve(metes_curve::Curve::constant(any_value(value)?)))
    }

    /// offset + rate * t.
    #[staticmethod]
    fn affine(rate: Exact, offset: Exact) -> Self {
        Curve(metes_curve::Curve::affine(&rate.0, &offset.0))
    }

    /// The continuous curve through points (time, value), with a slope behind the last.
    #[staticmethod]
    fn through(points: Vec<(Exact, Exact)>, slope: Exact) -> PyResult<Self> {
        let points: Vec<(Rational, Rational)> = points
            .into_iter()
            .map(|(time, value)| (time.0, value.0))
            .collect();
        made(metes_curve::Curve::through(&points, &slope.0))
    }

    /// The curve with these elements up to transient + period: (time, value) is a point,
    /// (start, end, value, slope) an open segment behind one.
    #[staticmethod]
    fn of_elements(
        elements: Vec<Bound<'_, PyAny>>,
        transient: Exact,
        period: Exact,
        step: Exact,
    ) -> PyResult<Self> {
        let elements: Vec<Element> = elements.iter().map(element).collect::<PyResult<_>>()?;
        made(metes_curve::Curve::new(
            &elements,
            &transient.0,
            &period.0,
            &step.0,
        ))
    }

    /// Reads the JSON of `to_json` and of the command.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        metes_curve::Curve::from_json(text)
            .map(Curve)
            .map_err(refused)
    }

    /// The curve as one line of JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// From here on it repeats itself.
    #[getter]
    fn transient<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, &self.0.transient())
    }

    /// How often it repeats itself.
    #[getter]
    fn period<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, &self.0.period())
    }

    /// How much it rises each time.
    #[getter]
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, &self.0.step())
    }

    /// Whether it is affine from some time on.
    #[getter]
    fn is_ultimately_affine(&self) -> bool {
        self.0.is_ultimately_affine()
    }

    /// Points (time, value) and segments (start, end, value, slope) in turn.
    #[getter]
    fn elements<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let shown_element = |element: &Element| match element {
            Element::Point { time, value } => (fraction(py, time)?, shown(py, value)?)
                .into_pyobject(py)
                .map(Bound::into_any),
            Element::Segment {
                start,
                end,
                value,
                slope,
            } => (
                fraction(py, start)?,
                fraction(py, end)?,
                shown(py, value)?,
                fraction(py, slope)?,
            )
                .into_pyobject(py)
                .map(Bound::into_any),
        };
        self.0.elements().iter().map(shown_element).collect()
    }

    /// The value at a time: a Fraction for an int, a Fraction or text, a float for a float, an
    /// array of floats for an array or a sequence; for a curve the composition.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        time: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(inner) = time.cast::<Curve>() {
            let composed = made(self.0.compose(&inner.get().0))?;
            return Ok(Bound::new(py, composed)?.into_any());
        }
        if let Ok(time) = time.cast::<PyFloat>() {
            let values = floats(&self.0, &[time.extract()?])?;
            return Ok(PyFloat::new(py, values[0]).into_any());
        }
        if let Ok(Exact(time)) = time.extract::<Exact>() {
            let value = self.0.value(&time).ok_or_else(|| no_value(&time))?;
            return shown(py, &value);
        }
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (time, "float64"))?;
        let flat: Vec<f64> = array
            .call_method0("ravel")?
            .call_method0("tolist")?
            .extract()?;
        let values = floats(&self.0, &flat)?;
        numpy
            .call_method1("array", (values, "float64"))?
            .call_method1("reshape", (array.getattr("shape")?,))
    }

    /// The limit from the left; at 0 the value.
    fn limit_before<'py>(&self, py: Python<'py>, time: Exact) -> PyResult<Bound<'py, PyAny>> {
        let value = self.0.limit_before(&time.0);
        shown(py, &value.ok_or_else(|| no_value(&time.0))?)
    }

    /// The limit from the right.
    fn limit_behind<'py>(&self, py: Python<'py>, time: Exact) -> PyResult<Bound<'py, PyAny>> {
        let value = self.0.limit_behind(&time.0);
        shown(py, &value.ok_or_else(|| no_value(&time.0))?)
    }

    /// The curve of its limits from the left.
    fn left_continuous(&self) -> Self {
        Curve(self.0.left_continuous())
    }

    /// The curve of its limits from the right.
    fn right_continuous(&self) -> Self {
        Curve(self.0.right_continuous())
    }

    /// The curve later by a time, and 0 before it.
    fn delayed(&self, by: Exact) -> PyResult<Self> {
        made(self.0.delayed(&by.0))
    }

    /// f(t + by).
    fn advanced(&self, by: Exact) -> PyResult<Self> {
        made(self.0.advanced(&by.0))
    }

    /// f(t / by).
    fn stretched(&self, by: Exact) -> PyResult<Self> {
        made(self.0.stretched(&by.0))
    }

    /// The greatest distance in time to another curve: the delay.
    #[pyo3(signature = (other, *, limit=LIMIT))]
    fn horizontal_deviation<'py>(
        &self,
        py: Python<'py>,
        other: PyRef<'_, Curve>,
        limit: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let other = &other.0;
        let found = py.detach(|| algebra(limit).horizontal_deviation(&self.0, other));
        let Deviation { value, .. } = found.map_err(refused)?;
        shown(py, &value)
    }

    /// The greatest distance in value to another curve: the backlog.
    #[pyo3(signature = (other, *, limit=LIMIT))]
    fn vertical_deviation<'py>(
        &self,
        py: Python<'py>,
        other: PyRef<'_, Curve>,
        limit: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let other = &other.0;
        let found = py.detach(|| algebra(limit).vertical_deviation(&self.0, other));
        let Deviation { value, .. } = found.map_err(refused)?;
        shown(py, &value)
    }

    /// The first time at which the convolution of both is 0 or above; infinite if there is none.
    #[pyo3(signature = (other, *, limit=LIMIT))]
    fn z_deviation<'py>(
        &self,
        py: Python<'py>,
        other: PyRef<'_, Curve>,
        limit: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let other = &other.0;
        let found = py.detach(|| algebra(limit).z_deviation(&self.0, other));
        let time = found.map_err(refused)?;
        shown(py, &time.map_or(Value::PositiveInfinity, Value::Finite))
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(self.0.sum(&operand(other)?.curve()))
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__add__(other)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(self.0.difference(&operand(other)?.curve()))
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(operand(other)?.curve().difference(&self.0))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(self.0.minimum(&operand(other)?.curve()))
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__and__(other)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        made(self.0.maximum(&operand(other)?.curve()))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__or__(other)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        match operand(other)? {
            Operand::Curve(other) => made(self.0.convolution(&other)),
            Operand::Number(by) => scaled(&self.0, &by),
        }
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__mul__(other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        match operand(other)? {
            Operand::Curve(other) => made(self.0.deconvolution(&other)),
            Operand::Number(Value::Finite(by)) => {
                let factor = Rational::from(1).divided_by(&by);
                let factor = factor.ok_or_else(|| {
                    pyo3::exceptions::PyZeroDivisionError::new_err("a curve is divided by zero")
                })?;
                scaled(&self.0, &Value::Finite(factor))
            }
            Operand::Number(_) => Err(refused("a curve can not be divided by an infinity")),
        }
    }

    fn __neg__(&self) -> Self {
        Curve(self.0.negated())
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        compare: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Curve>() else {
            return Ok(py.NotImplemented());
        };
        let other = &other.get().0;
        let holds = match compare {
            CompareOp::Eq => self.0 == *other,
            CompareOp::Ne => self.0 != *other,
            CompareOp::Le => self.0.is_nowhere_above(other).map_err(refused)?,
            CompareOp::Ge => other.is_nowhere_above(&self.0).map_err(refused)?,
            CompareOp::Lt | CompareOp::Gt => return Ok(py.NotImplemented()),
        };
        Ok(holds.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        script::written(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("Curve('{}')", script::written(&self.0))
    }

    /// Curves can be sent to other processes.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let read = slf.getattr("from_json")?;
        Ok((read, (slf.get().0.to_json(),)))
    }

    /// What a notebook shows.
    fn _repr_svg_(&self) -> PyResult<String> {
        let curves = [(String::new(), self.0.clone())];
        let picture = Picture::new(&curves, &Options::default(), LIMIT).map_err(refused)?;
        Ok(picture.svg())
    }
}

fn element(object: &Bound<'_, PyAny>) -> PyResult<Element> {
    let exact = |index: usize| {
        object
            .get_item(index)?
            .extract::<Exact>()
            .map(|exact| exact.0)
    };
    match object.len()? {
        2 => Ok(Element::Point {
            time: exact(0)?,
            value: any_value(&object.get_item(1)?)?,
        }),
        4 => Ok(Element::Segment {
            start: exact(0)?,
            end: exact(1)?,
            value: any_value(&object.get_item(2)?)?,
            slope: exact(3)?,
        }),
        count => Err(refused(format!(
            "an element is (time, value) or (start, end, value, slope), and this has {count} numbers"
        ))),
    }
}

/// Computes an expression of the script language, with curves by name: a Curve, a Fraction, or an
/// infinite float.
#[pyfunction]
#[pyo3(signature = (expression, *, limit=LIMIT, **curves))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    expression: &str,
    limit: u64,
    curves: Option<std::collections::BTreeMap<String, Py<Curve>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut interpreter = Interpreter::new(algebra(limit));
    for (name, curve) in curves.unwrap_or_default() {
        interpreter.assign(&name, curve.get().0.clone());
    }
    match interpreter.evaluate(expression).map_err(refused)? {
        Found::Number(number) => shown(py, &number),
        Found::Curve(curve) => Ok(Bound::new(py, Curve(curve))?.into_any()),
    }
}

/// Convolves any number of curves, in the order that costs least or by another plan.
#[pyfunction]
#[pyo3(signature = (curves, plan="automatic", *, limit=LIMIT))]
pub(crate) fn chain(
    py: Python<'_>,
    curves: Vec<PyRef<'_, Curve>>,
    plan: &str,
    limit: u64,
) -> PyResult<Curve> {
    let plan: Plan = plan.parse().map_err(refused)?;
    let curves: Vec<metes_curve::Curve> = curves.iter().map(|curve| curve.0.clone()).collect();
    let chain = py.detach(|| algebra(limit).chain(&curves, &plan));
    chain.map(|chain| Curve(chain.curve)).map_err(refused)
}
