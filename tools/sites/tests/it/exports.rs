//! Files for other tools, read by readers of another make.

use std::path::Path;
use std::process::Command;

use metes_sites::{By, Sites, folded, page, pprof};
use metes_trace::{read_parquet, write_parquet};

use crate::support::{Place, named, recorded, run};

#[test]
fn a_trace_file_carries_its_stacks() {
    let place = Place::new();
    let trace = named(&place.compile("tree", "tree", &["-O2", "-g"]), &[]);
    let file = place.file("tree.trace.parquet");
    write_parquet(&trace, &file).expect("room");
    let read = read_parquet(&file).expect("a trace");
    assert_eq!(read, trace);
    // Without stacks a file does not have a byte of them.
    let mut bare = trace.clone();
    bare.stacks = metes_trace::Stacks::default();
    let other = place.file("bare.trace.parquet");
    write_parquet(&bare, &other).expect("room");
    let holds = |path: &Path| {
        let bytes = std::fs::read(path).expect("a file");
        bytes.windows(12).any(|window| window == b"metes.stacks")
    };
    assert!(holds(&file) && !holds(&other));
}

#[test]
fn a_recording_without_stacks_has_none() {
    let place = Place::new();
    let program = place.compile("tree", "tree", &["-O2", "-g"]);
    let library = metes_libraries::beside().join("libmetes_record.so");
    let options = metes_trace::RecordOptions::new(library);
    let recording = metes_trace::record(&[program.clone().into_os_string()], &options);
    let plain = recording.expect("a recording").main;
    let sited = recorded(&program, &[]).main;
    assert!(plain.stacks.is_empty() && plain.iter().all(|event| event.site == 0));
    // Otherwise both are the same requests.
    let requests = |trace: &metes_trace::Trace| -> Vec<_> {
        let events = trace.iter();
        events
            .map(|event| (event.op, event.block, event.size, event.align))
            .collect()
    };
    assert_eq!(requests(&plain), requests(&sited));
}

#[test]
fn folded_stacks_add_up() {
    let place = Place::new();
    let trace = named(&place.compile("tree", "tree", &["-O2", "-g"]), &[]);
    let sites = Sites::of(&trace);
    for by in By::ALL {
        let text = folded(&trace.stacks, &sites, |figures| by.of(figures));
        let figures = text.lines().map(|line| {
            let (names, figure) = line.rsplit_once(' ').expect("names and a figure");
            assert!(!names.is_empty());
            figure.parse::<u64>().expect("a figure")
        });
        assert_eq!(figures.sum::<u64>(), sites.total(|figures| by.of(figures)));
        if by == By::Leaked {
            assert!(text.contains(";main;path_two;leaf 1000\n"), "{text}");
            assert!(text.contains(";main;around;inlined 150\n"), "{text}");
        }
    }
}

/// Reads a profile by the descriptors of the form, which python's protobuf is given, and prints its samples.
const READER: &str = r#"
import gzip, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
F = descriptor_pb2.FieldDescriptorProto
file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
def message(kind_name, **fields):
    own = file.message_type.add(name=kind_name)
    for field, (number, kind, many) in fields.items():
        one = own.field.add(name=field, number=number, label=F.LABEL_REPEATED if many else F.LABEL_OPTIONAL)
        if kind in (F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_STRING): one.type = kind
        else: one.type, one.type_name = F.TYPE_MESSAGE, ".p." + kind
I, U, B, S = F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_STRING
message("ValueType", type=(1, I, 0), unit=(2, I, 0))
message("Sample", location_id=(1, U, 1), value=(2, I, 1))
message("Mapping", id=(1, U, 0), memory_start=(2, U, 0), memory_limit=(3, U, 0), file_offset=(4, U, 0), filename=(5, I, 0), build_id=(6, I, 0),
        has_functions=(7, B, 0), has_filenames=(8, B, 0), has_line_numbers=(9, B, 0), has_inline_frames=(10, B, 0))
message("Line", function_id=(1, U, 0), line=(2, I, 0))
message("Location", id=(1, U, 0), mapping_id=(2, U, 0), address=(3, U, 0), line=(4, "Line", 1), is_folded=(5, B, 0))
message("Function", id=(1, U, 0), name=(2, I, 0), system_name=(3, I, 0), filename=(4, I, 0), start_line=(5, I, 0))
message("Profile", sample_type=(1, "ValueType", 1), sample=(2, "Sample", 1), mapping=(3, "Mapping", 1), location=(4, "Location", 1),
        function=(5, "Function", 1), string_table=(6, S, 1), time_nanos=(9, I, 0), duration_nanos=(10, I, 0), period_type=(11, "ValueType", 0),
        period=(12, I, 0), comment=(13, I, 1), default_sample_type=(14, I, 0))
