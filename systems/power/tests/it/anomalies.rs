//! Anomalies that the literature knows: more speed, and something is late. Work that is not preempted has them, and lists of
//! jobs on several cores (Graham 1969). What the models here accept has none.

use metes_power::rational::whole;
use metes_power::system::Pair;
use metes_power::{Rational, System, check, is_schedulable};
use metes_random::Random;

/// A job that no other interrupts: release, deadline, work, and priority, the smallest the most urgent.
struct Job {
    release: i64,
    deadline: i64,
    work: i64,
    priority: i64,
}

/// Who is late if each job, once begun, runs to its end: the most urgent that is there begins.
fn late_without_preemption(jobs: &[Job], speed: i64) -> Option<usize> {
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    // In parts of a unit of time, so that ends are whole.
    let mut now = 0;
    let mut late = Vec::new();
    while !left.is_empty() {
        let there = left.iter().filter(|job| jobs[**job].release * speed <= now);
        let Some(first) = there.copied().min_by_key(|job| (jobs[*job].priority, *job)) else {
            let next = left.iter().map(|job| jobs[*job].release * speed);
            now = next.min().unwrap_or(now);
            continue;
        };
        left.retain(|job| *job != first);
        now += jobs[first].work;
        if now > jobs[first].deadline * speed {
            late.push(first);
        }
    }
    late.into_iter().min()
}

fn pair(speed: i64) -> Pair {
    Pair {
        cpu: whole(speed),
        memory: whole(1),
    }
}

/// At speed 1 the long job begins behind the urgent one; at speed 2 it has begun when that comes.
#[test]
fn faster_is_late_without_preemption_and_refused_here() {
    let job = |release, deadline, work, priority| Job {
        release,
        deadline,
        work,
        priority,
    };
    let jobs = [job(0, 100, 16, 2), job(0, 100, 24, 3), job(16, 21, 4, 1)];
    assert_eq!(late_without_preemption(&jobs, 1), None);
    assert_eq!(late_without_preemption(&jobs, 2), Some(2));
    // Blocked by the longest behind it, it is refused at either: so much that comes late is not found by being lucky.
    let system = System::parse(
        "scheduler = \"fixed-priority\"\n[processor]\ncpu = [1, 2, 8]\n\
        [[task]]\nname = \"urgent\"\npriority = 1\nperiod = 100\noffset = 16\ndeadline = 5\ncpu = 4\nblocking = { cpu = 24 }\n\
        [[task]]\nname = \"first\"\npriority = 2\nperiod = 100\ncpu = 16\nblocking = { cpu = 24 }\n\
        [[task]]\nname = \"long\"\npriority = 3\nperiod = 100\ncpu = 24\n",
    )
    .expect("a system");
    for (speed, fits) in [(1, false), (2, false), (8, true)] {
        assert_eq!(is_schedulable(&system, &pair(speed)), Ok(fits), "{speed}");
    }
    assert_eq!(late_without_preemption(&jobs, 8), None);
}

