#include "report/sweep_report.hpp"

#include <algorithm>

#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "report/heat_map.hpp"
#include "report/json_text.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"
#include "report/run_report.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Figure = std::optional<double> SweptTrial::*;

std::string amount(const std::optional<double>& value, Quantity quantity) {
  return value ? amount_text(*value, quantity) : "";
}

// Why there is no figure: "infeasible, 1.2 GiB".
std::string words_of(const SweptTrial& trial) {
  const bool tells_peak = trial.state == "infeasible" || trial.state == "pruned";
  if ((trial.state == "dropped" || trial.state == "paused") && trial.epochs > 0)
    return trial.state + ", epoch " + std::to_string(trial.epochs);
  return trial.state +
         (tells_peak && trial.predicted_peak_bytes ? ", " + amount(trial.predicted_peak_bytes, Quantity::bytes) : "");
}

// Of the trials that share a cell - other keys were swept too - the one with the best metric stands for it.
bool stands_for(const SweepReading& sweep, const SweptTrial& trial, const SweptTrial* before) {
  if (before == nullptr) return true;
  if (trial.metric && before->metric)
    return sweep.lower_wins ? *trial.metric < *before->metric : *trial.metric > *before->metric;
  return trial.metric.has_value() && !before->metric.has_value();
}

std::string heat_map(const SweepReading& sweep, const std::string& row_key, const std::string& column_key,
                     const std::string& title, Figure figure, Quantity quantity) {
  HeatMap map{title, quantity, row_key, column_key, sweep.values_of(row_key), sweep.values_of(column_key), {}};
  bool any = false;
  for (const std::string& row : map.rows) {
    auto& cells = map.cells.emplace_back();
    for (const std::string& column : map.columns) {
      const SweptTrial* shown = nullptr;
      for (const SweptTrial& trial : sweep.trials) {
        if (trial.setting(row_key) == row && trial.setting(column_key) == column && stands_for(sweep, trial, shown))
          shown = &trial;
      }
      HeatCell& cell = cells.emplace_back();
      if (shown == nullptr) continue;
      // Figures of trials that stopped earlier do not compare.
      const bool ran = shown->state == "finished";
      if (ran) cell.value = shown->*figure;
      cell.words = words_of(*shown);
      cell.marked = shown->is_best;
      any = any || cell.value;
    }
  }
  return any || !map.rows.empty() ? heat_map_html(map) : "";
}

// Without those that have the value of an earlier one in every trial, as a constraint may want it.
std::vector<std::string> own_keys(const SweepReading& sweep) {
  std::vector<std::string> keys;
  for (const std::string& key : sweep.keys) {
    const bool repeats = std::ranges::any_of(keys, [&](const std::string& earlier) {
      return std::ranges::all_of(sweep.trials,
                                 [&](const SweptTrial& trial) { return trial.setting(key) == trial.setting(earlier); });
    });
    if (!repeats) keys.push_back(key);
  }
  return keys;
}

// The keys with most values first: those are what the sweep is about.
std::vector<std::pair<std::string, std::string>> pairs_of(const SweepReading& sweep) {
  // Beyond these the tables are too large to be read, and the page is too long.
  constexpr size_t most_values = 40, most_pairs = 3;
  std::vector<std::string> keys;
  for (const std::string& key : own_keys(sweep)) {
    const size_t count = sweep.values_of(key).size();
    // One value makes no axis.
    if (count > 1 && count <= most_values) keys.push_back(key);
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [&](const auto& a, const auto& b) { return sweep.values_of(a).size() > sweep.values_of(b).size(); });
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = i + 1; j < keys.size() && pairs.size() < most_pairs; ++j) {
      // In the order of the sweep, so that the same key stands on the same side.
      const bool in_order = std::find(sweep.keys.begin(), sweep.keys.end(), keys[i]) <
                            std::find(sweep.keys.begin(), sweep.keys.end(), keys[j]);
      pairs.emplace_back(keys[in_order ? i : j], keys[in_order ? j : i]);
    }
  }
  return pairs;
}

