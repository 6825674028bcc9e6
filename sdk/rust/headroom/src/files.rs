//! Files of other formats, folders, and what lies in HDF5 files: names and strings.

use crate::abi::{self, hr_arrays, hr_error, hr_files, hr_status, hr_strings};
use crate::error::{require, Error, Result, Status};
use crate::guard::guard_or;
use crate::host::Host;
use crate::text::{c_path, c_string, from_c};
use std::os::raw::{c_char, c_void};
use std::path::Path;

/// A name in a folder (is_container: a folder) or in a group of an HDF5 file (is_container: a group).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub is_container: bool,
}

impl Host {
    pub fn file_size(&self, file: &Path) -> Result<u64> {
        let api = self.service::<hr_files>(abi::FILES)?;
        let path = c_path(file)?;
        let mut bytes = 0;
        require(|error| unsafe { (api.size)(self.native, path.as_ptr(), &mut bytes, error) })?;
        Ok(bytes)
    }

    /// Fills `to` with what lies at `offset`.
    pub fn pread(&self, file: &Path, offset: u64, to: &mut [u8]) -> Result<()> {
        let api = self.service::<hr_files>(abi::FILES)?;
        let path = c_path(file)?;
        let (data, bytes) = (to.as_mut_ptr() as *mut c_void, to.len() as u64);
        require(|error| unsafe { (api.pread)(self.native, path.as_ptr(), offset, data, bytes, error) })
    }

    pub fn read_text(&self, file: &Path) -> Result<String> {
        let mut bytes = Vec::new();
        let size = self.file_size(file)? as usize;
        bytes.try_reserve_exact(size)?;
        bytes.resize(size, 0);
        self.pread(file, 0, &mut bytes)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::new(Status::DataCorrupt, format!("{} is not UTF-8 text", file.display())))
    }

    /// In byte order. Names that begin with "." are left out.
    pub fn list_folder(&self, folder: &Path) -> Result<Vec<Entry>> {
        let api = self.service::<hr_files>(abi::FILES)?;
        let path = c_path(folder)?;
        collect_entries(|context, error| unsafe { (api.list)(self.native, path.as_ptr(), add_entry, context, error) })
    }

    /// What lies directly below `group` of an HDF5 file, in byte order.
    pub fn list_arrays(&self, file: &Path, group: &str) -> Result<Vec<Entry>> {
        let api = self.service::<hr_arrays>(abi::ARRAYS)?;
        let (path, group) = (c_path(file)?, c_string(group));
        collect_entries(|context, error| unsafe {
            (api.list)(self.native, path.as_ptr(), group.as_ptr(), add_entry, context, error)
        })
    }

    /// A dataset of strings in an HDF5 file, at most 2^20 of them.
    pub fn strings(&self, file: &Path, dataset: &str) -> Result<Vec<String>> {
        let api = self.service::<hr_strings>(abi::STRINGS)?;
        let (path, dataset) = (c_path(file)?, c_string(dataset));
        collect_texts(|context, error| unsafe {
            (api.read)(self.native, path.as_ptr(), dataset.as_ptr(), add_text, context, error)
        })
    }

    /// An attribute of a group or dataset that is one string or a list of them. None where there is none of that name.
    pub fn attribute_strings(&self, file: &Path, object: &str, name: &str) -> Result<Option<Vec<String>>> {
        let api = self.service::<hr_strings>(abi::STRINGS)?;
        let (path, object, name) = (c_path(file)?, c_string(object), c_string(name));
        none_if_absent(collect_texts(|context, error| unsafe {
            (api.attribute)(self.native, path.as_ptr(), object.as_ptr(), name.as_ptr(), add_text, context, error)
        }))
    }
}

pub(crate) fn none_if_absent<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(problem) if problem.status == Status::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn collect_entries(call: impl FnOnce(*mut c_void, *mut hr_error) -> hr_status) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    require(|error| call(&mut entries as *mut Vec<Entry> as *mut c_void, error))?;
    Ok(entries)
}

fn collect_texts(call: impl FnOnce(*mut c_void, *mut hr_error) -> hr_status) -> Result<Vec<String>> {
    let mut texts: Vec<String> = Vec::new();
    require(|error| call(&mut texts as *mut Vec<String> as *mut c_void, error))?;
    Ok(texts)
}

// SAFETY of both: `context` is the list of the collect_ function that runs, and the host calls from its thread.

unsafe extern "C" fn add_entry(context: *mut c_void, name: *const c_char, is_container: i32) -> i32 {
    guard_or(1, || {
        let entries = &mut *(context as *mut Vec<Entry>);
        entries.push(Entry { name: from_c(name), is_container: is_container != 0 });
        0
    })
}

unsafe extern "C" fn add_text(context: *mut c_void, value: *const c_char) -> i32 {
    guard_or(1, || {
        (*(context as *mut Vec<String>)).push(from_c(value));
        0
    })
}
