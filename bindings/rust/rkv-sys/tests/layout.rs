//! The layout that Rust sees against the one that the C library asserts of itself
//! (`capi/src/abi_layout.c`). Each side checks its own list when it is compiled.
use std::collections::BTreeMap;

const C: &str = include_str!("../../../../capi/src/abi_layout.c");
const RUST: &str = include_str!("../src/bindings.rs");

/// `rkv_error` -> bytes, `rkv_error.status` -> offset
type Layout = BTreeMap<String, usize>;

fn of_c() -> Layout {
    let mut layout = Layout::new();
    for line in C.lines() {
        let Some((kind, arguments)) = line.trim_end_matches(");").split_once('(') else { continue };
        let words: Vec<&str> = arguments.split(", ").collect();
        match (kind, words[..].first(), words.len()) {
            ("SIZE", Some(name), 2) => layout.insert(name.to_string(), words[1].parse().unwrap()),
            ("FIELD", Some(name), 3) => {
                layout.insert(format!("{name}.{}", words[1]), words[2].parse().unwrap())
            }
            _ => None,
        };
    }
    layout
}

/// `["Size of rkv_error"][... - 256usize];` and
/// `["Offset of field: rkv_error::status"][... - 4usize];`, whose brackets may span lines.
fn of_rust() -> Layout {
    let mut layout = Layout::new();
    for part in RUST.split('"').collect::<Vec<_>>().windows(2) {
        let name = match part[0].strip_prefix("Offset of field: ") {
            Some(field) => field.replace("::", "."),
            None => match part[0].strip_prefix("Size of ") {
                Some(name) => name.to_string(),
                None => continue,
            },
        };
        let number = part[1].split_once(" - ").unwrap().1.split_once("usize").unwrap().0;
        layout.insert(name, number.parse().unwrap());
    }
    layout
}

#[test]
fn structs_lie_as_the_library_says() {
    let (c, rust) = (of_c(), of_rust());
    assert!(c.len() > 100, "{} sizes and offsets", c.len());
    assert_eq!(rust, c);
    assert_eq!(c["rkv_error"], size_of::<rkv_sys::rkv_error>());
}

#[test]
fn library_has_the_version_of_the_header() {
    // SAFETY: it takes nothing.
    assert_eq!(unsafe { rkv_sys::rkv_abi_version() }, rkv_sys::RKV_ABI_VERSION);
}
