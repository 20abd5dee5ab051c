//! `metes curve`.

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use metes_curve::plan::{Part, Plan, Share, Side, Step};
use metes_curve::plot::{Options, Picture};
use metes_curve::script::{self, Found, Interpreter, Outcome, Script};
use metes_curve::{Algebra, Curve, Rational, conformance, published};
use serde_json::{Map, Value, json};

use crate::arguments::{Curve as Arguments, CurveAction};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, Table};
use crate::own::Form;

/// Characters of a plot, if the terminal does not say.
const SCREEN: (usize, usize) = (78, 20);

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<u8, Failure> {
    let algebra = Algebra {
        limit: arguments.limit,
        ..Algebra::default()
    };
    match &arguments.action {
        CurveAction::Run { script } => run_script(script, algebra, json),
        CurveAction::Eval { expression } => evaluate(expression, algebra, json),
        CurveAction::Check { cases } => check(cases, &algebra, json),
        CurveAction::Convolve {
            curves,
            plan,
            explain,
        } => convolve(curves, plan, explain.as_ref(), &algebra, json),
        CurveAction::Bench { pairs } => bench(pairs, &algebra, json),
        CurveAction::Plot {
            curves,
            svg,
            times,
            values,
        } => {
            let named: Vec<(String, Curve)> = curves
                .iter()
                .map(|text| Ok((name(text), curve(text, &algebra)?)))
                .collect::<Result<_, Failure>>()?;
            let options = Options {
                times: times.as_deref().map(range).transpose()?,
                values: values.as_deref().map(range).transpose()?,
                ..Options::default()
            };
            let picture = picture(&named, &options, &algebra)?;
            plot(&picture, svg.as_deref(), json)
        }
    }
}

/// The text of a file, or of standard input.
fn read(path: &Path) -> Result<String, Failure> {
    let text = match path.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => std::fs::read_to_string(path),
    };
    text.map_err(|error| Failure::io("read", path, error))
}

