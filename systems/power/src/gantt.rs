//! Who runs when and how fast, drawn: in the terminal, and as SVG with the power below.
//!
//! *Invariant:* what is drawn is the schedule, in order; names control neither terminal nor document.

use std::fmt::Write;

use num_traits::{One, Zero};

use crate::checker::Planned;
use crate::pair::hyperperiod;
use crate::rational::{Rational, nearly};
use crate::simulation::{Order, Released, Speeds, simulate};
use crate::system::{Pair, Processor, Scheduler, System};

/// Most stretches that are drawn.
const MOST: usize = 20_000;
/// Most rows.
const MOST_ROWS: usize = 64;

/// The run of a system at a pair, all as late as their worst case, over the last first arrival and a hyperperiod.
#[must_use]
pub fn run_at(system: &System, pair: &Pair) -> Vec<Planned> {
    let system = &system.ranked();
    let offsets = system.tasks.iter().map(|task| task.offset.clone());
    let end = offsets.max().unwrap_or_else(Rational::zero) + hyperperiod(system);
    let order = match system.scheduler {
        Scheduler::FixedPriority => Order::Priority,
        Scheduler::Edf => Order::Deadline,
    };
    let mut planned = Vec::new();
    for core in system.cores() {
        let (mut names, mut jobs) = (Vec::new(), Vec::new());
        for job in system.jobs.iter().filter(|job| job.core == core) {
            names.push(job.name.clone());
            jobs.push(Released {
                release: job.release.clone(),
                deadline: job.deadline.clone(),
                work: &job.work / &pair.cpu,
                priority: job.priority,
            });
        }
        for task in system.tasks.iter().filter(|task| task.core == core) {
            let mut release = task.offset.clone();
            let mut number = 0;
            while release < end && jobs.len() < MOST {
                number += 1;
                names.push(format!("{}#{number}", task.name));
                jobs.push(Released {
                    deadline: &release + &task.deadline,
                    release: release.clone(),
                    work: task.cost.time(pair),
                    priority: task.priority,
                });
                release += &task.period;
            }
        }
        let run = simulate(&jobs, order, &Speeds::Constant(Rational::one()));
        planned.extend(run.segments.into_iter().map(|segment| Planned {
            job: names[segment.job].clone(),
            core,
            from: segment.from,
            to: segment.to,
            speed: pair.cpu.clone(),
        }));
    }
    planned
}

/// The row of a job: its task's.
fn row_of(planned: &Planned) -> String {
    let name = planned
        .job
        .rsplit_once('#')
        .map_or(planned.job.as_str(), |(task, _)| task);
    name.chars()
        .filter(|sign| !sign.is_control())
        .take(24)
        .collect()
}

struct Drawing<'a> {
    rows: Vec<String>,
    stretches: Vec<(usize, f64, f64, &'a Planned)>,
    from: f64,
    to: f64,
    fastest: f64,
}

fn drawing(planned: &[Planned]) -> Option<Drawing<'_>> {
    let mut rows: Vec<String> = Vec::new();
    let mut stretches = Vec::new();
    for planned in planned.iter().take(MOST) {
        let name = row_of(planned);
        let row = rows.iter().position(|row| *row == name).unwrap_or_else(|| {
            rows.push(name);
            rows.len() - 1
        });
        if row < MOST_ROWS {
            stretches.push((row, nearly(&planned.from), nearly(&planned.to), planned));
        }
    }
    rows.truncate(MOST_ROWS);
    let from = stretches.iter().map(|stretch| stretch.1).reduce(f64::min)?;
    let to = stretches.iter().map(|stretch| stretch.2).reduce(f64::max)?;
    let fastest = stretches.iter().map(|stretch| nearly(&stretch.3.speed));
    Some(Drawing {
        fastest: fastest.reduce(f64::max)?,
        rows,
        stretches,
        from,
        to,
    })
}

/// The schedule in a terminal of a width: a row a task, in which the height of a block is the speed of what runs longest there.
#[must_use]
pub fn text(planned: &[Planned], width: usize) -> String {
    let Some(drawing) = drawing(planned) else {
        return String::new();
    };
    let names = drawing.rows.iter().map(|row| row.chars().count());
    let margin = names.max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).max(8);
    let column = (drawing.to - drawing.from) / columns as f64;
    let mut text = String::new();
    for (row, name) in drawing.rows.iter().enumerate() {
        let mut longest = vec![(0.0, 0.0); columns];
        for (_, from, to, planned) in drawing.stretches.iter().filter(|own| own.0 == row) {
            let first = ((from - drawing.from) / column) as usize;
            let last = ((to - drawing.from) / column).ceil() as usize;
            for (at, most) in longest.iter_mut().enumerate().take(last).skip(first) {
                let begin = drawing.from + at as f64 * column;
                let inside = to.min(begin + column) - from.max(begin);
                if inside > most.0 {
                    *most = (inside, nearly(&planned.speed));
                }
            }
        }
        let blocks = longest.iter().map(|(inside, speed)| {
            if *inside <= 0.0 {
                return '·';
            }
            let height = (speed / drawing.fastest * 8.0).ceil() as usize;
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][height.clamp(1, 8) - 1]
        });
        let blocks: String = blocks.collect();
        let _ = writeln!(text, "{name:margin$}  {blocks}");
    }
    text
}