std::string heat_maps(const SweepReading& sweep) {
  std::string html;
  for (const auto& [row, column] : pairs_of(sweep)) {
    html += heat_map(sweep, row, column, "peak memory", &SweptTrial::peak_bytes, Quantity::bytes);
    html += heat_map(sweep, row, column, "samples per second", &SweptTrial::samples_per_second, Quantity::number);
    html += heat_map(sweep, row, column, sweep.metric, &SweptTrial::metric, Quantity::number);
  }
  if (html.empty()) return "";
  html = element("div", "class=\"charts\"", "\n" + html) + "\n";
  if (own_keys(sweep).size() > 2)
    html +=
        "<p class=\"soft\">More than two keys were swept: a cell shows the trial with the best metric of those that "
        "share it.</p>\n";
  return html;
}

std::string scatter(const SweepReading& sweep, const std::string& name, Figure figure, bool lower_wins) {
  std::vector<const SweptTrial*> trials;
  std::vector<ParetoPoint> points;
  for (const SweptTrial& trial : sweep.trials) {
    if (trial.state != "finished" || !trial.peak_bytes || !(trial.*figure) || !std::isfinite(*(trial.*figure)))
      continue;
    trials.push_back(&trial);
    points.push_back({*trial.peak_bytes, *(trial.*figure)});
  }
  // One point has nothing to stand against.
  if (points.size() < 2) return "";
  const auto [cheap, dear] =
      std::minmax_element(points.begin(), points.end(), [](auto& a, auto& b) { return a.cost < b.cost; });
  const auto [low, high] =
      std::minmax_element(points.begin(), points.end(), [](auto& a, auto& b) { return a.value < b.value; });
  const std::vector<size_t> front = pareto_front(points, lower_wins);
  PlotFrame frame(name + " against peak memory",
                  std::to_string(points.size()) + " trials, " + std::to_string(front.size()) + " on the Pareto front",
                  Scale::rounded(cheap->cost, dear->cost, Quantity::bytes, 4),
                  Scale::rounded(low->value, high->value, Quantity::number));
  frame.without_pointer();
  frame.tall();
  std::string steps;
  std::vector<std::vector<std::string>> rows;
  for (const size_t number : front) {
    const std::string at = frame.point(points[number].cost, points[number].value);
    // In steps: between two trials of the front there is nothing better than the cheaper one.
    steps += steps.empty() ? "M" + at : "H" + at.substr(0, at.find(' ')) + "V" + at.substr(at.find(' ') + 1);
    rows.push_back({trials[number]->id, amount_text(points[number].cost, Quantity::bytes),
                    amount_text(points[number].value, Quantity::number)});
  }
  frame.shape("<path class=\"line c1\" d=\"" + steps + "\"/>\n");
  for (size_t i = 0; i < points.size(); ++i) {
    const bool on_front = std::find(front.begin(), front.end(), i) != front.end();
    frame.shape("<path class=\"dots big " + colour_class(on_front ? 1 : 0) + "\" d=\"M" +
                frame.point(points[i].cost, points[i].value) + "h0\"><title>" +
                escape_html(trials[i]->id + ": " + amount_text(points[i].cost, Quantity::bytes) + ", " +
                            amount_text(points[i].value, Quantity::number)) +
                "</title></path>\n");
  }
  frame.legend(colour_class(1), "Pareto front");
  frame.legend(colour_class(0), "other trials");
  frame.below(folded("the front in numbers", table_html({"trial", "peak memory", name}, rows), /*open=*/true));
  return frame.html();
}

std::string fronts(const SweepReading& sweep) {
  const std::string html = scatter(sweep, sweep.metric, &SweptTrial::metric, sweep.lower_wins) +
                           scatter(sweep, "samples per second", &SweptTrial::samples_per_second, /*lower_wins=*/false);
  return html.empty() ? "" : element("div", "class=\"charts\"", "\n" + html) + "\n";
}

Cell figure_cell(const std::optional<double>& value, Quantity quantity) {
  // Sorted by the exact value: "1.2 GiB" is no number to the script.
  return {amount(value, quantity), value ? exact_number(*value) : ""};
}

