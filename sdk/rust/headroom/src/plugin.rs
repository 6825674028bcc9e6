//! What the macro exports: the constant, its table, and the note that the host reads before it runs any of this.

use crate::abi::{self, hr_note, hr_plugin};
use crate::guard::guard_or;
use crate::source::Datasource;
use crate::table::registered;
use std::ffi::CStr;
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::ptr::null;

/// One whole ELF note, as readelf -n expects it.
#[repr(C, align(4))]
pub struct NoteSection {
    name_size: u32,
    descriptor_size: u32,
    kind: u32,
    name: [u8; 12],
    note: hr_note,
}

pub const fn note(id: &str) -> NoteSection {
    NoteSection {
        name_size: 9,
        descriptor_size: size_of::<hr_note>() as u32,
        kind: 1,
        name: *b"headroom\0\0\0\0",
        note: hr_note {
            magic: abi::MAGIC,
            abi_major: abi::ABI_MAJOR,
            abi_minor: abi::ABI_MINOR,
            struct_size: size_of::<hr_note>() as u32,
            flags: 0,
            min_host_minor: 0,
            reserved: 0,
            id: checked_id(id.as_bytes()),
            torch_tag: [0; 64],
        },
    }
}

const fn checked_id(id: &[u8]) -> [u8; 44] {
    let mut text = [0; 44];
    let mut i = 0;
    while i < id.len() {
        let begins = id[i] >= b'a' && id[i] <= b'z';
        if i + 1 >= text.len() || !(begins || (i > 0 && (id[i] == b'_' || (id[i] >= b'0' && id[i] <= b'9')))) {
            panic!("the package's name in Cargo.toml is the plugin's id: a lower-case letter, then lower-case letters, digits or _, 43 at most");
        }
        text[i] = id[i];
        i += 1;
    }
    text
}

/// The three texts end with NUL.
pub const fn header(
    id: &'static str,
    version: &'static str,
    summary: &'static str,
    get_interface: unsafe extern "C" fn(*const c_char) -> *const c_void,
) -> hr_plugin {
    if summary.len() <= 1 {
        panic!("Cargo.toml needs a description: one line for `headroom plugins list`");
    }
    hr_plugin {
        magic: abi::MAGIC,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        struct_size: size_of::<hr_plugin>() as u32,
        flags: 0,
        id: id.as_ptr() as *const c_char,
        version: version.as_ptr() as *const c_char,
        summary: summary.as_ptr() as *const c_char,
        torch_tag: null(),
        min_host_minor: 0,
        reserved0: 0,
        reserved1: 0,
        init: None,
        get_interface,
    }
}

/// # Safety
/// `id` is a string that ends with NUL.
pub unsafe fn interface<S: Datasource>(id: *const c_char) -> *const c_void {
    if CStr::from_ptr(id).to_bytes() != abi::DATASOURCE.as_bytes() {
        return null();
    }
    guard_or(null(), || &registered::<S>().table as *const abi::hr_datasource as *const c_void)
}

/// Makes the library a plugin with the datasource of this type. Its id, version and summary are the package's name,
/// version and description in Cargo.toml. Once a library.
#[macro_export]
macro_rules! headroom_datasource {
    ($source:ty) => {
        #[cfg(panic = "abort")]
        compile_error!("a panic must not end the host's process: remove panic = \"abort\" from Cargo.toml");

        #[allow(unsafe_code, non_upper_case_globals)]
        const _: () = {
            unsafe extern "C" fn get_interface(id: *const ::std::os::raw::c_char) -> *const ::std::os::raw::c_void {
                $crate::plugin::interface::<$source>(id)
            }
            #[used]
            #[link_section = ".note.headroom"]
            static note: $crate::plugin::NoteSection = $crate::plugin::note(env!("CARGO_PKG_NAME"));
            #[no_mangle]
            pub static headroom_plugin: $crate::abi::hr_plugin = $crate::plugin::header(
                concat!(env!("CARGO_PKG_NAME"), "\0"),
                concat!(env!("CARGO_PKG_VERSION"), "\0"),
                concat!(env!("CARGO_PKG_DESCRIPTION"), "\0"),
                get_interface,
            );
        };
    };
}
