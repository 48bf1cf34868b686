//! The state of a case, and its calls.
use rkv::{Cache, Config, Error, Prefill, SelectionBuf, SequenceOptions, Space, Step, Transfer};

use crate::fields::{set_config, set_options, Fields};
use crate::text::{number, row, Check, Line};
use crate::values::{Array, Checksum, Kind, Override, Source};

/// What the last call left for its expectations.
#[derive(Default)]
pub struct Left {
    pub fields: Option<Fields>,
    pub kept: Option<Vec<Vec<i64>>>,
    /// Rows of a call that selected.
    pub selected: Option<usize>,
    pub output: Option<(Array, Vec<f32>)>,
}

#[derive(Default)]
pub struct Run {
    pub cases: usize,
    pub checksum: Checksum,
    pub config: Config,
    pub left: Left,
    pub selection: Option<SelectionBuf>,
    options: Option<SequenceOptions>,
    cache: Option<Cache<'static>>,
    capacity: usize,
    seeds: std::collections::HashMap<i32, u64>,
    set: Vec<Override>,
}

impl Run {
    pub fn line(&mut self, line: &Line) -> Check {
        let Some(&name) = line.words.first() else { return Ok(()) };
        match name {
            "case" => {
                let (cases, checksum) = (self.cases + 1, Checksum(self.checksum.0));
                *self = Self { cases, checksum, ..Self::default() };
                Ok(())
            }
            "config" => line.words[1..].iter().try_for_each(|w| set_config(&mut self.config, w)),
            "options" => {
                let mut options = SequenceOptions::default();
                line.words[1..].iter().try_for_each(|w| set_options(&mut options, w))?;
                self.options = (line.words.len() > 1).then_some(options);
                Ok(())
            }
            "set" => self.set(line),
            "=" => self.expect(line),
            _ => {
                self.left = Left::default();
                self.action(name, line)
            }
        }
    }

    fn set(&mut self, line: &Line) -> Check {
        let kind = match line.word(1)? {
            "q" => Kind::Q,
            "k" => Kind::K,
            "v" => Kind::V,
            other => return Err(format!("{other} is no tensor")),
        };
        let (position, head, channel) = (line.number(2)?, line.number(3)?, line.number(4)?);
        let value = line.number::<f64>(5)? as f32;
        self.set.push(Override { kind, position, head, channel, value });
        Ok(())
    }

    fn action(&mut self, name: &str, line: &Line) -> Check {
        match name {
            "plan" => {
                let tokens = line.number(1)?;
                let plan = match &self.options {
                    Some(options) => self.config.plan_with(options, tokens),
                    None => self.config.plan(tokens),
                };
                self.left.fields = self.settle(line, plan)?.map(Fields::Plan);
                Ok(())
            }
            "memory" => {
                let memory = self.config.memory();
                self.left.fields = self.settle(line, memory)?.map(Fields::Memory);
                Ok(())
            }
            "create" => {
                // SAFETY: only the CPU is asked to compute, and it wants nothing of this.
                let made = unsafe { Cache::on_device(&self.config, None) };
                if let Some(cache) = self.settle(line, made)? {
                    self.cache = Some(cache);
                    let memory = self.config.memory().map_err(|e| e.to_string())?;
                    self.capacity = memory.selection_capacity as usize;
                }
                Ok(())
            }
            _ => {
                let mut cache = self.cache.take().ok_or(format!("{name} without a cache"))?;
                let done = self.with_cache(&mut cache, name, line);
                self.cache = Some(cache);
                done
            }
        }
    }

    fn with_cache(&mut self, cache: &mut Cache, name: &str, line: &Line) -> Check {
        if let "select" | "attend" | "decode" | "audit" = name {
            return self.rows(cache, name, line);
        }
        let seq = line.number::<i32>(1)?;
        match name {
            "open" => {
                let opened = match &self.options {
                    Some(options) => cache.open_with(seq, options),
                    None => cache.open(seq),
                };
                if self.settle(line, opened)?.is_some() {
                    self.seeds.insert(seq, line.number(2)?);
                }
                return Ok(());
            }
            "prefill" => return self.prefill(cache, seq, line),
            "kept" => {
                let kept = cache.kept_positions(seq, line.number(2)?);
                self.left.kept = self.settle(line, kept)?;
                for position in self.left.kept.iter().flatten().flatten() {
                    self.checksum.add(&position.to_le_bytes());
                }
                return Ok(());
            }
            "stats" => {
                let stats = cache.stats(seq, line.number(2)?);
                self.left.fields = self.settle(line, stats)?.map(Fields::Stats);
                return Ok(());
            }
            _ => {}
        }
        let all = 0..self.config.kv_heads;
        let done = match name {
            "rewind" => cache.rewind(seq, line.number(2)?),
            "close" => cache.close(seq),
            "fork" => cache.fork(seq, line.number(2)?),
            "export" => cache.export_size(Transfer::new(seq, line.number(2)?, all)).map(|_| ()),
            "import" => cache.import(Transfer::new(seq, line.number(2)?, all), &[0; 16]),
            _ => return Err(format!("no directive {name}")),
        };
        self.settle(line, done).map(|_| ())
    }

