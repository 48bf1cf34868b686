//! What the tests share: a small engine's arrays and a cache for them.
#![allow(dead_code)] // each test file uses its own part

use rkv::{Cache, Config, DType, Prefill, Result, Step, Tensor, TensorMut};

pub const HQ: usize = 4;
pub const HKV: usize = 2;
pub const D: usize = 16;
pub const S: usize = 200;
pub const NEW: usize = 16;

pub fn config(token_budget: i64) -> Config {
    Config {
        layers: 2,
        q_heads: HQ as i32,
        kv_heads: HKV as i32,
        head_dim: D as i32,
        kv_dtype: DType::F32,
        max_prompt_tokens: S as i64,
        max_new_tokens: NEW as i64,
        token_budget,
        num_threads: 1,
        ..Config::default()
    }
}

/// A budget under which nothing is dropped.
pub fn full() -> Config {
    let all = (S + NEW) as i64;
    Config { prompt_budget: S as i64, top_k: all, ..config(all) }
}

/// Numbers in [-1, 1) that look random.
pub fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut x = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let next = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(next).collect()
}

/// Q, K and V of a whole text, token after token.
pub struct Text {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
}

impl Text {
    pub fn new(seed: u32) -> Self {
        let n = S + NEW;
        Self {
            q: numbers(n * HQ * D, seed),
            k: numbers(n * HKV * D, seed + 1),
            v: numbers(n * HKV * D, seed + 2),
        }
    }

    /// Views of rows `start .. start + n`.
    pub fn rows(&self, start: usize, n: usize) -> Result<[Tensor<'_>; 3]> {
        let row = [(HQ * D) as isize, D as isize, 1];
        let kv = [(HKV * D) as isize, D as isize, 1];
        Ok([
            Tensor::strided(&self.q, start * HQ * D, [n, HQ, D], row)?,
            Tensor::strided(&self.k, start * HKV * D, [n, HKV, D], kv)?,
            Tensor::strided(&self.v, start * HKV * D, [n, HKV, D], kv)?,
        ])
    }

    pub fn prefill(&self, cache: &mut Cache, seq: i32, layer: i32) -> Result<()> {
        let [q, k, v] = self.rows(0, S)?;
        cache.prefill(Prefill::new(seq, layer, S as i64).q(0, &q).kv(&k, &v))
    }

    /// One decode step of one sequence: its output.
    pub fn decode(&self, cache: &mut Cache, seq: i32, layer: i32, at: usize) -> Result<Vec<f32>> {
        let mut out = vec![f32::NAN; HQ * D];
        let [q, k, v] = self.rows(at, 1)?;
        let mut view = TensorMut::new(&mut out, [1, HQ, D])?;
        cache.decode(Step::new(layer, &[seq], &[at as i64], &q).kv(&k, &v).out(&mut view))?;
        Ok(out)
    }

    /// Attention of row `at` over all rows up to it, in double precision.
    pub fn dense(&self, at: usize) -> Vec<f32> {
        let mut out = vec![0f32; HQ * D];
        for head in 0..HQ {
            let q = &self.q[(at * HQ + head) * D..][..D];
            let row = |all: &[f32], token: usize, channel: usize| -> f64 {
                all[(token * HKV + head * HKV / HQ) * D + channel].into()
            };
            let logit = |token| {
                let dot: f64 = (0..D).map(|c| f64::from(q[c]) * row(&self.k, token, c)).sum();
                dot / (D as f64).sqrt()
            };
            let weights: Vec<f64> = (0..=at).map(|token| f64::exp(logit(token))).collect();
            let sum: f64 = weights.iter().sum();
            for channel in 0..D {
                let mixed = |(token, w): (usize, &f64)| w * row(&self.v, token, channel);
                let total: f64 = weights.iter().enumerate().map(mixed).sum();
                out[head * D + channel] = (total / sum) as f32;
            }
        }
        out
    }
}

/// A cache with one prefilled sequence in slot 0, layer 0.
pub fn prefilled(config: &Config, text: &Text) -> Result<Cache<'static>> {
    let mut cache = Cache::new(config)?;
    cache.open(0)?;
    text.prefill(&mut cache, 0, 0)?;
    Ok(cache)
}

pub fn close_to(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 5e-5, "{got} is not {want}");
    }
}

/// Resident memory of this process in bytes.
pub fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
