//! The profile against a naive model that keeps every block in a list.

use std::collections::BTreeMap;

use crate::common::traces;
use metes_trace::profile::CURVE_POINTS;
use metes_trace::{Op, Provenance, Trace, TraceBuilder, profile};
use proptest::prelude::*;

/// Live blocks and their sizes after each event.
fn states(trace: &Trace) -> Vec<BTreeMap<u64, u64>> {
    let mut live = BTreeMap::new();
    trace
        .iter()
        .map(|event| {
            match event.op {
                Op::Alloc | Op::Resize => {
                    live.insert(event.block, event.size);
                }
                Op::Free => {
                    live.remove(&event.block);
                }
                Op::Access => {}
            }
            live.clone()
        })
        .collect()
}

fn sum(live: &BTreeMap<u64, u64>) -> u64 {
    live.values()
        .fold(0, |sum, size| u64::saturating_add(sum, *size))
}

proptest! {
    // About one trace in ten has no size too large for the model.
    #![proptest_config(ProptestConfig { cases: 128, max_global_rejects: 1 << 20, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(trace in traces(120)) {
        // Sums beyond 64 bits saturate, in another order in the model.
        prop_assume!(trace.sizes().iter().all(|size| size < 1 << 40));
        let profile = profile(&trace);
        let states = states(&trace);
        let peak = states.iter().map(sum).max().unwrap_or(0);
        prop_assert_eq!(profile.peak_live, peak);
        prop_assert_eq!(sum(&states[profile.peak_live_seq as usize]), peak);
        prop_assert_eq!(profile.peak_blocks as usize, states.iter().map(BTreeMap::len).max().unwrap());
        prop_assert_eq!(profile.final_live, sum(states.last().unwrap()));
        prop_assert_eq!(profile.final_blocks as usize, states.last().unwrap().len());
        for point in &profile.curve {
            prop_assert_eq!(point.live, sum(&states[point.seq as usize]));
            prop_assert_eq!(point.blocks as usize, states[point.seq as usize].len());
        }
        prop_assert_eq!(profile.curve.iter().map(|point| point.live).max().unwrap(), peak);

        let count = |op: Op| trace.ops().iter().filter(|&&other| other == op).count() as u64;
        prop_assert_eq!(profile.allocations, count(Op::Alloc));
        prop_assert_eq!(profile.frees, count(Op::Free));
        prop_assert_eq!(profile.resizes, count(Op::Resize));
        for row in &profile.sizes {
            let of_size = |live: &BTreeMap<u64, u64>| live.values().filter(|&&size| size == row.size).count();
            prop_assert_eq!(row.peak_live as usize, states.iter().map(of_size).max().unwrap());
            let events = |op: Op| trace.iter().filter(|event| event.op == op && event.size == row.size).count() as u64;
            prop_assert_eq!(row.allocations, events(Op::Alloc));
            prop_assert_eq!(row.resizes_to, events(Op::Resize));
            let mut spans = Vec::new();
            for birth in trace.iter().filter(|event| event.op == Op::Alloc && event.size == row.size) {
                let death = trace.iter().find(|event| event.op == Op::Free && event.block == birth.block);
                spans.extend(death.map(|death| (death.seq - birth.seq, death.time_ns - birth.time_ns)));
            }
            let mean = |sum: u64| (!spans.is_empty()).then(|| sum as f64 / spans.len() as f64);
            prop_assert_eq!(row.mean_lifespan_events, mean(spans.iter().map(|span| span.0).sum()));
            if row.mean_lifespan_ns.is_some() {
                prop_assert_eq!(row.mean_lifespan_ns, mean(spans.iter().map(|span| span.1).sum()));
            }
        }
        let crossed = trace.iter().filter(|event| event.op == Op::Free).filter(|free| {
            let birth = trace.iter().find(|event| event.op == Op::Alloc && event.block == free.block);
            birth.unwrap().thread != free.thread
        });
        prop_assert_eq!(profile.cross_thread_frees as usize, crossed.count());
        prop_assert_eq!(profile.lifespan_events.count, profile.frees);
        prop_assert_eq!(profile.allocation_bursts.sum, u128::from(profile.allocations));
        prop_assert_eq!(profile.free_bursts.sum, u128::from(profile.frees));
    }

    #[test]
    fn renders_and_serialises(trace in traces(60)) {
        let profile = profile(&trace);
        let text = profile.to_string();
        prop_assert!(text.contains("peak live"));
        let json = serde_json::to_value(&profile).unwrap();
        prop_assert_eq!(json["peak_live"].as_u64(), Some(profile.peak_live));
    }
}

#[test]
fn the_curve_is_short_and_keeps_the_peak() {
    let mut builder = TraceBuilder::new();
    for round in 0..50_000u64 {
        let size = if round == 31_415 {
            1_000_000
        } else {
            10 + round % 7
        };
        let block = builder.alloc(round, 0, size, 16).unwrap();
        builder.free(round, 0, block).unwrap();
    }
    let profile = profile(&builder.finish(Provenance::default()));
    assert!(
        profile.curve.len() <= CURVE_POINTS,
        "{} points",
        profile.curve.len()
    );
    assert!(
        profile
            .curve
            .iter()
            .any(|point| point.live == 1_000_000 && point.seq == 62_830)
    );
    assert!(profile.curve.is_sorted_by_key(|point| point.seq));
    assert_eq!(
        profile.dominant.len(),
        6,
        "six of seven equal sizes make up 80 %"
    );
    assert_eq!(profile.allocation_bursts.longest, 1);
}
