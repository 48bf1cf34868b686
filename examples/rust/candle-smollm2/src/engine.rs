//! Two ways to hold a prompt: all of K and V, as candle's engines do, and compressed in librkv.
use std::sync::RwLockReadGuard;

use candle_core::{Device, Layout, Storage, Tensor};
use rkv::{Cache, Config, DType, Prefill, Step, TensorMut};

use crate::model::{best, dense, forward};
use crate::weights::{Shape, Weights};
use crate::Result;

/// Query rows that stage 1 looks at.
const WINDOW: usize = 32;

/// What a prefill leaves behind.
pub struct Prompt {
    pub tokens: usize,
    /// The first token of the answer.
    pub next: u32,
    /// Per layer: queries of the last tokens [Hq, w, D], and K and V [Hkv, S, D].
    layers: Vec<[Tensor; 3]>,
}

/// The prompt's own attention: dense, in the engine.
pub fn prefill(weights: &Weights, ids: &[u32]) -> Result<Prompt> {
    let n = ids.len();
    let window = n.min(WINDOW);
    let mut layers = Vec::new();
    let positions: Vec<usize> = (0..n).collect();
    let logits = forward(weights, ids, &positions, &mut |_, q, k, v| {
        layers.push([q.narrow(1, n - window, window)?, k.clone(), v.clone()]);
        dense(q, k, v)
    })?;
    let next = best(&logits.narrow(0, n - 1, 1)?)?[0];
    Ok(Prompt { tokens: n, next, layers })
}

/// The engine's own decode: K and V of every token.
pub struct Full {
    layers: Vec<[Tensor; 2]>,
}

impl Full {
    pub fn new(prompt: &Prompt) -> Self {
        let layers = prompt.layers.iter().map(|[_, k, v]| [k.clone(), v.clone()]).collect();
        Self { layers }
    }

    pub fn attend(&mut self, layer: usize, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        let [keys, values] = &mut self.layers[layer];
        *keys = Tensor::cat(&[&*keys, k], 1)?;
        *values = Tensor::cat(&[&*values, v], 1)?;
        dense(q, keys, values)
    }
}

/// How much a compressed cache may read per step.
#[derive(Clone, Copy)]
pub enum Budget {
    /// Everything is kept and attended to.
    Everything,
    Tokens(i64),
}

/// The same prompt in librkv: one sequence.
pub struct Compressed {
    cache: Cache<'static>,
    position: usize,
    out: Vec<f32>,
}

impl Compressed {
    pub fn new(shape: &Shape, prompt: &Prompt, budget: Budget, max_new: usize) -> Result<Self> {
        let mut config = Config {
            layers: shape.layers as i32,
            q_heads: shape.q_heads as i32,
            kv_heads: shape.kv_heads as i32,
            head_dim: shape.head_dim as i32,
            kv_dtype: DType::F32,
            max_prompt_tokens: prompt.tokens as i64,
            max_new_tokens: max_new as i64,
            ..Config::default()
        };
        let all = (prompt.tokens + max_new) as i64;
        match budget {
            Budget::Tokens(tokens) => config.token_budget = tokens,
            Budget::Everything => {
                (config.token_budget, config.top_k) = (all, all);
                config.prompt_budget = prompt.tokens.max(WINDOW) as i64;
            }
        }
        let mut cache = Cache::new(&config)?;
        cache.open(0)?;
        for (layer, [q, k, v]) in prompt.layers.iter().enumerate() {
            let start = prompt.tokens - q.dim(1)?;
            let (q, k, v) = (Slice::of(q), Slice::of(k), Slice::of(v));
            let (q, k, v) = (q.rows()?, k.rows()?, v.rows()?);
            let call = Prefill::new(0, layer as i32, prompt.tokens as i64);
            cache.prefill(call.q(start as i64, &q).kv(&k, &v))?;
        }
        let out = vec![0.0; shape.q_heads * shape.head_dim];
        Ok(Self { cache, position: prompt.tokens, out })
    }

    /// Instead of the engine's attention. The last layer's call ends the step.
    pub fn attend(&mut self, layer: usize, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        let (heads, _, width) = q.dims3()?;
        let (q, k, v) = (Slice::of(q), Slice::of(k), Slice::of(v));
        let (q, k, v) = (q.rows()?, k.rows()?, v.rows()?);
        let at = [self.position as i64];
        let mut out = TensorMut::new(&mut self.out, [1, heads, width])?;
        self.cache.decode(Step::new(layer as i32, &[0], &at, &q).kv(&k, &v).out(&mut out))?;
        if layer + 1 == self.cache.config().layers as usize {
            self.position += 1;
        }
        Ok(Tensor::from_slice(&self.out, (1, heads * width), &Device::Cpu)?)
    }

    /// Bytes that a step reads, and those that full KV would read, all layers.
    pub fn traffic(&self) -> Result<(i64, i64)> {
        let mut sum = (0, 0);
        for layer in 0..self.cache.config().layers {
            let stats = self.cache.stats(0, layer)?;
            sum.0 += stats.bytes_read_per_step;
            sum.1 += stats.full_kv_bytes;
        }
        Ok(sum)
    }
}

/// The memory of a candle tensor [heads, n, D], as it lies: no copy.
struct Slice<'a> {
    storage: RwLockReadGuard<'a, Storage>,
    layout: &'a Layout,
}

impl<'a> Slice<'a> {
    fn of(tensor: &'a Tensor) -> Self {
        let (storage, layout) = tensor.storage_and_layout();
        Self { storage, layout }
    }

    /// [n, heads, D], as librkv counts axes.
    fn rows(&self) -> Result<rkv::Tensor<'_>> {
        let Storage::Cpu(storage) = &*self.storage else {
            return Err("a tensor is not on the CPU".into());
        };
        let data = storage.as_slice::<f32>()?;
        let (heads, n, width) = self.layout.shape().dims3()?;
        let [head, row, channel] = [0, 1, 2].map(|axis| self.layout.stride()[axis] as isize);
        let offset = self.layout.start_offset();
        Ok(rkv::Tensor::strided(data, offset, [n, heads, width], [row, head, channel])?)
    }
}
