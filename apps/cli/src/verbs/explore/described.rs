//! `metes explore` of a described space.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use metes_explore::engine::{
    EXPLORATION, Explorer, Folder, Found, Heap, LevelShortage, Manifest, Method, NO_GUARANTEE,
    Objective, ObjectiveSet, Origin, Plan, Progress, RESULTS, Row, Shard, Source, Summary, Work,
    finish,
};
use metes_explore::report::{DemandFigures, ProfileFigures};
use metes_explore::{Arena, Space, Terms, Wanted, heap_file, write_json};
use serde_json::{Value, json};

use crate::arguments::Explore;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, Table};
use crate::quantity::{bytes, grouped, ratio};
use crate::results::{Kind, Results};
use crate::{energy, interrupt, progress, space, tracefile};

/// File of what the trace asks of a heap.
pub(in crate::verbs) const PROFILE: &str = "profile.json";
/// What is left, beside the units.
pub(in crate::verbs) const KIND: Kind<'_> = Kind {
    verb: "explore --space",
    files: &[RESULTS, EXPLORATION, PROFILE, "pareto/NNN.toml"],
};
/// Seconds, unless the command line says.
const BUDGET: f64 = 600.0;

/// The first option given that only described spaces have.
pub(super) fn only(arguments: &Explore) -> Option<&'static str> {
    let given = [
        (arguments.levels.is_some(), "--levels"),
        (arguments.search.is_some(), "--search"),
        (arguments.shard.is_some(), "--shard"),
        (arguments.to_the_end, "--to-the-end"),
    ];
    given
        .iter()
        .find(|(given, _)| *given)
        .map(|(_, name)| *name)
}

struct Bar(ProgressBar);

impl Progress for Bar {
    fn done(&self, configurations: u64, of: u64) {
        self.0.set_position(configurations * 1000 / of.max(1));
        self.0.set_message(format!(
            "exploring: {} of {} heaps",
            grouped(configurations),
            grouped(of)
        ));
    }
}

pub(super) fn run(arguments: &Explore, path: &Path, json: bool) -> Result<u8, Failure> {
    let start = Instant::now();
    if arguments.mapped.is_some() {
        return Err(Failure::input(
            "--mapped is for the heaps that a trace suggests, and the heaps of a described space map \
             nothing: leave it out, or the --space",
        ));
    }
    let wanted = arguments.guarantee.wanted()?;
    let objectives = objectives(arguments, &wanted)?;
    let trace = tracefile::read(path)?;
    let events = tracefile::events(&trace)?;
    let text = space::find(&arguments.space)?;
    let space = space::read(&text, &events)?;
    let hierarchy = match &arguments.levels {
        Some(levels) => {
            energy::need_accesses(path, &trace.provenance.command, &events)?;
            Some(energy::resolve(levels, space.levels())?)
        }
        None => None,
    };
    let profile = metes_trace::profile(&trace);
    drop(trace);
    let terms = match wanted.asked() || objectives.contains(Objective::Guarantee) {
        true => Some(wanted.of(&DemandFigures::of(&profile), &Arena::HOST)?),
        false => None,
    };
    let profile = ProfileFigures::of(&profile);
    let results = Results::open(&arguments.output, KIND)?;
    let plan = Plan {
        objectives,
        end_early: !arguments.to_the_end,
        ..Plan::default()
    };
    let mut explorer = Explorer::new(&space, &events, plan, arguments.workers.unwrap_or(0));
    if let Some(hierarchy) = &hierarchy {
        explorer = explorer.on(hierarchy)?;
    }
    if let Some(terms) = terms {
        explorer = explorer.guaranteeing(terms);
    }
    let stop = interrupt::flag()?;
    let course = Course::decide(arguments, &explorer, &stop)?;
    let folder = course.folder;
    folder
        .note_origin(&Origin {
            trace: std::path::absolute(path).unwrap_or(path.to_owned()),
            space_name: text.name.clone(),
            space: text.text.clone(),
            levels: arguments.levels.clone(),
            guarantee: terms.map(|_| wanted),
        })
        .map_err(metes_explore::engine::EngineError::from)?;
    let bar = Bar(progress::budget("exploring"));
    let manifest = explorer.manifest(course.method, arguments.seed, course.evaluations);
    let mut rows = Vec::new();
    let work = match course.method.searcher(&space, arguments.seed) {
        None => explorer.run(
            &folder,
            arguments.shard.unwrap_or(Shard::WHOLE),
            &stop,
            &bar,
        )?,
        Some(mut searcher) => {
            let deadline = Some(start + Duration::from_secs_f64(budget(arguments)));
            let (found, work) = explorer.search(
                &folder,
                searcher.as_mut(),
                course.evaluations,
                deadline,
                &stop,
                &bar,
            )?;
            rows = found;
            work
        }
    };
    bar.0.finish_and_clear();
    let exhaustive = course.method == Method::Exhaustive;
    if arguments.shard.is_some() || (exhaustive && work.interrupted) {
        let shown = arguments.shard.is_none()
            && so_far(
                results,
                &arguments.output,
                &folder,
                &manifest,
                &explorer,
                &profile,
            )?;
        return unfinished(arguments, &explorer, work, shown, json);
    }
    let source = match exhaustive {
        true => Source::Units(&folder),
        false => Source::Rows(&rows),
    };
    let (summary, found) = finish(results.gathered(), &manifest, explorer.evaluator(), source)?;
    // What the explorer shows of the trace, which need not be there any more then.
    write_json(&results.gathered().join(PROFILE), &profile)?;
    results.replace()?;
    show(
        &Shown {
            directory: &arguments.output,
            summary: &summary,
            found: &found,
            space: &space,
            explorer: &explorer,
            why: &course.why,
            work,
            seconds: start.elapsed().as_secs_f64(),
        },
        json,
    )
}

