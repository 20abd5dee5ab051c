//! The arguments of `metes curve`.
//!
//! Invariant: a curve is given in the same two ways everywhere.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use metes_curve::Rational;
use metes_curve::plan::Plan;

/// Compute with arrival and service curves, exactly: scripts, convolutions, plots
///
/// A curve is a JSON file, as `metes --json curve eval` prints it (- is standard input), or an
/// expression of the script language, such as `stair(0, 4, 1)` or `bucket(1, 4) * ratency(2, 3)`.
#[derive(Args)]
#[command(after_help = "Examples:
  metes curve run tandem.mppg
  metes curve eval 'hDev(bucket(1, 4), ratency(2, 3))'
  metes curve convolve 'stair(0, 4, 3)' 'ratency(2, 3)' server.json
  metes curve plot 'stair(0, 4, 3)' 'ratency(2, 3)' --svg curves.svg")]
pub(crate) struct Curve {
    /// Most pieces, or pairs of pieces, that one operation may look at; a larger one is refused
    /// before it begins
    #[arg(long, value_name = "N", global = true, default_value_t = metes_curve::LIMIT, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    #[command(subcommand)]
    pub(crate) action: CurveAction,
}

#[derive(Subcommand)]
pub(crate) enum CurveAction {
    /// Run a script in the syntax of the min-plus playgrounds (MPPG)
    ///
    /// Exit status 1 if an assertion does not hold. Plots go to the terminal; one with `out`
    /// to an SVG file of that name.
    #[command(after_help = "Example: metes curve run tandem.mppg")]
    Run {
        /// The script; - is standard input
        script: PathBuf,
    },
    /// Compute one expression
    #[command(after_help = "Example: metes curve eval 'star(stair(0, 4, 3) /\\ bucket(1, 9))'")]
    Eval {
        /// The expression
        expression: String,
    },
    /// Check conformance cases; exit status 1 if one fails
    #[command(after_help = "Example: metes curve check core/curve/tests/data/cases.json")]
    Check {
        /// A document `{"cases": [{"id", "op", "operands", "expected"}]}`
        cases: PathBuf,
    },
    /// Convolve curves, in the order that costs least
    #[command(after_help = "Examples:
  metes curve convolve 'stair(0, 4, 3)' 'ratency(2, 3)' server.json
  metes curve convolve a.json b.json c.json --plan 3,1,2
  metes curve convolve 'stair(0, 4, 3)' 'ratency(2, 3)' --explain 17/2")]
    Convolve {
        /// The curves
        #[arg(required = true, value_name = "CURVE")]
        curves: Vec<String>,
        /// automatic, subsets, left-to-right, least-slope, an order such as 3,1,2, or a policy
        /// FIRST/NEXT[/ESTIMATE]
        #[arg(long, value_name = "PLAN", default_value = "automatic")]
        plan: Plan,
        /// Which pieces made the value at this time: what each curve contributes
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        explain: Option<Rational>,
    },
    /// Convolve published pairs, timed and checked; exit status 1 if a result is wrong
    #[command(after_help = "Example: metes curve bench core/curve/tests/data/published_pairs.json")]
    Bench {
        /// A document `{"sets": {NAME: [{"f", "g"}]}}`
        pairs: PathBuf,
    },
    /// Plot curves in the terminal, or as SVG
    ///
    /// Filled marks are values at jumps, open ones limits that are not the value.
    #[command(after_help = "Examples:
  metes curve plot 'stair(0, 4, 3)' 'bucket(1, 4)'
  metes curve plot server.json --times 0..20 --values 0..50 --svg server.svg")]
    Plot {
        /// The curves
        #[arg(required = true, value_name = "CURVE")]
        curves: Vec<String>,
        /// Write an SVG file instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Times to be shown [default: two periods of every curve]
        #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
        times: Option<String>,
        /// Values to be shown [default: all at those times]
        #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
        values: Option<String>,
    },
}
