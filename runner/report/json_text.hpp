// JSON of unknown shape - statistics of caches and loaders, additions of later versions - for people: keys as words,
// values in the units that their keys end in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/scale.hpp"

namespace headroom {

// The value in the unit that the end of its key names: bytes, seconds (also from _ms), or a count for whole numbers.
std::string text_of_json(const std::string& key, const nlohmann::json& value);

// An HTML table of names and values. Objects within objects become rows "outer inner", or a table of their own where
// all of them have the same keys. "" for an empty object.
std::string json_table(const nlohmann::json& object);

}  // namespace headroom
