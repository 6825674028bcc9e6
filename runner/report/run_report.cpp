#include "report/run_report.hpp"

#include <algorithm>
#include <cstdio>

#include "record/run_folder.hpp"
#include "report/confusion.hpp"
#include "report/curves.hpp"
#include "report/examples.hpp"
#include "report/json_text.hpp"
#include "report/memory_chart.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"
#include "report/run_reading.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A member that may be missing, at any depth; null where it is.
Json at(const Json& json, std::initializer_list<const char*> path) {
  const Json* found = &json;
  for (const char* key : path) {
    if (!found->is_object() || !found->contains(key)) return {};
    found = &(*found)[key];
  }
  return *found;
}

std::string amount_at(const Json& json, std::initializer_list<const char*> path, Quantity quantity) {
  const Json value = at(json, path);
  return value.is_number() ? amount_text(value.get<double>(), quantity) : "";
}

std::string name_of(const RunReading& run) {
  const Json name = at(run.start, {"name"});
  return name.is_string() ? name.get<std::string>()
                          : fs::absolute(named_folder(run.folder)).parent_path().filename().string();
}

std::string state_of(const RunReading& run) {
  const Json state = at(run.summary, {"state"});
  if (run.ended_badly || !state.is_string()) return run.ended_badly ? "ended badly" : "not finished";
  return state.get<std::string>();
}

std::string heading(const RunReading& run) {
  const std::string state = state_of(run);
  const bool good = state == "finished" || state == "stopped_early";
  std::string html = element("h1", "", escape_html(name_of(run))) + "\n<p><span class=\"state " +
                     (good              ? "good"
                      : run.ended_badly ? "bad"
                                        : "") +
                     "\">" + escape_html(words_of_key(state)) + "</span> <small>" +
                     escape_html(named_folder(run.folder).filename().string());
  const Json started = at(run.start, {"time"});
  if (started.is_string()) html += ", started " + escape_html(started.get<std::string>());
  html += "</small></p>\n";
  if (good) return html;
  html += std::string("<div class=\"notice\" role=\"") + (run.ended_badly ? "alert" : "note") + "\">";
  for (const std::string& line : run.postmortem) html += element("p", "", escape_html(line));
  return html + "</div>\n";
}

std::string tiles(const RunReading& run) {
  const Json& summary = run.summary;
  std::string html;
  if (const Json best = at(summary, {"best"}); best.is_object()) {
    html += tile(
        "best " + text_of_json("metric", at(best, {"metric"})), amount_at(best, {"value"}, Quantity::number),
        "epoch " + text_of_json("epoch", at(best, {"epoch"})) + ", step " + text_of_json("step", at(best, {"step"})));
  }
  html += tile("steps", amount_at(summary, {"steps"}, Quantity::count),
               "epochs done: " + amount_at(summary, {"epochs"}, Quantity::count));
  html += tile("training", amount_at(summary, {"train_seconds"}, Quantity::seconds),
               "waited for data: " + amount_at(summary, {"data", "loader", "stall_seconds"}, Quantity::seconds));
  if (const MetricCurve* speed = run.metric("train/samples_per_second"); speed != nullptr && !speed->points.empty())
    html += tile("samples/s", amount_text(speed->points.entries().back().cell.last, Quantity::number), "at the end");
  const std::string limit = run.limit_bytes > 0
                                ? "of a limit of " + amount_text(static_cast<double>(run.limit_bytes), Quantity::bytes)
                                : "without a limit";
  html += tile("peak memory", amount_at(summary, {"memory", "measured_peak_bytes"}, Quantity::bytes), limit);
  return side_by_side("tiles", html);
}

struct MetricName {
  std::string split, metric;
  bool of_single_steps = false;
};

// "train/loss_step" is the loss between two log lines: it is drawn into the chart of "loss".
MetricName name_parts(const std::string& name) {
  const size_t slash = name.find('/');
  MetricName parts =
      slash == std::string::npos ? MetricName{"", name} : MetricName{name.substr(0, slash), name.substr(slash + 1)};
  constexpr std::string_view step = "_step";
  if (parts.metric.ends_with(step)) {
    parts.metric.resize(parts.metric.size() - step.size());
    parts.of_single_steps = true;
  }
  return parts;
}

