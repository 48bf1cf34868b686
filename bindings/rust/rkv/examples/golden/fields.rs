//! Fields of structs by their C names.
use rkv::{AuditResult, Config, DType, Memory, Plan, SequenceOptions, SequenceStats, Storage};
use rkv::{Device, Pooling, SelectionDomain, SelectionUnit, Stage1Domain, Temperature};

use crate::text::{list, number, Check};

/// `FIELD=VALUE`
pub fn split(word: &str) -> Check<(&str, &str)> {
    word.split_once('=').ok_or(format!("{word}: FIELD=VALUE expected"))
}

pub fn set_config(config: &mut Config, word: &str) -> Check {
    let (name, value) = split(word)?;
    macro_rules! fields {
        ($($field:ident)* ; $($named:ident: $type:ident)*) => {
            match name {
                $(stringify!($field) => config.$field = number(value)?,)*
                $(stringify!($named) => config.$named = $type(number(value)?),)*
                "dense_layers" => {
                    config.dense_layers = [0; 8];
                    for layer in list(value)? {
                        config.set_dense_layer(layer as u32).map_err(|e| e.to_string())?;
                    }
                }
                _ => return Err(format!("{name}: no such field")),
            }
        };
    }
    fields!(
        device layers q_heads kv_heads head_dim head_dim_v max_sequences max_rows max_prefills
        num_threads max_prompt_tokens max_new_tokens token_budget compression_ratio prompt_budget
        top_k page_size num_channels window_size kernel_size sinks recent_tokens key_as_query
        softmax_scale logit_softcap;
        device_type: Device kv_dtype: DType query_dtype: DType summary_dtype: DType
        storage: Storage selection_unit: SelectionUnit stage1_domain: Stage1Domain
        selection_domain: SelectionDomain pooling: Pooling temperature: Temperature
    );
    Ok(())
}

pub fn set_options(options: &mut SequenceOptions, word: &str) -> Check {
    let (name, value) = split(word)?;
    match name {
        "max_new_tokens" => options.max_new_tokens = number(value)?,
        "token_budget" => options.token_budget = number(value)?,
        "compression_ratio" => options.compression_ratio = number(value)?,
        _ => return Err(format!("{name}: no such field")),
    }
    Ok(())
}

/// A struct that a call filled.
pub enum Fields {
    Plan(Plan),
    Memory(Memory),
    Stats(SequenceStats),
    Audit(AuditResult),
}

trait Real {
    fn real(self) -> f64;
}
impl Real for bool {
    fn real(self) -> f64 {
        u8::from(self).into()
    }
}
impl Real for i32 {
    fn real(self) -> f64 {
        self.into()
    }
}
impl Real for i64 {
    fn real(self) -> f64 {
        self as f64
    }
}
impl Real for f64 {
    fn real(self) -> f64 {
        self
    }
}

impl Fields {
    pub fn get(&self, name: &str) -> Option<f64> {
        macro_rules! fields {
            ($of:ident: $($field:ident)*) => {
                match name {
                    $(stringify!($field) => Some($of.$field.real()),)*
                    _ => None,
                }
            };
        }
        match self {
            Fields::Plan(p) => {
                fields!(p: raised dense page_size num_channels cap prompt_budget rows
                pages top_k token_budget ratio split storage_ratio traffic_ratio)
            }
            Fields::Memory(m) => fields!(m: alignment storage_bytes workspace_bytes
                selection_capacity k_bytes v_bytes summary_bytes index_bytes window_bytes
                table_bytes),
            Fields::Stats(s) => fields!(s: turn window_rows fault nonfinite saturated position
                max_position prompt kept generated pages k_bytes v_bytes summary_bytes index_bytes
                full_kv_bytes bytes_read_per_step),
            Fields::Audit(a) => fields!(a: rows mass_mean mass_min prompt_mass_mean error_mean
                error_max),
        }
    }
}
