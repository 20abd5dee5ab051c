//! Bounds of a trace beside what the trace does, event by event.

use std::collections::{BTreeMap, HashMap};

use metes_bounds::{Axis, Classes, Counted, Method, Observed, Options, observe, observe_also};
use metes_curve::{Rational, Value};
use metes_heap::bounds::Geometry;
use metes_trace::{Op, Trace};
use proptest::prelude::*;

/// Most bytes live at one time, by class and in total, a resized block in both sizes at its resize.
fn peaks(trace: &Trace, classes: Classes) -> (BTreeMap<u64, u128>, u128, u128) {
    let mut live: BTreeMap<u64, u128> = BTreeMap::new();
    let mut peaks = live.clone();
    let (mut all, mut moving, mut settled) = (0, 0, 0);
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    for event in trace.iter() {
        let mut enter = |size: u64| {
            let class = live.entry(classes.of(size)).or_default();
            *class += u128::from(size);
            all += u128::from(size);
            let peak = peaks.entry(classes.of(size)).or_default();
            *peak = (*peak).max(*class);
            moving = all.max(moving);
        };
        if matches!(event.op, Op::Alloc | Op::Resize) {
            enter(event.size);
        }
        let old = match event.op {
            Op::Alloc => None,
            _ => sizes.remove(&event.block),
        };
        if let Some(size) = old {
            *live.get_mut(&classes.of(size)).unwrap() -= u128::from(size);
            all -= u128::from(size);
        }
        if matches!(event.op, Op::Alloc | Op::Resize) {
            sizes.insert(event.block, event.size);
        }
        settled = all.max(settled);
    }
    (peaks, moving, settled)
}

fn never_below(trace: &Trace, options: Options) -> Result<Observed, TestCaseError> {
    let observed = observe(trace, options).unwrap();
    let (peaks, moving, settled) = peaks(trace, options.classes);
    prop_assert_eq!(observed.peak, settled);
    prop_assert!(observed.total.peak >= moving);
    for share in observed.classes.iter().chain([&observed.total]) {
        prop_assert!(
            share.bounds.iter().all(|(_, bound)| *bound >= share.peak),
            "{share:?}"
        );
        prop_assert!(
            share
                .bounds
                .iter()
                .all(|(_, bound)| *bound >= share.bound())
        );
    }
    for (class, peak) in &peaks {
        let share = observed
            .classes
            .iter()
            .find(|share| share.largest == *class)
            .unwrap();
        prop_assert!(share.peak >= *peak);
        if options.axis == Axis::Events {
            prop_assert_eq!(share.peak, *peak);
        }
    }
    Ok(observed)
}

fn options() -> impl Strategy<Value = Options> {
    let classes = [
        Classes::Powers,
        Classes::Sizes,
        Classes::Blocks(Geometry::TAGGED_64),
    ];
    let axes = [Axis::Events, Axis::Nanoseconds];
    let resolutions = [1, 3, 16];
    (0..3_usize, 0..2_usize, 0..3_usize).prop_map(move |(class, axis, resolution)| {
        let mut options = Options::default();
        (options.classes, options.axis) = (classes[class], axes[axis]);
        options.resolution = resolutions[resolution];
        options
    })
}

fn timed(trace: &Trace) -> bool {
    trace.times().iter().any(|time| time > 0)
}

