//! From tokens to lines.
//!
//! Variables are known to be numbers or curves while they are read, because operators bind
//! differently between numbers and between curves.
//!
//! Invariant: neither nesting nor the length of an expression can exhaust the stack.

use std::collections::BTreeMap;

use super::syntax::{
    Expression, Kind, Line, Node, Operator, Part, Pieces, PlotArgument, Relation, Rest, Side,
    TextPart, WORDS, function,
};
use super::token::{Token, tokens};
use super::{Place, ScriptError};

/// How deep expressions may be nested.
const DEPTH: usize = 64;
/// How many operators one statement may have.
const OPERATORS: usize = 1_000;

/// What variables are.
pub(super) type Kinds = BTreeMap<String, Kind>;

/// Reads a script; `kinds` are the variables that there are already.
pub(super) fn parse(text: &str, kinds: &mut Kinds) -> Result<Vec<(Line, Place)>, ScriptError> {
    let mut parser = Parser {
        lines: text.lines().collect(),
        tokens: tokens(text)?,
        next: 0,
        kinds,
        depth: 0,
        operators: 0,
    };
    let mut lines = Vec::new();
    loop {
        while parser.takes_token(&Token::Line) {}
        if *parser.token() == Token::End {
            return Ok(lines);
        }
        let place = parser.place();
        parser.operators = 0;
        let line = parser.line()?;
        parser.ends()?;
        if let Line::Assignment {
            name, expression, ..
        } = &line
        {
            parser.kinds.insert(name.clone(), expression.kind);
        }
        lines.push((line, place));
    }
}

