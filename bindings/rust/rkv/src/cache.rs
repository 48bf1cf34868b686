use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{null, null_mut, NonNull};

use rkv_sys as sys;

use crate::args::{Prefill, Step, Transfer};
use crate::buffers::Buffers;
use crate::config::{Config, SequenceOptions};
use crate::error::{call, Error, Result};
use crate::reports::{AuditResult, Plan, SequenceStats};
use crate::selection::SelectionBuf;
use crate::types::{Device, Space};

/// The compressed K and V of up to `max_sequences` sequences in all layers.
///
/// Calls that change it take `&mut self`, so the compiler keeps them apart; those of `&self` may run
/// side by side. It can move to another thread. Dropping it frees what it made; memory that it was
/// given is free again then.
///
/// Two threads cannot decode in one cache:
///
/// ```compile_fail,E0499
/// let mut cache = rkv::Cache::new(&rkv::Config::default())?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| cache.open(0));
///     scope.spawn(|| cache.open(1));
/// });
/// # Ok::<(), rkv::Error>(())
/// ```
///
/// and nobody can use it after it was dropped, or drop it twice:
///
/// ```compile_fail,E0382
/// let mut cache = rkv::Cache::new(&rkv::Config::default())?;
/// drop(cache);
/// cache.open(0)?;
/// # Ok::<(), rkv::Error>(())
/// ```
#[derive(Debug)]
pub struct Cache<'m> {
    raw: NonNull<sys::rkv_cache>,
    stream: *mut c_void,
    q_heads: usize,
    kv_heads: usize,
    config: Config,
    memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: the library binds a cache to no thread.
unsafe impl Send for Cache<'_> {}
// SAFETY: `&self` is taken where the library takes a const cache: such calls may run side by side.
unsafe impl Sync for Cache<'_> {}

impl Cache<'static> {
    /// A cache on the CPU in memory of its own.
    pub fn new(config: &Config) -> Result<Self> {
        on_cpu(config)?;
        Self::create(config, null())
    }
}

impl<'m> Cache<'m> {
    /// A cache on the CPU in the caller's memory.
    pub fn with_buffers(config: &Config, buffers: Buffers<'m>) -> Result<Self> {
        on_cpu(config)?;
        Self::create(config, &buffers.raw)
    }

    /// A cache on any device, in the caller's memory or (`None`) its own.
    ///
    /// # Safety
    /// On a device calls return before the work is done. So every tensor, list of ids or positions,
    /// table and selection that a call of this cache is given must lie in memory of that device and
    /// stay as it is until the stream has passed the call; on the CPU nothing of this is asked.
    pub unsafe fn on_device(config: &Config, buffers: Option<Buffers<'m>>) -> Result<Self> {
        Self::create(config, buffers.as_ref().map_or(null(), |buffers| &buffers.raw))
    }

