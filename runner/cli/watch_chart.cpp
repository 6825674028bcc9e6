#include <algorithm>
#include <array>

#include "cli/watch_report.hpp"
#include "memory/readable.hpp"
#include "report/decimated.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

// Colours of processes, the largest first; the rest is grey. Without the palette's orange, which is near to the red of
// what was killed.
constexpr std::array<const char*, 6> colours = {"c0", "c5", "c2", "c3", "c4", "c6"};

// Of the samples in a column, the one in which most was held.
struct HighestSample {
  const TimelineSample* sample;
  void absorb(const HighestSample& later) {
    if (later.sample->total_bytes > sample->total_bytes) sample = later.sample;
  }
};

class WatchChart {
 public:
  explicit WatchChart(const WatchReport& report) : report_(report), shown_(report.timeline.largest(colours.size())) {
    std::erase_if(shown_, [&](uint32_t number) {  // too thin to be seen
      return report.timeline.series()[number].peak_bytes * 100 < report.timeline.peak_bytes();
    });
    Decimated<HighestSample> picked;
    for (const TimelineSample& sample : report.timeline.samples()) picked.add(seconds_of(sample.time_ms), {&sample});
    for (const auto& [x, cell] : picked.entries()) {
      seconds_.push_back(x);
      samples_.push_back(cell.sample);
    }
    end_ = std::max({report.seconds, 0.001, seconds_.empty() ? 0.0 : seconds_.back()});
    // At least 1 MiB, so that next to nothing has an axis, too.
    highest_ = std::max(static_cast<double>(report.timeline.peak_bytes()), 1048576.0);
    for (const TimelineSample* sample : samples_) {
      if (in_cgroup()) highest_ = std::max(highest_, static_cast<double>(sample->around.used_bytes));
    }
    // A limit far above would press the areas flat: the legend alone names it then.
    shows_limit_ = limit() > 0 && limit() <= 3 * highest_;
  }

  std::string svg() const { return svg_file(head(), {memory(), pressure()}); }

 private:
  bool in_cgroup() const { return !report_.bound.cgroup.empty(); }
  double limit() const { return static_cast<double>(report_.bound.limit_bytes); }

  std::vector<SvgLine> head() const {
    constexpr size_t line_length = 128;
    std::string command;
    for (const std::string& word : report_.command) command += (command.empty() ? "" : " ") + word;
    std::vector<SvgLine> lines = {{"title", printable(command, 100)}};
    std::string verdict = report_.end ? watch_lines(report_).front() : "still running";
    const char* classes = report_.main_death() != nullptr ? "bad" : "soft";
    for (int row = 0; row < 2 && !verdict.empty(); ++row) {
      size_t cut = verdict.size();
      // Without a blank to cut at the line stays whole.
      if (cut > line_length) cut = std::min(verdict.rfind(' ', line_length), verdict.size());
      const bool rest_is_lost = row == 1 && cut < verdict.size();
      lines.push_back({classes, rest_is_lost ? printable(verdict, line_length) : verdict.substr(0, cut)});
      verdict.erase(0, std::min(cut + 1, verdict.size()));
    }
    return lines;
  }

  Scale time() const { return Scale::exact(0, end_, Quantity::seconds, 8); }

  PlotFrame memory() const {
    PlotFrame frame("Memory of its own (PSS without file pages), by process", "", time(),
                    Scale::rounded(0, 1.05 * std::max(highest_, shows_limit_ ? limit() : 0.0), Quantity::bytes, 6),
                    tall_plot);
    areas(frame);
    used_line(frame);
    if (shows_limit_) frame.horizontal(limit(), "limit");
    kills(frame);
    names(frame);
    return frame;
  }

