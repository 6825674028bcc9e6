//! Typed access to the values that the host hands over.

use crate::abi::{self, hr_type, hr_value};
use crate::error::{Error, Result};
use crate::option::Opt;
use crate::text;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::slice;

/// The values of one table; what the methods return is a copy. To ask for a name that the table lacks, for another type,
/// or for a value that is absent is a mistake of the plugin: `Status::Internal`.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    table: &'a [Opt],
    values: *const hr_value,
    borrowed: PhantomData<&'a hr_value>,
}

impl<'a> Options<'a> {
    /// # Safety
    /// `values` has a value for each option of `table`, for as long as 'a.
    pub(crate) unsafe fn new(table: &'a [Opt], values: *const hr_value) -> Options<'a> {
        Options { table, values, borrowed: PhantomData }
    }

    /// Set by the user or by its default.
    pub fn has(&self, name: &str) -> Result<bool> {
        Ok(self.find(name)?.1.present != 0)
    }

    pub fn bool(&self, name: &str) -> Result<bool> {
        // SAFETY: here and below, the member of the union is the one of the type that get() has compared.
        Ok(unsafe { self.get(name, abi::BOOL)?.as_.i64 } != 0)
    }
    pub fn i64(&self, name: &str) -> Result<i64> {
        Ok(unsafe { self.get(name, abi::I64)?.as_.i64 })
    }
    pub fn f64(&self, name: &str) -> Result<f64> {
        Ok(unsafe { self.get(name, abi::F64)?.as_.f64 })
    }
    pub fn bytes(&self, name: &str) -> Result<i64> {
        Ok(unsafe { self.get(name, abi::BYTES)?.as_.i64 })
    }
    pub fn string(&self, name: &str) -> Result<String> {
        Ok(unsafe { text::from_c(self.get(name, abi::STRING)?.as_.string) })
    }
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        Ok(unsafe { text::path_from_c(self.get(name, abi::PATH)?.as_.string) })
    }
    pub fn table(&self, name: &str) -> Result<Options<'a>> {
        let value = self.get(name, abi::TABLE)?;
        Ok(unsafe { Options::new(&self.find(name)?.0.table, value.as_.table) })
    }

    pub fn bools(&self, name: &str) -> Result<Vec<bool>> {
        let value = self.get(name, abi::LIST | abi::BOOL)?;
        Ok(unsafe { list(value.as_.i64s, value.count) }.iter().map(|&number| number != 0).collect())
    }
    pub fn i64s(&self, name: &str) -> Result<Vec<i64>> {
        let value = self.get(name, abi::LIST | abi::I64)?;
        Ok(unsafe { list(value.as_.i64s, value.count) }.to_vec())
    }
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        let value = self.get(name, abi::LIST | abi::F64)?;
        Ok(unsafe { list(value.as_.f64s, value.count) }.to_vec())
    }
    pub fn strings(&self, name: &str) -> Result<Vec<String>> {
        let value = self.get(name, abi::LIST | abi::STRING)?;
        Ok(unsafe { list(value.as_.strings, value.count) }.iter().map(|&text| unsafe { text::from_c(text) }).collect())
    }
    pub fn paths(&self, name: &str) -> Result<Vec<PathBuf>> {
        let value = self.get(name, abi::LIST | abi::PATH)?;
        let texts = unsafe { list(value.as_.strings, value.count) };
        Ok(texts.iter().map(|&text| unsafe { text::path_from_c(text) }).collect())
    }
    pub fn tables(&self, name: &str) -> Result<Vec<Options<'a>>> {
        let value = self.get(name, abi::LIST | abi::TABLE)?;
        let keys = &self.find(name)?.0.table;
        let tables = unsafe { list(value.as_.tables, value.count) };
        Ok(tables.iter().map(|one| unsafe { Options::new(keys, one.as_.table) }).collect())
    }

    fn find(&self, name: &str) -> Result<(&'a Opt, &'a hr_value)> {
        match self.table.iter().position(|option| option.name == name) {
            // SAFETY: new() promises a value for each option.
            Some(i) => Ok((&self.table[i], unsafe { &*self.values.add(i) })),
            None => Err(Error::internal(format!(
                "the plugin asks for an option '{}' that its own table does not declare",
                name
            ))),
        }
    }

    fn get(&self, name: &str, kind: hr_type) -> Result<&'a hr_value> {
        let value = self.find(name)?.1;
        if value.type_ != kind {
            return Err(Error::internal(format!("the plugin reads its option '{}' as another type", name)));
        }
        if value.present == 0 {
            return Err(Error::internal(format!(
                "the plugin reads its option '{}', which is not set and has no default",
                name
            )));
        }
        Ok(value)
    }
}

/// # Safety
/// `count` values at `data`, for as long as 'a. Null where there is none.
unsafe fn list<'a, T>(data: *const T, count: u64) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    slice::from_raw_parts(data, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::hr_value_as;

    #[test]
    fn a_value_is_read_by_name_and_as_its_own_type() {
        let table = [Opt::i64("window"), Opt::list(Opt::f64("rates")), Opt::string("loss")];
        let rates = [0.5, 2.0];
        let values = [
            hr_value { type_: abi::I64, present: 1, count: 1, as_: hr_value_as { i64: 7 } },
            hr_value { type_: 16 | abi::F64, present: 1, count: 2, as_: hr_value_as { f64s: rates.as_ptr() } },
            hr_value { type_: abi::STRING, present: 0, count: 1, as_: hr_value_as { i64: 0 } },
        ];
        let options = unsafe { Options::new(&table, values.as_ptr()) };
        assert_eq!(options.i64("window"), Ok(7));
        assert_eq!(options.f64s("rates"), Ok(vec![0.5, 2.0]));
        assert_eq!(options.has("loss"), Ok(false));
        assert!(options.string("loss").unwrap_err().sentence.contains("is not set and has no default"));
        assert!(options.f64("window").unwrap_err().sentence.contains("as another type"));
        assert!(options.i64("width").unwrap_err().sentence.contains("does not declare"));
    }
}
