// libexec/headroom-hdf5 SOCKET: libhdf5 for a process that does not want to crash with it. Started by ask_hdf5().

#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "arrays/hdf5_child.hpp"

namespace {

[[maybe_unused]] constexpr rlim_t most_data_bytes = rlim_t{4} << 30;  // a damaged header may ask for any amount

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

}  // namespace

int main(int argument_count, char** arguments) {
  int socket = -1;
  if (argument_count != 2 ||
      std::from_chars(arguments[1], arguments[1] + std::strlen(arguments[1]), socket).ec != std::errc()) {
    return 2;
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);  // it ends with its parent
  std::signal(SIGXFSZ, SIG_IGN);                                                             // a write that fails
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  // A crash on a damaged file is expected here and needs no core file.
  limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Not under a sanitizer, which maps more than that for itself.
  limit(RLIMIT_DATA, most_data_bytes);
#endif
  headroom::answer_hdf5_questions(socket);
  _exit(0);
}
