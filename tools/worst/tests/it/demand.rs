//! Adversaries keep to their demand, whatever their numbers and whatever the heap
//! answers: held against a naive model of what is live.

use std::collections::HashMap;

use metes_explore::Random;
use metes_heap::bounds::Demand;
use metes_worst::{Attack, Program, Shape, Step, Target};
use proptest::prelude::*;

/// A heap that never uses memory twice, refuses now and then, and checks what it
/// is asked.
struct Model {
    demand: Demand,
    live: HashMap<u32, u64>,
    bytes: u64,
    next: u32,
    end: u64,
    places: HashMap<u32, u64>,
    refuse_every: u32,
    addresses: bool,
    requests: u64,
}

impl Target for Model {
    fn allocate(&mut self, size: u64) -> Option<u32> {
        self.requests += 1;
        assert!((self.demand.smallest..=self.demand.largest).contains(&size));
        assert!(self.bytes + size <= self.demand.live);
        self.next += 1;
        if self.refuse_every > 0 && self.next.is_multiple_of(self.refuse_every) {
            return None;
        }
        let block = self.next;
        self.live.insert(block, size);
        self.bytes += size;
        self.places.insert(block, self.end);
        self.end += self.shape().block(size);
        Some(block)
    }

    fn free(&mut self, block: u32) {
        self.requests += 1;
        self.bytes -= self.live.remove(&block).expect("a live block");
        self.places.remove(&block);
    }

    fn offset(&self, block: u32) -> Option<u64> {
        self.addresses.then(|| self.places[&block])
    }

    fn footprint(&self) -> u64 {
        self.end
    }

    fn work(&self) -> u64 {
        self.requests
    }

    fn shape(&self) -> Shape {
        Shape::TAGGED
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_program_keeps_to_its_demand(
        smallest in 1_u64..200,
        spread in 0_u64..2000,
        room in 0_u64..40_000,
        seed: u64,
        refuse_every in 0_u32..9,
        addresses: bool,
        limit in 0_u64..4000,
    ) {
        let largest = smallest + spread;
        let demand = Demand::new(largest + room, largest, smallest);
        let mut random = Random::new(seed);
        let programs = Program::all(&demand, &Shape::TAGGED);
        let mut program = programs[random.below(programs.len())];
        for _ in 0..random.below(6) {
            program = program.mutate(&demand, &mut random);
        }
        let mut model = Model {
            demand,
            live: HashMap::new(),
            bytes: 0,
            next: 0,
            end: 0,
            places: HashMap::new(),
            refuse_every,
            addresses,
            requests: 0,
        };
        let mut attack = Attack::new(&mut model, demand, limit, true);
        program.play(&mut attack);
        let outcome = attack.finish();
        prop_assert!(outcome.requests <= limit);
        prop_assert_eq!(outcome.requests, model.requests);
        prop_assert_eq!(outcome.footprint, model.end);
        // What was written down is what was asked.
        let sequence = outcome.sequence.unwrap();
        prop_assert_eq!(sequence.steps().len() as u64, outcome.requests);
        let mut sizes = Vec::new();
        let mut live = HashMap::new();
        let mut peak = 0;
        for step in sequence.steps() {
            match *step {
                Step::Allocate(size) => {
                    let refused = refuse_every > 0 && (sizes.len() as u32 + 1).is_multiple_of(refuse_every);
                    sizes.push(size);
                    if !refused {
                        live.insert(sizes.len() as u32 - 1, u64::from(size));
                    }
                    peak = peak.max(live.values().sum());
                }
                Step::Free(block) => {
                    prop_assert!(live.remove(&block).is_some());
                }
            }
        }
        prop_assert_eq!(peak, outcome.peak_live);
    }
}
