// What a model takes for what: the confusion matrices of summary.json's "classes", on a page and in lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headroom {

// For each output of each split: the matrix (rows true, columns predicted), what is mistaken most often, and every
// class's precision, recall and F1. Up to 20 classes the cells hold counts and percentages of their row; with more they
// are coloured squares that tell them under the pointer. "" where there are none. `classes` may be damaged: what is no
// matrix is left out.
std::string confusion_html(const nlohmann::json& classes);

// "val/scores: 'cat' taken for 'dog' 13 times, 26 % of 'cat'": the most frequent mistakes of validation, or of training
// where there was none, at most `most` an output.
std::vector<std::string> confused_lines(const nlohmann::json& classes, size_t most = 5);

}  // namespace headroom
