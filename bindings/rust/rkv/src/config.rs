use std::ptr::null;

use rkv_sys as sys;

use crate::error::{call, Error, Result};
use crate::reports::{Memory, Plan};
use crate::types::{
    DType, Device, Pooling, SelectionDomain, SelectionUnit, Stage1Domain, Storage, Temperature,
};

/// What a cache is made for. Every field may stay 0, the default that its line names; end with
/// `..Config::default()`, since a later version may add fields. "plan" means: by the rules of
/// [`Config::plan`] (paper section 3).
///
/// The numbers have the header's own types, so that the library checks each as it was given.
///
/// ```
/// use rkv::{Config, DType};
///
/// let config = Config {
///     layers: 30,
///     q_heads: 9,
///     kv_heads: 3,
///     head_dim: 64,
///     kv_dtype: DType::F16,
///     max_prompt_tokens: 8000,
///     max_new_tokens: 500,
///     token_budget: 256,
///     ..Config::default()
/// };
/// let plan = config.plan(8000)?;
/// assert_eq!(plan.token_budget, 256);
/// println!("{} bytes, {} tokens a step", config.memory()?.storage_bytes, plan.top_k);
/// # Ok::<(), rkv::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Config {
    /// Kind of the device.
    pub device_type: Device,
    /// Ordinal of the device, 0 on the CPU.
    pub device: i32,
    /// 1 to 256, all of this shape; sliding-window layers stay out.
    pub layers: i32,
    /// Query heads of this rank, a multiple of `kv_heads`.
    pub q_heads: i32,
    /// KV heads of this rank.
    pub kv_heads: i32,
    /// Size of a head of Q and K: a multiple of 8 up to 256.
    pub head_dim: i32,
    /// Size of a head of V; 0 = `head_dim`.
    pub head_dim_v: i32,
    /// F32, F16 or BF16; must be given.
    pub kv_dtype: DType,
    /// Of q and out; 0 = `kv_dtype`.
    pub query_dtype: DType,
    /// 0 = `kv_dtype`; E4M3, E5M2.
    pub summary_dtype: DType,
    /// Who keeps K and V.
    pub storage: Storage,
    /// Slots; 0 = 1.
    pub max_sequences: i32,
    /// Rows of one decode call; 0 = `max_sequences`.
    pub max_rows: i32,
    /// Sequences whose window rows wait over calls; 0 = 1.
    pub max_prefills: i32,
    /// Of the CPU backend, the caller's included; 0 = all.
    pub num_threads: i32,
    /// Bounds every S; positions stay below 2^31.
    pub max_prompt_tokens: i64,
    /// Generated tokens per prompt, drafts included.
    pub max_new_tokens: i64,
    /// t, tokens' worth of traffic per step: this or `compression_ratio`.
    pub token_budget: i64,
    /// (S + max_new) / t, at least 1: exactly one of both.
    pub compression_ratio: f64,
    /// Tokens that stage 1 keeps, at least window + sinks; 0 = plan.
    pub prompt_budget: i64,
    /// Tokens that stage 2 selects; 0 = plan.
    pub top_k: i64,
    /// P; 0 = plan; alone it also recomputes `num_channels`.
    pub page_size: i32,
    /// r; 0 = plan.
    pub num_channels: i32,
    /// W; 0 = 32.
    pub window_size: i32,
    /// Pooling of stage 1, odd; 0 = 63.
    pub kernel_size: i32,
    /// First tokens that both stages always keep.
    pub sinks: i32,
    /// Newest live tokens that stage 2 always selects.
    pub recent_tokens: i32,
    /// Whole pages, or exactly `top_k` tokens.
    pub selection_unit: SelectionUnit,
    /// What stage 1 scores.
    pub stage1_domain: Stage1Domain,
    /// What stage 2's softmax runs over.
    pub selection_domain: SelectionDomain,
    /// Pooling of stage 1.
    pub pooling: Pooling,
    /// Of stage 2's softmax.
    pub temperature: Temperature,
    /// 1: the last W keys stand in for queries.
    pub key_as_query: i32,
    /// 0 = 1 / sqrt(D).
    pub softmax_scale: f32,
    /// 0 = none; else cap * tanh(x / cap).
    pub logit_softcap: f32,
    /// Bit l (of word l / 32): layer l keeps the whole prompt and attends to all.
    pub dense_layers: [u32; 8],
}

