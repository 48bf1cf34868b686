//! The header's constants are of anonymous enums, because the ABI has `int32_t` fields alone.
//! bindgen makes plain integers of them; here each group becomes a newtype over `i32`.

/// The first constant of each group, and the type that the group gets.
const GROUPS: &[(&str, &str)] = &[
    ("RKV_OK", "rkv_status"),
    ("RKV_DEVICE_CPU", "rkv_device"),
    ("RKV_DTYPE_F32", "rkv_dtype"),
    ("RKV_STORAGE_COMPACT", "rkv_storage"),
    ("RKV_UNIT_PAGES", "rkv_unit"),
    ("RKV_STAGE1_ALL", "rkv_stage1"),
    ("RKV_SOFTMAX_TOKENS", "rkv_softmax"),
    ("RKV_POOL_MAX", "rkv_pool"),
    ("RKV_TEMPERATURE_SPARQ", "rkv_temperature"),
    ("RKV_SPACE_LIVE_ROW", "rkv_space"),
];

/// The generated text with newtypes; an error where a group has no name here.
pub fn apply(raw: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut group: Option<(&str, &str)> = None; // bindgen's name and ours
    for line in raw.lines() {
        // pub type _bindgen_ty_1 = ::std::os::raw::c_uint; and the typedef of one of the groups
        if line.starts_with("pub type _bindgen_ty_") || line == "pub type rkv_status = i32;" {
            continue;
        }
        match constant(line) {
            Some((name, theirs, value)) => {
                if group.map(|(known, _)| known) != Some(theirs) {
                    let ours = GROUPS.iter().find(|(first, _)| *first == name);
                    let ours = ours.ok_or(format!("{name}: no newtype for its group"))?.1;
                    group = Some((theirs, ours));
                    declare(&mut out, ours);
                }
                let ours = group.map(|(_, ours)| ours).unwrap_or_default();
                out.push_str(&format!("pub const {name}: {ours} = {ours}({value});\n"));
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(out)
}

/// `pub const NAME: _bindgen_ty_N = VALUE;`
fn constant(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
    let (theirs, value) = rest.strip_suffix(';')?.split_once(" = ")?;
    theirs.starts_with("_bindgen_ty_").then_some((name, theirs, value))
}

fn declare(out: &mut String, name: &str) {
    out.push_str("#[repr(transparent)]\n#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]\n");
    out.push_str(&format!("pub struct {name}(pub i32);\n"));
}
