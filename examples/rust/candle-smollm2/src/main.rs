//! SmolLM2 in candle, with the attention of every decode step computed by librkv.
//!
//!     candle-smollm2 MODEL.gguf GOLDEN_FOLDER
//!
//! Shows two things and exits with 1 where one is not so: with a budget for everything each token is
//! the one that candle's own dense decode gives (and the golden one); RocketKV with 256 tokens still
//! answers a question about a fact that is hidden in the prompt.
mod engine;
mod model;
mod weights;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use candle_core::Tensor;
use serde::Deserialize;

use engine::{prefill, Budget, Compressed, Full};
use model::{best, forward};
use weights::Weights;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Two best logits that are closer than this may change places.
const CLOSE: f32 = 0.02;

/// A prompt and full attention's own tokens, each with its margin over the next best.
#[derive(Deserialize)]
struct Greedy {
    name: String,
    prompt: Vec<u32>,
    greedy: Vec<u32>,
    margin: Vec<f32>,
}

#[derive(Deserialize)]
struct HiddenFact {
    prompt: Vec<u32>,
    answer: Vec<u32>,
    token_budget: i64,
}

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [model, golden] = &arguments[..] else {
        eprintln!("usage: candle-smollm2 MODEL.gguf GOLDEN_FOLDER");
        return ExitCode::from(2);
    };
    match run(model, golden) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(model: &Path, golden: &Path) -> Result<bool> {
    let begin = Instant::now();
    let read = |name: &str| std::fs::read_to_string(golden.join(name));
    let cases: Vec<Greedy> = serde_json::from_str(&read("smollm2-greedy.json")?)?;
    let fact: HiddenFact = serde_json::from_str(&read("hidden-fact.json")?)?;
    let weights = Weights::read(model)?;
    println!("librkv {}: {:?}", rkv::version(), weights.shape);
    let mut right = true;
    for case in &cases {
        right &= follow(&weights, case)?;
    }
    right &= answer(&weights, &fact)?;
    println!("{}, {:.0} s", if right { "all as expected" } else { "FAILED" }, seconds(begin));
    Ok(right)
}

fn seconds(begin: Instant) -> f32 {
    begin.elapsed().as_secs_f32()
}

/// One decode step of two rows at one position: row 0 is the engine's own attention, row 1 librkv's.
fn step(
    weights: &Weights,
    tokens: [u32; 2],
    position: usize,
    full: &mut Full,
    compressed: &mut Compressed,
) -> Result<[u32; 2]> {
    let logits = forward(weights, &tokens, &[position; 2], &mut |layer, q, k, v| {
        let row = |all: &Tensor, row| all.narrow(1, row, 1);
        let own = full.attend(layer, &row(q, 0)?, &row(k, 0)?, &row(v, 0)?)?;
        let theirs = compressed.attend(layer, &row(q, 1)?, &row(k, 1)?, &row(v, 1)?)?;
        Ok(Tensor::cat(&[own, theirs], 0)?)
    })?;
    let best = best(&logits)?;
    Ok([best[0], best[1]])
}

/// Feeds the golden tokens to both, so that one close step cannot hide the ones behind it.
fn follow(weights: &Weights, case: &Greedy) -> Result<bool> {
    let begin = Instant::now();
    let steps = case.greedy.len();
    let prompt = prefill(weights, &case.prompt)?;
    let mut full = Full::new(&prompt);
    let mut compressed = Compressed::new(&weights.shape, &prompt, Budget::Everything, steps)?;
    let mut found = vec![[prompt.next; 2]];
    for (index, &token) in case.greedy[..steps - 1].iter().enumerate() {
        let position = prompt.tokens + index;
        found.push(step(weights, [token; 2], position, &mut full, &mut compressed)?);
    }
    let sure: Vec<usize> = (0..steps).filter(|&i| case.margin[i] >= CLOSE).collect();
    let dense = sure.iter().filter(|&&i| found[i][1] == found[i][0]).count();
    let golden = sure.iter().filter(|&&i| found[i][1] == case.greedy[i]).count();
    println!(
        "{}: {} prompt tokens, {steps} steps: librkv's token is candle's own in {dense} and the \
         golden one in {golden} of {} (the others are close), {:.1} s",
        case.name,
        prompt.tokens,
        sure.len(),
        seconds(begin)
    );
    Ok(dense == sure.len() && golden == sure.len())
}

/// Each row writes its own answer.
fn answer(weights: &Weights, fact: &HiddenFact) -> Result<bool> {
    let prompt = prefill(weights, &fact.prompt)?;
    let steps = fact.answer.len();
    let mut full = Full::new(&prompt);
    let budget = Budget::Tokens(fact.token_budget);
    let mut compressed = Compressed::new(&weights.shape, &prompt, budget, 32)?;
    let mut answers = [vec![prompt.next], vec![prompt.next]];
    for index in 0..steps - 1 {
        let tokens = [answers[0][index], answers[1][index]];
        let next = step(weights, tokens, prompt.tokens + index, &mut full, &mut compressed)?;
        answers.iter_mut().zip(next).for_each(|(answer, token)| answer.push(token));
    }
    let (read, of) = compressed.traffic()?;
    println!(
        "hidden fact in {} tokens: full KV says{:?}, RocketKV t={} says{:?} and reads {:.0}% of its bytes",
        prompt.tokens,
        weights.text(&answers[0]),
        fact.token_budget,
        weights.text(&answers[1]),
        100.0 * read as f64 / of as f64
    );
    Ok(answers[0] == fact.answer && answers[1] == fact.answer)
}
