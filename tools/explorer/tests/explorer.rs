//! Folders, the page's document, exports and the routes of the server.

use std::fs;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use metes_explorer::export::{self, Form};
use metes_explorer::serve::{Server, router};
use metes_explorer::{Error, Folder, page};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

#[path = "../examples/sample.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "an example whose folders serve as samples"
)]
mod sample;

fn folder() -> (TempDir, Folder) {
    let directory = tempfile::tempdir().unwrap();
    sample::leave(directory.path(), None);
    let folder = Folder::read(directory.path()).unwrap();
    (directory, folder)
}

/// The JSON document inside a page.
fn document(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script id=\"data\" type=\"application/json\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_folder_is_read_whole() {
    let (_directory, folder) = folder();
    let rows = folder.columns.rows();
    assert_eq!(
        rows as u64,
        folder.exploration["configurations"].as_u64().unwrap()
    );
    let front: Vec<u64> = (0..rows)
        .filter(|&row| folder.columns.integer("front", row) == Some(1))
        .map(|row| folder.columns.integer("number", row).unwrap())
        .collect();
    let said = folder.exploration["front"].as_array().unwrap();
    assert_eq!(front.len(), said.len());
    assert!(front.iter().all(|&number| folder.heap(number).is_some()));
    let beaten = (0..rows as u64).find(|&number| folder.heap(number).is_none());
    assert!(
        beaten.is_some(),
        "not every configuration carries its heap.toml"
    );
}

#[test]
fn the_page_carries_all_rows_and_asks_for_nothing() {
    let (_directory, folder) = folder();
    let page = page::page(&folder, false).unwrap();
    assert!(page.contains("default-src 'none'") && page.contains("connect-src 'none'"));
    assert!(!page.contains("/*METES_DATA") && !page.contains("/*METES_STYLE"));
    let document = document(&page);
    assert_eq!(document["rows"], folder.columns.rows());
    assert_eq!(document["served"], false);
    assert_eq!(
        document["columns"].as_array().unwrap().len(),
        folder.columns.list.len()
    );
    let named = &document["columns"][1];
    assert_eq!(named["key"], "named");
    assert_eq!(named["kind"], "u8");
    assert!(
        named["words"]
            .as_array()
            .unwrap()
            .contains(&"kingsley".into())
    );
}

#[test]
fn the_parts_of_a_heap_add_up_to_its_replay() {
    let (_directory, folder) = folder();
    for detail in folder.exploration["detail"].as_array().unwrap() {
        let number = detail["number"].as_u64().unwrap();
        let row = folder.columns.row_of(number).unwrap();
        let parts = detail["parts"].as_array().unwrap();
        let sum = |of: &dyn Fn(&Value) -> u64| parts.iter().map(of).sum::<u64>();
        let field = |part: &Value, name: &str| part[name].as_u64().unwrap();
        let words = |part: &Value, name: &str| {
            part[name]["reads"].as_u64().unwrap() + part[name]["writes"].as_u64().unwrap()
        };
        let causes = ["allocate", "free", "resize"];
        let accesses = sum(&|part| causes.iter().map(|cause| words(part, cause)).sum());
        assert_eq!(
            Some(accesses),
            folder.columns.integer("accesses", row),
            "{number}"
        );
        let shares = ["live", "headers", "control", "spare"];
        let taken = sum(&|part| shares.iter().map(|share| field(part, share)).sum());
        let footprint = sum(&|part| field(part, "footprint"));
        assert_eq!(taken, footprint, "{number}");
        assert_eq!(
            Some(footprint),
            folder.columns.integer("footprint", row),
            "{number}"
        );
        let last = detail["memory"].as_array().unwrap().last().unwrap();
        assert_eq!(last[1].as_u64(), Some(footprint), "{number}");
    }
}

