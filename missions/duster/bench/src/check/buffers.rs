//! Backlog and delay of every buffer, by curves.
//!
//! What comes is a token bucket or, of a converter, a staircase; what goes is what a periodic activity takes: with period T
//! and response R, of what is there at some moment n are gone behind T + R, n more each T after. Then a backlog is the greatest
//! vertical, a delay the greatest horizontal distance of the two curves (`docs/curve-bounds.md`). Time is in microseconds.
//!
//! *Invariant:* arrivals are never above their curve and service never below its own, so no buffer holds more than its
//! backlog, nor anything longer than its delay.

use metes_bounds::{Flow, Limit, Server, Tandem};
use metes_curve::{Algebra, Curve, Error, Rational};
use metes_duster_system::{Buffer, Bus, Line, System, Task};

use super::response::TaskBound;
use super::wires::{SET, baud, set_time};
use super::{DUST, Row, Unit};

/// Flash: bytes of a page and of a sector, nanoseconds to program the one and to erase the other.
const PAGE: u64 = 512;
const SECTOR: u64 = 65_536;
const PROGRAM: u64 = 700_000;
const ERASE: u64 = 150_000_000;

/// What waits, and for how long: items and nanoseconds, rounded up; none where there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    backlog: Option<u64>,
    delay: Option<u64>,
}

pub(super) fn rows(system: &System, tasks: &[TaskBound]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut fifo_delays = Vec::new();
    for bus in &system.buses {
        let waiting = front_end(system, bus).unwrap_or_default();
        let subject = format!("front end {}", bus.name);
        let row = Row::most(
            subject.clone(),
            "backlog",
            Unit::Items,
            waiting.backlog,
            bus.fifo as u64,
        );
        rows.push(row.note(format!(
            "samples, {} a second; sets of {}",
            bus.rate, bus.frames
        )));
        rows.push(Row::told(
            subject,
            "delay",
            Unit::Nanoseconds,
            waiting.delay,
        ));
        fifo_delays.push((bus.name.as_str(), waiting.delay));
    }
    rows.extend(sets(system, tasks));
    let stored = flash(system, tasks);
    for buffer in &system.buffers {
        // What waits for the store is told below.
        if stored.is_none() || buffer.to != "store" {
            rows.extend(of_buffer(system, tasks, buffer));
        }
    }
    rows.extend(stored.into_iter().flatten());
    rows.extend(dust(system, tasks, &fifo_delays));
    rows
}

fn number(value: u64) -> Rational {
    part(value, 1)
}

/// `amount` a second, in a microsecond.
fn a_second(amount: u64) -> Rational {
    part(amount, 1_000_000)
}

/// `dividend / divisor`; what does not fit is as large as can be.
fn part(dividend: u64, divisor: u64) -> Rational {
    let divisor = i64::try_from(divisor).unwrap_or(i64::MAX);
    i64::try_from(dividend)
        .ok()
        .and_then(|dividend| Rational::new(dividend, divisor))
        .unwrap_or(Rational::from(i64::MAX))
}

/// Nanoseconds in microseconds.
fn micros(nanoseconds: u64) -> Rational {
    part(nanoseconds, 1000)
}

/// Of what is there, `items` are gone behind `latency` nanoseconds, and so many more each `period`.
fn periodic(items: u64, period: u64, latency: u64) -> Result<Curve, Error> {
    Curve::staircase(&micros(latency), &micros(period), &number(items))
}

/// What waits where `arrivals` share one server in order of arrival.
fn waiting(arrivals: Vec<Curve>, service: Curve) -> Option<Waiting> {
    let server = Server {
        name: "server".to_owned(),
        service,
        strict: false,
        fifo: true,
    };
    let flows = arrivals.into_iter().map(|arrival| Flow {
        name: "flow".to_owned(),
        arrival,
        path: vec![0],
    });
    let tandem = Tandem::new(vec![server], flows.collect()).ok()?;
    let bounds = tandem.bounds(&Algebra::default()).ok()?;
    let server = bounds.servers.first()?;
    Some(Waiting {
        backlog: rounded(&server.backlog, 1),
        delay: server.delay.as_ref().and_then(|delay| rounded(delay, 1000)),
    })
}

