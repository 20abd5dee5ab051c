//! Spaces of heaps: what may be tried for a program.
//!
//! A [`Space`] is [described](Space::new), the grid of a [`SpaceDescription`] for a trace, or
//! [suggested](Space::suggested) by a trace alone. Both are structures (pools, their sizes) times
//! kinds (index and limits), and both are numbered: parameters that cannot matter are folded away
//! before anything is counted, so [`Space::size`] is exact and numbers `0..size` name every
//! configuration once. The heaps to compare with come first and have numbers of their own.
//!
//! Invariant: what a number names depends on the description and on the sizes
//! that the trace requests, on nothing else.

mod axes;
mod description;
mod error;
mod folded;
mod grid;
mod kinds;
mod parameters;
mod sizes;
mod structure;
mod suggested;
#[cfg(test)]
mod tests;
mod values;

use metes_config::{Config, Source};
use metes_heap::SizeTable;
use metes_heap::description::{GROWING_SPAN, SMALLEST_SPAN};

pub use axes::{Axis, AxisError, AxisValue, AxisValues};
pub use description::{PAPER, PROTOTYPE, SpaceDescription};
pub use error::SpaceError;
pub use parameters::Parameters;

use crate::catalogue::catalogue;
use crate::events::Events;
use crate::fitted_span::fitted_span;
use crate::fixed_sizes::fitted_sizes;
use crate::pools::Arena;
use crate::runs::Runs;
use crate::target::Target;
use grid::Grid;
use sizes::Sizes;
use structure::Plan;
use suggested::Suggested;
use values::Fitted;

/// Every configuration of a description for a trace, or of those that a trace suggests, numbered.
#[derive(Clone, Debug)]
pub struct Space {
    baselines: Vec<(String, Config)>,
    configurations: Configurations,
    text: String,
}

/// What follows the heaps to compare with, numbered from zero.
#[derive(Clone, Debug)]
enum Configurations {
    Described(Grid),
    Suggested(Suggested),
}

impl Space {
    /// What stands for the values of a space that a trace suggests.
    pub const SUGGESTED: &str = "suggested by the trace";

    /// The space of a description for the sizes in a trace; `text` is what the
    /// description was read from and `name` what errors call it. O(events) and
    /// O(grid points of structures and of kinds), not of their product.
    ///
    /// # Errors
    /// [`SpaceError`] for a heap to compare with that is none, for a grid too
    /// large to number, and for one without a valid point.
    pub fn new(
        description: &SpaceDescription,
        events: &Events,
        text: &str,
        name: &str,
    ) -> Result<Self, SpaceError> {
        let sizes = Sizes::of(events, Target::Host);
        let plan = Plan::new(description, &sizes);
        let source = Source { name, text };
        let baselines = baselines(description, &plan, &source)?;
        let table = match description.wants_fitted_sizes() {
            true => fitted_sizes(events),
            false => SizeTable::DEFAULT,
        };
        let span = match description.wants_fitted_span() {
            true => fitted_span(events, &Arena::HOST),
            false => GROWING_SPAN,
        };
        let fitted = Fitted { table, span };
        Ok(Space {
            baselines,
            configurations: Configurations::Described(Grid::new(description, &plan, fitted)?),
            text: description.canonical(),
        })
    }

    /// The space that the sizes in a trace suggest, of heaps that grow as the arena does; the heaps
    /// to compare with are those of the [`catalogue`], in its order. Too large to be explored
    /// whole, made to be searched. O(events).
    pub fn suggested(events: &Events, arena: &Arena) -> Self {
        Space::suggested_by([(events, 1)], arena)
    }

    /// The same for the sizes in several runs.
    pub fn suggested_by_runs(runs: &Runs, arena: &Arena) -> Self {
        Space::suggested_by(runs.distinct(), arena)
    }

