// Which run predicted what.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headroom {

struct PredictionOrigin {
  std::string run, input, checkpoint;  // paths
  int64_t trained_steps = 0;

  std::string title() const;    // of a page
  std::string heading() const;  // HTML
  nlohmann::json json() const;  // an object, to be added to
};

}  // namespace headroom
