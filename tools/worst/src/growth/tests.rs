//! The study finds what is declared right, and what is declared wrong.

use metes_heap::complexity::{Axis, Declaration, Growth, Time};

use super::{Concurrent, Design, Effort, Operation, Row, Verdict, concurrent, designs, overview};

fn of(names: &[&str]) -> Vec<Design> {
    let mut all = designs();
    all.retain(|design| names.contains(&design.name.as_str()));
    assert_eq!(all.len(), names.len(), "all are there");
    all
}

fn study(designs: &[Design]) -> Vec<Row> {
    overview(designs, Effort::Quick, &mut |_| {}).expect("counts")
}

fn find<'r>(rows: &'r [Row], heap: &str, operation: Operation, axis: Axis) -> &'r Row {
    rows.iter()
        .find(|row| row.heap == heap && row.operation == operation && row.axis == axis)
        .expect("a row")
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore)]
fn declarations_stand_and_walks_are_found() {
    let rows = study(&of(&[
        "first-fit:order=lifo",
        "tlsf",
        "buddy",
        "compact-fit:kappa=1",
        "compact-fit, block table",
        "fragmented",
    ]));
    // Three operations of six heaps along two axes: nothing declared is left uncounted.
    assert_eq!(rows.len(), 3 * 6 * 2);
    for row in &rows {
        assert_ne!(row.verdict(), Verdict::Contradicted, "{row:?}");
        assert_ne!(row.verdict(), Verdict::Open, "{row:?}");
    }
    let growth = |heap, operation, axis| {
        let row = find(&rows, heap, operation, axis);
        assert_eq!(row.verdict(), Verdict::Reached, "{row:?}");
        row.declared.growth
    };
    use Operation::{Access, Allocate, Free};
    let lifo = "first-fit:order=lifo";
    assert_eq!(growth(lifo, Allocate, Axis::Heap), Growth::Linear);
    assert_eq!(growth(lifo, Free, Axis::Heap), Growth::Constant);
    assert_eq!(growth("tlsf", Allocate, Axis::Heap), Growth::Constant);
    assert_eq!(growth("buddy", Allocate, Axis::Heap), Growth::Logarithmic);
    assert_eq!(growth("buddy", Free, Axis::Heap), Growth::Logarithmic);
    let moving = "compact-fit:kappa=1";
    assert_eq!(growth(moving, Allocate, Axis::Block), Growth::Constant);
    assert_eq!(growth(moving, Free, Axis::Block), Growth::Linear);
    assert_eq!(growth(moving, Free, Axis::Heap), Growth::Constant);
    let table = "compact-fit, block table";
    assert_eq!(growth(table, Allocate, Axis::Block), Growth::Linear);
    assert_eq!(growth(table, Access, Axis::Block), Growth::Constant);
    assert_eq!(
        growth("fragmented", Access, Axis::Block),
        Growth::Logarithmic
    );
    assert_eq!(growth("fragmented", Free, Axis::Block), Growth::Linear);
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore)]
fn a_wrong_declaration_is_contradicted() {
    let constant = of(&["tlsf"])[0].declared;
    let mut planted = of(&["best-fit:order=lifo", "fragmented:shape=chain"]);
    for design in &mut planted {
        design.declared = constant;
    }
    let rows = study(&planted);
    let contradicted = |heap, operation, axis| {
        find(&rows, heap, operation, axis).verdict() == Verdict::Contradicted
    };
    let best = "best-fit:order=lifo";
    assert!(contradicted(best, Operation::Allocate, Axis::Heap));
    assert!(!contradicted(best, Operation::Free, Axis::Heap));
    assert!(!contradicted(best, Operation::Allocate, Axis::Block));
    let chain = "fragmented:shape=chain";
    for operation in [Operation::Allocate, Operation::Free, Operation::Access] {
        assert!(contradicted(chain, operation, Axis::Block));
        assert!(!contradicted(chain, operation, Axis::Heap));
    }
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore)]
fn a_declaration_too_high_is_not_tight() {
    let mut tlsf = of(&["tlsf"]);
    let times = tlsf[0].declared.times;
    tlsf[0].declared = Declaration {
        times: metes_heap::bounds::Times {
            allocate: Time::Holes,
            ..times
        },
        ..tlsf[0].declared
    };
    let rows = study(&tlsf);
    let row = find(&rows, "tlsf", Operation::Allocate, Axis::Heap);
    assert_eq!(row.verdict(), Verdict::NotTight);
}

#[test]
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), ignore)]
fn no_configuration_of_compact_fit_is_contradicted() {
    let mut configurations = Concurrent::all();
    configurations.retain(|Concurrent(own)| own.shared == own.compacting);
    let rows = concurrent(&configurations, Effort::Quick, &mut |_| {}).expect("counts");
    for row in &rows {
        assert_ne!(row.verdict(), Verdict::Contradicted, "{row:?}");
        assert_ne!(row.verdict(), Verdict::Open, "{row:?}");
    }
    // What makes an increment worth its while.
    let latency = |heap: &str, axis| find(&rows, heap, Operation::Latency, axis);
    let whole = latency("1-CF(κ, ∞)", Axis::Block);
    let increments = latency("1-CF(κ, ι)", Axis::Block);
    assert_eq!(whole.declared.growth, Growth::Linear);
    assert_eq!(increments.declared.growth, Growth::Constant);
    let longest = |row: &Row| row.points.last().map(|point| point.count);
    assert!(longest(whole) > longest(increments));
    let by_increment = latency("1-CF(κ, ι)", Axis::Increment);
    assert_eq!(by_increment.declared.growth, Growth::Linear);
}
