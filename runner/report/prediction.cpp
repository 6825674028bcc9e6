#include "report/prediction.hpp"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/curves.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"
#include "report/scale.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

std::string name_of(const std::string& path) { return std::filesystem::path(path).lexically_normal().filename(); }

}  // namespace

std::string PredictionOrigin::title() const { return name_of(input) + " - prediction"; }

std::string PredictionOrigin::heading() const {
  return element("h1", "", escape_html(name_of(input))) + "\n<p><small>predicted by " +
         escape_html(name_of(run) + ", " + name_of(checkpoint)) + "</small></p>\n";
}

nlohmann::json PredictionOrigin::json() const {
  return {{"run", run}, {"input", input}, {"checkpoint", checkpoint}, {"step", trained_steps}};
}

std::vector<double> PredictedRecording::errors(const std::vector<double>& values) const {
  std::vector<double> sums(channels.size(), 0.0);
  // Values lie step after step, the channels of a step together.
  for (size_t i = 0; i < recorded.size(); ++i) sums[i % channels.size()] += std::abs(values[i] - recorded[i]);
  for (double& sum : sums) sum /= static_cast<double>(steps());
  return sums;
}

double PredictedRecording::error_in_std(const std::vector<double>& values) const {
  const std::vector<double> each = errors(values);
  double sum = 0.0;
  for (size_t c = 0; c < each.size(); ++c) sum += each[c] / channels[c].std;
  return sum / static_cast<double>(each.size());
}

std::vector<std::vector<std::string>> PredictedRecording::error_rows() const {
  const std::vector<double> open = errors(open_loop), together = errors(ensembled), hold = errors(held);
  const auto number = [](double value) { return amount_text(value, Quantity::number); };
  // The first row is the heading: table() and page() take it off.
  std::vector<std::vector<std::string>> rows = {{"mean absolute error", "open loop", "ensembled", "hold last", "unit"}};
  for (size_t c = 0; c < channels.size(); ++c)
    rows.push_back({channels[c].name, number(open[c]), number(together[c]), number(hold[c]), channels[c].unit});
  // Units do not add, so the line for all channels is in standard deviations.
  rows.push_back({"all", number(error_in_std(open_loop)), number(error_in_std(ensembled)), number(error_in_std(held)),
                  "standard deviations"});
  return rows;
}

