//! Phases beside jitter and blocking: the checker and the analysis against every run that there can be.
//!
//! *Invariant:* the naive search knows no busy period and no worst case: it makes each choice at each unit of time.

use std::collections::HashSet;

use metes_power::checker::{Flaw, check_pair};
use metes_power::{System, check, is_schedulable};
use metes_random::Random;

/// A task of the search, in units of time.
#[derive(Clone, Copy, Debug)]
struct Task {
    period: u32,
    deadline: u32,
    offset: u32,
    jitter: u32,
    time: u32,
    blocking: u32,
}

/// A job that is not done: whose, since when, what is left, and whether it is ready.
type Pending = (usize, u32, u32, bool);

/// An instant, what blocks still, and what is not done.
type State = (u32, u32, Vec<Pending>);

fn common(tasks: &[Task]) -> u32 {
    let gcd = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    tasks.iter().fold(1, |common, task| {
        common / gcd(common, task.period) * task.period
    })
}

/// What is looked at.
#[derive(Clone, Copy)]
enum Jobs {
    /// Under fixed priorities, those of the least urgent task.
    Last,
    /// Under EDF, those due by an instant; others are there as what may hold these up.
    DueBy(u32),
}

/// Whether any job that is looked at is late in any run of `tasks`, the most urgent first, that are held up for `blocking` where
/// they begin.
fn some_run_is_late(tasks: &[Task], blocking: u32, jobs: Jobs) -> bool {
    let common = common(tasks);
    let last = tasks.iter().map(|task| task.offset).max().unwrap_or(0);
    let mut seen: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = vec![(0, 0, Vec::new())];
    while let Some((now, blocked, mut pending)) = open.pop() {
        for (index, task) in tasks.iter().enumerate() {
            let looked_at = match jobs {
                Jobs::Last => true,
                Jobs::DueBy(due) => now + task.deadline <= due,
            };
            if looked_at && now >= task.offset && (now - task.offset) % task.period == 0 {
                pending.push((index, 0, task.time, false));
            }
        }
        let idle = blocked == 0 && pending.iter().all(|(.., ready)| !ready);
        let starts: &[u32] = if idle && blocking > 0 {
            &[0, blocking]
        } else {
            &[blocked]
        };
        // Which of those that may wait become ready now.
        let waits = |job: &Pending| !job.3 && job.1 < tasks[job.0].jitter;
        let waiting: Vec<usize> = (0..pending.len())
            .filter(|job| waits(&pending[*job]))
            .collect();
        for chosen in 0_u32..1 << waiting.len() {
            let mut ready = pending.clone();
            for (job, pending) in ready.iter_mut().enumerate() {
                let place = waiting.iter().position(|waiting| *waiting == job);
                pending.3 |= place.is_none_or(|place| chosen >> place & 1 == 1);
            }
            for blocked in starts {
                let mut next = ready.clone();
                let urgent = |job: &Pending| {
                    let due = tasks[job.0].deadline as i64 - i64::from(job.1);
                    let by = match jobs {
                        Jobs::Last => job.0 as i64,
                        Jobs::DueBy(_) => due,
                    };
                    (by, -i64::from(job.1))
                };
                let first = (0..next.len()).filter(|job| next[*job].3);
                let first = first.min_by_key(|job| urgent(&next[*job]));
                match first {
                    Some(first) if *blocked == 0 => next[first].2 -= 1,
                    _ => {}
                }
                next.retain(|job| job.2 > 0);
                for job in &mut next {
                    job.1 += 1;
                    let looked_at = match jobs {
                        Jobs::Last => job.0 + 1 == tasks.len(),
                        Jobs::DueBy(_) => true,
                    };
                    if job.1 >= tasks[job.0].deadline && looked_at {
                        return true;
                    }
                }
                if next.iter().any(|job| job.1 > 200) {
                    // Others pile up: the whole has no time.
                    return true;
                }
                // What begins again with a hyperperiod is the same; up to an instant, all is looked at.
                let then = match jobs {
                    Jobs::Last if now + 1 >= last + common => now + 1 - common,
                    Jobs::DueBy(due) if now + 1 >= due => continue,
                    _ => now + 1,
                };
                let state = (then, blocked.saturating_sub(1), next);
                if seen.insert(state.clone()) {
                    open.push(state);
                }
            }
        }
    }
    false
}

fn late(tasks: &[Task], edf: bool) -> bool {
    if !edf {
        return (0..tasks.len())
            .any(|own| some_run_is_late(&tasks[..=own], tasks[own].blocking, Jobs::Last));
    }
    let common = common(tasks);
    let work = tasks.iter().map(|task| task.time * common / task.period);
    if work.sum::<u32>() > common {
        // Sometime, and behind what is searched.
        return true;
    }
    let last = tasks.iter().map(|task| task.offset).max().unwrap_or(0);
    // Each instant at which something is due, over a hyperperiod behind one in which all have begun.
    (last + common..last + 2 * common).any(|due| {
        let is_due = |task: &Task| {
            let since = due.checked_sub(task.offset + task.deadline);
            since.is_some_and(|since| since % task.period == 0)
        };
        tasks.iter().any(is_due) && some_run_is_late(tasks, tasks[0].blocking, Jobs::DueBy(due))
    })
}

