//! headroom/abi.h of release 1.0, as far as a datasource needs it. That header has the meaning of every member;
//! tests/layout.rs compares sizes and offsets.
#![allow(non_camel_case_types, missing_docs)]

use std::os::raw::{c_char, c_void};

pub const ABI_MAJOR: u16 = 1;
pub const ABI_MINOR: u16 = 0;
pub const MAGIC: u32 = 0x524D_5248;

pub type hr_status = i32;
pub const OK: hr_status = 0;
pub const INVALID_ARGUMENT: hr_status = 1;
pub const UNSUPPORTED: hr_status = 2;
pub const IO: hr_status = 3;
pub const OUT_OF_MEMORY: hr_status = 4;
pub const CANCELLED: hr_status = 5;
pub const INTERNAL: hr_status = 6;
pub const NOT_FOUND: hr_status = 7;
pub const DATA_CORRUPT: hr_status = 8;

pub const DATASOURCE: &str = "headroom.datasource/1";
pub const LOG: &str = "headroom.log/1\0";
pub const ARRAYS: &str = "headroom.arrays/1\0";
pub const STRINGS: &str = "headroom.strings/1\0";
pub const FILES: &str = "headroom.files/1\0";
pub const MEMORY: &str = "headroom.memory/1\0";
pub const CANCEL: &str = "headroom.cancel/1\0";

pub type hr_type = i32;
pub const BOOL: hr_type = 1;
pub const I64: hr_type = 2;
pub const F64: hr_type = 3;
pub const STRING: hr_type = 4;
pub const BYTES: hr_type = 5;
pub const PATH: hr_type = 6;
pub const TABLE: hr_type = 7;
pub const LIST: hr_type = 16;

pub const MAX_DIMS: usize = 8;
pub const FIELD_NORMALIZE: u32 = 1;
pub const SOURCE_NO_AUGMENT: u32 = 1;
pub const READ_AUGMENT: u32 = 1;
pub const WHOLE: u32 = 0xFFFF_FFFF;
pub const LOG_DEBUG: i32 = 1;
pub const LOG_INFO: i32 = 2;
pub const LOG_WARN: i32 = 3;

pub const DL_INT: u8 = 0;
pub const DL_UINT: u8 = 1;
pub const DL_FLOAT: u8 = 2;
pub const DL_BOOL: u8 = 6;

pub enum hr_source {}
pub enum hr_reader {}
pub enum hr_array {}

/// A struct that begins with its `struct_size` and may grow at its end.
///
/// # Safety
/// Its first member is `struct_size: u32`, and all zero is a value of it.
pub unsafe trait Sized32 {}

macro_rules! sized {
    ($($name:ident)*) => { $(unsafe impl Sized32 for $name {})* };
}
sized!(hr_error hr_field hr_group hr_origin hr_array_info hr_array_member hr_attribute hr_log hr_arrays hr_strings
       hr_files hr_memory hr_cancel);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct hr_error {
    pub struct_size: u32,
    pub code: hr_status,
    pub message: [c_char; 504],
}

#[repr(C)]
pub struct hr_plugin {
    pub magic: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub struct_size: u32,
    pub flags: u32,
    pub id: *const c_char,
    pub version: *const c_char,
    pub summary: *const c_char,
    pub torch_tag: *const c_char,
    pub min_host_minor: u16,
    pub reserved0: u16,
    pub reserved1: u32,
    pub init: Option<unsafe extern "C" fn(*const hr_host, *mut hr_error) -> hr_status>,
    pub get_interface: unsafe extern "C" fn(*const c_char) -> *const c_void,
}
// Constants only.
unsafe impl Sync for hr_plugin {}

#[repr(C)]
pub struct hr_host {
    pub struct_size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub name: *const c_char,
    pub version: *const c_char,
    pub torch_tag: *const c_char,
    pub get_service: unsafe extern "C" fn(*const hr_host, *const c_char) -> *const c_void,
}

#[repr(C)]
pub struct hr_note {
    pub magic: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub struct_size: u32,
    pub flags: u32,
    pub min_host_minor: u16,
    pub reserved: u16,
    pub id: [u8; 44],
    pub torch_tag: [u8; 64],
}