pool = descriptor_pool.DescriptorPool()
pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
kind = pool.FindMessageTypeByName("p.Profile")
make = message_factory.GetMessageClass(kind) if hasattr(message_factory, "GetMessageClass") else message_factory.MessageFactory(pool).GetPrototype(kind)
profile = make.FromString(gzip.open(sys.argv[1]).read())
text = profile.string_table
assert text[0] == ""
assert [(text[t.type], text[t.unit]) for t in profile.sample_type][3] == ("inuse_space", "bytes")
assert text[profile.default_sample_type] == "inuse_space"
locations = {l.id: l for l in profile.location}
functions = {f.id: f for f in profile.function}
mappings = {m.id: m for m in profile.mapping}
for location in locations.values():
    if location.mapping_id:
        mapping = mappings[location.mapping_id]
        assert mapping.memory_start <= location.address < mapping.memory_limit
for sample in profile.sample:
    assert len(sample.value) == len(profile.sample_type)
    names = [text[functions[line.function_id].name] for id in sample.location_id for line in locations[id].line]
    print(";".join(reversed(names)), *sample.value)
"#;

#[test]
fn a_profile_is_read_by_another_decoder() {
    let place = Place::new();
    let trace = named(&place.compile("tree", "tree", &["-O2", "-g"]), &[]);
    let sites = Sites::of(&trace);
    let file = place.file("tree.pb.gz");
    std::fs::write(&file, pprof(&trace, &sites).expect("memory")).expect("room");
    let printed = run(Command::new("/usr/bin/python3")
        .args(["-c", READER])
        .arg(&file));
    let printed = String::from_utf8(printed).expect("text");
    let line = |ending: &str| {
        let mut lines = printed.lines().filter(|line| line.contains(ending));
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("{ending} in {printed}"));
        let figures = line
            .rsplit(' ')
            .take(6)
            .map(|figure| figure.parse::<u64>().expect("a figure"));
        let mut figures: Vec<u64> = figures.collect();
        figures.reverse();
        figures
    };
    assert_eq!(line(";main;path_two;leaf ")[..2], [5, 1000]);
    assert_eq!(line(";main;path_two;leaf ")[4..], [5, 1000]);
    assert_eq!(line(";main;around;inlined ")[..2], [3, 150]);
    let sums = printed
        .lines()
        .map(|line| line.rsplit(' ').next().expect("figures"));
    let leaked: u64 = sums
        .map(|figure| figure.parse::<u64>().expect("a figure"))
        .sum();
    assert_eq!(leaked, sites.leaked - sites.figures[0].leaked_bytes);
}

#[test]
fn the_page_has_the_flames() {
    let place = Place::new();
    let trace = named(&place.compile("tree", "tree", &["-O2", "-g"]), &[]);
    let sites = Sites::of(&trace);
    let text = page(&trace, &sites, By::Peak).expect("JSON");
    let data = text
        .split_once("id=\"data\"")
        .map(|(_, rest)| rest)
        .expect("a document");
    let data = data
        .split_once('>')
        .and_then(|(_, rest)| rest.split_once("</script>"));
    let data: serde_json::Value = serde_json::from_str(data.expect("a document").0).expect("JSON");
    let nodes = data["nodes"].as_array().expect("nodes");
    let figure = |node: &serde_json::Value, which: usize| node[which].as_u64().expect("a figure");
    assert_eq!(figure(&nodes[0], 4), sites.peak_live);
    assert_eq!(figure(&nodes[0], 5), sites.leaked);
    // No call is less than what it calls together.
    for which in 2..6 {
        let mut below = vec![0; nodes.len()];
        for node in &nodes[1..] {
            below[figure(node, 0) as usize] += figure(node, which);
        }
        for (node, below) in nodes.iter().zip(below) {
            assert!(figure(node, which) >= below);
        }
    }
    let names: Vec<&str> = data["names"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    for name in ["everything", "main", "path_two", "leaf", "inlined"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}
