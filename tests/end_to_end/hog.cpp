// `hog MIB SECONDS`: takes MIB evenly within SECONDS, then holds them until its standard input ends. A command for
// record.events_to that needs nothing but itself.
#include <chrono>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

int main(int count, char** words) {
  if (count != 3) return 2;
  const long pieces = std::strtol(words[1], nullptr, 10);
  const std::chrono::duration<double> pause(std::strtod(words[2], nullptr) / static_cast<double>(pieces));
  for (long i = 0; i < pieces; ++i) {
    void* const memory =
        mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return 1;
    std::this_thread::sleep_for(pause);
  }
  char text[4096];
  while (read(STDIN_FILENO, text, sizeof text) > 0) {
  }
}
