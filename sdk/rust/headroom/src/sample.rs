//! One sample that the host wants read.

use crate::abi::{hr_read, DLTensor, READ_AUGMENT};
use crate::error::{Error, Result};
use crate::field::{holds, Element};
use std::slice;

/// Its place, and the slots to fill. Borrowed for the call.
pub struct Sample<'a> {
    request: &'a hr_read,
    at: usize,
    /// By field: its slot of this sample was handed out.
    taken: &'a mut [bool],
}

impl<'a> Sample<'a> {
    /// # Safety
    /// `request` is the host's, and no other Sample of it has the same `at`. `taken` has its field_count, all false.
    pub(crate) unsafe fn new(request: &'a hr_read, at: usize, taken: &'a mut [bool]) -> Sample<'a> {
        Sample { request, at, taken }
    }

    pub fn split(&self) -> u32 {
        self.request.split
    }
    /// In its split, below `length`.
    pub fn index(&self) -> u64 {
        // SAFETY: here and below, arrays of the request have `count` elements, and `at` is less.
        unsafe { *self.request.index.add(self.at) }
    }
    /// What randomness is drawn from: see `draws`.
    pub fn key(&self) -> u64 {
        unsafe { *self.request.key.add(self.at) }
    }
    /// True: draw jitter, rotation and crops from the key. False: draw nothing.
    pub fn augment(&self) -> bool {
        self.request.flags & READ_AUGMENT != 0
    }
    pub fn wanted(&self, field: usize) -> bool {
        self.tensor(field).map_or(false, |tensor| !tensor.data.is_null())
    }

    /// The slot of a field: one value an element, row-major; empty if the field is not wanted. T is the type that the
    /// field declares, `u8` for `DType::Bool`. A field's slot is handed out once, so that those of several fields may be
    /// held at the same time.
    pub fn slot<T: Element>(&mut self, field: usize) -> Result<&'a mut [T]> {
        if !holds::<T>(self.tensor(field)?.dtype) {
            return Err(Error::internal("the plugin fills a field with another type than it declared"));
        }
        let (data, elements) = self.take(field)?;
        // SAFETY: take() hands out each piece of the host's memory once; it is aligned for its type.
        Ok(if elements == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data as *mut T, elements) } })
    }

    /// The same as bytes, for a type that is known at run time only.
    pub fn bytes(&mut self, field: usize) -> Result<&'a mut [u8]> {
        let size = usize::from(self.tensor(field)?.dtype.bits) / 8;
        let (data, elements) = self.take(field)?;
        // SAFETY: as above.
        Ok(if elements == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, elements * size) } })
    }

    fn tensor(&self, field: usize) -> Result<&'a DLTensor> {
        if field >= self.taken.len() {
            return Err(Error::internal(format!("the plugin fills a field {} that it does not have", field)));
        }
        Ok(unsafe { &*self.request.fields.add(field) })
    }

    /// Where the slot begins, and its number of elements.
    fn take(&mut self, field: usize) -> Result<(*mut u8, usize)> {
        let tensor = self.tensor(field)?;
        if tensor.data.is_null() {
            return Ok((std::ptr::null_mut(), 0));
        }
        if std::mem::replace(&mut self.taken[field], true) {
            return Err(Error::internal(format!("the plugin asks twice for the slot of field {} of a sample", field)));
        }
        // SAFETY: the slots of a field are [count, field.shape...], contiguous.
        unsafe {
            let extents = slice::from_raw_parts(tensor.shape, tensor.ndim as usize);
            let elements: usize = extents[1..].iter().map(|&extent| extent as usize).product();
            let first = (tensor.data as *mut u8).add(tensor.byte_offset as usize);
            Ok((first.add(self.at * elements * usize::from(tensor.dtype.bits) / 8), elements))
        }
    }
}