/// A limit times `unit`, rounded up.
fn rounded(limit: &Limit, unit: u64) -> Option<u64> {
    let exact = limit.finite()? * &number(unit);
    let whole = exact.floor();
    let more = u64::from(whole < exact);
    whole.to_string().parse::<u64>().ok()?.checked_add(more)
}

/// Samples in a front end's FIFO: each set takes so many, a set's time after it began.
fn front_end(system: &System, bus: &Bus) -> Option<Waiting> {
    // Samples one period apart are at most one and the rate.
    let arrival = Curve::token_bucket(&a_second(u64::from(bus.rate)), &number(1)).ok()?;
    let service = periodic(bus.frames as u64, SET, SET + set_time(system, bus)?).ok()?;
    waiting(vec![arrival], service)
}

/// A set that was received must be taken before the next but one is.
fn sets(system: &System, tasks: &[TaskBound]) -> Option<Row> {
    let (task, response) = timed(system, tasks, "acquire")?;
    let between = response.map(|response| response + task.period * 1000);
    let row = Row::most(
        "sets".to_owned(),
        "longest time until one is taken",
        Unit::Nanoseconds,
        between,
        2 * SET,
    );
    Some(row.note("by the task acquire; one set in the receive queue, one on its way"))
}

fn timed<'a>(
    system: &'a System,
    tasks: &[TaskBound],
    name: &str,
) -> Option<(&'a Task, Option<u64>)> {
    let task = system.task(name)?;
    let bound = tasks.iter().find(|bound| bound.name == name)?;
    Some((task, bound.response))
}

fn of_buffer(system: &System, tasks: &[TaskBound], buffer: &Buffer) -> Vec<Row> {
    let subject = format!("buffer {}", buffer.name);
    if buffer.flows.is_empty() {
        let row = Row::most(
            subject,
            "backlog",
            Unit::Items,
            None,
            buffer.capacity as u64,
        );
        return vec![row.note("it has no [[buffer.flow]]: say what comes")];
    }
    let arrivals: Result<Vec<_>, _> = buffer
        .flows
        .iter()
        .map(|flow| Curve::token_bucket(&a_second(flow.rate), &number(flow.burst)))
        .collect();
    let service = service(system, tasks, buffer);
    let found = arrivals.ok().zip(service.as_ref().ok().cloned());
    let found = found
        .and_then(|(arrivals, service)| waiting(arrivals, service))
        .unwrap_or_default();
    let rate: u64 = buffer.flows.iter().map(|flow| flow.rate).sum();
    let row = Row::most(
        subject.clone(),
        "backlog",
        Unit::Items,
        found.backlog,
        buffer.capacity as u64,
    );
    let note = match (&service, row.holds) {
        (Err(why), _) => why.clone(),
        (Ok(_), true) => format!("{rate} a second come, {} empties it", buffer.to),
        (Ok(_), false) if found.backlog.is_none() => {
            format!("{rate} a second come, more than {} takes", buffer.to)
        }
        (Ok(_), false) => {
            format!("{rate} a second come in bursts; give it room, or empty it faster")
        }
    };
    let delay = Row::told(subject, "delay", Unit::Nanoseconds, found.delay);
    vec![row.note(note), delay]
}

/// What empties a buffer: a task, or the line that is meant by its own name or the buffer's.
fn service(system: &System, tasks: &[TaskBound], buffer: &Buffer) -> Result<Curve, String> {
    let cannot = |error: Error| error.to_string();
    if let Some((task, response)) = timed(system, tasks, &buffer.to) {
        let response =
            response.ok_or_else(|| format!("the task {} has no response time", task.name))?;
        let served = buffer
            .served
            .ok_or("say `served`, what one activation takes")?;
        let period = task.period * 1000;
        return periodic(served, period, period + response).map_err(cannot);
    }
    let own =
        |line: &&Line| line.name == buffer.to || (buffer.to == "line" && line.name == "telemetry");
    let line = system
        .lines
        .iter()
        .find(own)
        .ok_or("no line is called so")?;
    // A byte is on the line when the ten bits of the one before are through.
    let bytes = (baud(system, line) / 10.0).floor() as u64;
    let latency = part(2_000_000, bytes.max(1));
    Curve::rate_latency(&a_second(bytes), &latency).map_err(cannot)
}

