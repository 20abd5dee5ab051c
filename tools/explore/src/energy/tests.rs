//! Prices by hand, and the bound.

use std::path::Path;

use metes_heap::IndexKind;
use metes_heap::description::{General, List};
use proptest::prelude::*;

use super::*;
use crate::events::{EventsBuilder, Operation};
use crate::replay::{Options, Replayer};

/// Two levels with figures that are easy to multiply.
const ROUND: &str = "
[run]
clock_mhz = 100
[[level]]
name = \"near\"
size = 1024
read_nj = 0.001
write_nj = 0.002
latency_ns = 1
leakage_mw = 0.5
[[level]]
name = \"far\"
size = \"1 MiB\"
word_bits = 64
read_nj = 0.1
write_nj = 0.2
latency_ns = 10
leakage_mw = 3
";

fn two_pools() -> Description {
    let pool = |up_to, level| General {
        up_to,
        level,
        ..General::of(IndexKind::tlsf(8))
    };
    Description {
        general: List::from_slice(&[pool(64, 0), pool(usize::MAX, 1)]),
        ..Description::of(IndexKind::Kingsley)
    }
}

fn round() -> Hierarchy {
    Hierarchy::parse(ROUND, "round.toml", Path::new("")).unwrap()
}

fn counts(near: [u64; 6], far: [u64; 6]) -> [Counts; LEVELS] {
    let of = |[
        record_reads,
        record_writes,
        application_reads,
        application_writes,
        copied_from,
        copied_to,
    ]: [u64; 6]| Counts {
        record_reads,
        record_writes,
        application_reads,
        application_writes,
        copied_from,
        copied_to,
        footprint: 1000,
    };
    [of(near), of(far), Counts::default(), Counts::default()]
}

