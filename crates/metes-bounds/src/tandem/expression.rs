//! Curves of a tandem's file: one of the constructors, with its parameters.

use metes_curve::{Curve, Rational};

/// Every constructor: its name, its parameters.
const KNOWN: [(&str, &str); 6] = [
    ("bucket", "rate, burst"),
    ("ratency", "rate, latency"),
    ("stair", "offset, length, height"),
    ("sporadic", "distance, size"),
    ("tdma", "slot, cycle, bandwidth"),
    ("delay", "time"),
];

/// The curve that a text such as `bucket(1/2, 8)` names.
pub(super) fn curve(text: &str) -> Result<Curve, String> {
    let all = || {
        let forms = KNOWN.map(|(name, parameters)| format!("{name}({parameters})"));
        forms.join(", ")
    };
    let parts = text
        .trim()
        .strip_suffix(')')
        .and_then(|text| text.split_once('('));
    let Some((name, parameters)) = parts else {
        return Err(format!("`{text}` is no curve; write {}", all()));
    };
    let numbers = parameters
        .split(',')
        .map(|number| number.parse::<Rational>());
    let numbers = numbers.collect::<Result<Vec<_>, _>>();
    let numbers = numbers.map_err(|error| format!("`{text}`: {error}"))?;
    let made = match (name.trim(), &numbers[..]) {
        ("bucket", [rate, burst]) => Curve::token_bucket(rate, burst),
        ("ratency", [rate, latency]) => Curve::rate_latency(rate, latency),
        ("stair", [offset, length, height]) => Curve::staircase(offset, length, height),
        ("sporadic", [distance, size]) => Curve::sporadic(distance, size),
        ("tdma", [slot, cycle, bandwidth]) => Curve::time_division(slot, cycle, bandwidth),
        ("delay", [time]) => Curve::delay(time),
        (name, _) => {
            let known = KNOWN.iter().find(|(known, _)| *known == name);
            return Err(known.map_or_else(
                || format!("there is no curve `{name}`; write {}", all()),
                |(name, parameters)| format!("`{text}`: write {name}({parameters})"),
            ));
        }
    };
    made.map_err(|error| format!("`{text}`: {error}"))
}
