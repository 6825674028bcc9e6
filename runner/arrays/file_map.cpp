#include "arrays/file_map.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <sys/mman.h>

#include "memory/crash_site.hpp"
#include "memory/file_memory.hpp"

namespace headroom {

namespace {

constexpr uint64_t page = 4096, most_pages = 1024;  // of one look into the page cache

thread_local sigjmp_buf* jump_target = nullptr;  // set inside read_mapped()
struct sigaction other_handler {};

// The kernel sends SIGBUS where a page of a mapping has no bytes behind it.
void on_bus_error(int signal, siginfo_t* info, void*) {
  if (jump_target != nullptr) {
    sigset_t bus;  // TSan blocks it in a handler whatever the flags say, and siglongjmp() would leave it so
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
    siglongjmp(*jump_target, 1);
  }
  sigaction(signal, &other_handler, nullptr);  // a fault happens again on return, and the earlier handler gets it
  if (info->si_code <= 0) raise(signal);       // a signal that kill() sent does not happen again
}

}  // namespace

void handle_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    // First, so that signals which are not ours reach it as the earlier handler.
    handle_crashes();
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    // SA_NODEFER: siglongjmp() leaves the handler without restoring the signal mask, and SIGBUS would stay blocked.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGBUS, &ours, &other_handler);
  });
}

FileMap::FileMap(int file, uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0 || lies_in_memory(file)) return;
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
}

FileMap::~FileMap() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

const std::byte* FileMap::at(uint64_t offset, uint64_t bytes) const {
  if (memory_ == nullptr || offset > bytes_ || bytes > bytes_ - offset) return nullptr;
  std::array<unsigned char, most_pages> resident;
  // mincore() takes whole pages, from the start of one.
  for (uint64_t first = offset / page * page; first < offset + bytes; first += most_pages * page) {
    const uint64_t pages = std::min(most_pages, (offset + bytes - first + page - 1) / page);
    if (mincore(memory_ + first, pages * page, resident.data()) != 0) return nullptr;
    for (uint64_t i = 0; i < pages; ++i) {
      if ((resident[i] & 1) == 0) return nullptr;
    }
  }
  return memory_ + offset;
}

bool read_mapped(void (*use)(const void* context), const void* context) {
  sigjmp_buf here;
  // 0: to save the signal mask would be a system call for each read.
  if (sigsetjmp(here, 0) != 0) {
    jump_target = nullptr;
    return false;
  }
  jump_target = &here;
  use(context);
  jump_target = nullptr;
  return true;
}

}  // namespace headroom
