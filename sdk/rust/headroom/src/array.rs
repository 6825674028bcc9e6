//! HDF5 datasets, read by the host (headroom.arrays/1): in parallel, with caches under the memory limit.

use crate::abi::{self, hr_array, hr_array_info, hr_array_member, hr_array_target, hr_arrays};
use crate::error::{require, Error, Result, Status};
use crate::field::{DType, Element};
use crate::host::Host;
use crate::text::{c_path, c_string, empty, from_c};
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::path::Path;
use std::ptr::null_mut;

/// A member of a compound.
#[derive(Clone, Debug)]
pub struct ArrayMember {
    pub name: String,
    /// None: a type that the host does not convert.
    pub dtype: Option<DType>,
    /// Of an array member; empty: a scalar.
    pub shape: Vec<u64>,
    /// Bytes into the record.
    pub offset: u64,
}

#[derive(Clone, Debug)]
pub struct ArrayInfo {
    pub shape: Vec<u64>,
    /// Empty: contiguous.
    pub chunk: Vec<u64>,
    /// None: a compound.
    pub dtype: Option<DType>,
    /// Of a compound.
    pub members: Vec<ArrayMember>,
    /// Compressed or otherwise filtered.
    pub filtered: bool,
    /// Of one element or whole record in the file.
    pub element_bytes: u64,
}

