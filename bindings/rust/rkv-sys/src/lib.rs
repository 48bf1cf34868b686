//! Raw bindings of librkv: the functions, structs and constants of `rkv.h`, whose comments are their
//! documentation. The crate `rkv` is the safe way to use them.
//!
//! Constants are newtypes, so that a number that this version does not know is no undefined
//! behaviour. A struct is ready when it is all zero but for `struct_size`.
//!
//! ```
//! use rkv_sys::*;
//!
//! let mut count = 0;
//! // SAFETY: `count` is written during the call; a null error is allowed.
//! let status = unsafe { rkv_device_count(RKV_DEVICE_CPU.0, &mut count, std::ptr::null_mut()) };
//! assert_eq!((status, count), (RKV_OK, 1));
//! ```
#![allow(non_camel_case_types)]

#[rustfmt::skip] // as bindgen writes it
mod bindings;
pub use bindings::*;
