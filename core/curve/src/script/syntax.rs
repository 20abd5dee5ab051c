//! What a script says, and the names that the language has.

use super::Place;
use crate::number::Rational;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Curve,
}

/// One line of a script.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Assignment {
        name: String,
        expression: Expression,
        source: String,
    },
    Value(Expression),
    Assertion {
        left: Expression,
        relation: Relation,
        right: Expression,
    },
    Plot(Vec<(PlotArgument, Place)>),
    PrintExpression(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
}

#[derive(Clone, Debug)]
pub(super) enum PlotArgument {
    Curve(String),
    Text(&'static str, Vec<TextPart>),
    Range(&'static str, [Expression; 2]),
}

#[derive(Clone, Debug)]
pub(super) enum TextPart {
    Text(String),
    Number(Expression),
}

#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) node: Node,
    pub(super) kind: Kind,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Number(Rational),
    Infinity,
    Variable(String),
    Zero,
    Epsilon,
    Negation(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Call(Function, Vec<Expression>),
    Sample(String, Box<Expression>, Side),
    Pieces(Pieces),
}

/// Which value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    At,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Minimum,
    Maximum,
    Plus,
    Minus,
    /// Convolution, or multiplication by a number.
    Times,
    MaximalConvolution,
    /// Deconvolution, or division by a number.
    Over,
    MaximalDeconvolution,
    Divide,
    Compose,
}

impl Operator {
    /// How tightly it binds. Between curves minimum and maximum bind most, between numbers least:
    /// so it is in the playgrounds.
    pub(super) fn precedence(self, kind: Kind) -> u8 {
        match (self, kind) {
            (Operator::Minimum, Kind::Curve) => 5,
            (Operator::Maximum, Kind::Curve) => 4,
            (Operator::Plus | Operator::Minus, _) => 2,
            (Operator::Minimum, Kind::Number) => 1,
            (Operator::Maximum, Kind::Number) => 0,
            _ => 3,
        }
    }
}

/// `uaf(…)` or `upp(…)`.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    pub(super) transient: Vec<Part>,
    /// `None` of `uaf`.
    pub(super) periodic: Option<Vec<Part>>,
    pub(super) step: Option<Box<Expression>>,
    pub(super) period: Option<Box<Expression>>,
}

/// A point or a segment as it is written.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) place: Place,
    pub(super) open_left: bool,
    pub(super) from: [Expression; 2],
    /// `None` of a point.
    pub(super) rest: Option<Rest>,
}

#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) slope: Option<Expression>,
    pub(super) to: [Expression; 2],
    pub(super) open_right: bool,
}

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    RateLatency,
    Bucket,
    Affine,
    Step,
    Stair,
    StairAt,
    Delay,
    Constant,
    Periodic,
    PeriodicLower,
    Sporadic,
    TimeDivision,
    TimeDivisionUpper,
    SubadditiveClosure,
    SuperadditiveClosure,
    HorizontalShift,
    VerticalShift,
    LowerInverse,
    UpperInverse,
    UpperClosure,
    LowerClosure,
    NonNegativeUpperClosure,
    LeftContinuous,
    RightContinuous,
    Floor,
    Ceiling,
    HorizontalDeviation,
    VerticalDeviation,
    ZeroDeviation,
}

/// A function with its name, what it takes and gives, and whether only Metes has it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) function: Function,
    pub(super) takes: &'static [Kind],
    pub(super) gives: Kind,
    /// A name of the playgrounds, which no variable may have; others give way to variables.
    pub(super) reserved: bool,
}

const N: Kind = Kind::Number;
const C: Kind = Kind::Curve;

const fn of(
    name: &'static str,
    function: Function,
    takes: &'static [Kind],
    gives: Kind,
    reserved: bool,
) -> Entry {
    Entry {
        name,
        function,
        takes,
        gives,
        reserved,
    }
}

/// Every function.
pub(super) const FUNCTIONS: &[Entry] = &[
    of("ratency", Function::RateLatency, &[N, N], C, true),
    of("bucket", Function::Bucket, &[N, N], C, true),
    of("affine", Function::Affine, &[N, N], C, true),
    of("step", Function::Step, &[N, N], C, true),
    of("stair", Function::Stair, &[N, N, N], C, true),
    of("delay", Function::Delay, &[N], C, true),
    of("star", Function::SubadditiveClosure, &[C], C, true),
    of("hShift", Function::HorizontalShift, &[C, N], C, true),
    of("hshift", Function::HorizontalShift, &[C, N], C, true),
    of("vShift", Function::VerticalShift, &[C, N], C, true),
    of("vshift", Function::VerticalShift, &[C, N], C, true),
    of("inv", Function::LowerInverse, &[C], C, true),
    of("low_inv", Function::LowerInverse, &[C], C, true),
    of("up_inv", Function::UpperInverse, &[C], C, true),
    of("upclosure", Function::UpperClosure, &[C], C, true),
    of(
        "nnupclosure",
        Function::NonNegativeUpperClosure,
        &[C],
        C,
        true,
    ),
    of("left-ext", Function::LeftContinuous, &[C], C, true),
    of("right-ext", Function::RightContinuous, &[C], C, true),
    of("hDev", Function::HorizontalDeviation, &[C, C], N, true),
    of("hdev", Function::HorizontalDeviation, &[C, C], N, true),
    of("vDev", Function::VerticalDeviation, &[C, C], N, true),
    of("vdev", Function::VerticalDeviation, &[C, C], N, true),
    of("zdev", Function::ZeroDeviation, &[C, C], N, false),
    of("constant", Function::Constant, &[N], C, false),
    of("stair_at", Function::StairAt, &[N, N, N], C, false),
    of("periodic", Function::Periodic, &[N, N, N, N], C, false),
    of(
        "periodic_lower",
        Function::PeriodicLower,
        &[N, N, N],
        C,
        false,
    ),
    of("sporadic", Function::Sporadic, &[N, N], C, false),
    of("tdma", Function::TimeDivision, &[N, N, N], C, false),
    of(
        "tdma_upper",
        Function::TimeDivisionUpper,
        &[N, N, N],
        C,
        false,
    ),
    of("superstar", Function::SuperadditiveClosure, &[C], C, false),
    of("lowclosure", Function::LowerClosure, &[C], C, false),
    of("floor", Function::Floor, &[C], C, false),
    of("ceil", Function::Ceiling, &[C], C, false),
];

/// Names that are neither functions nor free.
pub(super) const WORDS: &[&str] = &[
    "zero",
    "epsilon",
    "uaf",
    "upp",
    "period",
    "comp",
    "div",
    "plot",
    "assert",
    "printExpression",
    "inf",
    "infinity",
    "Infinity",
];

/// The function of a name.
pub(super) fn function(name: &str) -> Option<&'static Entry> {
    FUNCTIONS.iter().find(|entry| entry.name == name)
}
