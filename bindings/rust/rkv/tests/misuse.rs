//! Wrong use: an error of the right kind, never a crash. What the compiler refuses (use after close,
//! a tensor or buffer that is gone) are the crate's compile-fail examples.
mod support;

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rkv::{
    AlignedBytes, Buffers, Cache, Config, DType, Error, Paging, Prefill, Result, Selection,
    SelectionBuf, Space, Step, Tensor, TensorMut,
};
use support::*;

fn is_invalid<T: std::fmt::Debug>(result: Result<T>, word: &str) {
    match result {
        Err(Error::InvalidArgument(detail)) => {
            assert!(detail.text.contains(word), "{} lacks {word}", detail.text);
        }
        other => panic!("{other:?}"),
    }
}

fn is_too_small<T: std::fmt::Debug>(result: Result<T>, word: &str) {
    match result {
        Err(Error::BufferTooSmall(detail)) => {
            assert!(detail.text.contains(word), "{} lacks {word}", detail.text);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sequences_in_the_wrong_state() -> Result<()> {
    let text = Text::new(20);
    let mut cache = Cache::new(&config(64))?;
    assert!(matches!(cache.close(0), Err(Error::BadState(_))));
    cache.open(0)?;
    assert!(matches!(cache.open(0), Err(Error::BadState(_))));
    assert!(matches!(text.decode(&mut cache, 0, 0, S), Err(Error::BadState(_))));
    text.prefill(&mut cache, 0, 0)?;
    assert!(matches!(text.prefill(&mut cache, 0, 0), Err(Error::BadState(_))));
    is_invalid(cache.rewind(0, S as i64 - 1), "position");
    is_invalid(cache.open(7), "seq");
    is_invalid(cache.stats(0, 2), "layer");
    cache.close(0)?;
    assert!(matches!(cache.stats(0, 0), Err(Error::BadState(_))));
    Ok(())
}

#[test]
fn wrong_dtype_and_shape() -> Result<()> {
    let text = Text::new(21);
    let mut cache = prefilled(&config(64), &text)?;
    let [q, k, v] = text.rows(S, 1)?;
    let bits = vec![0u16; HKV * D];
    let half = Tensor::from_bits(DType::F16, &bits, 0, [1, HKV, D], [0, D as isize, 1])?;
    let mut out = vec![0f32; HQ * D];
    let mut to = TensorMut::new(&mut out, [1, HQ, D])?;
    let at = [S as i64];
    let step = Step::new(0, &[0], &at, &q).kv(&half, &v).out(&mut to);
    is_invalid(cache.decode(step), "args.k");
    is_invalid(cache.decode(Step::new(0, &[0], &at, &k).kv(&k, &v).out(&mut to)), "args.q");
    is_invalid(cache.decode(Step::new(0, &[0], &at, &q).out(&mut to)), "args.k");
    is_invalid(cache.decode(Step::new(0, &[0], &at, &q).kv(&k, &v)), "args.out");
    is_invalid(cache.decode(Step::new(9, &[0], &at, &q).kv(&k, &v).out(&mut to)), "layer");
    let last = Prefill::new(0, 1, S as i64).q(S as i64 - 1, &q);
    is_invalid(cache.prefill(last.kv(&k, &v)), "args.k");
    // A view of bytes at an odd address.
    let bytes = vec![0u8; 4 * HQ * D + 1];
    let odd = &bytes[1 - bytes.as_ptr() as usize % 2..];
    let odd = Tensor::from_bits(DType::F32, odd, 0, [1, HQ, D], [0, D as isize, 1])?;
    is_invalid(cache.decode(Step::new(0, &[0], &at, &odd).kv(&k, &v).out(&mut to)), "aligned");
    assert_eq!(cache.stats(0, 0)?.position, S as i64);
    Ok(())
}

#[test]
fn views_stay_inside_their_slice() {
    let mut data = vec![0f32; 24];
    assert!(Tensor::new(&data, [2, 3, 4]).is_ok());
    is_invalid(Tensor::new(&data, [3, 3, 4]), "the slice has 24");
    is_invalid(Tensor::strided(&data, 1, [2, 3, 4], [12, 4, 1]), "24");
    is_invalid(Tensor::strided(&data, 0, [2, 3, 4], [12, -4, 1]), "-8");
    assert!(Tensor::strided(&data, 8, [2, 3, 4], [12, -4, 1]).is_ok());
    assert!(Tensor::strided(&data, 23, [1], [isize::MIN]).is_ok());
    is_invalid(Tensor::strided(&data, 24, [1], [1]), "24");
    assert!(Tensor::strided(&data, 24, [0, 9], [isize::MAX, isize::MAX]).is_ok());
    is_invalid(Tensor::strided(&data, 25, [0], [1]), "24");
    is_invalid(Tensor::strided(&data, 0, [usize::MAX, 2], [1, 1]), "the slice has 24");
    is_invalid(Tensor::strided(&data, 0, [1 << 62, 3], [4, 1 << 62]), "64 bits");
    is_invalid(Tensor::strided(&data, usize::MAX, [1], [1]), "slice");
    is_invalid(Tensor::new(&data, [usize::MAX, usize::MAX, usize::MAX]), "large");
    is_invalid(Tensor::new(&data, [1, 1, 1, 1, 1, 1, 24]), "at most 6");
    is_invalid(Tensor::from_bits(DType(99), &[0u8; 8], 0, [1], [1]), "from_raw_parts");
    is_invalid(Tensor::from_bits(DType::F32, &[0u8; 7], 0, [2], [1]), "the slice has 1");
    is_invalid(Tensor::new(&data, [24]).and_then(|t| t.scaled(&[1.0], [1])), "slice has 1");
    is_invalid(TensorMut::strided(&mut data, 0, [2, 3, 4], [0, 4, 1]), "overlap");
    is_invalid(TensorMut::strided(&mut data, 0, [2, 3, 4], [4, 4, 1]), "overlap");
    assert!(TensorMut::strided(&mut data, 0, [2, 3, 4], [12, 1, 3]).is_ok());
}

#[test]
fn short_slices_beside_the_tensors() -> Result<()> {
    let text = Text::new(22);
    let mut cache = prefilled(&config(64), &text)?;
    let [q, k, v] = text.rows(S, 1)?;
    let mut out = vec![0f32; HQ * D];
    let mut to = TensorMut::new(&mut out, [1, HQ, D])?;
    let at = [S as i64];
    let mut short = vec![0f32; HQ - 1];
    let step = Step::new(0, &[0], &at, &q).kv(&k, &v).out(&mut to).lse(&mut short);
    is_too_small(cache.decode(step), "lse");
    let step = Step::new(0, &[0], &at, &q).kv(&k, &v).out(&mut to).row_status(&mut []);
    is_too_small(cache.decode(step), "row_status");
    is_invalid(cache.decode(Step::new(0, &[0], &[], &q).kv(&k, &v).out(&mut to)), "positions");

    let capacity = config(64).memory()?.selection_capacity;
    let (mut indices, mut counts) = (vec![0; HKV * capacity as usize], [0; HKV]);
    let short = Selection::new(Space::LIVE_ROW, &mut indices[1..], &mut counts, capacity);
    let step = Step::new(0, &[0], &at, &q).kv(&k, &v).selection(short);
    is_too_small(cache.decode_select(step), "indices");
    let short = Selection::new(Space::LIVE_ROW, &mut indices, &mut counts[1..], capacity);
    let step = Step::new(0, &[0], &at, &q).kv(&k, &v).selection(short);
    is_too_small(cache.decode_select(step), "counts");
    for capacity in [0, capacity - 1, -1, i64::MIN] {
        let small = Selection::new(Space::LIVE_ROW, &mut indices, &mut counts, capacity);
        let step = Step::new(0, &[0], &at, &q).kv(&k, &v).selection(small);
        is_too_small(cache.decode_select(step), "capacity");
    }
    // Lists that no library wrote.
    indices.fill(i32::MAX);
    counts.fill(3);
    let wild = Selection::new(Space::LIVE_ROW, &mut indices, &mut counts, capacity);
    text.decode(&mut cache, 0, 0, S)?;
    let step = Step::new(0, &[0], &at, &q).out(&mut to).selection(wild);
    is_invalid(cache.attend(step), "selection.indices");

    let table = [0; 3];
    let paging = Paging::new(16, 4, 4, &table);
    let step = Step::new(0, &[0], &at, &q).kv(&k, &v).out(&mut to).paging(paging);
    is_too_small(cache.decode(step), "block_table");
    is_too_small(cache.prefill(Prefill::new(0, 1, 64).paging(paging)), "block_table");
    Ok(())
}

#[test]
fn empty_batch_and_absurd_sizes() -> Result<()> {
    let text = Text::new(23);
    let mut cache = prefilled(&config(64), &text)?;
    let [q, k, v] = text.rows(S, 0)?;
    let mut to = TensorMut::new::<f32, 3>(&mut [], [0, HQ, D])?;
    cache.decode(Step::new(0, &[], &[], &q).kv(&k, &v).out(&mut to))?;
    assert_eq!(cache.stats(0, 0)?.position, S as i64);

    for change in [
        Config { layers: i32::MAX, ..config(64) },
        Config { q_heads: i32::MIN, ..config(64) },
        Config { kv_heads: 0, ..config(64) },
        Config { head_dim: i32::MAX - 7, ..config(64) },
        Config { max_prompt_tokens: i64::MAX, ..config(64) },
        Config { max_new_tokens: i64::MIN, ..config(64) },
        Config { compression_ratio: f64::NAN, ..config(0) },
        Config { num_threads: -1, ..config(64) },
        Config { kv_dtype: DType(1 << 30), ..config(64) },
    ] {
        assert!(change.memory().is_err(), "{change:?}");
        assert!(Cache::new(&change).is_err(), "{change:?}");
    }
    assert!(matches!(
        SelectionBuf::new(Space::LIVE_ROW, 1 << 40, 8, 4096),
        Err(Error::OutOfMemory(_))
    ));
    is_invalid(SelectionBuf::new(Space::LIVE_ROW, usize::MAX, 8, 8), "rows");
    is_invalid(AlignedBytes::new(-1, 64), "-1");
    is_invalid(AlignedBytes::new(64, 3), "3");
    assert!(matches!(AlignedBytes::new(1 << 60, 64), Err(Error::OutOfMemory(_))));
    is_invalid(config(64).set_dense_layer(256), "256");
    is_invalid(Cache::new(&Config { device_type: rkv::Device::CUDA, ..config(64) }), "on_device");
    Ok(())
}

#[test]
fn buffers_that_do_not_do() -> Result<()> {
    let config = config(64);
    let memory = config.memory()?;
    let mut storage = AlignedBytes::new(memory.storage_bytes + 1, memory.alignment)?;
    let mut workspace = AlignedBytes::new(memory.workspace_bytes, memory.alignment)?;
    let small = storage.len() - 2;
    let buffers = Buffers::new(&mut storage[..small], &mut workspace);
    is_too_small(Cache::with_buffers(&config, buffers), "storage");
    let buffers = Buffers::new(&mut storage[1..], &mut workspace);
    is_invalid(Cache::with_buffers(&config, buffers), "aligned");
    Ok(())
}

/// What safe Rust refuses to compile, through the C layer: one of two callers gets BadState.
#[test]
fn two_threads_in_one_cache() -> Result<()> {
    let text = Text::new(24);
    let cache = prefilled(&full(), &text)?;
    let handle = cache.as_raw() as usize;
    let (refused, others, done) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let worker = |deadline: std::time::Instant| {
        let [q, k, v] = text.rows(S, 1).unwrap();
        let (mut out, at) = (vec![0f32; HQ * D], [S as i64]);
        // The C structs by hand: the safe ones need `&mut Cache`.
        let tensor = |data: *const f32, heads: usize| rkv::sys::rkv_tensor {
            struct_size: size_of::<rkv::sys::rkv_tensor>() as u32,
            dtype: DType::F32.0,
            data: data.cast_mut().cast(),
            ndim: 3,
            reserved0: 0,
            shape: [1, heads as i64, D as i64, 0, 0, 0],
            strides: [(heads * D) as i64, D as i64, 1, 0, 0, 0],
            scale: null(),
            scale_strides: [0; 6],
            reserved: [0; 4],
        };
        let _ = (q, k, v);
        let (q, to) = (tensor(&text.q[S * HQ * D], HQ), tensor(out.as_mut_ptr(), HQ));
        let (k, v) = (tensor(&text.k[S * HKV * D], HKV), tensor(&text.v[S * HKV * D], HKV));
        let args = rkv::sys::rkv_decode_args {
            struct_size: size_of::<rkv::sys::rkv_decode_args>() as u32,
            layer: 0,
            rows: 1,
            attend_only: 0,
            seq: &0,
            positions: at.as_ptr(),
            q: &q,
            k: &k,
            v: &v,
            paging: null(),
            selection: null(),
            out: &to,
            lse: null_mut(),
            row_status: null_mut(),
        };
        while !done.load(Ordering::Relaxed) && std::time::Instant::now() < deadline {
            let cache = handle as *mut rkv::sys::rkv_cache;
            // SAFETY: the cache outlives the threads; the library keeps its calls apart.
            match unsafe { rkv::sys::rkv_decode(cache, &args, null_mut(), null_mut()) } {
                rkv::sys::RKV_OK => {}
                rkv::sys::RKV_BAD_STATE => {
                    refused.fetch_add(1, Ordering::Relaxed);
                    done.store(true, Ordering::Relaxed);
                }
                _ => {
                    others.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(|| worker(deadline));
        scope.spawn(|| worker(deadline));
    });
    assert!(refused.load(Ordering::Relaxed) > 0, "the calls never met");
    assert_eq!(others.load(Ordering::Relaxed), 0);
    assert_eq!(cache.stats(0, 0)?.position, S as i64 + 1);
    Ok(())
}
