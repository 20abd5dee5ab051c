//! Plans: those of the contract, by pairs and by speeds; and that the checker sees what is wrong.

use metes_power::checker::{Flaw, check_pair, check_schedule};
use metes_power::pair::{candidates, cheapest, hyperperiod, per_task};
use metes_power::plan::{Effort, Plan, plan};
use metes_power::policies::{Implicit, compare, uunifast};
use metes_power::rational::whole;
use metes_power::simulation::{Order, Released, Speeds, simulate};
use metes_power::system::{Processor, Scheduler};
use metes_power::{Rational, System, is_schedulable};
use metes_random::Random;

use crate::speed::job;

fn system(text: &str) -> System {
    System::parse(text).expect("a system of the test")
}

fn planned(text: &str) -> Plan {
    plan(&system(text), Effort::default()).expect("planned")
}

const GOLDEN: &str = include_str!("../../examples/golden.toml");
const PAPER: &str = include_str!("../../examples/paper.toml");
const DUSTER: &str = include_str!("../../examples/duster.toml");
const EDGE: &str = include_str!("../../examples/edge.toml");
const ESTIMATES: &str = include_str!("../../examples/estimates.toml");

#[test]
fn the_golden_case_is_exact() {
    let plan = planned(GOLDEN);
    assert!(plan.feasible && plan.optimal);
    assert_eq!(plan.energy.expect("exact").to_string(), "1424/9");
    for (name, speed) in [
        ("t1", "4/3"),
        ("t2", "4/3"),
        ("t3", "2"),
        ("t4", "4/3"),
        ("t5", "4/3"),
        ("t6", "8/3"),
        ("t7", "8/3"),
        ("t8", "4/3"),
    ] {
        let own = plan.speeds.iter().filter(|stretch| stretch.job == name);
        for stretch in own {
            assert_eq!(stretch.speed.to_string(), speed, "{name}");
        }
    }
}

/// Three tasks that fill half the time at 1400: one interval at half the speed, 700.
#[test]
fn the_paper_has_one_interval_at_half_speed() {
    let plan = planned(PAPER);
    let pair = plan.pair.expect("there is one");
    assert_eq!(pair.cpu, whole(700));
    let continuous = PAPER.split("\n[processor]").next().expect("tasks");
    let continuous = planned(continuous);
    assert!(continuous.optimal);
    let mut speeds: Vec<&Rational> = continuous
        .speeds
        .iter()
        .map(|stretch| &stretch.speed)
        .collect();
    speeds.dedup();
    assert_eq!(speeds, [&whole(700)]);
}

/// At its budgets the mission needs all of 100 MHz: `store` has 15 of 4000 µs to spare, as its certificate says.
#[test]
fn the_mission_has_no_time_to_spare() {
    let plan = planned(DUSTER);
    assert_eq!(plan.pair.expect("there is one").cpu, whole(100));
    let verdict = metes_power::check(&system(DUSTER), None).expect("decided");
    for (name, response) in [("telemetry", 3550), ("store", 3985), ("acquire", 935)] {
        let mut tasks = verdict.tasks.iter();
        let task = tasks.find(|task| task.name == name).expect("it is there");
        assert_eq!(task.response, Some(whole(response)), "{name}");
    }
}

/// The edge host's functions at their budgets: the processor can be slower, the memory cannot. So it is in a run of all that
/// come at once behind the longest invocation, which has just begun.
#[test]
fn the_edge_host_can_be_slower() {
    let plan = planned(EDGE);
    let pair = plan.pair.expect("there is one");
    let fastest = plan.candidates.last().expect("pairs");
    let system = system(EDGE);
    let mut jobs = vec![job(0, 20_000, 1, 1)];
    jobs[0].work = system.tasks[1].blocking.time(&pair);
    for task in &system.tasks {
        let mut release = whole(0);
        while release < &plan.length + &plan.length {
            jobs.push(Released {
                deadline: &release + &task.deadline,
                release: release.clone(),
                work: task.cost.time(&pair),
                priority: 1,
            });
            release += &task.period;
        }
    }
    let run = simulate(&jobs, Order::Deadline, &Speeds::Constant(whole(1)));
    assert_eq!(run.late(&jobs), None);
    assert_eq!((pair.cpu, pair.memory), (whole(1600), whole(800)));
    assert!(plan.energy.expect("exact") < fastest.energy);
}

#[test]
fn the_first_estimates_left_time_to_spare() {
    let plan = planned(ESTIMATES);
    let fastest = plan.candidates.last().expect("pairs");
    assert_eq!(plan.pair.expect("there is one").cpu, whole(40));
    assert!(plan.energy.expect("exact") < fastest.energy);
}

