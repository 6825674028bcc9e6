#include "plan/probe.hpp"

#include <nlohmann/json.hpp>

namespace headroom {

nlohmann::json Probe::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ProbePoint& point : points) {
    list.push_back(
        {{"micro_batch", point.micro_batch}, {"held_bytes", point.held_bytes}, {"least_bytes", point.least_bytes}});
  }
  return {
      {"built_bytes", built_bytes}, {"base_bytes", base_bytes},         {"points", list},
      {"shortage", shortage},       {"train_samples", train_samples},   {"val_samples", val_samples},
      {"kept_bytes", kept_bytes},   {"chunk_bytes", chunk_bytes},       {"largest_chunk_bytes", largest_chunk_bytes},
      {"field_bytes", field_bytes}, {"why_whole", indivisible_because}, {"seconds", seconds}};
}

Probe Probe::from_json(const nlohmann::json& json) {
  Probe probe;
  json.at("built_bytes").get_to(probe.built_bytes);
  json.at("base_bytes").get_to(probe.base_bytes);
  for (const nlohmann::json& point : json.at("points")) {
    probe.points.push_back({point.at("micro_batch"), {}});
    point.at("held_bytes").get_to(probe.points.back().held_bytes);
    point.at("least_bytes").get_to(probe.points.back().least_bytes);
  }
  json.at("shortage").get_to(probe.shortage);
  json.at("train_samples").get_to(probe.train_samples);
  json.at("val_samples").get_to(probe.val_samples);
  json.at("kept_bytes").get_to(probe.kept_bytes);
  json.at("chunk_bytes").get_to(probe.chunk_bytes);
  json.at("largest_chunk_bytes").get_to(probe.largest_chunk_bytes);
  json.at("field_bytes").get_to(probe.field_bytes);
  json.at("why_whole").get_to(probe.indivisible_because);
  json.at("seconds").get_to(probe.seconds);
  return probe;
}

}  // namespace headroom
