//! Queues in steps of time, which nothing makes exceed their curves.

use metes_random::Random;
use proptest::prelude::*;

use super::*;

/// A queue in steps of a microsecond: the most that waited, and the longest.
fn simulated(
    seed: u64,
    [burst, rate]: [u64; 2],
    [served, period, response]: [u64; 3],
) -> (u64, u64) {
    let mut random = Random::new(seed);
    let mut queue = std::collections::VecDeque::new();
    let (mut most, mut longest) = (0, 0);
    // Millionths of an item that may come, at most the burst of them.
    let mut tokens = burst * 1_000_000;
    let release = random.below(period);
    let mut due = release + random.below(response) + 1;
    let mut activation = 0;
    for now in 0..40_000u64 {
        while tokens >= 1_000_000 && random.below(4) > 0 {
            tokens -= 1_000_000;
            queue.push_back(now);
        }
        most = most.max(queue.len() as u64);
        if now == due {
            // Gone by the end of an activation; what comes after its release is for the next one, at worst.
            let released = release + activation * period;
            for _ in 0..served {
                if queue.front().is_some_and(|&came| came <= released)
                    && let Some(came) = queue.pop_front()
                {
                    longest = longest.max(now - came);
                }
            }
            activation += 1;
            due = release + activation * period + random.below(response) + 1;
        }
        tokens = (tokens + rate).min(burst * 1_000_000);
    }
    (most, longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_waits_longer_than_curves_say(
        seed in any::<u64>(),
        burst in 1u64..20,
        served in 1u64..5,
        period in 50u64..400,
        part in 1u64..100,
    ) {
        let response = 1 + period * part / 100;
        // Nearly what is served.
        let rate = served * 950_000 / period;
        let bounds = waiting(
            vec![Curve::token_bucket(&a_second(rate), &number(burst)).unwrap()],
            periodic(served, period * 1000, (period + response) * 1000).unwrap(),
        ).unwrap();
        let (most, longest) = simulated(seed, [burst, rate], [served, period, response]);
        prop_assert!(most <= bounds.backlog.unwrap(), "{most} > {:?}", bounds.backlog);
        prop_assert!(longest * 1000 <= bounds.delay.unwrap(), "{longest} us > {:?} ns", bounds.delay);
    }

    /// A converter that samples, and a controller that takes a set each millisecond, at any phase.
    #[test]
    fn no_front_end_holds_more(phase in 0u64..1_000_000, first in 0u64..1_000_000, which in 0usize..3) {
        let system = System::of_mission();
        let bus = &system.buses[which];
        let bound = front_end(&system, bus).unwrap();
        let time = set_time(&system, bus).unwrap();
        let period = 1_000_000_000 / u64::from(bus.rate);
        let mut came: std::collections::VecDeque<u64> = (0..200).map(|number| first + number * period).collect();
        let (mut most, mut longest) = (0, 0);
        for set in 0..100 {
            let begun = phase + set * SET;
            for frame in 0..bus.frames as u64 {
                let now = begun + time * frame / bus.frames as u64;
                most = most.max(came.iter().take_while(|&&came| came <= now).count() as u64);
                if came.front().is_some_and(|&came| came <= now)
                    && let Some(came) = came.pop_front()
                {
                    longest = longest.max(begun + time - came);
                }
            }
        }
        prop_assert!(most <= bound.backlog.unwrap(), "{most} > {:?}", bound.backlog);
        prop_assert!(longest <= bound.delay.unwrap(), "{longest} > {:?}", bound.delay);
    }
}
