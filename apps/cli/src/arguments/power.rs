//! `metes power`.

use clap::{Args, Subcommand};

use super::{PowerApply, PowerFit, PowerMeasure, PowerPredict};

/// Frequencies of processor and memory under deadlines: exact analysis, and the plan of least energy
#[derive(Args)]
#[command(after_help = "Examples:
  metes power fit measured.csv")]
pub(crate) struct Power {
    #[command(subcommand)]
    pub(crate) action: PowerAction,
}

#[derive(Subcommand)]
pub(crate) enum PowerAction {
    Fit(PowerFit),
    Predict(PowerPredict),
    Measure(PowerMeasure),
    Apply(PowerApply),
}
