//! The arguments of the two stages and of a transfer.
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{null, null_mut};

use rkv_sys as sys;

use crate::error::{Error, Result};
use crate::selection::Selection;
use crate::tensor::{Tensor, TensorMut};

/// K and V in the engine's blocks.
#[derive(Debug, Clone, Copy)]
pub struct Paging<'a> {
    raw: sys::rkv_paging,
    entries: usize,
    table: PhantomData<&'a [i32]>,
}

impl<'a> Paging<'a> {
    /// `block_table` is `[rows, max_blocks]`, a row every `row_stride` entries; negative = absent.
    /// Prefill and transfers have one row.
    pub fn new(
        block_tokens: i64,
        max_blocks: i64,
        row_stride: i64,
        block_table: &'a [i32],
    ) -> Self {
        let raw = paging(block_tokens, max_blocks, row_stride, block_table.as_ptr());
        Self { raw, entries: block_table.len(), table: PhantomData }
    }

    /// A table in memory of a device.
    ///
    /// # Safety
    /// The table is as [`Paging::new`] says, in memory of the cache's device, and unchanged until
    /// the stream has passed the calls that were given it.
    pub unsafe fn from_raw_table(
        block_tokens: i64,
        max_blocks: i64,
        row_stride: i64,
        block_table: *const i32,
    ) -> Self {
        let raw = paging(block_tokens, max_blocks, row_stride, block_table);
        Self { raw, entries: usize::MAX, table: PhantomData }
    }

    /// Addresses of K's and V's blocks, `[rows, max_blocks]` each, instead of a table.
    ///
    /// # Safety
    /// Both arrays are so large, and every address in them is of a block that is valid to read in
    /// memory of the cache's device until the stream has passed the calls that were given it.
    pub unsafe fn from_addresses(
        block_tokens: i64,
        max_blocks: i64,
        row_stride: i64,
        k_blocks: *const *const c_void,
        v_blocks: *const *const c_void,
    ) -> Self {
        let mut raw = paging(block_tokens, max_blocks, row_stride, null());
        (raw.k_blocks, raw.v_blocks) = (k_blocks, v_blocks);
        Self { raw, entries: usize::MAX, table: PhantomData }
    }

    fn check(&self, rows: usize) -> Result<()> {
        // Negative sizes are the library's to refuse.
        let size = |n: i64| usize::try_from(n).unwrap_or(0);
        let before = rows.saturating_sub(1).checked_mul(size(self.raw.row_stride));
        let need = before.and_then(|n| n.checked_add(size(self.raw.max_blocks)));
        match need {
            Some(need) if need <= self.entries => Ok(()),
            _ => Err(Error::too_small(format!(
                "paging.block_table: {} entries for {rows} rows of {} blocks, {} apart",
                self.entries, self.raw.max_blocks, self.raw.row_stride
            ))),
        }
    }
}

fn paging(tokens: i64, blocks: i64, stride: i64, table: *const i32) -> sys::rkv_paging {
    sys::rkv_paging {
        struct_size: size_of::<sys::rkv_paging>() as u32,
        reserved: 0,
        block_tokens: tokens,
        max_blocks: blocks,
        row_stride: stride,
        block_table: table,
        k_blocks: null(),
        v_blocks: null(),
    }
}