#[repr(C)]
pub struct hr_option {
    pub name: *const c_char,
    pub type_: hr_type,
    pub required: u32,
    pub default_value: *const c_char,
    pub min: *const c_char,
    pub max: *const c_char,
    pub choices: *const *const c_char,
    pub help: *const c_char,
    pub table: *const hr_options,
}

#[repr(C)]
pub struct hr_options {
    pub struct_size: u32,
    pub option_size: u32,
    pub count: u64,
    pub options: *const hr_option,
}

#[repr(C)]
pub struct hr_value {
    pub type_: hr_type,
    pub present: u32,
    pub count: u64,
    pub as_: hr_value_as,
}

#[repr(C)]
pub union hr_value_as {
    pub i64: i64,
    pub f64: f64,
    pub string: *const c_char,
    pub i64s: *const i64,
    pub f64s: *const f64,
    pub strings: *const *const c_char,
    pub table: *const hr_value,
    pub tables: *const hr_value,
}

#[repr(C)]
pub struct hr_channel {
    pub struct_size: u32,
    pub reserved: u32,
    pub name: *const c_char,
    pub unit: *const c_char,
    pub mean: f64,
    pub std: f64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hr_field {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub dtype: DLDataType,
    pub ndim: i32,
    pub shape: [i64; MAX_DIMS],
    pub axes: [*const c_char; MAX_DIMS],
    pub unit: *const c_char,
    pub sample_rate_hz: f64,
    pub channel_axis: i32,
    pub reserved: i32,
    pub channels: *const hr_channel,
    pub channel_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hr_group {
    pub struct_size: u32,
    pub reserved: u32,
    pub name: *const c_char,
    pub first: u64,
    pub count: u64,
}

#[repr(C)]
pub struct hr_read {
    pub struct_size: u32,
    pub flags: u32,
    pub split: u32,
    pub field_count: u32,
    pub count: u64,
    pub index: *const u64,
    pub key: *const u64,
    pub fields: *const DLTensor,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hr_origin {
    pub struct_size: u32,
    pub reserved: u32,
    pub path: *const c_char,
    pub dataset: *const c_char,
    pub member: *const c_char,
}

#[repr(C)]
pub struct hr_datasource {
    pub struct_size: u32,
    pub reserved: u32,
    pub options: *const hr_options,
    pub open: unsafe extern "C" fn(*const hr_host, *const hr_value, *mut *mut hr_source, *mut hr_error) -> hr_status,
    pub close: unsafe extern "C" fn(*mut hr_source),
    pub field_count: unsafe extern "C" fn(*const hr_source) -> u32,
    pub field: unsafe extern "C" fn(*const hr_source, u32, *mut hr_field, *mut hr_error) -> hr_status,
    pub split_count: unsafe extern "C" fn(*const hr_source) -> u32,
    pub split: unsafe extern "C" fn(*const hr_source, u32) -> *const c_char,
    pub length: unsafe extern "C" fn(*const hr_source, u32) -> u64,
    pub group_count: unsafe extern "C" fn(*const hr_source, u32) -> u64,
    pub group: unsafe extern "C" fn(*const hr_source, u32, u64, *mut hr_group, *mut hr_error) -> hr_status,
    pub cost: unsafe extern "C" fn(*const hr_source, u32, u64) -> f64,
    pub file_count: unsafe extern "C" fn(*const hr_source) -> u64,
    pub file: unsafe extern "C" fn(*const hr_source, u64) -> *const c_char,
    pub reader_open: unsafe extern "C" fn(*mut hr_source, *mut *mut hr_reader, *mut hr_error) -> hr_status,
    pub reader_close: unsafe extern "C" fn(*mut hr_reader),
    pub read: unsafe extern "C" fn(*mut hr_reader, *const hr_read, *mut hr_error) -> hr_status,
    pub traits: unsafe extern "C" fn(*const hr_source) -> u32,
    pub origin: unsafe extern "C" fn(*const hr_source, u32, u64, *mut hr_origin, *mut hr_error) -> hr_status,
}

#[repr(C)]
pub struct hr_log {
    pub struct_size: u32,
    pub reserved: u32,
    pub enabled: unsafe extern "C" fn(*const hr_host, i32) -> i32,
    pub write: unsafe extern "C" fn(*const hr_host, i32, *const c_char),
}

#[repr(C)]
pub struct hr_array_info {
    pub struct_size: u32,
    pub ndim: i32,
    pub shape: [u64; MAX_DIMS],
    pub chunk: [u64; MAX_DIMS],
    pub dtype: DLDataType,
    pub member_count: u32,
    pub filtered: u32,
    pub element_bytes: u64,
}

#[repr(C)]
pub struct hr_array_member {
    pub struct_size: u32,
    pub ndim: i32,
    pub shape: [u64; MAX_DIMS],
    pub name: *const c_char,
    pub dtype: DLDataType,
    pub offset: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hr_array_target {
    pub member: u32,
    pub dtype: DLDataType,
    pub data: *mut c_void,
    pub stride_bytes: u64,
}

#[repr(C)]
pub struct hr_attribute {
    pub struct_size: u32,
    pub type_: hr_type,
    pub i64: i64,
    pub f64: f64,
    pub string: [c_char; 512],
}

/// Told of a name and whether it holds others; ends the listing by anything but 0.
pub type visit_entry = unsafe extern "C" fn(*mut c_void, *const c_char, i32) -> i32;
pub type visit_text = unsafe extern "C" fn(*mut c_void, *const c_char) -> i32;

#[repr(C)]
pub struct hr_arrays {
    pub struct_size: u32,
    pub reserved: u32,
    pub open: unsafe extern "C" fn(
        *const hr_host,
        *const c_char,
        *const c_char,
        *mut *mut hr_array,
        *mut hr_error,
    ) -> hr_status,
    pub close: unsafe extern "C" fn(*mut hr_array),
    pub info: unsafe extern "C" fn(*const hr_array, *mut hr_array_info, *mut hr_error) -> hr_status,
    pub member: unsafe extern "C" fn(*const hr_array, u32, *mut hr_array_member, *mut hr_error) -> hr_status,
    pub read_box: unsafe extern "C" fn(
        *mut hr_array,
        *const u64,
        *const u64,
        *const hr_array_target,
        u32,
        *mut hr_error,
    ) -> hr_status,
    pub read_box_check_finite: unsafe extern "C" fn(
        *mut hr_array,
        *const u64,
        *const u64,
        *const hr_array_target,
        u32,
        *mut i32,
        *mut hr_error,
    ) -> hr_status,
    pub list: unsafe extern "C" fn(
        *const hr_host,
        *const c_char,
        *const c_char,
        visit_entry,
        *mut c_void,
        *mut hr_error,
    ) -> hr_status,
    pub attribute: unsafe extern "C" fn(
        *const hr_host,
        *const c_char,
        *const c_char,
        *const c_char,
        *mut hr_attribute,
        *mut hr_error,
    ) -> hr_status,
}

#[repr(C)]
pub struct hr_strings {
    pub struct_size: u32,
    pub reserved: u32,
    pub read: unsafe extern "C" fn(
        *const hr_host,
        *const c_char,
        *const c_char,
        visit_text,
        *mut c_void,
        *mut hr_error,
    ) -> hr_status,
    pub attribute: unsafe extern "C" fn(
        *const hr_host,
        *const c_char,
        *const c_char,
        *const c_char,
        visit_text,
        *mut c_void,
        *mut hr_error,
    ) -> hr_status,
}

#[repr(C)]
pub struct hr_files {
    pub struct_size: u32,
    pub reserved: u32,
    pub size: unsafe extern "C" fn(*const hr_host, *const c_char, *mut u64, *mut hr_error) -> hr_status,
    pub pread: unsafe extern "C" fn(*const hr_host, *const c_char, u64, *mut c_void, u64, *mut hr_error) -> hr_status,
    pub list: unsafe extern "C" fn(*const hr_host, *const c_char, visit_entry, *mut c_void, *mut hr_error) -> hr_status,
}

#[repr(C)]
pub struct hr_memory {
    pub struct_size: u32,
    pub reserved: u32,
    pub account: unsafe extern "C" fn(*const hr_host, *const c_char, i64),
    pub scratch: unsafe extern "C" fn(*const hr_host, u64, *mut *mut c_void, *mut hr_error) -> hr_status,
    pub scratch_free: unsafe extern "C" fn(*const hr_host, *mut c_void),
}

#[repr(C)]
pub struct hr_cancel {
    pub struct_size: u32,
    pub reserved: u32,
    pub cancelled: unsafe extern "C" fn(*const hr_host) -> i32,
}
