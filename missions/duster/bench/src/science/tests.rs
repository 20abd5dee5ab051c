use super::*;
use metes_duster_instrument::{FrontEnd, World};
use metes_leon3::devices::SpiSlave;

#[test]
fn ranges_join_and_have_gaps() {
    let mut ranges = Ranges::default();
    assert_eq!(ranges.add(10, 20), 10);
    assert_eq!(ranges.add(30, 40), 10);
    assert_eq!(ranges.add(15, 32), 10);
    assert_eq!(ranges, Ranges(vec![(10, 40)]));
    assert_eq!(ranges.add(0, 5), 5);
    assert_eq!(ranges.add(0, 40), 5);
    ranges.add(50, 60);
    assert_eq!(ranges.gaps(55), [(40, 50)]);
    assert_eq!(ranges.gaps(70), [(40, 50), (60, 70)]);
    assert_eq!((ranges.count(), ranges.end()), (50, 60));
}

/// Runs a front end at 1 kHz for a second: a small unit of the host.
fn acquire(world: &metes_duster_instrument::Shared, probe: Probe) -> Vec<i32> {
    let mut front = FrontEnd::new(world.clone(), probe);
    let mut taken = Vec::new();
    for set in 0..1000u64 {
        let mut at = 100_000 * set;
        front.selected(0, true, at);
        for frame in [1 << 20 | 500u32, 2 << 20 | 100, 0, 0] {
            let half = |word: u32, front: &mut FrontEnd, at: &mut u64| {
                *at += 120;
                front.exchange(word, 12, *at)
            };
            let high = half(frame >> 12, &mut front, &mut at);
            let low = half(frame & 0xfff, &mut front, &mut at);
            let word = high << 12 | low;
            if word >> 23 == 1 {
                taken.push(((word << 12) as i32) >> 12);
            }
        }
        front.selected(0, false, at);
    }
    taken
}

fn header(kind: ScienceKind, first: u32, count: u16) -> ScienceHeader {
    ScienceHeader {
        kind,
        probe: metes_duster_protocol::Probe::Efield,
        acquisition: 3,
        rate: 1000,
        first,
        time: 0,
        count,
    }
}

#[test]
fn what_the_instrument_gave_is_right_and_nothing_else() {
    let world = World::new(12, 100_000_000);
    let taken = acquire(&world, Probe::Efield);
    assert!(taken.len() > 990);
    let world = world.lock();
    let mut science = Science::default();
    let pack = |from: usize, to: usize| {
        let mut packed = vec![0; samples::packed(to - from)];
        for (index, &sample) in taken[from..to].iter().enumerate() {
            samples::put(&mut packed, index, sample);
        }
        packed
    };
    science.take(
        &header(ScienceKind::Samples, 0, 384),
        &pack(0, 384),
        false,
        &world.truth,
    );
    science.take(
        &header(ScienceKind::Samples, 500, 300),
        &pack(500, 800),
        false,
        &world.truth,
    );
    science.expect(3, Probe::Efield, 900);
    assert_eq!(science.samples(Probe::Efield), 684);
    assert_eq!(science.missing(), 116 + 100);
    // A number that is off by one, and a bit that flipped.
    science.take(
        &header(ScienceKind::Samples, 385, 100),
        &pack(384, 484),
        false,
        &world.truth,
    );
    let mut spoilt = pack(384, 484);
    spoilt[77] ^= 0x10;
    science.take(
        &header(ScienceKind::Samples, 384, 100),
        &spoilt,
        false,
        &world.truth,
    );
    science.take(
        &header(ScienceKind::Samples, 384, 101),
        &pack(384, 484),
        false,
        &world.truth,
    );
    assert_eq!((science.packets, science.wrong), (2, 3));
    let told = science.take_wrong();
    assert!(told[2].what.contains("shorter"), "{told:?}");
    // What comes again, out of the store, is one that is known.
    science.take(
        &header(ScienceKind::Samples, 384, 100),
        &spoilt,
        true,
        &world.truth,
    );
    assert_eq!((science.wrong, science.take_wrong().len()), (3, 0));

    // What is left is told once; a late packet, and one whose acquisition's number a flip has changed, are of their run.
    let left = |science: &mut Science| -> Vec<(u16, Vec<(u64, u64)>)> {
        let left = science.leave().into_iter();
        left.map(|left| (left.acquisition, left.gaps)).collect()
    };
    assert_eq!(left(&mut science), [(3, vec![(384, 500)])]);
    assert_eq!(left(&mut science), []);
    for (acquisition, from, to) in [(3, 700, 800), (9, 384, 484), (3, 900, 950)] {
        let count = (to - from) as u16;
        let header = ScienceHeader {
            acquisition,
            ..header(ScienceKind::Samples, from as u32, count)
        };
        science.take(&header, &pack(from, to), false, &world.truth);
        let gaps = if to > 800 {
            vec![(800, 900)]
        } else {
            Vec::new()
        };
        assert_eq!(left(&mut science), [(acquisition, gaps)]);
    }
    assert_eq!(science.wrong, 3);
}

#[test]
fn windows_are_computed_again() {
    let world = World::new(12, 100_000_000);
    let taken = acquire(&world, Probe::Efield);
    let world = world.lock();
    let window = &taken[200..300];
    let sum: i32 = window.iter().sum();
    let squares: u64 = window
        .iter()
        .map(|&it| (i64::from(it) * i64::from(it)) as u64)
        .sum();
    let mut values = [
        200,
        (sum / 100) as u32,
        *window.iter().min().unwrap() as u32,
        *window.iter().max().unwrap() as u32,
        (squares / 100).isqrt() as u32,
    ];
    let bytes = |values: &[u32]| {
        values
            .iter()
            .flat_map(|it| it.to_be_bytes())
            .collect::<Vec<_>>()
    };
    let mut science = Science::default();
    science.take(
        &header(ScienceKind::Field, 200, 1),
        &bytes(&values),
        false,
        &world.truth,
    );
    assert_eq!((science.windows, science.wrong), (1, 0));
    values[4] += 1;
    science.take(
        &header(ScienceKind::Field, 200, 1),
        &bytes(&values),
        false,
        &world.truth,
    );
    assert_eq!((science.windows, science.wrong), (1, 1));
}
