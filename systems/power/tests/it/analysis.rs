//! Exact analysis: by textbook examples, and against runs over whole common periods.

use metes_power::rational::whole;
use metes_power::simulation::{Order, Released, Speeds, simulate};
use metes_power::system::Scheduler;
use metes_power::{Rational, System, check, is_schedulable};
use proptest::prelude::*;

fn system(text: &str) -> System {
    System::parse(text).expect("a system of the test")
}

fn responses(text: &str) -> Vec<String> {
    let verdict = check(&system(text), None).expect("decided");
    let tasks = verdict.tasks.iter();
    tasks
        .map(|task| {
            let response = task.response.as_ref();
            response.map_or("none".to_owned(), Rational::to_string)
        })
        .collect()
}

/// The example of Lehoczky 1990: deadlines beyond periods, the second job has the longest response.
#[test]
fn not_the_first_job_has_the_longest_response() {
    let text = "scheduler = \"fixed-priority\"\n\
        [[task]]\nname = \"a\"\npriority = 1\nperiod = 70\ntime = 26\n\
        [[task]]\nname = \"b\"\npriority = 2\nperiod = 100\ndeadline = 118\ntime = 62\n";
    assert_eq!(responses(text), ["26", "118"]);
}

#[test]
fn jitter_and_blocking_lengthen_responses() {
    let text = "scheduler = \"fixed-priority\"\n\
        [[task]]\nname = \"a\"\npriority = 1\nperiod = 10\ntime = 3\njitter = 2\n\
        [[task]]\nname = \"b\"\npriority = 2\nperiod = 20\ntime = 6\nblocking = 1\n";
    // b: 1 + 6 + ceil((w + 2) / 10) 3 = 13.
    assert_eq!(responses(text), ["5", "13"]);
}

#[test]
fn offsets_keep_tasks_apart() {
    let text = "scheduler = \"fixed-priority\"\n\
        [[task]]\nname = \"a\"\npriority = 1\nperiod = 10\ntime = 4\n\
        [[task]]\nname = \"b\"\npriority = 2\nperiod = 10\ntime = 4\noffset = 5\n";
    assert_eq!(responses(text), ["4", "4"]);
    assert_eq!(
        responses(&text.replace("offset = 5", "offset = 0")),
        ["4", "8"]
    );
    assert_eq!(
        responses(&text.replace("fixed-priority", "edf")),
        ["4", "4"]
    );
}

#[test]
fn edf_fills_a_core_and_no_more() {
    let text = "scheduler = \"edf\"\n\
        [[task]]\nname = \"a\"\nperiod = 2\ntime = 1\n\
        [[task]]\nname = \"b\"\nperiod = 5\ntime = \"5/2\"\n";
    assert_eq!(responses(text), ["2", "5"]);
    assert_eq!(responses(&text.replace("5/2", "2.6")), ["none", "none"]);
    // Liu and Layland's: not by fixed priorities.
    let fixed = "scheduler = \"fixed-priority\"\n\
        [[task]]\nname = \"a\"\npriority = 1\nperiod = 2\ntime = 1\n\
        [[task]]\nname = \"b\"\npriority = 2\nperiod = 5\ntime = \"5/2\"\n";
    assert_eq!(responses(fixed), ["1", "11/2"]);
}

#[test]
fn cores_are_apart() {
    let text = "scheduler = \"edf\"\n\
        [[task]]\nname = \"a\"\nperiod = 2\ntime = 2\n\
        [[task]]\nname = \"b\"\nperiod = 2\ntime = 1\ncore = 1\n";
    assert_eq!(responses(text), ["2", "1"]);
}

/// Preemptive scheduling has no anomaly: less time, or more speed, never makes a set late.
#[test]
fn more_speed_never_hurts_under_preemption() {
    let text = "scheduler = \"fixed-priority\"\n\
        [processor]\ncpu = [1, 2, 4]\nmemory = [1, 2]\n\
        [[task]]\nname = \"a\"\npriority = 1\nperiod = 8\ncpu = 4\nmemory = 1\n\
        [[task]]\nname = \"b\"\npriority = 2\nperiod = 12\ncpu = 2\nmemory = 2\nconstant = \"1/2\"\n";
    let system = system(text);
    let pairs = system.processor.pairs();
    for slow in &pairs {
        for fast in &pairs {
            if fast.cpu >= slow.cpu && fast.memory >= slow.memory {
                let (slow, fast) = (is_schedulable(&system, slow), is_schedulable(&system, fast));
                assert!(slow == Ok(false) || fast == Ok(true));
            }
        }
    }
}

