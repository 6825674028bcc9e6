//! A plugin's own option table: the keys of [data.options].

use crate::abi::{self, hr_option, hr_options, hr_type};
use crate::text::c_string;
use std::ffi::CString;
use std::fmt;
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::null;

/// One key. `Opt::i64("window").default(500).min(1).help("samples of a window")`
///
/// Text given to default, min and max is a TOML literal ("0.5", "[1, 2]"), except that a string, path or bytes option
/// takes the bare text ("mse", "64 MiB").
#[derive(Clone, Debug)]
pub struct Opt {
    pub(crate) name: String,
    pub(crate) kind: hr_type,
    pub(crate) table: Vec<Opt>,
    required: bool,
    default: Option<String>,
    min: Option<String>,
    max: Option<String>,
    choices: Vec<String>,
    help: String,
}

impl Opt {
    pub fn bool(name: &str) -> Opt {
        Opt::new(name, abi::BOOL)
    }
    pub fn i64(name: &str) -> Opt {
        Opt::new(name, abi::I64)
    }
    pub fn f64(name: &str) -> Opt {
        Opt::new(name, abi::F64)
    }
    pub fn string(name: &str) -> Opt {
        Opt::new(name, abi::STRING)
    }
    /// A size: "64 MiB" or an integer.
    pub fn bytes(name: &str) -> Opt {
        Opt::new(name, abi::BYTES)
    }
    /// Arrives absolute, resolved against the file that set it.
    pub fn path(name: &str) -> Opt {
        Opt::new(name, abi::PATH)
    }
    pub fn table(name: &str, keys: Vec<Opt>) -> Opt {
        Opt { table: keys, ..Opt::new(name, abi::TABLE) }
    }
    /// A list of the type of `element`, whose bounds, choices and name it keeps: `Opt::list(Opt::i64("sizes").min(1))`.
    pub fn list(element: Opt) -> Opt {
        Opt { kind: abi::LIST | element.kind, ..element }
    }

    fn new(name: &str, kind: hr_type) -> Opt {
        Opt {
            name: name.to_string(),
            kind,
            table: Vec::new(),
            required: false,
            default: None,
            min: None,
            max: None,
            choices: Vec::new(),
            help: String::new(),
        }
    }

    /// Must be set.
    pub fn required(mut self) -> Opt {
        self.required = true;
        self
    }
    pub fn default(mut self, value: impl fmt::Display) -> Opt {
        self.default = Some(self.literal(value, &[abi::STRING, abi::PATH, abi::BYTES]));
        self
    }
    pub fn min(mut self, least: impl fmt::Display) -> Opt {
        self.min = Some(self.literal(least, &[abi::BYTES]));
        self
    }
    pub fn max(mut self, most: impl fmt::Display) -> Opt {
        self.max = Some(self.literal(most, &[abi::BYTES]));
        self
    }
    pub fn choices(mut self, allowed: &[&str]) -> Opt {
        self.choices = allowed.iter().map(|text| text.to_string()).collect();
        self
    }
    /// One line: meaning and unit.
    pub fn help(mut self, text: &str) -> Opt {
        self.help = text.to_string();
        self
    }

    fn literal(&self, value: impl fmt::Display, quoted: &[hr_type]) -> String {
        let text = value.to_string();
        let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !quoted.contains(&self.kind) || (self.kind == abi::BYTES && number) {
            return text;
        }
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// The C form of `list`, for ever: a plugin is never unloaded.
pub(crate) fn native_table(list: &[Opt]) -> *const hr_options {
    let entries: Vec<hr_option> = list.iter().map(native).collect();
    let options = Box::leak(entries.into_boxed_slice());
    Box::leak(Box::new(hr_options {
        struct_size: size_of::<hr_options>() as u32,
        option_size: size_of::<hr_option>() as u32,
        count: options.len() as u64,
        options: options.as_ptr(),
    }))
}

fn native(option: &Opt) -> hr_option {
    hr_option {
        name: kept(&option.name),
        type_: option.kind,
        required: option.required as u32,
        default_value: option.default.as_deref().map_or(null(), kept),
        min: option.min.as_deref().map_or(null(), kept),
        max: option.max.as_deref().map_or(null(), kept),
        choices: if option.choices.is_empty() { null() } else { kept_list(&option.choices) },
        help: kept(&option.help),
        table: if option.kind & !abi::LIST == abi::TABLE { native_table(&option.table) } else { null() },
    }
}

fn kept(text: &str) -> *const c_char {
    CString::into_raw(c_string(text))
}

fn kept_list(texts: &[String]) -> *const *const c_char {
    let mut list: Vec<*const c_char> = texts.iter().map(|text| kept(text)).collect();
    list.push(null());
    Box::leak(list.into_boxed_slice()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::from_c;

    #[test]
    fn text_is_quoted_where_toml_wants_it() {
        let default = |option: Opt| option.default.unwrap();
        assert_eq!(default(Opt::string("loss").default("a \"b\"")), "\"a \\\"b\\\"\"");
        assert_eq!(default(Opt::bytes("room").default("64 MiB")), "\"64 MiB\"");
        assert_eq!(default(Opt::bytes("room").default(64)), "64");
        assert_eq!(default(Opt::i64("window").default(500)), "500");
        assert_eq!(default(Opt::list(Opt::string("joints")).default("[\"a\"]")), "[\"a\"]");
    }

    #[test]
    fn a_table_for_c_has_its_tables_and_choices() {
        let table = native_table(&[
            Opt::string("loss").choices(&["mse", "mae"]),
            Opt::list(Opt::table("stages", vec![Opt::i64("kernel").required()])),
        ]);
        unsafe {
            let options = std::slice::from_raw_parts((*table).options, (*table).count as usize);
            assert_eq!(from_c(*options[0].choices.add(1)), "mae");
            assert!((*options[0].choices.add(2)).is_null());
            assert_eq!(options[1].type_, abi::LIST | abi::TABLE);
            assert_eq!((*(*options[1].table).options).required, 1);
        }
    }
}
