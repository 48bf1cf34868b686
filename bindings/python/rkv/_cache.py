"""The cache: sequences in, attention out. Every check of a value is the C library's."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, Self, Unpack, overload

import numpy as np
import numpy.typing as npt

from ._arrays import AnyArray, Array, Ids, as_ids, axis_length, empty_like
from ._errors import BadStateError, InvalidArgumentError
from ._library import read_memory, read_plan
from ._options import CacheOptions, SequenceOptions, make_config, make_sequence_options
from ._records import (
    AuditResult,
    Buffers,
    Memory,
    Paging,
    Selection,
    SequenceStats,
    Space,
    paging_view,
    selection_view,
)
from ._swig import native


class Cache:
    """The compressed K and V of up to `max_sequences` sequences in all layers.

    Options are those of `CacheOptions`. Without `buffers` the library allocates; with them the
    cache lives in the caller's memory. Close it, or use it in a `with` statement.

    One call at a time: a call that meets another one of the same cache raises BadStateError.
    `close` waits for the call of another thread; a call after it raises BadStateError.

    Shapes below: n rows, S prompt tokens, Hq query heads, Hkv KV heads, D = head_dim,
    Dv = head_dim_v. `stream` is a CUDA stream as an integer; on the CPU it is ignored.
    """

    def __init__(self, *, buffers: Buffers | None = None, **options: Unpack[CacheOptions]) -> None:
        self._handle = native.CacheHandle()
        self._buffers = buffers
        config = make_config(options)
        memory = native.rkv_memory()
        native.rkv_cache_memory(config, memory)
        self.memory: Memory = read_memory(memory)
        self.q_heads: int = config.q_heads
        self.kv_heads: int = config.kv_heads
        self.head_dim: int = config.head_dim
        self.head_dim_v: int = config.head_dim_v or config.head_dim
        if buffers is not None and not isinstance(buffers, Buffers):
            raise TypeError(f"buffers: {type(buffers)!r}, need rkv.Buffers")
        if buffers is None:
            self._handle.create(config, None, None)
        else:
            self._handle.create(config, buffers.storage_view, buffers.workspace_view)

    # ---- life -------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees the cache; again is nothing. Waits for a call of another thread to end."""
        self._handle.close()
        self._buffers = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._handle.closed()

    def __enter__(self) -> Self:
        if self.closed:
            raise BadStateError("the cache is closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):  # not where __init__ refused its arguments
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Cache cannot be copied or pickled")

    # ---- sequences --------------------------------------------------------------------------

    def open(self, seq: int, **options: Unpack[SequenceOptions]) -> None:
        """Opens slot `seq` (0 to max_sequences - 1); what is left out, or 0, is the cache's own.

        Give `token_budget` or `compression_ratio`, not both.
        """
        self._handle.open_sequence(seq, make_sequence_options(options))

    def close_sequence(self, seq: int, *, stream: int = 0) -> None:
        """Forgets the sequence and frees its slot."""
        self._handle.close_sequence(seq, stream)

    def rewind(self, seq: int, position: int, *, stream: int = 0) -> None:
        """Drops every row from `position` on, in all layers; not before the prompt's end."""
        self._handle.rewind(seq, position, stream)

    def fork(self, seq: int, copy: int, *, stream: int = 0) -> None:
        """Copies the sequence into the closed slot `copy`."""
        self._handle.fork(seq, copy, stream)

    def export(
        self,
        seq: int,
        layer: int,
        *,
        head_begin: int = 0,
        head_end: int | None = None,
        k: Array | None = None,
        v: Array | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> bytearray:
        """Kept K, V and positions of one layer and some of its heads (all by default) as bytes."""
        end = self.kv_heads if head_end is None else head_end
        view = paging_view(paging)
        handle = self._handle
        size = handle.export_heads(seq, layer, head_begin, end, k, v, view, None, stream)
        data = bytearray(size)
        handle.export_heads(seq, layer, head_begin, end, k, v, view, data, stream)
        return data

    def import_(
        self,
        seq: int,
        layer: int,
        data: Array,
        *,
        head_begin: int = 0,
        head_end: int | None = None,
        k: Array | None = None,
        v: Array | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> None:
        """Takes what `export` gave into an open, unprefilled slot; the heads are this cache's."""
        end = self.kv_heads if head_end is None else head_end
        view = paging_view(paging)
        self._handle.import_heads(seq, layer, head_begin, end, k, v, view, data, stream)

    # ---- the two stages ---------------------------------------------------------------------

    def prefill(
        self,
        seq: int,
        layer: int,
        q: Array | None,
        k: Array | None,
        v: Array | None,
        *,
        start: int = 0,
        prompt_tokens: int | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> None:
        """Stage 1 of one layer: keeps what the plan has room for.

        q [n, Hq, D] are the query rows of this call, from position `start` on; k [S, Hkv, D] and
        v [S, Hkv, Dv] are the whole prompt. S is prompt_tokens, or left out the rows of k, and
        the same in every call: a prompt in chunks has to give it. The call with start + n = S
        comes last and alone needs k and v; calls before it may be left out, but the window of
        stage 1 is the unbroken run of rows that ends at S.
        """
        if prompt_tokens is None:
            if k is None or paging is not None:
                raise InvalidArgumentError("prompt_tokens: needed without k and with paging")
            prompt_tokens = axis_length("k", k)
        view = paging_view(paging)
        self._handle.prefill(seq, layer, start, prompt_tokens, q, k, v, view, stream)

    def decode_select(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        k: Array | None,
        v: Array | None,
        *,
        selection: Selection | None = None,
        attend_only: bool = False,
        row_status: Array | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> Selection:
        """Appends the rows and selects for each what it attends to; returns the selection.

        As `decode`, which does this and `attend` in one. Without `selection` a new one is made.
        """
        seq = as_ids("seq", seq, "i")
        if selection is None:
            selection = self.new_selection(axis_length("seq", seq))
        self._handle.decode_select(
            layer,
            attend_only,
            seq,
            as_ids("positions", positions, "q"),
            q,
            k,
            v,
            None,
            None,
            row_status,
            selection_view(selection),
            paging_view(paging),
            stream,
        )
        return selection

    @overload
    def attend(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        *,
        selection: Selection | None = ...,
        k: Array | None = ...,
        v: Array | None = ...,
        out: AnyArray,
        lse: Array | None = ...,
        row_status: Array | None = ...,
        paging: Paging | None = ...,
        stream: int = ...,
    ) -> AnyArray: ...

    @overload
    def attend(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: AnyArray,
        *,
        selection: Selection | None = ...,
        k: Array | None = ...,
        v: Array | None = ...,
        out: None = ...,
        lse: Array | None = ...,
        row_status: Array | None = ...,
        paging: Paging | None = ...,
        stream: int = ...,
    ) -> AnyArray: ...

    def attend(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        *,
        selection: Selection | None = None,
        k: Array | None = None,
        v: Array | None = None,
        out: Array | None = None,
        lse: Array | None = None,
        row_status: Array | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> Array:
        """Exact attention over a selection, without one over all live rows; appends nothing.

        k and v are the engine's store where the cache is INDEXED. Arguments and result are as for
        `decode`.
        """
        seq = as_ids("seq", seq, "i")
        if out is None:
            out = self._new_out(q, seq)
        self._handle.attend(
            layer,
            False,
            seq,
            as_ids("positions", positions, "q"),
            q,
            k,
            v,
            out,
            lse,
            row_status,
            selection_view(selection),
            paging_view(paging),
            stream,
        )
        return out

    @overload
    def decode(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        k: Array | None,
        v: Array | None,
        *,
        out: AnyArray,
        lse: Array | None = ...,
        selection: Selection | None = ...,
        attend_only: bool = ...,
        row_status: Array | None = ...,
        paging: Paging | None = ...,
        stream: int = ...,
    ) -> AnyArray: ...

    @overload
    def decode(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: AnyArray,
        k: Array | None,
        v: Array | None,
        *,
        out: None = ...,
        lse: Array | None = ...,
        selection: Selection | None = ...,
        attend_only: bool = ...,
        row_status: Array | None = ...,
        paging: Paging | None = ...,
        stream: int = ...,
    ) -> AnyArray: ...

    def decode(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        k: Array | None,
        v: Array | None,
        *,
        out: Array | None = None,
        lse: Array | None = None,
        selection: Selection | None = None,
        attend_only: bool = False,
        row_status: Array | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> Array:
        """Appends the new rows, selects and attends: the fast path of a decode step.

        `seq` int32 [rows] are slots (-1: a padding row), `positions` int64 [rows] the true
        positions; lists will do. q [rows, Hq, D]; k [rows, Hkv, D] and v [rows, Hkv, Dv] are the
        new rows (INDEXED: the engine's store, already written). Returns `out` [rows, Hq, Dv], by
        default a new array of q's kind. `lse` float32 [rows, Hq] receives the natural log-sum-exp,
        `selection` what was selected, `row_status` int32 [rows] why a row was refused (CUDA).
        `attend_only` is for a layer that shares the K and V of `layer`: nothing is appended.
        """
        seq = as_ids("seq", seq, "i")
        if out is None:
            out = self._new_out(q, seq)
        self._handle.decode(
            layer,
            attend_only,
            seq,
            as_ids("positions", positions, "q"),
            q,
            k,
            v,
            out,
            lse,
            row_status,
            selection_view(selection),
            paging_view(paging),
            stream,
        )
        return out

    def new_selection(self, rows: int, space: Space = "live_row") -> Selection:
        """A selection of numpy arrays that is large enough for any row of this cache."""
        if self.closed:
            raise BadStateError("the cache is closed")
        if rows < 0:
            raise InvalidArgumentError(f"rows: {rows}, need at least 0")
        shape = (rows, self.kv_heads, self.memory.selection_capacity)
        return Selection(np.empty(shape, np.int32), np.empty(shape[:2], np.int32), space)

    def _new_out(self, q: Array, seq: Array) -> Array:
        out: Array = empty_like(q, (axis_length("seq", seq), self.q_heads, self.head_dim_v))
        return out

    # ---- reports ----------------------------------------------------------------------------

    def stats(self, seq: int, layer: int, *, stream: int = 0) -> SequenceStats:
        """State of one layer of a sequence. On CUDA it waits: not for the hot path."""
        plan = native.rkv_plan()
        s = native.rkv_sequence_stats()
        self._handle.stats(seq, layer, stream, plan, s)
        return SequenceStats(
            turn=s.turn,
            prompt=s.prompt,
            position=s.position,
            max_position=s.max_position,
            kept=s.kept,
            generated=s.generated,
            pages=s.pages,
            window_rows=s.window_rows,
            fault=s.fault,
            nonfinite=bool(s.nonfinite),
            saturated=bool(s.saturated),
            k_bytes=s.k_bytes,
            v_bytes=s.v_bytes,
            summary_bytes=s.summary_bytes,
            index_bytes=s.index_bytes,
            full_kv_bytes=s.full_kv_bytes,
            bytes_read_per_step=s.bytes_read_per_step,
            plan=read_plan(plan),
        )

    def kept_positions(self, seq: int, layer: int, *, stream: int = 0) -> npt.NDArray[np.int64]:
        """True positions of all live rows, int64 [Hkv, n], ascending."""
        count = self._handle.kept_positions(seq, layer, stream, None)
        positions = np.empty((self.kv_heads, count), np.int64)
        if self._handle.kept_positions(seq, layer, stream, positions) != count:
            raise BadStateError(f"seq: length of {seq} changed during the call")
        return positions

    def audit(
        self,
        layer: int,
        seq: Ids,
        positions: Ids,
        q: Array,
        *,
        k: Array | None = None,
        v: Array | None = None,
        selection: Selection | None = None,
        paging: Paging | None = None,
        stream: int = 0,
    ) -> AuditResult:
        """Share of the attention mass that the selections of these rows catch; appends nothing."""
        result = native.rkv_audit_result()
        self._handle.audit(
            layer,
            False,
            as_ids("seq", seq, "i"),
            as_ids("positions", positions, "q"),
            q,
            k,
            v,
            None,
            None,
            None,
            selection_view(selection),
            paging_view(paging),
            stream,
            result,
        )
        return AuditResult(
            rows=result.rows,
            mass_mean=result.mass_mean,
            mass_min=result.mass_min,
            prompt_mass_mean=result.prompt_mass_mean,
            error_mean=result.error_mean,
            error_max=result.error_max,
        )
