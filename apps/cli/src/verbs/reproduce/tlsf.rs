//! The programs of `metes reproduce compact-fit-tlsf`: an editor and a browser, each in a
//! session that is the same in every run.

use std::ffi::OsString;
use std::path::Path;

use metes_cases::against_tlsf::{EMACS, Effort, HUMMINGBIRD, Program, Published, reproduce};
use metes_lab::Report;

use super::recorded::Recorder;
use crate::error::Failure;
use crate::output::write_file;

/// Files of Lisp are written, highlighted, searched, indented, cut and pasted, undone, closed.
const EDITING: &str = r#"(setq inhibit-message t)
(defun words (n) (mapconcat (lambda (i) (format "word%d" (mod (* i 7919) 997))) (number-sequence 1 n) " "))
(let ((buffers nil))
  (dotimes (file 14)
    (let ((buffer (get-buffer-create (format "file%d.el" file))))
      (push buffer buffers)
      (with-current-buffer buffer
        (buffer-enable-undo)
        (emacs-lisp-mode)
        (dotimes (line 120)
          (insert (format "(defun function-%d-%d (argument)\n  \"%s\"\n  (list argument %d \"text\"))\n\n"
                          file line (words (% line 14)) (* line file))))
        (font-lock-ensure)
        (goto-char (point-min))
        (while (re-search-forward "word\\([0-9]+\\)" nil t) (replace-match "term-\\1"))
        (goto-char (point-min))
        (while (search-forward "argument" nil t) (backward-kill-word 1) (insert "value"))
        (indent-region (point-min) (point-max))
        (font-lock-ensure)
        (goto-char (point-min))
        (dotimes (_ 40) (forward-line 3) (kill-line 2) (undo-boundary) (yank) (transpose-lines 1))
        (undo-boundary) (undo 20)))
    (when (> (length buffers) 6)
      (let ((oldest (car (last buffers))))
        (with-current-buffer oldest (set-buffer-modified-p nil))
        (kill-buffer oldest)
        (setq buffers (butlast buffers))))))
"#;

/// Pages of the session, each linked to all others.
const PAGES: usize = 8;

/// A page of headings, paragraphs with links, tables, lists and forms.
fn page(number: usize) -> String {
    let mut text =
        format!("<html><head><title>Page {number}</title></head><body><h1>Page {number}</h1>\n");
    for other in 0..PAGES {
        text += &format!("<a href=\"{other}.html\">Page {other}</a>\n");
    }
    for section in 0..18 {
        text += &format!("<h2 id=\"s{section}\">Section {section}</h2>\n<p>");
        for word in 0..12 + (section * 7) % 30 {
            text += &format!(
                "word{} <b>bold {word}</b> <a href=\"{}.html#s{}\">link {word}</a> ",
                (section * 31 + word * 7 + number) % 997,
                (number + word) % PAGES,
                word % 18,
            );
        }
        text += "</p>\n<table border=\"1\">";
        for row in 0..8 {
            text += "<tr>";
            for column in 0..6 {
                text += &format!("<td>{}</td>", row * column + number);
            }
            text += "</tr>";
        }
        text += "</table>\n<ul>";
        for item in 0..9 {
            text += &format!("<li>item {item}</li>");
        }
        text += "</ul>\n<form action=\"x\"><input name=\"a\" value=\"b\">\
                 <select name=\"s\"><option>1</option><option>2</option></select></form>\n";
    }
    text + "</body></html>\n"
}

/// Keys: every page in turn, scrolled through, searched, and back to the first.
fn keys() -> String {
    let mut text = String::new();
    for page in 1..PAGES {
        // The links to pages stand first on the first one.
        text += &"key Down Arrow\n".repeat(if page == 1 { 2 } else { 1 });
        text += "key Right Arrow\n";
        text += &"key <space>\n".repeat(6);
        text += "key /\n";
        for letter in "item 7".chars() {
            match letter {
                ' ' => text += "key <space>\n",
                letter => text += &format!("key {letter}\n"),
            }
        }
        text += "key ^J\nkey n\nkey n\nkey Left Arrow\n";
    }
    text + "key Q\n"
}

/// A program by name, how it is called, and what it stands beside.
type Recorded = (&'static str, Vec<OsString>, Published);

fn commands(directory: &Path) -> Result<[Recorded; 2], Failure> {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let editing = directory.join("editing.el");
    write_file(&editing, EDITING.as_bytes())?;
    let mut emacs = words(&["emacs", "-Q", "--batch", "-l"]);
    emacs.push(editing.into());
    for number in 0..PAGES {
        let file = directory.join(format!("{number}.html"));
        write_file(&file, page(number).as_bytes())?;
    }
    let script = directory.join("keys");
    write_file(&script, keys().as_bytes())?;
    // Nobody's settings, nothing left behind, and the screen is not drawn on the terminal.
    let shell = "exec \"$@\" < /dev/null > /dev/null 2>&1";
    let mut lynx = words(&["sh", "-c", shell, "sh", "env", "LYNX_CFG=/dev/null"]);
    lynx.extend(words(&["TERM=vt100", "COLUMNS=100", "LINES=40"]));
    let mut home = OsString::from("HOME=");
    home.push(directory);
    lynx.push(home);
    lynx.extend(words(&["lynx", "-nocolor"]));
    let mut option = OsString::from("-cmd_script=");
    option.push(script);
    lynx.push(option);
    lynx.push(directory.join("0.html").into());
    Ok([("emacs", emacs, EMACS), ("lynx", lynx, HUMMINGBIRD)])
}

/// Records the programs and counts both heaps on them.
pub(super) fn run(quick: bool, tell: &dyn Fn(&str)) -> Result<Report, Failure> {
    let mut recorder = Recorder::new(tell)?;
    let mut programs = Vec::new();
    for (name, command, beside) in commands(recorder.directory())? {
        if let Some(events) = recorder.record(name, &command)? {
            programs.push(Program {
                name: name.to_owned(),
                events,
                beside,
            });
        }
    }
    if programs.is_empty() {
        return Err(Failure::input(
            "neither emacs nor lynx can be recorded here: install the Debian packages emacs-nox \
             and lynx",
        ));
    }
    let effort = match quick {
        true => Effort::Quick,
        false => Effort::Whole,
    };
    let mut report =
        reproduce(&programs, effort, tell).map_err(|error| Failure::input(error.to_string()))?;
    report.assumptions.extend(recorder.missing());
    Ok(report)
}
