//! What is written down: the report's document, the page, the files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use metes_explore::engine::{Evaluator, ObjectiveSet};
use metes_explore::report::{Document, Material};
use metes_explore::{
    Budget, Events, Exploration, Options, Preference, Space, SystemClock, Timer, catalogue, choose,
    compare, explore, write_whole,
};
use metes_trace::{Provenance, Trace, TraceBuilder, profile};
use serde_json::Value;

fn trace() -> Trace {
    let mut builder = TraceBuilder::new();
    let mut live = Vec::new();
    for step in 0..900_u64 {
        let size = [24, 40, 1514, 300 + step % 50][step as usize % 4];
        live.push(builder.alloc(step * 1000, 0, size, 16).unwrap());
        if live.len() > 60 {
            let block = live.swap_remove(step as usize * 13 % 60);
            builder.free(step * 1000 + 500, 0, block).unwrap();
        }
        if step % 40 == 0 {
            builder
                .resize(step * 1000 + 600, 0, live[0], 700 + step, 16)
                .unwrap();
        }
    }
    builder.finish(Provenance {
        command: vec!["/usr/bin/</script>&co".to_owned(), "--x".to_owned()],
        host: "a test".to_owned(),
        threads: 1,
        ..Provenance::default()
    })
}

fn budget() -> Budget {
    Budget {
        time: None,
        evaluations: Some(60),
        ..Budget::default()
    }
}

fn search() -> Exploration {
    let events = Events::try_from(&trace()).unwrap();
    let (clock, stop) = (SystemClock::start(), AtomicBool::new(false));
    let options = Options::default();
    let space = Space::suggested(&events, &options.arena);
    let evaluator = Evaluator::new(&space, &events, &options, ObjectiveSet::HOST);
    let timer = Timer::begin(&clock, None, &stop);
    explore(&evaluator, &budget(), None, &timer, &mut ()).unwrap()
}

fn document() -> Document {
    let trace = trace();
    let profile = profile(&trace);
    let events = Events::try_from(&trace).unwrap();
    let exploration = search();
    let choice = choose(&exploration, Preference::default());
    let mut heaps: Vec<_> = catalogue()
        .into_iter()
        .map(|named| (named.name.to_owned(), named.description))
        .collect();
    let chosen = &choice.as_ref().unwrap().outcome;
    heaps.push((chosen.heap.clone(), chosen.description));
    let options = Options::default();
    let (clock, stop) = (SystemClock::start(), AtomicBool::new(false));
    let timer = Timer::begin(&clock, None, &stop);
    Document::new(&Material {
        trace: &trace,
        profile: &profile,
        deterministic: None,
        exploration: &exploration,
        budget: &budget(),
        options: &options,
        compared: &compare(&heaps, &events, &options, &exploration.details, &timer),
        choice: choice.as_ref(),
    })
}

