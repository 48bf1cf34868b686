use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::null;

use rkv_sys as sys;

use crate::error::{Error, Result};
use crate::types::DType;

const AXES: usize = 6;

mod sealed {
    pub trait Sealed {}
}

/// An element type of tensors: `f32`, and with the feature `half` also `half::f16` and
/// `half::bf16`.
pub trait Element: Copy + sealed::Sealed {
    /// The library's name for it.
    const DTYPE: DType;
}

/// Plain integers that hold the bits of elements: `u8`, `u16`, `u32`.
pub trait Bits: Copy + sealed::Sealed {}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}
elements!(f32 => F32);
#[cfg(feature = "half")]
elements!(half::f16 => F16, half::bf16 => BF16);

macro_rules! bits {
    ($($type:ty),*) => {
        $(impl sealed::Sealed for $type {}
        impl Bits for $type {})*
    };
}
bits!(u8, u16, u32);

/// A strided view of a borrowed slice: rows, heads and channels in any order that strides can say.
/// Nothing is copied; the view checks once that no element lies outside the slice.
///
/// Axes are `[rows, heads, channels]`; paged `[block, N, Hkv, D]` or `[block, N, Hkv, D/x, x]`.
///
/// ```
/// use rkv::Tensor;
///
/// // K of 2 heads and 100 tokens as an engine keeps it, head after head: [Hkv, S, D].
/// let k = vec![0f32; 2 * 100 * 64];
/// let rows = Tensor::strided(&k, 0, [100, 2, 64], [64, 100 * 64, 1])?;
/// assert_eq!(rows.shape(), &[100, 2, 64]);
/// assert!(Tensor::strided(&k, 1, [100, 2, 64], [64, 100 * 64, 1]).is_err());
/// # Ok::<(), rkv::Error>(())
/// ```
///
/// The view borrows the slice:
///
/// ```compile_fail,E0505
/// let k = vec![0f32; 2 * 100 * 64];
/// let view = rkv::Tensor::new(&k, [100, 2, 64])?;
/// drop(k);
/// println!("{:?}", view.shape());
/// # Ok::<(), rkv::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    pub(crate) raw: sys::rkv_tensor,
    data: PhantomData<&'a [u8]>,
}

// SAFETY: a view stands for a shared slice of numbers.
unsafe impl Send for Tensor<'_> {}
// SAFETY: as above; a view is never written through.
unsafe impl Sync for Tensor<'_> {}