/// Where the values of a box go: all elements, or one member of all records, converted to the type of the slice.
pub struct Target<'a> {
    native: hr_array_target,
    /// None: the plain elements.
    member: Option<usize>,
    room: u64,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> Target<'a> {
    pub fn whole<T: Element>(to: &'a mut [T]) -> Target<'a> {
        Target::new(to, abi::WHOLE, None)
    }
    /// `member` is a place in `ArrayInfo::members`.
    pub fn member<T: Element>(member: usize, to: &'a mut [T]) -> Target<'a> {
        Target::new(to, member as u32, Some(member))
    }
    fn new<T: Element>(to: &'a mut [T], index: u32, member: Option<usize>) -> Target<'a> {
        let native = hr_array_target {
            member: index,
            dtype: T::DTYPE.native(),
            data: to.as_mut_ptr() as *mut c_void,
            stride_bytes: 0,
        };
        Target { native, member, room: to.len() as u64, borrowed: PhantomData }
    }
}

/// One HDF5 dataset. Many threads may read it at once.
pub struct Array {
    api: &'static hr_arrays,
    handle: *mut hr_array,
    name: String,
    info: ArrayInfo,
}
// SAFETY: abi.h lets many threads read an array at once, and any of them close it.
unsafe impl Send for Array {}
unsafe impl Sync for Array {}

impl Array {
    pub fn open(host: &Host, file: &Path, dataset: &str) -> Result<Array> {
        let api = host.service::<hr_arrays>(abi::ARRAYS)?;
        let (path, inside) = (c_path(file)?, c_string(dataset));
        let mut handle = null_mut();
        require(|error| unsafe { (api.open)(host.native, path.as_ptr(), inside.as_ptr(), &mut handle, error) })?;
        let nothing = ArrayInfo {
            shape: Vec::new(),
            chunk: Vec::new(),
            dtype: None,
            members: Vec::new(),
            filtered: false,
            element_bytes: 0,
        };
        // Before what may fail: it closes the handle.
        let mut array = Array { api, handle, name: format!("{}:{}", file.display(), dataset), info: nothing };
        array.info = array.describe()?;
        Ok(array)
    }

    pub fn info(&self) -> &ArrayInfo {
        &self.info
    }

    /// The place of a compound's member; `Status::DataCorrupt`, naming what is there, if it has none of that name.
    pub fn member(&self, name: &str) -> Result<usize> {
        self.info.members.iter().position(|member| member.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.info.members.iter().map(|member| member.name.as_str()).collect();
            let there = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
            Error::new(Status::DataCorrupt, format!("{} has no member '{}'; it has {}", self.name, name, there))
        })
    }

    /// Reads the box [start, start + count), each with an extent an axis, into every target.
    pub fn read_box(&self, start: &[u64], count: &[u64], targets: &mut [Target]) -> Result<()> {
        let native = self.native_targets(start, count, targets)?;
        require(|error| unsafe {
            (self.api.read_box)(
                self.handle,
                start.as_ptr(),
                count.as_ptr(),
                native.as_ptr(),
                native.len() as u32,
                error,
            )
        })
    }

    /// The same, and true if every value written to an f32 or f64 is finite. It is checked while it is copied.
    pub fn read_box_check_finite(&self, start: &[u64], count: &[u64], targets: &mut [Target]) -> Result<bool> {
        let native = self.native_targets(start, count, targets)?;
        let mut finite = 0;
        require(|error| unsafe {
            (self.api.read_box_check_finite)(
                self.handle,
                start.as_ptr(),
                count.as_ptr(),
                native.as_ptr(),
                native.len() as u32,
                &mut finite,
                error,
            )
        })?;
        Ok(finite != 0)
    }

    /// Rows [first, first + count) of axis 0, all of the other axes.
    pub fn read_rows(&self, first: u64, count: u64, targets: &mut [Target]) -> Result<()> {
        let (start, extents) = self.rows(first, count);
        self.read_box(&start, &extents, targets)
    }
    pub fn read_rows_check_finite(&self, first: u64, count: u64, targets: &mut [Target]) -> Result<bool> {
        let (start, extents) = self.rows(first, count);
        self.read_box_check_finite(&start, &extents, targets)
    }

    fn rows(&self, first: u64, count: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut start, mut extents) = (vec![0; self.info.shape.len()], self.info.shape.clone());
        if let (Some(begin), Some(rows)) = (start.first_mut(), extents.first_mut()) {
            *begin = first;
            *rows = count;
        }
        (start, extents)
    }

    /// For the host, which writes as many values as the box has: a target with room for another number is refused here.
    fn native_targets(&self, start: &[u64], count: &[u64], targets: &[Target]) -> Result<Vec<hr_array_target>> {
        let axes = self.info.shape.len();
        if start.len() != axes || count.len() != axes {
            return Err(Error::internal(format!("{} has {} axes; the plugin reads a box of others", self.name, axes)));
        }
        let elements = product(count);
        let mut native = Vec::with_capacity(targets.len());
        for target in targets {
            let of_element = match target.member {
                Some(i) => product(&self.info.members.get(i).ok_or_else(|| self.no_member(i))?.shape),
                None => Some(1),
            };
            let values = elements.and_then(|count| count.checked_mul(of_element?));
            if values != Some(target.room) {
                return Err(Error::internal(format!(
                    "the plugin reads {} values of {} into room for {}",
                    values.map_or("too many".to_string(), |count| count.to_string()),
                    self.name,
                    target.room
                )));
            }
            native.push(target.native);
        }
        Ok(native)
    }

    fn no_member(&self, i: usize) -> Error {
        Error::internal(format!(
            "the plugin reads member {} of {}, which has {}",
            i,
            self.name,
            self.info.members.len()
        ))
    }

    fn describe(&self) -> Result<ArrayInfo> {
        let mut info: hr_array_info = empty();
        require(|error| unsafe { (self.api.info)(self.handle, &mut info, error) })?;
        let axes = info.ndim as usize;
        let members = (0..info.member_count).map(|i| self.describe_member(i)).collect::<Result<Vec<_>>>()?;
        Ok(ArrayInfo {
            shape: info.shape[..axes].to_vec(),
            chunk: if info.chunk.iter().any(|&extent| extent != 0) { info.chunk[..axes].to_vec() } else { Vec::new() },
            dtype: DType::of(info.dtype),
            members,
            filtered: info.filtered != 0,
            element_bytes: info.element_bytes,
        })
    }

    fn describe_member(&self, i: u32) -> Result<ArrayMember> {
        let mut member: hr_array_member = empty();
        require(|error| unsafe { (self.api.member)(self.handle, i, &mut member, error) })?;
        Ok(ArrayMember {
            // SAFETY: the host's name lives with the array.
            name: unsafe { from_c(member.name) },
            dtype: DType::of(member.dtype),
            shape: member.shape[..member.ndim as usize].to_vec(),
            offset: member.offset,
        })
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: open() made it, and nothing reads it any more.
        unsafe { (self.api.close)(self.handle) }
    }
}

/// None beyond 2^64.
fn product(extents: &[u64]) -> Option<u64> {
    extents.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent))
}
