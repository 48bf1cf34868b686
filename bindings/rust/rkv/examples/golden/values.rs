//! The generator, arrays in the three storage types, and the checksum.
use rkv::{Config, DType, Tensor, TensorMut};

/// FNV-1a over little-endian bytes.
pub struct Checksum(pub u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Q,
    K,
    V,
    Out,
}

/// One element that a case sets by hand.
pub struct Override {
    pub kind: Kind,
    pub position: i64,
    pub head: usize,
    pub channel: usize,
    pub value: f32,
}

/// Where a row's values come from.
#[derive(Clone, Copy)]
pub struct Source {
    pub seed: u64,
    pub layer: u64,
    pub position: i64,
}

fn generated(source: Source, tensor: u64, index: u64) -> f32 {
    let mut z = source.seed.wrapping_mul(256).wrapping_add(source.layer).wrapping_mul(4);
    z = (z.wrapping_add(tensor) << 40).wrapping_add(index);
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    ((z >> 56) as f32 - 128.0) / 64.0
}

/// A contiguous `[rows, heads, channels]` array. Elements of 2 bytes lie in pairs.
pub struct Array {
    pub shape: [usize; 3],
    dtype: DType,
    words: Vec<u32>,
}

impl Array {
    pub fn new(config: &Config, kind: Kind, rows: usize) -> Self {
        let query = matches!(kind, Kind::Q | Kind::Out);
        let value = matches!(kind, Kind::V | Kind::Out);
        let given = |first: i32, second: i32| if first != 0 { first } else { second };
        let heads = if query { config.q_heads } else { config.kv_heads };
        let width = if value { config.head_dim_v } else { 0 };
        let dtype = if query { config.query_dtype } else { DType::default() };
        let shape = [rows, heads as usize, given(width, config.head_dim) as usize];
        let dtype = DType(given(dtype.0, config.kv_dtype.0));
        let bytes = shape.iter().product::<usize>() * dtype.size().unwrap_or(4);
        Self { shape, dtype, words: vec![0; bytes.div_ceil(4)] }
    }

    /// Rows of a sequence, one after the other.
    pub fn fill(&mut self, kind: Kind, sources: impl Iterator<Item = Source>, set: &[Override]) {
        let [_, heads, channels] = self.shape;
        let width = heads * channels;
        for (row, source) in sources.enumerate() {
            let first = (source.position as u64).wrapping_mul(width as u64);
            for i in 0..width {
                let value = generated(source, kind as u64, first.wrapping_add(i as u64));
                self.store(row * width + i, value);
            }
            let mine = |o: &&Override| o.kind == kind && o.position == source.position;
            for o in set.iter().filter(mine) {
                self.store((row * heads + o.head) * channels + o.channel, o.value);
            }
        }
    }

    pub fn fill_nan(&mut self) {
        for i in 0..self.len() {
            self.store(i, f32::NAN);
        }
    }

    pub fn element(&self, row: usize, head: usize, channel: usize) -> f64 {
        let bits = self.bits((row * self.shape[1] + head) * self.shape[2] + channel);
        match self.dtype {
            DType::F16 => from_f16(bits).into(),
            DType::BF16 => f32::from_bits(bits << 16).into(),
            _ => f32::from_bits(bits).into(),
        }
    }

    pub fn add_to(&self, checksum: &mut Checksum) {
        let bytes = self.bytes();
        for i in 0..self.len() {
            checksum.add(&self.bits(i).to_le_bytes()[..bytes]);
        }
    }

    pub fn view(&self) -> rkv::Result<Tensor<'_>> {
        Tensor::from_bits(self.dtype, &self.words, 0, self.shape, self.strides())
    }

    pub fn view_mut(&mut self) -> rkv::Result<TensorMut<'_>> {
        let (shape, strides) = (self.shape, self.strides());
        TensorMut::from_bits(self.dtype, &mut self.words, 0, shape, strides)
    }

    fn strides(&self) -> [isize; 3] {
        [(self.shape[1] * self.shape[2]) as isize, self.shape[2] as isize, 1]
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn bytes(&self) -> usize {
        self.dtype.size().unwrap_or(4)
    }

    fn bits(&self, i: usize) -> u32 {
        match self.bytes() {
            2 => (self.words[i / 2] >> (16 * (i % 2))) & 0xffff,
            _ => self.words[i],
        }
    }

    fn store(&mut self, i: usize, value: f32) {
        let bits = match self.dtype {
            DType::F16 => to_f16(value),
            DType::BF16 => value.to_bits() >> 16,
            _ => value.to_bits(),
        };
        if self.bytes() == 2 {
            let shift = 16 * (i % 2);
            self.words[i / 2] = (self.words[i / 2] & !(0xffff << shift)) | (bits << shift);
        } else {
            self.words[i] = bits;
        }
    }
}

/// `x` is a value that F16 holds, an infinity or NaN.
fn to_f16(x: f32) -> u32 {
    let bits = x.to_bits();
    let (sign, exponent) = (bits >> 16 & 0x8000, (bits >> 23 & 255) as i32 - 127);
    if x.is_nan() {
        return 0x7E00;
    }
    if x.is_infinite() {
        return sign | 0x7C00;
    }
    if exponent < -14 {
        return sign | (x.abs() * 16_777_216.0) as u32; // subnormal: units of 2^-24
    }
    sign | ((exponent + 15) as u32) << 10 | (bits >> 13 & 1023)
}

fn from_f16(bits: u32) -> f32 {
    let (exponent, mantissa) = (bits >> 10 & 31, bits & 1023);
    let size = match exponent {
        31 if mantissa != 0 => f32::NAN,
        31 => f32::INFINITY,
        0 => mantissa as f32 / 16_777_216.0,
        _ => (1024 + mantissa) as f32 * 2f32.powi(exponent as i32 - 25),
    };
    if bits & 0x8000 != 0 {
        -size
    } else {
        size
    }
}