impl<'a> Tensor<'a> {
    /// A contiguous array, the last axis fastest, from the slice's start.
    #[inline]
    pub fn new<T: Element, const N: usize>(data: &'a [T], shape: [usize; N]) -> Result<Self> {
        Self::strided(data, 0, shape, contiguous(&shape)?)
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    #[inline]
    pub fn strided<T: Element, const N: usize>(
        data: &'a [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        check_bounds(data.len(), offset, &shape, &strides)?;
        let start = data.as_ptr().wrapping_add(offset).cast();
        Ok(Self { raw: raw(T::DTYPE, start, &wide(shape), &long(strides)), data: PhantomData })
    }

    /// Elements given as bits: BF16 as `u16`, any dtype as bytes. Offset and strides count elements
    /// of `dtype`.
    pub fn from_bits<T: Bits, const N: usize>(
        dtype: DType,
        data: &'a [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        let (length, bytes) = element_count(dtype, data)?;
        check_bounds(length, offset, &shape, &strides)?;
        let start = data.as_ptr().cast::<u8>().wrapping_add(offset * bytes).cast();
        Ok(Self { raw: raw(dtype, start, &wide(shape), &long(strides)), data: PhantomData })
    }

    /// Memory that is no slice: of a device, or of a dtype that this crate does not know. At most 6
    /// axes; strides in elements.
    ///
    /// # Safety
    /// `data` is the first element; every element that shape and strides reach is valid to read,
    /// in memory of the cache's device, for `'a`, and on a device until the stream has passed the
    /// calls that were given this view.
    pub unsafe fn from_raw_parts(
        dtype: DType,
        data: *const c_void,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self> {
        check_axes(shape.len(), strides.len())?;
        Ok(Self { raw: raw(dtype, data, shape, strides), data: PhantomData })
    }

    /// With factors for an 8-bit tensor: that of element `[i, j, ...]` is
    /// `scale[i * strides[0] + j * strides[1] + ...]`.
    pub fn scaled<const N: usize>(mut self, scale: &'a [f32], strides: [isize; N]) -> Result<Self> {
        if N != self.shape().len() {
            let axes = self.shape().len();
            return Err(Error::invalid(format!("scale: {N} strides for {axes} axes")));
        }
        let mut shape = [0; N];
        shape.iter_mut().zip(self.shape()).for_each(|(n, &of)| *n = of as usize);
        check_bounds(scale.len(), 0, &shape, &strides)?;
        self.raw.scale = scale.as_ptr();
        self.raw.scale_strides = axes(&long(strides));
        Ok(self)
    }

    /// Elements per axis.
    pub fn shape(&self) -> &[i64] {
        &self.raw.shape[..self.raw.ndim as usize]
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        DType(self.raw.dtype)
    }
}

/// As [`Tensor`], for output: a strided view of a slice that is borrowed mutably. No two of its
/// elements may be the same.
///
/// ```compile_fail,E0502
/// let mut out = vec![0f32; 8 * 64];
/// let view = rkv::TensorMut::new(&mut out, [1, 8, 64])?;
/// println!("{}", out[0]); // the view still holds it
/// println!("{:?}", view.shape());
/// # Ok::<(), rkv::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorMut<'a> {
    pub(crate) raw: sys::rkv_tensor,
    data: PhantomData<&'a mut [u8]>,
}

// SAFETY: a view stands for a slice of numbers that is borrowed mutably.
unsafe impl Send for TensorMut<'_> {}
// SAFETY: as above; nothing is written through a shared reference to it.
unsafe impl Sync for TensorMut<'_> {}

impl<'a> TensorMut<'a> {
    /// A contiguous array, the last axis fastest, from the slice's start.
    #[inline]
    pub fn new<T: Element, const N: usize>(data: &'a mut [T], shape: [usize; N]) -> Result<Self> {
        Self::strided(data, 0, shape, contiguous(&shape)?)
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    #[inline]
    pub fn strided<T: Element, const N: usize>(
        data: &'a mut [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        check_bounds(data.len(), offset, &shape, &strides)?;
        check_distinct(&shape, &strides)?;
        let start = data.as_mut_ptr().wrapping_add(offset).cast::<c_void>();
        Ok(Self { raw: raw(T::DTYPE, start, &wide(shape), &long(strides)), data: PhantomData })
    }

    /// Elements given as bits: BF16 as `u16`, any dtype as bytes. Offset and strides count elements
    /// of `dtype`.
    pub fn from_bits<T: Bits, const N: usize>(
        dtype: DType,
        data: &'a mut [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        let (length, bytes) = element_count(dtype, data)?;
        check_bounds(length, offset, &shape, &strides)?;
        check_distinct(&shape, &strides)?;
        let start = data.as_mut_ptr().cast::<u8>().wrapping_add(offset * bytes).cast::<c_void>();
        Ok(Self { raw: raw(dtype, start, &wide(shape), &long(strides)), data: PhantomData })
    }

    /// Memory that is no slice: of a device, or of a dtype that this crate does not know.
    ///
    /// # Safety
    /// As [`Tensor::from_raw_parts`]; every element is valid to write and nobody else uses it.
    pub unsafe fn from_raw_parts(
        dtype: DType,
        data: *mut c_void,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self> {
        check_axes(shape.len(), strides.len())?;
        Ok(Self { raw: raw(dtype, data, shape, strides), data: PhantomData })
    }

    /// Elements per axis.
    pub fn shape(&self) -> &[i64] {
        &self.raw.shape[..self.raw.ndim as usize]
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        DType(self.raw.dtype)
    }
}

#[inline]
fn raw(dtype: DType, data: *const c_void, shape: &[i64], strides: &[i64]) -> sys::rkv_tensor {
    sys::rkv_tensor {
        struct_size: size_of::<sys::rkv_tensor>() as u32,
        dtype: dtype.0,
        data: data.cast_mut(),
        ndim: shape.len() as i32,
        reserved0: 0,
        shape: axes(shape),
        strides: axes(strides),
        scale: null(),
        scale_strides: [0; AXES],
        reserved: [0; 4],
    }
}

#[inline]
fn axes(values: &[i64]) -> [i64; AXES] {
    let mut all = [0; AXES];
    all[..values.len()].copy_from_slice(values);
    all
}

// After check_bounds: every length fits, unless it is one that a stride of 0 repeats.
#[inline]
fn wide<const N: usize>(shape: [usize; N]) -> [i64; N] {
    shape.map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

#[inline]
fn long<const N: usize>(strides: [isize; N]) -> [i64; N] {
    strides.map(|stride| stride as i64)
}

#[inline]
fn contiguous<const N: usize>(shape: &[usize; N]) -> Result<[isize; N]> {
    let mut strides = [1; N];
    for axis in (1..N).rev() {
        let below = isize::try_from(shape[axis].max(1)).ok();
        match below.and_then(|n| n.checked_mul(strides[axis])) {
            Some(stride) => strides[axis - 1] = stride,
            None => return Err(Error::invalid(format!("tensor: shape {shape:?} is too large"))),
        }
    }
    Ok(strides)
}

fn element_count<T>(dtype: DType, data: &[T]) -> Result<(usize, usize)> {
    let bytes = dtype.size().ok_or_else(|| {
        Error::invalid(format!("tensor: {dtype:?} has no known size; see from_raw_parts"))
    })?;
    Ok((size_of_val(data) / bytes, bytes))
}

fn check_axes(shape: usize, strides: usize) -> Result<()> {
    if shape == strides && shape <= AXES {
        return Ok(());
    }
    let text = format!("tensor: {shape} axes and {strides} strides, at most {AXES}");
    Err(Error::invalid(text))
}

/// Every element lies in a slice of `length`.
#[inline]
fn check_bounds<const N: usize>(
    length: usize,
    offset: usize,
    shape: &[usize; N],
    strides: &[isize; N],
) -> Result<()> {
    let inside = match reach(offset, shape, strides) {
        _ if N > AXES => false,
        _ if shape.contains(&0) => offset <= length, // nothing is reached
        Some((low, high)) => low >= 0 && (high as u64) < length as u64,
        None => false,
    };
    if inside {
        return Ok(());
    }
    Err(outside(length, offset, shape, strides))
}

/// The lowest and the highest element; none where 64 bits do not hold it.
#[inline]
fn reach<const N: usize>(
    offset: usize,
    shape: &[usize; N],
    strides: &[isize; N],
) -> Option<(i64, i64)> {
    let start = i64::try_from(offset).ok()?;
    let (mut low, mut high) = (start, start);
    for (&n, &stride) in shape.iter().zip(strides) {
        let steps = i64::try_from(n.saturating_sub(1)).unwrap_or(i64::MAX);
        let extent = steps.checked_mul(stride as i64)?;
        low = low.checked_add(extent.min(0))?;
        high = high.checked_add(extent.max(0))?;
    }
    Some((low, high))
}

#[cold]
fn outside<const N: usize>(
    length: usize,
    offset: usize,
    shape: &[usize; N],
    strides: &[isize; N],
) -> Error {
    if N > AXES {
        return Error::invalid(format!("tensor: {N} axes, at most {AXES}"));
    }
    let reach = match reach(offset, shape, strides) {
        Some((low, high)) => format!("elements {low} to {high}"),
        None => "beyond 64 bits".into(),
    };
    Error::invalid(format!(
        "tensor: shape {shape:?} with strides {strides:?} from element {offset} on reaches {reach}; \
         the slice has {length}"
    ))
}

/// Outputs: each axis must step over all that the finer ones reach, so that no element is written
/// twice.
#[inline]
fn check_distinct<const N: usize>(shape: &[usize; N], strides: &[isize; N]) -> Result<()> {
    // Most outputs have the finest axis last; others are sorted first.
    if steps_over((0..N).rev().map(|i| (shape[i], strides[i]))) {
        return Ok(());
    }
    let mut order: [(usize, usize); N] = std::array::from_fn(|i| (strides[i].unsigned_abs(), i));
    order.sort_unstable();
    if steps_over(order.iter().map(|&(_, i)| (shape[i], strides[i]))) {
        return Ok(());
    }
    let text = format!("tensor: strides {strides:?} of an output of shape {shape:?} overlap");
    Err(Error::invalid(text))
}

#[inline]
fn steps_over(axes: impl Iterator<Item = (usize, isize)>) -> bool {
    let mut finer = 0usize; // how far the axes so far reach
    for (n, stride) in axes.filter(|&(n, _)| n > 1) {
        let stride = stride.unsigned_abs();
        if stride <= finer {
            return false;
        }
        finer = finer.saturating_add(stride.saturating_mul(n - 1));
    }
    true
}
