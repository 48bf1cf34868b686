//! Makes `rkv-sys/src/bindings.rs` from `rkv.h` by bindgen.
//!
//!     cargo xtask bindings [--check] [CLANG_ARGUMENT...]
//!
//! `--check` writes nothing and fails where the committed file differs. Needs libclang
//! (`LIBCLANG_PATH` names its folder) and a place of `stddef.h` (`-isystem FOLDER`).
mod newtypes;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const HEAD: &str = "// Made from rkv.h by bindgen (cargo xtask bindings). Do not edit.\n\n";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1).peekable();
    if arguments.next().as_deref() != Some("bindings") {
        eprintln!("usage: cargo xtask bindings [--check] [CLANG_ARGUMENT...]");
        return ExitCode::from(2);
    }
    let check = arguments.next_if_eq("--check").is_some();
    let clang: Vec<String> = arguments.collect();

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = here.join("../rkv-sys/src/bindings.rs");
    let text = match generate(&here.join("../../../capi/include/rkv/rkv.h"), &clang) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !check {
        fs::write(&target, text).expect("rkv-sys/src/bindings.rs can be written");
        return ExitCode::SUCCESS;
    }
    let committed = fs::read_to_string(&target).unwrap_or_default();
    if text == committed {
        return ExitCode::SUCCESS;
    }
    eprintln!("rkv-sys/src/bindings.rs is not what rkv.h gives; run: cargo xtask bindings");
    for (number, (old, new)) in committed.lines().zip(text.lines()).enumerate() {
        if old != new {
            eprintln!("line {}:\n- {old}\n+ {new}", number + 1);
            break;
        }
    }
    ExitCode::FAILURE
}

fn generate(header: &Path, clang: &[String]) -> Result<String, Box<dyn std::error::Error>> {
    let raw = bindgen::Builder::default()
        .header(header.to_str().ok_or("the path of rkv.h is no text")?)
        .clang_args(clang)
        .allowlist_item("(rkv|RKV)_.*")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
        .blocklist_item("RKV_RKV_H|RKV_API") // the include guard and the export macro
        .prepend_enum_name(false)
        .derive_default(false)
        .layout_tests(true)
        .generate_comments(false) // the header is the documentation
        .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|_| "rust target")?)
        .disable_header_comment()
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()?
        .to_string();
    Ok(format!("{HEAD}{}", newtypes::apply(&raw)?))
}