  // One upon the other, the largest at the bottom.
  void areas(PlotFrame& frame) const {
    if (samples_.empty()) return;
    std::vector<double> floor(samples_.size(), 0.0), roof(samples_.size(), 0.0);
    for (size_t rank = 0; rank <= shown_.size(); ++rank) {
      const bool rest = rank == shown_.size();
      for (size_t i = 0; i < samples_.size(); ++i) {
        roof[i] = rest ? static_cast<double>(samples_[i]->total_bytes)
                       : floor[i] + static_cast<double>(samples_[i]->bytes_of(shown_[rank]));
        // An area never turns upside down.
        roof[i] = std::max(roof[i], floor[i]);
      }
      if (!(rest && roof == floor)) frame.area(rest ? "other" : colours[rank], "", seconds_, floor, roof);
      floor = roof;
    }
  }

  void used_line(PlotFrame& frame) const {
    std::string path;
    for (size_t i = 0; i < samples_.size() && in_cgroup(); ++i) {
      const int64_t used = samples_[i]->around.used_bytes;  // 0: not known
      if (used > 0) path += (path.empty() ? "M" : "L") + frame.point(seconds_[i], static_cast<double>(used));
    }
    if (!path.empty()) frame.shape("<path class=\"line other\" d=\"" + path + "\"/>\n");
  }

  // The first few that were killed or crashed.
  void kills(PlotFrame& frame) const {
    size_t left = 4;
    for (const WatchedDeath& death : report_.deaths) {
      if (!death.is_violent() || left == 0) continue;
      const std::string what = death.oom_kill ? "OOM killer" : signal_name(death.signal);
      frame.vertical(std::min(seconds_of(death.time_ms), end_), "kill",
                     what + ": " + process_text(death.process.name, death.process.pid));
      --left;
    }
  }

  bool was_killed(int64_t pid) const {
    return std::ranges::any_of(
        report_.deaths, [&](const WatchedDeath& death) { return death.process.pid == pid && death.is_violent(); });
  }

  void names(PlotFrame& frame) const {
    const auto& series = report_.timeline.series();
    for (size_t rank = 0; rank < shown_.size(); ++rank) {
      const ProcessSeries& process = series[shown_[rank]];
      const bool killed = was_killed(process.pid);
      // Workers of one program have one name: what tells them apart is when they came.
      const std::string who =
          process.pid == report_.pid ? ", the command" : ", from " + time_text(seconds_of(process.first_ms));
      frame.legend(std::string("box ") + colours[rank],
                   printable(process.name, 16) + " (" + std::to_string(process.pid) + ")",
                   "at most " + size_text(process.peak_bytes) + (killed ? ", killed" : who), killed);
    }
    // Number 0 of the series is "others".
    const size_t others = series.size() - 1 - shown_.size();
    if (others > 0) frame.legend("box other", "others", std::to_string(others) + " small or short-lived");
    if (in_cgroup()) frame.legend("line other", "use of the cgroup", "without file pages");
    frame.legend("limit", in_cgroup() ? "limit of the cgroup" : "memory of the machine",
                 size_text(report_.bound.limit_bytes) + (shows_limit_ ? "" : ", above this plot"));
  }

  PlotFrame pressure() const {
    // Up to 10 % at least, so that a calm run looks calm.
    double most = 10;
    std::vector<double> floor(samples_.size(), 0.0), roof;
    for (const TimelineSample* sample : samples_) roof.push_back(sample->around.some_percent);
    for (const double percent : roof) most = std::max(most, percent);
    PlotFrame frame("Pressure: % of the last 10 s in which some process waited for memory", "", time(),
                    Scale::rounded(0, most, Quantity::number, 2), low_plot);
    if (!samples_.empty()) frame.area("other", "", seconds_, floor, roof);
    return frame;
  }

  const WatchReport& report_;
  std::vector<uint32_t> shown_;
  std::vector<double> seconds_;
  std::vector<const TimelineSample*> samples_;
  double end_ = 1, highest_ = 1;
  bool shows_limit_ = false;
};

}  // namespace

std::string watch_svg(const WatchReport& report) { return WatchChart(report).svg(); }

}  // namespace headroom
