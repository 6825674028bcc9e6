// Errors of config/ have one form: "place: key is what was found; it must be what is allowed: what to do".
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

#include "error.hpp"

namespace headroom {

// Bounds of a number, as written in "an integer from 1 to 8" or "a number above 0".
struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;  // the bound itself is not allowed
  bool contains(double value) const;
};

// "file:line:column", with the file relative to the working folder, or "--set key=value"; "" when the node has no
// source.
std::string place(const toml::source_region& at);

// The path in the string `node`, absolute and normalised. A relative path is relative to the folder of its file, or to
// the working folder. Error(bad_input) where a run's experiment.toml, which is UTF-8, could not hold it.
std::filesystem::path resolved_path(const toml::node& node);

// `the string "8"`, `the integer 8`, `a list`. Long strings are cut.
std::string describe(const toml::node& node);

// `"a", "b" or "c"`
std::string any_of(const std::vector<std::string>& words, bool in_quotes);

std::string range_text(std::string_view noun, const Range& range);

// The one of `known` that `wrong` most likely means; "" when none is similar.
std::string nearest(std::string_view wrong, const std::vector<std::string>& known);

// What to do about a value of the wrong type, as ": write 8 without quotes"; "" when there is nothing to add.
enum class Wanted { other, integer, number, boolean, string, list };
std::string advice(const toml::node& found, Wanted wanted);

// Throws Error(bad_input, "config", "place: sentence").
[[noreturn]] void refuse(const toml::source_region& at, const std::string& sentence);

}  // namespace headroom
