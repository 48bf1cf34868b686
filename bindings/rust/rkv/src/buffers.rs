use std::alloc::{alloc, dealloc, Layout};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use rkv_sys as sys;

use crate::error::{Error, Result};

/// The caller's memory for a cache: a storage and a workspace of the sizes and the alignment that
/// [`Config::memory`](crate::Config::memory) names. The cache borrows both until it is dropped.
#[derive(Debug)]
pub struct Buffers<'m> {
    pub(crate) raw: sys::rkv_buffers,
    memory: PhantomData<&'m mut [u8]>,
}

impl<'m> Buffers<'m> {
    /// Memory of this process. The contents need not be cleared.
    pub fn new(storage: &'m mut [MaybeUninit<u8>], workspace: &'m mut [MaybeUninit<u8>]) -> Self {
        let (storage, workspace) = (as_raw(storage), as_raw(workspace));
        // SAFETY: both are borrowed mutably for 'm.
        unsafe { Self::from_raw_parts(storage, workspace) }
    }

    /// Memory of a device, or a workspace that several caches share: address and bytes of each.
    ///
    /// # Safety
    /// Both lie in memory of the cache's device, are valid to read and write for `'m`, and nobody
    /// else uses the storage. A shared workspace: calls of the caches that share it never overlap.
    pub unsafe fn from_raw_parts(
        (storage, storage_bytes): (*mut c_void, i64),
        (workspace, workspace_bytes): (*mut c_void, i64),
    ) -> Self {
        let raw = sys::rkv_buffers {
            struct_size: size_of::<sys::rkv_buffers>() as u32,
            reserved: 0,
            storage,
            storage_bytes,
            workspace,
            workspace_bytes,
        };
        Self { raw, memory: PhantomData }
    }
}

fn as_raw(memory: &mut [MaybeUninit<u8>]) -> (*mut c_void, i64) {
    (memory.as_mut_ptr().cast(), memory.len() as i64)
}

/// Bytes with an alignment, not cleared: what [`Buffers::new`] takes, where the engine has no
/// allocator of its own.
///
/// ```
/// use rkv::{AlignedBytes, Buffers, Cache, Config, DType};
///
/// let config = Config {
///     layers: 1, q_heads: 8, kv_heads: 2, head_dim: 64, kv_dtype: DType::F32,
///     max_prompt_tokens: 1000, max_new_tokens: 64, token_budget: 256, num_threads: 1,
///     ..Config::default()
/// };
/// let memory = config.memory()?;
/// let mut storage = AlignedBytes::new(memory.storage_bytes, memory.alignment)?;
/// let mut workspace = AlignedBytes::new(memory.workspace_bytes, memory.alignment)?;
/// let mut cache = Cache::with_buffers(&config, Buffers::new(&mut storage, &mut workspace))?;
/// cache.open(0)?;
/// # Ok::<(), rkv::Error>(())
/// ```
///
/// The cache borrows the memory:
///
/// ```compile_fail,E0505
/// use rkv::{AlignedBytes, Buffers, Cache, Config};
///
/// let mut storage = AlignedBytes::new(1 << 20, 64)?;
/// let mut workspace = AlignedBytes::new(1 << 20, 64)?;
/// let buffers = Buffers::new(&mut storage, &mut workspace);
/// let mut cache = Cache::with_buffers(&Config::default(), buffers)?;
/// drop(storage);
/// cache.open(0)?;
/// # Ok::<(), rkv::Error>(())
/// ```
#[derive(Debug)]
pub struct AlignedBytes {
    start: NonNull<MaybeUninit<u8>>,
    bytes: usize,
    layout: Layout,
}

// SAFETY: it owns plain memory.
unsafe impl Send for AlignedBytes {}
// SAFETY: as above.
unsafe impl Sync for AlignedBytes {}

impl AlignedBytes {
    /// `alignment` is a power of two.
    pub fn new(bytes: i64, alignment: i64) -> Result<Self> {
        let size = usize::try_from(bytes).ok();
        let layout = size.zip(usize::try_from(alignment).ok()).and_then(|(size, alignment)| {
            Layout::from_size_align(size.max(1), alignment).ok() // nobody allocates 0 bytes
        });
        let (Some(size), Some(layout)) = (size, layout) else {
            let text = format!("{bytes} bytes with an alignment of {alignment}");
            return Err(Error::invalid(text));
        };
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) }.cast());
        let start = start.ok_or_else(|| Error::out_of_memory(format!("no {bytes} bytes")))?;
        Ok(Self { start, bytes: size, layout })
    }
}

impl Deref for AlignedBytes {
    type Target = [MaybeUninit<u8>];

    fn deref(&self) -> &Self::Target {
        // SAFETY: so much was allocated.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: so much was allocated, and this is its one owner.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}