#[test]
fn exports_hold_every_row_exactly() {
    let (directory, folder) = folder();
    let path = directory.path().join("all.csv");
    export::write(&folder, Form::Csv, &path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), folder.columns.rows() + 1);
    assert!(lines[0].starts_with("number,named,status,front,"));
    let footprint = lines[0]
        .split(',')
        .position(|name| name == "footprint")
        .unwrap();
    for (row, line) in lines[1..].iter().enumerate() {
        let cell = line.split(',').nth(footprint).unwrap();
        assert_eq!(cell.parse().ok(), folder.columns.integer("footprint", row));
    }

    let script = directory.path().join("plot.gp");
    let files = export::write(&folder, Form::Gnuplot, &script).unwrap();
    assert_eq!(files, [script.clone(), directory.path().join("plot.dat")]);
    assert!(
        fs::read_to_string(&script)
            .unwrap()
            .contains("data = \"plot.dat\"")
    );
    let data = fs::read_to_string(&files[1]).unwrap();
    let cells: Vec<usize> = data
        .lines()
        .skip(1)
        .map(|line| line.split(' ').count())
        .collect();
    assert_eq!(cells.len(), folder.columns.rows());
    assert!(
        cells
            .iter()
            .all(|&count| count == folder.columns.list.len())
    );

    let book = directory.path().join("all.xlsx");
    export::write(&folder, Form::Xlsx, &book).unwrap();
    assert!(fs::read(&book).unwrap().starts_with(b"PK"));
}

fn failure(directory: &Path) -> String {
    Folder::read(directory).unwrap_err().to_string()
}

#[test]
fn bad_folders_are_refused_with_cause_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    assert!(failure(&place.join("nowhere")).contains("check the path"));
    assert!(failure(place).contains("results.parquet is missing; run `metes explore"));

    sample::leave(place, None);
    let results = place.join("results.parquet");
    let whole = fs::read(&results).unwrap();
    for length in [0, 4, whole.len() / 2, whole.len() - 5] {
        fs::write(&results, &whole[..length]).unwrap();
        assert!(
            failure(place).contains("damaged or cut short"),
            "{length} bytes"
        );
    }
    // The same length, so that nothing else in the file moves.
    let text = b"metes.results_version";
    let at = whole
        .windows(text.len())
        .position(|part| part == text)
        .unwrap();
    let mut other = whole.clone();
    let version = at + text.len() + 2;
    assert_eq!(other[version], b'2');
    other[version] = b'7';
    fs::write(&results, &other).unwrap();
    assert!(failure(place).contains("is of version 7, and this Metes reads version 2"));

    fs::write(&results, &whole).unwrap();
    let exploration = place.join("exploration.json");
    fs::write(&exploration, "{\"front\": [").unwrap();
    assert!(failure(place).contains("exploration.json is damaged"));
    fs::write(&exploration, "[]").unwrap();
    assert!(failure(place).contains("an object was expected"));
    fs::remove_file(&exploration).unwrap();
    assert!(failure(place).contains("exploration.json is missing"));
}

#[test]
fn unwritable_places_are_named() {
    let (directory, folder) = folder();
    let error = page::write(&folder, &directory.path().join("no/such/explorer.html"));
    assert!(
        matches!(
            error,
            Err(Error::Io {
                action: "write",
                ..
            })
        ),
        "{error:?}"
    );
    let data = directory.path().join("x.dat");
    assert!(export::write(&folder, Form::Gnuplot, &data).is_err());
}

#[test]
fn a_port_is_taken_once() {
    let (_directory, folder) = folder();
    let bind = |folder, port| Server::bind(folder, port, Box::new(emit), Box::new(|_| None));
    let first = bind(folder.clone(), 0).unwrap_or_else(|error| panic!("{error}"));
    let port = first.address().port();
    let Err(error) = bind(folder, port) else {
        panic!("a port in use was taken again");
    };
    assert_eq!(
        error.to_string(),
        format!("port {port} of this machine is in use; choose another with --port, or 0 for any")
    );
}

/// Stands for the emission, which the command line brings along.
fn emit(toml: &str, directory: &Path) -> Result<Vec<PathBuf>, String> {
    if toml.contains("kingsley") {
        return Err("not this one".to_owned());
    }
    let path = directory.join("c/heap.c");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, toml).unwrap();
    Ok(vec![path])
}

