#![doc = include_str!("../README.md")]

mod args;
mod buffers;
mod cache;
mod config;
mod error;
mod reports;
mod selection;
mod tensor;
mod types;

pub use args::{Paging, Prefill, Step, Transfer};
pub use buffers::{AlignedBytes, Buffers};
pub use cache::Cache;
pub use config::{Config, SequenceOptions};
pub use error::{Detail, Error, Result};
pub use reports::{AuditResult, Memory, Plan, SequenceStats};
pub use rkv_sys as sys;
pub use selection::{Selection, SelectionBuf};
pub use tensor::{Bits, Element, Tensor, TensorMut};
pub use types::{
    DType, Device, Pooling, SelectionDomain, SelectionUnit, Space, Stage1Domain, Storage,
    Temperature,
};

/// The ABI of the loaded library: major * 1000 + minor.
pub fn abi_version() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { sys::rkv_abi_version() }
}

/// The release of the loaded library.
pub fn version() -> &'static str {
    // SAFETY: it takes nothing.
    error::static_text(unsafe { sys::rkv_version_string() })
}

/// How many devices of a kind this build and this machine serve: 1 for the CPU, 0 for CUDA where
/// there is no driver or backend.
pub fn device_count(device: Device) -> Result<i32> {
    let mut count = 0;
    // SAFETY: count outlives the call.
    error::call(|err| unsafe { sys::rkv_device_count(device.0, &mut count, err) })?;
    Ok(count)
}
