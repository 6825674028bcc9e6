//! Strings and structs as C has them.

use crate::abi::Sized32;
use crate::error::{Error, Result, Status};
use std::ffi::{CStr, CString, OsStr};
use std::mem::size_of;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A string for C. One with a NUL inside ends there, as C would read it.
pub(crate) fn c_string(text: impl AsRef<[u8]>) -> CString {
    let bytes = text.as_ref();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(Status::InvalidArgument, format!("{:?} is no path: it has a NUL inside", path)))
}

/// # Safety
/// `text` is null or a string that ends with NUL. "" for null.
pub(crate) unsafe fn from_c(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// # Safety
/// As `from_c`.
pub(crate) unsafe fn path_from_c(text: *const c_char) -> PathBuf {
    if text.is_null() {
        return PathBuf::new();
    }
    PathBuf::from(OsStr::from_bytes(CStr::from_ptr(text).to_bytes()))
}

/// Up to the first NUL, or all of it.
pub(crate) fn from_array(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// As much of `text` as fits with its NUL, cut between characters.
pub(crate) fn copy_into(text: &str, out: &mut [c_char]) {
    let mut length = text.len().min(out.len() - 1);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    for (to, &from) in out.iter_mut().zip(&text.as_bytes()[..length]) {
        *to = from as c_char;
    }
    out[length] = 0;
}

/// All zero, but for its `struct_size`: for the host to fill.
pub(crate) fn empty<T: Sized32>() -> T {
    // SAFETY: Sized32 says that zero is a value, and where struct_size lies.
    unsafe {
        let mut value: T = std::mem::zeroed();
        *(&mut value as *mut T as *mut u32) = size_of::<T>() as u32;
        value
    }
}

/// Fills the caller's struct, whose struct_size is the room it has, and sets that to what was filled.
///
/// # Safety
/// `out` is a caller's struct of this type, of any release.
pub(crate) unsafe fn store<T: Sized32>(out: *mut T, value: &T) {
    let room = *(out as *const u32);
    let filled = room.min(size_of::<T>() as u32);
    std::ptr::copy_nonoverlapping(value as *const T as *const u8, out as *mut u8, filled as usize);
    *(out as *mut u32) = filled;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_is_cut_between_characters() {
        let mut room = [1 as c_char; 4];
        copy_into("aéé", &mut room);
        assert_eq!(from_array(&room), "aé");
    }

    #[test]
    fn text_for_c_ends_at_its_first_nul() {
        assert_eq!(c_string("ab\0c").as_bytes(), b"ab");
    }

    #[test]
    fn a_smaller_struct_of_an_older_host_is_filled_no_further() {
        let value = crate::abi::hr_group { struct_size: 32, reserved: 0, name: std::ptr::null(), first: 3, count: 4 };
        let mut out = crate::abi::hr_group { struct_size: 24, reserved: 9, name: std::ptr::null(), first: 0, count: 7 };
        unsafe { store(&mut out, &value) };
        assert_eq!((out.struct_size, out.first, out.count), (24, 3, 7));
    }
}
