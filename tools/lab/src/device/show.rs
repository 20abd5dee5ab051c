//! The figures of a run as tables, and as a report with pictures.
//!
//! Invariant: shows what [`Bench`] holds, and computes nothing but its presentation.

use super::bench::{Bench, BoundFigures, CallFigures, HeapFigures, Latency, WorkloadFigures};
use crate::page::figure;
use crate::report::{Figure, Plot, Report, Series};

/// A table of text: the first column names the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What it shows, with units.
    pub title: String,
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

const NONE: &str = "-";

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// Every table of the run that has rows.
pub fn tables(bench: &Bench) -> Vec<Grid> {
    let all = [
        workloads(bench),
        memory(bench),
        over_best_fit(bench),
        instructions(bench),
        by_live(bench),
        by_free(bench),
        moves(bench),
        times(bench),
        provisioned(bench),
    ];
    all.into_iter()
        .filter(|grid| !grid.rows.is_empty())
        .collect()
}

fn grid(title: impl Into<String>, head: &[&str], rows: Vec<Vec<String>>) -> Grid {
    Grid {
        title: title.into(),
        head: head.iter().map(|text| (*text).to_owned()).collect(),
        rows,
    }
}

fn workloads(bench: &Bench) -> Grid {
    let rows = bench.workloads.iter().map(|row| {
        vec![
            row.workload.clone(),
            row.seeds.to_string(),
            row.requests.to_string(),
            row.blocks.to_string(),
            format!("{:.1}", row.peak_live as f64 / f64::from(1 << 20)),
        ]
    });
    grid(
        "Workloads (of the first seed)",
        &["workload", "seeds", "requests", "live blocks", "peak MiB"],
        rows.collect(),
    )
}

fn memory(bench: &Bench) -> Grid {
    let names: Vec<&str> = bench
        .workloads
        .iter()
        .map(|row| row.workload.as_str())
        .collect();
    let rows = bench.heaps.iter().map(|heap| {
        let cell = |name: &&str| {
            let mean = heap.arena_ratio[*name];
            or_none(
                mean.zip(heap.arena_ratio_worst[*name])
                    .map(|(mean, worst)| {
                        // Of one run the worst is the mean.
                        match mean == worst {
                            true => format!("{mean:.4}"),
                            false => format!("{mean:.4} ({worst:.3})"),
                        }
                    }),
            )
        };
        let mut row = vec![heap.heap.clone()];
        row.extend(names.iter().map(cell));
        row
    });
    let rows = rows.collect();
    let mut head = vec!["heap"];
    head.extend(names);
    grid(
        "Smallest arena (of pages: smallest cap) / peak live bytes: mean of the seeds (worst)",
        &head,
        rows,
    )
}

fn over_best_fit(bench: &Bench) -> Grid {
    let rows = bench.heaps.iter();
    let rows = rows.filter(|heap| !heap.arena_over_best_fit.is_empty());
    let rows = rows.map(|heap| {
        let cell = |workload: &WorkloadFigures| {
            or_none(
                heap.arena_over_best_fit
                    .get(&workload.workload)
                    .map(|compared| match compared.standard_error {
                        Some(error) => {
                            let percent = 100.0 * (compared.mean - 1.0);
                            format!("{percent:+.2} ± {:.2}", 100.0 * error)
                        }
                        None => format!("{:+.2}", 100.0 * (compared.mean - 1.0)),
                    }),
            )
        };
        let mut row = vec![heap.heap.clone()];
        row.extend(bench.workloads.iter().map(cell));
        row
    });
    let rows = rows.collect();
    let mut head = vec!["heap"];
    head.extend(bench.workloads.iter().map(|row| row.workload.as_str()));
    grid(
        "Smallest arena over that of best fit, in percent: mean of the seeds ± standard error",
        &head,
        rows,
    )
}