fn in_file(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// The curve of a file or of an expression.
fn curve(text: &str, algebra: &Algebra) -> Result<Curve, Failure> {
    let path = Path::new(text);
    if text == "-" || path.is_file() || path.extension().is_some_and(|ending| ending == "json") {
        return Curve::from_json(&read(path)?).map_err(|error| in_file(path, error));
    }
    match expression(text, algebra)? {
        Found::Curve(curve) => Ok(curve),
        Found::Number(number) => Err(Failure::input(format!(
            "`{text}` is the number {number}, and a curve is wanted: `constant({number})` is one"
        ))),
    }
}

fn expression(text: &str, algebra: &Algebra) -> Result<Found, Failure> {
    Interpreter::new(algebra.clone())
        .evaluate(text)
        .map_err(|error| {
            let script::ScriptError { column, what, .. } = error;
            Failure::input(format!("`{text}`, column {column}: {what}"))
        })
}

/// How a plot calls a curve.
fn name(text: &str) -> String {
    let path = Path::new(text);
    match path.is_file() {
        true => path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        false => text.to_owned(),
    }
}

/// A curve as a JSON object.
fn object(curve: &Curve) -> Map<String, Value> {
    match serde_json::from_str(&curve.to_json()) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn found_as_json(found: &Found) -> Value {
    match found {
        Found::Number(number) => json!(number.to_string()),
        Found::Curve(curve) => Value::Object(object(curve)),
    }
}

fn run_script(path: &Path, algebra: Algebra, json: bool) -> Result<u8, Failure> {
    let text = read(path)?;
    let script = Script::parse(&text).map_err(|error| in_file(path, error))?;
    let mut interpreter = Interpreter::new(algebra.clone());
    let mut statements = Vec::new();
    let mut failed = 0;
    for statement in script.statements() {
        let outcome = interpreter
            .run(statement)
            .map_err(|error| in_file(path, error))?;
        let line = statement.line();
        let (shown, document) = match outcome {
            Outcome::Assigned { name, found } => (
                format!("{name} := {found}\n"),
                json!({"line": line, "name": name, "value": found_as_json(&found)}),
            ),
            Outcome::Value(found) => (
                format!("{found}\n"),
                json!({"line": line, "value": found_as_json(&found)}),
            ),
            Outcome::Assertion(holds) => {
                failed += usize::from(!holds);
                let shown = match holds {
                    true => "true\n".to_owned(),
                    false => format!("false: the assertion on line {line} does not hold\n"),
                };
                (shown, json!({"line": line, "holds": holds}))
            }
            Outcome::Source(source) => (
                format!("{source}\n"),
                json!({"line": line, "expression": source}),
            ),
            Outcome::Plot(plot) => scripted_plot(&plot, line, &algebra)?,
        };
        match json {
            true => statements.push(document),
            false => output::text(&shown)?,
        }
    }
    if json {
        output::json(&json!({"statements": statements, "failed": failed}))?;
    }
    Ok(if failed > 0 { DOES_NOT_HOLD } else { 0 })
}

/// What a plot of a script shows, and its document.
fn scripted_plot(
    plot: &script::Plot,
    line: usize,
    algebra: &Algebra,
) -> Result<(String, Value), Failure> {
    let text = |option: &str| plot.texts.get(option).cloned().unwrap_or_default();
    let title = plot.texts.get("main").or(plot.texts.get("title"));
    let options = Options {
        title: title.cloned().unwrap_or_default(),
        time_label: text("xlab"),
        value_label: text("ylab"),
        times: plot.times.clone(),
        values: plot.values.clone(),
        no_grid: text("grid") == "no",
    };
    let picture = picture(&plot.curves, &options, algebra)?;
    let curves: Vec<&String> = plot.curves.iter().map(|(name, _)| name).collect();
    match plot.texts.get("out") {
        Some(out) => {
            // Other playgrounds write PNG; a picture of lines is better kept as lines.
            let file = Path::new(out).with_extension("svg");
            output::export(&file, Form::Svg, picture.svg().as_bytes())?;
            let shown = format!("plot written to {}\n", file.display());
            Ok((
                shown,
                json!({"line": line, "curves": curves, "svg": output::name(&file)}),
            ))
        }
        None => Ok((
            in_terminal(&picture),
            json!({"line": line, "curves": curves}),
        )),
    }
}

fn evaluate(text: &str, algebra: Algebra, json: bool) -> Result<u8, Failure> {
    let found = expression(text, &algebra)?;
    match (&found, json) {
        (_, false) => output::text(&format!("{found}\n"))?,
        (Found::Curve(curve), true) => output::json(&object(curve))?,
        (Found::Number(number), true) => output::json(&json!({"value": number.to_string()}))?,
    }
    Ok(0)
}

fn check(path: &Path, algebra: &Algebra, json: bool) -> Result<u8, Failure> {
    let report = conformance::check(&read(path)?, algebra);
    let report = report.map_err(|error| in_file(path, error))?;
    if json {
        let failures: Vec<Value> = report
            .failures
            .iter()
            .map(|failure| json!({"id": failure.id, "op": failure.operation, "came": failure.came}))
            .collect();
        let corrected: Vec<Value> = report
            .corrected
            .iter()
            .map(|correction| json!({"id": correction.id, "why": correction.why}))
            .collect();
        let operations: Map<String, Value> = report
            .operations
            .iter()
            .map(|(name, (passed, failed))| {
                (name.clone(), json!({"passed": passed, "failed": failed}))
            })
            .collect();
        output::json(&json!({
            "passed": report.passed,
            "failed": report.failed,
            "failures": failures,
            "corrected": corrected,
            "operations": operations,
        }))?;
    } else {
        let mut table = Table::new(&["operation", "passed", "failed"]);
        for (name, (passed, failed)) in &report.operations {
            let style = if *failed > 0 {
                output::POOR
            } else {
                Default::default()
            };
            table.row(
                style,
                vec![name.clone(), passed.to_string(), failed.to_string()],
            );
        }
        let (passed, failed) = (report.passed.to_string(), report.failed.to_string());
        table.row(output::BOLD, vec!["together".into(), passed, failed]);
        let mut text = table.to_string();
        for correction in &report.corrected {
            text += &format!(
                "{} is checked against a correction: {}\n",
                correction.id, correction.why
            );
        }
        for failure in &report.failures {
            text += &format!("{} fails: {}\n", failure.id, failure.came);
        }
        output::text(&text)?;
    }
    Ok(if report.failed > 0 { DOES_NOT_HOLD } else { 0 })
}

fn convolve(
    texts: &[String],
    plan: &Plan,
    explain: Option<&Rational>,
    algebra: &Algebra,
    json: bool,
) -> Result<u8, Failure> {
    let curves: Vec<Curve> = texts
        .iter()
        .map(|text| curve(text, algebra))
        .collect::<Result<_, _>>()?;
    let chain = algebra
        .chain(&curves, plan)
        .map_err(|error| Failure::input(error.to_string()))?;
    let explained = explain
        .map(|time| chain.explain(&curves, time, algebra))
        .transpose()
        .map_err(|error| Failure::input(error.to_string()))?;
    if json {
        let mut document = object(&chain.curve);
        if let Some(shares) = &explained {
            document.insert("shares".into(), shares.iter().map(share_as_json).collect());
        }
        let steps: Vec<Value> = chain.steps.iter().map(step_as_json).collect();
        document.insert("plan".into(), Value::Array(steps));
        document.insert("planning_seconds".into(), json!(chain.planning_seconds));
        output::json(&document)?;
        return Ok(0);
    }
    let mut table = Table::new(&["step", "of", "pairs predicted", "elements", "time"]);
    for (number, step) in chain.steps.iter().enumerate() {
        table.row(
            Default::default(),
            vec![
                (number + 1).to_string(),
                parts(step).join(", "),
                step.predicted.to_string(),
                step.elements.to_string(),
                format!("{:.1} µs", step.seconds * 1e6),
            ],
        );
    }
    output::text(&format!("{table}{}\n", script::written(&chain.curve)))?;
    if let Some((time, shares)) = explain.zip(explained) {
        output::text(&shares_as_text(&chain.curve, time, &shares))?;
    }
    Ok(0)
}

/// What each curve contributes to the value at a time.
fn shares_as_text(curve: &Curve, time: &Rational, shares: &[Share]) -> String {
    let value = curve
        .value(time)
        .map_or(String::new(), |value| value.to_string());
    if shares.is_empty() {
        return format!("\nat {time}: {value}, however the time is split\n");
    }
    let mut table = Table::new(&["curve", "contributes its", "at", "value"]);
    for share in shares {
        table.row(
            Default::default(),
            vec![
                (share.curve + 1).to_string(),
                side(share.side).to_owned(),
                share.time.to_string(),
                share.value.to_string(),
            ],
        );
    }
    format!("\nat {time}: {value}, made of\n{table}")
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Before => "limit from the left",
        Side::At => "value",
        Side::After => "limit from the right",
    }
}

fn share_as_json(share: &Share) -> Value {
    json!({
        "curve": share.curve + 1,
        "time": share.time.to_string(),
        "side": side(share.side),
        "value": share.value.to_string(),
    })
}

fn parts(step: &Step) -> Vec<String> {
    let name = |part: &Part| match part {
        Part::Curve(number) => format!("curve {}", number + 1),
        Part::Step(number) => format!("step {}", number + 1),
    };
    step.parts.iter().map(name).collect()
}

fn step_as_json(step: &Step) -> Value {
    json!({
        "of": parts(step),
        "predicted": step.predicted,
        "elements": step.elements,
        "seconds": step.seconds,
    })
}

fn bench(path: &Path, algebra: &Algebra, json: bool) -> Result<u8, Failure> {
    let sets = published::bench(&read(path)?, algebra).map_err(|error| in_file(path, error))?;
    let wrong: usize = sets.iter().map(|set| set.wrong).sum();
    if json {
        let sets: Map<String, Value> = sets
            .iter()
            .map(|set| {
                let document = json!({
                    "pairs": set.pairs,
                    "seconds": set.taken.as_secs_f64(),
                    "longest_seconds": set.longest.as_secs_f64(),
                    "published_seconds": set.published.as_secs_f64(),
                    "wrong": set.wrong,
                });
                (set.name.clone(), document)
            })
            .collect();
        output::json(&json!({"sets": sets}))?;
    } else {
        let mut table = Table::new(&["set", "pairs", "together", "longest", "published", "wrong"]);
        for set in &sets {
            let milliseconds =
                |time: std::time::Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            let style = if set.wrong > 0 {
                output::POOR
            } else {
                Default::default()
            };
            table.row(
                style,
                vec![
                    set.name.clone(),
                    set.pairs.to_string(),
                    milliseconds(set.taken),
                    milliseconds(set.longest),
                    format!("{:.1} s", set.published.as_secs_f64()),
                    set.wrong.to_string(),
                ],
            );
        }
        output::text(&table.to_string())?;
    }
    Ok(if wrong > 0 { DOES_NOT_HOLD } else { 0 })
}

/// `FROM..TO`.
fn range(text: &str) -> Result<(Rational, Rational), Failure> {
    let ends = text.split_once("..").and_then(|(from, to)| {
        let ends = (Rational::from_str(from).ok()?, Rational::from_str(to).ok()?);
        (ends.0 < ends.1).then_some(ends)
    });
    ends.ok_or_else(|| {
        Failure::input(format!(
            "`{text}` is no range: write it as 0..20 or -1/2..7/2, the lower end first"
        ))
    })
}

fn picture(
    curves: &[(String, Curve)],
    options: &Options,
    algebra: &Algebra,
) -> Result<Picture, Failure> {
    Picture::new(curves, options, algebra.limit).map_err(|error| Failure::input(error.to_string()))
}

fn plot(picture: &Picture, svg: Option<&Path>, json: bool) -> Result<u8, Failure> {
    if let Some(path) = svg {
        output::export(path, Form::Svg, picture.svg().as_bytes())?;
        match json {
            true => output::json(&json!({"svg": output::name(path)}))?,
            false => output::note(&format!("the plot is in {}", path.display())),
        }
        return Ok(0);
    }
    match json {
        true => output::json(&json!({"text": plain(picture, SCREEN)}))?,
        false => output::text(&in_terminal(picture))?,
    }
    Ok(0)
}

/// A picture without colours.
fn plain(picture: &Picture, (width, height): (usize, usize)) -> String {
    let lines = picture.terminal(width, height);
    let line = |line: &Vec<metes_curve::plot::Character>| {
        let text: String = line.iter().map(|character| character.character).collect();
        format!("{}\n", text.trim_end())
    };
    lines.iter().map(line).collect()
}

/// A picture with a colour for each curve, as large as the terminal lets it.
fn in_terminal(picture: &Picture) -> String {
    use anstyle::{AnsiColor, Style};
    const COLOURS: [AnsiColor; 6] = [
        AnsiColor::Blue,
        AnsiColor::Yellow,
        AnsiColor::Green,
        AnsiColor::Red,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
    ];
    let (width, height) = crossterm::terminal::size().map_or(SCREEN, |(columns, rows)| {
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        (columns.clamp(40, 120), rows.saturating_sub(4).clamp(12, 32))
    });
    let mut text = String::new();
    for line in picture.terminal(width, height) {
        let mut last = None;
        for character in line {
            if character.curve != last {
                if let Some(curve) = last {
                    text += &style_of(curve, &COLOURS).render_reset().to_string();
                }
                if let Some(curve) = character.curve {
                    text += &style_of(curve, &COLOURS).render().to_string();
                }
                last = character.curve;
            }
            text.push(character.character);
        }
        text += &Style::new().bold().render_reset().to_string();
        text.push('\n');
    }
    return text;

    fn style_of(curve: usize, colours: &[AnsiColor]) -> Style {
        let colour = colours[curve % colours.len()];
        Style::new().fg_color(Some(colour.into()))
    }
}
