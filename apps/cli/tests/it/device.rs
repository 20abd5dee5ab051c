//! `metes device bench`: the figures by their keys, the page, and what is no heap or trace; with
//! `--cuda` on the strict model of the driver, which has no figures.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::support::{Place, has_keys, libraries, parsed, refused, stderr, stdout};

/// Heaps whose instructions are not counted: an unoptimised heap takes minutes.
const QUICK: [&str; 7] = [
    "device", "bench", "--quick", "--heap", "sparse", "--heap", "best-fit",
];

#[test]
fn figures_have_their_keys_and_a_page() {
    let place = Place::new();
    place.write(
        "t.csv",
        "a,1,1000\na,2,70000\nf,1,0\na,3,5000\nf,2,0\nf,3,0\n",
    );
    place.metes(&["trace", "import", "t.csv", "-o", "t.trace.parquet"]);
    let mut arguments = QUICK.to_vec();
    arguments.extend(["--trace", "t.trace.parquet", "-o", "device.html"]);
    let (status, found) = place.json(&arguments);
    assert_eq!(status, 0);
    has_keys(
        &found,
        &[
            "heaps",
            "workloads",
            "contradicted",
            "assumptions",
            "holds",
            "page",
        ],
    );
    // Two heaps have one name.
    let told = found["assumptions"][0].as_str().unwrap_or_default();
    assert!(told.contains("the host's, with boundary tags"), "{told}");
    let heaps = found["heaps"].as_array().expect("heaps");
    for (heap, name) in heaps.iter().zip(["sparse", "best-fit"]) {
        has_keys(heap, &["heap", "store", "instructions_max", "arena_ratio"]);
        assert_eq!(heap["heap"], name);
        let ratios = heap["arena_ratio"].as_object().expect("ratios");
        assert_eq!(ratios.len(), 5, "{ratios:?}");
        // Pages of 2 MiB under blocks of kilobytes.
        assert!(heap["arena_ratio"]["t"].as_f64() >= Some(1.0));
        assert!(heap["arena_ratio"]["uniform-100"].as_f64() < Some(1.3));
        assert!(heap["time"]["allocate"]["median"].as_f64() < Some(1.0));
    }
    assert_eq!(heaps[0]["moves"].as_array().map(Vec::len), Some(15));
    let page = place.read("device.html");
    for part in [
        "metes device bench",
        "on a host for device memory",
        "Provisioned and used",
        "best-fit",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("METES_"));
}

#[test]
fn what_is_no_heap_or_trace_is_said() {
    let place = Place::new();
    for (heap, said) in [
        ("tslf", "did you mean `tlsf`?"),
        ("tlsf:probes=7", "one of 0, 1, 2, 3, 4, 8"),
        ("tlsf:page=4", "no parameter `page`"),
        ("sparse:page=3MiB", "power of two"),
    ] {
        refused(&place.metes(&["device", "bench", "--heap", heap]), &[said]);
    }
    refused(
        &place.metes(&["device", "bench", "--heap", "tlsf", "--heap", "tlsf"]),
        &["given twice"],
    );
    let none = place.metes(&["device", "bench", "--trace", "none.parquet"]);
    refused(&none, &["none.parquet", "check the path"]);
    let page = place.metes(&["device", "bench", "-o", "no/where.html"]);
    refused(&page, &["no/where.html", "check the path"]);
    refused(&place.metes(&["device"]), &["bench"]);
}

/// Has the loader find `driver` as the driver of CUDA.
fn cuda(place: &Place, driver: &[u8], variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let directory = place.path("driver");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("libcuda.so.1"), driver).expect("the driver");
    let mut command = place.command(arguments);
    command.env("LD_LIBRARY_PATH", &directory);
    command.envs(variables.iter().copied());
    command.output().expect("metes runs")
}

/// The strict model of the driver.
fn model() -> Vec<u8> {
    fs::read(libraries().join("libmetes_dry_device.so")).expect("the model of the driver")
}

/// The model without a function: its name in the library becomes another one of the same hash
/// (of GNU's: times 33, plus the next letter), by which the library still finds it itself.
fn without(function: &str) -> Vec<u8> {
    let mut library = model();
    let name = format!("\0{function}\0").into_bytes();
    let last = name.len() - 2;
    let places: Vec<usize> = (0..library.len() - name.len())
        .filter(|&at| library[at..].starts_with(&name))
        .collect();
    assert!(!places.is_empty(), "the model has no {function}");
    for at in places {
        library[at + last - 1] += 1;
        library[at + last] -= 33;
    }
    library
}

