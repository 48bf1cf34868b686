//! Ten thousand caches made and dropped; alone in its file, since it looks at the process's memory.
mod support;

use rkv::{Cache, Result};
use support::*;

#[test]
fn ten_thousand_caches() -> Result<()> {
    let config = config(64);
    let cycle = || -> Result<()> {
        let mut cache = Cache::new(&config)?;
        cache.open(0)?;
        assert!(cache.open(0).is_err()); // its text is freed too
        Ok(())
    };
    (0..500).try_for_each(|_| cycle())?;
    let before = resident();
    (0..10_000).try_for_each(|_| cycle())?;
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
    Ok(())
}
