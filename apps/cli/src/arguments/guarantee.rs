//! What a chosen heap must guarantee, on the command line.
//!
//! Invariant: a demand that is declared names its largest block.

use clap::Args;
use metes_explore::engine::{Objective, ObjectiveSet};
use metes_explore::{Declared, Wanted};

use crate::error::Failure;
use crate::quantity::{positive_size, times};

/// What programs may ask for, and how much memory must provably suffice for it.
#[derive(Args)]
#[command(next_help_heading = "Guarantee")]
pub(crate) struct Guarantee {
    /// Choose only heaps that provably do with so many times the live bytes, whatever the program does
    /// within the demand: 8x
    #[arg(long, value_name = "R", value_parser = times)]
    pub(crate) guarantee: Option<f64>,
    /// Choose only heaps that provably do with so many bytes
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    pub(crate) arena: Option<u64>,
    /// Most requested bytes live at once (M) that programs may have [default: those of the trace]
    #[arg(long, value_name = "M", value_parser = positive_size)]
    pub(crate) live: Option<u64>,
    /// Largest request (n) [default: that of the trace]
    #[arg(long, value_name = "n", value_parser = positive_size)]
    pub(crate) max_block: Option<u64>,
    /// Smallest request (l) [default: that of the trace]
    #[arg(long, value_name = "l", value_parser = positive_size)]
    pub(crate) min_block: Option<u64>,
    /// Percent by which M and n may be exceeded
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) margin: u32,
}

impl Guarantee {
    /// What is asked for.
    pub(crate) fn wanted(&self) -> Result<Wanted, Failure> {
        let declared = match (self.live, self.max_block, self.min_block) {
            (Some(live), Some(max_block), min_block) => Some(Declared {
                live,
                max_block,
                min_block,
            }),
            (None, None, None) => None,
            (Some(_), None, _) | (None, None, Some(_)) => {
                return Err(Failure::input(
                    "a declared demand names its largest block: add --max-block n (and --live M, --min-block l)",
                ));
            }
            (None, Some(_), _) => {
                return Err(Failure::input(
                    "a declared demand names its most live bytes: add --live M",
                ));
            }
        };
        Ok(Wanted {
            times: self.guarantee,
            arena: self.arena,
            declared,
            margin: self.margin,
            weighed: false,
        })
    }

    /// What is asked for of heaps that a trace suggests, and whether they are searched for by it, too.
    pub(crate) fn weighed(&self, objectives: Option<ObjectiveSet>) -> Result<Wanted, Failure> {
        let both = ObjectiveSet::HOST.with(Objective::Guarantee);
        let given = objectives.unwrap_or(ObjectiveSet::HOST);
        if given != both && given != ObjectiveSet::HOST {
            return Err(Failure::input(format!(
                "--objectives {given}: heaps that a trace suggests are searched for by {}, and by {both} where that \
                 is said; others are for `metes explore` of a described space: add --space paper or --space FILE.toml",
                ObjectiveSet::HOST,
            )));
        }
        Ok(Wanted {
            weighed: given == both,
            ..self.wanted()?
        })
    }
}