/// What is minimised.
fn objectives(arguments: &Explore, wanted: &Wanted) -> Result<ObjectiveSet, Failure> {
    use Objective::{Accesses, Energy, Footprint, Guarantee, Time};
    let Some(objectives) = arguments.objectives else {
        let measured = match arguments.levels {
            Some(_) => ObjectiveSet::of(&[Footprint, Accesses, Energy, Time]),
            None => ObjectiveSet::DEFAULT,
        };
        return Ok(match wanted.asked() {
            true => measured.with(Guarantee),
            false => measured,
        });
    };
    let priced = objectives.contains(Energy) || objectives.contains(Time);
    if priced && arguments.levels.is_none() {
        return Err(Failure::input(
            "energy and time are those of memory levels: add --levels, as in --levels main=4MiB",
        ));
    }
    Ok(objectives)
}

fn budget(arguments: &Explore) -> f64 {
    arguments.budget.unwrap_or(BUDGET)
}

/// By which method a space is explored, and why.
struct Course {
    method: Method,
    evaluations: u64,
    folder: Folder,
    why: String,
}

impl Course {
    fn decide(
        arguments: &Explore,
        explorer: &Explorer<'_>,
        stop: &AtomicBool,
    ) -> Result<Course, Failure> {
        let evaluations = arguments.configurations.unwrap_or(u64::MAX);
        let open = |method, fresh| {
            let manifest = explorer.manifest(method, arguments.seed, evaluations);
            Folder::open(&arguments.output, &manifest, fresh)
        };
        let course = |method: Method, folder, why: String| Course {
            method,
            evaluations,
            folder,
            why,
        };
        if let Some(search) = arguments.search {
            let method = Method::from(search);
            if arguments.shard.is_some() && method != Method::Exhaustive {
                return Err(Failure::input(
                    "--shard does a part of all configurations: leave --search out",
                ));
            }
            let folder = open(method, arguments.fresh)?;
            return Ok(course(method, folder, "as asked for".to_owned()));
        }
        if arguments.shard.is_some() {
            let folder = open(Method::Exhaustive, arguments.fresh)?;
            let why = "a part of all configurations".to_owned();
            return Ok(course(Method::Exhaustive, folder, why));
        }
        if arguments.configurations.is_some() {
            let folder = open(Method::Local, arguments.fresh)?;
            let why = "a number of configurations was given".to_owned();
            return Ok(course(Method::Local, folder, why));
        }
        // What was begun goes on the way it was begun.
        if !arguments.fresh
            && let Ok((_, manifest)) = Folder::read(&arguments.output)
        {
            for method in [Method::Exhaustive, Method::Local] {
                if explorer.manifest(method, arguments.seed, evaluations) == manifest {
                    let folder = open(method, false)?;
                    return Ok(course(method, folder, "as it was begun".to_owned()));
                }
            }
        }
        // Another exploration in the directory is better known before the work.
        let folder = open(Method::Exhaustive, arguments.fresh)?;
        let Some(seed) = explorer.seed_in(&folder, stop)? else {
            let why = "interrupted in the seed phase".to_owned();
            return Ok(course(Method::Exhaustive, folder, why));
        };
        let estimate = explorer.estimate(&seed, stop);
        let fits = estimate.as_secs_f64() <= budget(arguments);
        let why = format!(
            "all {} configurations would take about {:.0} s of the budget of {:.0} s",
            grouped(explorer.evaluator().space().size()),
            estimate.as_secs_f64().max(1.0),
            budget(arguments)
        );
        if fits {
            return Ok(course(Method::Exhaustive, folder, why));
        }
        folder
            .remove()
            .map_err(metes_explore::engine::EngineError::from)?;
        let folder = open(Method::Local, true)?;
        Ok(course(Method::Local, folder, why))
    }
}

