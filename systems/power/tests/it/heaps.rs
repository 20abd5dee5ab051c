//! Heaps and frequencies in one, against all combinations one by one.

use metes_power::heaps::{Asked, Choices, HeapsError, Served, choices};
use metes_power::rational::whole;
use metes_power::simulation::{Order, Released, Speeds, simulate};
use metes_power::system::{Pair, Scheduler};
use metes_power::{Rational, System, check};
use metes_random::Random;
use num_traits::{One, Zero};

fn system(text: &str) -> System {
    System::parse(text).expect("a system of the test")
}

fn heap(name: &str, footprint: u64, figures: [i64; 4]) -> Served {
    let [cpu, memory, energy, leakage] = figures.map(whole);
    Served {
        heap: name.to_owned(),
        footprint,
        cpu,
        memory,
        energy,
        leakage,
    }
}

const TWO: &str = "scheduler = \"fixed-priority\"\n\
    [processor]\ncpu = [1, 2, 4]\nmemory = [1, 2]\npower = { floor = 1, cpu_cubed = 1, memory = 1 }\n\
    [[task]]\nname = \"allocates\"\npriority = 1\nperiod = 10\nconstant = 1\n\
    [[task]]\nname = \"other\"\npriority = 2\nperiod = 20\ndeadline = 15\ncpu = 8\n";

fn chosen(system: &System, heaps: &[Served], responses: bool) -> Choices {
    let asked = Asked {
        system,
        task: 0,
        held_up: &[],
        responses,
    };
    choices(&asked, heaps).expect("decided")
}

#[test]
fn less_memory_takes_more_energy_or_it_is_not_chosen() {
    let system = system(TWO);
    let heaps = [
        heap("fast", 200, [4, 1, 1, 0]),
        heap("worse", 300, [4, 1, 1, 0]),
        heap("small", 100, [8, 1, 1, 0]),
        heap("tiny and slow", 10, [80, 1, 1, 0]),
    ];
    let found = chosen(&system, &heaps, false);
    assert_eq!(found.heaps, [0, 2, 3]);
    let front: Vec<(&str, String)> = found
        .front
        .iter()
        .map(|place| &found.combinations[*place])
        .map(|one| (heaps[one.heap].heap.as_str(), one.pair.cpu.to_string()))
        .collect();
    // 2 · (1 + 8/2 + 1) + 8/2 of 20 at 2; with the small one `other` ends at 15 + … only at 4.
    assert_eq!(front[0].0, "small");
    assert_eq!(front[1], ("fast", "2".to_owned()));
    for place in &found.front {
        let one = &found.combinations[*place];
        assert!(one.run <= one.response && one.response.is_some());
    }
    let none = chosen(&system, &heaps[3..], false);
    assert!(none.front.is_empty());
    assert_eq!(none.miss.expect("all are late").name, "allocates");
}

/// What a task holds up is held up for longer.
#[test]
fn blocking_grows_with_the_heap() {
    let text = TWO
        .replace("priority = 2", "priority = 3")
        .replace("priority = 1", "priority = 2")
        + "[[task]]\nname = \"urgent\"\npriority = 1\nperiod = 10\ndeadline = 4\nconstant = 1\nblocking = 1\n";
    let system = system(&text);
    let heaps = [heap("long", 1, [10, 0, 0, 0])];
    let front = |held_up: &[usize]| {
        let asked = Asked {
            system: &system,
            task: 0,
            held_up,
            responses: false,
        };
        choices(&asked, &heaps).expect("decided").front.len()
    };
    assert_eq!((front(&[]), front(&[2])), (1, 0));
}

#[test]
fn cycles_of_a_memory_need_one() {
    let text = TWO.replace("memory = [1, 2]\n", "");
    let system = system(&text);
    let asked = Asked {
        system: &system,
        task: 0,
        held_up: &[],
        responses: false,
    };
    let found = choices(&asked, &[heap("any", 1, [1, 1, 1, 1])]);
    assert!(matches!(found, Err(HeapsError::System(_))), "{found:?}");
}

/// A drawn system of one core, and heaps for its first task.
fn drawn(random: &mut Random) -> (System, Vec<Served>) {
    let mut draw = |from: u64, to: u64| random.between(from, to);
    let scheduler = ["fixed-priority", "edf"][draw(0, 1) as usize];
    let idle = draw(0, 1) * draw(0, 30);
    let mut text = format!(
        "scheduler = \"{scheduler}\"\n[processor]\ncpu = [1, 2, 3]\nmemory = [1, 2]\nidle = {idle}\n\
         power = {{ floor = {}, cpu_cubed = {}, memory = {} }}\n",
        draw(0, 3),
        draw(1, 3),
        draw(0, 3),
    );
    for task in 0..draw(1, 3) {
        let period = [4, 6, 8, 12][draw(0, 3) as usize];
        text += &format!(
            "[[task]]\nname = \"t{task}\"\npriority = {}\nperiod = {period}\ndeadline = {}\ncpu = {}\nmemory = {}\nconstant = \"1/4\"\n",
            draw(1, 3),
            draw(2, period),
            draw(0, 3),
            draw(0, 2),
        );
    }
    let heaps = (0..draw(1, 6))
        .map(|number| {
            let figures = [0; 4].map(|_| draw(0, 4) as i64);
            heap(&format!("h{number}"), draw(1, 6), figures)
        })
        .collect();
    (system(&text), heaps)
}

