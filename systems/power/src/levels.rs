//! Speeds of a processor that has some frequencies only: two neighbours in place of each speed (Ishihara and Yasuura 1998), what
//! switching takes, and when it is better to race and to sleep than to crawl.
//!
//! Neighbours are those on the lower convex hull of power over speed, in which standing still has its place: below the
//! speed at which a unit of work takes the least, the critical speed, a core runs at that speed and then stands still.
//!
//! *Invariant:* work that a split does is the work that was asked for, in the job's own time.

use num_traits::Zero;

use crate::rational::Rational;
use crate::simulation::{Order, Released, Run, Segment, Speeds, simulate};
use crate::system::{Pair, Processor, Scheduler};

/// A frequency, and the power that it takes above the floor while something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Work in a unit of time.
    pub speed: Rational,
    /// Power above the floor.
    pub power: Rational,
}

/// The levels of a processor, the slowest first, with the memory as slow as can be.
#[must_use]
pub fn levels(processor: &Processor) -> Vec<Level> {
    let memory = processor.memory.first().cloned();
    let memory = memory.unwrap_or_else(Rational::zero);
    let level = |cpu: &Rational| {
        let pair = Pair {
            cpu: cpu.clone(),
            memory: memory.clone(),
        };
        Level {
            power: processor.power.running(&pair),
            speed: pair.cpu,
        }
    };
    processor.cpu.iter().map(level).collect()
}

/// Of levels and of standing still at a power, those of which mixtures take the least: power over speed is convex in them.
/// The first is standing still; the second is the critical speed.
#[must_use]
pub fn hull(levels: &[Level], still: &Rational) -> Vec<Level> {
    let mut hull = vec![Level {
        speed: Rational::zero(),
        power: still.clone(),
    }];
    for level in levels {
        while let [.., before, last] = hull.as_slice() {
            let slope = (&last.power - &before.power) * (&level.speed - &last.speed);
            let next = (&level.power - &last.power) * (&last.speed - &before.speed);
            if slope < next {
                break;
            }
            hull.pop();
        }
        hull.push(level.clone());
    }
    hull
}

/// Segments of a schedule in which each job's speeds are those of a hull: in each job's own time, less what switching
/// takes, first the faster neighbour, then the slower one. None if there is not the time.
#[must_use]
pub fn split(jobs: &[Released], run: &Run, hull: &[Level], switch: &Rational) -> Option<Run> {
    let mut slots: Vec<Vec<&Segment>> = vec![Vec::new(); jobs.len()];
    for segment in &run.segments {
        slots[segment.job].push(segment);
    }
    let mut segments = Vec::new();
    for (job, slots) in slots.iter().enumerate() {
        // A switch may come before each slot, and one between the neighbours.
        let lengths = slots.iter().map(|slot| &slot.to - &slot.from - switch);
        let lengths: Vec<Rational> = lengths.collect();
        if lengths.iter().any(|length| *length <= Rational::zero()) {
            return None;
        }
        let time: Rational = lengths.iter().sum();
        let (fast, slow, at_fast) = neighbours(&jobs[job].work, &time, hull, switch)?;
        let mut left = at_fast;
        for slot in slots {
            let mut from = &slot.from + switch;
            let at_fast = (&slot.to - &from).min(left.clone());
            if at_fast > Rational::zero() {
                let to = &from + &at_fast;
                segments.push(segment(job, &from, &to, &hull[fast].speed));
                left -= &at_fast;
                from = to;
                if left.is_zero() {
                    from += switch;
                }
            }
            if from < slot.to && !hull[slow].speed.is_zero() {
                segments.push(segment(job, &from, &slot.to, &hull[slow].speed));
            }
        }
    }
    segments.sort_by(|left, right| left.from.cmp(&right.from));
    let mut finish = vec![None; jobs.len()];
    for segment in &segments {
        finish[segment.job] = Some(segment.to.clone());
    }
    // A switch in the middle may not have fitted: then work is missing.
    let mut done = vec![Rational::zero(); jobs.len()];
    for segment in &segments {
        done[segment.job] += (&segment.to - &segment.from) * &segment.speed;
    }
    let whole = done.iter().zip(jobs).all(|(done, job)| *done == job.work);
    whole.then_some(Run { segments, finish })
}

fn segment(job: usize, from: &Rational, to: &Rational, speed: &Rational) -> Segment {
    Segment {
        job,
        from: from.clone(),
        to: to.clone(),
        speed: speed.clone(),
    }
}

/// Places of two neighbours in the hull, and the time at the first, which do some work in some time.
fn neighbours(
    work: &Rational,
    time: &Rational,
    hull: &[Level],
    switch: &Rational,
) -> Option<(usize, usize, Rational)> {
    let speed = work / time;
    let fast = hull.iter().position(|level| level.speed >= speed)?;
    if hull[fast].speed == speed || fast == 0 {
        return Some((fast, fast, time.clone()));
    }
    let slow = fast - 1;
    if hull[slow].speed.is_zero() {
        return Some((fast, slow, work / &hull[fast].speed));
    }
    let time = time - switch;
    let at_fast = (work - &hull[slow].speed * &time) / (&hull[fast].speed - &hull[slow].speed);
    if at_fast > time {
        // All the time at the faster one is more than is needed.
        return Some((fast, 0, work / &hull[fast].speed));
    }
    Some((fast, slow, at_fast))
}