impl Config {
    /// All sizes for a prompt of so many tokens (1 or more) under this budget or ratio. Fields that
    /// only size a cache may be 0. Touches no device, needs no cache.
    pub fn plan(&self, prompt_tokens: i64) -> Result<Plan> {
        self.plan_raw(null(), prompt_tokens)
    }

    /// As [`Config::plan`], with a request's own sizes.
    pub fn plan_with(&self, options: &SequenceOptions, prompt_tokens: i64) -> Result<Plan> {
        self.plan_raw(&options.raw(), prompt_tokens)
    }

    fn plan_raw(&self, options: *const sys::rkv_sequence_options, tokens: i64) -> Result<Plan> {
        let mut plan = Plan::empty();
        // SAFETY: all arguments outlive the call.
        call(|err| unsafe { sys::rkv_plan_make(&self.raw(), options, tokens, &mut plan, err) })?;
        Ok(Plan::from(&plan))
    }

    /// What a cache of this config needs. Covers every prompt of 1 to `max_prompt_tokens` under the
    /// config's own budget. Touches no device.
    pub fn memory(&self) -> Result<Memory> {
        let mut memory = Memory::empty();
        // SAFETY: all arguments outlive the call.
        call(|err| unsafe { sys::rkv_cache_memory(&self.raw(), &mut memory, err) })?;
        Ok(Memory::from(&memory))
    }

    /// Makes one layer dense: it keeps the whole prompt and attends to all.
    pub fn set_dense_layer(&mut self, layer: u32) -> Result<()> {
        let word = self.dense_layers.get_mut(layer as usize / 32);
        let word = word.ok_or_else(|| {
            Error::invalid(format!("dense layer {layer}: it must lie in [0, 256)"))
        })?;
        *word |= 1 << (layer % 32);
        Ok(())
    }

    pub(crate) fn raw(&self) -> sys::rkv_cache_config {
        sys::rkv_cache_config {
            struct_size: size_of::<sys::rkv_cache_config>() as u32,
            device_type: self.device_type.0,
            device: self.device,
            layers: self.layers,
            q_heads: self.q_heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            head_dim_v: self.head_dim_v,
            kv_dtype: self.kv_dtype.0,
            query_dtype: self.query_dtype.0,
            summary_dtype: self.summary_dtype.0,
            storage: self.storage.0,
            max_sequences: self.max_sequences,
            max_rows: self.max_rows,
            max_prefills: self.max_prefills,
            num_threads: self.num_threads,
            max_prompt_tokens: self.max_prompt_tokens,
            max_new_tokens: self.max_new_tokens,
            token_budget: self.token_budget,
            compression_ratio: self.compression_ratio,
            prompt_budget: self.prompt_budget,
            top_k: self.top_k,
            page_size: self.page_size,
            num_channels: self.num_channels,
            window_size: self.window_size,
            kernel_size: self.kernel_size,
            sinks: self.sinks,
            recent_tokens: self.recent_tokens,
            selection_unit: self.selection_unit.0,
            stage1_domain: self.stage1_domain.0,
            selection_domain: self.selection_domain.0,
            pooling: self.pooling.0,
            temperature: self.temperature.0,
            key_as_query: self.key_as_query,
            softmax_scale: self.softmax_scale,
            logit_softcap: self.logit_softcap,
            dense_layers: self.dense_layers,
            reserved: [0; 8],
        }
    }
}

/// One request's own sizes; 0 = the config's. They may ask for whatever fits the slots. End with
/// `..SequenceOptions::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SequenceOptions {
    /// Generated tokens, drafts included.
    pub max_new_tokens: i64,
    /// t; this or `compression_ratio`.
    pub token_budget: i64,
    /// (S + max_new) / t; one of both at most.
    pub compression_ratio: f64,
}

impl SequenceOptions {
    pub(crate) fn raw(&self) -> sys::rkv_sequence_options {
        sys::rkv_sequence_options {
            struct_size: size_of::<sys::rkv_sequence_options>() as u32,
            reserved: 0,
            max_new_tokens: self.max_new_tokens,
            token_budget: self.token_budget,
            compression_ratio: self.compression_ratio,
        }
    }
}
