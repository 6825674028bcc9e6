//! The host as a plugin sees it: its log, its ledger, and whether it wants to stop.

use crate::abi::{self, hr_cancel, hr_host, hr_log, hr_memory, Sized32};
use crate::error::{Error, Result, Status};
use crate::text::{c_string, from_c};
use std::mem::size_of;
use std::os::raw::c_char;

/// Cheap to copy; valid until the process ends. From any thread.
#[derive(Clone, Copy)]
pub struct Host {
    pub(crate) native: *const hr_host,
}
// SAFETY: abi.h lets any thread call services, also at the same time.
unsafe impl Send for Host {}
unsafe impl Sync for Host {}

impl Host {
    /// # Safety
    /// `native` is the host's, which lives until the process ends.
    pub(crate) unsafe fn new(native: *const hr_host) -> Host {
        Host { native }
    }

    /// The table of a service, with all members of 1.0. `id` ends with NUL and goes with the type.
    pub(crate) fn service<T: Sized32>(&self, id: &'static str) -> Result<&'static T> {
        // SAFETY: tables live for ever and begin with their size.
        unsafe {
            let table = ((*self.native).get_service)(self.native, id.as_ptr() as *const c_char) as *const T;
            if table.is_null() || (*(table as *const u32) as usize) < size_of::<T>() {
                let sentence = format!(
                    "this host ({}) lacks the service {}, which the plugin needs",
                    from_c((*self.native).version),
                    id.trim_end_matches('\0')
                );
                return Err(Error::new(Status::Unsupported, sentence));
            }
            Ok(&*table)
        }
    }

    pub fn debug(&self, message: &str) {
        self.log(abi::LOG_DEBUG, message)
    }
    pub fn info(&self, message: &str) {
        self.log(abi::LOG_INFO, message)
    }
    pub fn warn(&self, message: &str) {
        self.log(abi::LOG_WARN, message)
    }

    fn log(&self, level: i32, message: &str) {
        if let Ok(table) = self.service::<hr_log>(abi::LOG) {
            // SAFETY: the host copies the text.
            unsafe {
                if (table.enabled)(self.native, level) != 0 {
                    (table.write)(self.native, level, c_string(message).as_ptr());
                }
            }
        }
    }

    /// Adds to the bytes that the plugin holds as `owner` in the memory ledger; negative: freed. "": the whole plugin.
    pub fn account(&self, owner: &str, delta_bytes: i64) -> Result<()> {
        let table = self.service::<hr_memory>(abi::MEMORY)?;
        // SAFETY: the name is borrowed for the call.
        unsafe { (table.account)(self.native, c_string(owner).as_ptr(), delta_bytes) };
        Ok(())
    }

    /// For long loops: `Status::Cancelled` once the run is asked to stop.
    pub fn check_cancelled(&self) -> Result<()> {
        let table = self.service::<hr_cancel>(abi::CANCEL)?;
        // SAFETY: a question without arguments.
        match unsafe { (table.cancelled)(self.native) } {
            0 => Ok(()),
            _ => Err(Error::new(Status::Cancelled, "cancelled")),
        }
    }
}