#[test]
fn jobs_once_delay_tasks_until_they_are_done() {
    let text = "scheduler = \"fixed-priority\"\n\
        [[task]]\nname = \"a\"\npriority = 2\nperiod = 4\ntime = 2\n\
        [[job]]\nname = \"boot\"\npriority = 1\nrelease = 0\ndeadline = 2\nwork = 2\n";
    let verdict = check(&system(text), None).expect("decided");
    assert!(verdict.schedulable);
    assert_eq!(verdict.tasks[0].response, Some(whole(4)));
    assert_eq!(verdict.jobs[0].finish, Some(whole(2)));
    let late = text
        .replace("work = 2", "work = 3")
        .replace("deadline = 2", "deadline = 3");
    let verdict = check(&system(&late), None).expect("decided");
    let miss = verdict.miss().expect("a is late");
    assert_eq!((miss.name.as_str(), miss.late), ("a", Some(whole(1))));
}

fn text_of(fixed: bool, tasks: &[(u8, u8, u8, u8)], offsets: bool) -> String {
    let scheduler = if fixed { "fixed-priority" } else { "edf" };
    let mut text = format!("scheduler = \"{scheduler}\"\n");
    for (index, (period, time, deadline, offset)) in tasks.iter().enumerate() {
        let offset = if offsets { *offset } else { 0 };
        text += &format!(
            "[[task]]\nname = \"t{index}\"\npriority = {}\nperiod = {period}\ntime = \"{time}/2\"\ndeadline = {deadline}\noffset = {offset}\n",
            index + 1
        );
    }
    text
}

/// The longest response of a task in a run over the first offsets and two common periods; of equal deadlines its own is
/// the later, which is the worst.
fn by_run(system: &System, concerned: usize) -> Rational {
    let common = 120_i64;
    let nothing = Rational::new(1.into(), 1000.into());
    let mut jobs = Vec::new();
    let mut owners = Vec::new();
    for (index, task) in system.tasks.iter().enumerate() {
        let mut release = task.offset.clone();
        while release < whole(20 + 2 * common) {
            let deadline = &release + &task.deadline;
            jobs.push(Released {
                deadline: if index == concerned {
                    deadline + &nothing
                } else {
                    deadline
                },
                release: release.clone(),
                work: task.cost.work().expect("time").clone(),
                priority: task.priority,
            });
            owners.push(index);
            release += &task.period;
        }
    }
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let run = simulate(&jobs, order, &Speeds::Constant(whole(1)));
    let ends = run.finish.iter().zip(&jobs).zip(&owners);
    let own = ends.filter(|(_, owner)| **owner == concerned);
    own.map(|((end, job), _)| end.as_ref().expect("all end") - &job.release)
        .max()
        .expect("it has jobs")
}

fn task() -> impl Strategy<Value = (u8, u8, u8, u8)> {
    let period = proptest::sample::select(vec![2_u8, 3, 4, 5, 6, 8, 10, 12]);
    (period, 1..=6_u8, 1..=20_u8, 0..=9_u8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// With phases, both schedulers: what the analysis says is what happens. Without, under fixed priorities: what
    /// happens when all come at once.
    #[test]
    fn responses_are_those_of_runs(
        tasks in proptest::collection::vec(task(), 1..=4),
        fixed: bool,
        offsets: bool,
    ) {
        let utilisation: f64 = tasks.iter().map(|task| f64::from(task.1) / 2.0 / f64::from(task.0)).sum();
        prop_assume!(utilisation <= 1.0);
        prop_assume!(fixed || offsets && tasks.iter().any(|task| task.3 > 0));
        let system = system(&text_of(fixed, &tasks, offsets));
        let verdict = check(&system, None).expect("decided");
        for (index, task) in verdict.tasks.iter().enumerate() {
            let happened = by_run(&system, index);
            prop_assert_eq!(task.response.as_ref(), Some(&happened), "{}", task.name);
        }
        let pair = system.processor.fastest();
        prop_assert_eq!(is_schedulable(&system, &pair), Ok(verdict.schedulable));
    }

    /// Processor demand decides as response times do.
    #[test]
    fn demand_decides_as_responses_do(
        tasks in proptest::collection::vec(task(), 1..=4),
        jitter in 0..=3_u8,
    ) {
        let text = text_of(false, &tasks, false);
        let text = text.replacen("offset = 0", &format!("jitter = {jitter}"), 1);
        let system = system(&text);
        let (verdict, pair) = (check(&system, None), system.processor.fastest());
        if let (Ok(verdict), Ok(fits)) = (verdict, is_schedulable(&system, &pair)) {
            prop_assert_eq!(fits, verdict.schedulable);
        }
    }
}