fn instructions(bench: &Bench) -> Grid {
    let rows = bench.heaps.iter().filter_map(|heap| {
        let on = heap.instructions?;
        let most = heap.instructions_max?;
        let mut row = vec![heap.heap.clone()];
        for calls in [on.allocate, on.refuse, on.free] {
            let CallFigures {
                counted,
                mean,
                most,
            } = calls;
            row.push(or_none(
                mean.map(|mean| format!("{mean:.1} / {most} ({counted})")),
            ));
        }
        row.push(format!("{} / {}", most.allocate, most.free));
        let bound = heap.instructions_bound;
        let shown = |of: fn(BoundFigures) -> Option<u64>| {
            or_none(bound.and_then(of).map(|most| most.to_string()))
        };
        let [allocate, free] = [shown(|bound| bound.allocate), shown(|bound| bound.free)];
        row.push(format!("{allocate} / {free}"));
        row.push(shown(|bound| bound.allocate_aligned));
        Some(row)
    });
    grid(
        "Instructions on the workloads: mean / maximum (calls counted); at last, of allocate and \
         free, the maximum over everything that was counted, and what no call can exceed, the \
         longest path through the code (-: it has a loop); the same of an aligned allocation",
        &[
            "heap", "allocate", "refuse", "free", "maximum", "bound", "aligned",
        ],
        rows.collect(),
    )
}

fn by_live(bench: &Bench) -> Grid {
    let counts: Vec<String> = first_with(bench, |heap| !heap.by_live.is_empty())
        .map(|heap| {
            let rows = heap.by_live.iter();
            rows.map(|row| row.live_blocks.to_string()).collect()
        })
        .unwrap_or_default();
    let rows = bench.heaps.iter().filter(|heap| !heap.by_live.is_empty());
    let rows = rows.map(|heap| {
        let cells = heap.by_live.iter();
        let cells = cells.map(|row| format!("{} / {}", row.allocate, row.free));
        [heap.heap.clone()].into_iter().chain(cells).collect()
    });
    let mut head = vec!["heap"];
    head.extend(counts.iter().map(String::as_str));
    grid(
        "Most instructions of allocate / free by live blocks",
        &head,
        rows.collect(),
    )
}

fn by_free(bench: &Bench) -> Grid {
    let counts: Vec<String> = first_with(bench, |heap| !heap.by_free.is_empty())
        .map(|heap| {
            let rows = heap.by_free.iter();
            rows.map(|row| row.free_blocks.to_string()).collect()
        })
        .unwrap_or_default();
    let rows = bench.heaps.iter().filter(|heap| !heap.by_free.is_empty());
    let rows = rows.map(|heap| {
        let cells = heap.by_free.iter().map(|row| row.refuse.to_string());
        [heap.heap.clone()].into_iter().chain(cells).collect()
    });
    let mut head = vec!["heap"];
    head.extend(counts.iter().map(String::as_str));
    grid(
        "Instructions of a refusal by free blocks, each a granule too small",
        &head,
        rows.collect(),
    )
}

fn first_with(bench: &Bench, has: impl Fn(&HeapFigures) -> bool) -> Option<&HeapFigures> {
    bench.heaps.iter().find(|heap| has(heap))
}

fn moves(bench: &Bench) -> Grid {
    let mut rows = Vec::new();
    for heap in &bench.heaps {
        for of_one in heap
            .moves
            .chunk_by(|one, other| one.workload == other.workload)
        {
            let mut row = vec![format!("{} on {}", heap.heap, of_one[0].workload)];
            row.extend(of_one.iter().map(|moves| {
                let both = moves.per_allocation.zip(moves.most);
                or_none(both.map(|(mean, most)| format!("{mean:.3} / {most}")))
            }));
            rows.push(row);
        }
    }
    let caps = super::bench::CAPS.map(|percent| format!("cap {:.2}", percent as f64 / 100.0));
    let mut head = vec!["heap"];
    head.extend(caps.iter().map(String::as_str));
    grid(
        "Pages moved an allocation / most by one, by cap over the peak (first seed; - is too \
         small a cap)",
        &head,
        rows,
    )
}

fn times(bench: &Bench) -> Grid {
    let nanoseconds = |latency: &Latency| {
        let Latency {
            median,
            percentile_99,
            most,
            ..
        } = latency;
        [median, percentile_99, most]
            .map(|seconds| format!("{:.0}", seconds * 1e9))
            .join(" / ")
    };
    let rows = bench.heaps.iter().filter_map(|heap| {
        let time = heap.time.as_ref()?;
        Some(vec![
            heap.heap.clone(),
            nanoseconds(&time.allocate),
            nanoseconds(&time.free),
            or_none(time.ratio.map(|ratio| format!("{ratio:.2}"))),
        ])
    });
    grid(
        format!(
            "Nanoseconds of a call on {}: median / 99 % / maximum; both means over those of the \
             first heap",
            bench.workloads[0].workload
        ),
        &["heap", "allocate", "free", "ratio"],
        rows.collect(),
    )
}