/// Leaves results of what was done before an interruption, but in the place of
/// those of another exploration. Whether there are any.
fn so_far(
    results: Results,
    place: &Path,
    folder: &Folder,
    manifest: &Manifest,
    explorer: &Explorer<'_>,
    profile: &ProfileFigures,
) -> Result<bool, Failure> {
    let units = (0..explorer.units()).filter_map(|unit| folder.rows(Some(unit)));
    let mut rows: Vec<Row> = units.flatten().collect();
    if rows.is_empty() {
        rows = folder.rows(None).unwrap_or_default();
    }
    let earlier = std::fs::read(place.join(EXPLORATION)).unwrap_or_default();
    let earlier: Value = serde_json::from_slice(&earlier).unwrap_or_default();
    let same = serde_json::to_value(manifest).is_ok_and(|own| earlier["exploration"] == own);
    if rows.is_empty() || (results.has_earlier() && !same) {
        return Ok(false);
    }
    let source = Source::Rows(&rows);
    finish(results.gathered(), manifest, explorer.evaluator(), source)?;
    write_json(&results.gathered().join(PROFILE), profile)?;
    results.replace()?;
    Ok(true)
}

/// What is said of a part.
fn unfinished(
    arguments: &Explore,
    explorer: &Explorer<'_>,
    work: Work,
    shown: bool,
    json: bool,
) -> Result<u8, Failure> {
    let space = explorer.evaluator().space();
    if json {
        output::json(&json!({
            "configurations": work.replayed + work.found,
            "replayed": work.replayed,
            "found": work.found,
            "space": space.size(),
            "interrupted": work.interrupted,
            "pareto": [],
            "results": shown.then(|| output::name(&arguments.output.join(RESULTS))),
            "units": output::name(&arguments.output.join("units")),
        }))?;
        return Ok(0);
    }
    let state = match work.interrupted {
        true if shown => {
            "interrupted: the same command goes on from here; `metes serve` shows what there is"
        }
        true => "interrupted: the same command goes on from here",
        false => "this part is done: join all parts with `metes merge`",
    };
    output::text(&format!(
        "{BOLD}{} heaps{BOLD:#} of {} done, {} of them in this run\n{state}\n",
        grouped(work.replayed + work.found),
        grouped(space.size()),
        grouped(work.replayed),
    ))?;
    Ok(0)
}

/// What is shown of results.
pub(in crate::verbs) struct Shown<'s> {
    pub(in crate::verbs) directory: &'s Path,
    pub(in crate::verbs) summary: &'s Summary,
    pub(in crate::verbs) found: &'s Found,
    pub(in crate::verbs) space: &'s Space,
    pub(in crate::verbs) explorer: &'s Explorer<'s>,
    pub(in crate::verbs) why: &'s str,
    pub(in crate::verbs) work: Work,
    pub(in crate::verbs) seconds: f64,
}