/// One call of stage 1: a chunk of a prompt in one layer. Only the last chunk needs K and V.
#[derive(Debug, Clone, Copy)]
pub struct Prefill<'a> {
    raw: sys::rkv_prefill_args,
    paging: Option<Paging<'a>>,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Prefill<'a> {
    /// For a prompt of `prompt_tokens` in all; the same in every chunk.
    pub fn new(seq: i32, layer: i32, prompt_tokens: i64) -> Self {
        let raw = sys::rkv_prefill_args {
            struct_size: size_of::<sys::rkv_prefill_args>() as u32,
            seq,
            layer,
            reserved: 0,
            start: 0,
            prompt_tokens,
            q: null(),
            k: null(),
            v: null(),
            paging: null(),
        };
        Self { raw, paging: None, data: PhantomData }
    }

    /// Query rows `[n, Hq, D]` of this chunk after RoPE, from position `start` on. Only the last W
    /// of a prompt matter.
    pub fn q(mut self, start: i64, q: &'a Tensor<'_>) -> Self {
        (self.raw.start, self.raw.q) = (start, &q.raw);
        self
    }

    /// Position of the chunk's first row, where no queries are given.
    pub fn start(mut self, start: i64) -> Self {
        self.raw.start = start;
        self
    }

    /// K `[S, Hkv, D]` and V `[S, Hkv, Dv]` of the whole prompt.
    #[inline]
    pub fn kv(mut self, k: &'a Tensor<'_>, v: &'a Tensor<'_>) -> Self {
        (self.raw.k, self.raw.v) = (&k.raw, &v.raw);
        self
    }

    /// K and V lie in blocks.
    pub fn paging(mut self, paging: Paging<'a>) -> Self {
        self.paging = Some(paging);
        self
    }

    // The result points into `self`.
    pub(crate) fn prepare(&mut self) -> Result<&sys::rkv_prefill_args> {
        if let Some(paging) = &self.paging {
            paging.check(1)?;
            self.raw.paging = &paging.raw;
        }
        Ok(&self.raw)
    }
}

/// One call of stage 2, of attention, of both, or of an audit: the new rows of a batch in one layer.
#[derive(Debug)]
pub struct Step<'a> {
    raw: sys::rkv_decode_args,
    rows: usize,
    positions: usize,
    lse: usize,
    row_status: usize,
    selection: Option<Selection<'a>>,
    paging: Option<Paging<'a>>,
    data: PhantomData<&'a mut [u8]>,
}

impl<'a> Step<'a> {
    /// `seq[i]` is the sequence of row i, -1 = a padding row; `positions[i]` the true position of
    /// its token (RoPE's). `q` is `[rows, Hq, D]`.
    #[inline]
    pub fn new(layer: i32, seq: &'a [i32], positions: &'a [i64], q: &'a Tensor<'_>) -> Self {
        let mut step = Self::empty(layer, &q.raw);
        (step.rows, step.positions) = (seq.len(), positions.len());
        (step.raw.seq, step.raw.positions) = (seq.as_ptr(), positions.as_ptr());
        step
    }

    /// Ids and positions in memory of a device.
    ///
    /// # Safety
    /// Both arrays hold `rows` elements in memory of the cache's device, until the stream has passed
    /// the call.
    pub unsafe fn from_raw_parts(
        layer: i32,
        rows: i32,
        seq: *const i32,
        positions: *const i64,
        q: &'a Tensor<'_>,
    ) -> Self {
        let mut step = Self::empty(layer, &q.raw);
        // A negative number is as good as too many: the call refuses it.
        step.rows = usize::try_from(rows).unwrap_or(usize::MAX);
        step.positions = step.rows;
        (step.raw.seq, step.raw.positions) = (seq, positions);
        step
    }

    #[inline]
    fn empty(layer: i32, q: &'a sys::rkv_tensor) -> Self {
        let raw = sys::rkv_decode_args {
            struct_size: size_of::<sys::rkv_decode_args>() as u32,
            layer,
            rows: 0,
            attend_only: 0,
            seq: null(),
            positions: null(),
            q,
            k: null(),
            v: null(),
            paging: null(),
            selection: null(),
            out: null(),
            lse: null_mut(),
            row_status: null_mut(),
        };
        Self {
            raw,
            rows: 0,
            positions: 0,
            lse: usize::MAX,
            row_status: usize::MAX,
            selection: None,
            paging: None,
            data: PhantomData,
        }
    }

    /// K `[rows, Hkv, D]` and V `[rows, Hkv, Dv]` of the new tokens; with INDEXED storage the
    /// engine's own store, already written.
    #[inline]
    pub fn kv(mut self, k: &'a Tensor<'_>, v: &'a Tensor<'_>) -> Self {
        (self.raw.k, self.raw.v) = (&k.raw, &v.raw);
        self
    }

    /// Where the attention's output goes: `[rows, Hq, Dv]`, of q's type.
    #[inline]
    pub fn out(mut self, out: &'a mut TensorMut<'_>) -> Self {
        self.raw.out = &out.raw;
        self
    }

