// headroom.predict/1 of a plugin, named in HEADROOM_PLUGIN beside its datasource or model:
//
//   .interfaces = {headroom::sdk::datasource<Source>(), headroom::sdk::predict<headroom::sdk::SourceSide<Source>>()}
//   .interfaces = {headroom::sdk::model<Net>(), headroom::sdk::predict<headroom::sdk::ModelSide<Net>>()}
//
// A plugin that is both names both sides in one predict<>(). SourceSide is in predict_source.hpp, ModelSide in
// predict_model.hpp; headroom/predict.h has the contract.
#pragma once

#include <string_view>

#include "headroom/predict.h"
#include "headroom/sdk/plugin.hpp"

namespace headroom::sdk {

template <class... Sides>
constexpr Interface predict() {
  return {.find = [](std::string_view id) -> const void* {
    static const hr_predict table = [] {
      hr_predict sides{};
      sides.struct_size = sizeof sides;
      (Sides::fill(sides), ...);
      return sides;
    }();
    return id == HR_PREDICT ? &table : nullptr;
  }};
}

}  // namespace headroom::sdk
