//! How much work an invocation is: operators, counted exactly, and what they take on this machine.
//!
//! Code of a third kind counts as it runs, one for each operator that WebAssembly executes (blocks, their
//! ends, `nop` and `drop` count nothing). A class of operators is counted by running again with that class
//! weighing two: the difference is their number. So the counts of an input are exact, and the same on every
//! machine, as long as the function does not look at the clock.
//!
//! What is a bound: nothing here. Counts are of the inputs that were tried. A time that is computed from
//! them ([`Table::span`]) is an estimate between two rates that this machine has shown, and a time that was
//! seen is a maximum of what was seen. What holds for every input is the budget, as it is enforced.
//!
//! *Invariant:* the sum of the classes is the whole.

mod kernels;
mod table;

use serde::{Deserialize, Serialize};
use wasmtime::{Engine as Code, OperatorCost, VariableOperatorCost};

pub use table::{Span, Table};

use crate::engine::Engine;
use crate::error::{DeployError, EngineError};
use crate::guest::Run;
use crate::limits::Options;
use crate::module::Module;
use crate::outcome::{Outcome, Trap};
use crate::seat::Seat;
use crate::tier::{self, Kind};
use crate::wasi::Exit;

/// Operators of one invocation, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Loads and stores.
    pub memory: u64,
    /// Divisions, remainders and square roots.
    pub division: u64,
    /// Calls, direct and indirect.
    pub call: u64,
    /// All others.
    pub other: u64,
    /// Bytes that were filled or copied at once.
    pub bytes: u64,
}

impl Counts {
    /// All operators.
    pub fn operators(&self) -> u64 {
        self.memory + self.division + self.call + self.other
    }
}

/// What was counted in one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// How much.
    pub counts: Counts,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a second run counted the same; not so for functions that look at the clock.
    pub repeatable: bool,
}