    /// Where the natural log-sum-exp of the logits goes: `[rows, Hq]`.
    #[inline]
    pub fn lse(mut self, lse: &'a mut [f32]) -> Self {
        (self.raw.lse, self.lse) = (lse.as_mut_ptr(), lse.len());
        self
    }

    /// Where the status of refused rows goes: `[rows]`; others stay as they are.
    pub fn row_status(mut self, row_status: &'a mut [i32]) -> Self {
        (self.raw.row_status, self.row_status) = (row_status.as_mut_ptr(), row_status.len());
        self
    }

    /// As [`Step::lse`] and [`Step::row_status`] in memory of a device; null = not wanted.
    ///
    /// # Safety
    /// Both are as large as those say, in memory of the cache's device, and nobody else uses them
    /// until the stream has passed the call.
    pub unsafe fn raw_outputs(mut self, lse: *mut f32, row_status: *mut i32) -> Self {
        (self.raw.lse, self.lse) = (lse, usize::MAX);
        (self.raw.row_status, self.row_status) = (row_status, usize::MAX);
        self
    }

    /// What is selected: written by [`Cache::decode_select`](crate::Cache::decode_select) and
    /// [`Cache::decode`](crate::Cache::decode), read by attention and audit.
    #[inline]
    pub fn selection(mut self, selection: Selection<'a>) -> Self {
        self.selection = Some(selection);
        self
    }

    /// K and V lie in blocks.
    pub fn paging(mut self, paging: Paging<'a>) -> Self {
        self.paging = Some(paging);
        self
    }

    /// A layer that shares the K and V of `layer`, after that one's call: nothing is appended.
    pub fn attend_only(mut self) -> Self {
        self.raw.attend_only = 1;
        self
    }

    // The library cannot see how long the slices are, so this side does. The result points into
    // `self`.
    #[inline]
    pub(crate) fn prepare(
        &mut self,
        q_heads: usize,
        kv_heads: usize,
    ) -> Result<&sys::rkv_decode_args> {
        let rows = self.rows;
        if self.positions != rows {
            let text = format!("positions: {} for {rows} rows of seq", self.positions);
            return Err(Error::invalid(text));
        }
        self.raw.rows = i32::try_from(rows).map_err(|_| Error::invalid(format!("{rows} rows")))?;
        if rows.checked_mul(q_heads).is_none_or(|need| need > self.lse) {
            return Err(Error::too_small(format!(
                "lse: {} for {rows} rows of {q_heads} heads",
                self.lse
            )));
        }
        if rows > self.row_status {
            return Err(Error::too_small(format!(
                "row_status: {} for {rows} rows",
                self.row_status
            )));
        }
        if let Some(selection) = &self.selection {
            selection.check(rows, kv_heads)?;
            self.raw.selection = &selection.raw;
        }
        if let Some(paging) = &self.paging {
            paging.check(rows)?;
            self.raw.paging = &paging.raw;
        }
        Ok(&self.raw)
    }
}

/// Which layer and heads of a sequence travel.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    raw: sys::rkv_transfer_args,
    paging: Option<Paging<'a>>,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Transfer<'a> {
    /// Heads are KV heads of the cache that is called.
    pub fn new(seq: i32, layer: i32, heads: Range<i32>) -> Self {
        let raw = sys::rkv_transfer_args {
            struct_size: size_of::<sys::rkv_transfer_args>() as u32,
            seq,
            layer,
            head_begin: heads.start,
            head_end: heads.end,
            reserved: 0,
            k: null(),
            v: null(),
            paging: null(),
        };
        Self { raw, paging: None, data: PhantomData }
    }

    /// The engine's store, with INDEXED storage.
    #[inline]
    pub fn kv(mut self, k: &'a Tensor<'_>, v: &'a Tensor<'_>) -> Self {
        (self.raw.k, self.raw.v) = (&k.raw, &v.raw);
        self
    }

    /// K and V lie in blocks.
    pub fn paging(mut self, paging: Paging<'a>) -> Self {
        self.paging = Some(paging);
        self
    }

    // The result points into `self`.
    pub(crate) fn prepare(&mut self) -> Result<&sys::rkv_transfer_args> {
        if let Some(paging) = &self.paging {
            paging.check(1)?;
            self.raw.paging = &paging.raw;
        }
        Ok(&self.raw)
    }
}
