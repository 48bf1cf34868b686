//! Lines, words, numbers and lists.
use std::str::FromStr;

pub type Check<T = ()> = Result<T, String>;

/// One line cut into words.
pub struct Line<'a> {
    pub words: Vec<&'a str>,
    /// Behind `!`: the status that the call must fail with, and a word of the text.
    pub failure: Option<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    pub fn parse(text: &'a str) -> Check<Self> {
        let text = if text.starts_with('#') { "" } else { text };
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut failure = None;
        if let Some(mark) = words.iter().position(|word| *word == "!") {
            let [status, word] = words[mark + 1..] else {
                return Err("! STATUS WORD expected".into());
            };
            failure = Some((status, word));
            words.truncate(mark);
        }
        Ok(Self { words, failure })
    }

    pub fn word(&self, index: usize) -> Check<&'a str> {
        self.words.get(index).copied().ok_or(format!("{}: a word is missing", self.words[0]))
    }

    /// The word at `index` as a number.
    pub fn number<T: FromStr>(&self, index: usize) -> Check<T> {
        number(self.word(index)?)
    }

    /// An index that must lie below `end`.
    pub fn below(&self, index: usize, end: usize) -> Check<usize> {
        let value = self.number(index)?;
        if value < end {
            return Ok(value);
        }
        Err(format!("{value} is out of range"))
    }
}

/// Integers and reals, also `inf`, `-inf` and `nan`.
pub fn number<T: FromStr>(word: &str) -> Check<T> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

/// `SEQ:POSITION`
pub fn row(word: &str) -> Check<(i32, i64)> {
    let (seq, position) = word.split_once(':').ok_or(format!("{word}: SEQ:POSITION"))?;
    Ok((number(seq)?, number(position)?))
}

/// `0-3,7,9-12`, or `-` where it is empty.
pub fn list(word: &str) -> Check<Vec<i64>> {
    let mut all = Vec::new();
    for part in word.split(',').filter(|_| word != "-") {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(number::<i64>(first)?..=number::<i64>(last)?);
    }
    Ok(all)
}

pub fn near(got: f64, want: f64, tolerance: f64) -> bool {
    if want.is_nan() || want.is_infinite() {
        return got == want || (got.is_nan() && want.is_nan());
    }
    (got - want).abs() <= tolerance * want.abs().max(1.0)
}