// A split has the same colour in every chart; a metric without a split takes the first.
std::string colour_of(const std::string& split) {
  constexpr std::array<std::string_view, 4> splits = {"train", "val", "test", ""};
  const auto found = std::find(splits.begin(), splits.end(), split);
  return colour_class(found == splits.end() ? 3 : static_cast<size_t>(found - splits.begin()) % 3);
}

CurveChart chart_of(const RunReading& run, const std::string& metric) {
  CurveChart chart;
  chart.title = words_of_key(metric);
  // Whoever opens a report looks for the loss, even if there is one value of it.
  chart.wanted_anyway = metric == "loss";
  for (const MetricCurve& curve : run.metrics) {
    const MetricName name = name_parts(curve.name);
    if (name.metric != metric) continue;
    const std::string split = name.split.empty() ? metric : name.split;
    chart.curves.push_back({name.of_single_steps ? split + ", between log lines" : split, colour_of(name.split),
                            &curve.points, name.of_single_steps});
  }
  const Json best = at(run.summary, {"best", "metric"}), step = at(run.summary, {"best", "step"});
  if (best.is_string() && step.is_number() && name_parts(best.get<std::string>()).metric == metric) {
    chart.marked_x = step.get<double>();
    chart.mark = "best " + best.get<std::string>();
  }
  return chart;
}

// "error_12": one of a row, of channels or joints.
bool is_numbered(const std::string& metric) {
  const size_t digits = metric.find_last_not_of("0123456789");
  return digits != std::string::npos && digits + 1 < metric.size() && metric[digits] == '_';
}

// Loss first, then how training went, then what decides, then the rest as it came, rows of numbered metrics last.
std::vector<std::string> metric_order(const RunReading& run) {
  std::vector<std::string> metrics = {"loss"};
  const auto add = [&](const std::string& metric) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.push_back(metric);
  };
  if (const Json best = at(run.summary, {"best", "metric"}); best.is_string())
    add(name_parts(best.get<std::string>()).metric);
  const std::vector<std::string> course = {"lr", "gradient_norm", "samples_per_second"};
  for (const bool numbered : {false, true}) {
    for (const MetricCurve& curve : run.metrics) {
      const std::string metric = name_parts(curve.name).metric;
      if (is_numbered(metric) == numbered && std::find(course.begin(), course.end(), metric) == course.end())
        add(metric);
    }
  }
  // All of them, whatever the run has: a chart without points is left out.
  metrics.insert(metrics.begin() + 1, course.begin(), course.end());
  return metrics;
}

std::string curves(const RunReading& run) {
  // Three rows of three on a wide page.
  constexpr size_t shown_at_once = 9;
  std::string html, more;
  size_t number = 0;
  for (const std::string& metric : metric_order(run)) {
    CurveChart chart = chart_of(run, metric);
    if (metric == "lr") {
      chart.title = "learning rate";
      chart.linear = true;  // schedules end at 0
    }
    if (metric == "samples_per_second") chart.title = "samples per second";
    const std::string drawn = curve_chart(chart);
    if (!drawn.empty()) (++number <= shown_at_once ? html : more) += drawn;
  }
  if (html.empty()) return "";
  html = side_by_side("charts", html);
  if (!more.empty())
    html += folded(std::to_string(number - shown_at_once) + " more metrics", element("div", "class=\"charts\"", more));
  if (run.metrics_left_out > 0) html += "<p class=\"soft\">Metrics beyond the first 256 are left out.</p>\n";
  return html;
}

// Every metric of the last evaluation, its splits side by side.
std::string metrics_table(const RunReading& run) {
  const Json metrics = at(run.summary, {"metrics"});
  if (!metrics.is_object()) return "";
  std::vector<std::string> splits, names;
  const auto add = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const auto& [key, value] : metrics.items()) {
    // Keys are "<split>/<metric>".
    const size_t slash = key.find('/');
    add(splits, slash == std::string::npos ? "" : key.substr(0, slash));
    add(names, slash == std::string::npos ? key : key.substr(slash + 1));
  }
  std::vector<std::string> heading = {"metric"};
  heading.insert(heading.end(), splits.begin(), splits.end());
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row = {name};
    for (const std::string& split : splits) {
      const auto value = metrics.find(split.empty() ? name : split + "/" + name);
      // A split that lacks the metric has an empty cell.
      row.push_back(value == metrics.end() ? "" : text_of_json("", *value));
    }
    rows.push_back(std::move(row));
  }
  return table_html(heading, rows);
}

