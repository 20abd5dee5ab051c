//! Nodes that are threads of this process.
//!
//! Invariant: a thread that dies where it was told to takes no step afterwards, and is taken for dead then.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use metes_heap::Tagged;
use metes_heap::index::Index;

use crate::common::Common;
use crate::life::Life;
use crate::lists::Lists;
use crate::replay::{Kill, kill_of};

/// What unwinds a thread that dies.
struct Death;

/// Nobody is told of a death, so no hook of panics either.
fn die() -> ! {
    resume_unwind(Box::new(Death))
}

/// Does the operations of all nodes at once.
pub(crate) fn run<I: Index<Tagged> + Clone + Send>(
    common: &Common<I>,
    lists: &Lists,
    kills: &[Kill],
) {
    let one = |node| {
        let life = Life {
            fabric: &common.nodes,
            board: common,
            lists,
            node,
        };
        let lived = catch_unwind(AssertUnwindSafe(|| {
            life.live(kill_of(kills, node), die, &mut ());
        }));
        match lived {
            Ok(()) => {}
            Err(payload) if payload.is::<Death>() => life.bury(node),
            Err(payload) => resume_unwind(payload),
        }
    };
    std::thread::scope(|scope| {
        for node in 0..lists.nodes() {
            scope.spawn(move || one(node));
        }
    });
}