pub(in crate::verbs) fn show(shown: &Shown<'_>, json: bool) -> Result<u8, Failure> {
    let Shown {
        directory,
        summary,
        found,
        space,
        explorer,
        ..
    } = *shown;
    let evaluator = explorer.evaluator();
    if json {
        output::json(&json!({
            "configurations": summary.configurations,
            "distinct": summary.distinct,
            "space": space.size(),
            "raw": found.raw,
            "complete": summary.complete,
            "beaten": summary.beaten,
            "failed": summary.failed,
            "beyond": summary.beyond,
            "guarantee": found.exploration.guarantee,
            "replayed": shown.work.replayed,
            "found": shown.work.found,
            "pareto": pareto(directory, &found.front)?,
            "too_small": found.too_small,
            "search": found.exploration.search,
            "decided": shown.why,
            "seconds": shown.seconds,
            "interrupted": shown.work.interrupted,
            "results": output::name(&directory.join(RESULTS)),
            "exploration": output::name(&directory.join(EXPLORATION)),
        }))?;
    } else {
        let mut text = format!(
            "{BOLD}{} heaps{BOLD:#} of {} ({} grid points) in {:.1} s, {} replayed in this run; {} different outcomes, {} unbeaten\n{}: {}\n\n",
            grouped(summary.configurations),
            grouped(space.size()),
            grouped(space.raw()),
            shown.seconds,
            grouped(shown.work.replayed),
            grouped(summary.distinct),
            summary.front.len(),
            found.exploration.search,
            shown.why,
        );
        text += &format!(
            "{}\nresults {}\nheaps   {}\n",
            table(
                &found.front,
                evaluator.events().peak_live(),
                evaluator.terms().is_some()
            ),
            directory.join(RESULTS).display(),
            directory.join("pareto").display()
        );
        output::text(&text)?;
    }
    for shortage in &found.too_small {
        output::note(&too_small(shortage));
    }
    if found.front.is_empty() {
        output::note(&none_left(summary, evaluator.terms()));
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

/// Says why nothing is left of a space.
fn none_left(summary: &Summary, terms: Option<&Terms>) -> String {
    let Some(terms) = terms.filter(|_| summary.beyond > 0) else {
        return "no heap serves every request of this trace".to_owned();
    };
    let least = terms.least_named().map_or_else(
        || "raise the limit".to_owned(),
        |(heap, least)| format!("{heap} does with {}", bytes(least)),
    );
    format!(
        "no heap of this space that serves the trace guarantees {}, and {} of {} guarantee less: {least}",
        terms.sentence(),
        grouped(summary.beyond),
        grouped(summary.configurations),
    )
}

/// Says which level is too small, by how much, and over which heaps.
fn too_small(shortage: &LevelShortage) -> String {
    let LevelShortage {
        heaps,
        looked_at,
        failed,
        ..
    } = *shortage;
    let over = match looked_at == failed {
        true => format!("{} of {} heaps that fail", grouped(heaps), grouped(failed)),
        false => format!(
            "{} of {} heaps looked at ({} fail)",
            grouped(heaps),
            grouped(looked_at),
            grouped(failed)
        ),
    };
    let by = match shortage.least == shortage.most {
        true => grouped(shortage.least),
        false => format!("{} to {}", grouped(shortage.least), grouped(shortage.most)),
    };
    format!(
        "level `{}` of {} bytes is too small by {by} bytes for {over}, the least for number {}, \
         {}: give the level more, or its pools another level in the space",
        shortage.level,
        grouped(shortage.size),
        shortage.number,
        shortage.heap
    )
}

fn pareto(directory: &Path, front: &[Heap]) -> Result<Vec<Value>, Failure> {
    let mut values = Vec::with_capacity(front.len());
    for (index, heap) in front.iter().enumerate() {
        let mut value = serde_json::to_value(heap)
            .map_err(|error| Failure::input(format!("a heap is no JSON: {error}")))?;
        value["toml"] = heap_file(directory, index).display().to_string().into();
        values.push(value);
    }
    Ok(values)
}

fn table(front: &[Heap], peak_live: u64, guaranteed: bool) -> Table {
    /// Rows shown; the results have all.
    const ROWS: usize = 20;
    const NAME: usize = 56;
    let priced = front.iter().any(|heap| heap.metrics.energy_fj != 0);
    let mut heads = vec!["heap", "file", "footprint", "× live", "accesses"];
    heads.extend(match priced {
        true => ["energy", "time"],
        false => ["cycles", "maximum"],
    });
    if guaranteed {
        heads.push("guarantee");
    }
    let mut table = Table::new(&heads);
    for (index, heap) in front.iter().take(ROWS).enumerate() {
        let mut name: String = heap.heap.chars().take(NAME).collect();
        if name.len() < heap.heap.len() {
            name += "…";
        }
        let metrics = &heap.metrics;
        let mut cells = vec![
            name,
            format!("{:03}.toml", index + 1),
            bytes(metrics.footprint),
            ratio(metrics.footprint, peak_live),
            grouped(metrics.accesses),
        ];
        cells.extend(match priced {
            true => [
                energy::joule(metrics.energy_fj as f64 * 1e-15),
                energy::seconds(metrics.time_ps as f64 * 1e-12),
            ],
            false => [grouped(metrics.cycles), grouped(metrics.cycles_max)],
        });
        if guaranteed {
            cells.push(match metrics.guarantee {
                NO_GUARANTEE => "none".to_owned(),
                guarantee => bytes(guarantee),
            });
        }
        table.row(anstyle::Style::new(), cells);
    }
    if front.len() > ROWS {
        table.row(output::DIM, vec![format!("{} more", front.len() - ROWS)]);
    }
    table
}