/// The flash store, behind the ring of science. The task `store` begins one operation an activation: a record takes one for
/// each page and one more, an erased sector as many as the erase lasts. Where the store's own queue is full blocks wait in the
/// ring, and as the queue is longer than an activation of `telemetry` the store never waits for them: both are one queue.
fn flash(system: &System, tasks: &[TaskBound]) -> Option<Vec<Row>> {
    let ring = system.buffers.iter().find(|it| it.name == "science")?;
    let queue = system.buffers.iter().find(|it| it.name == "store")?;
    let (store, response) = timed(system, tasks, "store")?;
    let (telemetry, taken) = timed(system, tasks, "telemetry")?;
    let period = store.period * 1000;
    let begun = PROGRAM.div_ceil(period).max(1);
    let erase = ERASE.div_ceil(period) + 1;
    // Activations: of records, of erases for their pages; one sector may be erased at once, another is begun.
    let pages = |flow: &metes_duster_system::Flow| flow.stored.div_ceil(PAGE).max(1);
    let sector = SECTOR / PAGE - ring.flows.iter().map(pages).max().unwrap_or(1) + 1;
    let work = |amount: fn(&metes_duster_system::Flow) -> u64| {
        let records: u64 = ring
            .flows
            .iter()
            .map(|flow| amount(flow).saturating_mul(pages(flow) * begun + 1))
            .fold(0, u64::saturating_add);
        let all: u64 = ring
            .flows
            .iter()
            .map(|flow| amount(flow).saturating_mul(pages(flow)))
            .fold(0, u64::saturating_add);
        records.saturating_add(all.saturating_mul(erase).div_ceil(sector))
    };
    let (burst, rate) = (
        work(|flow| flow.burst).saturating_add(2 * erase),
        work(|flow| flow.rate),
    );
    let share = u128::from(rate) * u128::from(period) / 1000;
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    let share = Row::most(
        "flash store".to_owned(),
        "utilisation",
        Unit::Millionths,
        Some(share),
        1_000_000,
    );
    let share = share.note(format!(
        "{rate} activations a second, erasing included, of {}",
        1_000_000_000 / period
    ));
    let arrival = Curve::token_bucket(&a_second(rate), &number(burst)).ok();
    let latency = response
        .zip(taken)
        .map(|(own, taken)| period + own + telemetry.period * 1000 + taken);
    let service = latency.and_then(|latency| periodic(1, period, latency).ok());
    let found = arrival
        .zip(service)
        .and_then(|(arrival, service)| waiting(vec![arrival], service))
        .unwrap_or_default();
    // In order of arrival: all that waits has come within the longest delay.
    let blocks = found.delay.map(|delay| {
        let come = |flow: &metes_duster_system::Flow| {
            let later = u128::from(flow.rate) * u128::from(delay);
            flow.burst
                .saturating_add(u64::try_from(later.div_ceil(1_000_000_000)).unwrap_or(u64::MAX))
        };
        ring.flows.iter().map(come).fold(0, u64::saturating_add)
    });
    let subject = || "buffers science and store".to_owned();
    let room = (ring.capacity + queue.capacity) as u64;
    let backlog = Row::most(subject(), "backlog", Unit::Items, blocks, room);
    let backlog = backlog.note("blocks that wait for the flash, in its queue and in the ring before it, while sectors are erased");
    let delay = Row::told(subject(), "delay", Unit::Nanoseconds, found.delay);
    Some(vec![share, backlog, delay.note("until a block is stored")])
}

/// From the impact to its detection.
fn dust(system: &System, tasks: &[TaskBound], fifo_delays: &[(&str, Option<u64>)]) -> Option<Row> {
    let (_, waits) = fifo_delays.iter().find(|(name, _)| *name == "dust")?;
    let (acquire, taken) = timed(system, tasks, "acquire")?;
    let (detect, found) = timed(system, tasks, "detect")?;
    let whole = waits.zip(taken).zip(found).map(|((waits, taken), found)| {
        waits + acquire.period * 1000 + taken + detect.period * 1000 + found
    });
    let row = Row::most(
        "dust".to_owned(),
        "detection",
        Unit::Nanoseconds,
        whole,
        DUST,
    );
    Some(row.note("FIFO and set, acquire, detect, each with its period"))
}

#[cfg(test)]
mod tests;