fn ask(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    })
}

fn get(path: &str) -> Request<Body> {
    Request::get(path)
        .header(header::HOST, "localhost:4700")
        .body(Body::empty())
        .unwrap()
}

fn post(number: &str) -> Request<Body> {
    let request = Request::post("/emit").header(header::HOST, "localhost:4700");
    request
        .body(Body::from(format!("{{\"number\": {number}}}")))
        .unwrap()
}

#[test]
fn the_server_answers_its_own_pages_alone() {
    let (_directory, folder) = folder();
    let router = router(folder, Box::new(emit), Box::new(|_| None)).unwrap();
    let (status, page) = ask(&router, get("/"));
    assert_eq!(status, StatusCode::OK);
    assert_eq!(document(&page)["served"], true);
    assert!(page.contains("connect-src 'self'"));

    let elsewhere = Request::get("/").header(header::HOST, "metes.example:4700");
    assert_eq!(
        ask(&router, elsewhere.body(Body::empty()).unwrap()).0,
        StatusCode::FORBIDDEN
    );
    let mut foreign = post("3");
    let origin = "http://elsewhere.example".parse().unwrap();
    foreign.headers_mut().insert(header::ORIGIN, origin);
    assert_eq!(ask(&router, foreign).0, StatusCode::FORBIDDEN);
    let mut own = post("x");
    own.headers_mut()
        .insert(header::ORIGIN, "http://localhost:4700".parse().unwrap());
    assert_eq!(ask(&router, own).0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&router, get("/nothing")).0, StatusCode::NOT_FOUND);
}

#[test]
fn the_server_emits_and_gives_out_what_it_emitted() {
    let (directory, folder) = folder();
    let front = folder.exploration["front"].as_array().unwrap().clone();
    let described = |number| (number == 200).then(|| "described".to_owned());
    let router = router(folder, Box::new(emit), Box::new(described)).unwrap();
    let (heap, number) = front
        .iter()
        .map(|heap| {
            (
                heap["toml"].as_str().unwrap(),
                heap["number"].as_u64().unwrap(),
            )
        })
        .find(|(heap, _)| !heap.contains("kingsley"))
        .unwrap();

    let (status, answer) = ask(&router, post(&number.to_string()));
    assert_eq!(status, StatusCode::OK, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let url = answer["files"][0]["url"].as_str().unwrap();
    assert_eq!(url, format!("/emitted/{number:03}/c/heap.c"));
    let written = directory
        .path()
        .join(format!("emitted/{number:03}/c/heap.c"));
    assert_eq!(fs::read_to_string(written).unwrap(), heap);
    assert_eq!(ask(&router, get(url)), (StatusCode::OK, heap.to_owned()));

    // Any number that can be described; not what was not emitted, nor other files.
    assert_eq!(
        ask(&router, get("/heap/200")),
        (StatusCode::OK, "described".to_owned())
    );
    let (status, why) = ask(&router, post("201"));
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(
        why.contains("the front and of the named heaps only"),
        "{why}"
    );
    assert!(
        ask(&router, post("99999"))
            .1
            .contains("there is no configuration 99999")
    );
    for path in [
        "/emitted/../exploration.json",
        "/emitted/%2e%2e/exploration.json",
        "/emitted/999/x",
    ] {
        assert_eq!(ask(&router, get(path)).0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn the_server_exports() {
    let (_directory, folder) = folder();
    let rows = folder.columns.rows();
    let router = router(folder, Box::new(emit), Box::new(|_| None)).unwrap();
    assert_eq!(
        ask(&router, get("/export/results.csv")).1.lines().count(),
        rows + 1
    );
    assert_eq!(
        ask(&router, get("/export/results.dat")).1.lines().count(),
        rows + 1
    );
    assert!(
        ask(&router, get("/export/results.gp"))
            .1
            .contains("results.dat")
    );
    assert!(
        ask(&router, get("/export/results.xlsx"))
            .1
            .starts_with("PK")
    );
    assert_eq!(
        ask(&router, get("/export/results.doc")).0,
        StatusCode::NOT_FOUND
    );
}
