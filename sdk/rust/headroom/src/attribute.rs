//! Attributes of groups and datasets in HDF5 files.

use crate::abi::{self, hr_arrays, hr_attribute};
use crate::error::{require, Result};
use crate::files::none_if_absent;
use crate::host::Host;
use crate::text::{c_path, c_string, empty, from_array};
use std::path::Path;

/// One number or one string, which is cut at 511 bytes: `Host::attribute_strings` has no such limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    I64(i64),
    F64(f64),
    String(String),
}

impl Attribute {
    /// A number of either kind.
    pub fn number(&self) -> Option<f64> {
        match self {
            Attribute::I64(value) => Some(*value as f64),
            Attribute::F64(value) => Some(*value),
            Attribute::String(_) => None,
        }
    }
}

impl Host {
    /// None where `object` has no attribute of that name.
    pub fn attribute(&self, file: &Path, object: &str, name: &str) -> Result<Option<Attribute>> {
        let api = self.service::<hr_arrays>(abi::ARRAYS)?;
        let (path, object, name) = (c_path(file)?, c_string(object), c_string(name));
        let mut value: hr_attribute = empty();
        let read = require(|error| unsafe {
            (api.attribute)(self.native, path.as_ptr(), object.as_ptr(), name.as_ptr(), &mut value, error)
        });
        Ok(none_if_absent(read)?.map(|()| match value.type_ {
            abi::I64 => Attribute::I64(value.i64),
            abi::F64 => Attribute::F64(value.f64),
            _ => Attribute::String(from_array(&value.string)),
        }))
    }
}