/// Why there is no count.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// It took more operators than it might.
    #[error(
        "the function takes more than {limit} operators for this request; give a smaller request, or raise the limit"
    )]
    Limit {
        /// How many it might take.
        limit: u64,
    },
    /// No code or no slot for it.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The request is too large.
    #[error("the request has {bytes} bytes, the function takes {limit}; raise `input`")]
    Input {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// Engines whose code counts: all operators alike, then one class twice each.
pub(crate) struct Meter {
    all: Code,
    memory: Code,
    division: Code,
    call: Code,
    bytes: Code,
}

impl Meter {
    pub(crate) fn new(options: &Options) -> Result<Meter, EngineError> {
        let code = |weigh: fn(&mut OperatorCost)| {
            let mut cost = OperatorCost::new();
            free_bytes(&mut cost.variable);
            weigh(&mut cost);
            tier::engine(Kind::Counting(Box::new(cost)), options)
        };
        Ok(Meter {
            all: code(|_| ())?,
            memory: code(weigh_memory)?,
            division: code(weigh_division)?,
            call: code(|cost| (cost.Call, cost.CallIndirect) = (2, 2))?,
            bytes: code(|cost| {
                let variable = &mut cost.variable;
                (
                    variable.memory_copy_per_byte,
                    variable.memory_fill_per_byte,
                    variable.memory_init_per_byte,
                ) = (1, 1, 1);
            })?,
        })
    }
}

fn free_bytes(variable: &mut VariableOperatorCost) {
    (
        variable.memory_copy_per_byte,
        variable.memory_fill_per_byte,
        variable.memory_init_per_byte,
    ) = (0, 0, 0);
    (
        variable.table_copy_per_element,
        variable.table_fill_per_element,
    ) = (0, 0);
    (
        variable.table_init_per_element,
        variable.table_grow_per_element,
    ) = (0, 0);
}

macro_rules! weigh {
    ($name:ident: $($operator:ident)*) => {
        fn $name(cost: &mut OperatorCost) {
            $(cost.$operator = 2;)*
        }
    };
}

weigh!(weigh_memory:
    I32Load I64Load F32Load F64Load I32Load8S I32Load8U I32Load16S I32Load16U I64Load8S I64Load8U I64Load16S I64Load16U
    I64Load32S I64Load32U I32Store I64Store F32Store F64Store I32Store8 I32Store16 I64Store8 I64Store16 I64Store32
    V128Load V128Load8x8S V128Load8x8U V128Load16x4S V128Load16x4U V128Load32x2S V128Load32x2U V128Load8Splat
    V128Load16Splat V128Load32Splat V128Load64Splat V128Load32Zero V128Load64Zero V128Store V128Load8Lane V128Load16Lane
    V128Load32Lane V128Load64Lane V128Store8Lane V128Store16Lane V128Store32Lane V128Store64Lane);

weigh!(weigh_division:
    I32DivS I32DivU I32RemS I32RemU I64DivS I64DivU I64RemS I64RemU F32Div F64Div F32Sqrt F64Sqrt F32x4Div F64x2Div
    F32x4Sqrt F64x2Sqrt);

impl Engine {
    /// Counts what an invocation with this request takes, in a slot of its own. Compiles the module five
    /// times, so it belongs to deployment.
    ///
    /// # Errors
    ///
    /// More than `limit` operators, no slot, or a compiler that refuses the module.
    pub fn count(&self, module: &Module, input: &[u8], limit: u64) -> Result<Cost, CostError> {
        if input.len() > module.limits().input {
            return Err(CostError::Input {
                bytes: input.len(),
                limit: module.limits().input,
            });
        }
        let refused = |cause: String| DeployError::Compile {
            tier: "counting",
            cause,
        };
        let meter = self.meter().map_err(|error| refused(error.to_string()))?;
        let run = |engine: &Code, weight: u64| -> Result<(u64, Outcome), CostError> {
            let code =
                tier::build(engine, &module.inner().wasm, self.artefacts()).map_err(refused)?;
            let slot = match module.memory() {
                0 => None,
                bytes => Some(self.slots().take(bytes).map_err(DeployError::from)?),
            };
            // No alarm is set: fuel ends what does not end.
            let alarm = self.watch().alarm();
            let failed = |error: wasmtime::Error| DeployError::Initialise {
                cause: format!("{error:#}"),
            };
            let fuel = limit.saturating_mul(weight);
            let mut seat = Seat::counting(module, &code, fuel, slot, &alarm).map_err(failed)?;
            alarm.clear();
            let seed = metes_random::mix(module.limits().seed);
            let output = Vec::with_capacity(module.limits().output);
            seat.live.store.data_mut().begin(
                input,
                output,
                module.limits().output,
                seed,
                Run::default(),
            );
            seat.live.store.set_fuel(fuel).map_err(failed)?;
            let result = seat.live.call();
            let left = seat.live.store.get_fuel().map_err(failed)?;
            let guest = seat.live.store.data_mut();
            guest.end();
            let outcome = match result {
                Ok(exit) => Outcome::Done { exit },
                Err(error) if error.is::<Exit>() => Outcome::Done {
                    exit: guest.exit.unwrap_or(0),
                },
                Err(error) => match error.downcast_ref::<wasmtime::Trap>() {
                    Some(wasmtime::Trap::OutOfFuel) => return Err(CostError::Limit { limit }),
                    trap => Outcome::Trap(trap.map_or(Trap::Other, |trap| (*trap).into())),
                },
            };
            Ok((fuel - left, outcome))
        };
        let (all, outcome) = run(&meter.all, 2)?;
        if all > limit {
            return Err(CostError::Limit { limit });
        }
        let repeatable = run(&meter.all, 2)?.0 == all;
        // One operator may fill or copy many bytes.
        let more =
            |engine, weight| Ok::<u64, CostError>(run(engine, weight)?.0.saturating_sub(all));
        let (memory, division) = (more(&meter.memory, 2)?, more(&meter.division, 2)?);
        let (call, bytes) = (more(&meter.call, 2)?, more(&meter.bytes, 65536)?);
        let other = all.saturating_sub(memory + division + call);
        Ok(Cost {
            counts: Counts {
                memory,
                division,
                call,
                other,
                bytes,
            },
            outcome,
            repeatable,
        })
    }
}
