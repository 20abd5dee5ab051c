//! An external meter: its samples as CSV, and markers on its clock that tell where each run began and ended.
//!
//! Samples: `time_s` (`_ms`, `_us`) with `power_w` (`_mw`), or with `current_a` (`_ma`) and `voltage_v` (`_mv`). Markers: a
//! line `begin TIME` or `end TIME` each, in seconds. A program writes markers of its own clock in the same form.
//!
//! Invariant: energy is integrated between markers and nowhere else; samples that do not reach over them are an error.

/// Why samples or markers do not serve.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeterError {
    /// No CSV.
    #[error("no CSV: {0}")]
    Csv(String),
    /// Columns that do not give power.
    #[error(
        "the header has no {0}: it needs time_s and power_w, or time_s, current_a and voltage_v"
    )]
    Lacking(&'static str),
    /// A value that is none.
    #[error("line {line}: '{value}' is no finite number")]
    Value {
        /// Where.
        line: u64,
        /// What stands there.
        value: String,
    },
    /// Times that do not rise.
    #[error("line {0}: its time is not after that of the sample before")]
    Order(u64),
    /// A marker that is none.
    #[error(
        "line {line} of the markers: '{text}' is neither `begin TIME` nor `end TIME` in its turn"
    )]
    Marker {
        /// Where.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// Fewer or more markers than runs.
    #[error("{markers} pairs of markers for {runs} runs: each run needs its own")]
    Count {
        /// Pairs of markers.
        markers: usize,
        /// Runs.
        runs: usize,
    },
    /// A run that the samples do not cover.
    #[error("run {run}, {from} to {to} s: the samples are from {first} to {last} s")]
    Outside {
        /// Which, from 1.
        run: usize,
        /// Its beginning.
        from: f64,
        /// Its end.
        to: f64,
        /// First sample.
        first: f64,
        /// Last sample.
        last: f64,
    },
    /// Markers that belong to other runs.
    #[error(
        "run {run} took {host} s by the host's clock and {meter} s by the markers: they are of different runs, or a marker \
         was lost"
    )]
    Apart {
        /// Which, from 1.
        run: usize,
        /// By the host, s.
        host: f64,
        /// By the markers, s.
        meter: f64,
    },
}

/// Beginning and end of a run, s.
pub type Span = (f64, f64);

/// Reads markers: `begin` and `end` by turns, each after the one before.
///
/// # Errors
/// [`MeterError::Marker`] with its line.
pub fn markers(text: &str) -> Result<Vec<Span>, MeterError> {
    let mut spans = Vec::new();
    let mut began: Option<f64> = None;
    let mut last = f64::NEG_INFINITY;
    let lines = text.lines().enumerate().map(|(number, line)| {
        let line = line.trim();
        (number + 1, line)
    });
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut end = 0;
    for (number, line) in lines {
        end = number;
        let wrong = || MeterError::Marker {
            line: number,
            text: line.chars().take(60).collect(),
        };
        let (what, time) = line.split_once([' ', ',', '\t']).ok_or_else(wrong)?;
        let time: f64 = time.trim().parse().map_err(|_| wrong())?;
        if !time.is_finite() || time < last {
            return Err(wrong());
        }
        last = time;
        match (what, began.take()) {
            ("begin", None) => began = Some(time),
            ("end", Some(from)) if time > from => spans.push((from, time)),
            _ => return Err(wrong()),
        }
    }
    match began {
        None => Ok(spans),
        Some(_) => Err(MeterError::Marker {
            line: end,
            text: "begin without an end".to_owned(),
        }),
    }
}

/// Samples of power.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Time in s, rising, and power in W.
    samples: Vec<(f64, f64)>,
}