    fn prefill(&mut self, cache: &mut Cache, seq: i32, line: &Line) -> Check {
        let (layer, tokens): (i32, i64) = (line.number(2)?, line.number(3)?);
        let (start, end): (i64, i64) = (line.number(4)?, line.number(5)?);
        let (seed, layer64) = (self.seed(seq), layer as u64);
        let make = |kind, first, n: i64| {
            let mut array = Array::new(&self.config, kind, n as usize);
            let sources =
                (first..first + n).map(|position| Source { seed, layer: layer64, position });
            array.fill(kind, sources, &self.set);
            array
        };
        let q = (end > start).then(|| make(Kind::Q, start, end - start));
        let kv = (end == tokens).then(|| (make(Kind::K, 0, end), make(Kind::V, 0, end)));
        let done = (|| {
            let q = q.as_ref().map(Array::view).transpose()?;
            let kv = kv.as_ref().map(|(k, v)| Ok((k.view()?, v.view()?))).transpose()?;
            let mut args = Prefill::new(seq, layer, tokens).start(start);
            if let Some(q) = &q {
                args = args.q(start, q);
            }
            if let Some((k, v)) = &kv {
                args = args.kv(k, v);
            }
            cache.prefill(args)
        })();
        self.settle(line, done).map(|_| ())
    }

    /// select, attend, decode, audit: LAYER SEQ:POSITION ...
    fn rows(&mut self, cache: &mut Cache, name: &str, line: &Line) -> Check {
        let layer: i32 = line.number(1)?;
        let rows: Vec<_> = line.words[2..].iter().map(|word| row(word)).collect::<Check<_>>()?;
        let (seq, positions): (Vec<i32>, Vec<i64>) = rows.iter().copied().unzip();
        let source = |&(seq, position): &(i32, i64)| match seq {
            -1 => Source { seed: 0, layer: layer as u64, position: 0 },
            _ => Source { seed: self.seed(seq), layer: layer as u64, position },
        };
        let [q, k, v] = [Kind::Q, Kind::K, Kind::V].map(|kind| {
            let mut array = Array::new(&self.config, kind, rows.len());
            array.fill(kind, rows.iter().map(source), &self.set);
            array
        });
        let mut out = Array::new(&self.config, Kind::Out, rows.len());
        out.fill_nan();
        let mut lse = vec![f32::NAN; rows.len() * self.config.q_heads as usize];
        let (selects, attends) =
            (matches!(name, "select" | "decode"), matches!(name, "attend" | "decode"));
        if selects {
            let heads = self.config.kv_heads as usize;
            let made = SelectionBuf::new(Space::LIVE_ROW, rows.len(), heads, self.capacity);
            self.selection = Some(made.map_err(|e| e.to_string())?);
        }
        let done = (|| {
            let (q, k, v) = (q.view()?, k.view()?, v.view()?);
            let mut step = Step::new(layer, &seq, &positions, &q).kv(&k, &v);
            let mut view = out.view_mut()?;
            if attends {
                step = step.out(&mut view).lse(&mut lse);
            }
            if name == "audit" {
                return cache.audit(step).map(Some);
            }
            if let Some(selection) = &mut self.selection {
                step = step.selection(selection.view());
            }
            match name {
                "select" => cache.decode_select(step),
                "attend" => cache.attend(step),
                _ => cache.decode(step),
            }
            .map(|()| None)
        })();
        let Some(audit) = self.settle(line, done)? else { return Ok(()) };
        self.left.fields = audit.map(Fields::Audit);
        if selects {
            self.left.selected = Some(rows.len());
            self.add_selection(rows.len())?;
        }
        if attends {
            out.add_to(&mut self.checksum);
            lse.iter().for_each(|value| self.checksum.add(&value.to_le_bytes()));
            self.left.output = Some((out, lse));
        }
        Ok(())
    }

    fn add_selection(&mut self, rows: usize) -> Check {
        let selection = self.selection.as_ref().ok_or("no selection")?;
        for row in 0..rows {
            for head in 0..self.config.kv_heads as usize {
                let list = selection.list(row, head).ok_or("a selection has a wrong count")?;
                self.checksum.add(&(list.len() as i32).to_le_bytes());
                list.iter().for_each(|index| self.checksum.add(&index.to_le_bytes()));
            }
        }
        Ok(())
    }

    fn seed(&self, seq: i32) -> u64 {
        self.seeds.get(&seq).copied().unwrap_or(0)
    }

    /// The call's result, or nothing where it failed as the line says.
    fn settle<T>(&mut self, line: &Line, result: rkv::Result<T>) -> Check<Option<T>> {
        match (result, line.failure) {
            (Ok(value), None) => Ok(Some(value)),
            (Err(error), Some((status, word))) if is(&error, status, word) => {
                self.checksum.add(&error.status().to_le_bytes());
                Ok(None)
            }
            (Ok(_), Some((status, _))) => Err(format!("OK, expected {status}")),
            (Err(error), Some((status, word))) => {
                let name = error.status_name();
                Err(format!("{name} ({error}), expected {status} and {word}"))
            }
            (Err(error), None) => Err(format!("{} ({error}), expected OK", error.status_name())),
        }
    }
}

fn is(error: &Error, status: &str, word: &str) -> bool {
    error.status_name() == status && error.text().contains(word)
}

impl Run {
    /// Tolerance at `index`, then the values behind it.
    pub fn reals(line: &Line, index: usize) -> Check<(f64, Vec<f64>)> {
        let tolerance = line.number(index)?;
        let values =
            line.words[index + 1..].iter().map(|word| number(word)).collect::<Check<_>>()?;
        Ok((tolerance, values))
    }
}
