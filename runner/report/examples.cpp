#include "report/examples.hpp"

#include <algorithm>

#include "record/run_folder.hpp"
#include "report/curves.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

// A member of that kind; null where there is none: the file may be damaged.
Json member(const Json& json, const char* key, Json::value_t type) {
  if (!json.is_object() || !json.contains(key)) return {};
  const Json& value = json[key];
  // Any number will do where one is wanted: 1 is written as an integer.
  const bool both_numbers = value.is_number() && type == Json::value_t::number_float;
  return value.type() == type || both_numbers ? value : Json();
}
Json list_in(const Json& json, const char* key) {
  Json list = member(json, key, Json::value_t::array);
  return list.is_array() ? list : Json::array();
}
std::string text_in(const Json& json, const char* key) {
  const Json text = member(json, key, Json::value_t::string);
  return text.is_string() ? text.get<std::string>() : "";
}
double number_in(const Json& json, const char* key, double otherwise) {
  const Json number = member(json, key, Json::value_t::number_float);
  return number.is_number() ? number.get<double>() : otherwise;
}

std::string after(const Json& evaluation) {
  return "after epoch " + amount_text(number_in(evaluation, "epoch", 0), Quantity::count);
}

// What has the same place in the first evaluation; null where that was the last one, too.
Json same_place(const Json& list, size_t number) { return number < list.size() ? list[number] : Json(); }

Decimated<Extremes> points_of(const Json& channel, const char* key, double stride) {
  Decimated<Extremes> points;
  double x = 0;
  for (const Json& value : list_in(channel, key)) {
    // Null does not count (examples.hpp), but keeps its place on the axis.
    if (value.is_number()) points.add(x, Extremes::of(x, value.get<double>()));
    x += stride;
  }
  return points;
}

std::string series_html(const Json& first, const Json& last, const std::string& first_name,
                        const std::string& last_name) {
  const std::string unit = text_in(last, "unit");
  const double stride = number_in(last, "stride", 1);
  const Json channels = list_in(last, "channels"), early = list_in(first, "channels");
  std::string html;
  for (size_t i = 0; i < channels.size(); ++i) {
    const auto prediction = points_of(channels[i], "prediction", stride),
               target = points_of(channels[i], "target", stride),
               before = points_of(same_place(early, i), "prediction", stride);
    CurveChart chart;
    chart.title =
        text_in(last, "name") + ", channel " + amount_text(number_in(channels[i], "channel", 0), Quantity::count);
    chart.note = unit;
    chart.x_name = "place in the series";
    // What counts is the shape of the series, which a log scale would bend.
    chart.linear = true;
    // Both answers of the model have one colour; the early one lies faint behind.
    if (!before.empty()) chart.curves.push_back({first_name, colour_class(0), &before, /*faint=*/true});
    chart.curves.push_back({"target", colour_class(1), &target});
    chart.curves.push_back({last_name, colour_class(0), &prediction});
    html += curve_chart(chart);
  }
  return html;
}

std::string pictures_html(const Json& first, const Json& last, const std::string& first_name,
                          const std::string& last_name) {
  std::string html;
  for (const Json& input : list_in(last, "inputs"))
    html += picture_html(text_in(input, "picture"), text_in(input, "name"));
  html += picture_html(text_in(first, "prediction"), text_in(last, "name") + " " + first_name);
  html += picture_html(text_in(last, "prediction"), text_in(last, "name") + " " + last_name);
  html += picture_html(text_in(last, "target"), "target");
  return html.empty() ? "" : element("div", "class=\"pictures\"", "\n" + html) + "\n";
}

}  // namespace

std::string examples_html(const std::filesystem::path& run) {
  const Json json = read_json_file(run / examples_file);
  const Json last = member(json, "last", Json::value_t::object);
  Json first = member(json, "first", Json::value_t::object);
  // Of a run with one evaluation the first is the last.
  if (number_in(first, "step", 0) >= number_in(last, "step", 0)) first = Json();
  const Json samples = list_in(last, "samples"), early = list_in(first, "samples");
  std::string html;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Json outputs = list_in(samples[i], "outputs"), before = list_in(same_place(early, i), "outputs");
    std::string charts, pictures;
    for (size_t output = 0; output < outputs.size(); ++output) {
      const Json& shown = outputs[output];
      const bool is_picture = text_in(shown, "kind") == "picture";
      (is_picture ? pictures : charts) +=
          (is_picture ? pictures_html : series_html)(same_place(before, output), shown, after(first), after(last));
    }
    if (!charts.empty()) charts = element("div", "class=\"charts\"", "\n" + charts) + "\n";
    if (charts.empty() && pictures.empty()) continue;
    const std::string name =
        "sample " + amount_text(number_in(samples[i], "sample", 0), Quantity::count) + " of the validation split";
    // The first sample lies open, the others are folded.
    html += i == 0 ? element("p", "", escape_html(name)) + "\n" + pictures + charts : folded(name, pictures + charts);
  }
  return html;
}

}  // namespace headroom
