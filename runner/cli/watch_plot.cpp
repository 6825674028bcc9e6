#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/svg_page.hpp"
#include "cli/watch_report.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr double width = 960, height = 540;
constexpr double left = 70, right = 690, top = 100, bottom = 400;  // memory
constexpr double pressure_top = 432, pressure_bottom = 480;
constexpr double legend = 712;
constexpr size_t kept_apart = 6;  // colours that stay apart for every eye; the rest is grey

// The smallest of 1, 2, 5 times a power of ten that makes at most `count` steps of `span`.
double nice_step(double span, int count) {
  const double rough = span / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

double time_step(double seconds) {
  constexpr int most = 8;
  for (const double step : {60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0}) {
    if (seconds > 60.0 * most && seconds / step <= most) return step;
  }
  for (const double step : {10.0, 15.0, 20.0, 30.0, 60.0}) {
    if (seconds > 5.0 * most && seconds / step <= most) return step;
  }
  return nice_step(seconds, most);
}

std::string clock_text(double seconds, double step) {
  std::array<char, 32> text;
  if (step >= 3600) {
    std::snprintf(text.data(), text.size(), "%.0f h", seconds / 3600);
  } else if (step >= 60) {
    std::snprintf(text.data(), text.size(), "%.0f min", seconds / 60);
  } else {
    std::snprintf(text.data(), text.size(), "%g s", std::round(seconds * 1000) / 1000);
  }
  return text.data();
}

std::string tag(const char* name, int number) { return name + std::to_string(number); }

class Plot {
 public:
  explicit Plot(const WatchReport& report) : report_(report), shown_(report.timeline.largest(kept_apart)) {
    std::erase_if(shown_, [&](uint32_t number) {  // too thin to be seen
      return report.timeline.series()[number].peak_bytes * 100 < report.timeline.peak_bytes();
    });
    pick_samples();
    seconds_ = std::max(report.seconds, 0.001);
    if (!samples_.empty()) seconds_ = std::max(seconds_, at(samples_.size() - 1));
    double highest = static_cast<double>(report.timeline.peak_bytes());
    if (in_cgroup()) {
      for (const TimelineSample* sample : samples_)
        highest = std::max(highest, static_cast<double>(sample->around.used_bytes));
    }
    const auto limit = static_cast<double>(report.bound.limit_bytes);
    shows_limit_ = limit > 0 && limit <= 3 * highest;
    ceiling_ = std::max({shows_limit_ ? limit * 1.06 : 0.0, highest * 1.08, 1048576.0});
  }

  std::string svg() {
    headline();
    axes();
    areas();
    used_line();
    limit_line();
    pressure();
    kills();
    names();
    return page_.take();
  }

 private:
  bool in_cgroup() const { return !report_.bound.cgroup.empty(); }
  double at(size_t i) const { return static_cast<double>(samples_[i]->time_ms) / 1000.0; }
  double x(double seconds) const { return left + (right - left) * seconds / seconds_; }
  double y(double bytes) const { return bottom - (bottom - top) * bytes / ceiling_; }

  // One for each column of the picture, that which held most.
  void pick_samples() {
    const auto& all = report_.timeline.samples();
    if (all.empty()) return;
    const auto columns = static_cast<int64_t>(right - left);
    const int64_t last_ms = std::max<int64_t>(all.back().time_ms, 1);
    int64_t column = -1;
    for (const TimelineSample& sample : all) {
      const int64_t mine = sample.time_ms * columns / last_ms;
      if (mine != column || &sample == &all.back()) {
        samples_.push_back(&sample);
      } else if (sample.total_bytes > samples_.back()->total_bytes) {
        samples_.back() = &sample;
      }
      column = mine;
    }
  }

  void headline() {
    constexpr size_t line_length = 128;
    std::string command;
    for (const std::string& word : report_.command) command += (command.empty() ? "" : " ") + word;
    page_.text(24, 32, "title", printable(command, 100));
    std::string verdict = report_.end ? watch_lines(report_).front() : "still running";
    for (int row = 0; row < 2 && !verdict.empty(); ++row) {
      size_t cut = verdict.size();
      if (cut > line_length) cut = std::min(verdict.rfind(' ', line_length), verdict.size());
      const bool rest_is_lost = row == 1 && cut < verdict.size();
      page_.text(24, 54 + 17 * row, report_.main_death() != nullptr ? "verdict" : "soft",
                 rest_is_lost ? printable(verdict, line_length) : verdict.substr(0, cut));
      verdict.erase(0, std::min(cut + 1, verdict.size()));
    }
  }

  void axes() {
    constexpr double mib = 1 << 20, gib = 1 << 30;
    const bool in_gib = ceiling_ >= gib;
    const double unit = in_gib ? gib : mib, step = nice_step(ceiling_ / unit, 6);
    for (double value = 0; value * unit <= ceiling_; value += step) {
      std::array<char, 32> label;
      std::snprintf(label.data(), label.size(), "%g %s", std::round(value * 1000) / 1000, in_gib ? "GiB" : "MiB");
      page_.line(left, y(value * unit), right, y(value * unit), "grid");
      page_.text(left - 8, y(value * unit) + 4, "soft small", label.data(), "end");
    }
    const double every = time_step(seconds_);
    for (double value = 0; value <= seconds_ * 1.0001; value += every) {
      page_.line(x(value), bottom, x(value), bottom + 5, "grid");
      page_.text(x(value), pressure_bottom + 20, "soft small", clock_text(value, every), "middle");
    }
  }

  void areas() {
    std::vector<double> floor(samples_.size(), 0.0), roof(samples_.size(), 0.0);
    for (size_t rank = 0; rank <= shown_.size(); ++rank) {
      const bool rest = rank == shown_.size();
      for (size_t i = 0; i < samples_.size(); ++i) {
        roof[i] = rest ? static_cast<double>(samples_[i]->total_bytes)
                       : floor[i] + static_cast<double>(samples_[i]->bytes_of(shown_[rank]));
        roof[i] = std::max(roof[i], floor[i]);
      }
      if (!(rest && roof == floor)) area(floor, roof, tag("area a", rest ? kept_apart : static_cast<int>(rank)));
      floor = roof;
    }
  }

  void area(const std::vector<double>& floor, const std::vector<double>& roof, const std::string& classes) {
    page_.add("<path class=\"%s\" d=\"M", classes.c_str());
    for (size_t i = 0; i < roof.size(); ++i) page_.add("%.1f %.1f ", x(at(i)), y(roof[i]));
    for (size_t i = floor.size(); i-- > 0;) page_.add("%.1f %.1f ", x(at(i)), y(floor[i]));
    page_.raw("Z\"/>\n");
  }

  void used_line() {
    if (!in_cgroup()) return;
    page_.raw("<polyline class=\"used\" points=\"");
    for (size_t i = 0; i < samples_.size(); ++i) {
      const int64_t used = samples_[i]->around.used_bytes;
      if (used > 0) page_.add("%.1f,%.1f ", x(at(i)), y(static_cast<double>(used)));
    }
    page_.raw("\"/>\n");
  }

  void limit_line() {
    if (!shows_limit_) return;
    const double height_of_limit = y(static_cast<double>(report_.bound.limit_bytes));
    page_.line(left, height_of_limit, right, height_of_limit, "limit");
  }

  void pressure() {
    page_.text(left - 8, (pressure_top + pressure_bottom) / 2 + 4, "soft small", "pressure", "end");
    page_.text(left - 8, pressure_bottom + 4, "soft small", "0 %", "end");
    page_.line(left, pressure_top, right, pressure_top, "grid");
    page_.line(left, pressure_bottom, right, pressure_bottom, "grid");
    if (samples_.empty()) return;
    double most = 10;
    for (const TimelineSample* sample : samples_) most = std::max(most, sample->around.some_percent);
    page_.add("<path class=\"pressure\" d=\"M%.1f %.1f ", x(at(0)), pressure_bottom);
    for (size_t i = 0; i < samples_.size(); ++i) {
      page_.add("L%.1f %.1f ", x(at(i)),
                pressure_bottom - (pressure_bottom - pressure_top) * samples_[i]->around.some_percent / most);
    }
    page_.add("L%.1f %.1fZ\"/>\n", x(at(samples_.size() - 1)), pressure_bottom);
    page_.text(left - 8, pressure_top + 4, "soft small", percent_text(most), "end");
  }

  static std::string percent_text(double percent) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.0f %%", percent);
    return text.data();
  }

  // The first few that were killed or crashed.
  void kills() {
    constexpr int most = 4;
    int row = 0;
    for (const WatchedDeath& death : report_.deaths) {
      if (!death.is_violent() || row == most) continue;
      const double seconds = static_cast<double>(death.time_ms) / 1000.0, place = x(std::min(seconds, seconds_));
      const bool to_the_left = place > (left + right) / 2;
      page_.line(place, top - 4, place, bottom, "kill");
      const std::string what = death.oom_kill ? "OOM killer" : signal_name(death.signal);
      page_.text(to_the_left ? place - 6 : place + 6, top + 8 + 16 * row, "killed halo small",
                 what + ": " + process_text(death.process.name, death.process.pid), to_the_left ? "end" : "start");
      ++row;
    }
  }

  static std::string since_text(int64_t ms) { return time_text(static_cast<double>(ms) / 1000.0); }

  bool was_killed(int64_t pid) const {
    return std::any_of(report_.deaths.begin(), report_.deaths.end(),
                       [&](const WatchedDeath& death) { return death.process.pid == pid && death.is_violent(); });
  }

  void names() {
    double row = top + 8;
    const auto entry = [&](const std::string& classes, const std::string& name, const std::string& amount,
                           bool killed) {
      page_.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" class=\"%s\"/>\n", legend, row - 10,
                classes.c_str());
      page_.text(legend + 20, row, killed ? "killed" : "name", name);
      page_.text(legend + 20, row + 15, "soft small", amount);
      row += 36;
    };
    const auto& series = report_.timeline.series();
    for (size_t rank = 0; rank < shown_.size(); ++rank) {
      const ProcessSeries& process = series[shown_[rank]];
      const bool killed = was_killed(process.pid);
      // Workers of one program have one name: what tells them apart is when they came.
      const std::string who = process.pid == report_.pid ? ", the command" : ", from " + since_text(process.first_ms);
      entry(tag("a", static_cast<int>(rank)), printable(process.name, 16) + " (" + std::to_string(process.pid) + ")",
            "at most " + size_text(process.peak_bytes) + (killed ? ", killed" : who), killed);
    }
    if (series.size() - 1 > shown_.size()) {
      entry(tag("a", kept_apart), "others", std::to_string(series.size() - 1 - shown_.size()) + " small or short-lived",
            false);
    }
    row += 4;
    const auto sign = [&](const char* classes, const std::string& name, const std::string& amount) {
      page_.line(legend, row - 4, legend + 14, row - 4, classes);
      page_.text(legend + 20, row, "name", name);
      page_.text(legend + 20, row + 15, "soft small", amount);
      row += 36;
    };
    if (in_cgroup()) sign("used", "use of the cgroup", "without file pages");
    sign("limit", in_cgroup() ? "limit of the cgroup" : "memory of the machine",
         size_text(report_.bound.limit_bytes) + (shows_limit_ ? "" : ", above this plot"));
    page_.text(24, height - 14, "soft small",
               "Memory of its own (PSS without file pages) by process. Pressure: time in which some process waited for "
               "memory, over 10 s.");
  }

  const WatchReport& report_;
  std::vector<uint32_t> shown_;
  std::vector<const TimelineSample*> samples_;
  double seconds_ = 1, ceiling_ = 1;
  bool shows_limit_ = false;
  SvgPage page_{width, height};
};

}  // namespace

std::string watch_svg(const WatchReport& report) { return Plot(report).svg(); }

}  // namespace headroom
