//! What several of these tests take: one heap of each kind, and initialised memory.

use metes_heap::store::tagged::Memory;
use metes_heap::{Fit, IndexKind, Links, Order, SizeTable};

/// Every kind of index, the searched lists by one example a fit: where `metes_oracle::kinds`, with
/// every order and limit, would take long. Under Miri three that share little code.
pub(crate) fn kinds() -> Vec<IndexKind> {
    let list = |fit, order, links| IndexKind::List {
        fit,
        order,
        depth_percent: 100,
        max_fit_percent: 0,
        links,
    };
    let kinds = vec![
        IndexKind::tlsf(32),
        IndexKind::tlsf(1),
        IndexKind::Classes {
            second_level: 4,
            probes: usize::MAX,
        },
        IndexKind::Kingsley,
        IndexKind::Lea { keep_up_to: 128 },
        IndexKind::FirstFit {
            by_class: false,
            span: None,
        },
        IndexKind::FirstFit {
            by_class: true,
            span: None,
        },
        IndexKind::Buddy { lowest: false },
        IndexKind::Buddy { lowest: true },
        IndexKind::FixedSizes {
            sizes: SizeTable::DEFAULT,
        },
        IndexKind::FixedSizes {
            sizes: SizeTable::new(&[32, 96, 224, 1536]).unwrap(),
        },
        list(Fit::First, Order::Address, Links::Single),
        list(Fit::Next, Order::Fifo, Links::Double),
        list(Fit::First, Order::Lifo, Links::Single),
        list(Fit::Best, Order::Address, Links::Single),
        list(Fit::Worst, Order::Address, Links::Double),
        list(Fit::Exact, Order::Lifo, Links::Double),
    ];
    kinds
        .into_iter()
        .step_by(if cfg!(miri) { 5 } else { 1 })
        .collect()
}

/// Memory that a hardened heap may have: initialised. Leaked unless given back to the oracle.
pub(crate) fn zeroed(bytes: usize) -> Memory {
    let memory = metes_oracle::memory(bytes);
    // SAFETY: fresh memory of that length.
    unsafe { memory.start().as_ptr().write_bytes(0, bytes) };
    memory
}
