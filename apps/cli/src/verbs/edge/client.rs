//! `metes edge deploy`, `invoke`, `list`, `top`, `remove`: clients of a host.

use std::io::{Read, Write};
use std::path::Path;

use anstyle::Style;
use metes_edge::client::{Answered, Client};
use metes_edge::{Manifest, Told};
use metes_quantity::{bytes, duration};
use serde_json::{Value, json};

use crate::arguments::{EdgeDeploy, EdgeHost, EdgeInvoke};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};

/// Largest request that is sent.
const MOST: u64 = 64 << 20;

fn request(host: &EdgeHost, method: &str, path: &str, body: &[u8]) -> Result<Answered, Failure> {
    let client = match &host.tcp {
        Some(address) => Client::Tcp(address.clone()),
        None => Client::Unix(host.socket.clone()),
    };
    client.request(method, path, body).map_err(|error| {
        let place = match &host.tcp {
            Some(address) => address.clone(),
            None => output::name(&host.socket),
        };
        Failure::input(format!(
            "no answer of a host at {place}: {error}; start one with `metes edge serve`"
        ))
    })
}

/// The document of an answer, or the error that it holds.
fn document(answer: &Answered) -> Result<Value, Failure> {
    let document: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| Failure::input(format!("the answer is no document: {error}")))?;
    match document["error"]["message"].as_str() {
        Some(message) => Err(Failure::input(message)),
        None => Ok(document),
    }
}

/// The path of a function; names that are none are nowhere.
fn path(name: &str, rest: &str) -> Result<String, Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !name.is_empty() && name.bytes().all(plain) {
        true => Ok(format!("/functions/{name}{rest}")),
        false => Err(Failure::input(format!(
            "`{name}` is no name of a function: letters, digits, `-`, `_` and `.`"
        ))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::io("read", path, error))
}

pub(super) fn deploy(arguments: &EdgeDeploy, json: bool) -> Result<u8, Failure> {
    let file = &arguments.manifest;
    let about =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", output::name(file)));
    let text = String::from_utf8(read(file)?).map_err(|error| about(&error))?;
    let manifest = Manifest::parse(&text).map_err(|error| about(&error))?;
    let beside = |path: &Path| read(&file.parent().unwrap_or(Path::new("")).join(path));
    let mut body = text.into_bytes();
    let mut target = format!("/functions?manifest={}", body.len());
    for (number, sample) in manifest.samples.iter().enumerate() {
        let sample = beside(sample)?;
        let before = if number == 0 { "&samples=" } else { "," };
        target += &format!("{before}{}", sample.len());
        body.extend(sample);
    }
    body.extend(beside(&manifest.module)?);
    let answer = request(&arguments.host, "PUT", &target, &body)?;
    let refused = serde_json::from_slice::<Value>(&answer.body).ok();
    let refused = refused.filter(|document| document["error"]["kind"] == "not-admitted");
    if let Some(refused) = refused {
        match json {
            true => output::json(&refused)?,
            false => {
                let message = refused["error"]["message"].as_str().unwrap_or_default();
                output::text(&format!("{POOR}refused{POOR:#}: {message}\n"))?;
            }
        }
        return Ok(DOES_NOT_HOLD);
    }
    let document = document(&answer)?;
    if json {
        output::json(&document)?;
    } else {
        let told: Told = serde_json::from_value(document).map_err(|error| about(&error))?;
        output::text(&format!(
            "{GOOD}deployed{GOOD:#}: {} on core {}, {} of memory\n",
            told.name,
            told.core,
            bytes(told.memory)
        ))?;
        if let Some(samples) = samples(std::slice::from_ref(&told)) {
            output::text(&samples)?;
        }
        for note in told.notes {
            output::note(&note);
        }
    }
    Ok(0)
}

