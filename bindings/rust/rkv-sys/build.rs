//! Finds the installed librkv: RKV_DIR, then pkg-config. Builds nothing of it.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RKV_DIR");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return; // rustdoc links nothing
    }
    let mut looked = Vec::new();
    if let Some(lib) = by_folder(&mut looked).or_else(|| by_pkg_config(&mut looked)) {
        link(&lib);
        return;
    }
    eprintln!("librkv was not found. Looked at:");
    for place in looked {
        eprintln!("  {place}");
    }
    eprintln!("Install librkv and set RKV_DIR to its prefix, or PKG_CONFIG_PATH to its pkgconfig.");
    exit(1);
}

/// The folder of the library below RKV_DIR.
fn by_folder(looked: &mut Vec<String>) -> Option<PathBuf> {
    let Some(dir) = env::var_os("RKV_DIR").filter(|dir| !dir.is_empty()) else {
        looked.push("RKV_DIR: not set".into());
        return None;
    };
    for sub in ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"] {
        let lib = Path::new(&dir).join(sub);
        for name in ["librkv.so", "librkv.dylib"] {
            if lib.join(name).exists() {
                return fs::canonicalize(lib).ok();
            }
        }
        looked.push(format!("RKV_DIR: {}: no librkv.so", lib.display()));
    }
    None
}

fn by_pkg_config(looked: &mut Vec<String>) -> Option<PathBuf> {
    let found = pkg_config::Config::new().cargo_metadata(false).probe("rkv");
    match found {
        // No path where the library lies where the linker looks anyway.
        Ok(library) => Some(library.link_paths.into_iter().next().unwrap_or_default()),
        Err(error) => {
            for line in error.to_string().lines().filter(|line| !line.trim().is_empty()) {
                looked.push(format!("pkg-config: {line}"));
            }
            None
        }
    }
}

fn link(lib: &Path) {
    println!("cargo:rustc-link-lib=dylib=rkv");
    if lib.as_os_str().is_empty() {
        return;
    }
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:lib_dir={}", lib.display()); // DEP_RKV_LIB_DIR
    println!("cargo:rerun-if-changed={}", lib.display());
    offer_to_cargo_run(lib);
}

/// `cargo run` and `cargo test` put folders that a build script searches into LD_LIBRARY_PATH, but
/// only those under the target folder: links to the library there make both work as they are.
fn offer_to_cargo_run(lib: &Path) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for entry in fs::read_dir(lib).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("librkv.") {
            let link = out.join(&name);
            let _ = fs::remove_file(&link);
            #[cfg(unix)]
            let _ = std::os::unix::fs::symlink(entry.path(), &link);
        }
    }
    println!("cargo:rustc-link-search=native={}", out.display());
}