std::string plan_and_fact(const RunReading& run) {
  const Json predicted = at(run.summary, {"memory", "predicted_peak_bytes"}),
             measured = at(run.summary, {"memory", "measured_peak_bytes"});
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, const Json& bytes, const std::string& remark) {
    if (bytes.is_number()) rows.push_back({name, amount_text(bytes.get<double>(), Quantity::bytes), remark});
  };
  add("predicted peak", predicted, "");
  std::string difference;
  if (predicted.is_number() && measured.is_number() && predicted.get<double>() > 0) {
    // Above 0 the run took more than was planned.
    const double percent = 100 * (measured.get<double>() / predicted.get<double>() - 1);
    difference = (percent >= 0 ? "+" : "") + amount_text(std::round(10 * percent) / 10, Quantity::number) +
                 " % against the prediction";
  }
  add("measured peak", measured, difference);
  add("limit", run.limit_bytes > 0 ? Json(run.limit_bytes) : Json(),
      text_of_json("rule", at(run.summary, {"memory", "limit_rule"})));
  return rows.empty() ? "" : table_html({"", "bytes", ""}, rows);
}

// What of the summary has no place of its own, so that nothing is lost that a later version writes.
Json without(Json summary, std::initializer_list<const char*> keys) {
  if (!summary.is_object()) return {};
  for (const char* key : keys) summary.erase(key);
  return summary;
}

std::string memory_numbers(const RunReading& run) {
  return json_table(without(at(run.summary, {"memory"}),
                            {"predicted_peak_bytes", "measured_peak_bytes", "limit_bytes", "limit_rule"}));
}

}  // namespace

std::string run_report(const fs::path& folder) {
  const RunReading run = read_run(folder);
  const Json& summary = run.summary;
  std::string body = "<header>\n" + heading(run) + tiles(run) + "</header>\n<main>\n";
  body += section("Curves", curves(run));
  body += section("Confusion matrix", confusion_html(at(summary, {"classes"})));
  body += section("Examples", examples_html(folder));
  body += section("Memory",
                  memory_chart(run) + plan_and_fact(run) + folded("peaks, gc points, retries", memory_numbers(run)));
  body += section("Metrics at the end", metrics_table(run));
  body += section("Cache", json_table(at(summary, {"data", "cache"})));
  body += section("Loader", json_table(at(summary, {"data", "loader"})));
  body += section("Data", json_table(without(at(summary, {"data"}), {"cache", "loader"})));
  // What is taken out has a place of its own; "format" is for programs.
  body += section("Environment and totals",
                  json_table(without(summary, {"memory", "metrics", "data", "channels", "classes", "best", "format"})));
  if (const Json channels = at(summary, {"channels"}); channels.is_object() && !channels.empty())
    body += section("By channel", folded("values by channel", json_table(channels)));
  if (!run.experiment_toml.empty())
    body += section("Configuration", folded("experiment.toml", element("pre", "", escape_html(run.experiment_toml))));
  // Said, because a curve may have a gap there.
  if (run.torn_lines > 0)
    body +=
        "<p class=\"soft\">" + std::to_string(run.torn_lines) + " lines of the logs are damaged and left out.</p>\n";
  return page_html(name_of(run) + " - " + state_of(run), body + "</main>\n");
}

void write_run_report(const fs::path& run) { write_file_atomically(run / report_file, run_report(run)); }

void try_to_write_run_report(const fs::path& run) {
  try {
    write_run_report(run);
  } catch (const std::exception& problem) {
    // Any exception: the run has ended, and its exit code stays.
    std::fprintf(stderr, "%s; the run's results are not concerned\n", problem.what());
  }
}

}  // namespace headroom
