#include "report/curves.hpp"
#include "report/html.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"
#include "report/prediction.hpp"

namespace headroom {

namespace {

std::string number(double value) { return amount_text(value, Quantity::number); }

std::string tiles(const PredictedRecording& told) {
  std::string html;
  const auto add = [&](const char* name, const std::vector<double>& values, const std::string& remark) {
    html += tile(name, number(told.error_in_std(values)) + " std", remark);
  };
  const std::string each = amount_text(static_cast<double>(told.horizon), Quantity::count) + " steps";
  add("open loop", told.open_loop, "mean absolute error; asked every " + each);
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
  chart.curves = {{"recorded", "other", &recorded},
                  {"open loop", colour_class(1), &open_loop, /*faint=*/true},
                  {"ensembled", colour_class(0), &ensembled}};
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

}  // namespace headroom
