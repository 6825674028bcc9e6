#include "report/predicted_lines.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/curves.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"
#include "report/scale.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

constexpr size_t most_charts = 40;  // on one page

std::string error_text(double error) { return std::isfinite(error) ? amount_text(error, Quantity::number) : "-"; }

nlohmann::json error_json(double error) { return std::isfinite(error) ? nlohmann::json(error) : nlohmann::json(); }

double mean_over(const std::vector<double>& errors) {
  return std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
}

void add_point(Decimated<Extremes>& points, double x, double y) {
  // A value that is no number has no place on an axis.
  if (std::isfinite(y)) points.add(x, Extremes::of(x, y));
}

}  // namespace

PredictedLines::PredictedLines(PredictionOrigin origin, std::string field, std::vector<sdk::Channel> channels)
    : origin_(std::move(origin)),
      field_(std::move(field)),
      channels_(std::move(channels)),
      predicted_sums_(channels_.size(), 0.0),
      held_sums_(channels_.size(), 0.0),
      counted_(channels_.size(), 0) {}

void PredictedLines::begin(const std::string& name) {
  Recording& recording = recordings_.emplace_back();
  recording.name = name;
  recording.drawn.resize(std::min(channels_.size(), most_charts - charts_));
  charts_ += recording.drawn.size();
}

void PredictedLines::add(int64_t row, const LineRow& values) {
  Recording& recording = recordings_.back();
  ++recording.rows;
  const auto x = static_cast<double>(row);
  for (size_t c = 0; c < channels_.size(); ++c) {
    if (values.valid[c] != 0 && std::isfinite(values.recorded[c])) {
      predicted_sums_[c] += std::abs(values.predicted[c] - values.recorded[c]);
      held_sums_[c] += std::abs(values.held[c] - values.recorded[c]);
      ++counted_[c];
    }
    if (c >= recording.drawn.size()) continue;
    Drawn& drawn = recording.drawn[c];
    add_point(drawn.predicted, x, values.predicted[c]);
    add_point(drawn.held, x, values.held[c]);
    if (values.valid[c] != 0) add_point(drawn.recorded, x, values.recorded[c]);
  }
}

std::vector<double> PredictedLines::means_of(const std::vector<double>& sums) const {
  std::vector<double> means(sums.size());
  for (size_t c = 0; c < sums.size(); ++c)
    means[c] = counted_[c] > 0 ? sums[c] / static_cast<double>(counted_[c]) : NAN;
  return means;
}

bool PredictedLines::one_unit() const {
  return std::ranges::all_of(channels_,
                             [&](const sdk::Channel& channel) { return channel.unit == channels_.front().unit; });
}

std::vector<std::vector<std::string>> PredictedLines::error_rows() const {
  const std::vector<double> predicted = predicted_errors(), held = held_errors();
  std::vector<std::vector<std::string>> rows = {{"mean absolute error", "prediction", "hold last", "unit"}};
  for (size_t c = 0; c < channels_.size(); ++c)
    rows.push_back({channels_[c].name, error_text(predicted[c]), error_text(held[c]), channels_[c].unit});
  if (channels_.size() > 1 && one_unit())
    rows.push_back({"all", error_text(mean_over(predicted)), error_text(mean_over(held)), channels_.front().unit});
  return rows;
}

std::string PredictedLines::table() const {
  const auto rows = error_rows();
  TextTable table(rows.front(), 1);
  for (size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  return table.text();
}

nlohmann::json PredictedLines::json() const {
  const std::vector<double> predicted = predicted_errors(), held = held_errors();
  nlohmann::json errors = nlohmann::json::array(), recordings = nlohmann::json::array();
  for (size_t c = 0; c < channels_.size(); ++c) {
    errors.push_back({{"name", channels_[c].name},
                      {"unit", channels_[c].unit},
                      {"prediction", error_json(predicted[c])},
                      {"hold_last", error_json(held[c])}});
  }
  for (const Recording& recording : recordings_)
    recordings.push_back({{"name", recording.name}, {"rows", recording.rows}});
  return {{"field", field_}, {"mean_absolute_error", errors}, {"recordings", recordings}};
}

std::string PredictedLines::tiles_html() const {
  std::string html;
  if (one_unit()) {
    const std::string unit = channels_.front().unit.empty() ? "" : " " + channels_.front().unit;
    html += tile("prediction", error_text(mean_over(predicted_errors())) + unit, "mean absolute error of " + field_);
    html += tile("hold last", error_text(mean_over(held_errors())) + unit, "of what needs no model");
  }
  uint64_t rows = 0;
  for (const Recording& recording : recordings_) rows += recording.rows;
  html += tile("rows", amount_text(static_cast<double>(rows), Quantity::count),
               "of " + amount_text(static_cast<double>(recordings_.size()), Quantity::count) + " recordings");
  return element("div", "class=\"tiles\"", "\n" + html) + "\n";
}

std::string PredictedLines::charts_html(const Recording& recording) const {
  std::string html;
  for (size_t c = 0; c < recording.drawn.size(); ++c) {
    CurveChart chart;
    chart.title = channels_[c].name;
    chart.note = channels_[c].unit;
    chart.x_name = "row";
    const Drawn& drawn = recording.drawn[c];
    // As PredictedRecording: what was recorded is grey.
    chart.curves = {{"recorded", "other", &drawn.recorded},
                    {"hold last", colour_class(1), &drawn.held, /*faint=*/true},
                    {"prediction", colour_class(0), &drawn.predicted}};
    chart.linear = chart.wanted_anyway = true;
    html += curve_chart(chart);
  }
  return html.empty() ? "" : element("div", "class=\"charts\"", "\n" + html) + "\n";
}

std::string PredictedLines::page() const {
  std::string sections;
  size_t drawn = 0;
  for (const Recording& recording : recordings_) {
    drawn += recording.drawn.size();
    sections += section(recording.name.empty() ? field_ : recording.name, charts_html(recording));
  }
  if (drawn < recordings_.size() * channels_.size())
    sections += "<p><small>" + std::to_string(drawn) + " of " + std::to_string(recordings_.size() * channels_.size()) +
                " charts are drawn; the errors are of all.</small></p>\n";
  const auto rows = error_rows();
  return page_html(origin_.title(), "<header>\n" + origin_.heading() + tiles_html() + "</header>\n<main>\n" + sections +
                                        section("Errors", table_html(rows.front(), {rows.begin() + 1, rows.end()})) +
                                        "</main>\n");
}

}  // namespace headroom