std::string PredictedRecording::table() const {
  const auto rows = error_rows();
  // Names of channels begin at the left, figures end at the right.
  TextTable table(rows.front(), 1);
  for (size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  return table.text();
}

nlohmann::json PredictedRecording::json() const {
  const std::vector<double> open = errors(open_loop), together = errors(ensembled), hold = errors(held);
  nlohmann::json list = nlohmann::json::array();
  for (size_t c = 0; c < channels.size(); ++c) {
    list.push_back({{"name", channels[c].name},
                    {"unit", channels[c].unit},
                    {"open_loop", open[c]},
                    {"ensembled", together[c]},
                    {"hold_last", hold[c]}});
  }
  nlohmann::json json = origin.json();
  json.update({{"steps", steps()},
               {"horizon", horizon},
               {"mean_absolute_error", list},
               {"all_in_std",
                {{"open_loop", error_in_std(open_loop)},
                 {"ensembled", error_in_std(ensembled)},
                 {"hold_last", error_in_std(held)}}}});
  return json;
}

namespace {

std::string number(double value) { return amount_text(value, Quantity::number); }

std::string tiles(const PredictedRecording& told) {
  std::string html;
  const auto add = [&](const char* name, const std::vector<double>& values, const std::string& remark) {
    html += tile(name, number(told.error_in_std(values)) + " std", remark);
  };
  const std::string each = amount_text(static_cast<double>(told.horizon), Quantity::count) + " steps";
  add("open loop", told.open_loop, "mean absolute error; asked every " + each);
  // The older of the predictions made for a step weighs more (docs/predict.md).
  add("ensembled", told.ensembled, "asked at every step, answers weighed");
  add("hold last position", told.held, "of what needs no model, every " + each);
  html += tile("steps", amount_text(static_cast<double>(told.steps()), Quantity::count), "of the recording");
  return element("div", "class=\"tiles\"", "\n" + html) + "\n";
}

Decimated<Extremes> points_of(const PredictedRecording& told, const std::vector<double>& values, size_t channel) {
  Decimated<Extremes> points;
  for (uint64_t step = 0; step < told.steps(); ++step) {
    const auto x = static_cast<double>(step);
    points.add(x, Extremes::of(x, values[step * told.channels.size() + channel]));
  }
  return points;
}

std::string chart(const PredictedRecording& told, size_t channel) {
  const auto recorded = points_of(told, told.recorded, channel), open_loop = points_of(told, told.open_loop, channel),
             ensembled = points_of(told, told.ensembled, channel);
  CurveChart chart;
  chart.title = told.channels[channel].name;
  chart.note = told.channels[channel].unit;
  // What was recorded is grey: the colours are for the model.
  chart.curves = {{"recorded", "other", &recorded},
                  {"open loop", colour_class(1), &open_loop, /*faint=*/true},
                  {"ensembled", colour_class(0), &ensembled}};
  // Every channel has its chart, also of a single step.
  chart.linear = chart.wanted_anyway = true;
  return curve_chart(chart);
}

std::string charts(const PredictedRecording& told) {
  std::string html;
  for (size_t channel = 0; channel < told.channels.size(); ++channel) html += chart(told, channel);
  return element("div", "class=\"charts\"", "\n" + html) + "\n";
}

std::string error_table(const PredictedRecording& told) {
  const auto rows = told.error_rows();
  return table_html(rows.front(), {rows.begin() + 1, rows.end()});
}

}  // namespace

std::string PredictedRecording::page() const {
  return page_html(origin.title(), "<header>\n" + origin.heading() + tiles(*this) + "</header>\n<main>\n" +
                                       section("Recorded and predicted", charts(*this)) +
                                       section("Errors", error_table(*this)) + "</main>\n");
}

namespace {

using Json = nlohmann::json;

// PSNR of equal pictures is infinite.
std::string decibels(double value) {
  return std::isfinite(value) ? amount_text(value, Quantity::number) + " dB" : "equal";
}

// JSON has no infinity, so equal pictures give null.
Json json_number(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

std::optional<double> mean_of(const std::vector<PictureStep>& steps, std::optional<double> PictureStep::*figure) {
  double sum = 0;
  size_t finite = 0;
  for (const PictureStep& step : steps) {
    // A figure is known of all steps or of none: a recording has its target throughout, or not at all.
    if (!(step.*figure)) return std::nullopt;
    if (!std::isfinite(*(step.*figure))) continue;
    sum += *(step.*figure);
    ++finite;
  }
  return finite > 0 ? sum / static_cast<double>(finite) : INFINITY;
}

std::string tiles(const PredictedPictures& told) {
  std::string html;
  if (const auto known = told.psnr_db())
    html += tile("predicted", decibels(*known), "PSNR against the target, mean over the steps that differ from it");
  if (const auto before = told.before_psnr_db()) html += tile(told.before, decibels(*before), "before the model");
  html += tile("steps", amount_text(static_cast<double>(told.steps.size()), Quantity::count),
               "asked for " + amount_text(static_cast<double>(told.horizon), Quantity::count) + " at a time");
  return element("div", "class=\"tiles\"", "\n" + html) + "\n";
}

std::string pictures(const PredictedPictures& told) {
  std::string html;
  for (const ShownPicture& shown : told.shown) {
    const std::string step = "step " + amount_text(static_cast<double>(shown.step), Quantity::count);
    html += element("div", "class=\"pictures\"",
                    "\n" + picture_html(shown.before, told.before + ", " + step) +
                        picture_html(shown.predicted, "predicted, " + step) +
                        picture_html(shown.target, "target, " + step)) +
            "\n";
  }
  return html;
}

std::string chart(const PredictedPictures& told) {
  Decimated<Extremes> predicted, before;
  for (size_t i = 0; i < told.steps.size(); ++i) {
    const auto x = static_cast<double>(i);
    const PictureStep& step = told.steps[i];
    // An infinite value has no place on an axis.
    if (step.psnr_db && std::isfinite(*step.psnr_db)) predicted.add(x, Extremes::of(x, *step.psnr_db));
    if (step.before_psnr_db && std::isfinite(*step.before_psnr_db))
      before.add(x, Extremes::of(x, *step.before_psnr_db));
  }
  CurveChart chart;
  chart.title = "PSNR";
  chart.note = "dB, higher is better";
  chart.curves = {{"predicted", colour_class(0), &predicted}};
  if (!before.empty()) chart.curves.push_back({told.before, colour_class(1), &before});
  // Decibels are a logarithm already.
  chart.linear = true;
  const std::string html = curve_chart(chart);
  return html.empty() ? "" : element("div", "class=\"charts\"", "\n" + html) + "\n";
}

}  // namespace

std::optional<double> PredictedPictures::psnr_db() const { return mean_of(steps, &PictureStep::psnr_db); }

std::optional<double> PredictedPictures::before_psnr_db() const { return mean_of(steps, &PictureStep::before_psnr_db); }

std::string PredictedPictures::text() const {
  std::string text = std::to_string(steps.size()) + " pictures";
  if (const auto known = psnr_db()) text += ", PSNR " + decibels(*known);
  if (const auto known = before_psnr_db()) text += ", of " + before + " " + decibels(*known);
  return text + "\n";
}

Json PredictedPictures::json() const {
  Json list = Json::array();
  for (const PictureStep& step : steps) {
    Json known = {{"psnr_db", json_number(step.psnr_db)}};
    if (step.before_psnr_db) known["before_psnr_db"] = json_number(step.before_psnr_db);
    list.push_back(std::move(known));
  }
  Json json = origin.json();
  json.update({{"horizon", horizon}, {"steps", list}, {"psnr_db", json_number(psnr_db())}});
  if (const auto before_db = before_psnr_db())
    json["before"] = {{"field", before}, {"psnr_db", json_number(before_db)}};
  return json;
}

std::string PredictedPictures::page() const {
  return page_html(origin.title(), "<header>\n" + origin.heading() + tiles(*this) + "</header>\n<main>\n" +
                                       section("Before and after", pictures(*this)) +
                                       section("Every step", chart(*this)) + "</main>\n");
}

}  // namespace headroom