pub(super) fn invoke(arguments: &EdgeInvoke, json: bool) -> Result<u8, Failure> {
    let target = path(&arguments.name, "/invoke")?;
    let body = match &arguments.input {
        Some(path) => read(path)?,
        None => {
            let mut body = Vec::new();
            let read = std::io::stdin().lock().take(MOST).read_to_end(&mut body);
            read.map_err(|error| Failure::io("read", Path::new("standard input"), error))?;
            body
        }
    };
    let answer = request(&arguments.host, "POST", &target, &body)?;
    let header = |name: &str| {
        let found = answer.headers.iter().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    if answer.status == 200 {
        if json {
            output::json(&json!({
                "output": String::from_utf8_lossy(&answer.body),
                "bytes": answer.body.len(),
                "time_ns": header("metes-time-ns"),
                "response_ns": header("metes-response-ns"),
                "missed": header("metes-missed") == Some(1),
            }))?;
        } else {
            let mut stdout = std::io::stdout().lock();
            // A reader that goes away is no error.
            drop(stdout.write_all(&answer.body).and_then(|()| stdout.flush()));
        }
        return Ok(0);
    }
    let found: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let kind = found["error"]["kind"].as_str().unwrap_or_default();
    if !["exit", "trap", "overrun"].contains(&kind) {
        return document(&answer).map(|_| DOES_NOT_HOLD);
    }
    match json {
        true => output::json(&found)?,
        false => {
            let said = |key: &str| found["error"][key].as_str().unwrap_or_default().to_owned();
            output::note(&format!("{} {}", said("message"), said("stderr")));
        }
    }
    Ok(DOES_NOT_HOLD)
}

pub(super) fn remove(name: &str, host: &EdgeHost, json: bool) -> Result<u8, Failure> {
    let document = document(&request(host, "DELETE", &path(name, "")?, &[])?)?;
    match json {
        true => output::json(&document)?,
        false => output::text(&format!("{GOOD}removed{GOOD:#}: {name}\n"))?,
    }
    Ok(0)
}

pub(super) fn list(host: &EdgeHost, json: bool) -> Result<u8, Failure> {
    show(host, json, |functions| {
        let mut table = Table::new(&[
            "function", "core", "period", "deadline", "budget", "memory", "code",
        ]);
        for told in functions {
            table.row(
                Style::new(),
                vec![
                    told.name.clone(),
                    told.core.to_string(),
                    duration(told.period_ns),
                    duration(told.deadline_ns),
                    duration(told.budget_ns),
                    bytes(told.memory),
                    told.tier.clone(),
                ],
            );
        }
        let samples = samples(functions).unwrap_or_default();
        format!("{table}{samples}")
    })
}

pub(super) fn top(host: &EdgeHost, json: bool) -> Result<u8, Failure> {
    show(host, json, |functions| {
        let mut table = Table::new(&[
            "function",
            "done",
            "failed",
            "trapped",
            "overrun",
            "missed",
            "waiting",
            "time p50",
            "p99",
            "max",
            "response p50",
            "p99",
            "max",
        ]);
        for told in functions {
            let counts = &told.counts;
            let numbers = [
                counts.done,
                counts.failed,
                counts.trapped,
                counts.overrun,
                counts.missed,
                told.waiting as u64,
            ];
            let times =
                [told.time_ns, told.response_ns].map(|times| [times.p50, times.p99, times.max]);
            let mut cells = vec![told.name.clone()];
            cells.extend(numbers.map(|number| number.to_string()));
            cells.extend(times.concat().into_iter().map(duration));
            table.row(Style::new(), cells);
        }
        table.to_string()
    })
}

/// What the requests take that manifests name; nothing where there are none.
fn samples(functions: &[Told]) -> Option<String> {
    let mut table = Table::new(&[
        "sample",
        "bytes",
        "operators",
        "ended",
        "code",
        "estimate",
        "p50",
        "longest",
        "runs",
        "overruns",
    ]);
    let mut any = false;
    for told in functions {
        for sample in &told.samples {
            for of in &sample.tiers {
                any = true;
                let operators = sample
                    .operators
                    .map(|counts| counts.operators().to_string());
                let about = if sample.repeatable {
                    ""
                } else {
                    " (not twice the same)"
                };
                let estimate = of
                    .estimate_ns
                    .map(|[least, most]| format!("{} to {}", duration(least), duration(most)));
                table.row(
                    Style::new(),
                    vec![
                        format!("{} {}", told.name, sample.name),
                        sample.bytes.to_string(),
                        operators.map_or("-".to_owned(), |operators| operators + about),
                        sample.ended.clone(),
                        of.tier.clone(),
                        estimate.unwrap_or_else(|| "-".to_owned()),
                        duration(of.observed_ns.p50),
                        duration(of.observed_ns.max),
                        of.runs.to_string(),
                        of.overruns.to_string(),
                    ],
                );
            }
        }
    }
    any.then(|| {
        format!(
            "\n{table}  of these requests alone: operators are exact, the estimate is between two rates of this machine, the \
             longest is what was seen; the budget is what is enforced\n"
        )
    })
}

fn show(host: &EdgeHost, json: bool, shown: impl FnOnce(&[Told]) -> String) -> Result<u8, Failure> {
    let document = document(&request(host, "GET", "/functions", &[])?)?;
    if json {
        output::json(&document)?;
        return Ok(0);
    }
    let functions: Vec<Told> = serde_json::from_value(document)
        .map_err(|error| Failure::input(format!("the answer is of another host: {error}")))?;
    output::text(&shown(&functions))?;
    Ok(0)
}
