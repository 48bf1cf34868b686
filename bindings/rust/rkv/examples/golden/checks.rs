//! The lines that start with `=`: what the action before them must have given.
use crate::actions::Run;
use crate::fields::split;
use crate::text::{list, near, number, Check, Line};

impl Run {
    pub fn expect(&self, line: &Line) -> Check {
        let (q_heads, kv_heads) = (self.config.q_heads as usize, self.config.kv_heads as usize);
        let (left, what) = (&self.left, line.word(1)?);
        match what {
            "fields" => {
                let fields = left.fields.as_ref().ok_or_else(|| misplaced(what))?;
                let tolerance = line.number(2)?;
                for word in &line.words[3..] {
                    let (name, value) = split(word)?;
                    let got = fields.get(name).ok_or(format!("{name}: no such field"))?;
                    same(name, got, number(value)?, tolerance)?;
                }
                Ok(())
            }
            "kept" => {
                let kept = left.kept.as_ref().ok_or_else(|| misplaced(what))?;
                same_list(kept[line.below(2, kv_heads)?].iter().copied(), line.word(3)?)
            }
            "selection" => {
                let rows = left.selected.ok_or_else(|| misplaced(what))?;
                let (row, head) = (line.below(2, rows)?, line.below(3, kv_heads)?);
                let found = self.selection.as_ref().and_then(|all| all.list(row, head));
                let found = found.ok_or("no such list")?;
                same_list(found.iter().map(|&index| index.into()), line.word(4)?)
            }
            "out" => {
                let (out, _) = left.output.as_ref().ok_or_else(|| misplaced(what))?;
                let (row, head) = (line.below(2, out.shape[0])?, line.below(3, q_heads)?);
                let (tolerance, values) = Self::reals(line, 4)?;
                if values.len() != out.shape[2] {
                    return Err(format!("{} values", values.len()));
                }
                values.iter().enumerate().try_for_each(|(channel, &want)| {
                    let got = out.element(row, head, channel);
                    same(&format!("channel {channel}"), got, want, tolerance)
                })
            }
            "lse" => {
                let (out, lse) = left.output.as_ref().ok_or_else(|| misplaced(what))?;
                let row = line.below(2, out.shape[0])?;
                let (tolerance, values) = Self::reals(line, 3)?;
                if values.len() != q_heads {
                    return Err(format!("{} values", values.len()));
                }
                values
                    .iter()
                    .zip(&lse[row * q_heads..])
                    .try_for_each(|(&want, &got)| same("lse", got.into(), want, tolerance))
            }
            _ => Err(misplaced(what)),
        }
    }
}

fn misplaced(what: &str) -> String {
    format!("= {what} does not belong to the action before")
}

fn same(name: &str, got: f64, want: f64, tolerance: f64) -> Check {
    if near(got, want, tolerance) {
        return Ok(());
    }
    Err(format!("{name} is {got}, expected {want}"))
}

fn same_list(got: impl Iterator<Item = i64>, word: &str) -> Check {
    let (got, want) = (got.collect::<Vec<_>>(), list(word)?);
    match got.iter().zip(&want).position(|(got, want)| got != want) {
        _ if got.len() != want.len() => {
            Err(format!("{} entries, expected {}", got.len(), want.len()))
        }
        Some(at) => Err(format!("entry {at} is {}, expected {}", got[at], want[at])),
        None => Ok(()),
    }
}
