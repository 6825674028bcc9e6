#include "report/prediction.hpp"

#include <cmath>

#include "report/scale.hpp"
#include "report/text_table.hpp"

namespace headroom {

std::vector<double> PredictedRecording::errors(const std::vector<double>& values) const {
  std::vector<double> sums(channels.size(), 0.0);
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
  std::vector<std::vector<std::string>> rows = {{"mean absolute error", "open loop", "ensembled", "hold last", "unit"}};
  for (size_t c = 0; c < channels.size(); ++c)
    rows.push_back({channels[c].name, number(open[c]), number(together[c]), number(hold[c]), channels[c].unit});
  rows.push_back({"all", number(error_in_std(open_loop)), number(error_in_std(ensembled)), number(error_in_std(held)),
                  "standard deviations"});
  return rows;
}

std::string PredictedRecording::table() const {
  const auto rows = error_rows();
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

}  // namespace headroom