#[test]
fn energy_and_time_by_hand() {
    let hierarchy = round();
    let pricer = hierarchy.pricer(&two_pools(), &[None; LEVELS], 4).unwrap();
    // Near, words of 32 bits: 10 × 2 + 100 + 9/4 reads, 5 × 2 + 50 + 0 writes.
    // Far, words of 64 bits: 7 + 40 + 0 reads, 3 + 20 + 9/8 writes.
    let counts = counts([10, 5, 100, 50, 9, 0], [7, 3, 40, 20, 0, 9]);
    let work = Work {
        operation_cycles: 30,
        instructions: 70,
        ..Work::default()
    };
    let price = pricer.price(&counts, &work).unwrap();
    let [near, far, ..] = price.levels;
    assert_eq!((near.reads, near.writes), (123, 60));
    assert_eq!((far.reads, far.writes), (47, 25));
    // 1000 and 2000 fJ an access, 100 000 and 200 000 fJ.
    assert_eq!(near.energy_fj, 123 * 1000 + 60 * 2000);
    assert_eq!(far.energy_fj, 47 * 100_000 + 25 * 200_000);
    assert_eq!(price.energy_fj, 243_000 + 9_700_000);
    // 100 cycles of 10 ns, 183 accesses of 1 ns, 72 of 10 ns.
    assert_eq!(price.compute_ps, 1_000_000);
    assert_eq!(near.time_ps, 183_000);
    assert_eq!(far.time_ps, 720_000);
    assert_eq!(price.time_ps, 1_903_000);
    // 500 and 3000 µW over 1 903 000 ps, a thousandth of which are fJ.
    assert_eq!(near.leakage_fj, 951_500);
    assert_eq!(far.leakage_fj, 5_709_000);
    assert_eq!(price.leakage_fj, 6_660_500);

    let report = pricer.explain(&counts, &price);
    assert_eq!(report.energy, 9_943_000.0 / 1e15);
    assert_eq!(report.time, 1.903e-6);
    assert_eq!(report.levels[1].source, "round.toml:11");
    for level in &report.levels {
        let own = level.reads as f64 * level.read_nj + level.writes as f64 * level.write_nj;
        assert!((own * 1e-9 - level.energy).abs() < 1e-18, "{level:?}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["levels"][0]["record_reads"], 10);
    assert_eq!(json["energy_fj"], 9_943_000);
}

#[test]
fn a_trillion_accesses_do_not_overflow() {
    let hierarchy = Hierarchy::spec("main=64MiB@lpddr-333-miss").unwrap();
    let heap = Description::of(IndexKind::tlsf(8));
    let pricer = hierarchy.pricer(&heap, &[None; LEVELS], 4).unwrap();
    let mut counts = [Counts::default(); LEVELS];
    counts[0].application_reads = 1_000_000_000_000;
    let price = pricer.price(&counts, &Work::default()).unwrap();
    assert_eq!(price.energy_fj, 13_200_000_000_000_000_000);
    assert_eq!(price.time_ps, 60_240_000_000_000_000);
    // 29.53 mW over 60 240 seconds: 1.8 kJ.
    assert_eq!(price.leakage_fj, 1_778_887_200_000_000_000);
    counts[0].record_reads = 1_000_000_000_000;
    let error = pricer.price(&counts, &Work::default()).unwrap_err();
    assert_eq!(error, EnergyError::Overflow);
    assert_eq!(
        pricer.least(&counts, &Work::default(), 0, 0).energy_fj,
        u64::MAX
    );
}

#[test]
fn a_range_takes_the_smallest_size_that_holds_the_pools() {
    let hierarchy = Hierarchy::spec("main=1MiB..8MiB").unwrap();
    assert_eq!(hierarchy.sizes()[0], Some(8 << 20));
    let heap = Description::of(IndexKind::tlsf(8));
    let sized = |footprint, sizes: [Option<usize>; LEVELS]| {
        let pricer = hierarchy.pricer(&heap, &sizes, 4)?;
        let mut counts = [Counts::default(); LEVELS];
        counts[0].footprint = footprint;
        let price = pricer.price(&counts, &Work::default())?;
        let report = pricer.explain(&counts, &price);
        Ok((price.levels[0].size >> 20, report.levels[0].source.clone()))
    };
    let free = [None; LEVELS];
    assert_eq!(sized(1, free).unwrap().0, 1);
    assert_eq!(sized(1 << 20, free).unwrap().0, 1);
    let (size, source) = sized((1 << 20) + 1, free).unwrap();
    assert_eq!(size, 2);
    assert_eq!(
        source,
        "cacti_130nm.csv: sram_main 2 MiB (CACTI 6.5-P (June 2014))"
    );
    let mut given = free;
    given[0] = Some(3 << 20);
    assert_eq!(
        sized(1, given).unwrap().0,
        4,
        "what the heap was given counts"
    );
    let error: EnergyError = sized(9 << 20, free).unwrap_err();
    assert_eq!(
        error.to_string(),
        "level `main` of 8 MiB is too small for its pools by 1048576 bytes: they take 9437184 \
         bytes; give it more or move pools to another level"
    );
    given[0] = Some(16 << 20);
    let error = sized(1, given).unwrap_err();
    assert!(matches!(error, EnergyError::TooLarge { .. }), "{error}");
}

#[test]
fn heap_and_hierarchy_must_go_together() {
    let one = Hierarchy::spec("main=1MiB").unwrap();
    let error = one.pricer(&two_pools(), &[None; LEVELS], 4).unwrap_err();
    assert!(
        error.to_string().contains("pools in memory level 1"),
        "{error}"
    );
    let error = one
        .pricer(
            &Description::of(IndexKind::Kingsley),
            &[None; LEVELS],
            1 << 30,
        )
        .unwrap_err();
    assert!(matches!(error, EnergyError::WideWord { .. }));
}

/// A program that fills two levels in bursts and touches what it holds.
fn busy(seed: u64) -> Events {
    let mut builder = EventsBuilder::new();
    builder.recorded(4, 1_000_000);
    let mut random = seed;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut live = Vec::new();
    for serial in 0..6000 {
        let burst = serial / 500 % 2 == 0;
        if live.is_empty() || below(10) < if burst { 8 } else { 3 } {
            let size = if below(3) == 0 {
                200 + below(3000)
            } else {
                8 + below(56)
            };
            builder.push(Operation::Allocate, serial, size, 16).unwrap();
            live.push(serial);
            continue;
        }
        let block = live[below(live.len() as u64) as usize];
        let accesses = Accesses {
            reads: below(300),
            writes: below(100),
        };
        builder.access(block, accesses).unwrap();
        if below(8) == 0 {
            builder
                .push(Operation::Resize, block, 1 + below(2000), 16)
                .unwrap();
        } else {
            builder.push(Operation::Free, block, 0, 0).unwrap();
            live.retain(|&own| own != block);
        }
    }
    builder.finish()
}

#[test]
fn the_bound_holds_while_a_heap_is_replayed() {
    let hierarchy = Hierarchy::spec("near=4KiB..128KiB,main=256KiB..8MiB").unwrap();
    for seed in 1..=4 {
        let events = busy(seed * 0x9E37_79B9);
        let heap = two_pools();
        let mut options = Options::default();
        options.arena.levels = hierarchy.sizes();
        let pricer = hierarchy
            .pricer(&heap, &[None; LEVELS], events.access_word())
            .unwrap();
        let work = Work::of(&events, &options.cost);
        let mut bounds = Vec::new();
        let measured = Replayer::new().totals(&heap, &events, &options, &mut |totals| {
            bounds.push(pricer.least(&totals.levels, &work, 0, 0));
            true
        });
        assert_eq!(measured.totals.failed, 0);
        let price = pricer.price(&measured.totals.levels, &work).unwrap();
        assert!(bounds.len() >= 6, "several looks: {}", bounds.len());
        for pair in bounds.windows(2) {
            assert!(pair[0].energy_fj <= pair[1].energy_fj && pair[0].time_ps <= pair[1].time_ps);
        }
        // All counted and no size still open but larger, dearer ones: exact.
        let last = bounds[bounds.len() - 1];
        assert_eq!(
            (last.energy_fj, last.leakage_fj, last.time_ps),
            (price.energy_fj, price.leakage_fj, price.time_ps)
        );
        // And of use from the beginning: the program's accesses are known.
        assert!(
            bounds[0].time_ps > price.time_ps / 3,
            "{:?} {price:?}",
            bounds[0]
        );
        assert!(price.levels[0].reads > 0 && price.levels[1].reads > 0);
    }
}

/// Any hierarchy of one or two levels, with figures that need not rise with size.
fn hierarchies() -> impl Strategy<Value = Hierarchy> {
    let figure = || 0_u64..5000;
    let figures = (figure(), figure(), figure(), figure()).prop_map(
        |(read_fj, write_fj, latency_ps, leakage_uw)| Figures {
            read_fj,
            write_fj,
            latency_ps,
            leakage_uw,
        },
    );
    let level = (
        prop::collection::vec(figures, 1..5),
        prop::sample::select(vec![16_u32, 32, 64]),
    );
    let levels = prop::collection::vec(level, 2);
    (levels, 1_000_000_u64..1_000_000_000).prop_map(|(levels, clock_hz)| {
        let level = |(number, (figures, word_bits)): (usize, (Vec<Figures>, u32))| {
            let memory = |(log2, figures)| crate::hierarchy::Memory {
                size: 1_u64 << (12 + log2),
                figures,
                source: String::new(),
            };
            crate::hierarchy::Level {
                name: number.to_string(),
                word_bits,
                memories: figures.into_iter().enumerate().map(memory).collect(),
            }
        };
        Hierarchy {
            levels: levels.into_iter().enumerate().map(level).collect(),
            clock_hz,
            leakage: Leakage::Tool,
        }
    })
}

/// What happens between two looks at a replay: amounts added, by level.
type Addition = [[u64; 7]; 2];

fn additions() -> impl Strategy<Value = Vec<Addition>> {
    let amounts = || prop::array::uniform7(0_u64..2000);
    prop::collection::vec(
        (amounts(), amounts()).prop_map(|(near, far)| [near, far]),
        1..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_rises_to_the_price_and_never_above(
        hierarchy in hierarchies(),
        additions in additions(),
        operation_cycles in 0_u64..100_000,
        instructions in 0_u64..100_000,
        access_word in prop::sample::select(vec![1_u32, 4, 8]),
    ) {
        let mut states = vec![[Counts::default(); LEVELS]];
        for addition in &additions {
            let mut now = states[states.len() - 1];
            for (counts, more) in now.iter_mut().zip(addition) {
                counts.record_reads += more[0];
                counts.record_writes += more[1];
                counts.application_reads += more[2];
                counts.application_writes += more[3];
                counts.copied_from += more[4];
                counts.copied_to += more[5];
                counts.footprint += more[6];
            }
            states.push(now);
        }
        let last = states[states.len() - 1];
        let sum = |of: fn(&Counts) -> u64| last.iter().map(of).sum::<u64>();
        let work = Work {
            operation_cycles,
            instructions,
            application: Accesses {
                reads: sum(|counts| counts.application_reads),
                writes: sum(|counts| counts.application_writes),
            },
        };
        let heap = two_pools();
        let pricer = hierarchy.pricer(&heap, &[None; LEVELS], access_word).unwrap();
        let mut before = Least::default();
        for counts in &states {
            // All that the rest will touch, and half of it.
            let reads = sum(|c| c.record_reads) - counts.iter().map(|c| c.record_reads).sum::<u64>();
            let writes = sum(|c| c.record_writes) - counts.iter().map(|c| c.record_writes).sum::<u64>();
            let least = pricer.least(counts, &work, reads, writes);
            let less = pricer.least(counts, &work, reads / 2, writes / 2);
            prop_assert!(less.energy_fj <= least.energy_fj && less.time_ps <= least.time_ps);
            prop_assert!(before.energy_fj <= least.energy_fj, "{before:?} {least:?}");
            prop_assert!(before.leakage_fj <= least.leakage_fj, "{before:?} {least:?}");
            prop_assert!(before.time_ps <= least.time_ps, "{before:?} {least:?}");
            before = least;
        }
        if let Ok(price) = pricer.price(&last, &work) {
            prop_assert!(before.energy_fj <= price.energy_fj, "{before:?} {price:?}");
            prop_assert!(before.leakage_fj <= price.leakage_fj, "{before:?} {price:?}");
            prop_assert!(before.time_ps <= price.time_ps, "{before:?} {price:?}");
        }
    }
}
