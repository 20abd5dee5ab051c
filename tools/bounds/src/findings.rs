//! All that is found of a trace: what it shows, what it keeps to, what a heap must hold for it.
//!
//! Invariant: what holds for the trace alone is called observed, what holds for every program that keeps
//! to a contract, declared.

use metes_curve::{Error, Rational, Value};
use metes_heap::bounds::{Demand, Geometry};
use metes_trace::Trace;

use crate::classes::Counted;
use crate::contract::{Breach, Contract};
use crate::observed::{ObserveError, Observed, Options, observe_also};

/// A contract, and whether a trace keeps it.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The contract.
    pub contract: Contract,
    /// Where the trace breaks it first.
    pub breach: Option<Breach>,
    /// Of each class, most live bytes in the trace, and the observed bounds added up.
    pub observed: Vec<(u128, u128)>,
}

impl Kept {
    /// Holds a trace against a contract. O(events).
    #[must_use]
    pub fn of(contract: Contract, trace: &Trace) -> Self {
        let shares = contract.observe(trace);
        let observed = shares.iter().map(|share| (share.peak, share.bound()));
        Kept {
            breach: contract.first_breach(trace),
            observed: observed.collect(),
            contract,
        }
    }

    /// Whether the trace keeps the contract, and that bounds the live bytes.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.breach.is_none() && self.contract.bound().is_some()
    }
}

/// All that is found of a trace.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Curves and bounds.
    pub observed: Observed,
    /// The bound in bytes of blocks with boundary tags.
    pub in_blocks: u128,
    /// The bound in requests of which those of no bytes count as one: they would be free in the bounds of
    /// heaps.
    at_least_one: u128,
    /// How long it takes until as many bytes as were allocated are free again: the horizontal deviation of
    /// arrival and release curve; `None` where blocks stay.
    pub reclaim: Option<Rational>,
    /// The contract that the trace was held against.
    pub kept: Option<Kept>,
}

/// Why nothing is found of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindingsError {
    /// It supports no bound.
    #[error("{0}")]
    Observe(#[from] ObserveError),
    /// Its curves are beyond what is computed.
    #[error("{0}")]
    Curve(Error),
    /// A bound is more than a heap could be laid out for.
    #[error("the bound on the live bytes is beyond 64 bits: no heap is laid out for it")]
    Large,
}

impl Findings {
    /// Looks at a trace, and holds it against a contract. `tell` is told from time to time which share of
    /// the work is done. Takes as long as [`observe`](crate::observe).
    ///
    /// # Errors
    /// [`FindingsError`].
    pub fn of(
        trace: &Trace,
        options: Options,
        contract: Option<Contract>,
        tell: &dyn Fn(f64),
    ) -> Result<Self, FindingsError> {
        let counted = [Counted::Block(Geometry::TAGGED_64), Counted::AtLeast(1)];
        let (observed, [in_blocks, at_least_one]) = observe_also(trace, options, counted, tell)?;
        Ok(Findings {
            reclaim: reclaim(&observed).map_err(FindingsError::Curve)?,
            kept: contract.map(|contract| Kept::of(contract, trace)),
            observed,
            in_blocks,
            at_least_one,
        })
    }

    /// What a heap must serve for the observed bound.
    ///
    /// # Errors
    /// [`FindingsError::Large`].
    pub fn demand(&self, trace: &Trace) -> Result<Demand, FindingsError> {
        self.demand_of(trace, self.at_least_one, self.observed.sizes.1)
    }

    /// What a heap must serve for the declared bound, with the smallest request and the alignment of the
    /// trace; `None` without a contract that bounds, and where there are requests of no bytes: they are not
    /// counted by a contract, so it says nothing of them.
    ///
    /// # Errors
    /// [`FindingsError::Large`].
    pub fn declared_demand(&self, trace: &Trace) -> Result<Option<Demand>, FindingsError> {
        let contract = self.kept.as_ref().map(|kept| &kept.contract);
        let bounded = contract.and_then(|contract| Some((contract.bound()?, contract)));
        let Some((live, contract)) = bounded.filter(|_| self.observed.sizes.0 > 0) else {
            return Ok(None);
        };
        let largest = contract.classes().last().map_or(0, |class| class.largest);
        let largest = u64::try_from(live).unwrap_or(u64::MAX).min(largest);
        self.demand_of(trace, live, largest).map(Some)
    }

    fn demand_of(&self, trace: &Trace, live: u128, largest: u64) -> Result<Demand, FindingsError> {
        let live = u64::try_from(live).map_err(|_| FindingsError::Large)?;
        let least = self.observed.sizes.0;
        let mut demand = Demand::new(live.max(1), largest.max(1), least.max(1));
        let aligns = (0..trace.len()).map(|event| trace.align(event));
        demand.alignment = aligns.max().unwrap_or(1).max(1).into();
        if self.observed.resizes > 0 {
            demand = demand.resizing();
        }
        Ok(demand)
    }
}

fn reclaim(observed: &Observed) -> Result<Option<Rational>, Error> {
    let arrival = observed.total.arrival.curve()?;
    let release = observed.total.release.curve()?;
    Ok(match arrival.horizontal_deviation(&release)?.value {
        Value::Finite(ticks) => Some(ticks),
        _ => None,
    })
}
