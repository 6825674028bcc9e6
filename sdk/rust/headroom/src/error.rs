//! Errors of a plugin: one sentence (what was found, what is allowed, what to do), and whose problem it is.

use crate::abi::{self, hr_error, hr_status};
use crate::text;
use std::fmt;

/// Whose problem an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// An option is wrong: the user can correct it in the experiment file.
    InvalidArgument,
    /// This plugin, host or machine cannot do it.
    Unsupported,
    /// The operating system could not read; the sentence says which file.
    Io,
    /// The host may release memory and call again.
    OutOfMemory,
    /// The run is asked to stop.
    Cancelled,
    /// A bug.
    Internal,
    /// No such dataset or attribute.
    NotFound,
    /// This sample cannot be read; others can.
    DataCorrupt,
}

impl Status {
    fn native(self) -> hr_status {
        match self {
            Status::InvalidArgument => abi::INVALID_ARGUMENT,
            Status::Unsupported => abi::UNSUPPORTED,
            Status::Io => abi::IO,
            Status::OutOfMemory => abi::OUT_OF_MEMORY,
            Status::Cancelled => abi::CANCELLED,
            Status::Internal => abi::INTERNAL,
            Status::NotFound => abi::NOT_FOUND,
            Status::DataCorrupt => abi::DATA_CORRUPT,
        }
    }

    fn of(status: hr_status) -> Status {
        match status {
            abi::INVALID_ARGUMENT => Status::InvalidArgument,
            abi::UNSUPPORTED => Status::Unsupported,
            abi::IO => Status::Io,
            abi::OUT_OF_MEMORY => Status::OutOfMemory,
            abi::CANCELLED => Status::Cancelled,
            abi::NOT_FOUND => Status::NotFound,
            abi::DATA_CORRUPT => Status::DataCorrupt,
            _ => Status::Internal,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub sentence: String,
}

pub type Result<T> = std::result::Result<T, Error>;

/// An option is wrong: `return Err(invalid("window must be even, not 7"))`.
pub fn invalid(sentence: impl Into<String>) -> Error {
    Error::new(Status::InvalidArgument, sentence)
}

impl Error {
    pub fn new(status: Status, sentence: impl Into<String>) -> Error {
        Error { status, sentence: sentence.into() }
    }

    pub(crate) fn internal(sentence: impl Into<String>) -> Error {
        Error::new(Status::Internal, sentence)
    }

    /// Fills `out`, if there is one, with as much of the sentence as fits. Returns the status.
    ///
    /// # Safety
    /// `out` is null or a caller's error.
    pub(crate) unsafe fn store(&self, out: *mut hr_error) -> hr_status {
        let status = self.status.native();
        if let Some(error) = out.as_mut() {
            error.struct_size = std::mem::size_of::<hr_error>() as u32;
            error.code = status;
            text::copy_into(&self.sentence, &mut error.message);
        }
        status
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(problem: std::io::Error) -> Error {
        Error::new(Status::Io, problem.to_string())
    }
}

/// Of `try_reserve`: any other allocation that is refused ends the process.
impl From<std::collections::TryReserveError> for Error {
    fn from(_: std::collections::TryReserveError) -> Error {
        Error::new(Status::OutOfMemory, "out of memory")
    }
}

/// Calls a service with an error to fill: a failed call becomes an `Error` with the host's own sentence.
pub(crate) fn require(service: impl FnOnce(*mut hr_error) -> hr_status) -> Result<()> {
    let mut error: hr_error = text::empty();
    let status = service(&mut error);
    if status == abi::OK {
        return Ok(());
    }
    let sentence = text::from_array(&error.message);
    Err(Error::new(
        Status::of(status),
        if sentence.is_empty() { "the host gave no reason".to_string() } else { sentence },
    ))
}
