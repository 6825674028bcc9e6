//! Nothing unwinds across the boundary: a panic becomes an error with its message and place.

use crate::abi::{hr_error, hr_status, OK};
use crate::error::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::io::Write;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe, Location};
use std::sync::Once;

thread_local! {
    /// None outside a call of the host; then the message of the panic under way, "" before it.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the body of a C function and returns its status.
///
/// # Safety
/// `error` is null or a caller's error.
pub(crate) unsafe fn guard(error: *mut hr_error, body: impl FnOnce() -> Result<()>) -> hr_status {
    match run(body).unwrap_or_else(|panic| Err(Error::internal(panic))) {
        Ok(()) => OK,
        Err(problem) => problem.store(error),
    }
}

/// The same where the boundary has no room for an error: it is printed.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    run(body).unwrap_or_else(|panic| {
        // Not eprintln: that panics where stderr is closed.
        let _ = writeln!(std::io::stderr(), "{}", panic);
        otherwise
    })
}

fn run<T>(body: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_message_of_panics);
    let outer = swap(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(body));
    let kept = swap(outer).unwrap_or_default();
    result.map_err(|payload| {
        let message = if kept.is_empty() { format!("the plugin panicked: {}", text_of(&*payload)) } else { kept };
        // Its destructor may panic.
        std::mem::forget(payload);
        message
    })
}

// No place to keep it while a thread ends: the message is then printed.
fn swap(message: Option<String>) -> Option<String> {
    PANIC.try_with(|slot| slot.replace(message)).unwrap_or(None)
}

/// The host tells what happened; printed as well it would be said twice. Threads of the plugin's own print as ever.
fn keep_message_of_panics() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        let kept = PANIC.try_with(|slot| match &mut *slot.borrow_mut() {
            Some(message) => {
                *message = sentence(text_of(panic.payload()), panic.location());
                true
            }
            None => false,
        });
        let trace = std::env::var_os("RUST_BACKTRACE").map_or(false, |value| value != "0");
        if trace || !kept.unwrap_or(false) {
            print(panic);
        }
    }));
}

fn sentence(message: &str, place: Option<&Location>) -> String {
    match place {
        Some(place) => format!("the plugin panicked at {}:{}: {}", place.file(), place.line(), message),
        None => format!("the plugin panicked: {}", message),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return text;
    }
    payload.downcast_ref::<String>().map_or("without a message", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::INTERNAL;
    use crate::text::{empty, from_array};

    #[test]
    fn a_panic_is_an_error_with_its_message_and_place() {
        let mut error: hr_error = empty();
        let numbers = vec![1, 2];
        let status = unsafe { guard(&mut error, || if numbers[numbers.len()] > 0 { Ok(()) } else { Ok(()) }) };
        let message = from_array(&error.message);
        assert_eq!(status, INTERNAL);
        assert_eq!(error.code, INTERNAL);
        assert!(message.contains("guard.rs:"), "{}", message);
        assert!(message.contains("index out of bounds"), "{}", message);
    }

    #[test]
    fn nobody_needs_to_ask_for_the_error() {
        assert_eq!(unsafe { guard(std::ptr::null_mut(), || panic!("unheard")) }, INTERNAL);
        assert_eq!(guard_or(1.0, || panic!("unheard")), 1.0);
    }
}