/// Sets whose tasks are blocked by the longest of all, at the frequency at which it runs: what is accepted at a frequency is
/// not late without preemption at it, nor at any higher one.
#[test]
fn what_is_accepted_with_blocking_is_on_time_without_preemption() {
    let mut random = Random::new(17);
    let (mut accepted, mut anomalies) = (0, 0);
    for _ in 0..3000 {
        let edf = random.below(2) == 0;
        let count = random.between(2, 4);
        let tasks: Vec<[i64; 4]> = (0..count)
            .map(|_| {
                let period = [8, 12, 16, 24][random.below(4) as usize];
                let deadline = random.between(period / 3, period) as i64;
                let offset = (random.below(2) * random.below(period)) as i64;
                [
                    period as i64,
                    deadline,
                    offset,
                    random.between(1, period / 2) as i64,
                ]
            })
            .collect();
        let longest = tasks.iter().map(|task| task[3]).max().unwrap_or(0);
        let mut text = format!(
            "scheduler = \"{}\"\n[processor]\ncpu = [1, 2, 3, 4]\n",
            if edf { "edf" } else { "fixed-priority" }
        );
        let mut jobs = Vec::new();
        for (place, [period, deadline, offset, work]) in tasks.iter().enumerate() {
            text += &format!(
                "[[task]]\nname = \"t{place}\"\npriority = {}\nperiod = {period}\ndeadline = {deadline}\noffset = {offset}\ncpu = {work}\nblocking = {{ cpu = {longest} }}\n",
                place + 1
            );
            jobs.extend((0..200 / period).map(|number| {
                let release = offset + number * period;
                Job {
                    release,
                    deadline: release + deadline,
                    work: *work,
                    priority: if edf {
                        release + deadline
                    } else {
                        place as i64
                    },
                }
            }));
        }
        let system = System::parse(&text).expect("a system");
        let on_time: Vec<bool> = (1..=4)
            .map(|speed| late_without_preemption(&jobs, speed).is_none())
            .collect();
        anomalies += u64::from(on_time.windows(2).any(|pair| pair[0] && !pair[1]));
        let fits = (1..=4).map(|speed| is_schedulable(&system, &pair(speed)) == Ok(true));
        for (speed, fits) in fits.enumerate().filter(|(_, fits)| *fits) {
            assert!(
                fits && on_time[speed..].iter().all(|on_time| *on_time),
                "{text}"
            );
            accepted += 1;
        }
    }
    assert!(accepted > 1000 && anomalies > 0, "{accepted} {anomalies}");
}

/// Nine jobs on three cores: each time on a list, those that may begin begin on a free core. Starts and cores.
fn listed(times: &[i64]) -> Vec<(i64, usize)> {
    // The first before the last, the fourth before the four behind it.
    let before = |job: usize| match job {
        8 => Some(0),
        4..=7 => Some(3),
        _ => None,
    };
    let mut began: Vec<Option<(i64, usize)>> = vec![None; times.len()];
    let mut free = [0_i64; 3];
    for now in 0.. {
        for (core, free) in free.iter_mut().enumerate() {
            let end = |job: usize| began[job].map(|(start, _)| start + times[job]);
            let may = |job: &usize| {
                let done = |other| end(other).is_some_and(|end| end <= now);
                began[*job].is_none() && before(*job).is_none_or(done)
            };
            if *free <= now
                && let Some(job) = (0..times.len()).find(may)
            {
                began[job] = Some((now, core));
                *free = now + times[job];
            }
        }
        if began.iter().all(Option::is_some) {
            break;
        }
    }
    began.into_iter().flatten().collect()
}

/// Graham's list: each job a unit shorter, and the whole takes longer. Jobs that keep their cores and releases do not.
#[test]
fn shorter_jobs_of_a_list_end_later_and_of_parted_cores_do_not() {
    let times = [3, 2, 2, 2, 4, 4, 4, 4, 9];
    let shorter = times.map(|time| time - 1);
    let end = |times: &[i64]| {
        let ends = listed(times).into_iter().zip(times);
        ends.map(|((start, _), time)| start + time).max()
    };
    assert_eq!((end(&times), end(&shorter)), (Some(12), Some(13)));
    let parted = |works: &[i64]| {
        let mut text = "scheduler = \"edf\"\n[processor]\ncpu = [1, 2]\n".to_owned();
        for (job, (start, core)) in listed(&times).into_iter().enumerate() {
            text += &format!(
                "[[job]]\nname = \"j{job}\"\ncore = {core}\nrelease = {start}\ndeadline = {}\nwork = {}\n",
                start + times[job],
                works[job]
            );
        }
        System::parse(&text).expect("a system")
    };
    for works in [&times, &shorter] {
        for speed in [1, 2] {
            let verdict = check(&parted(works), Some(&pair(speed))).expect("decided");
            assert!(verdict.schedulable, "{works:?} at {speed}");
            let last = verdict
                .jobs
                .iter()
                .filter_map(|job| job.finish.clone())
                .max();
            assert!(last <= Some(Rational::from_integer(12.into())));
        }
    }
}
