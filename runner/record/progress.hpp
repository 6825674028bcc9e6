// How far an epoch is: a bar on a terminal, lines in a pipe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

// What the stream behind stderr can show.
struct Terminal {
  int file = 2;
  bool control = false;  // lines can be redrawn: a terminal, and TERM names one that obeys
  bool utf8 = false;     // the locale says so
  bool color = false;    // as control, unless NO_COLOR is set

  int columns() const;  // now; 80 where nobody knows
};

// Looks at `file` and at TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG.
Terminal terminal_of(int file);

// What one line of progress says.
struct ProgressState {
  std::string epoch;  // "Epoch 3/10"
  std::string title;  // "train"
  int64_t done = 0;
  int64_t total = 0;         // 0: unknown
  double seconds_left = -1;  // negative: unknown
  std::vector<std::pair<std::string, double>> values = {};
};

// "loss 0.1234", "12.3 samples/s"; a split's name in front is dropped where the title already says it.
std::string shown_value(const std::string& name, double value, const std::string& title);

// For a terminal: never wider than `columns` - 1. What does not fit is left out, the least telling first.
std::string progress_bar(const ProgressState& state, const Terminal& terminal, int columns);

// For a pipe: everything, in plain words.
std::string progress_text(const ProgressState& state);

using Seconds = std::function<double()>;  // a clock that never goes back
double steady_seconds();

// Not thread-safe; RunLog guards it.
class Progress {
 public:
  // `log_every`: steps between the lines of a pipe.
  Progress(Terminal terminal, int64_t log_every, Seconds clock = steady_seconds);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // leaves the cursor on a line of its own

  void begin(const std::string& epoch, const std::string& title, int64_t total, int64_t done);
  void update(int64_t done, const std::vector<std::pair<std::string, double>>& values);
  void end(const std::vector<std::pair<std::string, double>>& values);
  void end(const std::string& summary);
  void say(std::string_view line);

 private:
  void draw();
  double seconds_left() const;
  void put(std::string_view text) const;  // a stream that cannot be written to is no reason to end a run

  Terminal terminal_;
  int64_t log_every_;
  Seconds clock_;
  ProgressState state_;
  bool open_ = false;     // between begin() and end()
  bool visible_ = false;  // a bar is on the cursor's line
  double epoch_began_ = 0, began_ = 0, drawn_ = 0;
  int64_t first_done_ = 0;
};

}  // namespace headroom
