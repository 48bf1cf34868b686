//! What a call costs from Rust, in nanoseconds: medians of 31 rounds.
//!
//!     cargo run --release --example call_cost
//!
//! trivial: rkv_device_count. decode: one decode call of 1 row with the smallest shape that the
//! library takes, always at the same position. token: 32 such calls, one per layer.
use std::hint::black_box;
use std::time::Instant;

use rkv::{Cache, Config, DType, Device, Prefill, Result, Step, Tensor, TensorMut};

const LAYERS: i32 = 32;
const D: usize = 8;
const PROMPT: usize = 8;

fn main() -> Result<()> {
    let mut cache = Cache::new(&Config {
        layers: LAYERS,
        q_heads: 1,
        kv_heads: 1,
        head_dim: D as i32,
        kv_dtype: DType::F32,
        num_threads: 1,
        max_prompt_tokens: PROMPT as i64,
        max_new_tokens: 8,
        token_budget: 64,
        ..Config::default()
    })?;
    let data: Vec<f32> = (0..PROMPT * D).map(|i| (i % 7) as f32 - 3.0).collect();
    cache.open(0)?;
    for layer in 0..LAYERS {
        let all = Tensor::new(&data, [PROMPT, 1, D])?;
        cache.prefill(Prefill::new(0, layer, PROMPT as i64).q(0, &all).kv(&all, &all))?;
    }
    let mut out = [0f32; D];
    let (seq, positions) = ([0], [PROMPT as i64]);
    // Made once, as the other languages do here; making a view takes some 40 ns.
    let (q, k, v) = (
        Tensor::new(&data[..D], [1, 1, D])?,
        Tensor::new(&data[D..], [1, 1, D])?,
        Tensor::new(&data[2 * D..], [1, 1, D])?,
    );
    let mut to = TensorMut::new(&mut out, [1, 1, D])?;
    let mut decode = |layer: i32| -> Result<()> {
        cache.decode(Step::new(layer, &seq, &positions, &q).kv(&k, &v).out(&mut to))
    };
    let trivial = median(20_000, || {
        black_box(rkv::device_count(Device::CPU)?);
        Ok(())
    })?;
    let one = median(5_000, || decode(0))?;
    let token = median(200, || (0..LAYERS).try_for_each(&mut decode))?;
    println!("calls rust: trivial {trivial:.0} ns, decode {one:.0} ns, token {token:.0} ns");
    Ok(())
}

/// Nanoseconds of one `call`, the median over rounds of `n`, after one round to warm up.
fn median(n: u32, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut rounds = Vec::new();
    for _ in 0..32 {
        let begin = Instant::now();
        (0..n).try_for_each(|_| call())?;
        rounds.push(begin.elapsed().as_nanos() as f64 / f64::from(n));
    }
    rounds.remove(0);
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[rounds.len() / 2])
}
