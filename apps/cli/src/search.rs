//! A search as it is seen: its progress, and its front as JSON.

use std::path::PathBuf;
use std::time::Instant;

use indicatif::ProgressBar;
use metes_explore::{Observer, Outcome};
use serde_json::Value;

use crate::error::Failure;
use crate::quantity::grouped;
use crate::{output, progress};

/// The bar of a search that may take so many seconds.
pub(crate) struct Bar {
    bar: ProgressBar,
    start: Instant,
    seconds: f64,
}

impl Bar {
    pub(crate) fn begin(seconds: f64) -> Bar {
        Bar {
            bar: progress::budget("exploring"),
            start: Instant::now(),
            seconds,
        }
    }
}

impl Observer for Bar {
    fn progress(&mut self, configurations: u64, pareto: usize) {
        let share = self.start.elapsed().as_secs_f64() / self.seconds;
        self.bar.set_position((share.min(1.0) * 1000.0) as u64);
        self.bar.set_message(format!(
            "exploring: {} heaps, {pareto} unbeaten",
            grouped(configurations)
        ));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A front as JSON, each outcome with the `heap.toml` that names it on disk.
pub(crate) fn outcomes(front: &[Outcome], files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let named = front.iter().zip(files);
    let values = named.map(|(outcome, file)| {
        let mut value = serde_json::to_value(outcome)
            .map_err(|error| Failure::input(format!("an outcome is no JSON: {error}")))?;
        if let Value::Object(fields) = &mut value {
            fields.insert("toml".to_owned(), output::name(file).into());
        }
        Ok(value)
    });
    values.collect()
}
