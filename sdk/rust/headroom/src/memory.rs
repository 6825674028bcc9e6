//! Memory of the host (headroom.memory/1).

use crate::abi::{self, hr_memory};
use crate::error::{require, Result};
use crate::field::Element;
use crate::host::Host;
use std::ops::{Deref, DerefMut};
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::slice;

/// Values in 64-byte aligned memory, on the host's ledger, zero at first. Where the memory limit leaves no room this is
/// `Status::OutOfMemory`, which the host can act on; a `Vec` for which there is no memory ends the process.
pub struct Scratch<T: Element> {
    host: Host,
    api: &'static hr_memory,
    data: *mut T,
    count: usize,
}
// SAFETY: it owns its memory, and services are of any thread.
unsafe impl<T: Element> Send for Scratch<T> {}
unsafe impl<T: Element> Sync for Scratch<T> {}

impl<T: Element> Scratch<T> {
    pub fn new(host: &Host, count: usize) -> Result<Scratch<T>> {
        let api = host.service::<hr_memory>(abi::MEMORY)?;
        let bytes = (count as u64).saturating_mul(std::mem::size_of::<T>() as u64);
        let mut data: *mut c_void = null_mut();
        require(|error| unsafe { (api.scratch)(host.native, bytes, &mut data, error) })?;
        // SAFETY: `bytes` bytes are there, and zero is a value of every Element.
        unsafe { std::ptr::write_bytes(data as *mut u8, 0, bytes as usize) };
        Ok(Scratch { host: *host, api, data: data as *mut T, count })
    }
}

impl<T: Element> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: scratch() made it, and this is its only owner.
        unsafe { (self.api.scratch_free)(self.host.native, self.data as *mut c_void) }
    }
}

impl<T: Element> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: here and below, `count` values are there for as long as self.
        if self.count == 0 {
            &[]
        } else {
            unsafe { slice::from_raw_parts(self.data, self.count) }
        }
    }
}

impl<T: Element> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.count == 0 {
            &mut []
        } else {
            unsafe { slice::from_raw_parts_mut(self.data, self.count) }
        }
    }
}
