// Values as TOML literals: for the experiment files that Headroom writes, for sentences, and for literals that plugins
// declare.
#pragma once

#include <string>
#include <string_view>
#include <toml++/toml.h>

namespace headroom {

std::string quote(std::string_view text);        // a basic string; reads back as `text`
std::string number_text(double value);           // the fewest digits that read back as `value`; 5 is "5"
std::string number_literal(double value);        // the same, recognisably a float: "5.0"
std::string key_literal(std::string_view name);  // bare where TOML allows it

// Any node on one line, with inline tables; dates too.
std::string literal(const toml::node& node);

// Parses a TOML literal, as the value of "value" in a table. `origin` becomes the source path of the nodes. Throws
// toml::parse_error.
toml::table parse_literal(std::string_view text, std::string_view origin = {});

}  // namespace headroom