/// Reads one expression, of one line.
pub(super) fn expression(text: &str, kinds: &mut Kinds) -> Result<Expression, ScriptError> {
    let lines = parse(text, kinds)?;
    match <[(Line, Place); 1]>::try_from(lines) {
        Ok([(Line::Value(expression), _)]) => Ok(expression),
        _ => Err(Place { line: 1, column: 1 }
            .error("expected one expression, such as `stair(0, 4, 1) * ratency(2, 3)`".into())),
    }
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    tokens: Vec<(Token, Place)>,
    next: usize,
    kinds: &'a mut Kinds,
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    fn at(&self, ahead: usize) -> &(Token, Place) {
        // The last token is the end, and stays so.
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + ahead).min(last)]
    }

    fn token(&self) -> &Token {
        &self.at(0).0
    }

    fn place(&self) -> Place {
        self.at(0).1
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(found) if *found == sign)
    }

    fn takes_token(&mut self, token: &Token) -> bool {
        let is = self.token() == token;
        self.next += usize::from(is);
        is
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.next += usize::from(is);
        is
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = matches!(self.token(), Token::Name(name) if name == word);
        self.next += usize::from(is);
        is
    }

    fn expected<T>(&self, what: &str) -> Result<T, ScriptError> {
        Err(self
            .place()
            .error(format!("expected {what}, found {}", self.token().shown())))
    }

    fn must(&mut self, sign: &str) -> Result<(), ScriptError> {
        match self.takes(sign) {
            true => Ok(()),
            false => self.expected(&format!("`{sign}`")),
        }
    }

    fn ends(&self) -> Result<(), ScriptError> {
        match self.token() {
            Token::Line | Token::End => Ok(()),
            _ => self.expected("an operator or the end of the line"),
        }
    }

    fn name(&mut self, what: &str) -> Result<String, ScriptError> {
        match self.token().clone() {
            Token::Name(name) => {
                self.next += 1;
                Ok(name)
            }
            _ => self.expected(what),
        }
    }

    fn line(&mut self) -> Result<Line, ScriptError> {
        let (token, place) = self.at(0).clone();
        let Token::Name(name) = token else {
            return Ok(Line::Value(self.expression()?));
        };
        match &self.at(1).0 {
            Token::Sign(":=") => self.assignment(name, place),
            Token::Sign("(") if name == "assert" => self.assertion(),
            Token::Sign("(") if name == "plot" => self.plot(),
            Token::Sign("(") if name == "printExpression" => {
                self.next += 2;
                let name = self.variable(None)?;
                self.must(")")?;
                Ok(Line::PrintExpression(name))
            }
            _ => Ok(Line::Value(self.expression()?)),
        }
    }

    fn assignment(&mut self, name: String, place: Place) -> Result<Line, ScriptError> {
        if WORDS.contains(&name.as_str()) || function(&name).is_some_and(|entry| entry.reserved) {
            return Err(place.error(format!(
                "`{name}` is a word of the language: choose another name for the variable"
            )));
        }
        self.next += 2;
        let from = self.place();
        let expression = self.expression()?;
        let to = self.place();
        Ok(Line::Assignment {
            name,
            expression,
            source: self.source(from, to),
        })
    }

    /// The text between two places of one line.
    fn source(&self, from: Place, to: Place) -> String {
        let line = self.lines.get(from.line - 1).copied().unwrap_or_default();
        let characters = line.chars().skip(from.column - 1);
        let text: String = match from.line == to.line {
            true => characters.take(to.column - from.column).collect(),
            false => characters.collect(),
        };
        text.trim().to_owned()
    }

    fn assertion(&mut self) -> Result<Line, ScriptError> {
        self.next += 2;
        let left = self.expression()?;
        let relations = [
            ("=", Relation::Equal),
            ("!=", Relation::Unequal),
            ("<", Relation::Below),
            ("<=", Relation::AtMost),
            (">", Relation::Above),
            (">=", Relation::AtLeast),
        ];
        let Some((_, relation)) = relations.iter().find(|(sign, _)| self.is(sign)) else {
            return self.expected("an operator, or one of =, !=, <, <=, >, >=");
        };
        self.next += 1;
        let right = self.expression()?;
        self.must(")")?;
        Ok(Line::Assertion {
            left,
            relation: *relation,
            right,
        })
    }

    fn plot(&mut self) -> Result<Line, ScriptError> {
        self.next += 2;
        let mut arguments = Vec::new();
        loop {
            let place = self.place();
            arguments.push((self.plot_argument()?, place));
            if !self.takes(",") {
                break;
            }
        }
        self.must(")")?;
        Ok(Line::Plot(arguments))
    }

    fn plot_argument(&mut self) -> Result<PlotArgument, ScriptError> {
        const TEXTS: &[&str] = &["main", "title", "xlab", "ylab", "out", "grid", "bg", "gui"];
        const RANGES: &[&str] = &["xlim", "ylim"];
        let option = match (self.token(), &self.at(1).0) {
            (Token::Name(name), Token::Sign("=")) => name.clone(),
            _ => {
                let name = self.variable(Some(Kind::Curve))?;
                return Ok(PlotArgument::Curve(name));
            }
        };
        let known = |names: &[&'static str]| names.iter().copied().find(|name| *name == option);
        if let Some(range) = known(RANGES) {
            self.next += 2;
            self.must("[")?;
            let from = self.expression()?;
            self.must(",")?;
            let to = self.expression()?;
            self.must("]")?;
            return Ok(PlotArgument::Range(range, [from, to]));
        }
        let Some(text) = known(TEXTS) else {
            return self.expected(
                "a curve or one of main, title, xlab, ylab, xlim, ylim, out, grid, bg, gui",
            );
        };
        self.next += 2;
        let mut parts = Vec::new();
        loop {
            match self.token().clone() {
                Token::Text(text) => {
                    self.next += 1;
                    parts.push(TextPart::Text(text));
                }
                _ => parts.push(TextPart::Number(self.literal()?)),
            }
            if !self.takes("+") {
                return Ok(PlotArgument::Text(text, parts));
            }
        }
    }

    /// A variable that there is, of a kind if one is given.
    fn variable(&mut self, kind: Option<Kind>) -> Result<String, ScriptError> {
        let place = self.place();
        let name = self.name("the name of a variable")?;
        match (self.kinds.get(&name), kind) {
            (None, _) => Err(unknown(&name, place)),
            (Some(Kind::Number), Some(Kind::Curve)) => {
                Err(place.error(format!("`{name}` is a number, a curve is wanted")))
            }
            (Some(Kind::Curve), Some(Kind::Number)) => {
                Err(place.error(format!("`{name}` is a curve, a number is wanted")))
            }
            _ => Ok(name),
        }
    }

    /// Operands and operators in turn, then put together by how tightly these bind.
    fn expression(&mut self) -> Result<Expression, ScriptError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.place().error(format!(
                "the expression is nested deeper than {DEPTH}: assign parts of it to variables"
            )));
        }
        let mut operands = vec![self.operand()?];
        let mut operators = Vec::new();
        while let Some(operator) = self.operator() {
            operators.push((operator, self.place()));
            self.next += 1;
            operands.push(self.operand()?);
            self.operators += 1;
            if self.operators > OPERATORS {
                return Err(self.place().error(format!(
                    "the statement has more than {OPERATORS} operators: assign parts of it to variables"
                )));
            }
        }
        self.depth -= 1;
        let curves = operands.iter().any(|operand| operand.kind == Kind::Curve);
        let kind = if curves { Kind::Curve } else { Kind::Number };
        Ok(joined(operands, operators, kind))
    }

    fn operator(&self) -> Option<Operator> {
        let operator = match self.token() {
            Token::Sign("/\\") => Operator::Minimum,
            Token::Sign("\\/") => Operator::Maximum,
            Token::Sign("+") => Operator::Plus,
            Token::Sign("-") => Operator::Minus,
            Token::Sign("*" | "*_") => Operator::Times,
            Token::Sign("*^") => Operator::MaximalConvolution,
            Token::Sign("/" | "/_") => Operator::Over,
            Token::Sign("/^") => Operator::MaximalDeconvolution,
            Token::Name(name) if name == "div" => Operator::Divide,
            Token::Name(name) if name == "comp" => Operator::Compose,
            _ => return None,
        };
        // `f(x+)` and `f(x-)` are limits.
        let limit = matches!(operator, Operator::Plus | Operator::Minus)
            && self.at(1).0 == Token::Sign(")");
        (!limit).then_some(operator)
    }

    fn operand(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        if self.takes("-") {
            self.depth += 1;
            if self.depth > DEPTH {
                return Err(place.error(format!("more than {DEPTH} signs in a row")));
            }
            let operand = self.operand()?;
            self.depth -= 1;
            let kind = operand.kind;
            return Ok(Expression {
                node: Node::Negation(Box::new(operand)),
                kind,
                place,
            });
        }
        // `+3`, `+inf`.
        if self.is("+") && matches!(self.at(1).0, Token::Number(_) | Token::Name(_)) {
            self.next += 1;
        }
        match self.token().clone() {
            Token::Number(number) => {
                self.next += 1;
                Ok(numeric(Node::Number(number), place))
            }
            Token::Sign("(") => {
                self.next += 1;
                let inside = self.expression()?;
                match self.takes(")") {
                    true => Ok(inside),
                    false => self.expected("an operator or `)`"),
                }
            }
            Token::Name(name) => self.named(name, place),
            _ => self.expected("a number, a curve or `(`"),
        }
    }

    fn named(&mut self, name: String, place: Place) -> Result<Expression, ScriptError> {
        let called = self.at(1).0 == Token::Sign("(");
        let curve = |node| Expression {
            node,
            kind: Kind::Curve,
            place,
        };
        if let Some(kind) = self.kinds.get(&name).copied() {
            self.next += 1;
            return match (called, kind) {
                (false, kind) => Ok(Expression {
                    node: Node::Variable(name),
                    kind,
                    place,
                }),
                (true, Kind::Curve) => self.sample(name, place),
                (true, Kind::Number) => {
                    Err(place.error(format!("`{name}` is a number: it has no value at a time")))
                }
            };
        }
        match name.as_str() {
            "inf" | "infinity" | "Infinity" => {
                self.next += 1;
                Ok(numeric(Node::Infinity, place))
            }
            "zero" => {
                self.next += 1;
                Ok(curve(Node::Zero))
            }
            "epsilon" => {
                self.next += 1;
                Ok(curve(Node::Epsilon))
            }
            "uaf" | "upp" if called => {
                self.next += 2;
                let pieces = match name == "uaf" {
                    true => self.ultimately_affine()?,
                    false => self.pseudo_periodic()?,
                };
                Ok(curve(Node::Pieces(pieces)))
            }
            _ => match function(&name) {
                Some(entry) if called => {
                    self.next += 2;
                    let arguments = self.arguments(entry.name, entry.takes, place)?;
                    Ok(Expression {
                        node: Node::Call(entry.function, arguments),
                        kind: entry.gives,
                        place,
                    })
                }
                Some(_) => {
                    self.next += 1;
                    self.expected(&format!("`(` after `{name}`"))
                }
                None if WORDS.contains(&name.as_str()) => {
                    Err(place.error(format!("`{name}` can not stand here")))
                }
                None => Err(unknown(&name, place)),
            },
        }
    }

    fn arguments(
        &mut self,
        name: &str,
        takes: &[Kind],
        place: Place,
    ) -> Result<Vec<Expression>, ScriptError> {
        let mut arguments = Vec::with_capacity(takes.len());
        loop {
            let place = self.place();
            let argument = self.expression()?;
            match takes.get(arguments.len()) {
                Some(Kind::Number) if argument.kind == Kind::Curve => {
                    return Err(
                        place.error(format!("`{name}` takes a number here, and this is a curve"))
                    );
                }
                _ => arguments.push(argument),
            }
            if !self.takes(",") {
                break;
            }
        }
        if arguments.len() != takes.len() {
            return Err(place.error(format!(
                "`{name}` takes {} arguments, and {} are given",
                takes.len(),
                arguments.len()
            )));
        }
        match self.takes(")") {
            true => Ok(arguments),
            false => self.expected("an operator, `,` or `)`"),
        }
    }

    /// `f(x)`, `f(x+)`, `f(x~-)`.
    fn sample(&mut self, name: String, place: Place) -> Result<Expression, ScriptError> {
        self.must("(")?;
        let at = self.expression()?;
        if at.kind == Kind::Curve {
            return Err(at.place.error(format!(
                "`{name}` is asked for its value at a time, and this is a curve: \
                 write `{name} comp …` for a composition"
            )));
        }
        self.takes("~");
        let side = match (self.takes("+"), self.is("-")) {
            (true, _) => Side::Right,
            (_, true) => {
                self.next += 1;
                Side::Left
            }
            _ => Side::At,
        };
        match self.takes(")") {
            true => Ok(numeric(Node::Sample(name, Box::new(at), side), place)),
            false => self.expected("an operator, `~+`, `~-` or `)`"),
        }
    }

    fn ultimately_affine(&mut self) -> Result<Pieces, ScriptError> {
        let transient = self.parts()?;
        self.must(")")?;
        Ok(Pieces {
            transient,
            periodic: None,
            step: None,
            period: None,
        })
    }

    fn pseudo_periodic(&mut self) -> Result<Pieces, ScriptError> {
        let mut transient = Vec::new();
        if !matches!(self.token(), Token::Name(name) if name == "period") {
            transient = self.parts()?;
            self.must(",")?;
        }
        if !self.takes_word("period") {
            return self.expected("`period(`");
        }
        self.must("(")?;
        let periodic = self.parts()?;
        self.must(")")?;
        let mut more = [None, None];
        for number in &mut more {
            if self.takes(",") {
                *number = Some(Box::new(self.literal()?));
            }
        }
        self.must(")")?;
        let [step, period] = more;
        Ok(Pieces {
            transient,
            periodic: Some(periodic),
            step,
            period,
        })
    }

    fn parts(&mut self) -> Result<Vec<Part>, ScriptError> {
        let mut parts = Vec::new();
        while self.is("[") || self.is("]") {
            parts.push(self.part()?);
        }
        match parts.is_empty() {
            true => self.expected("a segment such as `[(0, 0) 1 (2, 2)[`"),
            false => Ok(parts),
        }
    }

    fn part(&mut self) -> Result<Part, ScriptError> {
        let place = self.place();
        let open_left = self.is("]");
        self.next += 1;
        let from = self.end()?;
        if !open_left && self.takes("]") {
            return Ok(Part {
                place,
                open_left,
                from,
                rest: None,
            });
        }
        let slope = match self.is("(") {
            true => None,
            false => Some(self.literal()?),
        };
        let to = self.end()?;
        let open_right = self.is("[");
        if !open_right && !self.is("]") {
            return self.expected("`[` or `]` at the end of the segment");
        }
        self.next += 1;
        let rest = Rest {
            slope,
            to,
            open_right,
        };
        Ok(Part {
            place,
            open_left,
            from,
            rest: Some(rest),
        })
    }

    fn end(&mut self) -> Result<[Expression; 2], ScriptError> {
        self.must("(")?;
        let time = self.literal()?;
        self.must(",")?;
        let value = self.literal()?;
        self.must(")")?;
        Ok([time, value])
    }

    /// A number with its sign, or a fraction of two, or a variable.
    fn literal(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        let negative = self.takes("-");
        if !negative {
            self.takes("+");
        }
        let mut number = self.plain()?;
        if self.takes("/") {
            let divisor = self.plain()?;
            let node = Node::Binary(Operator::Over, Box::new(number), Box::new(divisor));
            number = numeric(node, place);
        }
        Ok(match negative {
            true => numeric(Node::Negation(Box::new(number)), place),
            false => number,
        })
    }

    fn plain(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        match self.token().clone() {
            Token::Number(number) => {
                self.next += 1;
                Ok(numeric(Node::Number(number), place))
            }
            Token::Name(name) if matches!(name.as_str(), "inf" | "infinity" | "Infinity") => {
                self.next += 1;
                Ok(numeric(Node::Infinity, place))
            }
            Token::Name(_) => {
                let name = self.variable(Some(Kind::Number))?;
                Ok(numeric(Node::Variable(name), place))
            }
            _ => self.expected("a number"),
        }
    }
}

