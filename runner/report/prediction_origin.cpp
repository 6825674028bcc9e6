#include "report/prediction_origin.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/html.hpp"

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

}  // namespace headroom