std::string trials_table(const SweepReading& sweep) {
  std::vector<std::string> heading = {"trial"};
  heading.insert(heading.end(), sweep.keys.begin(), sweep.keys.end());
  heading.insert(heading.end(),
                 {"state", sweep.metric, "peak", "predicted", "samples/s", "time", "micro-batch", "identity", "why"});
  std::vector<std::vector<Cell>> rows;
  int64_t best = -1;
  for (const SweptTrial& trial : sweep.trials) {
    const std::string page = trial.run.empty() ? "" : trial.run + "/" + report_file;
    std::vector<Cell> row = {{trial.id, trial.id, page}};
    for (const std::string& key : sweep.keys) row.push_back({trial.setting(key)});
    row.push_back({trial.state});
    row.push_back(figure_cell(trial.metric, Quantity::number));
    row.push_back(figure_cell(trial.peak_bytes, Quantity::bytes));
    row.push_back(figure_cell(trial.predicted_peak_bytes, Quantity::bytes));
    row.push_back(figure_cell(trial.samples_per_second, Quantity::number));
    row.push_back(figure_cell(trial.train_seconds, Quantity::seconds));
    row.push_back({trial.micro_batch > 0 ? std::to_string(trial.micro_batch) : ""});
    // Eight digits are enough to tell identities apart.
    row.push_back({trial.identity.substr(0, 8)});
    row.push_back({trial.why});
    if (trial.is_best) best = static_cast<int64_t>(rows.size());
    rows.push_back(std::move(row));
  }
  return sortable_table(heading, rows, best);
}

std::string identities(const SweepReading& sweep) {
  std::vector<std::vector<std::string>> rows;
  if (!sweep.identities.is_array()) return "";
  for (const Json& group : sweep.identities) {
    if (!group.is_object()) continue;
    const auto member = [&](const char* key) { return text_of_json(key, group.value(key, Json())); };
    const bool agrees = group.value("agrees", Json(true)) == true;
    rows.push_back({member("identity").substr(0, 8), std::to_string(group.value("trials", Json::array()).size()),
                    member("metric"), member("largest_difference"), member("tolerance"),
                    agrees ? "agree" : "differ by more than is usual for rounding"});
  }
  if (rows.empty()) return "";
  return "<p>Trials of one identity have the same mathematics: their metrics are equal up to rounding.</p>\n" +
         table_html({"identity", "trials", "differs most", "by", "rounding may", ""}, rows);
}

std::string heading(const SweepReading& sweep) {
  std::string counts;
  for (const auto& [state, count] : sweep.counts.items())
    counts += (counts.empty() ? "" : ", ") + text_of_json(state, count) + " " + state;
  std::string html = element("h1", "", escape_html(sweep.name)) + "\n<p>sweep of " +
                     std::to_string(sweep.trials.size()) + " trials: " + escape_html(counts);
  if (sweep.scheduling_ms) html += "; scheduling took " + short_number(*sweep.scheduling_ms) + " ms a trial";
  html += "</p>\n";
  std::string tiles;
  const SweptTrial *lightest = nullptr, *fastest = nullptr;
  for (const SweptTrial& trial : sweep.trials) {
    if (trial.is_best) tiles += tile("best " + sweep.metric, amount(trial.metric, Quantity::number), trial.id);
    // Only finished trials have figures of the whole work.
    if (trial.state != "finished") continue;
    if (trial.peak_bytes && (lightest == nullptr || *trial.peak_bytes < *lightest->peak_bytes)) lightest = &trial;
    if (trial.samples_per_second && (fastest == nullptr || *trial.samples_per_second > *fastest->samples_per_second))
      fastest = &trial;
  }
  if (fastest != nullptr)
    tiles += tile("fastest, samples/s", amount(fastest->samples_per_second, Quantity::number), fastest->id);
  if (lightest != nullptr) tiles += tile("least memory", amount(lightest->peak_bytes, Quantity::bytes), lightest->id);
  return html + element("div", "class=\"tiles\"", "\n" + tiles) + "\n";
}

}  // namespace

std::string sweep_report(const fs::path& folder) {
  const SweepReading sweep = read_sweep(folder);
  std::string body = "<header>\n" + heading(sweep) + "</header>\n<main>\n";
  body += section("Heat maps", heat_maps(sweep));
  body += section("Memory against speed", trade_off(sweep));
  body += section("Pareto fronts", fronts(sweep));
  body += section("Trials", trials_table(sweep));
  body += section("Equal mathematics", identities(sweep));
  return page_html(sweep.name + " - sweep", body + "</main>\n");
}

void write_sweep_report(const fs::path& sweep) { write_file_atomically(sweep / report_file, sweep_report(sweep)); }

}  // namespace headroom