/// Energy of a run from a time to a time on a processor: floor, what runs, what idles or sleeps in gaps, whichever is
/// less, and switches between unlike speeds.
#[must_use]
pub fn energy(
    run: &Run,
    levels: &[Level],
    processor: &Processor,
    from: &Rational,
    to: &Rational,
) -> Rational {
    let mut sum = &processor.power.floor * (to - from);
    let mut now = from.clone();
    let mut speed: Option<&Rational> = None;
    for segment in &run.segments {
        sum += gap(&(&segment.from - &now), processor);
        let level = levels.iter().find(|level| level.speed == segment.speed);
        let power = level.map_or_else(Rational::zero, |level| level.power.clone());
        sum += power * (&segment.to - &segment.from);
        if speed.is_some_and(|speed| *speed != segment.speed) {
            sum += &processor.switch.energy;
        }
        speed = Some(&segment.speed);
        now = segment.to.clone();
    }
    sum + gap(&(to - &now), processor)
}

/// Energy above the floor in which nothing runs for a time.
fn gap(length: &Rational, processor: &Processor) -> Rational {
    if *length <= Rational::zero() {
        return Rational::zero();
    }
    let idle = &processor.idle * length;
    match &processor.sleep {
        Some(sleep) if *length >= sleep.time => {
            let asleep = (&sleep.power - &processor.power.floor) * length + &sleep.energy;
            idle.min(asleep)
        }
        _ => idle,
    }
}

/// The cheapest of the splits of a run, by hulls for idling and for sleeping, and of single levels. None if even the fastest
/// level is late.
#[must_use]
pub fn cheapest(
    jobs: &[Released],
    run: &Run,
    scheduler: Scheduler,
    processor: &Processor,
    from: &Rational,
    to: &Rational,
) -> Option<(Run, Rational)> {
    let levels = levels(processor);
    let order = match scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let sleeping = processor
        .sleep
        .as_ref()
        .map(|sleep| &sleep.power - &processor.power.floor);
    let stills = [Some(processor.idle.clone()), sleeping];
    let splits = stills
        .iter()
        .flatten()
        .filter_map(|still| split(jobs, run, &hull(&levels, still), &processor.switch.time));
    let single = levels.iter().filter_map(|level| {
        let run = simulate(jobs, order, &Speeds::Constant(level.speed.clone()));
        run.late(jobs).is_none().then_some(run)
    });
    let all = splits.chain(single).map(|run| {
        let energy = energy(&run, &levels, processor, from, to);
        (run, energy)
    });
    all.min_by(|left, right| left.1.cmp(&right.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::whole;

    fn level(speed: i64, power: i64) -> Level {
        Level {
            speed: whole(speed),
            power: whole(power),
        }
    }

    #[test]
    fn levels_below_the_critical_speed_are_left_out() {
        // Energy of a unit of work: 3, 2, 7/3.
        let levels = [level(1, 3), level(2, 4), level(3, 7)];
        let racing = hull(&levels, &whole(0));
        assert_eq!(racing, [level(0, 0), level(2, 4), level(3, 7)]);
        // Where idling is as dear as running slowly, one crawls.
        let crawling = hull(&levels, &whole(3));
        assert_eq!(crawling[1], level(1, 3));
        assert_eq!(hull(&[level(1, 1), level(2, 8)], &whole(0)).len(), 3);
    }

    #[test]
    fn a_split_does_the_work_in_its_time() {
        let jobs = [Released {
            release: whole(0),
            deadline: whole(4),
            work: whole(6),
            priority: 1,
        }];
        let speeds = Speeds::Constant(Rational::new(3.into(), 2.into()));
        let run = simulate(&jobs, Order::Deadline, &speeds);
        let hull = hull(&[level(1, 1), level(2, 8)], &whole(0));
        let split_run = split(&jobs, &run, &hull, &whole(0)).expect("it fits");
        let speeds: Vec<String> = split_run
            .segments
            .iter()
            .map(|segment| segment.speed.to_string())
            .collect();
        assert_eq!(speeds, ["2", "1"]);
        assert_eq!(split_run.segments[0].to, whole(2));
        // Two switches of a half each: 3 units of time for 6 of work, at 2.
        let half = Rational::new(1.into(), 2.into());
        let slower = split(&jobs, &run, &hull, &half).expect("it fits");
        assert!(
            slower.finish[0]
                .as_ref()
                .is_some_and(|end| *end <= whole(4))
        );
        assert_eq!(split(&jobs, &run, &hull, &whole(2)), None);
    }
}
