// Made-up fields, in the form that a model says it takes (headroom.inputs/1). `headroom plugins check` steps a model
// with them when it has no experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/inputs.h"
#include "plugins/source.hpp"

namespace headroom {

struct MadeUpField {
  Field field;      // every size is chosen
  double min, max;  // of its values, both inclusive; equal: no bounds

  // Element `i` of a sample, as the field's dtype can hold it: a function of the arguments alone. Fields that are made up
  // together have different sites.
  double value(uint64_t key, uint64_t site, uint64_t i) const;
};

// The fields that a model with these options takes. All sizes that the model leaves open are equal, so that those which
// must agree do. `options`: the values that the model declares. Error(plugin) where the description is not valid; Error
// with the plugin's sentence where it does not suit the options.
std::vector<MadeUpField> made_up_fields(const hr_inputs& api, const std::string& id, const hr_value* options);

}  // namespace headroom
