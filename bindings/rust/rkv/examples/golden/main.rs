//! The golden vectors through this crate: reads the files in the order given, makes each action's
//! call and compares. Ends with `golden: N cases, checksum X`, or prints `FILE:LINE: what differs`
//! and exits with 1. The format is that of `tests/golden/README.md`.
//!
//!     cargo run --example golden -- FILE...
mod actions;
mod checks;
mod fields;
mod text;
mod values;

use std::process::ExitCode;

use actions::Run;
use text::Line;

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        println!("usage: golden FILE...");
        return ExitCode::FAILURE;
    }
    let mut run = Run::default();
    for file in &files {
        if let Err((line, what)) = read(file, &mut run) {
            println!("{file}:{line}: {what}");
            return ExitCode::FAILURE;
        }
    }
    println!("golden: {} cases, checksum {:016x}", run.cases, run.checksum.0);
    ExitCode::SUCCESS
}

fn read(file: &str, run: &mut Run) -> Result<(), (usize, String)> {
    let text = std::fs::read_to_string(file).map_err(|error| (0, error.to_string()))?;
    let mut lines = text.lines();
    if lines.next() != Some("rkv-golden 1") {
        return Err((1, "the first line must be rkv-golden 1".into()));
    }
    for (number, line) in lines.enumerate() {
        Line::parse(line).and_then(|line| run.line(&line)).map_err(|what| (number + 2, what))?;
    }
    Ok(())
}
