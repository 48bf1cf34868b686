//! Every call of the header through the safe crate.
mod support;

use rkv::{
    AlignedBytes, Buffers, Cache, Config, DType, Device, Error, Prefill, Result, SequenceOptions,
    Step, Tensor, TensorMut, Transfer,
};
use support::*;

#[test]
fn full_budget_is_dense_attention() -> Result<()> {
    let text = Text::new(1);
    let mut cache = prefilled(&full(), &text)?;
    for at in S..S + NEW {
        close_to(&text.decode(&mut cache, 0, 0, at)?, &text.dense(at));
    }
    Ok(())
}

#[test]
fn select_and_attend_are_decode() -> Result<()> {
    let text = Text::new(2);
    let mut cache = prefilled(&config(64), &text)?;
    let want = text.decode(&mut cache, 0, 0, S)?;
    let (mut out, mut lse) = (vec![0f32; HQ * D], [0f32; HQ]);
    let mut selection = cache.selection(1)?;
    let ids = ([0], [S as i64]);
    let [q, k, v] = text.rows(S, 1)?;
    let select = Step::new(0, &ids.0, &ids.1, &q).kv(&k, &v).selection(selection.view());
    cache.decode_select(select)?;
    let mut view = TensorMut::new(&mut out, [1, HQ, D])?;
    let attend = Step::new(0, &ids.0, &ids.1, &q).selection(selection.view());
    cache.attend(attend.out(&mut view).lse(&mut lse))?;
    assert_eq!(out, want);
    assert!(lse.iter().all(|x| x.is_finite()));
    let list = selection.list(0, 1).unwrap();
    assert!(!list.is_empty() && list.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(selection.list(0, HKV).is_none() && selection.list(1, 0).is_none());

    let audit = cache.audit(Step::new(0, &ids.0, &ids.1, &q))?;
    assert_eq!(audit.rows, 1);
    assert!(audit.mass_mean > 0.0 && audit.mass_mean < 1.0 && audit.error_max > 0.0);
    Ok(())
}

#[test]
fn any_order_of_axes_gives_the_same_bits() -> Result<()> {
    let text = Text::new(3);
    let want = {
        let mut cache = prefilled(&config(64), &text)?;
        text.decode(&mut cache, 0, 0, S)?
    };
    // [Hkv, S, D] with V transposed to [Hkv, D, S], and an output with gaps, backwards.
    let (mut k, mut v) = (vec![0f32; S * HKV * D], vec![0f32; S * HKV * D]);
    for i in 0..S * HKV * D {
        let (token, head, channel) = (i / (HKV * D), i / D % HKV, i % D);
        k[(head * S + token) * D + channel] = text.k[i];
        v[(head * D + channel) * S + token] = text.v[i];
    }
    let tk = Tensor::strided(&k, 0, [S, HKV, D], [D as isize, (S * D) as isize, 1])?;
    let tv = Tensor::strided(&v, 0, [S, HKV, D], [1, (S * D) as isize, S as isize])?;
    let [q, ..] = text.rows(0, S)?;
    let mut cache = Cache::new(&config(64))?;
    cache.open(0)?;
    cache.prefill(Prefill::new(0, 0, S as i64).q(0, &q).kv(&tk, &tv))?;
    let mut out = vec![9f32; HQ * D * 2];
    let last = out.len() - 1;
    let strides = [0, -2 * D as isize, -2];
    let mut view = TensorMut::strided(&mut out, last, [1, HQ, D], strides)?;
    let [q, k, v] = text.rows(S, 1)?;
    cache.decode(Step::new(0, &[0], &[S as i64], &q).kv(&k, &v).out(&mut view))?;
    let turned: Vec<f32> = out.iter().rev().step_by(2).copied().collect();
    assert_eq!(turned, want);
    assert!(out.iter().step_by(2).all(|&gap| gap == 9.0));
    Ok(())
}

#[test]
fn chunks_and_the_window_alone_give_the_same_bits() -> Result<()> {
    let text = Text::new(4);
    let want = prefilled(&config(64), &text)?.kept_positions(0, 0)?;
    let mut cache = Cache::new(&config(64))?;
    cache.open(0)?;
    let [_, k, v] = text.rows(0, S)?;
    let [first, ..] = text.rows(S - 40, 25)?;
    let [last, ..] = text.rows(S - 15, 15)?;
    cache.prefill(Prefill::new(0, 0, S as i64).q(S as i64 - 40, &first))?;
    assert!(matches!(cache.kept_positions(0, 0), Err(Error::BadState(_))));
    cache.prefill(Prefill::new(0, 0, S as i64).q(S as i64 - 15, &last).kv(&k, &v))?;
    assert_eq!(cache.kept_positions(0, 0)?, want);
    assert_eq!(want.len(), HKV);
    assert!(want[0].len() < S && want[0].windows(2).all(|pair| pair[0] < pair[1]));
    Ok(())
}

#[test]
fn borrowed_memory_is_used_and_free_again() -> Result<()> {
    let text = Text::new(5);
    let config = config(64);
    let want = text.decode(&mut prefilled(&config, &text)?, 0, 0, S)?;
    let memory = config.memory()?;
    let mut storage = AlignedBytes::new(memory.storage_bytes, memory.alignment)?;
    let mut workspace = AlignedBytes::new(memory.workspace_bytes, memory.alignment)?;
    for _ in 0..2 {
        let buffers = Buffers::new(&mut storage, &mut workspace);
        let mut cache = Cache::with_buffers(&config, buffers)?;
        cache.open(0)?;
        text.prefill(&mut cache, 0, 0)?;
        assert_eq!(text.decode(&mut cache, 0, 0, S)?, want);
    }
    Ok(())
}

#[test]
fn batch_with_drafts_and_padding() -> Result<()> {
    let texts = [Text::new(6), Text::new(7)];
    let mut cache = Cache::new(&Config { max_sequences: 2, max_rows: 4, ..config(64) })?;
    let mut alone = Vec::new();
    for (seq, text) in texts.iter().enumerate() {
        let mut single = prefilled(&config(64), text)?;
        alone.push([text.decode(&mut single, 0, 0, S)?, text.decode(&mut single, 0, 0, S + 1)?]);
        cache.open(seq as i32)?;
        text.prefill(&mut cache, seq as i32, 0)?;
    }
    // Rows: two of sequence 1, padding, one of sequence 0.
    let pick = |all: [&[f32]; 2], heads: usize| -> Vec<f32> {
        let row = |seq: usize, at: usize| all[seq][at * heads * D..][..heads * D].to_vec();
        [row(1, S), row(1, S + 1), vec![0.0; heads * D], row(0, S)].concat()
    };
    let (q, k, v) = (
        pick([&texts[0].q, &texts[1].q], HQ),
        pick([&texts[0].k, &texts[1].k], HKV),
        pick([&texts[0].v, &texts[1].v], HKV),
    );
    let (tq, tk, tv) = (
        Tensor::new(&q, [4, HQ, D])?,
        Tensor::new(&k, [4, HKV, D])?,
        Tensor::new(&v, [4, HKV, D])?,
    );
    let mut out = vec![f32::NAN; 4 * HQ * D];
    let mut view = TensorMut::new(&mut out, [4, HQ, D])?;
    let (ids, at) = ([1, 1, -1, 0], [S as i64, S as i64 + 1, 0, S as i64]);
    let mut row_status = [7; 4];
    let step = Step::new(0, &ids, &at, &tq).kv(&tk, &tv).out(&mut view);
    cache.decode(step.row_status(&mut row_status))?;
    let rows: Vec<&[f32]> = out.chunks(HQ * D).collect();
    assert_eq!(rows[0], alone[1][0]);
    assert_eq!(rows[1], alone[1][1]);
    assert!(rows[2].iter().all(|&x| x == 0.0));
    assert_eq!(rows[3], alone[0][0]);
    assert_eq!(row_status, [7; 4]);

    cache.rewind(1, S as i64)?;
    assert_eq!(cache.stats(1, 0)?.position, S as i64);
    assert_eq!(texts[1].decode(&mut cache, 1, 0, S)?, alone[1][0]);
    cache.close(1)?;
    assert!(matches!(cache.close(1), Err(Error::BadState(_))));
    Ok(())
}

#[test]
fn sixteen_bits_as_plain_integers() -> Result<()> {
    let text = Text::new(8);
    let bf16 =
        |all: &[f32]| -> Vec<u16> { all.iter().map(|x| (x.to_bits() >> 16) as u16).collect() };
    let (q, k, v) = (bf16(&text.q), bf16(&text.k), bf16(&text.v));
    let row = |heads: usize| [(heads * D) as isize, D as isize, 1];
    let view = |data, at: usize, n: usize, heads: usize| {
        Tensor::from_bits::<u16, 3>(DType::BF16, data, at * heads * D, [n, heads, D], row(heads))
    };
    let mut cache = Cache::new(&Config { kv_dtype: DType::BF16, ..full() })?;
    cache.open(0)?;
    let (tq, tk, tv) = (view(&q, 0, S, HQ)?, view(&k, 0, S, HKV)?, view(&v, 0, S, HKV)?);
    cache.prefill(Prefill::new(0, 0, S as i64).q(0, &tq).kv(&tk, &tv))?;
    let mut out = vec![0u16; HQ * D];
    let mut to = TensorMut::from_bits(DType::BF16, &mut out, 0, [1, HQ, D], row(HQ))?;
    let (tq, tk, tv) = (view(&q, S, 1, HQ)?, view(&k, S, 1, HKV)?, view(&v, S, 1, HKV)?);
    cache.decode(Step::new(0, &[0], &[S as i64], &tq).kv(&tk, &tv).out(&mut to))?;
    for (got, want) in out.iter().zip(text.dense(S)) {
        let got = f32::from_bits(u32::from(*got) << 16);
        assert!((got - want).abs() < 0.01, "{got} is not {want}");
    }
    #[cfg(feature = "half")]
    {
        let half: Vec<half::bf16> = q.iter().map(|&bits| half::bf16::from_bits(bits)).collect();
        assert_eq!(Tensor::new(&half, [S, HQ, D])?.dtype(), DType::BF16);
    }
    Ok(())
}

#[test]
fn reports_and_plans() -> Result<()> {
    let text = Text::new(9);
    let config = config(64);
    let cache = prefilled(&config, &text)?;
    let stats = cache.stats(0, 0)?;
    assert_eq!((stats.prompt, stats.position, stats.generated), (S as i64, S as i64, 0));
    assert_eq!(stats.plan, config.plan(S as i64)?);
    assert_eq!(cache.stats(0, 1)?.kept, 0);
    let options = SequenceOptions { token_budget: 80, ..SequenceOptions::default() };
    assert_eq!(config.plan_with(&options, S as i64)?.token_budget, 80);
    let mut into = vec![0; HKV * stats.kept as usize];
    assert_eq!(cache.kept_positions_into(0, 0, &mut into)?, stats.kept as usize);
    assert_eq!(into, cache.kept_positions(0, 0)?.concat());

    let short = cache.kept_positions_into(0, 0, &mut into[1..]);
    assert!(matches!(short, Err(Error::BufferTooSmall(_))));
    assert_eq!(rkv::device_count(Device::CPU)?, 1);
    assert_eq!(rkv::abi_version(), rkv::sys::RKV_ABI_VERSION);
    assert!(rkv::version().starts_with(char::is_numeric));
    Ok(())
}

/// These fail in a library that does not serve them yet, with its text, and may succeed in a newer
/// one: nothing on this side stands in the way.
#[test]
fn what_is_not_served_says_so_in_the_library_s_words() -> Result<()> {
    let text = Text::new(10);
    let mut cache = Cache::new(&Config { max_sequences: 2, ..config(64) })?;
    cache.open(0)?;
    text.prefill(&mut cache, 0, 0)?;
    let all = Transfer::new(0, 0, 0..HKV as i32);
    let refused = [
        cache.fork(0, 1),
        cache.export_size(all).map(|_| ()),
        cache.export(all, &mut [0; 64]).map(|_| ()),
        cache.import(all, &[0; 64]),
        Config { storage: rkv::Storage::INDEXED, ..config(64) }.memory().map(|_| ()),
    ];
    for result in refused {
        match result {
            Ok(()) => {}
            Err(Error::Unsupported(detail)) => assert!(!detail.text.is_empty()),
            Err(other) => assert_eq!(other.status_name(), "BAD_STATE", "{other}"),
        }
    }
    // The cache is as it was.
    assert_eq!(cache.stats(0, 0)?.position, S as i64);
    Ok(())
}

#[test]
fn a_cache_moves_to_a_thread_and_is_read_by_two() -> Result<()> {
    let text = Text::new(11);
    let cache = prefilled(&config(64), &text)?;
    let want = cache.stats(0, 0)?;
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| cache.stats(0, 0)));
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Ok(want));
        }
    });
    let moved = std::thread::spawn(move || {
        let mut cache = cache;
        text.decode(&mut cache, 0, 0, S).map(|out| (out, text.dense(S).len()))
    });
    let (out, n) = moved.join().unwrap()?;
    assert_eq!(out.len(), n);
    Ok(())
}