    fn suggested_by<'e>(runs: impl IntoIterator<Item = (&'e Events, u64)>, arena: &Arena) -> Self {
        let runs: Vec<(&Events, u64)> = runs.into_iter().collect();
        let sizes = Sizes::of_runs(runs.iter().copied(), arena.target);
        let spans = runs.iter().map(|(events, _)| fitted_span(events, arena));
        let span = spans.max().unwrap_or(SMALLEST_SPAN);
        let named = catalogue().into_iter();
        let named: Vec<_> = named.map(|own| (own.name, own.description)).collect();
        let heaps: Vec<_> = named.iter().map(|(_, heap)| *heap).collect();
        let baselines = named.into_iter();
        Space {
            configurations: Configurations::Suggested(Suggested::of(&sizes, span, arena, &heaps)),
            baselines: baselines
                .map(|(name, heap)| (name.to_owned(), arena.config(heap)))
                .collect(),
            text: Self::SUGGESTED.to_owned(),
        }
    }

    /// Whether it is [suggested](Self::suggested) by a trace.
    pub fn is_suggested(&self) -> bool {
        matches!(self.configurations, Configurations::Suggested(_))
    }

    /// Grid points of the description: the product of its numbers of values. Of a suggested space
    /// the configurations that are left when dead parameters are folded away.
    pub fn raw(&self) -> u128 {
        match &self.configurations {
            Configurations::Described(grid) => grid.raw,
            Configurations::Suggested(suggested) => suggested.size().into(),
        }
    }

    /// Different configurations, heaps to compare with included.
    pub fn size(&self) -> u64 {
        self.baselines()
            + match &self.configurations {
                Configurations::Described(grid) => grid.size(),
                Configurations::Suggested(suggested) => suggested.size(),
            }
    }

    /// How many heaps to compare with there are; they have the first numbers.
    pub fn baselines(&self) -> u64 {
        self.baselines.len() as u64
    }

    /// The values of all parameters in one line, the same however the space
    /// file spells them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of the memory levels, the nearest first; none where all memory is alike.
    pub fn levels(&self) -> &[String] {
        match &self.configurations {
            Configurations::Described(grid) => &grid.levels,
            Configurations::Suggested(_) => &[],
        }
    }

    /// The name of a heap to compare with.
    pub fn named(&self, number: u64) -> Option<&str> {
        let (name, _) = self.baselines.get(usize::try_from(number).ok()?)?;
        Some(name)
    }

    /// A number behind those of the heaps to compare with, as the configurations count it.
    fn own(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.baselines())
    }

    /// The heap of a number below [`size`](Self::size), with its surroundings.
    /// O(log structures).
    pub fn describe(&self, number: u64) -> Option<Config> {
        let Some(own) = self.own(number) else {
            let (_, config) = self.baselines.get(usize::try_from(number).ok()?)?;
            return Some(config.clone());
        };
        match &self.configurations {
            Configurations::Described(grid) => grid.describe(own),
            Configurations::Suggested(suggested) => suggested.describe(own),
        }
    }

    /// What the parameters of a number are, as results show them.
    pub fn parameters(&self, number: u64) -> Option<Parameters> {
        Some(Parameters::of(&self.describe(number)?))
    }

    /// The parameters that configurations are chosen by, and their values; a suggested space has
    /// none that could be spelt.
    pub fn axes(&self) -> Vec<Axis> {
        match &self.configurations {
            Configurations::Described(grid) => grid.axes(),
            Configurations::Suggested(_) => Vec::new(),
        }
    }

    /// The values of a number; `None` for heaps to compare with, which have
    /// none, and outside of the space. Parameters that cannot matter have their
    /// first value. O(log structures).
    pub fn values(&self, number: u64) -> Option<AxisValues> {
        match &self.configurations {
            Configurations::Described(grid) => grid.values(self.own(number)?),
            Configurations::Suggested(_) => None,
        }
    }

    /// The number of values; what is left out has its first value.
    ///
    /// # Errors
    /// [`AxisError`] for what the space does not have, and for values that
    /// together are no heap.
    pub fn number(&self, values: &AxisValues) -> Result<u64, AxisError> {
        match (&self.configurations, values.keys().next()) {
            (Configurations::Described(grid), _) => Ok(self.baselines() + grid.number(values)?),
            (Configurations::Suggested(_), None) => Ok(self.baselines()),
            (Configurations::Suggested(_), Some(name)) => Err(AxisError::NoAxis {
                name: name.clone(),
                help: None,
            }),
        }
    }

    /// All numbers that differ in one parameter, ascending. A heap to compare
    /// with has none in a described space.
    pub fn neighbours(&self, number: u64) -> Vec<u64> {
        let base = self.baselines();
        let mut found: Vec<u64> = match (&self.configurations, self.own(number)) {
            (Configurations::Described(grid), Some(own)) => {
                grid.neighbours(own).iter().map(|own| base + own).collect()
            }
            (Configurations::Described(_), None) => Vec::new(),
            (Configurations::Suggested(suggested), own) => {
                let own = own.or_else(|| suggested.twin(number as usize));
                let near = own.map(|own| suggested.neighbours(own)).unwrap_or_default();
                // A heap to compare with is met by its own number.
                let known = |own: u64| suggested.twin_of(own).map_or(base + own, |at| at as u64);
                near.into_iter().map(known).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        found.retain(|&other| other != number);
        found
    }

    /// A configuration that has each parameter from one of two; `coin` says from
    /// which. The first where one of them is a heap to compare with.
    pub fn cross(&self, a: u64, b: u64, coin: &mut dyn FnMut() -> bool) -> u64 {
        let (Some(first), Some(second)) = (self.own(a), self.own(b)) else {
            return a;
        };
        self.baselines()
            + match &self.configurations {
                Configurations::Described(grid) => grid.cross(first, second, coin),
                Configurations::Suggested(suggested) => suggested.cross(first, second, coin),
            }
    }

    /// Where a search may begin that knows nothing but the trace; of a suggested space the heaps to
    /// compare with.
    pub fn guesses(&self) -> Vec<u64> {
        match &self.configurations {
            Configurations::Described(grid) => {
                let guesses = grid.guesses().into_iter();
                guesses.map(|own| self.baselines() + own).collect()
            }
            Configurations::Suggested(_) => (0..self.baselines()).collect(),
        }
    }
}

/// The heaps to compare with, in the surroundings of the space.
fn baselines(
    description: &SpaceDescription,
    plan: &Plan<'_>,
    source: &Source<'_>,
) -> Result<Vec<(String, Config)>, SpaceError> {
    let mut heaps = Vec::new();
    match &description.named.heaps {
        None => {
            for (name, config) in metes_config::named() {
                heaps.push((name.to_owned(), config));
            }
        }
        Some(given) => {
            for name in given.get_ref() {
                let spec = name.get_ref();
                let config = metes_config::spec(spec).map_err(|error| {
                    let message = format!("`{spec}` is no heap: {}", error.message);
                    SpaceError::Text(source.error(name.span(), message, error.help))
                })?;
                if matches!(config.store, metes_config::StoreKind::Moving(_)) {
                    let message = format!(
                        "`{spec}` moves blocks, which no heap of a space does: say `moving=no`"
                    );
                    return Err(SpaceError::Text(source.error(name.span(), message, None)));
                }
                heaps.push((spec.clone(), config));
            }
        }
    }
    for (_, config) in &mut heaps {
        plan.surround(config);
    }
    Ok(heaps)
}