impl Samples {
    /// Reads samples.
    ///
    /// # Errors
    /// [`MeterError`] with the line.
    pub fn parse(text: &str) -> Result<Samples, MeterError> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let wrong = |error: csv::Error| MeterError::Csv(error.to_string());
        let header = reader.headers().map_err(wrong)?.clone();
        let column = |units: &[(&str, f64)]| {
            header.iter().enumerate().find_map(|(index, name)| {
                let name = name.to_ascii_lowercase();
                let unit = units.iter().find(|(unit, _)| *unit == name)?;
                Some((index, unit.1))
            })
        };
        let time = column(&[("time_s", 1.0), ("time_ms", 1e-3), ("time_us", 1e-6)]);
        let time = time.ok_or(MeterError::Lacking("time"))?;
        let mut factors = Vec::new();
        if let Some(power) = column(&[("power_w", 1.0), ("power_mw", 1e-3)]) {
            factors.push(power);
        } else {
            let current = column(&[("current_a", 1.0), ("current_ma", 1e-3)]);
            let voltage = column(&[("voltage_v", 1.0), ("voltage_mv", 1e-3)]);
            factors.push(current.ok_or(MeterError::Lacking("power"))?);
            factors.push(voltage.ok_or(MeterError::Lacking("voltage"))?);
        }
        let mut samples: Vec<(f64, f64)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(wrong)?;
            let line = record.position().map_or(0, csv::Position::line);
            let value = |(index, factor): (usize, f64)| {
                let text = record.get(index).unwrap_or("");
                let value = text.parse::<f64>().ok().map(|value| value * factor);
                value
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| MeterError::Value {
                        line,
                        value: text.chars().take(40).collect(),
                    })
            };
            let at = value(time)?;
            if samples.last().is_some_and(|(before, _)| at <= *before) {
                return Err(MeterError::Order(line));
            }
            let mut power = 1.0;
            for factor in &factors {
                power *= value(*factor)?;
            }
            samples.push((at, power));
        }
        Ok(Samples { samples })
    }

    /// Joules of each span, by trapezoids, with the ends between samples interpolated.
    ///
    /// # Errors
    /// [`MeterError::Outside`] if the samples do not reach over a span.
    pub fn energies(&self, spans: &[Span]) -> Result<Vec<f64>, MeterError> {
        let (first, last) = match (self.samples.first(), self.samples.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => (0.0, 0.0),
        };
        let energy = |(number, &(from, to)): (usize, &Span)| {
            if from < first || to > last || self.samples.len() < 2 {
                return Err(MeterError::Outside {
                    run: number + 1,
                    from,
                    to,
                    first,
                    last,
                });
            }
            let (begin, end) = (self.after(from), self.after(to));
            let inside = self.samples[begin..end].iter().copied();
            let mut before = (from, self.power(from));
            let mut sum = 0.0;
            for sample in inside.chain([(to, self.power(to))]) {
                sum += (sample.0 - before.0) * (sample.1 + before.1) / 2.0;
                before = sample;
            }
            Ok(sum)
        };
        spans.iter().enumerate().map(energy).collect()
    }

    /// How many samples are at or before a time.
    fn after(&self, time: f64) -> usize {
        self.samples.partition_point(|(at, _)| *at <= time)
    }

    /// The power at a time within the samples.
    fn power(&self, time: f64) -> f64 {
        let after = self.after(time).clamp(1, self.samples.len() - 1);
        let ((from, a), (to, b)) = (self.samples[after - 1], self.samples[after]);
        a + (b - a) * (time - from) / (to - from)
    }
}

/// Most by which a run's length may differ between the clocks: a hundredth, and the millisecond of a log.
const APART: (f64, f64) = (0.01, 2e-3);

/// Holds the markers on the meter's clock to the runs on the host's: as many, as long. The k-th are of the k-th run.
///
/// # Errors
/// [`MeterError`] where they are not.
pub fn align(runs: &[Span], markers: &[Span]) -> Result<(), MeterError> {
    if runs.len() != markers.len() {
        return Err(MeterError::Count {
            markers: markers.len(),
            runs: runs.len(),
        });
    }
    for (number, (run, marker)) in runs.iter().zip(markers).enumerate() {
        let (host, meter) = (run.1 - run.0, marker.1 - marker.0);
        if (host - meter).abs() > APART.0 * host + APART.1 {
            return Err(MeterError::Apart {
                run: number + 1,
                host,
                meter,
            });
        }
    }
    Ok(())
}
