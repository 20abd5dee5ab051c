//! Instructions that no call can exceed: the longest paths through the code of each heap.
//!
//! Invariant: a bound says nothing of how a heap was used, and is at least what any call of
//! `instructions` took.

use metes_step::{Unbounded, longest_call};
use serde::Serialize;

use crate::peer::Peer;
use crate::report::{Cell, Table};

/// The bounds of one heap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bound {
    /// Heap.
    heap: String,
    /// Of an allocation; none where the code has no longest path.
    allocate: Option<u64>,
    /// Of a free.
    free: Option<u64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why_none: Vec<String>,
}

/// The bounds of a heap.
pub(crate) fn of(peer: &Peer) -> Bound {
    let mut why_none = Vec::new();
    let mut longest = |verb: &str, function: usize| {
        // SAFETY: a function of this program or of a library that it has loaded for good.
        let found = unsafe { longest_call(function) };
        found
            .map_err(|error| why_none.push(format!("{verb}: {}", kind(error))))
            .ok()
    };
    let allocate = longest("allocate", peer.calls.allocate as usize);
    let free = longest("free", peer.calls.free as usize);
    Bound {
        heap: peer.name.to_owned(),
        allocate,
        free,
        why_none,
    }
}

/// What stands in the way, without the address, which differs from run to run.
fn kind(error: Unbounded) -> &'static str {
    match error {
        Unbounded::Loop(_) => "a loop",
        Unbounded::Recursion(_) => "a recursion",
        Unbounded::Indirect(_) => "a call or jump where data says",
        Unbounded::Instruction(_) => "a repeated instruction or the system",
        Unbounded::Undecoded(_) => "code that is not read",
        Unbounded::NeverReturns(_) => "no return",
        Unbounded::Elsewhere => "not x86-64 under Linux",
    }
}

/// The table of bounds, one row a heap.
pub(crate) fn table(bounds: &[Bound]) -> Table {
    let cell =
        |most: Option<u64>| most.map_or_else(Cell::none, |most| Cell::text(most.to_string()));
    Table {
        title: "Instructions that no call can exceed".to_owned(),
        columns: ["heap", "malloc", "free", "why none"]
            .map(str::to_owned)
            .into(),
        rows: bounds
            .iter()
            .map(|bound| {
                vec![
                    Cell::text(&bound.heap),
                    cell(bound.allocate),
                    cell(bound.free),
                    Cell::text(bound.why_none.join("; ")),
                ]
            })
            .collect(),
        remarks: vec![
            "The longest path through the machine code, the call and the return included; whether \
             it can be taken is not asked. Calls that abort are no paths."
                .to_owned(),
        ],
    }
}