#[test]
fn what_cannot_be_met_says_who_is_late_first() {
    let text = "scheduler = \"edf\"\n[processor]\ncpu = [1, 2]\n\
        [[task]]\nname = \"a\"\nperiod = 5\ndeadline = 3\ncpu = 4\n\
        [[task]]\nname = \"b\"\nperiod = 5\ndeadline = 3\ncpu = 4\n";
    let plan = planned(text);
    assert!(!plan.feasible);
    // Of equal deadlines a may be the later: 4 in 3.
    let miss = plan.miss.expect("a");
    assert_eq!((miss.name.as_str(), miss.late), ("a", Some(whole(1))));
    let levels = "scheduler = \"edf\"\n[processor]\ncpu = [1, 2]\n\
        [[job]]\nname = \"a\"\nrelease = 0\ndeadline = 2\nwork = 5\n";
    let plan = planned(levels);
    let miss = plan.miss.expect("a");
    assert_eq!(
        (miss.name.as_str(), miss.late),
        ("a", Some(Rational::new(1.into(), 2.into())))
    );
}

/// Two neighbours in place of a speed that is not there, and racing where idling is cheap.
#[test]
fn levels_take_the_neighbours() {
    let text = "scheduler = \"edf\"\n[processor]\ncpu = [1, 2]\n\
        [[job]]\nname = \"a\"\nrelease = 0\ndeadline = 4\nwork = 6\n";
    let plan = planned(text);
    assert!(plan.optimal);
    // 2 units of time at 8 and 2 at 1.
    assert_eq!(plan.energy, Some(whole(18)));
    let floor = text.replace(
        "cpu = [1, 2]",
        "cpu = [1, 2]\npower = { floor = 10 }\nsleep = { power = 0, energy = 1, time = \"1/2\" }",
    );
    // 3 at 18 and 1 asleep: 54 + 1; the split: 40 + 18.
    assert_eq!(planned(&floor).energy, Some(whole(55)));
    let dear = floor.replace("energy = 1", "energy = 5");
    assert_eq!(planned(&dear).energy, Some(whole(58)));
}

#[test]
fn a_pair_for_each_task_takes_no_more_than_one_for_all() {
    let mut random = Random::new(11);
    let mut less = 0;
    for _ in 0..60 {
        let system = drawn_tasks(&mut random, 3, false);
        let all = candidates(&system).expect("decided");
        let Some(one) = cheapest(&all) else { continue };
        let each = per_task(&system, u64::MAX)
            .expect("decided")
            .expect("one for all is one");
        assert!(each.optimal && each.energy <= one.energy);
        assert_eq!(each.energy, brute_per_task(&system).expect("there is one"));
        less += u64::from(each.energy < one.energy);
    }
    assert!(less > 5, "{less}");
}

/// All assignments, with times put in place of the models.
fn brute_per_task(system: &System) -> Option<Rational> {
    let pairs = system.processor.pairs();
    let count = system.tasks.len() as u32;
    let hyperperiod = hyperperiod(system);
    let mut least: Option<Rational> = None;
    for number in 0..pairs.len().pow(count) {
        let mut fixed = system.clone();
        let mut energy = &system.processor.power.floor * &hyperperiod;
        let mut rest = number;
        for task in &mut fixed.tasks {
            let pair = &pairs[rest % pairs.len()];
            rest /= pairs.len();
            let time = task.cost.time(pair);
            energy += system.processor.power.running(pair) * &time * &hyperperiod / &task.period;
            task.cost = metes_power::system::Cost::Time(time);
        }
        if is_schedulable(&fixed, &pairs[0]) == Ok(true) {
            least = Some(least.map_or(energy.clone(), |least| least.min(energy)));
        }
    }
    least
}

/// Blocking that depends on the frequencies only where it is said.
fn drawn_tasks(random: &mut Random, count: u64, depends: bool) -> System {
    let scheduler = ["edf", "fixed-priority"][random.below(2) as usize];
    let mut text = format!(
        "scheduler = \"{scheduler}\"\n[processor]\ncpu = [1, 2, 4]\nmemory = [1, 3]\npower = {{ floor = {}, cpu_cubed = 1, memory = {} }}\n",
        random.below(9),
        random.between(1, 9)
    );
    for task in 1..=count {
        let period = [4, 6, 8, 12][random.below(4) as usize];
        let long = random.below(8) / 7;
        let blocking = if depends {
            format!("{{ cpu = {}, memory = {long} }}", 2 * long)
        } else {
            long.to_string()
        };
        text += &format!(
            "[[task]]\nname = \"t{task}\"\npriority = {task}\nperiod = {period}\ndeadline = {}\ncpu = {}\nmemory = {}\noffset = {}\njitter = {}\nblocking = {blocking}\n",
            random.between(2, 14),
            random.between(1, 4),
            random.between(1, 3),
            random.below(2) * random.below(4),
            random.below(8) / 7
        );
    }
    system(&text)
}

