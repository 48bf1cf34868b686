use std::ffi::{c_char, CStr};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;

use rkv_sys as sys;

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, by the library's status. `Display` is the library's own text: it names the
/// argument, its value and what would be right.
///
/// A call that returns an error has changed nothing, unless its documentation says otherwise.
///
/// ```
/// use rkv::{Cache, Config, Error};
///
/// let error = Cache::new(&Config::default()).unwrap_err();
/// assert!(matches!(error, Error::InvalidArgument(_)));
/// assert!(error.text().starts_with("config."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A value, shape or dtype that can never be right here.
    InvalidArgument(Detail),
    /// Valid, but not served by this version, build or backend.
    Unsupported(Detail),
    /// More than the cache was created for.
    OutOfCapacity(Detail),
    /// A caller's buffer; the text says the need.
    BufferTooSmall(Detail),
    /// Right call, wrong moment; also a call that meets another one in the same cache.
    BadState(Detail),
    /// The device failed; only dropping the cache is valid from here on.
    DeviceError(Detail),
    /// Imported bytes of another version or byte order.
    AbiMismatch(Detail),
    /// Imported bytes that are damaged or do not fit together.
    CorruptData(Detail),
    /// Memory or threads.
    OutOfMemory(Detail),
    /// A bug of the library.
    Internal(Detail),
    /// A status that this crate does not know.
    Other(Detail),
}

/// What the library said about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// `RKV_*` of the header.
    pub status: i32,
    /// Code of the device or the system, 0 = none.
    pub native_code: i32,
    /// The library's text.
    pub text: String,
}

impl Error {
    /// All that the library said.
    pub fn detail(&self) -> &Detail {
        match self {
            Error::InvalidArgument(detail)
            | Error::Unsupported(detail)
            | Error::OutOfCapacity(detail)
            | Error::BufferTooSmall(detail)
            | Error::BadState(detail)
            | Error::DeviceError(detail)
            | Error::AbiMismatch(detail)
            | Error::CorruptData(detail)
            | Error::OutOfMemory(detail)
            | Error::Internal(detail)
            | Error::Other(detail) => detail,
        }
    }

    /// The library's text.
    pub fn text(&self) -> &str {
        &self.detail().text
    }

    /// Code of the device or the system, 0 = none.
    pub fn native_code(&self) -> i32 {
        self.detail().native_code
    }

    /// The status as a number, `RKV_*` of the header.
    pub fn status(&self) -> i32 {
        self.detail().status
    }

    /// The status as a word: `INVALID_ARGUMENT`, ...
    pub fn status_name(&self) -> &'static str {
        // SAFETY: any number is allowed.
        static_text(unsafe { sys::rkv_status_name(sys::rkv_status(self.status())) })
    }

    fn new(status: sys::rkv_status, native_code: i32, text: String) -> Self {
        let detail = Detail { status: status.0, native_code, text };
        match status {
            sys::RKV_INVALID_ARGUMENT => Error::InvalidArgument(detail),
            sys::RKV_UNSUPPORTED => Error::Unsupported(detail),
            sys::RKV_OUT_OF_CAPACITY => Error::OutOfCapacity(detail),
            sys::RKV_BUFFER_TOO_SMALL => Error::BufferTooSmall(detail),
            sys::RKV_BAD_STATE => Error::BadState(detail),
            sys::RKV_DEVICE_ERROR => Error::DeviceError(detail),
            sys::RKV_ABI_MISMATCH => Error::AbiMismatch(detail),
            sys::RKV_CORRUPT_DATA => Error::CorruptData(detail),
            sys::RKV_OUT_OF_MEMORY => Error::OutOfMemory(detail),
            sys::RKV_INTERNAL => Error::Internal(detail),
            _ => Error::Other(detail),
        }
    }

    // What only this side can see: the length of a slice.
    pub(crate) fn invalid(text: String) -> Self {
        Self::new(sys::RKV_INVALID_ARGUMENT, 0, text)
    }

    pub(crate) fn too_small(text: String) -> Self {
        Self::new(sys::RKV_BUFFER_TOO_SMALL, 0, text)
    }

    pub(crate) fn out_of_memory(text: String) -> Self {
        Self::new(sys::RKV_OUT_OF_MEMORY, 0, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text().is_empty() {
            f.write_str(self.status_name())
        } else {
            f.write_str(self.text())
        }
    }
}

impl std::error::Error for Error {}

/// Runs one call of the library and turns its status and text into a result.
#[inline]
pub(crate) fn call(function: impl FnOnce(*mut sys::rkv_error) -> sys::rkv_status) -> Result<()> {
    let mut space = MaybeUninit::<sys::rkv_error>::uninit();
    let err = space.as_mut_ptr();
    // The text stays unwritten, for speed: the library ends what it writes with a NUL.
    // SAFETY: the fields lie in `space`.
    unsafe {
        addr_of_mut!((*err).struct_size).write(size_of::<sys::rkv_error>() as u32);
        addr_of_mut!((*err).native_code).write(0);
        addr_of_mut!((*err).text).cast::<c_char>().write(0);
    }
    match function(err) {
        sys::RKV_OK => Ok(()),
        // SAFETY: both fields were written above or by the library.
        status => Err(unsafe { failed(status, err) }),
    }
}

#[cold]
unsafe fn failed(status: sys::rkv_status, err: *const sys::rkv_error) -> Error {
    // SAFETY: the caller's promise.
    let (native_code, text) = unsafe {
        let text = CStr::from_ptr(std::ptr::addr_of!((*err).text).cast());
        ((*err).native_code, text.to_string_lossy().into_owned())
    };
    Error::new(status, native_code, text)
}

pub(crate) fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: the library's static strings, ASCII.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}