fn numeric(node: Node, place: Place) -> Expression {
    Expression {
        node,
        kind: Kind::Number,
        place,
    }
}

fn unknown(name: &str, place: Place) -> ScriptError {
    place.error(format!(
        "there is no `{name}`: assign it with `{name} := …` first, or check the name"
    ))
}

/// Operators that bind tighter are applied first, among equals the left one.
fn joined(operands: Vec<Expression>, operators: Vec<(Operator, Place)>, kind: Kind) -> Expression {
    let mut operands = operands.into_iter();
    let mut done: Vec<Expression> = operands.by_ref().take(1).collect();
    let mut open: Vec<(Operator, Place)> = Vec::new();
    let apply = |done: &mut Vec<Expression>, (operator, place): (Operator, Place)| {
        if let (Some(right), Some(left)) = (done.pop(), done.pop()) {
            let kind = match (left.kind, right.kind) {
                (Kind::Number, Kind::Number) => Kind::Number,
                _ => Kind::Curve,
            };
            done.push(Expression {
                node: Node::Binary(operator, Box::new(left), Box::new(right)),
                kind,
                place,
            });
        }
    };
    for (operator, operand) in operators.into_iter().zip(operands) {
        while let Some(last) =
            open.pop_if(|(last, _)| last.precedence(kind) >= operator.0.precedence(kind))
        {
            apply(&mut done, last);
        }
        open.push(operator);
        done.push(operand);
    }
    while let Some(last) = open.pop() {
        apply(&mut done, last);
    }
    done.swap_remove(0)
}
