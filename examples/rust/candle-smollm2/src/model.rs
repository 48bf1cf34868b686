//! The forward pass. Attention is the caller's: one function for the prompt, another for decoding.
use candle_core::{Device, Tensor, D};
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use crate::weights::{Layer, Shape, Weights};
use crate::Result;

/// Attention of a layer: q [Hq, n, D], k and v [Hkv, n, D] of the new tokens, after RoPE; gives
/// [n, Hq * D].
pub type Attention<'a> = dyn FnMut(usize, &Tensor, &Tensor, &Tensor) -> Result<Tensor> + 'a;

/// Logits [n, vocabulary] of tokens at the given positions.
pub fn forward(
    weights: &Weights,
    tokens: &[u32],
    positions: &[usize],
    attention: &mut Attention,
) -> Result<Tensor> {
    let shape = &weights.shape;
    let ids = Tensor::new(tokens, &Device::Cpu)?;
    let mut x = weights.embedding.index_select(&ids, 0)?;
    let (cos, sin) = rotation(shape, positions)?;
    for (index, layer) in weights.layers.iter().enumerate() {
        let h = rms_norm(&x, &layer.attn_norm, shape.rms_eps)?;
        let q = rope(&heads(&h, &layer.attn_q, shape.q_heads)?, &cos, &sin)?;
        let k = rope(&heads(&h, &layer.attn_k, shape.kv_heads)?, &cos, &sin)?;
        let v = heads(&h, &layer.attn_v, shape.kv_heads)?;
        let mixed = attention(index, &q, &k, &v)?;
        x = (x + linear(&mixed, &layer.attn_output)?)?;
        x = (&x + feed_forward(&x, layer, shape.rms_eps)?)?;
    }
    let last = rms_norm(&x, &weights.output_norm, shape.rms_eps)?;
    linear(&last, &weights.embedding)
}

fn linear(x: &Tensor, matrix: &Tensor) -> Result<Tensor> {
    Ok(x.matmul(&matrix.t()?)?)
}

fn feed_forward(x: &Tensor, layer: &Layer, eps: f32) -> Result<Tensor> {
    let h = rms_norm(x, &layer.ffn_norm, eps)?;
    let gate = silu(&linear(&h, &layer.ffn_gate)?)?;
    linear(&(gate * linear(&h, &layer.ffn_up)?)?, &layer.ffn_down)
}

/// [n, hidden] -> [heads, n, D]
fn heads(h: &Tensor, matrix: &Tensor, heads: usize) -> Result<Tensor> {
    let all = linear(h, matrix)?;
    let (n, width) = all.dims2()?;
    Ok(all.reshape((n, heads, width / heads))?.transpose(0, 1)?)
}

/// Cosines and sines [n, D / 2]; GGUF rows pair the channels (2i, 2i + 1).
fn rotation(shape: &Shape, positions: &[usize]) -> Result<(Tensor, Tensor)> {
    let half = shape.head_dim / 2;
    let angle = |&position: &usize| {
        let base = f64::from(shape.rope_base);
        (0..half).map(move |i| position as f64 * base.powf(-(i as f64) / half as f64))
    };
    let angles: Vec<f64> = positions.iter().flat_map(angle).collect();
    let table = |f: fn(f64) -> f64| {
        let values: Vec<f32> = angles.iter().map(|&a| f(a) as f32).collect();
        Tensor::from_vec(values, (positions.len(), half), &Device::Cpu)
    };
    Ok((table(f64::cos)?, table(f64::sin)?))
}

fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    Ok(rope_i(&x.unsqueeze(0)?.contiguous()?, cos, sin)?.squeeze(0)?)
}

/// Dense attention of q [Hq, n, D] over k and v [Hkv, S, D], n of whose tokens are q's own, the
/// last ones; gives [n, Hq * D].
pub fn dense(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let (q_heads, n, width) = q.dims3()?;
    let (kv_heads, tokens, _) = k.dims3()?;
    let group = q_heads / kv_heads;
    // The query heads of one KV head share a matrix product.
    let q = q.reshape((kv_heads, group * n, width))?;
    let scores = (q.matmul(&k.t()?)? * (1.0 / (width as f64).sqrt()))?;
    let scores = match n {
        1 => scores,
        _ => scores
            .reshape((kv_heads, group, n, tokens))?
            .broadcast_add(&future(n, tokens)?)?
            .reshape((kv_heads, group * n, tokens))?,
    };
    let mixed = softmax_last_dim(&scores)?.matmul(&v.contiguous()?)?;
    let mixed = mixed.reshape((q_heads, n, width))?.transpose(0, 1)?;
    Ok(mixed.reshape((n, q_heads * width))?)
}

/// [n, tokens]: -inf where a token would see a later one.
fn future(n: usize, tokens: usize) -> Result<Tensor> {
    let seen = tokens - n;
    let value = |i: usize| if i % tokens > seen + i / tokens { f32::NEG_INFINITY } else { 0.0 };
    Ok(Tensor::from_vec((0..n * tokens).map(value).collect(), (n, tokens), &Device::Cpu)?)
}

/// The most likely token of each row of logits.
pub fn best(logits: &Tensor) -> Result<Vec<u32>> {
    Ok(logits.argmax(D::Minus1)?.to_vec1()?)
}
