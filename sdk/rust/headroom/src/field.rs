//! Fields: the named arrays of every sample, and the types of their elements.

use crate::abi::{self, hr_channel, hr_field, DLDataType};
use crate::error::{Error, Result};
use crate::text::c_string;
use std::ffi::CString;
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::null;

/// The type of an element. `Bool` is a byte that is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

const DTYPES: [(DType, u8, u8); 12] = [
    (DType::F16, abi::DL_FLOAT, 16),
    (DType::F32, abi::DL_FLOAT, 32),
    (DType::F64, abi::DL_FLOAT, 64),
    (DType::I8, abi::DL_INT, 8),
    (DType::I16, abi::DL_INT, 16),
    (DType::I32, abi::DL_INT, 32),
    (DType::I64, abi::DL_INT, 64),
    (DType::U8, abi::DL_UINT, 8),
    (DType::U16, abi::DL_UINT, 16),
    (DType::U32, abi::DL_UINT, 32),
    (DType::U64, abi::DL_UINT, 64),
    (DType::Bool, abi::DL_BOOL, 8),
];

impl DType {
    pub(crate) fn native(self) -> DLDataType {
        let (_, code, bits) = DTYPES[DTYPES.iter().position(|known| known.0 == self).unwrap_or(0)];
        DLDataType { code, bits, lanes: 1 }
    }

    pub(crate) fn of(native: DLDataType) -> Option<DType> {
        DTYPES
            .iter()
            .find(|known| (known.1, known.2, 1) == (native.code, native.bits, native.lanes))
            .map(|known| known.0)
    }
}

/// A Rust type that arrays hold. `u8` stands for `DType::Bool` as well: any byte may come from elsewhere, which a `bool`
/// of Rust must not hold.
///
/// # Safety
/// Every pattern of bits is a value, and `DTYPE` is the type itself.
pub unsafe trait Element: Copy + Default + Send + Sync + 'static {
    const DTYPE: DType;
}

macro_rules! element {
    ($($rust:ty = $name:ident),*) => { $(unsafe impl Element for $rust { const DTYPE: DType = DType::$name; })* };
}
element!(f32 = F32, f64 = F64, i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8, u16 = U16, u32 = U32, u64 = U64);

pub(crate) fn holds<T: Element>(native: DLDataType) -> bool {
    match DType::of(native) {
        Some(DType::Bool) => T::DTYPE == DType::U8,
        found => found == Some(T::DTYPE),
    }
}

/// One channel of a field that its source standardises itself: value = (measured - mean) / std.
#[derive(Clone, Debug)]
pub struct Channel {
    pub name: String,
    /// Of what was measured; "": the field's.
    pub unit: String,
    pub mean: f64,
    pub std: f64,
}

/// `Field::f32("emg", &[500, 16]).axes(&["time", "channel"]).unit("V").sample_rate_hz(2000.0).channel_axis(1).normalize()`
#[derive(Clone, Debug)]
pub struct Field {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    axes: Vec<String>,
    unit: String,
    sample_rate_hz: f64,
    channel_axis: Option<usize>,
    normalize: bool,
    channels: Vec<Channel>,
}

impl Field {
    /// `shape` is that of one sample; empty: a scalar.
    pub fn new(name: &str, dtype: DType, shape: &[usize]) -> Field {
        Field {
            name: name.to_string(),
            dtype,
            shape: shape.iter().map(|&extent| extent as i64).collect(),
            axes: Vec::new(),
            unit: String::new(),
            sample_rate_hz: 0.0,
            channel_axis: None,
            normalize: false,
            channels: Vec::new(),
        }
    }
    pub fn f32(name: &str, shape: &[usize]) -> Field {
        Field::new(name, DType::F32, shape)
    }
    /// As many as the shape has, or fewer: the rest is unnamed. So is "".
    pub fn axes(mut self, names: &[&str]) -> Field {
        self.axes = names.iter().map(|name| name.to_string()).collect();
        self
    }
    pub fn unit(mut self, unit: &str) -> Field {
        self.unit = unit.to_string();
        self
    }
    /// Of the time axis.
    pub fn sample_rate_hz(mut self, rate: f64) -> Field {
        self.sample_rate_hz = rate;
        self
    }
    /// Each place along it has its own statistics; without it there is one for all.
    pub fn channel_axis(mut self, axis: usize) -> Field {
        self.channel_axis = Some(axis);
        self
    }
    /// The host may standardise it.
    pub fn normalize(mut self) -> Field {
        self.normalize = true;
        self
    }
    /// What the channels along `channel_axis` are.
    pub fn channels(mut self, channels: Vec<Channel>) -> Field {
        self.channels = channels;
        self
    }
}

/// The C form of a field, with all that it points to.
pub(crate) struct NativeField {
    pub(crate) native: hr_field,
    _texts: Vec<CString>,
    _channels: Vec<hr_channel>,
}
// SAFETY: its pointers lead to memory of its own, which nobody changes.
unsafe impl Send for NativeField {}
unsafe impl Sync for NativeField {}

impl NativeField {
    pub(crate) fn new(field: &Field) -> Result<NativeField> {
        if field.shape.len() > abi::MAX_DIMS {
            return Err(Error::internal(format!("field '{}' has more than 8 axes", field.name)));
        }
        let mut texts = Texts(Vec::new());
        let channels: Vec<hr_channel> =
            field.channels.iter().map(|channel| native_channel(channel, &mut texts)).collect();
        let mut native = hr_field {
            struct_size: size_of::<hr_field>() as u32,
            flags: if field.normalize { abi::FIELD_NORMALIZE } else { 0 },
            name: texts.kept(&field.name),
            dtype: field.dtype.native(),
            ndim: field.shape.len() as i32,
            shape: [0; abi::MAX_DIMS],
            axes: [null(); abi::MAX_DIMS],
            unit: texts.kept_or_null(&field.unit),
            sample_rate_hz: field.sample_rate_hz,
            channel_axis: field.channel_axis.map_or(-1, |axis| axis as i32),
            reserved: 0,
            channels: if channels.is_empty() { null() } else { channels.as_ptr() },
            channel_count: channels.len() as u64,
        };
        native.shape[..field.shape.len()].copy_from_slice(&field.shape);
        for (place, name) in native.axes.iter_mut().zip(field.axes.iter().take(field.shape.len())) {
            *place = texts.kept_or_null(name);
        }
        Ok(NativeField { native, _texts: texts.0, _channels: channels })
    }
}

fn native_channel(channel: &Channel, texts: &mut Texts) -> hr_channel {
    hr_channel {
        struct_size: size_of::<hr_channel>() as u32,
        reserved: 0,
        name: texts.kept_or_null(&channel.name),
        unit: texts.kept_or_null(&channel.unit),
        mean: channel.mean,
        std: channel.std,
    }
}

/// Strings that a C struct points to.
struct Texts(Vec<CString>);

impl Texts {
    fn kept(&mut self, text: &str) -> *const c_char {
        let kept = c_string(text);
        let address = kept.as_ptr();
        self.0.push(kept);
        address
    }
    fn kept_or_null(&mut self, text: &str) -> *const c_char {
        if text.is_empty() {
            return null();
        }
        self.kept(text)
    }
}
