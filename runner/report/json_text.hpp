// JSON whose shape nobody knows beforehand - statistics of caches and loaders, what a later version adds - for people:
// keys as words, values in the units their keys end in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/scale.hpp"

namespace headroom {

// What a key's end says of its values: bytes, seconds (also from _ms), counts for whole numbers.
std::string text_of_json(const std::string& key, const nlohmann::json& value);

// A table of names and values; objects within objects become rows "outer inner", or a table of their own where all of
// them have the same keys. HTML; "" for what holds nothing.
std::string json_table(const nlohmann::json& object);

}  // namespace headroom
