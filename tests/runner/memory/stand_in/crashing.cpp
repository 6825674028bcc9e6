// A plugin with a mistake in it, which the sanitizers leave to the kernel.
extern "C" [[gnu::no_sanitize("address"), gnu::no_sanitize("undefined"), gnu::no_sanitize("thread")]] void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}