/// The schedule as SVG: a row a task, height by speed, and the power of each core's runs below, the floor included.
#[must_use]
pub fn svg(planned: &[Planned], processor: &Processor) -> String {
    const WIDTH: f64 = 960.0;
    const LEFT: f64 = 180.0;
    const ROW: f64 = 24.0;
    const POWER: f64 = 120.0;
    let mut svg = String::new();
    let Some(drawing) = drawing(planned) else {
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"0\" height=\"0\"/>\n".to_owned();
    };
    let rows = drawing.rows.len() as f64 * ROW;
    let height = rows + POWER + 60.0;
    let scale = WIDTH / (drawing.to - drawing.from);
    let x = |time: f64| LEFT + (time - drawing.from) * scale;
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        LEFT + WIDTH + 20.0
    );
    for (row, name) in drawing.rows.iter().enumerate() {
        let below = (row + 1) as f64 * ROW;
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{}\">{}</text><line x1=\"{LEFT}\" x2=\"{}\" y1=\"{below}\" y2=\"{below}\" stroke=\"#ccc\"/>",
            below - 6.0,
            escaped(name),
            LEFT + WIDTH
        );
    }
    let memory = processor
        .memory
        .first()
        .cloned()
        .unwrap_or_else(Rational::zero);
    let power = |speed: &Rational| {
        let pair = Pair {
            cpu: speed.clone(),
            memory: memory.clone(),
        };
        nearly(&(processor.power.running(&pair) + &processor.power.floor))
    };
    let powers = drawing
        .stretches
        .iter()
        .map(|stretch| power(&stretch.3.speed));
    let most = powers.fold(f64::MIN_POSITIVE, f64::max);
    let ground = rows + POWER + 20.0;
    for (row, from, to, planned) in &drawing.stretches {
        let tall = nearly(&planned.speed) / drawing.fastest * (ROW - 4.0);
        let below = (*row + 1) as f64 * ROW;
        let (left, wide) = (x(*from), (to - from) * scale);
        let high = power(&planned.speed) / most * POWER;
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.3}\" y=\"{:.3}\" width=\"{wide:.3}\" height=\"{tall:.3}\" fill=\"#4477aa\"><title>{} {} to {} at {}</title></rect>\
             <rect x=\"{left:.3}\" y=\"{:.3}\" width=\"{wide:.3}\" height=\"{high:.3}\" fill=\"#cc6677\" fill-opacity=\"0.7\"/>",
            below - tall,
            escaped(&planned.job),
            planned.from,
            planned.to,
            planned.speed,
            ground - high
        );
    }
    let floor = nearly(&processor.power.floor) / most * POWER;
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{0}\" y1=\"{1:.3}\" y2=\"{1:.3}\" stroke=\"#882255\" stroke-dasharray=\"4\"/>\
         <text x=\"4\" y=\"{ground}\">power, floor dashed</text>\
         <text x=\"{LEFT}\" y=\"{2}\">{3}</text><text x=\"{0}\" y=\"{2}\" text-anchor=\"end\">{4}</text>\n</svg>",
        LEFT + WIDTH,
        ground - floor,
        ground + 20.0,
        drawing.from,
        drawing.to
    );
    svg
}

fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for sign in name.chars().filter(|sign| !sign.is_control()) {
        match sign {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            sign => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::whole;

    #[test]
    fn a_schedule_is_drawn_by_speed_and_escaped() {
        let stretch = |job: &str, from, to, speed| Planned {
            job: job.to_owned(),
            core: 0,
            from: whole(from),
            to: whole(to),
            speed: whole(speed),
        };
        let planned = [stretch("a<\n#1", 0, 4, 1), stretch("b", 4, 8, 2)];
        assert_eq!(text(&planned, 12), "a<  ▄▄▄▄····\nb   ····████\n");
        let svg = svg(&planned, &Processor::default());
        assert!(svg.contains("a&lt;") && !svg.contains("a<"), "{svg}");
        assert_eq!(text(&[], 80), "");
    }
}
