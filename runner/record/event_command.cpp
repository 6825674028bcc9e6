#include "record/event_command.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "memory/child_process.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t most_pending_bytes = size_t{1} << 20;

bool wait_until_writable(int file, Clock::time_point deadline) {
  // poll() takes whole milliseconds: rounded up, so that a rest below one is waited for as well.
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
  return left.count() > 0 && poll(&ready, 1, static_cast<int>(left.count())) > 0;
}

}  // namespace

EventCommand::EventCommand(const std::string& command, const std::filesystem::path& run, Say say)
    : say_(std::move(say)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    give_up(std::system_category().message(errno));
    return;
  }
  const Descriptor output(ends[0]);
  input_ = Descriptor(ends[1]);
  // This end only: the program's end waits, as programs expect of their input.
  fcntl(input_.get(), F_SETFL, O_NONBLOCK);
  // Its stdout goes to stderr, as ours is for results. Apart: Ctrl-C must not end it before the last events.
  try {
    child_ = start_child({"/bin/sh", "-c", command},
                         {.environment = {"HEADROOM_RUN_FOLDER=" + std::filesystem::absolute(run).string()},
                          .stdin_file = output.get(),
                          .stdout_file = STDERR_FILENO,
                          .apart = true});
  } catch (const std::system_error& problem) {
    give_up(problem.what());
  }
}

EventCommand::~EventCommand() {
  if (child_ < 0) return;
  const auto deadline = Clock::now() + patience;
  while (!pending_.empty() && wait_until_writable(input_.get(), deadline) && flush()) {
  }
  if (child_ < 0) return;
  // Closed, so that the program finds the end of its input.
  input_ = Descriptor();
  if (!ends_by(deadline)) {
    // The whole group: the shell may have started others. The child is not reaped yet, so the number is still its own.
    kill(-child_, SIGTERM);
    say_("record.events_to: the command did not end within " + std::to_string(patience.count()) +
         " ms of the run's end, and was stopped");
    if (!ends_by(Clock::now() + std::chrono::seconds(1))) kill(-child_, SIGKILL);
  }
  wait_for(child_);
  if (left_out_ > 0) {
    say_("record.events_to: the command read too slowly: " + std::to_string(left_out_) +
         " events were left out; events.jsonl has them all");
  }
}

void EventCommand::line(std::string_view text) {
  if (child_ < 0) return;
  // A line is kept whole or left out whole: the program never sees a part of one.
  if (pending_.size() + text.size() < most_pending_bytes) {
    pending_.append(text).append("\n");
  } else {
    ++left_out_;
  }
  flush();
}

bool EventCommand::flush() {
  while (!pending_.empty()) {
    const ssize_t written = ::write(input_.get(), pending_.data(), pending_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return true;
    // EPIPE: the program has closed its input.
    if (written < 0) {
      give_up("");
      return false;
    }
    pending_.erase(0, static_cast<size_t>(written));
  }
  return true;
}

// It closed its input, or was never there.
void EventCommand::give_up(const std::string& why) {
  std::string end = why;
  if (child_ > 0) {
    // A program that ends of itself gets the time for it, so that the exit code is its own and not that of the kill.
    if (!ends_by(Clock::now() + milliseconds(100))) kill(-child_, SIGKILL);
    end = "it ended with exit code " + std::to_string(wait_for(child_).exit_code());
  }
  child_ = -1;
  input_ = Descriptor();
  pending_.clear();
  say_("record.events_to: the command gets no more events: " + end + "; the run goes on");
}

bool EventCommand::ends_by(Clock::time_point deadline) const {
  // Looks without reaping: the status stays for wait_for().
  while (!ended_by(child_)) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

}  // namespace headroom
