//! The whole life of a cache in memory of the caller's, with the statistics: one layer, random data.
//!
//!     cargo run --example minimal
use rkv::{AlignedBytes, Buffers, Cache, Config, DType, Prefill, Step, Tensor, TensorMut};

const HQ: usize = 8;
const HKV: usize = 2;
const D: usize = 64;
const PROMPT: usize = 4096;
const STEPS: usize = 32;

fn main() -> rkv::Result<()> {
    let config = Config {
        layers: 1,
        q_heads: HQ as i32,
        kv_heads: HKV as i32,
        head_dim: D as i32,
        kv_dtype: DType::F32,
        max_prompt_tokens: PROMPT as i64,
        max_new_tokens: STEPS as i64,
        token_budget: 256,
        ..Config::default()
    };
    let memory = config.memory()?;
    let mut storage = AlignedBytes::new(memory.storage_bytes, memory.alignment)?;
    let mut workspace = AlignedBytes::new(memory.workspace_bytes, memory.alignment)?;
    let mut cache = Cache::with_buffers(&config, Buffers::new(&mut storage, &mut workspace))?;
    cache.open(0)?;

    let (q, k, v) = (random(PROMPT * HQ * D), random(PROMPT * HKV * D), random(PROMPT * HKV * D));
    let prompt = Tensor::new(&q, [PROMPT, HQ, D])?;
    let (keys, values) = (Tensor::new(&k, [PROMPT, HKV, D])?, Tensor::new(&v, [PROMPT, HKV, D])?);
    cache.prefill(Prefill::new(0, 0, PROMPT as i64).q(0, &prompt).kv(&keys, &values))?;

    let mut out = vec![0f32; HQ * D];
    for step in 0..STEPS {
        let (seq, positions) = ([0], [(PROMPT + step) as i64]);
        let q = Tensor::new(&q[step * HQ * D..], [1, HQ, D])?;
        let k = Tensor::new(&k[step * HKV * D..], [1, HKV, D])?;
        let v = Tensor::new(&v[step * HKV * D..], [1, HKV, D])?;
        let mut to = TensorMut::new(&mut out, [1, HQ, D])?;
        cache.decode(Step::new(0, &seq, &positions, &q).kv(&k, &v).out(&mut to))?;
    }
    let stats = cache.stats(0, 0)?;
    println!(
        "librkv {}: kept {} of {} prompt tokens, generated {}; {} of {} bytes, {} read per step",
        rkv::version(),
        stats.kept,
        stats.prompt,
        stats.generated,
        stats.k_bytes + stats.v_bytes + stats.summary_bytes + stats.index_bytes,
        stats.full_kv_bytes,
        stats.bytes_read_per_step
    );
    Ok(())
}

fn random(n: usize) -> Vec<f32> {
    let mut x = n as u32;
    let next = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(next).collect()
}
