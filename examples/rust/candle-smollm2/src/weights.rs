//! Weights and sizes of the model, from its GGUF file. The 4-bit matrices are widened to F32 once.
use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device, Tensor};

use crate::Result;

/// Shape of a Llama with grouped query attention.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub layers: usize,
    pub q_heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub rope_base: f32,
    pub rms_eps: f32,
}

/// One block; matrices are [out, in].
pub struct Layer {
    pub attn_norm: Tensor,
    pub attn_q: Tensor,
    pub attn_k: Tensor,
    pub attn_v: Tensor,
    pub attn_output: Tensor,
    pub ffn_norm: Tensor,
    pub ffn_gate: Tensor,
    pub ffn_up: Tensor,
    pub ffn_down: Tensor,
}

pub struct Weights {
    pub shape: Shape,
    pub layers: Vec<Layer>,
    /// [vocabulary, hidden]; also the output matrix.
    pub embedding: Tensor,
    pub output_norm: Tensor,
    /// The text of each token, in the byte-level alphabet of BPE.
    pub tokens: Vec<String>,
}

impl Weights {
    pub fn read(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let shape = shape(&content)?;
        let mut tensor = |name: String| -> Result<Tensor> {
            let packed = content.tensor(&mut file, &format!("{name}.weight"), &Device::Cpu)?;
            Ok(packed.dequantize(&Device::Cpu)?)
        };
        let mut layers = Vec::new();
        for index in 0..shape.layers {
            let mut of = |name: &str| tensor(format!("blk.{index}.{name}"));
            layers.push(Layer {
                attn_norm: of("attn_norm")?,
                attn_q: of("attn_q")?,
                attn_k: of("attn_k")?,
                attn_v: of("attn_v")?,
                attn_output: of("attn_output")?,
                ffn_norm: of("ffn_norm")?,
                ffn_gate: of("ffn_gate")?,
                ffn_up: of("ffn_up")?,
                ffn_down: of("ffn_down")?,
            });
        }
        let embedding = tensor("token_embd".into())?;
        let output_norm = tensor("output_norm".into())?;
        let tokens = metadata(&content, "tokenizer.ggml.tokens")?.to_vec()?;
        let tokens: candle_core::Result<Vec<String>> =
            tokens.iter().map(|token| token.to_string().cloned()).collect();
        Ok(Self { shape, layers, embedding, output_norm, tokens: tokens? })
    }

    /// The text of some tokens.
    pub fn text(&self, ids: &[u32]) -> String {
        let words = ids.iter().filter_map(|&id| self.tokens.get(id as usize));
        words.map(|word| word.replace('Ġ', " ").replace('Ċ', "\n")).collect()
    }
}

fn metadata<'a>(content: &'a Content, name: &str) -> Result<&'a Value> {
    Ok(content.metadata.get(name).ok_or_else(|| format!("the GGUF file has no {name}"))?)
}

fn shape(content: &Content) -> Result<Shape> {
    let size = |name: &str| -> Result<usize> {
        Ok(metadata(content, &format!("llama.{name}"))?.to_u32()? as usize)
    };
    let real =
        |name: &str| -> Result<f32> { Ok(metadata(content, &format!("llama.{name}"))?.to_f32()?) };
    let (hidden, q_heads) = (size("embedding_length")?, size("attention.head_count")?);
    Ok(Shape {
        layers: size("block_count")?,
        q_heads,
        kv_heads: size("attention.head_count_kv")?,
        head_dim: hidden / q_heads,
        rope_base: real("rope.freq_base")?,
        rms_eps: real("attention.layer_norm_rms_epsilon")?,
    })
}