/// Whether all jobs of two hyperperiods are on time, begun at once; the longest response of the first task, and the energy of a
/// hyperperiod by what has run in it.
fn run(system: &System, heap: &Served, pair: &Pair) -> (bool, Rational, Rational) {
    let hyperperiod = whole(24);
    let mut jobs = Vec::new();
    let mut owners = Vec::new();
    let mut busy = Rational::zero();
    let mut load = Rational::zero();
    for (index, task) in system.tasks.iter().enumerate() {
        let mut time = task.cost.time(pair);
        if index == 0 {
            time += &heap.cpu / &pair.cpu + &heap.memory / &pair.memory;
        }
        busy += &time * &hyperperiod / &task.period;
        load += &time / &task.period;
        let mut release = Rational::zero();
        while release < whole(48) {
            jobs.push(Released {
                deadline: &release + &task.deadline,
                release: release.clone(),
                work: time.clone(),
                // Of equal ones what stands first.
                priority: task.priority * 8 + index as u64,
            });
            owners.push(index);
            release += &task.period;
        }
    }
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let run = simulate(&jobs, order, &Speeds::Constant(Rational::one()));
    let responses = run.finish.iter().zip(&jobs).zip(&owners);
    let longest = responses
        .filter(|(_, owner)| **owner == 0)
        .filter_map(|((finish, job), _)| Some(finish.as_ref()? - &job.release))
        .max();
    let power = &system.processor.power;
    let cube = &pair.cpu * &pair.cpu * &pair.cpu;
    let running = &power.cpu_cubed * cube + &power.memory * &pair.memory;
    let energy = &hyperperiod * (&power.floor + &heap.leakage)
        + running * &busy
        + &system.processor.idle * (&hyperperiod - &busy)
        + &heap.energy * &hyperperiod / &system.tasks[0].period;
    let met = load <= Rational::one() && run.late(&jobs).is_none();
    (met, longest.expect("a job"), energy)
}

/// The same energies and memories as of all combinations, each analysed and run by itself.
#[test]
fn nothing_beats_the_front_of_all_combinations() {
    let mut random = Random::new(210);
    let (mut empty, mut several, mut feasible) = (0, 0, 0);
    for _ in 0..300 {
        let (system, heaps) = drawn(&mut random);
        for responses in [false, true] {
            let fixed = system.scheduler == Scheduler::FixedPriority;
            let mut all: Vec<(u64, Rational, Rational)> = Vec::new();
            // A hyperperiod of the system divides that of the test.
            let share = metes_power::pair::hyperperiod(&system) / whole(24);
            for heap in &heaps {
                for pair in system.processor.pairs() {
                    let (met, longest, energy) = run(&system, heap, &pair);
                    if !met {
                        continue;
                    }
                    let asked = Asked {
                        system: &system,
                        task: 0,
                        held_up: &[],
                        responses,
                    };
                    let with = asked.with(heap).expect("there can be such a system");
                    let verdict = check(&with, Some(&pair)).expect("decided");
                    assert!(verdict.schedulable);
                    let response = verdict.tasks[0].response.clone().expect("bounded");
                    // All at once is the worst under fixed priorities.
                    assert!(if fixed {
                        longest == response
                    } else {
                        longest <= response
                    });
                    let response = if responses {
                        response
                    } else {
                        Rational::zero()
                    };
                    all.push((heap.footprint, energy * &share, response));
                }
            }
            feasible += all.len();
            let beats = |a: &(u64, Rational, Rational), b: &(u64, Rational, Rational)| {
                a.0 <= b.0 && a.1 <= b.1 && a.2 <= b.2 && a != b
            };
            let mut naive: Vec<_> = all
                .iter()
                .filter(|own| !all.iter().any(|other| beats(other, own)))
                .cloned()
                .collect();
            naive.sort();
            naive.dedup();
            let found = chosen(&system, &heaps, responses);
            let mut front: Vec<_> = found
                .front
                .iter()
                .map(|place| &found.combinations[*place])
                .map(|one| {
                    let response = one.response.clone().filter(|_| responses);
                    (
                        heaps[one.heap].footprint,
                        one.energy.clone(),
                        response.unwrap_or_else(Rational::zero),
                    )
                })
                .collect();
            front.sort();
            assert_eq!(front, naive, "{system:?}\n{heaps:?}");
            empty += u32::from(front.is_empty());
            several += u32::from(front.len() > 1);
        }
    }
    assert!(
        empty > 20 && several > 100 && feasible > 1000,
        "{empty} {several} {feasible}"
    );
}