/// Checks what the schema says by `type`, `enum`, `const`, `required`, `items`,
/// `minItems`, `maxItems`, `minimum`, `oneOf`, `additionalProperties` and `$ref`.
fn check(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root
            .pointer(name.trim_start_matches('#'))
            .expect("a known reference");
        return check(value, target, root, at);
    }
    let fail = |what: &str| Err(format!("{at}: {what}: {value}"));
    if let Some(one) = schema["oneOf"].as_array()
        && one
            .iter()
            .filter(|schema| check(value, schema, root, at).is_ok())
            .count()
            != 1
    {
        return fail("not one of the forms");
    }
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    };
    let right = match &schema["type"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    };
    if !right {
        return fail("another type");
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|all| !all.contains(value))
    {
        return fail("not in the enumeration");
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return fail("another constant");
    }
    let below = |least: f64| value.as_f64().is_some_and(|number| number < least);
    if schema["minimum"].as_f64().is_some_and(below) {
        return fail("below the minimum");
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().expect("a name")) {
                return fail(&format!("{name} is missing"));
            }
        }
        for (name, field) in fields {
            if let Some(schema) = schema["properties"].get(name) {
                check(field, schema, root, &format!("{at}.{name}"))?;
            }
        }
    }
    if let Value::Array(items) = value {
        let count = items.len() as u64;
        if schema["minItems"]
            .as_u64()
            .is_some_and(|least| count < least)
            || schema["maxItems"].as_u64().is_some_and(|most| count > most)
        {
            return fail("another number of items");
        }
        if let Some(schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                check(item, schema, root, &format!("{at}[{index}]"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_document_keeps_the_schema_of_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/report.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let document = serde_json::to_value(document()).unwrap();
    check(&document, &schema, &schema, "document").unwrap();
    // The check itself must be able to fail.
    let mut broken = document.clone();
    broken["trace"]["events"] = Value::from("many");
    assert!(check(&broken, &schema, &schema, "document").is_err());
    let mut broken = document;
    broken["heaps"][0].as_object_mut().unwrap().remove("bounds");
    assert!(check(&broken, &schema, &schema, "document").is_err());
}

#[test]
fn the_figures_of_a_document_agree_with_each_other() {
    let document = document();
    let chosen = document.chosen.as_ref().unwrap();
    let own: Vec<_> = document.heaps.iter().filter(|heap| heap.chosen).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(
        (own[0].footprint, &own[0].spec),
        (chosen.predicted.footprint, &chosen.spec)
    );
    assert_eq!(chosen.predicted.peak_live, document.trace.peak_live);
    assert_eq!(chosen.curve.last().unwrap().1, chosen.predicted.footprint);
    assert_eq!(
        metes_config::parse(&chosen.toml, "heap.toml")
            .unwrap()
            .name(),
        chosen.spec
    );
    let table = &document.configurations;
    assert_eq!(table.rows.len(), table.specs.len());
    assert!(table.specs.contains(&chosen.spec));
    for heap in &document.heaps {
        let arena = heap.smallest_arena.expect("cheap heaps are bisected");
        assert!(arena >= document.trace.peak_live, "{}", heap.name);
        // What suffices as one piece is no more than what growing took, but for
        // a growth increment and what rounding to classes costs.
        assert!(
            arena <= heap.footprint + heap.footprint / 4,
            "{}",
            heap.name
        );
        if heap.name == "best-fit" {
            let bounds = heap.bounds.as_ref().unwrap();
            assert!(bounds.heap_bytes.is_some_and(|bytes| bytes >= arena));
        }
    }
}

#[test]
fn the_page_is_whole_and_no_string_breaks_out_of_its_data() {
    let page = document().page().unwrap();
    for marker in ["/*METES_STYLE*/", "/*METES_SCRIPT*/", "/*METES_DATA*/"] {
        assert!(!page.contains(marker), "{marker} was not replaced");
    }
    let start = page.find("<script id=\"data\"").unwrap();
    let data = &page[start..];
    let data = &data[data.find('>').unwrap() + 1..data.find("</script>").unwrap()];
    let read: Value = serde_json::from_str(data).unwrap();
    assert_eq!(read["command"][0], "/usr/bin/</script>&co");
}

struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("metes-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn names(&self) -> BTreeSet<String> {
        std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_cannot_be_written_leaves_the_earlier_file() {
    let scratch = Scratch::new("whole");
    std::fs::create_dir_all(&scratch.0).unwrap();
    let path = scratch.0.join("report.html");
    write_whole(&path, b"first").unwrap();
    write_whole(&path, b"second").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"second");
    assert_eq!(scratch.names().len(), 1);
    // A directory in the way of the file that is renamed.
    let blocked = scratch.0.join("blocked");
    std::fs::create_dir_all(blocked.join("inside")).unwrap();
    let error = write_whole(&blocked, b"third").unwrap_err();
    assert!(error.to_string().contains("blocked"), "{error}");
    assert_eq!(
        scratch.names(),
        ["blocked", "report.html"].map(String::from).into()
    );
}
