use std::marker::PhantomData;

use rkv_sys as sys;

use crate::error::{Error, Result};
use crate::types::Space;

/// The caller's memory for lists of rows, one list per row of a call and KV head: ascending, padded
/// with -1. [`SelectionBuf`] owns such memory.
#[derive(Debug)]
pub struct Selection<'a> {
    pub(crate) raw: sys::rkv_selection,
    indices: usize,
    counts: usize,
    memory: PhantomData<&'a mut [i32]>,
}

impl<'a> Selection<'a> {
    /// `indices` is `[rows, Hkv, capacity]`, `counts` is `[rows, Hkv]`; `capacity` is at least
    /// [`Memory::selection_capacity`](crate::Memory::selection_capacity).
    pub fn new(space: Space, indices: &'a mut [i32], counts: &'a mut [i32], capacity: i64) -> Self {
        let raw = sys::rkv_selection {
            struct_size: size_of::<sys::rkv_selection>() as u32,
            space: space.0,
            indices: indices.as_mut_ptr(),
            counts: counts.as_mut_ptr(),
            capacity,
        };
        Self { raw, indices: indices.len(), counts: counts.len(), memory: PhantomData }
    }

    /// Memory of a device.
    ///
    /// # Safety
    /// Both arrays lie in memory of the cache's device, are valid to read and write for `'a` and as
    /// large as [`Selection::new`] says for the rows of every call that they are given to, and
    /// nobody else uses them until the stream has passed that call.
    pub unsafe fn from_raw_parts(
        space: Space,
        indices: *mut i32,
        counts: *mut i32,
        capacity: i64,
    ) -> Self {
        let raw = sys::rkv_selection {
            struct_size: size_of::<sys::rkv_selection>() as u32,
            space: space.0,
            indices,
            counts,
            capacity,
        };
        Self { raw, indices: usize::MAX, counts: usize::MAX, memory: PhantomData }
    }

    pub(crate) fn check(&self, rows: usize, kv_heads: usize) -> Result<()> {
        let lists = rows.checked_mul(kv_heads);
        if lists.is_none_or(|lists| lists > self.counts) {
            return Err(Error::too_small(format!(
                "selection.counts: {} for {rows} rows of {kv_heads} KV heads",
                self.counts
            )));
        }
        // A negative capacity is the library's to refuse: it writes nothing then.
        let capacity = usize::try_from(self.raw.capacity).unwrap_or(0);
        let need = lists.and_then(|lists| lists.checked_mul(capacity));
        if need.is_none_or(|need| need > self.indices) {
            return Err(Error::too_small(format!(
                "selection.indices: {} for {rows} rows of {kv_heads} KV heads with a capacity of \
                 {capacity}",
                self.indices
            )));
        }
        Ok(())
    }
}

/// A selection that owns its memory; [`Cache::selection`](crate::Cache::selection) makes one that
/// is large enough.
#[derive(Debug, Clone)]
pub struct SelectionBuf {
    space: Space,
    kv_heads: usize,
    capacity: usize,
    indices: Vec<i32>,
    counts: Vec<i32>,
}

impl SelectionBuf {
    /// Room for so many rows; `capacity` as for [`Selection::new`].
    pub fn new(space: Space, rows: usize, kv_heads: usize, capacity: usize) -> Result<Self> {
        let lists = rows.checked_mul(kv_heads);
        let all = lists.and_then(|lists| lists.checked_mul(capacity));
        let (Some(lists), Some(all)) = (lists, all) else {
            return Err(Error::invalid(format!("selection: {rows} rows are too many")));
        };
        Ok(Self { space, kv_heads, capacity, indices: filled(all, -1)?, counts: filled(lists, 0)? })
    }

    /// What a call takes.
    pub fn view(&mut self) -> Selection<'_> {
        Selection::new(self.space, &mut self.indices, &mut self.counts, self.capacity as i64)
    }

    /// The list of a row and a KV head; `None` where there is no such row or head.
    pub fn list(&self, row: usize, head: usize) -> Option<&[i32]> {
        let line = row.checked_mul(self.kv_heads)?.checked_add(head)?;
        let count = *self.counts.get(line).filter(|_| head < self.kv_heads)?;
        let start = line * self.capacity;
        self.indices.get(start..start + usize::try_from(count).ok()?)
    }
}

fn filled(n: usize, value: i32) -> Result<Vec<i32>> {
    let mut all = Vec::new();
    all.try_reserve_exact(n).map_err(|error| Error::out_of_memory(error.to_string()))?;
    all.resize(n, value);
    Ok(all)
}