fn text(tasks: &[Task], edf: bool) -> String {
    let mut text = format!(
        "scheduler = \"{}\"\n",
        if edf { "edf" } else { "fixed-priority" }
    );
    for (index, task) in tasks.iter().enumerate() {
        text += &format!(
            "[[task]]\nname = \"t{index}\"\npriority = {}\nperiod = {}\ndeadline = {}\noffset = {}\njitter = {}\ntime = {}\nblocking = {}\n",
            index + 1,
            task.period,
            task.deadline,
            task.offset,
            task.jitter,
            task.time,
            task.blocking
        );
    }
    text
}

fn drawn(random: &mut Random, edf: bool) -> Vec<Task> {
    let mut draw = |from: u32, to: u32| from + random.below(u64::from(to - from + 1)) as u32;
    let common = draw(0, 2);
    let mut tasks: Vec<Task> = (0..draw(2, 3))
        .map(|_| {
            let period = [3, 4, 6, 8][draw(0, 3) as usize];
            Task {
                period,
                deadline: draw(2, period + 2),
                offset: draw(0, period - 1),
                jitter: draw(0, 2),
                time: draw(1, 2),
                blocking: if edf { common } else { draw(0, 2) },
            }
        })
        .collect();
    // Some phase is known, or all would be forgotten.
    if tasks.iter().all(|task| task.offset == 0) {
        tasks[0].offset = 1;
    }
    tasks
}

#[test]
fn every_run_is_on_time_exactly_where_it_is_said() {
    let sets: u64 = std::env::var("METES_SETS")
        .ok()
        .and_then(|sets| sets.parse().ok())
        .map_or(300, |sets: u64| sets / 100);
    for edf in [false, true] {
        let mut random = Random::new(21);
        let (mut met, mut missed, mut saved) = (0, 0, 0);
        for _ in 0..sets {
            let tasks = drawn(&mut random, edf);
            let text = text(&tasks, edf);
            let system = System::parse(&text).expect("a system of the test");
            let pair = system.processor.fastest();
            let late = late(&tasks, edf);
            let checked = check_pair(&system, &pair);
            match checked {
                Ok(_) => assert!(!late, "accepted, and late:\n{text}"),
                Err(Flaw::Late(_)) => assert!(late, "refused, and on time:\n{text}"),
                Err(flaw) => panic!("{flaw}:\n{text}"),
            }
            let verdict = check(&system, None).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            assert_eq!(verdict.schedulable, !late, "analysed:\n{text}");
            assert_eq!(
                is_schedulable(&system, &pair),
                Ok(!late),
                "decided:\n{text}"
            );
            met += u64::from(!late);
            missed += u64::from(late);
            let forgotten: Vec<Task> = tasks
                .iter()
                .map(|task| Task { offset: 0, ..*task })
                .collect();
            let forgotten = System::parse(&self::text(&forgotten, edf)).expect("the same at once");
            let sound = check_pair(&forgotten, &pair);
            assert!(sound.is_err() || !late, "phases forgotten:\n{text}");
            saved += u64::from(sound.is_err() && !late);
        }
        assert!(
            met > sets / 10 && missed > sets / 10 && saved > 0,
            "{met} {missed} {saved}"
        );
        println!(
            "{}: {met} on time, {missed} late; of those on time {saved} by their phases alone",
            if edf { "EDF" } else { "fixed priorities" }
        );
    }
}

/// Periods without a common multiple worth running: phases are forgotten, and what needs them is not decided.
#[test]
fn what_is_too_long_is_accepted_only_without_phases() {
    let tasks = |first: &str, second: &str, deadline: &str| {
        format!(
            "scheduler = \"fixed-priority\"\n\
             [[task]]\nname = \"a\"\npriority = 1\nperiod = {first}\ntime = 400\njitter = 1\n\
             [[task]]\nname = \"b\"\npriority = 2\nperiod = {second}\ntime = 400\noffset = 500\ndeadline = {deadline}\n"
        )
    };
    let checked = |text: &str| {
        let system = System::parse(text).expect("a system of the test");
        check_pair(&system, &system.processor.fastest()).map(|_| ())
    };
    assert_eq!(checked(&tasks("1000", "1000", "402")), Ok(()));
    assert_eq!(checked(&tasks("1000007", "999983", "900")), Ok(()));
    assert_eq!(
        checked(&tasks("1000007", "999983", "402")),
        Err(Flaw::TooLong(0))
    );
}
