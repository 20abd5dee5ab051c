//! `metes device bench`: the figures by their keys, the page, and what is no heap or trace.

use crate::support::{Place, has_keys, refused};

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
        "<svg",
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
