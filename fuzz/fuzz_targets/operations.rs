//! Any sequence of operations on any index, over boundary tags and over a
//! ledger at once: they decide the same, nothing overlaps, every invariant holds.
#![no_main]

use metes_oracle::{Shadow, Step, memory};
use libfuzzer_sys::fuzz_target;
use metes_heap::index::dedicated::{ChosenKeeping, UNLIMITED};
use metes_heap::{
    AnyIndex, ByHandle, Counted, Dedicated, Fit, Geometry, Heap, IndexKind, Ledger, Limits, Order,
    Record, Tagged,
};

const ARENA: usize = 32 << 10;

fn kind(byte: u8) -> IndexKind {
    let fits = [Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact];
    let orders = [Order::Lifo, Order::Fifo, Order::Address];
    match byte % 23 {
        0 => IndexKind::tlsf(1),
        1 => IndexKind::tlsf(32),
        2 => IndexKind::Classes { second_level: 4, probes: 3 },
        3 => IndexKind::Kingsley,
        4 => IndexKind::Buddy { lowest: false },
        5 => IndexKind::Buddy { lowest: true },
        6 => IndexKind::FirstFit { by_class: false, span: None },
        7 => IndexKind::FirstFit { by_class: true, span: None },
        other => {
            let other = usize::from(other - 8);
            IndexKind::list(fits[other % 5], orders[other / 5])
        }
    }
}

fn limits(byte: u8) -> Limits {
    let coalesce_up_to = [usize::MAX, usize::MAX, 0, 512][usize::from(byte % 4)];
    let split_down_to = [0, 0, 256, usize::MAX][usize::from(byte / 4 % 4)];
    Limits { coalesce_up_to, split_down_to }
}

fuzz_target!(|data: &[u8]| {
    let [first, second, third, steps @ ..] = data else { return };
    let sizes = if third % 2 == 0 { [48, 112, 0] } else { [0; 3] };
    let (kind, limits) = (kind(*first), limits(*second));
    let mut records = vec![Record::SPARE; 4096];
    let ledger = Counted::new(Ledger::new(&mut records, ByHandle, Geometry::tagged(8)));
    let keeping = ChosenKeeping {
        limit: [[UNLIMITED, 1, 2, 5][usize::from(third / 2 % 4)]; 3],
        ..ChosenKeeping::DEFAULT
    };
    let mut tagged = Shadow::new(Heap::new(
        Dedicated::with(sizes, keeping, AnyIndex::new(kind, limits)),
        <Tagged>::new(),
    ));
    let mut ledger = Shadow::new(Heap::new(
        Dedicated::with(sizes, keeping, AnyIndex::new(kind, limits)),
        ledger,
    ));
    let arena = memory(ARENA);
    tagged.heap.add_region(arena).unwrap();
    ledger.heap.add_region(ARENA).unwrap();
    for bytes in steps.chunks_exact(3).take(400) {
        let value = usize::from(bytes[1]) | usize::from(bytes[2]) << 8;
        let step = match bytes[0] % 8 {
            0..=3 => Step::Allocate { size: value % 3000, align: 1 << (bytes[0] / 8 % 9) },
            4..=6 => Step::Free { which: value },
            _ => Step::Resize { which: value, size: usize::from(bytes[0] / 8) * 37 },
        };
        assert_eq!(tagged.step(step), ledger.step(step), "{step:?}");
        tagged.verify();
        ledger.verify();
    }
    metes_oracle::give_back(arena);
});