/// Each pair that the analysis accepts passes the check apart; one that it refuses fails it, but for phases with jitter or
/// blocking, which are not run.
#[test]
fn the_checker_decides_as_the_analysis_does() {
    let mut random = Random::new(5);
    let mut tally = [0; 2];
    for _ in 0..150 {
        let system = drawn_tasks(&mut random, 3, true);
        let phases = system.tasks.iter().any(|task| task.offset > whole(0));
        let unsure = system
            .tasks
            .iter()
            .any(|task| task.jitter > whole(0) || !task.blocking.is_zero());
        for candidate in candidates(&system).expect("decided") {
            // Though not every pair was analysed.
            let analysed = is_schedulable(&system, &candidate.pair);
            assert_eq!(analysed, Ok(candidate.feasible), "{system:?} {candidate:?}");
            let checked = check_pair(&system, &candidate.pair);
            if candidate.feasible {
                assert_eq!(checked, Ok(candidate.energy), "{system:?}");
            } else if !(phases && unsure) {
                assert!(
                    matches!(checked, Err(Flaw::Late(_))),
                    "{checked:?} {system:?} {candidate:?}"
                );
            }
            tally[usize::from(candidate.feasible)] += 1;
        }
    }
    assert!(tally.iter().all(|count| *count > 100), "{tally:?}");
}

#[test]
fn the_checker_sees_what_is_wrong_with_a_schedule() {
    let jobs = [job(0, 4, 2, 2), job(1, 4, 2, 1)];
    let run = simulate(&jobs, Order::Priority, &Speeds::Constant(whole(1)));
    let any = Processor::default();
    let check = |run: &metes_power::simulation::Run, processor: &Processor| {
        check_schedule(&jobs, run, Scheduler::FixedPriority, processor)
    };
    assert_eq!(check(&run, &any), Ok(()));
    let mut slower = run.clone();
    slower.segments[0].speed = Rational::new(1.into(), 2.into());
    assert_eq!(check(&slower, &any), Err(Flaw::Work(0)));
    let mut early = run.clone();
    early.segments[1].from = whole(0);
    assert_eq!(check(&early, &any), Err(Flaw::Overlap(whole(0))));
    let mut outside = run.clone();
    outside.segments[2].to = whole(9);
    assert_eq!(check(&outside, &any), Err(Flaw::Window(0)));
    let by_deadline = simulate(&jobs, Order::Deadline, &Speeds::Constant(whole(1)));
    assert_eq!(check(&by_deadline, &any), Err(Flaw::Priority(0)));
    let twos = Processor {
        cpu: vec![whole(2)],
        ..Processor::default()
    };
    assert_eq!(check(&run, &twos), Err(Flaw::Frequency(0)));
}

/// No policy is late, and none takes less than what knows all (asserted where they are compared); with all at their worst
/// case, cycle-conserving EDF is static EDF.
#[test]
fn policies_of_others_take_no_less() {
    let mut random = Random::new(3);
    let (mut less, mut same) = (0, 0);
    for round in 0..60 {
        let tasks: Vec<Implicit> = uunifast(&mut random, 3, 600)
            .iter()
            .map(|part| Implicit {
                period: whole([4, 8, 10][random.below(3) as usize]),
                utilisation: Rational::new((*part).into(), 1000.into()),
            })
            .collect();
        let processor = Processor {
            cpu: (1..=4)
                .map(|step| Rational::new(step.into(), 4.into()))
                .collect(),
            ..Processor::default()
        };
        let mut worst = || whole(1);
        let mut half = || Rational::new(random.between(30, 100).into(), 100.into());
        let taken: &mut dyn FnMut() -> Rational = if round % 2 == 0 {
            &mut worst
        } else {
            &mut half
        };
        let found = compare(&tasks, &processor, taken).expect("it fits");
        for other in [
            &found.full_speed,
            &found.race_to_idle,
            &found.static_edf,
            &found.cycle_conserving,
            &found.split,
        ] {
            assert!(*other >= found.ours);
        }
        assert!(found.static_edf <= found.full_speed && found.cycle_conserving <= found.static_edf);
        same += u64::from(found.cycle_conserving == found.static_edf);
        less += u64::from(found.split < found.cycle_conserving);
    }
    assert!(same >= 30 && less >= 30, "{same} {less}");
}

/// Of equal priorities what stands first goes first, also where the other came before: so analysis, checker and run say alike.
#[test]
fn equal_priorities_are_ranked_by_their_place() {
    let text = "scheduler = \"fixed-priority\"\n[processor]\ncpu = [1]\n\
        [[task]]\nname = \"first\"\npriority = 1\nperiod = 10\ndeadline = 2\noffset = 1\ncpu = 2\n\
        [[task]]\nname = \"second\"\npriority = 1\nperiod = 10\ndeadline = 6\ncpu = 4\n";
    let system = system(text);
    let pair = system.processor.fastest();
    let verdict = metes_power::check(&system, None).expect("decided");
    assert!(verdict.schedulable);
    assert!(check_pair(&system, &pair).is_ok());
    let longest = metes_power::checker::run_pair(&system, &pair).expect("on time");
    assert_eq!(longest, [Some(whole(2)), Some(whole(6))]);
}
