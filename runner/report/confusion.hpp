// The confusion matrices of summary.json's "classes", on a page and as lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headroom {

// For each output of each split: the matrix (rows true, columns predicted), the most frequent mistakes, and the
// precision, recall and F1 of every class. Up to 20 classes the cells show counts and percentages of their row; with
// more they are coloured squares that show them in a tooltip. "" where there are none. `classes` may be damaged:
// whatever is not a matrix is left out.
std::string confusion_html(const nlohmann::json& classes);

// "val/scores: 'cat' taken for 'dog' 13 times, 26 % of 'cat'": the most frequent mistakes of validation, or of training
// where there was no validation; at most `most` for each output.
std::vector<std::string> confused_lines(const nlohmann::json& classes, size_t most = 5);

}  // namespace headroom