const CUDA: [&str; 4] = ["device", "bench", "--cuda", "--quick"];
const WHOLE: [&str; 4] = ["--json", "device", "bench", "--cuda"];
const CUDA_JSON: [&str; 5] = ["--json", "device", "bench", "--cuda", "--quick"];

/// Every figure of a JSON document by the keys to it.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(all) => all.iter().for_each(|one| numbers(one, path, found)),
        Value::Object(all) => {
            for (key, one) in all {
                numbers(one, &format!("{path}.{key}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_model_of_the_driver_gives_no_times() {
    let place = Place::new();
    let output = cuda(&place, &model(), &[], &CUDA);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = "the strict model of the driver, not a device: no figures";
    assert!(text.contains(said), "{text}");
    for unit in [" ns", " µs", " ms", " s ", "seconds"] {
        assert!(!text.contains(unit), "a time in {unit:?}: {text}");
    }
    let (_, found) = parsed(&cuda(&place, &model(), &[], &CUDA_JSON));
    assert_eq!(found["measured"], false);
    let mut figures = Vec::new();
    numbers(&found, "", &mut figures);
    assert!(figures.len() > 100);
    for path in figures {
        for time in [
            ".allocate.",
            ".free.",
            ".ratio",
            ".memory_ratio",
            ".calls.",
            ".call.",
            ".other.",
            ".pause.",
        ] {
            assert!(!path.contains(time), "a figure at {path}");
        }
    }
}

/// What the model knows: how often its calls are made, and which of them wait.
#[test]
fn the_model_of_the_driver_counts_its_calls() {
    let place = Place::new();
    let (status, found) = parsed(&cuda(&place, &model(), &[], &WHOLE));
    assert_eq!(status, 0);
    for workload in found["exchange"].as_array().expect("workloads") {
        let of = |name: &str| {
            let all = workload["allocators"].as_array().expect("allocators");
            let found = all.iter().find(|one| one["name"] == name);
            found.unwrap_or_else(|| panic!("no {name} in {workload}"))
        };
        for name in ["tlsf", "tlsf:store=table", "segregated-fit"] {
            assert_eq!(of(name)["allocate_calls"]["most"], 0.0, "{name}");
        }
        for name in ["cuMemAlloc", "cuMemAllocAsync", "cuMemAllocAsync, keeping"] {
            assert_eq!(of(name)["allocate_calls"]["mean"], 1.0, "{name}");
            assert_eq!(of(name)["free_calls"]["most"], 1.0, "{name}");
        }
        let sparse = of("sparse");
        assert_eq!(sparse["free_calls"]["most"], 0.0);
        // A page is created or unmapped, mapped and opened, each within the context by five calls.
        let calls = sparse["allocate_calls"]["mean"].as_f64().expect("a mean")
            * sparse["allocate_calls"]["count"].as_f64().expect("a count");
        let [mapped, moved] =
            ["pages_mapped", "pages_moved"].map(|key| sparse[key].as_f64().expect("pages"));
        let pages = mapped + moved;
        assert!(mapped > 100.0);
        let rounds = sparse["rounds"].as_f64().expect("rounds");
        assert!(
            (calls - 15.0 * pages * rounds).abs() < 0.5,
            "{calls} for {pages} pages"
        );
    }
    for way in found["paging"].as_array().expect("ways") {
        for call in ["cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease"] {
            let found = &way["driver_calls"][call];
            assert_eq!(found["median"].as_f64(), way["handles"].as_f64(), "{way}");
        }
    }
    let waits = |name: &str| {
        let all = found["stall"].as_array().expect("calls");
        let one = all.iter().find(|one| one["name"] == name).expect(name);
        assert_eq!(one["trials"], 20, "{one}");
        (one["waited"].as_u64(), one["other_held"].as_u64())
    };
    assert_eq!(waits("(nothing)"), (Some(0), Some(0)));
    assert_eq!(waits("cuMemUnmap"), (Some(0), Some(0)));
    assert_eq!(waits("cuMemFreeAsync"), (Some(0), Some(0)));
    assert_eq!(waits("cuMemFree"), (Some(20), Some(20)));
}

/// Without the model's own functions it is taken for a device: then there are times, and no rows of
/// stalls, as its kernels end at once.
#[test]
fn what_a_device_takes_is_timed() {
    let place = Place::new();
    let device = without("metes_dry_each_call");
    let (status, found) = parsed(&cuda(&place, &device, &[], &CUDA_JSON));
    assert_eq!(status, 0);
    assert_eq!(found["measured"], true);
    for workload in found["exchange"].as_array().expect("workloads") {
        for one in workload["allocators"].as_array().expect("allocators") {
            for call in ["allocate", "free"] {
                let [median, most] = ["median", "most"].map(|key| one[call][key].as_f64());
                assert!(median >= Some(0.0) && median <= most, "{one}");
                assert!(most > Some(0.0), "{one}");
            }
            assert_eq!(one["allocate_calls"], Value::Null, "{one}");
            // What is live at the peak is taken of the device by whatever gives it out.
            assert!(one["memory_ratio"].as_f64() >= Some(1.0), "{one}");
            assert!(one["ratio"]["least"].as_f64() <= one["ratio"]["most"].as_f64());
        }
        assert_eq!(workload["allocators"][0]["ratio"]["median"], 1.0);
    }
    for way in found["paging"].as_array().expect("ways") {
        assert_eq!(
            way["calls"].as_object().map(serde_json::Map::len),
            Some(7),
            "{way}"
        );
    }
    for call in found["stall"].as_array().expect("calls") {
        let why = call["not_measured"].as_str().expect("a reason");
        assert!(why.contains("ended before 20 ms"), "{call}");
    }
    let text = stdout(&cuda(&place, &device, &[], &CUDA));
    assert!(!text.contains("model") && text.contains(" ns / "), "{text}");
}

#[test]
fn what_a_driver_lacks_is_not_measured_and_said() {
    let place = Place::new();
    let reasons = |driver: &[u8], variables: &[(&str, &str)]| {
        let output = cuda(&place, driver, variables, &CUDA);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let old = reasons(&without("cuMemAllocAsync"), &[]);
    assert!(
        old.contains("cuMemAllocAsync in the CUDA driver is not there"),
        "{old}"
    );
    assert!(!old.contains("uniform-100, cuMemAlloc:"), "{old}");
    let older = reasons(&without("cuMemAddressReserve"), &[]);
    assert!(
        older.contains("uniform-100, sparse: cuMemAddressReserve"),
        "{older}"
    );
    assert!(
        older.contains("stall, cuMemUnmap: cuMemAddressReserve"),
        "{older}"
    );
    assert!(!older.contains("uniform-100, cuMemAlloc"), "{older}");
    let small = reasons(&model(), &[("METES_DEVICE_BYTES", "300MiB")]);
    assert!(
        small.contains("uniform-100, tlsf: the device has no"),
        "{small}"
    );
    assert!(small.contains("of 14431232 bytes was refused"), "{small}");
}

#[test]
fn without_a_device_nothing_is_measured() {
    let place = Place::new();
    let none = cuda(&place, b"no library", &[], &CUDA);
    refused(&none, &["the CUDA driver", "install NVIDIA's driver"]);
    let none = cuda(&place, &model(), &[("METES_DEVICE_BYTES", "0")], &CUDA);
    refused(&none, &["a GPU that CUDA can use", "nvidia-smi"]);
    let other = ["device", "bench", "--cuda", "7"];
    refused(
        &cuda(&place, &model(), &[], &other),
        &["CUDA device 7", "there are 1", "numbered from 0"],
    );
    for (arguments, said) in [
        (&["device", "bench", "--cuda", "first"][..], "first"),
        (&["device", "bench", "--cuda", "--heap", "tlsf"], "--heap"),
        (&["device", "bench", "--cuda", "-o", "x.html"], "--output"),
    ] {
        refused(&cuda(&place, &model(), &[], arguments), &[said]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_watched_is_said() {
    let place = Place::new();
    place.write("text", "no board");
    place.write("long", &"no board ".repeat(1000));
    for (target, said) in [
        // The first process of a machine has no heap.
        ("1", "no device heap 1"),
        ("1.5", "no device heap 1.5"),
        ("none", "No such file"),
        ("text", "is no board of a device heap"),
        ("long", "is no board of a device heap"),
        (".", "is no board of a device heap"),
    ] {
        refused(&place.metes(&["device", "watch", target]), &[said]);
        refused(
            &place.metes(&["--json", "device", "watch", target]),
            &[said],
        );
    }
    for (options, said) in [
        (&["--page", "nowhere"][..], "--page"),
        (&["--page", "--once"], "cannot be used with"),
        (&["--interval", "0"], "above zero"),
    ] {
        let arguments: Vec<&str> = ["device", "watch", "1"]
            .iter()
            .chain(options)
            .copied()
            .collect();
        refused(&place.metes(&arguments), &[said]);
    }
}
