#include "report/predicted_pictures.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/curves.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

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