    fn create(config: &Config, buffers: *const sys::rkv_buffers) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: config and buffers outlive the call; the buffers' memory outlives 'm.
        call(|err| unsafe { sys::rkv_cache_create(&config.raw(), buffers, &mut raw, err) })?;
        Ok(Self {
            raw: NonNull::new(raw).expect("a created cache is not null"),
            stream: null_mut(),
            // The library has checked both: they are positive.
            q_heads: config.q_heads as usize,
            kv_heads: config.kv_heads as usize,
            config: *config,
            memory: PhantomData,
        })
    }

    /// What the cache was made for.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The `cudaStream_t` of all later calls; null = the default stream. Ignored on the CPU.
    ///
    /// # Safety
    /// It is a stream of the cache's device and lives until the last call that uses it.
    pub unsafe fn set_stream(&mut self, stream: *mut c_void) {
        self.stream = stream;
    }

    /// The C handle, for calls of `rkv_sys`; it stays this cache's.
    pub fn as_raw(&self) -> *mut sys::rkv_cache {
        self.raw.as_ptr()
    }

    /// Takes slot `seq` (0 to max_sequences - 1) for a new sequence of the config's sizes.
    /// `BadState` where it is open.
    pub fn open(&mut self, seq: i32) -> Result<()> {
        self.open_raw(seq, null())
    }

    /// As [`Cache::open`], with the sequence's own sizes.
    pub fn open_with(&mut self, seq: i32, options: &SequenceOptions) -> Result<()> {
        self.open_raw(seq, &options.raw())
    }

    fn open_raw(&mut self, seq: i32, options: *const sys::rkv_sequence_options) -> Result<()> {
        // SAFETY: the handle is alive, the options outlive the call.
        call(|err| unsafe { sys::rkv_sequence_open(self.as_raw(), seq, options, err) })
    }

    /// Gives the slot back; its rows are gone. `BadState` where it is not open.
    pub fn close(&mut self, seq: i32) -> Result<()> {
        // SAFETY: the handle is alive.
        call(|err| unsafe { sys::rkv_sequence_close(self.as_raw(), seq, self.stream, err) })
    }

    /// Drops all rows at `position` and after, in every layer. Not before the prompt's end, not
    /// beyond the length.
    pub fn rewind(&mut self, seq: i32, position: i64) -> Result<()> {
        let (cache, stream) = (self.as_raw(), self.stream);
        // SAFETY: the handle is alive.
        call(|err| unsafe { sys::rkv_sequence_rewind(cache, seq, position, stream, err) })
    }

    /// Makes the closed slot `copy` a copy of `seq`.
    pub fn fork(&mut self, seq: i32, copy: i32) -> Result<()> {
        // SAFETY: the handle is alive.
        call(|err| unsafe { sys::rkv_sequence_fork(self.as_raw(), seq, copy, self.stream, err) })
    }

    /// Bytes that [`Cache::export`] writes.
    pub fn export_size(&mut self, mut transfer: Transfer<'_>) -> Result<usize> {
        self.export_raw(transfer.prepare()?, null_mut(), 0)
    }

    /// Writes one layer's heads as bytes for another cache; returns how many.
    pub fn export(&mut self, mut transfer: Transfer<'_>, out: &mut [u8]) -> Result<usize> {
        self.export_raw(transfer.prepare()?, out.as_mut_ptr().cast(), out.len() as i64)
    }

    fn export_raw(
        &mut self,
        args: *const sys::rkv_transfer_args,
        out: *mut c_void,
        capacity: i64,
    ) -> Result<usize> {
        let (cache, stream, mut bytes) = (self.as_raw(), self.stream, 0);
        // SAFETY: the handle is alive, all arguments outlive the call, out has that capacity.
        call(|err| unsafe {
            sys::rkv_sequence_export(cache, args, out, capacity, &mut bytes, stream, err)
        })?;
        Ok(bytes as usize)
    }

    /// Takes such bytes into an open slot that has not been prefilled.
    pub fn import(&mut self, mut transfer: Transfer<'_>, bytes: &[u8]) -> Result<()> {
        let (cache, stream, args) = (self.as_raw(), self.stream, transfer.prepare()?);
        let (data, length) = (bytes.as_ptr().cast(), bytes.len() as i64);
        // SAFETY: the handle is alive, all arguments outlive the call.
        call(|err| unsafe { sys::rkv_sequence_import(cache, args, data, length, stream, err) })
    }

    /// Stage 1 of one layer of one sequence: keeps `prompt_budget` tokens per KV head and summarises
    /// their pages. Layers in any order.
    ///
    /// A prompt may come in chunks. Only the last W rows of q matter, so earlier chunks may be left
    /// out; the chunk that ends the prompt comes last and carries K and V of all of it. Any chunking
    /// gives the same bits.
    pub fn prefill(&mut self, mut prefill: Prefill<'_>) -> Result<()> {
        let (cache, stream, args) = (self.as_raw(), self.stream, prefill.prepare()?);
        // SAFETY: the handle is alive, all arguments outlive the call, and tensors were checked.
        call(|err| unsafe { sys::rkv_prefill(cache, args, stream, err) })
    }

    /// Stage 2: appends the rows' K and V, then writes per row and KV head which live rows to attend
    /// to. Needs kv and selection.
    ///
    /// A row at the layer's length appends; at a lower position, not before the prompt's end, it
    /// first drops all rows from there on. Rows of one sequence are adjacent with consecutive
    /// positions.
    #[inline]
    pub fn decode_select(&mut self, step: Step<'_>) -> Result<()> {
        self.step(step, sys::rkv_decode_select)
    }

    /// Exact attention of each row over its selection, without one over all live rows up to its
    /// position. Never appends: the rows are stored already. Needs out.
    #[inline]
    pub fn attend(&mut self, step: Step<'_>) -> Result<()> {
        self.step(step, sys::rkv_attend)
    }

    /// [`Cache::decode_select`] and [`Cache::attend`] in one: the fast path, the same bits. Needs kv
    /// and out; fills a selection where one is given.
    #[inline]
    pub fn decode(&mut self, step: Step<'_>) -> Result<()> {
        self.step(step, sys::rkv_decode)
    }

    #[inline]
    fn step(&mut self, mut step: Step<'_>, function: StepFunction) -> Result<()> {
        let args = step.prepare(self.q_heads, self.kv_heads)?;
        // SAFETY: the handle is alive, all arguments outlive the call, and every slice is as long
        // as the rows need.
        call(|err| unsafe { function(self.as_raw(), args, self.stream, err) })
    }

    /// What the selection misses, for rows that are stored already: selects (or takes the step's
    /// selection) and compares with attention over all live rows. Appends nothing.
    pub fn audit(&mut self, mut step: Step<'_>) -> Result<AuditResult> {
        let args = step.prepare(self.q_heads, self.kv_heads)?;
        let mut result = AuditResult::empty();
        // SAFETY: as in `step`.
        call(|err| unsafe { sys::rkv_audit(self.as_raw(), args, &mut result, self.stream, err) })?;
        Ok(AuditResult::from(&result))
    }

    /// A selection of live rows that is large enough for so many rows of this cache.
    pub fn selection(&self, rows: usize) -> Result<SelectionBuf> {
        let capacity = self.config.memory()?.selection_capacity as usize;
        SelectionBuf::new(Space::LIVE_ROW, rows, self.kv_heads, capacity)
    }

    /// Counters of one layer of one sequence, and its plan. On CUDA it waits for the stream: not for
    /// the hot path.
    pub fn stats(&self, seq: i32, layer: i32) -> Result<SequenceStats> {
        let (mut stats, mut plan) = (SequenceStats::empty(), Plan::empty());
        stats.plan = &mut plan;
        let (cache, stream) = (self.as_raw(), self.stream);
        // SAFETY: the handle is alive, stats and plan outlive the call.
        call(|err| unsafe { sys::rkv_stats(cache, seq, layer, stream, &mut stats, err) })?;
        Ok(SequenceStats::new(&stats, &plan))
    }

    /// The original positions of all live rows, ascending: one list per KV head, all of one length.
    pub fn kept_positions(&self, seq: i32, layer: i32) -> Result<Vec<Vec<i64>>> {
        let mut count = 0;
        self.kept_raw(seq, layer, null_mut(), 0, &mut count)?;
        let count = count as usize;
        let mut all = vec![0; self.kv_heads * count];
        self.kept_positions_into(seq, layer, &mut all)?;
        Ok((0..self.kv_heads).map(|head| all[head * count..(head + 1) * count].to_vec()).collect())
    }

    /// As [`Cache::kept_positions`] into `[Hkv][count]`; returns the count per KV head.
    pub fn kept_positions_into(&self, seq: i32, layer: i32, out: &mut [i64]) -> Result<usize> {
        let mut count = 0;
        self.kept_raw(seq, layer, out.as_mut_ptr(), out.len() as i64, &mut count)?;
        Ok(count as usize)
    }

    fn kept_raw(
        &self,
        seq: i32,
        layer: i32,
        out: *mut i64,
        capacity: i64,
        count: &mut i64,
    ) -> Result<()> {
        let (cache, stream) = (self.as_raw(), self.stream);
        // SAFETY: the handle is alive, out holds that many elements.
        call(|err| unsafe {
            sys::rkv_kept_positions(cache, seq, layer, stream, out, capacity, count, err)
        })
    }
}

type StepFunction = unsafe extern "C" fn(
    *mut sys::rkv_cache,
    *const sys::rkv_decode_args,
    *mut c_void,
    *mut sys::rkv_error,
) -> sys::rkv_status;

fn on_cpu(config: &Config) -> Result<()> {
    if config.device_type == Device::CPU {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "config.device_type is {:?}: calls of a device return early, so its cache is made by the \
         unsafe Cache::on_device",
        config.device_type
    )))
}

impl Drop for Cache<'_> {
    fn drop(&mut self) {
        // SAFETY: made by create, destroyed once; `&mut self` says that no call is running.
        unsafe { sys::rkv_cache_destroy(self.as_raw()) }
    }
}
