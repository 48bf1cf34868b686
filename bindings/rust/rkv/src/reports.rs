//! What the library reports: structs that it fills.
use std::mem::zeroed;

use rkv_sys as sys;

// A struct of the library that is 0 but for its size: ready to be filled.
macro_rules! empty {
    ($raw:ident) => {
        // SAFETY: integers, floats and raw pointers may be 0.
        sys::$raw { struct_size: size_of::<sys::$raw>() as u32, ..unsafe { zeroed() } }
    };
}

/// All sizes for one prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The request is short: `cap` was raised to window + sinks + max_new.
    pub raised: bool,
    /// top_k >= rows: everything kept is attended to, nothing is scored.
    pub dense: bool,
    /// P, tokens of a page.
    pub page_size: i32,
    /// r, channels that are scored.
    pub num_channels: i32,
    /// Tokens stored per KV head at most.
    pub cap: i64,
    /// cap - max_new: of the prompt.
    pub prompt_budget: i64,
    /// The most live rows that this prompt reaches.
    pub rows: i64,
    /// Their pages; 0 = dense.
    pub pages: i64,
    /// Tokens selected per step.
    pub top_k: i64,
    /// t, within [1, S + max_new].
    pub token_budget: i64,
    /// c = (S + max_new) / t.
    pub ratio: f64,
    /// The paper's split factor.
    pub split: f64,
    /// Of full KV, by the paper's formula.
    pub storage_ratio: f64,
    /// Of full KV, by the paper's formula.
    pub traffic_ratio: f64,
}

impl Plan {
    pub(crate) fn empty() -> sys::rkv_plan {
        empty!(rkv_plan)
    }
}

impl From<&sys::rkv_plan> for Plan {
    fn from(raw: &sys::rkv_plan) -> Self {
        Self {
            raised: raw.raised != 0,
            dense: raw.dense != 0,
            page_size: raw.page_size,
            num_channels: raw.num_channels,
            cap: raw.cap,
            prompt_budget: raw.prompt_budget,
            rows: raw.rows,
            pages: raw.pages,
            top_k: raw.top_k,
            token_budget: raw.token_budget,
            ratio: raw.ratio,
            split: raw.split,
            storage_ratio: raw.storage_ratio,
            traffic_ratio: raw.traffic_ratio,
        }
    }
}

/// What a cache needs, in bytes, all slots together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Of both buffers, bytes.
    pub alignment: i64,
    /// What the cache wants as storage.
    pub storage_bytes: i64,
    /// What the cache wants as workspace.
    pub workspace_bytes: i64,
    /// Least capacity of a selection, token rows.
    pub selection_capacity: i64,
    /// Part of the storage: keys.
    pub k_bytes: i64,
    /// Part of the storage: values.
    pub v_bytes: i64,
    /// Part of the storage: page summaries.
    pub summary_bytes: i64,
    /// Part of the storage: positions.
    pub index_bytes: i64,
    /// Part of the storage: window rows that wait.
    pub window_bytes: i64,
    /// Part of the storage: tables and alignment.
    pub table_bytes: i64,
}

impl Memory {
    pub(crate) fn empty() -> sys::rkv_memory {
        empty!(rkv_memory)
    }
}

impl From<&sys::rkv_memory> for Memory {
    fn from(raw: &sys::rkv_memory) -> Self {
        Self {
            alignment: raw.alignment,
            storage_bytes: raw.storage_bytes,
            workspace_bytes: raw.workspace_bytes,
            selection_capacity: raw.selection_capacity,
            k_bytes: raw.k_bytes,
            v_bytes: raw.v_bytes,
            summary_bytes: raw.summary_bytes,
            index_bytes: raw.index_bytes,
            window_bytes: raw.window_bytes,
            table_bytes: raw.table_bytes,
        }
    }
}

/// One layer of one sequence. All 0 before its prefill.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SequenceStats {
    /// 0 before prefill.
    pub turn: i32,
    /// Query rows that scored the prompt; 0 where nothing had to go.
    pub window_rows: i32,
    /// Status of the last row refused on the device, 0 = none.
    pub fault: i32,
    /// An inf or NaN was met in the logits (those weigh 0).
    pub nonfinite: bool,
    /// An 8-bit summary saturated.
    pub saturated: bool,
    /// The length: where the next append is.
    pub position: i64,
    /// S + max_new, exclusive.
    pub max_position: i64,
    /// S.
    pub prompt: i64,
    /// Prompt tokens kept per KV head.
    pub kept: i64,
    /// Tokens appended.
    pub generated: i64,
    /// Pages of the live rows.
    pub pages: i64,
    /// Keys in use, all KV heads.
    pub k_bytes: i64,
    /// Values in use.
    pub v_bytes: i64,
    /// Page summaries in use.
    pub summary_bytes: i64,
    /// Positions in use.
    pub index_bytes: i64,
    /// Of this length, uncompressed.
    pub full_kv_bytes: i64,
    /// Summaries and selected rows.
    pub bytes_read_per_step: i64,
    /// The sequence's plan; all 0 before its first prefill.
    pub plan: Plan,
}

impl SequenceStats {
    pub(crate) fn empty() -> sys::rkv_sequence_stats {
        empty!(rkv_sequence_stats)
    }

    pub(crate) fn new(raw: &sys::rkv_sequence_stats, plan: &sys::rkv_plan) -> Self {
        Self {
            turn: raw.turn,
            window_rows: raw.window_rows,
            fault: raw.fault,
            nonfinite: raw.nonfinite != 0,
            saturated: raw.saturated != 0,
            position: raw.position,
            max_position: raw.max_position,
            prompt: raw.prompt,
            kept: raw.kept,
            generated: raw.generated,
            pages: raw.pages,
            k_bytes: raw.k_bytes,
            v_bytes: raw.v_bytes,
            summary_bytes: raw.summary_bytes,
            index_bytes: raw.index_bytes,
            full_kv_bytes: raw.full_kv_bytes,
            bytes_read_per_step: raw.bytes_read_per_step,
            plan: Plan::from(plan),
        }
    }
}

/// What a selection misses, over rows and query heads. No rows: all NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AuditResult {
    /// Rows compared.
    pub rows: i32,
    /// Mean share of the attention mass of all live rows that was selected.
    pub mass_mean: f64,
    /// The least such share.
    pub mass_min: f64,
    /// Of the whole prompt; NaN in COMPACT storage.
    pub prompt_mass_mean: f64,
    /// Mean of |out - out of all live rows| / |out of all live rows|.
    pub error_mean: f64,
    /// The largest such error.
    pub error_max: f64,
}

impl AuditResult {
    pub(crate) fn empty() -> sys::rkv_audit_result {
        empty!(rkv_audit_result)
    }
}

impl From<&sys::rkv_audit_result> for AuditResult {
    fn from(raw: &sys::rkv_audit_result) -> Self {
        Self {
            rows: raw.rows,
            mass_mean: raw.mass_mean,
            mass_min: raw.mass_min,
            prompt_mass_mean: raw.prompt_mass_mean,
            error_mean: raw.error_mean,
            error_max: raw.error_max,
        }
    }
}
