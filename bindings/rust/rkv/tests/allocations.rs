//! No copy of K or V: bytes that Rust allocates while the two stages run. Alone in its file, since
//! the allocator counts for the whole process.
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use rkv::{Prefill, Result, Step, Tensor, TensorMut};
use support::*;

struct Counting;
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn prefill_and_decode_allocate_nothing() -> Result<()> {
    let text = Text::new(30);
    let mut cache = rkv::Cache::new(&config(64))?;
    cache.open(0)?;
    let mut out = vec![0f32; HQ * D];
    let before = BYTES.load(Ordering::Relaxed);
    for layer in 0..2 {
        let [q, k, v] = text.rows(0, S)?;
        cache.prefill(Prefill::new(0, layer, S as i64).q(0, &q).kv(&k, &v))?;
    }
    for at in S..S + NEW {
        for layer in 0..2 {
            let [q, k, v] = text.rows(at, 1)?;
            let (seq, positions) = ([0], [at as i64]);
            let mut to = TensorMut::new(&mut out, [1, HQ, D])?;
            cache.decode(Step::new(layer, &seq, &positions, &q).kv(&k, &v).out(&mut to))?;
        }
    }
    let during = BYTES.load(Ordering::Relaxed) - before;
    assert_eq!(during, 0);
    // The counter counts.
    drop(vec![0u8; 1000]);
    assert!(BYTES.load(Ordering::Relaxed) >= before + 1000);
    assert!(Tensor::new(&out, [1, HQ, D]).is_ok());
    Ok(())
}
