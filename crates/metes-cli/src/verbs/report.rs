//! `metes report`.

use metes_explorer::Folder;
use metes_explorer::export::{self, Form};
use serde_json::json;

use crate::arguments::{Export, Report};
use crate::error::Failure;
use crate::{output, page};

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
    let report = page::render_again(&arguments.directory)?;
    if json {
        output::json(&json!({ "report": report }))?;
    } else {
        output::text(&format!("{}\n", report.display()))?;
    }
    Ok(0)
}

fn explorer(arguments: &Report, json: bool) -> Result<u8, Failure> {
    let folder = Folder::read(&arguments.directory)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => arguments.directory.join("explorer.html"),
    };
    let bytes = metes_explorer::page::write(&folder, &path)?;
    let configurations = folder.columns.rows();
    if json {
        let explorer = json!({
            "explorer": path, "bytes": bytes, "configurations": configurations,
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
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => arguments
            .directory
            .join(format!("results.{}", form.ending())),
    };
    let files = export::write(&folder, form, &path)?;
    if json {
        output::json(&json!({ "exported": files, "configurations": folder.columns.rows() }))?;
    } else {
        let names: String = files
            .iter()
            .map(|file| format!("{}\n", file.display()))
            .collect();
        output::text(&names)?;
    }
    Ok(0)
}
