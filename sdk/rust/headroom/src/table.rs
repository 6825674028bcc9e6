//! The C table of a source: hr_source is an author's object with its description, hr_reader a reader of it.

use crate::abi::*;
use crate::error::{Error, Result, Status};
use crate::field::NativeField;
use crate::guard::{guard, guard_or};
use crate::host::Host;
use crate::option::{native_table, Opt};
use crate::options::Options;
use crate::sample::Sample;
use crate::source::{Datasource, Origin, Reader};
use crate::text::{c_path, c_string, store};
use std::any::TypeId;
use std::ffi::CString;
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::null;
use std::sync::{Arc, Mutex, PoisonError};

/// What the host asks of a type without an object of it. For ever.
pub(crate) struct Registered {
    options: Vec<Opt>,
    pub(crate) table: hr_datasource,
}
// SAFETY: constants, and functions of any thread.
unsafe impl Send for Registered {}
unsafe impl Sync for Registered {}

/// The same for one type each time.
pub(crate) fn registered<S: Datasource>() -> &'static Registered {
    static ALL: Mutex<Vec<(TypeId, &'static Registered)>> = Mutex::new(Vec::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = all.iter().find(|entry| entry.0 == TypeId::of::<S>()) {
        return found;
    }
    let options = S::options();
    let table = datasource::<S>(native_table(&options));
    let made: &'static Registered = Box::leak(Box::new(Registered { options, table }));
    all.push((TypeId::of::<S>(), made));
    made
}

fn datasource<S: Datasource>(options: *const hr_options) -> hr_datasource {
    hr_datasource {
        struct_size: size_of::<hr_datasource>() as u32,
        reserved: 0,
        options,
        open: open::<S>,
        close: close::<S>,
        field_count: field_count::<S>,
        field: field::<S>,
        split_count: split_count::<S>,
        split: split::<S>,
        length: length::<S>,
        group_count: group_count::<S>,
        group: group::<S>,
        cost: cost::<S>,
        file_count: file_count::<S>,
        file: file::<S>,
        reader_open: reader_open::<S>,
        reader_close: reader_close::<S>,
        read: read::<S>,
        traits: traits::<S>,
        origin: origin::<S>,
    }
}

struct NativeGroup {
    name: CString,
    first: u64,
    count: u64,
}

struct NativeOrigin {
    path: CString,
    dataset: CString,
    member: Option<CString>,
}

struct Split {
    name: CString,
    length: u64,
    /// Empty: each sample is its own group.
    groups: Vec<NativeGroup>,
}

/// hr_source.
struct Opened<S> {
    source: S,
    fields: Vec<NativeField>,
    splits: Vec<Split>,
    files: Vec<CString>,
    /// By field.
    origins: Vec<Vec<NativeOrigin>>,
    traits: u32,
}

impl<S: Datasource> Opened<S> {
    fn new(source: S) -> Result<Opened<S>> {
        let fields = source.fields().iter().map(NativeField::new).collect::<Result<Vec<_>>>()?;
        let names = source.splits();
        let splits = names.iter().enumerate().map(|(i, name)| describe_split(&source, i as u32, name)).collect();
        let files = source.files().iter().map(|file| c_path(file)).collect::<Result<Vec<_>>>()?;
        let origins = (0..fields.len()).map(|i| native_origins(&source.origins(i))).collect::<Result<Vec<_>>>()?;
        let traits = if source.augments() { 0 } else { SOURCE_NO_AUGMENT };
        Ok(Opened { source, fields, splits, files, origins, traits })
    }

    fn group(&self, split: u32, i: u64) -> Option<hr_group> {
        let of = self.splits.get(split as usize)?;
        let (name, first, count) = match of.groups.get(i as usize) {
            Some(group) => (group.name.as_ptr(), group.first, group.count),
            None if of.groups.is_empty() && i < of.length => (b"\0".as_ptr() as *const c_char, i, 1),
            None => return None,
        };
        Some(hr_group { struct_size: size_of::<hr_group>() as u32, reserved: 0, name, first, count })
    }
}

fn describe_split<S: Datasource>(source: &S, split: u32, name: &str) -> Split {
    let groups = source.groups(split);
    let native =
        groups.iter().map(|group| NativeGroup { name: c_string(&group.name), first: group.first, count: group.count });
    Split { name: c_string(name), length: source.length(split), groups: native.collect() }
}

fn native_origins(origins: &[Origin]) -> Result<Vec<NativeOrigin>> {
    let native = |origin: &Origin| {
        Ok(NativeOrigin {
            path: c_path(&origin.file)?,
            dataset: c_string(&origin.dataset),
            member: if origin.member.is_empty() { None } else { Some(c_string(&origin.member)) },
        })
    };
    origins.iter().map(native).collect()
}

fn no_such(what: &str) -> Error {
    Error::new(Status::NotFound, format!("no such {}", what))
}

// SAFETY of what follows: the host passes objects that open() and reader_open() made and that it has not closed, and
// pointers that abi.h describes.

