//! `metes report`.

use std::path::{Path, PathBuf};

use metes_explore::write_whole;
use metes_explorer::Folder;
use metes_explorer::export::{self, Form};
use metes_tune::{DOCUMENT, PAGE};
use serde_json::json;

use crate::arguments::{Export, Report};
use crate::error::Failure;
use crate::output;
use crate::own;
use crate::results::{self, Kind, Results};

pub(crate) fn run(arguments: &Report, json: bool) -> Result<u8, Failure> {
    if arguments.explorer {
        return explorer(arguments, json);
    }
    if let Some(form) = arguments.export {
        return export(arguments, form, json);
    }
    if arguments.output.is_some() {
        return Err(Failure::input(
            "-o is for --explorer and --export; the report stands in its directory as report.html",
        ));
    }
    results::settle(&arguments.directory);
    let report = render_again(&arguments.directory)?;
    if json {
        output::json(&json!({ "report": output::name(&report) }))?;
    } else {
        output::text(&format!("{}\n", report.display()))?;
    }
    Ok(0)
}

/// Renders the page from the document of an earlier run.
fn render_again(directory: &Path) -> Result<PathBuf, Failure> {
    let path = directory.join(DOCUMENT);
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
    let of_runs = metes_tune::runs::page_again(&text).map(Ok);
    let rendered = of_runs.unwrap_or_else(|| metes_explore::report::page_again(&text));
    let rendered = rendered.map_err(|wrong| {
        Failure::input(format!(
            "{} cannot be rendered: {wrong}; run `metes tune` or `metes explore` again",
            path.display()
        ))
    })?;
    let results = add_to(directory, &[PAGE])?;
    let page = results.gathered().join(PAGE);
    write_whole(&page, rendered.as_bytes())?;
    let page = results.shown(&page);
    results.add()?;
    Ok(page)
}

/// A directory of results, for files that are made of them.
fn add_to(directory: &Path, files: &[&str]) -> Result<Results, Failure> {
    let verb = "report";
    Results::open_to_add(directory, Kind { verb, files })
}

fn explorer(arguments: &Report, json: bool) -> Result<u8, Failure> {
    let folder = Folder::read(&arguments.directory)?;
    let (path, bytes) = match &arguments.output {
        Some(path) => {
            output::writable(path, own::Form::Page)?;
            (path.clone(), metes_explorer::page::write(&folder, path)?)
        }
        None => {
            let results = add_to(&arguments.directory, &["explorer.html"])?;
            let path = results.gathered().join("explorer.html");
            let bytes = metes_explorer::page::write(&folder, &path)?;
            let path = results.shown(&path);
            results.add()?;
            (path, bytes)
        }
    };
    let configurations = folder.columns.rows();
    if json {
        let explorer = json!({
            "explorer": output::name(&path), "bytes": bytes, "configurations": configurations,
        });
        output::json(&explorer)?;
    } else {
        output::text(&format!("{}\n", path.display()))?;
    }
    Ok(0)
}

fn export(arguments: &Report, form: Export, json: bool) -> Result<u8, Failure> {
    let form = match form {
        Export::Csv => Form::Csv,
        Export::Gnuplot => Form::Gnuplot,
        Export::Xlsx => Form::Xlsx,
    };
    let folder = Folder::read(&arguments.directory)?;
    let files = match &arguments.output {
        Some(path) => {
            let table = match form {
                Form::Xlsx => own::Form::Workbook,
                Form::Csv | Form::Gnuplot => own::Form::Table,
            };
            for path in export::files(form, path)? {
                output::writable(&path, table)?;
            }
            export::write(&folder, form, path)?
        }
        None => {
            let name = format!("results.{}", form.ending());
            let results = add_to(&arguments.directory, &[&name, "results.dat"])?;
            let files = export::write(&folder, form, &results.gathered().join(name))?;
            let files = files.iter().map(|file| results.shown(file)).collect();
            results.add()?;
            files
        }
    };
    if json {
        output::json(
            &json!({ "exported": output::names(&files), "configurations": folder.columns.rows() }),
        )?;
    } else {
        let names: String = files
            .iter()
            .map(|file| format!("{}\n", file.display()))
            .collect();
        output::text(&names)?;
    }
    Ok(0)
}
