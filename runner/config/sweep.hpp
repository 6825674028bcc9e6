// [sweep]: lists of values by key, "train.batch_size" = [8, 16]. Each value must be one that the key could hold.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

#include "config/options.hpp"

namespace headroom {

// Keys are known and lists hold what their keys allow; options of plugins are left to check_swept_options().
void check_sweep(toml::table& sweep);

// The same for the keys below `where` ("model.options"), against the plugin's own table. `owner` as in check_options().
void check_swept_options(const OptionTable& spec, const toml::table& sweep, std::string_view where,
                         std::string_view owner);

}  // namespace headroom
