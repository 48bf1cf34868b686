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
    pub fn new<T: Element, const N: usize>(data: &'a [T], shape: [usize; N]) -> Result<Self> {
        Self::strided(data, 0, shape, contiguous(&shape)?)
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    pub fn strided<T: Element, const N: usize>(
        data: &'a [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        let start = data.as_ptr().wrapping_add(offset).cast();
        Self::checked(T::DTYPE, start, (data.len(), offset), &shape, &strides)
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
        let start = data.as_ptr().cast::<u8>().wrapping_add(offset.wrapping_mul(bytes)).cast();
        Self::checked(dtype, start, (length, offset), &shape, &strides)
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
        Ok(Self { raw: raw(dtype, data, shape, strides)?, data: PhantomData })
    }

    /// With factors for an 8-bit tensor: that of element `[i, j, ...]` is
    /// `scale[i * strides[0] + j * strides[1] + ...]`.
    pub fn scaled<const N: usize>(mut self, scale: &'a [f32], strides: [isize; N]) -> Result<Self> {
        if N != self.shape().len() {
            let axes = self.shape().len();
            return Err(Error::invalid(format!("scale: {N} strides for {axes} axes")));
        }
        let shape: Vec<usize> = self.shape().iter().map(|&n| n as usize).collect();
        check_bounds(scale.len(), 0, &shape, &strides)?;
        self.raw.scale = scale.as_ptr();
        self.raw.scale_strides = axes(&strides.map(|stride| stride as i64));
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

    fn checked(
        dtype: DType,
        start: *const c_void,
        (length, offset): (usize, usize),
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self> {
        let (shape, strides) = check_bounds(length, offset, shape, strides)?;
        let (shape, strides) = (&shape.0[..shape.1], &strides[..shape.1]);
        Ok(Self { raw: raw(dtype, start, shape, strides)?, data: PhantomData })
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
    pub fn new<T: Element, const N: usize>(data: &'a mut [T], shape: [usize; N]) -> Result<Self> {
        Self::strided(data, 0, shape, contiguous(&shape)?)
    }

    /// Element `[i, j, ...]` is `data[offset + i * strides[0] + j * strides[1] + ...]`.
    pub fn strided<T: Element, const N: usize>(
        data: &'a mut [T],
        offset: usize,
        shape: [usize; N],
        strides: [isize; N],
    ) -> Result<Self> {
        check_distinct(&shape, &strides)?;
        let start = data.as_mut_ptr().wrapping_add(offset).cast::<c_void>();
        let view = Tensor::checked(T::DTYPE, start, (data.len(), offset), &shape, &strides)?;
        Ok(Self { raw: view.raw, data: PhantomData })
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
        check_distinct(&shape, &strides)?;
        let (length, bytes) = element_count(dtype, data)?;
        let start = data.as_mut_ptr().cast::<u8>().wrapping_add(offset.wrapping_mul(bytes));
        let view = Tensor::checked(dtype, start.cast(), (length, offset), &shape, &strides)?;
        Ok(Self { raw: view.raw, data: PhantomData })
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
        Ok(Self { raw: raw(dtype, data, shape, strides)?, data: PhantomData })
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

fn raw(
    dtype: DType,
    data: *const c_void,
    shape: &[i64],
    strides: &[i64],
) -> Result<sys::rkv_tensor> {
    if shape.len() != strides.len() || shape.len() > AXES {
        let (n, m) = (shape.len(), strides.len());
        return Err(Error::invalid(format!("tensor: {n} axes and {m} strides, at most {AXES}")));
    }
    Ok(sys::rkv_tensor {
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
    })
}

fn axes(values: &[i64]) -> [i64; AXES] {
    let mut all = [0; AXES];
    all[..values.len()].copy_from_slice(values);
    all
}

fn contiguous<const N: usize>(shape: &[usize; N]) -> Result<[isize; N]> {
    let mut strides = [1; N];
    for axis in (1..N).rev() {
        let below = isize::try_from(shape[axis].max(1)).ok();
        strides[axis - 1] = below
            .and_then(|n| n.checked_mul(strides[axis]))
            .ok_or_else(|| Error::invalid(format!("tensor: shape {shape:?} is too large")))?;
    }
    Ok(strides)
}

fn element_count<T>(dtype: DType, data: &[T]) -> Result<(usize, usize)> {
    let bytes = dtype.size().ok_or_else(|| {
        Error::invalid(format!("tensor: {dtype:?} has no known size; see from_raw_parts"))
    })?;
    Ok((size_of_val(data) / bytes, bytes))
}

type Shape = ([i64; AXES], usize);

/// Shape and strides as the library wants them, if every element lies in a slice of `length`.
fn check_bounds(
    length: usize,
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Result<(Shape, [i64; AXES])> {
    if shape.len() > AXES {
        let n = shape.len();
        return Err(Error::invalid(format!("tensor: {n} axes, at most {AXES}")));
    }
    let mut wide = ([0; AXES], shape.len());
    let mut steps = [0; AXES];
    let mut reach = i64::try_from(offset).ok().map(|at| (at, at)); // lowest and highest element
    for (axis, (&n, &stride)) in shape.iter().zip(strides).enumerate() {
        steps[axis] = stride as i64;
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        wide.0[axis] = n;
        reach = reach.and_then(|(low, high)| {
            let extent = (n - 1).max(0).checked_mul(stride as i64)?;
            Some((low.checked_add(extent.min(0))?, high.checked_add(extent.max(0))?))
        });
    }
    let inside = match reach {
        _ if shape.contains(&0) => offset <= length, // nothing is reached
        Some((low, high)) => low >= 0 && (high as u64) < length as u64,
        None => false,
    };
    if inside {
        return Ok((wide, steps));
    }
    let reach = match reach {
        Some((low, high)) => format!("elements {low} to {high}"),
        None => "beyond 64 bits".into(),
    };
    Err(Error::invalid(format!(
        "tensor: shape {shape:?} with strides {strides:?} from element {offset} on reaches {reach}; \
         the slice has {length}"
    )))
}

/// Outputs: each axis must step over all that the finer ones reach, so that no element is written
/// twice.
fn check_distinct(shape: &[usize], strides: &[isize]) -> Result<()> {
    let mut axes = [(0, 0); AXES]; // step and length of the axes that step at all
    let mut used = 0;
    for (&n, stride) in shape.iter().zip(strides).take(AXES).filter(|(&n, _)| n > 1) {
        axes[used] = (stride.unsigned_abs(), n);
        used += 1;
    }
    axes[..used].sort_unstable();
    let mut finer = 0usize; // how far the axes so far reach
    for &(stride, n) in &axes[..used] {
        if stride <= finer {
            return Err(Error::invalid(format!(
                "tensor: strides {strides:?} of an output of shape {shape:?} overlap"
            )));
        }
        finer = finer.saturating_add(stride.saturating_mul(n - 1));
    }
    Ok(())
}