fn provisioned(bench: &Bench) -> Grid {
    let rows = bench.heaps.iter().filter_map(|heap| {
        let provisioned = heap.provisioned.as_ref()?;
        let mut row = vec![heap.heap.clone(), format!("{:.3}", provisioned.ratio)];
        if let Some(bytes) = heap.host_bytes_per_block {
            row.push(format!("{bytes:.1}"));
        }
        Some(row)
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut head = vec!["heap", "provisioned / used"];
    if bench
        .heaps
        .iter()
        .any(|heap| heap.host_bytes_per_block.is_some())
    {
        head.push("host bytes a live block");
    }
    let columns = head.len();
    let padded = rows.into_iter().map(|mut row| {
        row.resize(columns, NONE.to_owned());
        row
    });
    grid(
        format!(
            "Most bytes provisioned / most bytes used on {}",
            bench.workloads[0].workload
        ),
        &head,
        padded.collect(),
    )
}

/// The paper's figure 4: about half as much again provisioned as used.
const PAPERS_FRAGMENTATION: f64 = 1.5;

/// The run as a report with pictures.
pub fn report(bench: &Bench) -> Report {
    let mut rows = Vec::new();
    for heap in &bench.heaps {
        let name = &heap.heap;
        if let Some(most) = heap.instructions_max {
            for (what, count) in [("allocate", most.allocate), ("free", most.free)] {
                rows.push(
                    Figure::new(format!("{name}: {what}, most instructions"), "")
                        .ours(count as f64),
                );
            }
        }
        if let Some(bound) = heap.instructions_bound {
            for (what, count) in [("allocate", bound.allocate), ("free", bound.free)] {
                if let Some(count) = count {
                    rows.push(
                        Figure::new(
                            format!("{name}: {what}, instructions of no call exceed"),
                            "",
                        )
                        .ours(count as f64)
                        .note("the longest path through the code"),
                    );
                }
            }
        }
        for (workload, ratio) in &heap.arena_ratio {
            let worst = heap.arena_ratio_worst[workload];
            let note = worst.map_or_else(
                || "8 times the peak do not suffice".to_owned(),
                |worst| format!("worst seed {worst:.3}"),
            );
            rows.push(
                Figure::new(format!("{name}: smallest arena / peak, {workload}"), "x")
                    .ours(*ratio)
                    .note(note),
            );
        }
        if let Some(provisioned) = &heap.provisioned {
            let mut row = Figure::new(format!("{name}: provisioned / used"), "x")
                .ours(provisioned.ratio)
                .note("the paper's benchmark");
            if name.starts_with("segregated-fit") {
                row = row.paper(PAPERS_FRAGMENTATION);
            }
            rows.push(row);
        }
        if let Some(time) = &heap.time {
            let note = format!(
                "medians: allocate {}, free {}",
                figure(time.allocate.median * 1e9, "ns"),
                figure(time.free.median * 1e9, "ns")
            );
            rows.push(
                Figure::new(format!("{name}: time over that of the first heap"), "x")
                    .ours(time.ratio)
                    .note(note),
            );
        }
    }
    let mut assumptions = bench.assumptions.clone();
    assumptions.push(
        "the paper's two orders of magnitude against cudaMalloc are not measured: that takes a GPU"
            .to_owned(),
    );
    Report {
        experiment: "device bench",
        rows,
        assumptions,
        contradicted: bench.contradicted.clone(),
        plots: plots(bench),
    }
}

fn plots(bench: &Bench) -> Vec<Plot> {
    let benchmark = &bench.workloads[0].workload;
    let with_time = || bench.heaps.iter().filter(|heap| heap.time.is_some());
    let over_time = |what: &str, values: &dyn Fn(&HeapFigures) -> Option<Vec<f64>>| {
        let series: Vec<Series> = with_time()
            .filter_map(|heap| {
                let nanoseconds = values(heap)?.into_iter().map(|seconds| seconds * 1e9);
                Some(Series::measured(&heap.heap, nanoseconds))
            })
            .collect();
        Plot {
            title: format!("Latency of {what} over time, {benchmark}"),
            x: "percent of the run".to_owned(),
            names: percents(series.first().map_or(0, |series| series.values.len())),
            y: "ns, median of an equal part of the run".to_owned(),
            joined: true,
            series,
        }
    };
    let mut plots = vec![
        over_time("allocate", &|heap| {
            Some(heap.time.as_ref()?.allocate_over_time.clone())
        }),
        over_time("free", &|heap| {
            Some(heap.time.as_ref()?.free_over_time.clone())
        }),
    ];
    plots.extend(provisioned_over_time(bench));
    plots.push(Plot {
        title: "Smallest arena / peak live bytes, mean of the seeds".to_owned(),
        x: "workload".to_owned(),
        names: bench
            .workloads
            .iter()
            .map(|row| row.workload.clone())
            .collect(),
        y: "arena / peak".to_owned(),
        joined: false,
        series: bench
            .heaps
            .iter()
            .map(|heap| {
                let ratio = |workload: &String| heap.arena_ratio[workload].unwrap_or(f64::NAN);
                let names = bench.workloads.iter().map(|row| &row.workload);
                Series::measured(&heap.heap, names.map(ratio))
            })
            .collect(),
    });
    plots.extend(by_blocks(bench));
    plots.retain(|plot| !plot.series.is_empty());
    plots
}

/// Names of so many moments: every tenth percent or so is written.
fn percents(moments: usize) -> Vec<String> {
    (0..moments)
        .map(|moment| match moment % 10 {
            0 => (100 * moment / moments).to_string(),
            _ => String::new(),
        })
        .collect()
}

/// Heaps that decide alike are one line, with all their names.
fn provisioned_over_time(bench: &Bench) -> Option<Plot> {
    let mib = |bytes: &u64| *bytes as f64 / f64::from(1 << 20);
    let mut alike: Vec<(&Vec<u64>, Vec<&str>)> = Vec::new();
    let mut used = None;
    for heap in &bench.heaps {
        let Some(found) = &heap.provisioned else {
            continue;
        };
        used.get_or_insert(&found.used);
        let same = alike
            .iter_mut()
            .find(|(provisioned, _)| **provisioned == found.provisioned);
        match same {
            Some((_, names)) => names.push(&heap.heap),
            None => alike.push((&found.provisioned, vec![&heap.heap])),
        }
    }
    let mut series = vec![Series::reference("used", used?.iter().map(mib))];
    series.extend(alike.into_iter().map(|(provisioned, names)| {
        Series::measured(names.join(", "), provisioned.iter().map(mib))
    }));
    Some(Plot {
        title: format!(
            "Provisioned and used bytes over time, {}",
            bench.workloads[0].workload
        ),
        x: "percent of the run".to_owned(),
        names: percents(series.first()?.values.len()),
        y: "MiB".to_owned(),
        joined: true,
        series,
    })
}

fn by_blocks(bench: &Bench) -> [Plot; 2] {
    let counted = bench
        .heaps
        .iter()
        .filter(|heap| heap.instructions.is_some());
    let counted: Vec<&HeapFigures> = counted.collect();
    let y = "instructions".to_owned();
    [
        Plot {
            title: "Instructions of a refusal, by free blocks that are too small".to_owned(),
            x: "free blocks".to_owned(),
            names: super::bench::FREE_BLOCKS
                .map(|blocks| blocks.to_string())
                .to_vec(),
            y: y.clone(),
            joined: true,
            series: counted
                .iter()
                .filter(|heap| !heap.by_free.is_empty())
                .map(|heap| {
                    let counts = heap.by_free.iter().map(|row| row.refuse as f64);
                    Series::measured(&heap.heap, counts)
                })
                .collect(),
        },
        Plot {
            title: "Most instructions of allocate, by live blocks".to_owned(),
            x: "live blocks".to_owned(),
            names: counted.first().map_or(Vec::new(), |heap| {
                let rows = heap.by_live.iter();
                rows.map(|row| row.live_blocks.to_string()).collect()
            }),
            y,
            joined: true,
            series: counted
                .iter()
                .map(|heap| {
                    let counts = heap.by_live.iter().map(|row| row.allocate as f64);
                    Series::measured(&heap.heap, counts)
                })
                .collect(),
        },
    ]
}
