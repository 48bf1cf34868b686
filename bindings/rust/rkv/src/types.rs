//! The header's enumerations: newtypes over its numbers, so that a number which a newer library
//! knows can be passed through.
use std::fmt;

use rkv_sys as sys;

macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $constant:ident = $raw:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub i32);

        impl $name {
            $($(#[$each])* pub const $constant: Self = Self(sys::$raw.0);)*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$constant => f.write_str(stringify!($constant)),)*
                    Self(number) => write!(f, "{}({number})", stringify!($name)),
                }
            }
        }
    };
}

numbers! {
    /// Where a cache lives.
    Device {
        /// The processor; the default.
        CPU = RKV_DEVICE_CPU,
        /// An NVIDIA GPU.
        CUDA = RKV_DEVICE_CUDA,
    }
}

numbers! {
    /// Element type of tensors. The default, 0, is "not given".
    DType {
        /// 32-bit float.
        F32 = RKV_DTYPE_F32,
        /// 16-bit IEEE float.
        F16 = RKV_DTYPE_F16,
        /// bfloat16.
        BF16 = RKV_DTYPE_BF16,
        /// 8-bit float, 4 bits of exponent.
        E4M3 = RKV_DTYPE_E4M3,
        /// 8-bit float, 5 bits of exponent.
        E5M2 = RKV_DTYPE_E5M2,
    }
}

impl DType {
    /// Bytes of an element; `None` for a number that this crate does not know.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::F32 => Some(4),
            Self::F16 | Self::BF16 => Some(2),
            Self::E4M3 | Self::E5M2 => Some(1),
            _ => None,
        }
    }
}

numbers! {
    /// Who keeps K and V.
    Storage {
        /// The kept rows are copied into the cache; the default.
        COMPACT = RKV_STORAGE_COMPACT,
        /// Lists and summaries over the engine's own K and V (multi-turn).
        INDEXED = RKV_STORAGE_INDEXED,
    }
}

numbers! {
    /// What stage 2 selects.
    SelectionUnit {
        /// Whole pages; the default.
        PAGES = RKV_UNIT_PAGES,
        /// Exactly `top_k` tokens.
        TOKENS = RKV_UNIT_TOKENS,
    }
}

numbers! {
    /// What stage 1 scores.
    Stage1Domain {
        /// All of the prompt; the default.
        ALL = RKV_STAGE1_ALL,
        /// What lies before the window.
        PREFIX_ONLY = RKV_STAGE1_PREFIX_ONLY,
    }
}

numbers! {
    /// What the softmax of stage 2's scores runs over.
    SelectionDomain {
        /// Tokens; the default.
        TOKENS = RKV_SOFTMAX_TOKENS,
        /// Pages.
        PAGES = RKV_SOFTMAX_PAGES,
    }
}

numbers! {
    /// Pooling of stage 1's scores.
    Pooling {
        /// The largest; the default.
        MAX = RKV_POOL_MAX,
        /// The mean.
        AVG = RKV_POOL_AVG,
    }
}

numbers! {
    /// Temperature of stage 2's softmax.
    Temperature {
        /// SparQ's; the default.
        SPARQ = RKV_TEMPERATURE_SPARQ,
        /// The square root of the head size.
        SQRT_D = RKV_TEMPERATURE_SQRT_D,
    }
}

numbers! {
    /// What the numbers of a selection mean.
    Space {
        /// Live rows: kept prompt tokens in order of position, then generated ones; the default,
        /// and what attention reads.
        LIVE_ROW = RKV_SPACE_LIVE_ROW,
        /// Positions.
        POSITION = RKV_SPACE_POSITION,
        /// Slots of the engine's paged pool.
        SLOT = RKV_SPACE_SLOT,
    }
}