unsafe fn opened<'a, S>(source: *const hr_source) -> &'a Opened<S> {
    &*(source as *const Opened<S>)
}

unsafe extern "C" fn open<S: Datasource>(
    host: *const hr_host,
    values: *const hr_value,
    out: *mut *mut hr_source,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        let options = Options::new(&registered::<S>().options, values);
        let made = Arc::new(Opened::new(S::open(&Host::new(host), &options)?)?);
        *out = Arc::into_raw(made) as *mut hr_source;
        Ok(())
    })
}

unsafe extern "C" fn close<S: Datasource>(source: *mut hr_source) {
    guard_or((), || drop(Arc::from_raw(source as *const Opened<S>)))
}

unsafe extern "C" fn field_count<S: Datasource>(source: *const hr_source) -> u32 {
    opened::<S>(source).fields.len() as u32
}

unsafe extern "C" fn field<S: Datasource>(
    source: *const hr_source,
    i: u32,
    out: *mut hr_field,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        let found = opened::<S>(source).fields.get(i as usize).ok_or_else(|| no_such("field"))?;
        store(out, &found.native);
        Ok(())
    })
}

unsafe extern "C" fn split_count<S: Datasource>(source: *const hr_source) -> u32 {
    opened::<S>(source).splits.len() as u32
}

unsafe extern "C" fn split<S: Datasource>(source: *const hr_source, i: u32) -> *const c_char {
    opened::<S>(source).splits.get(i as usize).map_or(null(), |split| split.name.as_ptr())
}

unsafe extern "C" fn length<S: Datasource>(source: *const hr_source, split: u32) -> u64 {
    opened::<S>(source).splits.get(split as usize).map_or(0, |split| split.length)
}

unsafe extern "C" fn group_count<S: Datasource>(source: *const hr_source, split: u32) -> u64 {
    let count = |split: &Split| if split.groups.is_empty() { split.length } else { split.groups.len() as u64 };
    opened::<S>(source).splits.get(split as usize).map_or(0, count)
}

unsafe extern "C" fn group<S: Datasource>(
    source: *const hr_source,
    split: u32,
    i: u64,
    out: *mut hr_group,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        store(out, &opened::<S>(source).group(split, i).ok_or_else(|| no_such("group"))?);
        Ok(())
    })
}

unsafe extern "C" fn cost<S: Datasource>(source: *const hr_source, split: u32, index: u64) -> f64 {
    guard_or(1.0, || opened::<S>(source).source.cost(split, index))
}

unsafe extern "C" fn file_count<S: Datasource>(source: *const hr_source) -> u64 {
    opened::<S>(source).files.len() as u64
}

unsafe extern "C" fn file<S: Datasource>(source: *const hr_source, i: u64) -> *const c_char {
    opened::<S>(source).files.get(i as usize).map_or(null(), |file| file.as_ptr())
}

unsafe extern "C" fn traits<S: Datasource>(source: *const hr_source) -> u32 {
    opened::<S>(source).traits
}

unsafe extern "C" fn origin<S: Datasource>(
    source: *const hr_source,
    field: u32,
    i: u64,
    out: *mut hr_origin,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        let of_field = opened::<S>(source).origins.get(field as usize);
        let found = of_field.and_then(|all| all.get(i as usize)).ok_or_else(|| no_such("origin"))?;
        let native = hr_origin {
            struct_size: size_of::<hr_origin>() as u32,
            reserved: 0,
            path: found.path.as_ptr(),
            dataset: found.dataset.as_ptr(),
            member: found.member.as_ref().map_or(null(), |member| member.as_ptr()),
        };
        store(out, &native);
        Ok(())
    })
}

/// hr_reader.
struct OpenedReader<S: Datasource> {
    reader: S::Reader,
    opened: Arc<Opened<S>>,
    taken: Vec<bool>,
}

unsafe extern "C" fn reader_open<S: Datasource>(
    source: *mut hr_source,
    out: *mut *mut hr_reader,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        let shared = source as *const Opened<S>;
        Arc::increment_strong_count(shared);
        let opened = Arc::from_raw(shared);
        let made = OpenedReader { reader: opened.source.reader()?, opened, taken: Vec::new() };
        *out = Box::into_raw(Box::new(made)) as *mut hr_reader;
        Ok(())
    })
}

unsafe extern "C" fn reader_close<S: Datasource>(reader: *mut hr_reader) {
    guard_or((), || drop(Box::from_raw(reader as *mut OpenedReader<S>)))
}

unsafe extern "C" fn read<S: Datasource>(
    reader: *mut hr_reader,
    request: *const hr_read,
    error: *mut hr_error,
) -> hr_status {
    guard(error, || {
        let OpenedReader { reader, opened, taken } = &mut *(reader as *mut OpenedReader<S>);
        let request = &*request;
        for at in 0..request.count as usize {
            taken.clear();
            taken.resize(request.field_count as usize, false);
            reader.read(&opened.source, &mut Sample::new(request, at, taken))?;
        }
        Ok(())
    })
}
