//! The structs of `abi` have the sizes and offsets that tests/abi asserts of the C header. Only in Headroom's tree.

use headroom::abi::*;
use std::collections::BTreeMap;
use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

type Layout = BTreeMap<String, usize>;

/// "hr_group" -> its size, "hr_group.first" -> an offset.
fn of_the_c_header() -> Layout {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/abi/layout_1_0.inc");
    let text = std::fs::read_to_string(file).unwrap_or_else(|problem| panic!("{}: {}", file, problem));
    let mut layout = Layout::new();
    for line in text.lines() {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["LAYOUT", "struct", name, size] => layout.insert(name.to_string(), size.parse().unwrap()),
            ["MEMBER", "struct", name, member, at] => {
                layout.insert(format!("{}.{}", name, member), at.parse().unwrap())
            }
            _ => None,
        };
    }
    layout
}

macro_rules! add {
    ($layout:ident, $($name:ident { $($member:ident),* })*) => { $(
        let object = MaybeUninit::<$name>::uninit();
        $layout.insert(stringify!($name).to_string(), size_of::<$name>());
        $(
            // Only addresses: nothing is read.
            let at = unsafe { addr_of!((*object.as_ptr()).$member) } as usize - object.as_ptr() as usize;
            let member = stringify!($member).trim_end_matches('_');
            $layout.insert(format!("{}.{}", stringify!($name), member), at);
        )*
    )* };
}

fn of_this_crate() -> Layout {
    let mut layout = Layout::new();
    add!(layout,
        hr_error { struct_size, code, message }
        hr_plugin { magic, abi_major, abi_minor, struct_size, flags, id, version, summary, torch_tag, min_host_minor,
                    reserved0, reserved1, init, get_interface }
        hr_host { struct_size, abi_major, abi_minor, name, version, torch_tag, get_service }
        hr_note { magic, abi_major, abi_minor, struct_size, flags, min_host_minor, reserved, id, torch_tag }
        hr_option { name, type_, required, default_value, min, max, choices, help, table }
        hr_options { struct_size, option_size, count, options }
        hr_value { type_, present, count, as_ }
        hr_channel { struct_size, reserved, name, unit, mean, std }
        hr_field { struct_size, flags, name, dtype, ndim, shape, axes, unit, sample_rate_hz, channel_axis, reserved,
                   channels, channel_count }
        hr_group { struct_size, reserved, name, first, count }
        hr_read { struct_size, flags, split, field_count, count, index, key, fields }
        hr_origin { struct_size, reserved, path, dataset, member }
        hr_datasource { struct_size, reserved, options, open, close, field_count, field, split_count, split, length,
                        group_count, group, cost, file_count, file, reader_open, reader_close, read, traits, origin }
        hr_log { struct_size, reserved, enabled, write }
        hr_array_info { struct_size, ndim, shape, chunk, dtype, member_count, filtered, element_bytes }
        hr_array_member { struct_size, ndim, shape, name, dtype, offset }
        hr_array_target { member, dtype, data, stride_bytes }
        hr_attribute { struct_size, type_, i64, f64, string }
        hr_arrays { struct_size, reserved, open, close, info, member, read_box, read_box_check_finite, list, attribute }
        hr_strings { struct_size, reserved, read, attribute }
        hr_files { struct_size, reserved, size, pread, list }
        hr_memory { struct_size, reserved, account, scratch, scratch_free }
        hr_cancel { struct_size, reserved, cancelled }
    );
    layout
}

#[test]
fn structs_have_the_layout_of_the_c_header() {
    let ours = of_this_crate();
    let structs: Vec<&str> = ours.keys().filter(|name| !name.contains('.')).map(String::as_str).collect();
    let mut theirs = of_the_c_header();
    theirs.retain(|name, _| structs.contains(&name.split('.').next().unwrap()));
    assert_eq!(ours, theirs);
}

#[test]
fn tensors_have_the_layout_of_dlpack() {
    let mut layout = Layout::new();
    add!(layout,
        DLDataType { code, bits, lanes }
        DLTensor { data, device_type, device_id, ndim, dtype, shape, strides, byte_offset }
    );
    let found: Vec<(&str, usize)> = layout.iter().map(|(name, &at)| (name.as_str(), at)).collect();
    assert_eq!(
        found,
        [
            ("DLDataType", 4),
            ("DLDataType.bits", 1),
            ("DLDataType.code", 0),
            ("DLDataType.lanes", 2),
            ("DLTensor", 48),
            ("DLTensor.byte_offset", 40),
            ("DLTensor.data", 0),
            ("DLTensor.device_id", 12),
            ("DLTensor.device_type", 8),
            ("DLTensor.dtype", 20),
            ("DLTensor.ndim", 16),
            ("DLTensor.shape", 24),
            ("DLTensor.strides", 32),
        ]
    );
}
