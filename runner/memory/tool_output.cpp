#include "memory/tool_output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr size_t pipe_buffer_bytes = 1 << 20;
constexpr size_t longest_line = 16 << 20;
constexpr size_t longest_complaint = 300;

}  // namespace

ToolOutput::ToolOutput(std::vector<std::string> words, const std::string& command, const std::string& absent,
                       std::vector<std::string> environment)
    : buffer_(pipe_buffer_bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  pipe_ = Descriptor(ends[0]);
  // Closed here, so that the program's end is the end of the stream.
  const Descriptor theirs(ends[1]);
  said_ = Descriptor(::memfd_create("stderr", MFD_CLOEXEC));
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  try {
    child_ = start_child(std::move(words), {.search_path = true,
                                            .environment = std::move(environment),
                                            .stdin_file = nothing.get(),
                                            .stdout_file = theirs.get(),
                                            .stderr_file = said_.get()});
  } catch (const std::system_error& failed) {
    if (failed.code().value() == ENOENT) throw Error(Exit::bad_input, command, absent);
    throw Error(Exit::bad_input, command, failed.what());
  }
}

ToolOutput::~ToolOutput() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  wait_for(child_);
}

bool ToolOutput::refill() {
  ssize_t got = 0;
  do {
    got = ::read(pipe_.get(), buffer_.data(), buffer_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw std::system_error(errno, std::generic_category(), "what a program writes cannot be read");
  rest_ = std::span(buffer_).first(static_cast<size_t>(got));
  return got > 0;
}

size_t ToolOutput::read(std::span<std::byte> bytes) {
  size_t filled = 0;
  while (filled < bytes.size() && (!rest_.empty() || refill())) {
    const size_t count = std::min(rest_.size(), bytes.size() - filled);
    std::copy_n(rest_.begin(), count, bytes.begin() + static_cast<std::ptrdiff_t>(filled));
    rest_ = rest_.subspan(count);
    filled += count;
  }
  return filled;
}

std::optional<std::string> ToolOutput::line() {
  std::string line;
  while (!rest_.empty() || refill()) {
    const auto end = std::ranges::find(rest_, std::byte{'\n'});
    const auto count = static_cast<size_t>(end - rest_.begin());
    line.append(reinterpret_cast<const char*>(rest_.data()), count);
    const bool whole = end != rest_.end();
    rest_ = rest_.subspan(count + (whole ? 1 : 0));
    if (whole) return line;
    if (line.size() > longest_line) break;
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

int ToolOutput::wait() {
  // What has more to write would wait for a reader.
  pipe_ = Descriptor();
  const ChildEnd end = wait_for(std::exchange(child_, -1));
  return end.exit_code();
}

std::string ToolOutput::complaint() const {
  const off_t size = ::lseek(said_.get(), 0, SEEK_END);
  std::array<char, 4096> text{};
  const ssize_t got = ::pread(said_.get(), text.data(), text.size(), std::max<off_t>(0, size - 4096));
  std::string_view last(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  while (last.ends_with('\n')) last.remove_suffix(1);
  const size_t before = last.rfind('\n');
  return printable(before == std::string_view::npos ? last : last.substr(before + 1), longest_complaint);
}

}  // namespace headroom
