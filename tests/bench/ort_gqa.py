"""Dense decode of librkv and onnxruntime's GroupQueryAttention, interleaved in this process.

One new token of one layer of Llama-3.1-8B (32 query heads, 8 KV heads, D 128) over S tokens; the same
K and V, the same number of threads, the caches emptied before each sample. onnxruntime gets its K and V
in the buffer that past and present share, so that it copies nothing but the new token.
"""

import argparse
import ctypes
import math
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

QUERY_HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
RKV_DTYPES = {"f32": 1, "f16": 2}
NUMPY_DTYPES = {"f32": np.float32, "f16": np.float16}
ONNX_DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}
# Seconds of one look whether onnxruntime's threads still spin, and the most looks.
LOOK, LOOKS = 0.01, 200


def model(dtype: str) -> bytes:
    kind = ONNX_DTYPES[dtype]
    cache = [1, KV_HEADS, "S", HEAD_DIM]
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "past_k", "past_v", "last", "total"],
        ["out", "present_k", "present_v"],
        domain="com.microsoft",
        num_heads=QUERY_HEADS,
        kv_num_heads=KV_HEADS,
        scale=1.0 / math.sqrt(HEAD_DIM),
    )
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "decode",
        [
            value("q", kind, [1, 1, QUERY_HEADS * HEAD_DIM]),
            value("k", kind, [1, 1, KV_HEADS * HEAD_DIM]),
            value("v", kind, [1, 1, KV_HEADS * HEAD_DIM]),
            value("past_k", kind, cache),
            value("past_v", kind, cache),
            value("last", TensorProto.INT32, [1]),
            value("total", TensorProto.INT32, [1]),
        ],
        [
            value("out", kind, [1, 1, QUERY_HEADS * HEAD_DIM]),
            value("present_k", kind, cache),
            value("present_v", kind, cache),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets)
    proto.ir_version = 9
    onnx.checker.check_model(proto)
    return proto.SerializeToString()


class GroupQueryAttention:
    """One decode step over `k` and `v` [1, KV_HEADS, S, HEAD_DIM], whose last row is the new token's."""

    def __init__(self, dtype: str, threads: int, q: Any, k: Any, v: Any) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(
            model(dtype), options, providers=["CPUExecutionProvider"]
        )
        tokens = k.shape[2]
        wrap = ort.OrtValue.ortvalue_from_numpy
        self.k, self.v = wrap(k), wrap(v)
        self.inputs = {
            "q": wrap(q.reshape(1, 1, -1)),
            "k": wrap(np.ascontiguousarray(k[:, :, -1]).reshape(1, 1, -1)),
            "v": wrap(np.ascontiguousarray(v[:, :, -1]).reshape(1, 1, -1)),
            "last": wrap(np.array([tokens - 1], np.int32)),
            "total": wrap(np.array([tokens], np.int32)),
        }
        self.out = wrap(np.zeros((1, 1, QUERY_HEADS * HEAD_DIM), NUMPY_DTYPES[dtype]))
        self.binding = self.session.io_binding()
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        for name, value in (("k", self.k), ("v", self.v)):
            self.binding.bind_ortvalue_input(f"past_{name}", value)
            self.binding.bind_ortvalue_output(f"present_{name}", value)
        self.binding.bind_ortvalue_output("out", self.out)

    def run(self) -> float:
        start = time.perf_counter()
        self.session.run_with_iobinding(self.binding)
        return time.perf_counter() - start

    def output(self) -> Any:
        return self.out.numpy().reshape(QUERY_HEADS, HEAD_DIM)


class Dense:
    """librkv's dense decode over the same K and V."""

    def __init__(
        self, library: ctypes.CDLL, dtype: str, threads: int, evict_bytes: int, q: Any, k: Any, v: Any
    ) -> None:
        self.library = library
        self.out = np.zeros((QUERY_HEADS, HEAD_DIM), NUMPY_DTYPES[dtype])
        self.handle = ctypes.c_void_p(
            library.rkv_bench_dense_open(
                RKV_DTYPES[dtype],
                ctypes.c_int64(k.shape[2]),
                threads,
                ctypes.c_int64(evict_bytes),
                *(ctypes.c_void_p(array.ctypes.data) for array in (q, k, v)),
            )
        )

    def evict(self) -> None:
        self.library.rkv_bench_evict(self.handle)

    def run(self) -> float:
        out = ctypes.c_void_p(self.out.ctypes.data)
        return float(self.library.rkv_bench_dense_run(self.handle, out))

    def stream(self) -> float:
        return float(self.library.rkv_bench_stream_run(self.handle))

    def close(self) -> None:
        self.library.rkv_bench_dense_close(self.handle)


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.rkv_bench_dense_open.restype = ctypes.c_void_p
    library.rkv_bench_dense_run.restype = ctypes.c_double
    library.rkv_bench_stream_run.restype = ctypes.c_double
    return library


def wait_until_idle() -> None:
    """Until no thread of this process runs: spinning, they would hold a core all through a sample."""
    for _ in range(LOOKS):
        before = time.process_time()
        time.sleep(LOOK)
        if time.process_time() - before < 0.1 * LOOK:
            return


def measure(library: ctypes.CDLL, dtype: str, tokens: int, args: argparse.Namespace) -> str:
    random = np.random.default_rng(tokens)

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape, np.float32).astype(NUMPY_DTYPES[dtype], copy=False)

    q = normal(QUERY_HEADS, HEAD_DIM)
    k = normal(1, KV_HEADS, tokens, HEAD_DIM)
    v = normal(1, KV_HEADS, tokens, HEAD_DIM)
    ours = Dense(library, dtype, args.threads, args.evict << 20, q, k, v)
    theirs = GroupQueryAttention(dtype, args.threads, q, k, v)
    sides = {"ours": ours.run, "theirs": theirs.run, "stream": ours.stream}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(args.rounds + 1):
        for name, run in sides.items():
            ours.evict()
            taken = run()
            if round_ > 0:  # the first round is thrown away
                times[name].append(taken)
            if name == "theirs":
                wait_until_idle()
    a, b = ours.out.astype(np.float64), theirs.output().astype(np.float64)
    apart = np.linalg.norm(a - b) / np.linalg.norm(a)
    ours.close()
    median = {name: statistics.median(values) for name, values in times.items()}
    bandwidth = 2 * k.nbytes / median["stream"]
    return (
        f"{dtype} {tokens} {median['ours']:.9f} {median['theirs']:.9f} {bandwidth:.6g} {apart:.6g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--evict", type=int, default=0, help="MB read before each sample")
    parser.add_argument("--quick", action="store_true", help="up to 32K tokens")
    args = parser.parse_args()
    args.evict = args.evict or 64 * args.threads
    library = load(args.library)
    lines = []
    for dtype in ("f32", "f16"):
        for tokens in (8192, 32768, 131072):
            if args.quick and tokens > 32768:
                continue
            lines.append(measure(library, dtype, tokens, args))
            print(lines[-1], flush=True)
    args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