fn finite(value: Option<Value>) -> Option<Rational> {
    match value {
        Some(Value::Finite(number)) => Some(number),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bound_is_below_what_is_live(trace in crate::common::traces(120), options in options()) {
        prop_assume!(options.axis == Axis::Events || timed(&trace));
        never_below(&trace, options)?;
    }

    #[test]
    fn counting_again_gives_what_looking_again_gives(
        trace in crate::common::traces(60),
        options in options(),
    ) {
        prop_assume!(options.axis == Axis::Events || timed(&trace));
        let ways = [
            Counted::Requested,
            Counted::AtLeast(1),
            Counted::AtLeast(100),
            Counted::Block(Geometry::TAGGED_64),
        ];
        let shares = std::cell::RefCell::new(vec![0.0]);
        let tell = |share: f64| shares.borrow_mut().push(share);
        let (observed, also) = observe_also(&trace, options, ways, &tell).unwrap();
        prop_assert_eq!(observed.total.bound(), observe(&trace, options).unwrap().total.bound());
        for (counted, bound) in ways.into_iter().zip(also) {
            let again = observe(&trace, Options { counted, ..options }).unwrap();
            prop_assert_eq!(bound, again.total.bound(), "{:?}", counted);
        }
        let shares = shares.into_inner();
        prop_assert!(shares.is_sorted());
        prop_assert_eq!(shares.last(), Some(&1.0));
    }

    #[test]
    fn curves_hold_in_every_window(trace in crate::common::traces(40), options in options()) {
        prop_assume!(options.axis == Axis::Events || timed(&trace));
        let observed = observe(&trace, options).unwrap();
        let alpha = observed.total.arrival.curve().unwrap();
        let beta = observed.total.release.curve().unwrap();
        let time = |index: usize| match options.axis {
            Axis::Events => index as u64,
            Axis::Nanoseconds => trace.times().get(index).unwrap(),
        };
        let number = |value: u64| Rational::from(value as i64);
        // What arrives in each closed window, and the most in any of its length.
        let mut most: BTreeMap<u64, u64> = BTreeMap::new();
        for first in 0..trace.len() {
            let mut bytes = 0;
            for last in first..trace.len() {
                bytes += trace.sizes().get(last).unwrap();
                let length = time(last) - time(first);
                let behind = &number(length) + &Rational::new(1, 2).unwrap();
                prop_assert!(finite(alpha.value(&behind)).unwrap() >= number(bytes));
                let entry = most.entry(length).or_default();
                *entry = (*entry).max(bytes);
            }
        }
        let mut so_far = 0;
        for (length, bytes) in most {
            so_far = bytes.max(so_far);
            if observed.total.arrival.is_exact() {
                // Right of a length is what closed windows of that length hold.
                let right = &number(length) + &Rational::new(1, 2).unwrap();
                prop_assert_eq!(finite(alpha.value(&right)).unwrap(), number(so_far));
            }
        }
        // Behind the trace nothing more arrives, at whole times and between them.
        let far = number(time(trace.len() - 1) + 7);
        let all = Some(Value::Finite(number(trace.sizes().iter().sum())));
        prop_assert_eq!(alpha.value(&far), all.clone());
        prop_assert_eq!(alpha.value(&(&far + &Rational::new(1, 3).unwrap())), all);
        // The vertical deviation of the curves is what the bound is made of.
        let (_, released) = observed.total.bounds.iter().find(|(method, _)| *method == Method::Release).unwrap();
        let deviation = alpha.vertical_deviation(&beta).unwrap().value;
        if observed.total.never_freed == 0 {
            prop_assert_eq!(deviation, Value::Finite(number(*released as u64)));
        } else {
            prop_assert!(deviation >= Value::Finite(number(*released as u64)));
        }
        alpha.horizontal_deviation(&beta).unwrap();
        // What is freed in each window while something is live: allocations first at one time.
        let mut sizes: HashMap<u64, u64> = HashMap::new();
        let mut at: BTreeMap<u64, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
        for (index, event) in trace.iter().enumerate() {
            let tick = at.entry(time(index)).or_default();
            if event.op != Op::Alloc {
                tick.1.extend(sizes.remove(&event.block));
            }
            if event.op != Op::Free {
                sizes.insert(event.block, event.size);
                tick.0.push(event.size);
            }
        }
        let (mut live, mut begin) = (0, 0);
        let mut freed: Vec<(u64, u64)> = Vec::new();
        for (now, (arrived, left)) in &at {
            if live == 0 {
                begin = *now;
            }
            live += arrived.len();
            // Windows [s, now) since all was free.
            for start in begin..=*now {
                let bytes: u64 = freed.iter().filter(|(when, _)| *when >= start).map(|(_, b)| b).sum();
                let least = finite(beta.value(&number(now - start))).expect("as long as a window");
                prop_assert!(number(bytes) >= least, "{bytes} in [{start}, {now}): {least}");
            }
            live -= left.len();
            freed.extend(left.iter().map(|bytes| (*now, *bytes)));
        }
    }
}

#[test]
fn recorded_traces_are_bounded() {
    for (name, trace) in crate::common::recorded() {
        let profile = metes_trace::profile(&trace);
        for classes in [
            Classes::Powers,
            Classes::Sizes,
            Classes::Blocks(Geometry::TAGGED_64),
        ] {
            let options = Options {
                classes,
                ..Options::default()
            };
            let observed =
                never_below(&trace, options).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(observed.peak, u128::from(profile.peak_live), "{name}");
            assert!(observed.total.bound() <= observed.total.bytes);
        }
        // Blocks take more than was asked for.
        let options = Options {
            counted: Counted::Block(Geometry::TAGGED_64),
            ..Options::default()
        };
        let blocks = observe(&trace, options).unwrap();
        assert!(blocks.total.bound() > observe(&trace, Options::default()).unwrap().total.bound());
    }
}

#[test]
fn a_program_known_by_hand() {
    // Ten times: three blocks of 16, freed at once.
    let mut builder = metes_trace::TraceBuilder::new();
    for _ in 0..10 {
        let blocks: Vec<_> = (0..3)
            .map(|_| builder.alloc(0, 0, 16, 8).unwrap())
            .collect();
        for block in blocks {
            builder.free(0, 0, block).unwrap();
        }
    }
    let observed = observe(&builder.finish(Default::default()), Options::default()).unwrap();
    let total = &observed.total;
    // A block is live in three events: its own and two more.
    assert_eq!((total.lifetime, total.peak, total.bound()), (2, 48, 48));
    assert_eq!(
        total.arrival.steps()[..4],
        [(0, 16), (1, 32), (2, 48), (6, 64)]
    );
    // The period from an allocation to the last free is 5 long: two are freed before it.
    assert_eq!(total.release.steps(), [(0, 0), (4, 16), (5, 32)]);
    assert_eq!((total.busy, total.never_freed), (5, 0));
}
