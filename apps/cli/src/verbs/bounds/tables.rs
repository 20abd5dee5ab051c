//! `metes bounds --tables`: what every heap declares, in the tables of compact-fit's slides.

use metes_cases::slides::{self, Concurrent, Difference, Entry};
use metes_heap::complexity::{Growth, Predictability};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::output::{self, BOLD, POOR, Table};

pub(super) fn run(json: bool) -> Result<u8, Failure> {
    let (overview, concurrent) = (slides::overview(), slides::concurrent());
    if json {
        output::json(&document(&overview, &concurrent))?;
    } else {
        show(&overview, &concurrent)?;
    }
    Ok(0)
}

fn document(overview: &[Entry], concurrent: &[Concurrent]) -> Value {
    json!({
        "source": SOURCE,
        "overview": overview.iter().map(entry).collect::<Vec<_>>(),
        "concurrent": concurrent.iter().map(configuration).collect::<Vec<_>>(),
    })
}

const SOURCE: &str = "Kirsch, Sokolova: Explicit, Dynamic Memory Management with Temporal and \
                      Spatial Guarantees (ARTIST summer school 2009)";

fn entry(entry: &Entry) -> Value {
    let mut time = json!({});
    let mut block = json!({});
    for (operation, own) in slides::OPERATIONS.into_iter().zip(entry.times()) {
        time[operation] = own.notation().into();
        block[operation] = own.in_block().map(Growth::notation).into();
    }
    json!({
        "heap": entry.heap,
        "time": time,
        "time_in_block": block,
        "fragmentation": entry.declared.fragmentation.name(),
        "slides": entry.slides.map(|slides| json!({
            "name": slides.name,
            "allocate": slides::row(slides.times[0]),
            "free": slides::row(slides.times[1]),
            "access": slides::row(slides.times[2]),
            "fragmentation": slides.fragmentation.name(),
        })),
        "differences": differences(&entry.differences()),
    })
}

fn configuration(row: &Concurrent) -> Value {
    let columns = |values: [&str; 5]| {
        let [allocate, free, latency, memory, fragmentation] = values;
        json!({
            "allocate": allocate,
            "free": free,
            "latency": latency,
            "memory": memory,
            "fragmentation": fragmentation,
        })
    };
    let mut document = columns(row.ours());
    document["configuration"] = row.configuration.to_string().into();
    document["slides"] = row.slides.map(columns).into();
    document["differences"] = differences(&row.differences());
    document
}

fn differences(all: &[Difference]) -> Value {
    let one = |difference: &Difference| {
        json!({
            "what": difference.what,
            "slides": difference.slides,
            "ours": difference.ours,
            "reason": difference.reason,
        })
    };
    all.iter().map(one).collect()
}

fn show(overview: &[Entry], concurrent: &[Concurrent]) -> Result<(), Failure> {
    let mut text = format!(
        "{BOLD}Time and fragmentation{BOLD:#}, as the heaps declare them: n is the bytes of the \
         block,\nunbounded what also grows with the heap\n\n{}\n",
        quadrants(overview)
    );
    text += &format!("{BOLD}Beside the slides{BOLD:#}\n\n{}", beside(overview));
    for entry in overview {
        for difference in entry.differences() {
            text += &remark(&entry.heap, &difference);
        }
    }
    text += &format!(
        "\n{BOLD}Compact-fit for n threads{BOLD:#}, by size class: m page-blocks a thread, π of \
         a page, β bytes of one,\nκ pages not full, increments of ι bytes\n\n"
    );
    let mut head = vec![""; 1 + slides::COLUMNS.len()];
    head[0] = "configuration";
    head[1..].copy_from_slice(&slides::COLUMNS);
    let mut table = Table::new(&head);
    for row in concurrent {
        let mut cells = vec![row.configuration.to_string()];
        cells.extend(row.ours().map(str::to_owned));
        table.row(anstyle::Style::new(), cells);
    }
    text += &format!("{table}\n");
    let mut same = true;
    for row in concurrent {
        for difference in row.differences() {
            same = false;
            text += &remark(&row.configuration.to_string(), &difference);
        }
        if row.slides.is_none() {
            text += &format!("  {} is not in the slides\n", row.configuration);
        }
    }
    if same {
        text += "  all others are as the slides print them\n";
    }
    text += &format!(
        "\n  slides: {SOURCE}\n  `metes reproduce complexity` holds every declaration against \
         counted instructions\n"
    );
    output::text(&text)
}

fn remark(heap: &str, difference: &Difference) -> String {
    let Difference {
        what,
        slides,
        ours,
        reason,
    } = difference;
    format!("  {POOR}{heap}: {what} {ours}, slides {slides}{POOR:#}: {reason}\n")
}

/// The quadrants: rows by time, columns by fragmentation, in each the operations of each heap.
fn quadrants(overview: &[Entry]) -> Table {
    let mut table = Table::left(&["time", "unpredictable", "predictable"]);
    for growth in slides::ROWS {
        let cell = |fragmentation: Predictability| {
            let of = |entry: &Entry| {
                let own = slides::OPERATIONS.into_iter().zip(entry.times());
                let here: Vec<&str> = own
                    .filter(|(_, time)| time.in_block() == growth)
                    .map(|(operation, _)| operation)
                    .collect();
                (!here.is_empty()).then(|| format!("{}: {}", entry.heap, here.join(", ")))
            };
            let those = |entry: &&Entry| entry.declared.fragmentation == fragmentation;
            overview
                .iter()
                .filter(those)
                .filter_map(of)
                .collect::<Vec<_>>()
        };
        let left = cell(Predictability::Unpredictable);
        let right = cell(Predictability::Predictable);
        for line in 0..left.len().max(right.len()).max(1) {
            let name = if line == 0 { slides::row(growth) } else { "" };
            let at = |cell: &[String]| cell.get(line).cloned().unwrap_or_default();
            table.row(
                anstyle::Style::new(),
                vec![name.to_owned(), at(&left), at(&right)],
            );
        }
    }
    table
}

fn beside(overview: &[Entry]) -> Table {
    let mut table = Table::left(&[
        "heap", "slides", "allocate", "slides", "free", "slides", "access", "slides",
    ]);
    for entry in overview {
        let Some(slides) = entry.slides else {
            continue;
        };
        let mut cells = vec![entry.heap.clone(), slides.name.to_owned()];
        for (own, theirs) in entry.times().into_iter().zip(slides.times) {
            cells.push(own.notation().to_owned());
            cells.push(slides::row(theirs).to_owned());
        }
        table.row(anstyle::Style::new(), cells);
    }
    table
}
